/* Greetings, identities and their numbers, who may, and the end (docs/protocol.md, sections 3, 6, 10 and 11). */
#include "hk_broker_fixture.h"

HK_TEST(the_newer_connection_of_an_identity_fences_the_older_one)
{
    world_t world;
    client_t first, second, late;
    world_open(&world, NULL);
    client_open(&world, &first, "alice", 5);
    client_subscribe_with(&first, 1, "", 3, 0, 0, 1);
    client_send(&first, 0, "alice", "mine", &(sending_t){.kind = 1});
    expect_push(&first, "mine");
    client_connect(&world, &late);
    HK_CHECK_STATUS(HK_CLOSED, client_hello(&late, &(greeting_t){.identity = "alice", .epoch = 5}));
    expect_error(&late, HK_CODE_FENCED, 1);
    HK_CHECK(hk_session_over(late.session));
    client_open(&world, &second, "alice", 6);
    expect_error(&first, HK_CODE_FENCED, 0);
    HK_CHECK(hk_session_over(first.session));
    client_subscribe_with(&second, 1, "", 3, 0, 0, 1);
    HK_CHECK_EQUAL_INT(1, expect_push(&second, "mine").crashes);
    client_gone(&first);
    client_subscribe_with(&second, 2, "bob", 3, 0, 0, 1);
    expect_error(&second, HK_CODE_FORBIDDEN, 0);
    world_close(&world);
}

HK_TEST(numbers_are_taken_once_and_not_too_far_ahead)
{
    world_t world;
    client_t client;
    world_open(&world, NULL);
    client_open(&world, &client, "alice", 1);
    HK_CHECK_EQUAL_UINT(0, client.low);
    client_send(&client, 1, "q", "x", &(sending_t){.sequence = 1});
    client_send(&client, 2, "q", "x", &(sending_t){.sequence = 3});
    client_send(&client, 4, "q", "x", &(sending_t){.sequence = 3});
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(2, hk_frame_u64(frame.bytes.at + 32));
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(4, frame.id);
    HK_CHECK_EQUAL_INT(HK_ACK_DUPLICATE, frame.flags);
    HK_CHECK_EQUAL_UINT(0, hk_frame_u64(frame.bytes.at + 24));
    client_send(&client, 5, "q", "x", &(sending_t){.sequence = 4098});
    expect_error(&client, HK_CODE_SEQUENCE, 5);
    client_send(&client, 6, "q", "x", &(sending_t){.sequence = 4097});
    expect_ack(&client, HK_FRAME_SEND, 6);
    client_send(&client, 7, "q", "x", &(sending_t){.sequence = 2});
    expect_ack(&client, HK_FRAME_SEND, 7);
    client_gone(&client);
    client_open(&world, &client, "alice", 2);
    HK_CHECK_EQUAL_UINT(3, client.low);
    world_close(&world);
}

HK_TEST(heartbeats_are_sent_by_who_has_nothing_to_say_and_silence_ends_a_connection)
{
    world_t world;
    client_t client;
    world_open(&world, NULL);
    client_connect(&world, &client);
    HK_CHECK_OK(client_hello(&client, &(greeting_t){.heartbeat = 500}));
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(1000, hk_frame_u32(frame.bytes.at + 44));
    world_pass(&world, SECOND);
    expect(&client, HK_FRAME_PING);
    client_plain(&client, HK_FRAME_PING, 0, 4);
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(16, frame.bytes.length);
    HK_CHECK_EQUAL_UINT(4, frame.id);
    world_pass(&world, 2 * SECOND - 1);
    expect(&client, HK_FRAME_PING);
    world_pass(&world, 1);
    expect_error(&client, HK_CODE_IDLE, 0);
    HK_CHECK(hk_session_over(client.session));
    world_close(&world);
}

HK_TEST(whoever_is_asked_about_may_do_what_was_permitted_until_its_time_has_come)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.secret = {1, 2}});
    client_connect(&world, &client);
    HK_CHECK_OK(
        client_hello(&client, &(greeting_t){.identity = "alice", .credentials = "secret", .authentication = 1}));
    hk_hello_t hello;
    HK_CHECK(hk_broker_asking(world.broker, &hello));
    HK_CHECK_BYTES("alice", hello.identity);
    HK_CHECK_BYTES("secret", hello.credentials);
    HK_CHECK_BYTES("test", hello.agent);
    HK_CHECK_BYTES("127.0.0.1:1", hello.address);
    uint64_t serial = hello.serial;
    HK_CHECK(!hk_broker_asking(world.broker, &hello));
    hk_permission_t permissions[] = {{HK_BYTES("mail.*"), 1}, {HK_BYTES("jobs"), 2}, {HK_BYTES("@bob"), 1}};
    HK_CHECK_STATUS(HK_NOT_FOUND,
                    hk_broker_permit(world.broker, 99, permissions, 3, UINT64_MAX, world.now, world.wall));
    HK_CHECK_OK(hk_broker_permit(world.broker, serial, permissions, 3, world.wall + 5000, world.now, world.wall));
    expect(&client, HK_FRAME_ACK);
    client_send(&client, 1, "mail.out", "x", &PLAIN);
    expect_ack(&client, HK_FRAME_SEND, 1);
    client_send(&client, 2, "mail", "x", &PLAIN);
    expect_error(&client, HK_CODE_FORBIDDEN, 2);
    client_send(&client, 3, "bob", "x", &(sending_t){.kind = 1});
    expect_ack(&client, HK_FRAME_SEND, 3);
    client_send(&client, 4, "alice", "x", &(sending_t){.kind = 1});
    expect_error(&client, HK_CODE_FORBIDDEN, 4);
    client_subscribe(&client, 1, "mail.out", 1);
    expect_error(&client, HK_CODE_FORBIDDEN, 0);
    client_subscribe(&client, 1, "jobs", 1);
    client_subscribe_with(&client, 2, "alice", 1, 0, 0, 1);
    client_query(&client, 5, 7, "", 0, 0);
    expect_error(&client, HK_CODE_FORBIDDEN, 5);
    world_pass(&world, 5 * SECOND);
    expect_error(&client, HK_CODE_UNAUTHORIZED, 0);
    world_close(&world);
}

HK_TEST(whoever_is_refused_is_told_and_ends)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.secret = {1, 2}});
    client_connect(&world, &client);
    HK_CHECK_OK(client_hello(&client, &(greeting_t){0}));
    hk_hello_t hello;
    HK_CHECK(hk_broker_asking(world.broker, &hello));
    HK_CHECK_OK(hk_broker_refuse(world.broker, hello.serial, HK_BYTES("go away")));
    hk_frame_t frame = expect_error(&client, HK_CODE_UNAUTHORIZED, 1);
    HK_CHECK_BYTES("go away", hk_bytes(frame.bytes.at + 32, frame.bytes.length - 32));
    HK_CHECK(hk_session_over(client.session));
    HK_CHECK_STATUS(HK_CLOSED, client_bytes(&client, HK_BYTES("more")));
    world_close(&world);
}

HK_TEST(while_the_broker_drains_it_takes_and_delivers_nothing_more)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_subscribe(&client, 1, "work", 1);
    client_send(&client, 0, "work", "a", &PLAIN);
    client_send(&client, 0, "work", "b", &PLAIN);
    push_t push = expect_push(&client, "a");
    hk_broker_drain(world.broker, 700);
    HK_CHECK(!hk_broker_drained(world.broker));
    hk_frame_t frame = expect(&client, HK_FRAME_DRAIN);
    HK_CHECK_EQUAL_UINT(700, hk_frame_u32(frame.bytes.at + 16));
    client_send(&client, 4, "work", "c", &PLAIN);
    frame = expect_error(&client, HK_CODE_DRAINING, 4);
    HK_CHECK_EQUAL_UINT(700, hk_frame_u32(frame.bytes.at + 20));
    client_free(&client, 0, push.delivery, push.delivery, 0);
    expect_nothing(&client);
    HK_CHECK(hk_broker_drained(world.broker));
    world_close(&world);
}
