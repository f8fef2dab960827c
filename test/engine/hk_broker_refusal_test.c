/* What is not taken, alone, in a batch, or with its connection (docs/protocol.md, sections 2, 4, 5 and 6). */
#include "hk_broker_fixture.h"

HK_TEST(a_value_that_is_not_allowed_is_refused_alone)
{
    static const struct {
        const char *queue;
        sending_t sending;
        hk_code_t code;
    } cases[] = {
        {"", {0}, HK_CODE_INVALID},
        {"a\nb", {0}, HK_CODE_INVALID},
        {"@a", {0}, HK_CODE_INVALID},
        {"\xFF", {0}, HK_CODE_INVALID},
        {"q", {.priority = 10}, HK_CODE_INVALID},
        {"q", {.level = 3}, HK_CODE_INVALID},
        {"q", {.level = 1}, HK_CODE_LEVEL},
        {"q", {.kind = 2}, HK_CODE_INVALID},
        {"q", {.sequence = 1}, HK_CODE_INVALID},
        {"q", {.properties = "\0\0\0", .property_bytes = 3}, HK_CODE_INVALID},
        {"q", {.properties = "\1x\5\0abc", .property_bytes = 7}, HK_CODE_INVALID},
    };
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hk_test_note("case %zu", i);
        client_send(&client, 10 + i, cases[i].queue, "x", &cases[i].sending);
        hk_frame_t frame = expect_error(&client, cases[i].code, 10 + i);
        HK_CHECK_EQUAL_INT(0, frame.bytes.at[18]);
    }
    client_send(&client, 1, "q", "x", &(sending_t){.properties = "\1x\3\0abc", .property_bytes = 7});
    expect_ack(&client, HK_FRAME_SEND, 1);
    world_close(&world);
}

HK_TEST(limits_refuse_and_say_when_to_try_again)
{
    world_t world;
    client_t client;
    hk_broker_options_t options = {
        .open = true, .max_queue_messages = 2, .max_queues = 2, .max_subscriptions = 1, .max_sessions = 1};
    world_open(&world, &options);
    client_open(&world, &client, NULL, 0);
    HK_CHECK(hk_broker_connect(world.broker, HK_BYTES(""), NULL, world.now) == NULL);
    client_send(&client, 0, "a", "x", &PLAIN);
    client_send(&client, 0, "a", "x", &PLAIN);
    client_send(&client, 3, "a", "x", &PLAIN);
    hk_frame_t frame = expect_error(&client, HK_CODE_QUEUE_FULL, 3);
    HK_CHECK_EQUAL_INT(1, frame.bytes.at[19]);
    HK_CHECK_EQUAL_UINT(1000, hk_frame_u32(frame.bytes.at + 20));
    client_send(&client, 0, "b", "x", &PLAIN);
    client_send(&client, 4, "c", "x", &PLAIN);
    expect_error(&client, HK_CODE_LIMIT, 4);
    client_subscribe(&client, 1, "b", 0);
    client_subscribe(&client, 2, "a", 0);
    expect_error(&client, HK_CODE_LIMIT, 0);
    client_subscribe(&client, 1, "b", 0);
    expect_error(&client, HK_CODE_INVALID, 0);
    client_plain(&client, HK_FRAME_UNSUBSCRIBE, 9, 5);
    expect_error(&client, HK_CODE_NO_SUCH_SUBSCRIPTION, 5);
    world_close(&world);
}

HK_TEST(what_is_no_frame_ends_the_connection)
{
    static const struct {
        const char *bytes;
        size_t length;
        hk_code_t code;
    } cases[] = {
        {"\x0F\0\0\0\2\0\0\0\7\0\0\0\0\0\0\0", 16, HK_CODE_MALFORMED},
        {"\x10\0\0\0\2\0\0\0\7\0\0\0\0\0\0\0", 16, HK_CODE_MALFORMED},
        {"\x10\0\0\0\x15\0\0\0\7\0\0\0\0\0\0\0", 16, HK_CODE_MALFORMED},
        {"\x10\0\0\0\x0A\1\0\0\7\0\0\0\0\0\0\0", 16, HK_CODE_MALFORMED},
        {"\x10\0\0\0\x0A\0\1\0\7\0\0\0\0\0\0\0", 16, HK_CODE_MALFORMED},
        {"\x10\0\0\0\x22\0\0\0\7\0\0\0\0\0\0\0", 16, HK_CODE_UNEXPECTED},
        {"\xFF\xFF\xFF\xFF\2\0\0\0\7\0\0\0\0\0\0\0", 16, HK_CODE_TOO_BIG},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hk_test_note("case %zu", i);
        world_t world;
        client_t client;
        world_open_with(&world, &client);
        HK_CHECK_STATUS(HK_CLOSED, client_bytes(&client, hk_bytes(cases[i].bytes, cases[i].length)));
        hk_frame_t frame = expect_error(&client, cases[i].code, i == 0 ? 0 : 7);
        HK_CHECK_EQUAL_INT(2, frame.bytes.at[18]);
        HK_CHECK(hk_session_over(client.session));
        world_close(&world);
    }
}

HK_TEST(frames_may_come_cut_anywhere)
{
    for (size_t cut = 1; cut < 60; cut++) {
        world_t world;
        client_t client;
        world_open_with(&world, &client);
        client_subscribe(&client, 1, "q", 9);
        making_t making;
        make_send(&making, 0, "q", HK_BYTES("hello"), &PLAIN);
        hk_bytes_t bytes = made(&making);
        char twice[256];
        memcpy(twice, bytes.at, bytes.length);
        memcpy(twice + bytes.length, bytes.at, bytes.length);
        for (size_t at = 0; at < 2 * bytes.length; at += cut) {
            size_t some = 2 * bytes.length - at < cut ? 2 * bytes.length - at : cut;
            HK_CHECK_OK(client_bytes(&client, hk_bytes(twice + at, some)));
        }
        expect_push(&client, "hello");
        expect_push(&client, "hello");
        expect_nothing(&client);
        world_close(&world);
    }
}

static void make_batch(making_t *making, uint64_t id, uint64_t sequence, uint8_t level, uint32_t count)
{
    make_frame(making, HK_FRAME_SEND_BATCH, 0, 0, id);
    make_number(making, 8, sequence);
    make_number(making, 8, 0);
    make_number(making, 1, 4);
    make_number(making, 1, level);
    make_bytes(making, HK_BYTES("\1\0\0\0\0\0q"));
    make_number(making, 4, count);
    for (uint32_t i = 0; i < count; i++) {
        make_number(making, 4, 1);
        make_number(making, 2, 0);
        make_bytes(making, HK_BYTES("x"));
    }
}

HK_TEST(a_batch_takes_what_can_be_taken_and_says_what_not)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.open = true, .max_queue_messages = 2});
    client_open(&world, &client, "alice", 1);
    making_t making;
    make_frame(&making, HK_FRAME_SEND_BATCH, 0, 0, 5);
    make_number(&making, 8, 1);
    make_number(&making, 8, 0);
    make_bytes(&making, HK_BYTES("\4\xFF\1\0\0\0\0\0q"));
    make_number(&making, 4, 4);
    for (int i = 0; i < 4; i++) {
        make_number(&making, 4, 3);
        make_number(&making, 2, i == 1 ? 3 : 0);
        make_bytes(&making, HK_BYTES("abc"));
    }
    HK_CHECK_OK(client_say(&client, &making));
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(32 + 24, frame.bytes.length);
    HK_CHECK_EQUAL_INT(2, hk_frame_u16(frame.bytes.at + 18));
    HK_CHECK_EQUAL_INT(2, hk_frame_u32(frame.bytes.at + 20));
    HK_CHECK_EQUAL_INT(1, hk_frame_u64(frame.bytes.at + 24));
    HK_CHECK_EQUAL_INT(1, hk_frame_u32(frame.bytes.at + 32));
    HK_CHECK_EQUAL_INT(HK_CODE_INVALID, hk_frame_u16(frame.bytes.at + 36));
    HK_CHECK_EQUAL_INT(3, hk_frame_u32(frame.bytes.at + 44));
    HK_CHECK_EQUAL_INT(HK_CODE_QUEUE_FULL, hk_frame_u16(frame.bytes.at + 48));
    HK_CHECK_OK(client_say(&client, &making));
    frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_ACK_DUPLICATE, frame.flags);
    HK_CHECK_EQUAL_INT(2, hk_frame_u32(frame.bytes.at + 20));
    HK_CHECK_EQUAL_INT(0, hk_frame_u64(frame.bytes.at + 24));
    client_subscribe(&client, 1, "q", 9);
    HK_CHECK_EQUAL_UINT(1, expect_push(&client, "abc").message);
    HK_CHECK_EQUAL_UINT(2, expect_push(&client, "abc").message);
    expect_nothing(&client);
    world_close(&world);
}

HK_TEST(the_numbers_of_a_batch_end_and_do_not_begin_anew)
{
    world_t world;
    client_t client;
    world_open(&world, NULL);
    client_open(&world, &client, "alice", 1);
    making_t making;
    make_batch(&making, 5, UINT64_MAX - 1, 0, 3);
    HK_CHECK_OK(client_say(&client, &making));
    hk_frame_t frame = expect(&client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(3, hk_frame_u16(frame.bytes.at + 18));
    HK_CHECK_EQUAL_INT(0, hk_frame_u32(frame.bytes.at + 20));
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK_EQUAL_INT(HK_CODE_SEQUENCE, hk_frame_u16(frame.bytes.at + 32 + 12 * i + 4));
    }
    world_close(&world);
}
