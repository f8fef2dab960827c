/* Delays, ends of messages and idle queues (docs/protocol.md, section 4). */
#include "hk_broker_fixture.h"

HK_TEST(a_delayed_message_waits_for_its_time_and_those_of_one_time_keep_their_order)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe(&client, 1, "work", 100);
    for (int i = 0; i < 20; i++) {
        client_send(&client, 0, "work", (char[]){(char)('a' + i), 0}, &(sending_t){.delay = 500});
    }
    client_send(&client, 0, "work", "now", &PLAIN);
    expect_push(&client, "now");
    world_pass(&world, 500 * MS - 1);
    expect_nothing(&client);
    world_pass(&world, 1);
    for (int i = 0; i < 20; i++) {
        expect_push(&client, (char[]){(char)('a' + i), 0});
    }
    world_close(&world);
}

HK_TEST(an_expired_message_is_dropped_and_counted_waiting_delayed_or_out)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_send(&client, 0, "work", "waits", &(sending_t){.time_to_live = 100});
    client_send(&client, 0, "work", "late", &(sending_t){.time_to_live = 100, .delay = 200});
    client_subscribe(&client, 1, "other", 9);
    client_send(&client, 0, "other", "out", &(sending_t){.time_to_live = 100});
    push_t push = expect_push(&client, "out");
    world_pass(&world, 100 * MS);
    expect_nothing(&client);
    client_subscribe(&client, 2, "work", 9);
    world_pass(&world, 200 * MS);
    expect_nothing(&client);
    hk_broker_stats_t stats = world_stats(&world);
    HK_CHECK_EQUAL_UINT(2, stats.expired);
    HK_CHECK_EQUAL_UINT(1, stats.messages);
    client_nack(&client, 0, push.delivery, 0, 0, "");
    expect_nothing(&client);
    stats = world_stats(&world);
    HK_CHECK_EQUAL_UINT(3, stats.expired);
    HK_CHECK_EQUAL_UINT(0, stats.messages);
    world_close(&world);
}

HK_TEST(a_queue_without_messages_and_receivers_is_forgotten_after_a_while)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.open = true, .queue_idle = 10});
    client_open(&world, &client, NULL, 0);
    client_subscribe(&client, 1, "work", 9);
    client_send(&client, 0, "work", "x", &PLAIN);
    push_t push = expect_push(&client, "x");
    client_plain(&client, HK_FRAME_UNSUBSCRIBE, 1, 3);
    expect_ack(&client, HK_FRAME_UNSUBSCRIBE, 3);
    world_pass(&world, 11 * SECOND);
    world_turn(&world);
    hk_broker_stats_t stats = world_stats(&world);
    HK_CHECK_EQUAL_UINT(1, stats.queues);
    client_free(&client, 0, push.delivery, push.delivery, 0);
    world_pass(&world, 10 * SECOND);
    world_turn(&world);
    stats = world_stats(&world);
    HK_CHECK_EQUAL_UINT(0, stats.queues);
    client_send(&client, 9, "work", "y", &PLAIN);
    expect_ack(&client, HK_FRAME_SEND, 9);
    world_close(&world);
}
