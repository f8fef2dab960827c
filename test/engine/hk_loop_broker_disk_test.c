/* What waits for the disk: threads of the loop's run it, and the loop goes on meanwhile. */
#include "hk_loop_broker_fixture.h"

HK_TEST(who_asks_for_the_disk_hears_when_it_has_it_and_others_do_not_wait)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int one = desk_client(&desk, ""), two = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, one, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    HK_CHECK(desk_hears_nothing(&desk, one));
    desk_send_at(&desk, two, 3, HK_LEVEL_WRITTEN, "a", "y");
    hk_frame_t written = desk_expect(&desk, two, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_LEVEL_WRITTEN, written.bytes.at[17]);
    HK_CHECK(desk_hears_nothing(&desk, one));
    desk_hold(&desk, false);
    hk_frame_t synced = desk_expect(&desk, one, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(2, synced.id);
    HK_CHECK_EQUAL_INT(HK_LEVEL_SYNCED, synced.bytes.at[17]);
    HK_CHECK(!desk.on_loop);
    desk_end(&desk);
}

HK_TEST(what_comes_while_the_disk_is_busy_shares_the_next_sync)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int one = desk_client(&desk, ""), two = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, one, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    int before = desk.synced;
    for (uint64_t id = 10; id < 60; id++) {
        desk_send_at(&desk, two, id, HK_LEVEL_SYNCED, "a", "y");
    }
    HK_CHECK(desk_hears_nothing(&desk, two));
    desk_hold(&desk, false);
    (void)desk_expect(&desk, one, HK_FRAME_ACK);
    uint64_t last = 0;
    while (last < 59) {
        hk_frame_t ack = desk_expect(&desk, two, HK_FRAME_ACK);
        last = (ack.flags & HK_ACK_RANGE) != 0 ? hk_frame_u64(ack.bytes.at + 32) : ack.id;
    }
    HK_CHECK_EQUAL_INT(before + 2, desk.synced);
    desk_end(&desk);
}

/* Where messages come faster than segments are made, as on a busy machine, a client is told to try again. */
static bool is_taken(desk_t *desk, int client, uint64_t id, const char *payload)
{
    desk_send_at(desk, client, id, HK_LEVEL_WRITTEN, "a", payload);
    hk_frame_t answer = desk_answer(desk, client);
    if (answer.type == HK_FRAME_ERROR) {
        HK_CHECK_EQUAL_INT(HK_CODE_OVERLOADED, desk_code(&answer));
        poll(NULL, 0, 1);
        return false;
    }
    HK_CHECK_EQUAL_INT(HK_FRAME_ACK, answer.type);
    HK_CHECK_EQUAL_UINT(id, answer.id);
    return true;
}

HK_TEST(segments_are_made_while_messages_come)
{
    enum { MESSAGES = 300 };
    desk_t desk;
    char payload[2000];
    memset(payload, 'x', sizeof(payload));
    payload[sizeof(payload) - 1] = '\0';
    desk_begin_stored(&desk, NULL);
    int client = desk_client(&desk, "");
    for (uint64_t id = 1; id <= MESSAGES; id++) {
        while (!is_taken(&desk, client, id, payload)) {
        }
    }
    HK_CHECK(desk_stats(&desk).journal.segments > 5);
    HK_CHECK(!desk.on_loop);
    desk_end(&desk);
}

HK_TEST(from_who_has_as_many_unanswered_requests_as_may_be_no_more_is_read_for_a_while)
{
    enum { WINDOW = 16, MESSAGES = 3000 };
    desk_t desk;
    char frame[FRAME_ROOM];
    desk_clear(&desk);
    desk_store(&desk);
    desk.wanted.window_messages = WINDOW;
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    int client = desk_client(&desk, ""), other = desk_client(&desk, "");
    desk_hold(&desk, true);
    uint64_t id = 0;
    while (id < WINDOW) {
        desk_send_at(&desk, client, ++id, HK_LEVEL_SYNCED, "a", "x");
    }
    desk_await_sync(&desk);
    for (; id < MESSAGES; id++) {
        size_t length = desk_send_frame(frame, id + 1, HK_LEVEL_SYNCED, "a", HK_BYTES("x"));
        if (send(client, frame, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)length) {
            break;
        }
    }
    rig_run(&desk.rig);
    HK_CHECK_EQUAL_UINT(WINDOW, desk_stats(&desk).received[HK_LEVEL_SYNCED]);
    HK_CHECK(!hk_list_empty(&desk.rig.loop->phases[HK_PHASE_FULL]));
    HK_CHECK(desk.rig.calls.quiet);
    desk_send(&desk, other, 5, "b", "y");
    HK_CHECK_EQUAL_UINT(5, desk_expect(&desk, other, HK_FRAME_ACK).id);
    desk_hold(&desk, false);
    uint64_t answered = 0;
    for (int waited = 0; answered < id; waited++, poll(NULL, 0, 1)) {
        hk_frame_t heard;
        HK_CHECK(waited < PATIENCE_MS);
        rig_run(&desk.rig);
        while (desk_next(&desk, client, &heard)) {
            HK_CHECK(heard.type == HK_FRAME_ACK || desk_code(&heard) == HK_CODE_OVERLOADED);
            bool range = heard.type == HK_FRAME_ACK && (heard.flags & HK_ACK_RANGE) != 0;
            answered += range ? hk_frame_u64(heard.bytes.at + 32) - heard.id + 1 : 1;
        }
    }
    RIG_UNTIL(&desk.rig, hk_list_empty(&desk.rig.loop->phases[HK_PHASE_FULL]));
    desk_end(&desk);
}

HK_TEST(a_client_that_vanishes_while_the_disk_is_waited_for_does_no_harm)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int one = desk_client(&desk, ""), two = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, one, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_send_at(&desk, two, 3, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    rig_close(&desk.rig, one);
    rig_run(&desk.rig);
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk.rig).sessions);
    desk_hold(&desk, false);
    (void)desk_expect(&desk, two, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(2, desk_stats(&desk).messages);
    desk_end(&desk);
}

HK_TEST(without_a_thread_the_disk_waits_until_there_is_one)
{
    desk_t desk;
    desk_clear(&desk);
    desk_store(&desk);
    desk.rig.calls.always[HK_CALL_THREAD_CREATE] = true;
    desk.rig.calls.errors[HK_CALL_THREAD_CREATE] = EAGAIN;
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    int client = desk_client(&desk, "");
    desk_send_at(&desk, client, 2, HK_LEVEL_SYNCED, "a", "x");
    for (int i = 0; i < 3; i++) {
        HK_CHECK(desk_hears_nothing(&desk, client));
        HK_CHECK_EQUAL_INT(100, atomic_load(&desk.rig.calls.timeout_ms));
        rig_pass(&desk.rig, 100 * HK_MILLISECOND);
    }
    desk.rig.calls.always[HK_CALL_THREAD_CREATE] = false;
    rig_pass(&desk.rig, 100 * HK_MILLISECOND);
    HK_CHECK_EQUAL_UINT(2, desk_expect(&desk, client, HK_FRAME_ACK).id);
    HK_CHECK(!desk.on_loop);
    desk_end(&desk);
}

/* --- a disk that fails -------------------------------------------------------------------------------------------- */

static void check_failure(desk_t *desk, int one, int two)
{
    hk_frame_t error = desk_expect(desk, one, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_FAILED, desk_code(&error));
    error = desk_expect(desk, two, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_FAILED, desk_code(&error));
    HK_CHECK(desk_is_closed(desk, one));
    HK_CHECK(desk_is_closed(desk, two));
    hk_journal_trouble_t trouble = {.error = 0};
    HK_CHECK(hk_loop_storage_failed(desk->rig.loop, &trouble));
    HK_CHECK(trouble.text[0] != '\0');
    HK_CHECK_EQUAL_INT(EIO, trouble.error);
    HK_CHECK(atomic_exchange(&desk->rig.loop->interrupted, false));
    int late = desk_connect(desk);
    desk_hello(desk, late, "");
    error = desk_expect(desk, late, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_FAILED, desk_code(&error));
    HK_CHECK(!atomic_load(&desk->rig.loop->interrupted));
    hk_loop_stop(desk->rig.loop);
    rig_run(&desk->rig);
    rig_pass(&desk->rig, 2 * HK_SECOND);
    HK_CHECK(desk->rig.ended);
}

HK_TEST(when_a_write_fails_everybody_is_told_and_whoever_runs_the_loop)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int one = desk_client(&desk, ""), two = desk_client(&desk, "");
    HK_CHECK(!hk_loop_storage_failed(desk.rig.loop, NULL));
    desk.fail_write = 1;
    desk_send_at(&desk, one, 2, HK_LEVEL_WRITTEN, "a", "x");
    check_failure(&desk, one, two);
    desk_end(&desk);
}

HK_TEST(when_a_sync_fails_everybody_is_told_and_whoever_runs_the_loop)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int one = desk_client(&desk, ""), two = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, one, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    desk.fail_sync = 1;
    desk_hold(&desk, false);
    check_failure(&desk, one, two);
    desk_end(&desk);
}

HK_TEST(without_storage_none_fails)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    (void)desk_client(&desk, "");
    HK_CHECK(!hk_loop_storage_failed(desk.rig.loop, NULL));
    desk_end(&desk);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

HK_TEST(a_stop_waits_for_what_the_disk_has_in_hand)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, client, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    hk_loop_stop(desk.rig.loop);
    rig_run(&desk.rig);
    (void)desk_expect(&desk, client, HK_FRAME_DRAIN);
    HK_CHECK(!desk.rig.ended);
    desk_hold(&desk, false);
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    HK_CHECK(desk_is_closed(&desk, client));
    rig_close(&desk.rig, client);
    RIG_UNTIL(&desk.rig, desk.rig.ended);
    desk_end(&desk);
}

HK_TEST(after_its_time_a_stop_waits_for_the_disk_alone_without_spinning)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, client, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    hk_loop_stop(desk.rig.loop);
    rig_run(&desk.rig);
    for (int i = 0; i < 10; i++) {
        rig_pass(&desk.rig, HK_SECOND);
    }
    HK_CHECK(desk_is_closed(&desk, client));
    HK_CHECK(!desk.rig.ended);
    HK_CHECK_EQUAL_INT(-1, atomic_load(&desk.rig.calls.timeout_ms));
    desk_hold(&desk, false);
    RIG_UNTIL(&desk.rig, desk.rig.ended);
    desk_end(&desk);
}

static void *let_go_soon(void *argument)
{
    poll(NULL, 0, 20);
    desk_hold(argument, false);
    return NULL;
}

HK_TEST(a_loop_that_is_freed_waits_for_what_the_disk_has_in_hand)
{
    desk_t desk;
    pthread_t helper;
    desk_begin_stored(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_hold(&desk, true);
    desk_send_at(&desk, client, 2, HK_LEVEL_SYNCED, "a", "x");
    desk_await_sync(&desk);
    HK_CHECK(pthread_create(&helper, NULL, let_go_soon, &desk) == 0);
    hk_loop_free(desk.rig.loop);
    HK_CHECK_EQUAL_INT(0, desk.syncing);
    desk.rig.loop = NULL;
    HK_CHECK(pthread_join(helper, NULL) == 0);
    desk_end(&desk);
}

HK_TEST(messages_are_there_again_when_another_loop_has_the_broker)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_send_at(&desk, client, 2, HK_LEVEL_SYNCED, "a", "kept");
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    hk_loop_stop(desk.rig.loop);
    rig_run(&desk.rig);
    rig_close(&desk.rig, client);
    RIG_UNTIL(&desk.rig, desk.rig.ended);
    rig_end(&desk.rig);
    HK_CHECK_OK(desk_close_broker(&desk));
    rig_clear(&desk.rig);
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    int receiver = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 1);
    hk_frame_t push = desk_expect(&desk, receiver, HK_FRAME_PUSH);
    HK_CHECK_BYTES("kept", desk_payload(&push));
    desk_end(&desk);
}
