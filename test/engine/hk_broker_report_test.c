/* What queries are answered (docs/protocol.md, section 9). */
#include "hk_broker_fixture.h"

HK_TEST(reports_say_what_there_is)
{
    world_t world;
    client_t client;
    world_open(&world, NULL);
    client_open(&world, &client, "me\"", 1);
    client_send(&client, 0, "a\"b", "x", &PLAIN);
    client_send(&client, 0, "late", "x", &(sending_t){.delay = 500, .time_to_live = 900});
    client_query(&client, 1, 1, "a", 0, 0);
    HK_CHECK_BYTES("{\"queues\":[{\"name\":\"a\\\"b\",\"kind\":0,\"ready\":1,\"delayed\":0,\"out\":0,\"dead\":0,"
                   "\"bytes\":1,\"oldest_ms\":0,\"receivers\":0,\"sent\":1,\"freed\":0,\"redelivered\":0,\"failed\":0,"
                   "\"crashed\":0,\"expired\":0}]}",
                   expect_report(&client));
    client_query(&client, 2, 2, "", 2, 0);
    HK_CHECK_BYTES("{\"message\":{\"id\":2,\"queue\":\"late\",\"kind\":0,\"state\":\"delayed\",\"age_ms\":0,"
                   "\"priority\":0,\"level\":0,\"failures\":0,\"crashes\":0,\"returns\":0,\"bytes\":1,"
                   "\"due_in_ms\":500,\"expires_in_ms\":900},\"because\":\"its time has not come\"}",
                   expect_report(&client));
    client_query(&client, 3, 2, "a\"b", 0, 0);
    hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "nobody receives", 15) != NULL);
    client_subscribe(&client, 1, "a\"b", 1);
    expect_push(&client, "x");
    client_query(&client, 3, 2, "", 1, 0);
    frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "\"holder\":{\"identity\":\"me\\\"\"", 27) != NULL);
    client_query(&client, 4, 7, "", 0, 0);
    HK_CHECK_BYTES("{\"sessions\":[{\"session\":1,\"identity\":\"me\\\"\",\"agent\":\"test\","
                   "\"address\":\"127.0.0.1:1\",\"out\":1,\"unanswered\":0,\"subscriptions\":1}]}",
                   expect_report(&client));
    client_query(&client, 5, 6, "", 0, 0);
    HK_CHECK_BYTES("{\"segments\":[]}", expect_report(&client));
    client_query(&client, 6, 8, "late", 0, 0);
    HK_CHECK_BYTES("{\"count\":1}", expect_report(&client));
    client_query(&client, 7, 8, "nothing", 0, 0);
    expect_error(&client, HK_CODE_NO_SUCH_QUEUE, 7);
    client_query(&client, 8, 9, "", 0, 0);
    expect_error(&client, HK_CODE_INVALID, 8);
    world_close(&world);
}

HK_TEST(a_report_is_no_larger_than_the_client_takes)
{
    world_t world;
    client_t client;
    world_open(&world, NULL);
    client_connect(&world, &client);
    HK_CHECK_OK(client_hello(&client, &(greeting_t){.max_frame = 4096}));
    expect(&client, HK_FRAME_ACK);
    char name[210] = {0};
    memset(name, '\x7E', 190);
    for (int i = 0; i < 50; i++) {
        snprintf(name + 190, 16, "%d", i);
        client_send(&client, 0, name, "x", &PLAIN);
    }
    client_query(&client, 1, 1, "", 0, 10000);
    hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(frame.bytes.length <= 4096 && frame.bytes.length > 3000);
    HK_CHECK_BYTES("}]}", hk_bytes(frame.bytes.at + frame.bytes.length - 3, 3));
    world_close(&world);
}

HK_TEST(a_queue_in_which_only_delayed_messages_wait_is_explained_by_the_earliest)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    client_send(&client, 0, "other", "x", &(sending_t){.delay = 100});
    client_send(&client, 0, "late", "x", &(sending_t){.delay = 900});
    client_send(&client, 0, "late", "x", &(sending_t){.delay = 500});
    client_send(&client, 0, "late", "x", &(sending_t){.delay = 500});
    client_query(&client, 1, 2, "late", 0, 0);
    hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "{\"id\":3,", 8) != NULL);
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "its time has not come", 21) != NULL);
    client_send(&client, 0, "late", "x", &PLAIN);
    client_query(&client, 2, 2, "late", 0, 0);
    frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "{\"id\":5,", 8) != NULL);
    world_close(&world);
}

enum { MANY_QUEUES = 20000 };

static void send_to_many(client_t *client)
{
    char name[16];
    for (uint32_t i = 0; i < MANY_QUEUES; i++) {
        snprintf(name, sizeof(name), "q%05u", i * 7919 % MANY_QUEUES);
        client_send(client, 0, name, "x", &PLAIN);
    }
}

static size_t count_of(hk_bytes_t bytes, const char *words)
{
    size_t count = 0;
    for (const char *at = bytes.at; (at = memmem(at, (size_t)(bytes.at + bytes.length - at), words, strlen(words)));) {
        at++;
        count++;
    }
    return count;
}

HK_TEST(many_queues_are_told_by_name_and_no_more_than_ten_thousand)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.open = true, .max_frame = 16 << 20});
    client_connect(&world, &client);
    HK_CHECK_OK(client_hello(&client, &(greeting_t){.max_frame = 16 << 20}));
    expect(&client, HK_FRAME_ACK);
    send_to_many(&client);
    client_query(&client, 1, 1, "q", 0, 3);
    hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
    const char *at = frame.bytes.at;
    for (int i = 0; i < 3; i++) {
        char name[24];
        snprintf(name, sizeof(name), "\"name\":\"q%05d\"", i);
        at = memmem(at, (size_t)(frame.bytes.at + frame.bytes.length - at), name, strlen(name));
        HK_CHECK(at != NULL);
    }
    HK_CHECK_EQUAL_UINT(3, count_of(frame.bytes, "\"name\""));
    client_query(&client, 2, 1, "q1999", 0, 100);
    frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK_EQUAL_UINT(10, count_of(frame.bytes, "\"name\""));
    client_query(&client, 3, 1, "", 0, UINT32_MAX);
    frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK_EQUAL_UINT(10000, count_of(frame.bytes, "\"name\""));
    HK_CHECK(memmem(frame.bytes.at, frame.bytes.length, "\"name\":\"q09999\"", 15) != NULL);
    world_close(&world);
}

HK_TEST(a_report_is_no_larger_than_the_brokers_own_frames)
{
    world_t world;
    client_t client;
    world_open(&world, &(hk_broker_options_t){.open = true, .max_frame = 8192});
    client_connect(&world, &client);
    HK_CHECK_OK(client_hello(&client, &(greeting_t){.max_frame = UINT32_MAX}));
    expect(&client, HK_FRAME_ACK);
    send_to_many(&client);
    client_query(&client, 1, 1, "", 0, UINT32_MAX);
    hk_frame_t frame = expect(&client, HK_FRAME_REPORT);
    HK_CHECK(frame.bytes.length <= 8192 && frame.bytes.length > 7000);
    world_close(&world);
}

HK_TEST(who_asks_for_reports_and_does_not_read_gets_no_more_made)
{
    world_t world;
    client_t client;
    world_open_with(&world, &client);
    send_to_many(&client);
    world_turn(&world);
    client.stuck = true;
    making_t making;
    make_frame(&making, HK_FRAME_QUERY, 0, 0, 7);
    make_bytes(&making, HK_BYTES("\1\0\0\0\xFF\xFF\0\0\0\0\0\0\0\0\0\0"));
    char many[32 * 40];
    hk_bytes_t one = made(&making);
    for (size_t i = 0; i < 40; i++) {
        memcpy(many + 32 * i, one.at, 32);
    }
    HK_CHECK_OK(client_bytes(&client, hk_bytes(many, sizeof(many))));
    HK_CHECK(hk_session_full(client.session));
    hk_broker_stats_t stats = world_stats(&world);
    HK_CHECK(stats.refused[HK_CODE_OVERLOADED] > 25);
    client.stuck = false;
    hk_session_writable(client.session);
    size_t reports = 0;
    hk_frame_t frame;
    for (world_turn(&world); client_next(&client, &frame);) {
        reports += frame.type == HK_FRAME_REPORT ? 1 : 0;
    }
    HK_CHECK_EQUAL_UINT(40 - stats.refused[HK_CODE_OVERLOADED], reports);
    HK_CHECK(!hk_session_full(client.session));
    client_query(&client, 8, 1, "", 0, 1);
    expect(&client, HK_FRAME_REPORT);
    world_close(&world);
}
