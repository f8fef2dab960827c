/* Sessions that somebody outside decides about. */
#include "hk_loop_broker_fixture.h"

static const hk_permission_t everything = {.pattern = {"*", 1}, .rights = 7};

static void begin(desk_t *desk)
{
    desk_clear(desk);
    desk->wanted.open = false;
    HK_CHECK_OK(desk_try(desk, NULL));
    desk_listen(desk);
}

static int introduce(desk_t *desk, const char *identity, const char *secret)
{
    char frame[FRAME_ROOM];
    int client = desk_connect(desk);
    desk_say(desk, client, frame, desk_hello_frame(frame, identity, 1, secret));
    return client;
}

static hk_hello_ask_t *next(desk_t *desk)
{
    hk_hello_ask_t *ask;
    HK_CHECK_OK(hk_loop_next_hello(desk->rig.loop, 0, &ask));
    return ask;
}

static void check_nobody_asks(desk_t *desk)
{
    hk_hello_ask_t *ask;
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_next_hello(desk->rig.loop, 0, &ask));
}

HK_TEST(who_is_permitted_is_let_in)
{
    desk_t desk;
    begin(&desk);
    int client = introduce(&desk, "me", "secret");
    HK_CHECK(desk_hears_nothing(&desk, client));
    hk_hello_ask_t *ask = next(&desk);
    const hk_hello_t *hello = hk_hello_ask_hello(ask);
    HK_CHECK_BYTES("me", hello->identity);
    HK_CHECK_BYTES("secret", hello->credentials);
    HK_CHECK_BYTES("", hello->agent);
    char address[40];
    (void)snprintf(address, sizeof(address), "unix, process %d", (int)getpid());
    HK_CHECK(hk_bytes_equal(hk_test_text(address), hello->address));
    HK_CHECK_EQUAL_INT(1, hello->kind);
    check_nobody_asks(&desk);
    HK_CHECK_OK(hk_loop_permit(desk.rig.loop, ask, &everything, 1, UINT64_MAX));
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    desk_send(&desk, client, 2, "a", "x");
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    desk_end(&desk);
}

HK_TEST(whose_process_is_not_known_is_let_in_all_the_same)
{
    desk_t desk;
    begin(&desk);
    desk.rig.calls.always[HK_CALL_PROCESS] = true;
    desk.rig.calls.errors[HK_CALL_PROCESS] = ENOPROTOOPT;
    (void)introduce(&desk, "me", "secret");
    hk_hello_ask_t *ask = next(&desk);
    HK_CHECK_BYTES("unknown", hk_hello_ask_hello(ask)->address);
    HK_CHECK_OK(hk_loop_permit(desk.rig.loop, ask, &everything, 1, UINT64_MAX));
    desk_end(&desk);
}

HK_TEST(who_is_permitted_nothing_is_let_in_all_the_same)
{
    desk_t desk;
    begin(&desk);
    int client = introduce(&desk, "me", "");
    HK_CHECK_OK(hk_loop_permit(desk.rig.loop, next(&desk), NULL, 0, UINT64_MAX));
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    desk_send(&desk, client, 2, "a", "x");
    hk_frame_t error = desk_expect(&desk, client, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_FORBIDDEN, desk_code(&error));
    desk_end(&desk);
}

HK_TEST(who_is_refused_hears_why)
{
    desk_t desk;
    char long_sentence[1000];
    memset(long_sentence, 'x', sizeof(long_sentence));
    begin(&desk);
    int one = introduce(&desk, "", "");
    hk_loop_refuse(desk.rig.loop, next(&desk), HK_BYTES("go away"));
    hk_frame_t error = desk_expect(&desk, one, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_UNAUTHORIZED, desk_code(&error));
    HK_CHECK_BYTES("go away", hk_bytes(error.bytes.at + 32, error.bytes.length - 32));
    HK_CHECK(desk_is_closed(&desk, one));
    int two = introduce(&desk, "", "");
    hk_loop_refuse(desk.rig.loop, next(&desk), hk_bytes(long_sentence, sizeof(long_sentence)));
    error = desk_expect(&desk, two, HK_FRAME_ERROR);
    HK_CHECK(error.bytes.length > 200 && error.bytes.length <= 32 + HK_SENTENCE_BYTES);
    HK_CHECK(desk_is_closed(&desk, two));
    desk_end(&desk);
}

HK_TEST(who_has_gone_meanwhile_is_decided_about_in_vain)
{
    desk_t desk;
    begin(&desk);
    int one = introduce(&desk, "", "");
    hk_hello_ask_t *first = next(&desk);
    rig_close(&desk.rig, one);
    rig_run(&desk.rig);
    int two = introduce(&desk, "", "");
    hk_hello_ask_t *second = next(&desk);
    rig_close(&desk.rig, two);
    rig_run(&desk.rig);
    HK_CHECK_OK(hk_loop_permit(desk.rig.loop, first, &everything, 1, UINT64_MAX));
    hk_loop_refuse(desk.rig.loop, second, HK_BYTES("no"));
    rig_run(&desk.rig);
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).sessions);
    desk_end(&desk);
}

HK_TEST(who_waits_for_a_decision_for_too_long_is_closed)
{
    desk_t desk;
    begin(&desk);
    int client = introduce(&desk, "", "");
    hk_hello_ask_t *ask = next(&desk);
    rig_pass(&desk.rig, 11 * HK_SECOND);
    HK_CHECK(desk_is_closed(&desk, client));
    HK_CHECK_OK(hk_loop_permit(desk.rig.loop, ask, &everything, 1, UINT64_MAX));
    rig_run(&desk.rig);
    desk_end(&desk);
}

HK_TEST(what_is_not_decided_when_the_loop_ends_is_given_back)
{
    desk_t desk;
    begin(&desk);
    hk_hello_ask_t *none;
    rig_close(&desk.rig, introduce(&desk, "one", ""));
    rig_run(&desk.rig);
    rig_close(&desk.rig, introduce(&desk, "two", ""));
    (void)next(&desk);
    rig_run(&desk.rig);
    (void)introduce(&desk, "three", "");
    hk_hello_ask_t *late = next(&desk);
    hk_loop_stop(desk.rig.loop);
    for (int i = 0; i < 8 && !desk.rig.ended; i++) {
        rig_pass(&desk.rig, HK_SECOND);
    }
    HK_CHECK(desk.rig.ended);
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_next_hello(desk.rig.loop, -1, &none));
    hk_loop_refuse(desk.rig.loop, late, HK_BYTES("too late"));
    desk_end(&desk);
}

static void *wait_for_hello(void *argument)
{
    desk_t *desk = argument;
    hk_hello_ask_t *ask;
    hk_status_t status = hk_loop_next_hello(desk->rig.loop, -1, &ask);
    HK_CHECK_STATUS(HK_AGAIN, status);
    return NULL;
}

HK_TEST(whoever_waits_for_a_hello_can_be_interrupted)
{
    desk_t desk;
    pthread_t waiter;
    begin(&desk);
    HK_CHECK(pthread_create(&waiter, NULL, wait_for_hello, &desk) == 0);
    poll(NULL, 0, 5);
    hk_loop_interrupt_asks(desk.rig.loop);
    HK_CHECK(pthread_join(waiter, NULL) == 0);
    desk_end(&desk);
}
