/* Everything that a loop does for a broker, with the n-th system call failing, or the n-th request for memory: nothing
 * crashes, leaks or spins, and the loop goes on. */
#include "hk_loop_broker_fixture.h"

enum { MOST_TURNS = 3000 };

static void run(desk_t *desk)
{
    for (int turns = 0; !desk->rig.ended; turns++) {
        HK_CHECK(turns < MOST_TURNS);
        desk->rig.calls.quiet = false;
        hk_status_t status = hk_loop_turn(desk->rig.loop);
        HK_CHECK(status != HK_SYSTEM);
        desk->rig.ended = status == HK_OK;
        if (desk->rig.calls.quiet) {
            break;
        }
    }
}

static void pass(desk_t *desk, int64_t ns)
{
    atomic_fetch_add(&desk->rig.calls.now, ns);
    atomic_fetch_add(&desk->rig.calls.wall, ns);
    run(desk);
}

/* Whoever was closed meanwhile says it in vain. */
static void say(desk_t *desk, int client, const char *frame, size_t length)
{
    (void)send(client, frame, length, MSG_NOSIGNAL | MSG_DONTWAIT);
    run(desk);
    desk_hear(desk, client);
}

static int enter(desk_t *desk)
{
    char frame[FRAME_ROOM];
    int client = rig_keep(&desk->rig, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)connect(client, (struct sockaddr *)&desk->address, desk->address_length);
    say(desk, client, frame, desk_hello_frame(frame, "", 1, ""));
    return client;
}

static void decide(desk_t *desk)
{
    static const hk_permission_t everything = {.pattern = {"*", 1}, .rights = 7};
    hk_hello_ask_t *ask;
    while (hk_loop_next_hello(desk->rig.loop, 0, &ask) == HK_OK) {
        (void)hk_loop_permit(desk->rig.loop, ask, &everything, 1, UINT64_MAX);
    }
    run(desk);
}

/* Whatever there is. */
static void live(desk_t *desk)
{
    char frame[FRAME_ROOM], payload[2500];
    memset(payload, 'x', sizeof(payload));
    desk_listen(desk);
    run(desk);
    int sender = enter(desk), receiver = enter(desk), silent = rig_keep(&desk->rig, socket(AF_UNIX, SOCK_STREAM, 0));
    (void)connect(silent, (struct sockaddr *)&desk->address, desk->address_length);
    decide(desk);
    say(desk, receiver, frame, desk_subscribe_frame(frame, 2, "a", 1000));
    for (uint64_t i = 0; i < 150; i++) {
        size_t size = i % 10 == 0 ? sizeof(payload) : 10;
        (void)send(sender, frame, desk_send_frame(frame, i, HK_LEVEL_MEMORY, "a", hk_bytes(payload, size)),
                   MSG_NOSIGNAL | MSG_DONTWAIT);
        if (i % 50 == 0) {
            run(desk);
        }
    }
    desk->rig.calls.send_limit = 1000;
    run(desk);
    desk_hear(desk, receiver);
    run(desk);
    desk->rig.calls.send_limit = 0;
    desk_hear(desk, receiver);
    say(desk, receiver, frame, desk_free_frame(frame, 3, 0, UINT64_MAX));
    say(desk, sender, "nonsense and more of it", 23);
    rig_close(&desk->rig, receiver);
    run(desk);
    pass(desk, HK_SECOND);
    pass(desk, 40 * HK_SECOND);
}

/* Somebody new is served as if nothing had been. */
static void check_that_it_goes_on(desk_t *desk)
{
    pass(desk, HK_SECOND);
    int client = enter(desk);
    decide(desk);
    hk_frame_t frame;
    desk_hear(desk, client);
    HK_CHECK(desk_next(desk, client, &frame));
    HK_CHECK_EQUAL_INT(HK_FRAME_ACK, frame.type);
}

static void stop(desk_t *desk)
{
    hk_loop_stop(desk->rig.loop);
    for (int i = 0; i < 20 && !desk->rig.ended; i++) {
        pass(desk, HK_SECOND);
    }
    HK_CHECK(desk->rig.ended);
    HK_CHECK_EQUAL_UINT(0, rig_stats(&desk->rig).connections);
    HK_CHECK_EQUAL_UINT(0, rig_stats(&desk->rig).sessions);
    HK_CHECK_EQUAL_UINT(0, desk_stats(desk).sessions);
}

static void clear(desk_t *desk, bool asks)
{
    desk_clear(desk);
    desk->wanted.open = !asks;
}

static const int errors[] = {EINTR, EAGAIN, ENOMEM, EMFILE, ECONNRESET, EPIPE};

HK_TEST(the_nth_system_call_fails_and_the_loop_goes_on)
{
    int files = hk_open_files();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            desk_t desk;
            clear(&desk, i % 2 == 0);
            desk.rig.calls.fail_at = n;
            desk.rig.calls.error = errors[i];
            hk_test_note("call %ld fails with %s", n, strerror(errors[i]));
            hk_status_t status = desk_try(&desk, NULL);
            if (status != HK_OK) {
                HK_CHECK_STATUS(HK_SYSTEM, status);
                desk_release(&desk);
                HK_CHECK_EQUAL_INT(files, hk_open_files());
                continue;
            }
            live(&desk);
            failed = desk.rig.calls.failed;
            hk_test_note("call %ld, %s, fails with %s", n, hk_call_name(desk.rig.calls.failed_call),
                         strerror(errors[i]));
            desk.rig.calls.fail_at = 0;
            check_that_it_goes_on(&desk);
            stop(&desk);
            desk_end(&desk);
            HK_CHECK_EQUAL_INT(files, hk_open_files());
        }
    }
}

HK_TEST(while_it_stops_the_nth_system_call_fails)
{
    int files = hk_open_files();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            desk_t desk;
            clear(&desk, false);
            HK_CHECK_OK(desk_try(&desk, NULL));
            live(&desk);
            (void)enter(&desk);
            (void)enter(&desk);
            desk.rig.calls.fail_at = n;
            desk.rig.calls.error = errors[i];
            stop(&desk);
            failed = desk.rig.calls.failed;
            desk_end(&desk);
            HK_CHECK_EQUAL_INT(files, hk_open_files());
        }
    }
}

HK_TEST(each_request_for_memory_fails_and_the_loop_goes_on)
{
    int files = hk_open_files();
    HK_EACH_FAILING_ALLOCATION {
        desk_t desk;
        clear(&desk, true);
        hk_status_t status = desk_try(&desk, NULL);
        if (status != HK_OK) {
            HK_CHECK_STATUS(HK_NO_MEMORY, status);
            desk_release(&desk);
        } else {
            live(&desk);
            stop(&desk);
            desk_end(&desk);
        }
        HK_CHECK_EQUAL_INT(files, hk_open_files());
    }
}
