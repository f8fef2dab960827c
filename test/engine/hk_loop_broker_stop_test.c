#include "hk_loop_broker_fixture.h"

#include <sys/wait.h>

static void stop(desk_t *desk)
{
    hk_loop_stop(desk->rig.loop);
    rig_run(&desk->rig);
}

HK_TEST(a_loop_whose_broker_has_nothing_out_stops_at_once)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int client = desk_client(&desk, "");
    stop(&desk);
    hk_frame_t drain = desk_expect(&desk, client, HK_FRAME_DRAIN);
    HK_CHECK_EQUAL_UINT(1000, hk_frame_u32(drain.bytes.at + 16));
    HK_CHECK(desk_is_closed(&desk, client));
    rig_close(&desk.rig, client);
    rig_run(&desk.rig);
    HK_CHECK(desk.rig.ended);
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).sessions);
    desk_end(&desk);
}

HK_TEST(a_loop_with_a_broker_that_holds_nothing_stops)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    hk_loop_stop(desk.rig.loop);
    HK_CHECK_OK(hk_loop_run(desk.rig.loop));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_listen_broker(desk.rig.loop, 0, false));
    desk_end(&desk);
}

HK_TEST(a_stop_waits_for_who_has_a_message_in_hand)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), receiver = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 1);
    desk_send(&desk, sender, 2, "a", "one");
    desk_send(&desk, sender, 3, "a", "two");
    hk_frame_t push = desk_expect(&desk, receiver, HK_FRAME_PUSH);
    uint64_t delivery = push.id;
    stop(&desk);
    HK_CHECK(!desk.rig.ended);
    HK_CHECK(!desk_is_closed(&desk, receiver));
    (void)desk_expect(&desk, receiver, HK_FRAME_DRAIN);
    desk_send(&desk, sender, 4, "a", "too late");
    desk_free(&desk, receiver, delivery);
    HK_CHECK(desk_is_closed(&desk, receiver));
    HK_CHECK_EQUAL_UINT(1, desk_stats(&desk).freed);
    HK_CHECK_EQUAL_UINT(1, desk_stats(&desk).messages);
    rig_close(&desk.rig, receiver);
    rig_close(&desk.rig, sender);
    rig_run(&desk.rig);
    HK_CHECK(desk.rig.ended);
    desk_end(&desk);
}

HK_TEST(a_stop_takes_no_longer_than_it_may)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), receiver = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 1);
    desk_send(&desk, sender, 2, "a", "kept");
    stop(&desk);
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK(!desk_is_closed(&desk, receiver));
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK(desk_is_closed(&desk, receiver));
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK(desk.rig.ended);
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).out);
    HK_CHECK_EQUAL_UINT(1, desk_stats(&desk).messages);
    desk_end(&desk);
}

HK_TEST(a_stop_closes_who_does_not_read)
{
    desk_t desk;
    char payload[3000];
    char frame[FRAME_ROOM];
    memset(payload, 'x', sizeof(payload));
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), slow = desk_client(&desk, "");
    desk_subscribe(&desk, slow, "a", 1000);
    for (int i = 0; i < 400; i++) {
        desk_say(&desk, sender, frame,
                 desk_send_frame(frame, 0, HK_LEVEL_MEMORY, "a", hk_bytes(payload, sizeof(payload))));
    }
    HK_CHECK(!hk_list_empty(&desk.rig.loop->phases[HK_PHASE_STALLED]));
    stop(&desk);
    HK_CHECK(!desk.rig.ended);
    for (int i = 0; i < 8 && !desk.rig.ended; i++) {
        rig_pass(&desk.rig, HK_SECOND);
    }
    HK_CHECK(desk.rig.ended);
    HK_CHECK_EQUAL_UINT(0, rig_stats(&desk.rig).sessions);
    HK_CHECK_EQUAL_UINT(400, desk_stats(&desk).messages);
    desk_end(&desk);
}

HK_TEST(hub_and_broker_stop_together)
{
    desk_t desk;
    desk_clear(&desk);
    desk.with_hub = true;
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    int stream = rig_subscribe(&desk.rig, "match=/a"), receiver = desk_client(&desk, ""),
        sender = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 1);
    desk_send(&desk, sender, 2, "a", "one");
    hk_frame_t push = desk_expect(&desk, receiver, HK_FRAME_PUSH);
    stop(&desk);
    HK_CHECK(!rig_is_closed(&desk.rig, stream));
    desk_free(&desk, receiver, push.id);
    HK_CHECK(rig_is_closed(&desk.rig, stream));
    HK_CHECK(desk_is_closed(&desk, receiver));
    rig_close(&desk.rig, receiver);
    rig_close(&desk.rig, sender);
    rig_run(&desk.rig);
    HK_CHECK(desk.rig.ended);
    desk_end(&desk);
}

HK_TEST(a_loop_that_is_freed_without_a_stop_gives_back_what_was_out)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), receiver = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 1);
    desk_send(&desk, sender, 2, "a", "one");
    HK_CHECK_EQUAL_UINT(1, desk_stats(&desk).out);
    hk_loop_free(desk.rig.loop);
    desk.rig.loop = NULL;
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).out);
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).sessions);
    desk_end(&desk);
}

HK_TEST(a_forked_child_frees_the_memory_and_leaves_the_files_alone)
{
    desk_t desk;
    desk_begin_stored(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_send_at(&desk, client, 2, HK_LEVEL_SYNCED, "a", "x");
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    rig_run(&desk.rig);
    hk_loop_interrupt(desk.rig.loop);
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_run(desk.rig.loop));
    pid_t child = fork();
    HK_CHECK(child >= 0);
    if (child == 0) {
        hk_loop_abandon(desk.rig.loop);
        hk_broker_drop_dead(desk.broker);
        _exit(hk_test_blocks() == 0 ? 0 : 1);
    }
    int status;
    HK_CHECK(waitpid(child, &status, 0) == child);
    HK_CHECK(WIFEXITED(status));
    HK_CHECK_EQUAL_INT(0, WEXITSTATUS(status));
    desk_send_at(&desk, client, 3, HK_LEVEL_SYNCED, "a", "y");
    HK_CHECK_EQUAL_UINT(3, desk_expect(&desk, client, HK_FRAME_ACK).id);
    desk_end(&desk);
}
