/* Leases, and what comes back (docs/protocol.md, sections 7 and 8). */
#include "hk_broker_fixture.h"

HK_TEST(a_lease_that_ends_makes_its_message_a_suspect_which_comes_alone)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe_with(&client, 1, "work", 2, 0, 1000, 0);
    client_send(&client, 0, "work", "a", &PLAIN);
    push_t first = expect_push(&client, "a");
    HK_CHECK_EQUAL_UINT(1000, first.lease);
    HK_CHECK_EQUAL_INT(world.now + SECOND, hk_broker_next_tick(world.broker));
    world_pass(&world, SECOND - 1);
    expect_nothing(&client);
    world_pass(&world, 1);
    expect_nothing(&client);
    client_free(&client, 3, first.delivery, first.delivery, 0);
    expect_error(&client, HK_CODE_STALE, 3);
    push_t second = expect_push(&client, "a");
    HK_CHECK_EQUAL_INT(HK_PUSH_AGAIN | HK_PUSH_SUSPECT, second.flags);
    HK_CHECK_EQUAL_INT(2, second.attempt);
    HK_CHECK_EQUAL_INT(1, second.crashes);
    client_send(&client, 0, "work", "b", &PLAIN);
    client_free(&client, 4, first.delivery, first.delivery, 0);
    expect_error(&client, HK_CODE_STALE, 4);
    expect_nothing(&client);
    client_free(&client, 0, second.delivery, second.delivery, 0);
    expect_push(&client, "b");
    world_close(&world);
}

HK_TEST(a_suspect_waits_for_a_receiver_that_has_nothing_else_and_one_is_emptied_for_it)
{
    world_t world;
    client_t client, killer;
    world_open_with(&world, &client);
    client_open(&world, &killer, NULL, 0);
    client_subscribe(&killer, 1, "work", 1);
    client_send(&client, 0, "work", "poison", &PLAIN);
    expect_push(&killer, "poison");
    client_subscribe(&client, 1, "work", 2);
    client_send(&client, 0, "work", "a", &PLAIN);
    push_t a = expect_push(&client, "a");
    client_gone(&killer);
    client_send(&client, 0, "work", "b", &PLAIN);
    expect_nothing(&client);
    client_free(&client, 0, a.delivery, a.delivery, 0);
    push_t poison = expect_push(&client, "poison");
    HK_CHECK_EQUAL_INT(1, poison.crashes);
    expect_nothing(&client);
    client_free(&client, 0, poison.delivery, poison.delivery, 0);
    expect_push(&client, "b");
    world_close(&world);
}

HK_TEST(a_message_is_dead_when_its_receivers_vanished_with_it_as_often_as_they_may)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.open = true, .max_crashes = 2});
    client_open(&world, &client, NULL, 0);
    client_subscribe_with(&client, 1, "work", 2, 0, 1000, 0);
    client_send(&client, 0, "work", "a", &PLAIN);
    expect_push(&client, "a");
    world_pass(&world, SECOND);
    expect_nothing(&client);
    client_credit(&client, 1, 2, 0);
    expect_push(&client, "a");
    world_pass(&world, SECOND);
    expect_nothing(&client);
    client_credit(&client, 1, 2, 0);
    expect_nothing(&client);
    client_query(&client, 4, 3, "work", 0, 0);
    HK_CHECK_BYTES("{\"dead\":[{\"id\":1,\"reason\":2,\"words\":\"\",\"failures\":0,\"crashes\":2,\"age_ms\":2000,"
                   "\"bytes\":1,\"payload\":\"YQ==\"}]}",
                   expect_report(&client));
    world_close(&world);
}

HK_TEST(only_what_was_in_hand_has_crashed_when_a_connection_breaks)
{
    static const struct {
        bool acknowledges, drains;
        const char *order;
        int crashes[3];
    } cases[] = {
        {false, false, "abc", {1, 0, 0}},
        {true, false, "abc", {0, 1, 0}},
        {false, true, "abc", {0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hk_test_note("case %zu", i);
        world_t world;
        client_t gone, client;
        world_open(&world, NULL);
        client_open(&world, &gone, NULL, 0);
        client_open(&world, &client, NULL, 0);
        client_subscribe(&gone, 1, "work", 3);
        push_t pushes[3];
        for (int m = 0; m < 3; m++) {
            char payload[] = {(char)('a' + m), 0};
            client_send(&client, 0, "work", payload, &PLAIN);
            pushes[m] = expect_push(&gone, payload);
        }
        if (cases[i].acknowledges) {
            client_plain(&gone, HK_FRAME_ACK, 0, pushes[1].delivery);
        }
        if (cases[i].drains) {
            client_plain(&gone, HK_FRAME_DRAIN, 0, 0);
        }
        client_gone(&gone);
        client_subscribe(&client, 1, "work", 1);
        for (int m = 0; m < 3; m++) {
            hk_frame_t frame = expect(&client, HK_FRAME_PUSH);
            push_t push = read_push(&frame);
            HK_CHECK_EQUAL_INT(cases[i].crashes[push.payload.at[0] - 'a'], push.crashes);
            HK_CHECK_EQUAL_INT(2, push.attempt);
            HK_CHECK((push.flags & HK_PUSH_AGAIN) != 0);
            client_free(&client, 0, push.delivery, push.delivery, 0);
        }
        world_close(&world);
    }
}

HK_TEST(what_comes_back_is_delivered_before_what_was_never_delivered_in_the_order_of_ids)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe(&client, 1, "work", 3);
    push_t pushes[3];
    for (int m = 0; m < 3; m++) {
        char payload[] = {(char)('a' + m), 0};
        client_send(&client, 0, "work", payload, &PLAIN);
        pushes[m] = expect_push(&client, payload);
    }
    client_send(&client, 0, "work", "new", &PLAIN);
    client_credit(&client, 1, 0, 0);
    client_nack(&client, 8, pushes[2].delivery, 0, 0, "");
    expect_ack(&client, HK_FRAME_NACK, 8);
    client_nack(&client, 0, pushes[0].delivery, 0, 0, "");
    client_nack(&client, 0, pushes[1].delivery, 1, 0, "no");
    client_credit(&client, 1, 9, 0);
    HK_CHECK_EQUAL_INT(2, expect_push(&client, "a").attempt);
    push_t b = expect_push(&client, "b");
    HK_CHECK_EQUAL_INT(1, b.failures);
    HK_CHECK_EQUAL_INT(HK_PUSH_AGAIN, b.flags);
    expect_push(&client, "c");
    expect_push(&client, "new");
    world_close(&world);
}

HK_TEST(a_message_that_was_rejected_as_often_as_it_may_be_is_dead_and_can_be_replayed_or_dropped)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.open = true, .max_failures = 1});
    client_open(&world, &client, NULL, 0);
    client_subscribe(&client, 1, "work", 3);
    client_send(&client, 0, "work", "a", &PLAIN);
    push_t push = expect_push(&client, "a");
    client_nack(&client, 0, push.delivery, 1, 0, "it \"hurts\"\n");
    client_query(&client, 4, 3, "work", 0, 0);
    HK_CHECK_BYTES("{\"dead\":[{\"id\":1,\"reason\":1,\"words\":\"it \\\"hurts\\\"\\n\",\"failures\":1,\"crashes\":0,"
                   "\"age_ms\":0,\"bytes\":1,\"payload\":\"YQ==\"}]}",
                   expect_report(&client));
    client_query(&client, 5, 4, "work", 0, 0);
    HK_CHECK_BYTES("{\"count\":1}", expect_report(&client));
    push = expect_push(&client, "a");
    HK_CHECK_EQUAL_INT(1, push.attempt);
    HK_CHECK_EQUAL_INT(0, push.flags);
    client_nack(&client, 0, push.delivery, 2, 0, "");
    client_query(&client, 6, 5, "", push.message, 0);
    HK_CHECK_BYTES("{\"count\":1}", expect_report(&client));
    client_query(&client, 6, 5, "", push.message, 0);
    expect_error(&client, HK_CODE_NO_SUCH_MESSAGE, 6);
    hk_broker_stats_t stats = world_stats(&world);
    HK_CHECK_EQUAL_UINT(0, stats.messages);
    world_close(&world);
}

HK_TEST(touching_begins_a_lease_anew_with_its_own_length_or_another)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe_with(&client, 1, "work", 5, 0, 1000, 0);
    for (int i = 0; i < 3; i++) {
        client_send(&client, 0, "work", "x", &PLAIN);
    }
    push_t push = expect_push(&client, "x");
    expect_push(&client, "x");
    expect_push(&client, "x");
    world_pass(&world, 600 * MS);
    client_touch(&client, 7, push.delivery, push.delivery, 0);
    HK_CHECK_EQUAL_UINT(1000, expect_ack(&client, HK_FRAME_TOUCH, 7));
    client_touch(&client, 8, push.delivery + 1, push.delivery + 1, 5000);
    HK_CHECK_EQUAL_UINT(5000, expect_ack(&client, HK_FRAME_TOUCH, 8));
    client_credit(&client, 1, 0, 0);
    world_pass(&world, 400 * MS);
    expect_nothing(&client);
    client_touch(&client, 9, push.delivery + 2, push.delivery + 2, 0);
    expect_error(&client, HK_CODE_STALE, 9);
    world_pass(&world, 600 * MS);
    expect_nothing(&client);
    client_free(&client, 10, push.delivery, push.delivery, 0);
    expect_error(&client, HK_CODE_STALE, 10);
    client_touch(&client, 11, 0, UINT64_MAX, 0);
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(1, hk_frame_u32(frame.bytes.at + 20));
    world_pass(&world, 1001 * MS);
    expect_nothing(&client);
    client_free(&client, 12, push.delivery + 1, push.delivery + 1, 0);
    expect_error(&client, HK_CODE_STALE, 12);
    world_close(&world);
}

HK_TEST(a_range_frees_what_is_out_of_it_and_passes_over_the_rest)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe(&client, 1, "work", 2000);
    uint64_t first = 0;
    for (int i = 0; i < 1000; i++) {
        client_send(&client, 0, "work", "x", &PLAIN);
        push_t push = expect_push(&client, "x");
        first = first == 0 ? push.delivery : first;
        if (i % 10 != 0) {
            client_free(&client, 0, push.delivery, push.delivery, 0);
        }
    }
    client_free(&client, 5, first + 20, first + 100, 0);
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(9, hk_frame_u32(frame.bytes.at + 20));
    client_free(&client, 6, 0, UINT64_MAX, 0);
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(91, hk_frame_u32(frame.bytes.at + 20));
    client_free(&client, 7, 0, UINT64_MAX, 0);
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(0, hk_frame_u32(frame.bytes.at + 20));
    client_free(&client, 8, 9, 3, 0);
    expect_error(&client, HK_CODE_INVALID, 8);
    world_close(&world);
}
