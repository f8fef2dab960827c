#include "hk_loop_fixture.h"

/* --- memory ------------------------------------------------------------------------------------------------------- */

static int begin_body(rig_t *rig, size_t bytes)
{
    char text[1200];
    int client = rig_client(rig);
    int head = sprintf(text, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    memset(text + head, 'x', bytes);
    rig_say_bytes(rig, client, hk_bytes(text, (size_t)head + bytes));
    return client;
}

#define NO_ROOM                                                                                                        \
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: 113\r\n"            \
    "cache-control: no-store\r\nx-content-type-options: nosniff\r\nretry-after: 1\r\nconnection: close\r\n\r\n"        \
    "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"                                      \
    "\"detail\":\"the hub has no room for this request\"}"

HK_TEST(requests_that_are_not_whole_hold_so_much_and_no_more)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_held_bytes = 2200;
    rig_begin(&rig, &options);
    int first = begin_body(&rig, 900), second = begin_body(&rig, 900), third = begin_body(&rig, 900);
    bool ended;
    /* Who has not got on for the longest time makes room. */
    HK_CHECK_BYTES(NO_ROOM, rig_receive(&rig, first, &ended));
    HK_CHECK(ended);
    HK_CHECK_BYTES("", rig_heard(&rig, second));
    HK_CHECK_BYTES("", rig_heard(&rig, third));
    HK_CHECK_EQUAL_UINT(1, rig_stats(&rig).refused_asks);
    /* What is whole at once needs no room. */
    int small = rig_client(&rig);
    rig_say(&rig, small, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, small));
    /* What is held is given back: when a request is whole, and when its client goes. */
    char rest[100];
    memset(rest, 'x', sizeof(rest));
    rig_say_bytes(&rig, second, hk_bytes(rest, sizeof(rest)));
    HK_CHECK(hk_bytes_start_with(rig_heard(&rig, second), HK_BYTES(ANSWER(1004, "PUT xxx"))));
    rig_close(&rig, third);
    rig_run(&rig);
    HK_CHECK_EQUAL_UINT(0, rig.loop->held_bytes);
    HK_CHECK_BYTES("", rig_heard(&rig, begin_body(&rig, 900)));
    HK_CHECK_BYTES("", rig_heard(&rig, begin_body(&rig, 900)));
    rig_end(&rig);
}

HK_TEST(answers_that_are_about_to_leave_are_not_lost_when_others_make_room)
{
    rig_t rig;
    char text[2000];
    hk_loop_options_t options = rig_options();
    options.max_held_bytes = 1500;
    rig_begin(&rig, &options);
    int known = rig_client(&rig), stalled = begin_body(&rig, 900);
    static const char update[] =
        "POST " HUB " HTTP/1.1\r\nHost: a\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1";
    rig_say(&rig, known, update);
    size_t answer = rig_heard(&rig, known).length;
    HK_CHECK(answer > 0);
    int length = sprintf(text, "%s%sPUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n", update, update);
    memset(text + length, 'x', 900);
    rig_say_bytes(&rig, known, hk_bytes(text, (size_t)length + 900));
    HK_CHECK_EQUAL_UINT(2 * answer, rig_heard(&rig, known).length);
    HK_CHECK_BYTES(NO_ROOM, rig_heard(&rig, stalled));
    HK_CHECK_EQUAL_INT(1, rig.asked);
    rig_end(&rig);
}

HK_TEST(who_fills_the_room_while_it_waits_for_an_answer_is_closed_without_another_one)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_held_bytes = 1200;
    rig_begin(&rig, &options);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    char ahead[1500];
    memset(ahead, 'x', sizeof(ahead));
    rig_say_bytes(&rig, client, hk_bytes(ahead, sizeof(ahead)));
    bool ended;
    HK_CHECK_BYTES("", rig_receive(&rig, client, &ended));
    HK_CHECK(ended);
    rig_release(&rig);
    rig_run(&rig);
    rig_end(&rig);
}

HK_TEST(requests_that_wait_for_ruby_hold_so_much_and_no_more)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_held_bytes = 4000;
    rig_begin(&rig, &options);
    static const char request[] = "PUT /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n\r\n%0500d";
    char text[1000];
    size_t length = (size_t)sprintf(text, request, 0);
    int refused = 0;
    for (int i = 0; i < 10; i++) {
        int client = rig_client(&rig);
        rig_say_bytes(&rig, client, hk_bytes(text, length));
        refused += rig_heard(&rig, client).length > 0;
    }
    HK_CHECK(refused > 0 && rig.held_count > 1);
    HK_CHECK_EQUAL_INT(10, refused + (int)rig.held_count);
    HK_CHECK_EQUAL_UINT((size_t)refused, rig_stats(&rig).refused_asks);
    size_t held = rig.held_count;
    rig_release(&rig);
    rig_run(&rig);
    HK_CHECK_EQUAL_UINT(0, rig.loop->ask_bytes);
    for (size_t i = 0; i < held; i++) {
        int client = rig_client(&rig);
        rig_say_bytes(&rig, client, hk_bytes(text, length));
        HK_CHECK_BYTES("", rig_heard(&rig, client));
    }
    rig_release(&rig);
    rig_run(&rig);
    rig_end(&rig);
}

/* --- time --------------------------------------------------------------------------------------------------------- */

HK_TEST(a_body_that_comes_too_slowly_is_given_up_however_steadily_it_comes)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_body_bytes = 100000;
    rig_begin(&rig, &options);
    int slow = rig_client(&rig), steady = rig_client(&rig);
    static const char head[] = "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 20000\r\n\r\n";
    char part[600];
    memset(part, 'x', sizeof(part));
    rig_say(&rig, slow, head);
    rig_say(&rig, steady, head);
    for (int second = 1; second <= 12; second++) {
        rig_pass(&rig, HK_SECOND);
        HK_CHECK_BYTES("", rig_heard(&rig, steady));
        rig_say_bytes(&rig, steady, hk_bytes(part, sizeof(part)));
        if (second < 10) {
            HK_CHECK_BYTES("", rig_heard(&rig, slow));
            rig_say_bytes(&rig, slow, hk_bytes(part, 100));
        }
    }
    bool ended;
    HK_CHECK(hk_bytes_start_with(rig_receive(&rig, slow, &ended), HK_BYTES("HTTP/1.1 408 ")));
    HK_CHECK(ended);
    HK_CHECK(!rig_is_closed(&rig, steady));
    rig_end(&rig);
}

HK_TEST(a_body_may_pause_as_long_as_its_pace_is_kept)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_body_bytes = 100000;
    rig_begin(&rig, &options);
    int client = rig_client(&rig);
    char part[15000];
    memset(part, 'x', sizeof(part));
    rig_say(&rig, client, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 30000\r\n\r\n");
    rig_say_bytes(&rig, client, hk_bytes(part, sizeof(part)));
    rig_pass(&rig, 9 * HK_SECOND);
    rig_say_bytes(&rig, client, hk_bytes(part, 1));
    rig_pass(&rig, 9 * HK_SECOND);
    rig_say_bytes(&rig, client, hk_bytes(part, sizeof(part) - 1));
    HK_CHECK(hk_bytes_start_with(rig_heard(&rig, client), HK_BYTES("HTTP/1.1 200 X\r\n")));
    rig_end(&rig);
}

/* --- connections -------------------------------------------------------------------------------------------------- */

HK_TEST(a_connection_that_has_had_nothing_to_say_makes_room_for_another)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_connections = 2;
    rig_begin(&rig, &options);
    int first = rig_client(&rig), second = rig_client(&rig);
    rig_say(&rig, first, "GET /echo HTTP/1.1" HELLO);
    rig_pass(&rig, HK_SECOND / 2);
    rig_say(&rig, second, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, first));
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, second));
    int early = rig_client(&rig);
    HK_CHECK(hk_bytes_start_with(rig_heard(&rig, early), HK_BYTES("HTTP/1.1 429 ")));
    rig_pass(&rig, HK_SECOND / 2);
    int third = rig_client(&rig);
    rig_say(&rig, third, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, third));
    HK_CHECK(rig_is_closed(&rig, first));
    HK_CHECK(!rig_is_closed(&rig, second));
    HK_CHECK_EQUAL_UINT(1, rig_stats(&rig).refused_connections);
    rig_end(&rig);
}

HK_TEST(a_body_that_does_not_get_on_makes_room_for_another)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_connections = 2;
    rig_begin(&rig, &options);
    int stalled = begin_body(&rig, 100), growing = begin_body(&rig, 100);
    rig_pass(&rig, HK_SECOND / 2);
    char more[600];
    memset(more, 'x', sizeof(more));
    rig_say_bytes(&rig, growing, hk_bytes(more, sizeof(more)));
    int early = rig_client(&rig);
    HK_CHECK(hk_bytes_start_with(rig_heard(&rig, early), HK_BYTES("HTTP/1.1 429 ")));
    rig_pass(&rig, HK_SECOND / 2);
    int third = rig_client(&rig);
    rig_say(&rig, third, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, third));
    HK_CHECK(rig_is_closed(&rig, stalled));
    HK_CHECK(!rig_is_closed(&rig, growing));
    rig_end(&rig);
}

HK_TEST(an_address_has_so_many_connections_that_are_no_streams)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_of_address = 2;
    rig_begin(&rig, &options);
    rig_listen(&rig);
    int stream = rig_connect(&rig), first = rig_connect(&rig);
    rig_say(&rig, stream, "GET " HUB "?match=/a HTTP/1.1" HELLO);
    HK_CHECK_BYTES(OPENING, rig_await(&rig, stream, strlen(OPENING)));
    rig_say(&rig, first, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_await(&rig, first, strlen(ANSWER(4, "GET "))));
    int second = rig_connect(&rig);
    RIG_UNTIL(&rig, rig_stats(&rig).connections == 3);
    int third = rig_connect(&rig);
    HK_CHECK(hk_bytes_start_with(rig_await(&rig, third, 300), HK_BYTES("HTTP/1.1 429 ")));
    HK_CHECK_EQUAL_UINT(1, rig_stats(&rig).refused_of_address);
    HK_CHECK_EQUAL_UINT(0, rig_stats(&rig).refused_connections);
    /* On a Unix socket nobody has an address. */
    int other = rig_client(&rig);
    rig_say(&rig, other, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, other));
    rig_close(&rig, second);
    rig_close(&rig, third);
    RIG_UNTIL(&rig, rig_stats(&rig).connections == 3);
    int fourth = rig_connect(&rig);
    rig_say(&rig, fourth, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_await(&rig, fourth, strlen(ANSWER(4, "GET "))));
    rig_end(&rig);
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
}
