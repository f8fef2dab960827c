/* Who gets a message, in which order, and how many at once (docs/protocol.md, section 7). */
#include "hk_broker_fixture.h"

HK_TEST(higher_priorities_come_first_and_each_in_its_order)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_send(&client, 0, "work", "a", &(sending_t){.priority = 4});
    client_send(&client, 0, "work", "b", &(sending_t){.priority = 9});
    client_send(&client, 0, "work", "c", &(sending_t){.priority = 4});
    client_send(&client, 0, "work", "d", &(sending_t){.priority = 0});
    client_subscribe(&client, 1, "work", 10);
    expect_push(&client, "b");
    expect_push(&client, "a");
    expect_push(&client, "c");
    expect_push(&client, "d");
    expect_nothing(&client);
    world_close(&world);
}

HK_TEST(receivers_of_a_queue_get_messages_in_turn_as_far_as_their_credit_goes)
{
    world_t world;
    client_t a, b;
    world_open(&world, NULL);
    client_open(&world, &a, NULL, 0);
    client_open(&world, &b, NULL, 0);
    client_subscribe(&a, 1, "work", 1);
    client_subscribe(&b, 1, "work", 3);
    for (int i = 0; i < 5; i++) {
        client_send(&a, 0, "work", (char[]){(char)('0' + i), 0}, &PLAIN);
    }
    push_t first = expect_push(&a, "0");
    expect_push(&b, "1");
    expect_push(&b, "2");
    expect_push(&b, "3");
    expect_nothing(&a);
    client_free(&a, 0, first.delivery, first.delivery, 0);
    expect_push(&a, "4");
    world_close(&world);
}

HK_TEST(credit_in_bytes_holds_back_what_is_too_large_unless_nothing_is_out)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe_with(&client, 1, "work", 10, 10, 0, 0);
    client_send(&client, 0, "work", "123456", &PLAIN);
    client_send(&client, 0, "work", "12345678901234", &PLAIN);
    push_t push = expect_push(&client, "123456");
    expect_nothing(&client);
    client_free(&client, 0, push.delivery, push.delivery, 0);
    push = expect_push(&client, "12345678901234");
    client_send(&client, 0, "work", "x", &PLAIN);
    expect_nothing(&client);
    client_credit(&client, 1, 10, 100);
    expect_push(&client, "x");
    world_close(&world);
}

HK_TEST(zero_credit_is_a_pause_and_what_is_out_stays_out)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe(&client, 1, "work", 1);
    client_send(&client, 0, "work", "a", &PLAIN);
    push_t push = expect_push(&client, "a");
    client_credit(&client, 1, 0, 0);
    client_send(&client, 0, "work", "b", &PLAIN);
    client_free(&client, 5, push.delivery, push.delivery, 0);
    expect_ack(&client, HK_FRAME_FREE, 5);
    expect_nothing(&client);
    client_credit(&client, 1, 1, 0);
    expect_push(&client, "b");
    world_close(&world);
}

HK_TEST(what_is_larger_than_a_client_takes_goes_to_others)
{
    world_t world;
    client_t small, large;
    world_open(&world, NULL);
    client_connect(&world, &small);
    HK_CHECK_OK(client_hello(&small, &(greeting_t){.max_frame = 4096}));
    expect(&small, HK_FRAME_ACK);
    client_open(&world, &large, NULL, 0);
    client_subscribe(&small, 1, "work", 10);
    char payload[5001] = {0};
    memset(payload, 'x', 5000);
    client_send(&large, 0, "work", payload, &PLAIN);
    client_send(&large, 0, "work", "little", &PLAIN);
    expect_push(&small, "little");
    client_subscribe(&large, 1, "work", 1);
    push_t push = expect_push(&large, payload);
    client_send(&large, 0, "work", payload, &PLAIN);
    client_send(&large, 0, "work", "more", &PLAIN);
    expect_nothing(&small);
    client_free(&large, 0, push.delivery, push.delivery, 0);
    expect_push(&large, payload);
    expect_push(&small, "more");
    world_close(&world);
}

HK_TEST(a_receiver_that_takes_nothing_is_sent_no_more_than_a_little_ahead)
{
    world_t world;
    client_t client, sender;
    world_open_with(&world, &client);
    client_open(&world, &sender, NULL, 0);
    client_subscribe(&client, 1, "q", 1000000);
    client.stuck = true;
    char payload[10001] = {0};
    memset(payload, 'x', 10000);
    for (int i = 0; i < 300; i++) {
        client_send(&sender, 0, "q", payload, &PLAIN);
        world_turn(&world);
    }
    hk_broker_stats_t stats = world_stats(&world);
    HK_CHECK(stats.out > 50 && stats.out < 150);
    client.stuck = false;
    client.most = 777;
    hk_session_writable(client.session);
    for (int i = 0; i < 300; i++) {
        expect_push(&client, payload);
    }
    world_close(&world);
}
