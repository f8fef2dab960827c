#include "hk_broker_fixture.h"

HK_TEST(a_message_goes_from_its_sender_to_a_receiver_and_is_gone_when_it_was_freed)
{
    world_t world;
    client_t sender, receiver;
    world_open(&world, NULL);
    client_open(&world, &sender, NULL, 0);
    client_open(&world, &receiver, NULL, 0);
    client_subscribe(&receiver, 3, "work", 10);
    client_send(&sender, 7, "work", "hello", &(sending_t){.level = USUAL_LEVEL, .priority = 4});
    uint64_t id = expect_ack(&sender, HK_FRAME_SEND, 7);
    push_t push = expect_push(&receiver, "hello");
    HK_CHECK_EQUAL_UINT(id, push.message);
    HK_CHECK_EQUAL_INT(3, push.subscription);
    HK_CHECK_EQUAL_INT(1, push.attempt);
    HK_CHECK_EQUAL_INT(4, push.priority);
    HK_CHECK_EQUAL_INT(0, push.flags);
    HK_CHECK_EQUAL_UINT(30000, push.lease);
    HK_CHECK_EQUAL_UINT(world.wall, push.sent);
    HK_CHECK_EQUAL_UINT((receiver.number << 36) + 1, push.delivery);
    client_free(&receiver, 9, push.delivery, push.delivery, 0);
    expect_ack(&receiver, HK_FRAME_FREE, 9);
    hk_broker_stats_t stats;
    hk_broker_read_stats(world.broker, &stats);
    HK_CHECK_EQUAL_UINT(0, stats.messages);
    HK_CHECK_EQUAL_UINT(0, stats.bytes);
    HK_CHECK_EQUAL_UINT(1, stats.freed);
    client_free(&receiver, 0, push.delivery, push.delivery, 0);
    hk_frame_t frame = expect_error(&receiver, HK_CODE_STALE, 0);
    HK_CHECK_EQUAL_UINT(push.delivery, hk_frame_u64(frame.bytes.at + 24));
    world_close(&world);
}

HK_TEST(sends_with_ids_that_follow_each_other_have_one_ack)
{
    world_t world;
    client_t sender;
    world_open(&world, NULL);
    client_open(&world, &sender, NULL, 0);
    for (uint64_t id = 5; id < 9; id++) {
        client_send(&sender, id, "work", "x", &(sending_t){0});
    }
    client_send(&sender, 20, "work", "x", &(sending_t){0});
    hk_frame_t frame = expect(&sender, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_ACK_RANGE, frame.flags);
    HK_CHECK_EQUAL_UINT(5, frame.id);
    HK_CHECK_EQUAL_UINT(8, hk_frame_u64(frame.bytes.at + 32));
    expect_ack(&sender, HK_FRAME_SEND, 20);
    expect_nothing(&sender);
    world_close(&world);
}
