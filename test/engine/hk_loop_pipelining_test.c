#include "hk_loop_fixture.h"

static const char publish[] = "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: %zu\r\n\r\n%s";

/* --- several requests --------------------------------------------------------------------------------------------- */

static const char three[] =
    "GET /echo HTTP/1.1" HELLO "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nde";
static const char three_answers[] = ANSWER(4, "GET ") ANSWER(8, "POST abc") ANSWER(6, "PUT de");

HK_TEST(pipelined_requests_are_answered_in_order_wherever_they_are_cut)
{
    for (size_t cut = 1; cut <= sizeof(three) - 1; cut++) {
        rig_t rig;
        hk_test_note("cut at %zu", cut);
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig_say_bytes(&rig, client, hk_bytes(three, cut));
        rig_say_bytes(&rig, client, hk_bytes(three + cut, sizeof(three) - 1 - cut));
        HK_CHECK_BYTES(three_answers, rig_heard(&rig, client));
        HK_CHECK_EQUAL_INT(3, rig_stats(&rig).requests);
        rig_end(&rig);
    }
}

HK_TEST(bytes_that_somebody_else_has_read_come_first)
{
    for (size_t cut = 0; cut <= sizeof(three) - 1; cut++) {
        rig_t rig;
        hk_test_note("cut at %zu", cut);
        rig_begin(&rig, NULL);
        int client = rig_client_with(&rig, hk_bytes(three, cut));
        rig_say_bytes(&rig, client, hk_bytes(three + cut, sizeof(three) - 1 - cut));
        HK_CHECK_BYTES(three_answers, rig_heard(&rig, client));
        rig_end(&rig);
    }
}

HK_TEST(a_request_waits_for_the_one_before_it_that_ruby_has_not_answered)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig), other = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO "PUT /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES("", rig_heard(&rig, client));
    rig_say(&rig, other, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, other));
    HK_CHECK_EQUAL_INT(1, rig.held_count);
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(4, "GET ") ANSWER(4, "PUT "), rig_heard(&rig, client));
    rig_end(&rig);
}

HK_TEST(of_requests_behind_one_that_waits_only_so_much_is_read)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    static const char echo[] = "GET /echo HTTP/1.1" HELLO;
    size_t sent = 0;
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    for (int quiet = 0; quiet < 2;) {
        ssize_t got = send(client, echo, sizeof(echo) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        quiet = got == sizeof(echo) - 1 ? 0 : quiet + 1;
        sent += got > 0 ? (size_t)got : 0;
        HK_CHECK(got < 0 || got == sizeof(echo) - 1);
        rig_run(&rig);
    }
    uint64_t read = rig_stats(&rig).bytes_in;
    HK_CHECK(read >= HK_AHEAD_BYTES && read <= HK_AHEAD_BYTES + 2 * HK_READ_BYTES);
    HK_CHECK(sent > read);
    rig_release(&rig);
    size_t expected = strlen(ANSWER(4, "GET ")) * (1 + sent / (sizeof(echo) - 1));
    HK_CHECK_EQUAL_UINT(expected, rig_await(&rig, client, expected).length);
    rig_end(&rig);
}

HK_TEST(what_the_engine_knows_it_answers_by_itself_and_in_order)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    char text[4096];
    int length = 0;
    for (int i = 0; i < 3; i++) {
        length += sprintf(text + length, publish, strlen("topic=/a&data=1&id=i1"), "topic=/a&data=1&id=i1");
    }
    length += sprintf(text + length, "GET /echo HTTP/1.1" HELLO);
    length += sprintf(text + length, publish, strlen("topic=/a&data=1&id=i2"), "topic=/a&data=1&id=i2");
    rig_say_bytes(&rig, client, hk_bytes(text, (size_t)length));
#define PUBLISHED(id) PUBLISH_HEAD "content-length: 2\r\n\r\n" id
    HK_CHECK_BYTES(PUBLISHED("i1") PUBLISHED("i1") PUBLISHED("i1") ANSWER(4, "GET ") PUBLISHED("i2"),
                   rig_heard(&rig, client));
    HK_CHECK_EQUAL_INT(2, rig.asked);
    rig_end(&rig);
}

HK_TEST(answers_to_pipelined_requests_leave_together)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    char text[8192];
    int length = sprintf(text, publish, strlen("topic=/a&data=1&id=i1"), "topic=/a&data=1&id=i1");
    rig_say_bytes(&rig, client, hk_bytes(text, (size_t)length));
    (void)rig_heard(&rig, client);
    for (int i = 1; i < 20; i++) {
        length += sprintf(text + length, publish, strlen("topic=/a&data=1&id=i1"), "topic=/a&data=1&id=i1");
    }
    long before = rig.calls.counts[HK_CALL_SEND];
    rig_say_bytes(&rig, client, hk_bytes(text, (size_t)length));
    HK_CHECK_EQUAL_INT(1, rig.calls.counts[HK_CALL_SEND] - before);
    HK_CHECK_EQUAL_UINT(20 * strlen(PUBLISHED("i1")), rig_heard(&rig, client).length);
    HK_CHECK_EQUAL_INT(1, rig.asked);
    rig_end(&rig);
}

HK_TEST(a_client_that_wants_no_more_after_what_the_engine_knows_is_closed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    for (int i = 0; i < 2; i++) {
        int client = rig_client(&rig);
        bool ended;
        rig_say(&rig, client,
                "POST " HUB " HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n" FORM
                "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1");
        HK_CHECK(rig_receive(&rig, client, &ended).length > 0);
        HK_CHECK(ended);
    }
    HK_CHECK_EQUAL_INT(1, rig.asked);
    rig_end(&rig);
}

HK_TEST(nothing_is_served_as_long_as_an_answer_before_it_waits_for_room)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    static const char update[] =
        "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1";
    char text[1024];
    rig_say(&rig, client, update);
    (void)rig_heard(&rig, client);
    rig_say_bytes(&rig, client, hk_bytes(text, (size_t)sprintf(text, "GET /large?900000 HTTP/1.1" HELLO "%s", update)));
    HK_CHECK_EQUAL_UINT(1, rig_hub_stats(&rig).publishes);
    (void)rig_await(&rig, client, 900000 + 100);
    HK_CHECK_EQUAL_UINT(2, rig_hub_stats(&rig).publishes);
    rig_end(&rig);
}

HK_TEST(ruby_is_not_asked_before_the_answers_to_earlier_requests_have_left)
{
    rig_t rig;
    hk_ask_t *ask;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_write(client, hk_test_text("GET /echo HTTP/1.1" HELLO "GET /mine HTTP/1.1" HELLO));
    while (hk_loop_next(rig.loop, 0, &ask) != HK_OK) {
        rig_turn(&rig);
    }
    rig.calls.always[HK_CALL_SEND] = true;
    rig.calls.errors[HK_CALL_SEND] = EAGAIN;
    rig_answer(&rig, ask);
    for (int i = 0; i < 5; i++) {
        rig_turn(&rig);
    }
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_next(rig.loop, 0, &ask));
    rig.calls.always[HK_CALL_SEND] = false;
    HK_CHECK_BYTES(ANSWER(4, "GET ") "mine", rig_heard(&rig, client));
    rig_end(&rig);
}

static hk_connection_t *only_connection(rig_t *rig, hk_phase_t phase)
{
    hk_list_t *first = hk_list_first(&rig->loop->phases[phase]);
    HK_CHECK(first != NULL);
    return HK_OWNER(first, hk_connection_t, link);
}

HK_TEST(whatever_is_said_is_sent_in_order)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    static char large[30000], expected[2 * sizeof(large) + 4];
    rig_run(&rig);
    hk_connection_t *connection = only_connection(&rig, HK_PHASE_HEAD);
    rig.calls.send_limit = 100;
    memset(large, 'l', sizeof(large));
    hk_http_say(rig.loop, connection, HK_BYTES("a"));
    hk_http_say(rig.loop, connection, hk_bytes(large, sizeof(large)));
    hk_http_say(rig.loop, connection, HK_BYTES("b"));
    hk_http_say(rig.loop, connection, hk_bytes(large, sizeof(large)));
    hk_http_say(rig.loop, connection, HK_BYTES("cd"));
    hk_http_settle(rig.loop, connection);
    memset(expected, 'l', sizeof(expected));
    expected[0] = 'a';
    expected[1 + sizeof(large)] = 'b';
    memcpy(expected + 2 + 2 * sizeof(large), "cd", 2);
    HK_CHECK_BYTES(hk_bytes(expected, sizeof(expected)), rig_await(&rig, client, sizeof(expected)));
    rig_end(&rig);
}

HK_TEST(of_a_body_that_is_too_large_nothing_is_kept)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "PUT /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n0123");
    const hk_connection_t *connection = only_connection(&rig, HK_PHASE_ASKED);
    HK_CHECK(connection->http->in.memory == NULL);
    uint64_t before = rig_stats(&rig).bytes_in;
    rig_say(&rig, client, "4567");
    HK_CHECK_EQUAL_UINT(before, rig_stats(&rig).bytes_in);
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(14, "PUT  too large"), rig_heard(&rig, client));
    rig_end(&rig);
}

/* --- answers that do not fit -------------------------------------------------------------------------------------- */

HK_TEST(an_answer_larger_than_the_socket_takes_arrives_whole_and_what_follows_behind_it)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /large?900000 HTTP/1.1" HELLO "GET /echo HTTP/1.1" HELLO);
    HK_CHECK(!hk_list_empty(&rig.loop->phases[HK_PHASE_FLUSH]));
    HK_CHECK_EQUAL_INT(1, rig.asked);
    const char head[] = "HTTP/1.1 200 X\r\ncontent-length: 900000\r\n\r\n";
    size_t expected = sizeof(head) - 1 + 900000 + strlen(ANSWER(4, "GET "));
    hk_bytes_t heard = rig_await(&rig, client, expected);
    HK_CHECK_EQUAL_UINT(expected, heard.length);
    HK_CHECK(hk_bytes_start_with(heard, HK_BYTES(head)));
    HK_CHECK_BYTES("xx" ANSWER(4, "GET "),
                   hk_bytes(heard.at + expected - strlen(ANSWER(4, "GET ")) - 2, strlen(ANSWER(4, "GET ")) + 2));
    HK_CHECK_EQUAL_INT(2, rig.asked);
    rig_end(&rig);
}

/* Nothing of the body is kept, but what is needed to say so. */
HK_TEST(a_body_that_is_too_large_is_refused_also_behind_an_answer_that_waits_for_room)
{
    static const char large[] = "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n0123456789";
    for (int later = 0; later < 2; later++) {
        rig_t rig;
        char text[1024];
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig_write(client, hk_bytes(text, (size_t)sprintf(text, "GET /large?900000 HTTP/1.1" HELLO "%s", large)));
        rig_run(&rig);
        if (later) {
            rig_write(client, HK_BYTES("more of it"));
        }
        hk_bytes_t heard = rig_await(&rig, client, 900000 + 100);
        static const char expected[] = ANSWER(14, "PUT  too large");
        HK_CHECK_BYTES(expected, hk_bytes(heard.at + heard.length - strlen(expected), strlen(expected)));
        HK_CHECK_EQUAL_UINT(2, rig.asked);
        HK_CHECK(rig_is_closed(&rig, client));
        rig_end(&rig);
    }
}

HK_TEST(answers_arrive_whole_however_little_the_socket_takes_at_a_time)
{
    for (long limit = 1; limit < 100; limit += 7) {
        rig_t rig;
        hk_test_note("%ld bytes at a time", limit);
        rig_begin(&rig, NULL);
        rig.calls.send_limit = limit;
        int client = rig_client(&rig);
        char text[4096];
        int length = sprintf(text, publish, strlen("topic=/a&data=1&id=i1"), "topic=/a&data=1&id=i1");
        length += sprintf(text + length, "%s", three);
        length += sprintf(text + length, publish, strlen("topic=/a&data=1&id=i2"), "topic=/a&data=1&id=i2");
        length += sprintf(text + length, "GET " HUB "?match=/a HTTP/1.1\r\nHost: example.com\r\n"
                                         "Last-Event-ID: earliest\r\n\r\n");
        rig_say_bytes(&rig, client, hk_bytes(text, (size_t)length));
        char expected[4096];
        sprintf(expected, "%s%s%s%s%s%s%s", PUBLISHED("i1"), three_answers, PUBLISHED("i2"), STREAM_HEAD,
                "mercure-last-event-id: earliest\r\n\r\n", ":\n\n", "id: i1\ndata: 1\n\nid: i2\ndata: 1\n\n");
        HK_CHECK_BYTES((const char *)expected, rig_await(&rig, client, strlen(expected)));
        rig_end(&rig);
    }
}

HK_TEST(a_client_that_goes_while_its_answer_is_on_its_way_is_forgotten)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /large?900000 HTTP/1.1" HELLO);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_close(&rig, client);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}
