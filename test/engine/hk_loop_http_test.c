#include "hk_loop_fixture.h"

/* --- requests one by one ------------------------------------------------------------------------------------------ */

HK_TEST(a_request_that_nobody_knows_is_answered_by_ruby)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, client));
    HK_CHECK_EQUAL_INT(1, rig.asked);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).requests);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_end(&rig);
}

HK_TEST(a_connection_serves_many_requests_and_keeps_no_buffer_between_them)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    for (int i = 0; i < 5; i++) {
        size_t blocks = 0;
        rig_say(&rig, client, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
        HK_CHECK_BYTES("", rig_heard(&rig, client));
        rig_say(&rig, client, "bc");
        HK_CHECK_BYTES(ANSWER(8, "POST abc"), rig_heard(&rig, client));
        if (i == 0) {
            blocks = hk_test_blocks();
        }
        HK_CHECK(blocks == 0 || blocks == hk_test_blocks());
    }
    hk_connection_t *connection = HK_OWNER(hk_list_first(&rig.loop->phases[HK_PHASE_IDLE]), hk_connection_t, link);
    HK_CHECK(connection->http->in.memory == NULL && connection->http->out.memory == NULL);
    rig_end(&rig);
}

typedef struct exchange {
    const char *request, *answer;
    bool ends;
} exchange_t;

static const exchange_t exchanges[] = {
    {"GET /echo HTTP/1.1" HELLO, ANSWER(4, "GET "), false},
    {"HEAD /echo HTTP/1.1" HELLO, ANSWER(5, ""), false},
    {"OPTIONS * HTTP/1.1" HELLO, ANSWER(8, "OPTIONS "), false},
    {"QUERY /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nab", ANSWER(8, "QUERY ab"), false},
    {"GET /echo HTTP/1.0\r\n\r\n", ANSWER(4, "GET "), true},
    {"GET /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", ANSWER(4, "GET "), false},
    {"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", ANSWER(4, "GET "), true},
    {"GET /bye HTTP/1.1" HELLO, ANSWER(4, "GET "), true},
    {"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", ANSWER(4, "GET "), false},
    {"\r\n\r\nGET /echo HTTP/1.1" HELLO, ANSWER(4, "GET "), false},
    {"PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
     "3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n0\r\nX: y\r\n\r\n",
     ANSWER(17, "PUT abc0123456789"), false},
    {"PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", ANSWER(4, "PUT "), false},
    {"GET " HUB "?match=/a HTTP/1.1" HELLO, OPENING, false},
    {"PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n0123", ANSWER(14, "PUT  too large"), true},
    {"PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3e6\r\n",
     ANSWER(14, "PUT  too large"), true},
    {"GET /echo HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
     PROBLEM(400, "Bad Request", 133, "the value of the Content-Length field is not a number below 2^64"), true},
    {"GET / HTTP/2.0\r\n",
     PROBLEM(505, "HTTP Version Not Supported", 128,
             "the version is neither HTTP/1.0 nor "
             "HTTP/1.1"),
     true},
    {"GET /echo HTTP/1.1\r\nHost:\r\n\r\n", ANSWER(4, "GET "), false},
    {"CONNECT example.com:80 HTTP/1.1" HELLO, PROBLEM(501, "Not Implemented", 92, "the hub is no proxy"), true},
    {"GET /echo HTTP/1.1\r\n\r\n", PROBLEM(400, "Bad Request", 94, "the Host field is missing"), true},
    {"PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n",
     PROBLEM(400, "Bad Request", 127, "the size of a chunk is not a hexadecimal number below 2^64"), true},
    {"PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
     PROBLEM(501, "Not Implemented", 118, "there are transfer codings other than chunked"), true},
};

HK_TEST(requests_of_every_kind_are_answered)
{
    for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        const exchange_t *row = &exchanges[i];
        rig_t rig;
        hk_test_note("%s", row->request);
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig_say(&rig, client, row->request);
        bool ended;
        rig_run(&rig);
        HK_CHECK_BYTES(row->answer, rig_receive(&rig, client, &ended));
        HK_CHECK_EQUAL_INT(row->ends, ended);
        rig_end(&rig);
    }
}

HK_TEST(bytes_may_be_cut_anywhere)
{
    for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        const exchange_t *row = &exchanges[i];
        hk_bytes_t request = hk_test_text(row->request);
        for (size_t cut = 1; cut < request.length; cut++) {
            rig_t rig;
            hk_test_note("%s, cut at %zu", row->request, cut);
            rig_begin(&rig, NULL);
            int client = rig_client(&rig);
            rig_say_bytes(&rig, client, hk_bytes(request.at, cut));
            rig_say_bytes(&rig, client, hk_bytes(request.at + cut, request.length - cut));
            HK_CHECK_BYTES(row->answer, rig_heard(&rig, client));
            rig_end(&rig);
        }
    }
}

HK_TEST(bytes_may_come_one_by_one)
{
    for (size_t i = 0; i < sizeof(exchanges) / sizeof(exchanges[0]); i++) {
        const exchange_t *row = &exchanges[i];
        hk_bytes_t request = hk_test_text(row->request);
        rig_t rig;
        hk_test_note("%s", row->request);
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        for (size_t at = 0; at < request.length; at++) {
            rig_say_bytes(&rig, client, hk_bytes(request.at + at, 1));
        }
        HK_CHECK_BYTES(row->answer, rig_heard(&rig, client));
        rig_end(&rig);
    }
}

HK_TEST(a_body_may_be_as_large_as_it_may)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    char text[1200];
    int head = sprintf(text, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n");
    memset(text + head, 'x', 1000);
    rig_say_bytes(&rig, client, hk_bytes(text, (size_t)head + 1000));
    hk_bytes_t heard = rig_heard(&rig, client);
    HK_CHECK(hk_bytes_start_with(heard, HK_BYTES(ANSWER(1004, "PUT xxx"))));
    rig_end(&rig);
}

/* --- 100 (Continue) ----------------------------------------------------------------------------------------------- */

#define EXPECTING "PUT /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n"

HK_TEST(a_client_that_waits_for_it_is_told_to_continue)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, EXPECTING "Content-Length: 2\r\n\r\n");
    HK_CHECK_BYTES("HTTP/1.1 100 Continue\r\n\r\n", rig_heard(&rig, client));
    rig_say(&rig, client, "a");
    HK_CHECK_BYTES("", rig_heard(&rig, client));
    rig_say(&rig, client, "b" EXPECTING "Transfer-Encoding: chunked\r\n\r\n");
    HK_CHECK_BYTES(ANSWER(6, "PUT ab") "HTTP/1.1 100 Continue\r\n\r\n", rig_heard(&rig, client));
    rig_say(&rig, client, "1\r\nc\r\n0\r\n\r\n");
    HK_CHECK_BYTES(ANSWER(5, "PUT c"), rig_heard(&rig, client));
    rig_end(&rig);
}

HK_TEST(nobody_is_told_to_continue_who_has_begun_or_is_refused_or_has_no_body)
{
    static const exchange_t rows[] = {
        {EXPECTING "Content-Length: 2\r\n\r\na", "", false},
        {EXPECTING "Content-Length: 2\r\n\r\nab", ANSWER(6, "PUT ab"), false},
        {EXPECTING "Content-Length: 0\r\n\r\n", ANSWER(4, "PUT "), false},
        {EXPECTING "Content-Length: 5000\r\n\r\n", ANSWER(14, "PUT  too large"), true},
        {"PUT /echo HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n", "", false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        rig_t rig;
        bool ended;
        hk_test_note("%s", rows[i].request);
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig_say(&rig, client, rows[i].request);
        HK_CHECK_BYTES(rows[i].answer, rig_receive(&rig, client, &ended));
        HK_CHECK_EQUAL_INT(rows[i].ends, ended);
        rig_end(&rig);
    }
}

/* --- the end of a connection -------------------------------------------------------------------------------------- */

HK_TEST(a_client_that_sends_no_more_still_gets_its_answers)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_write(client, hk_test_text("GET /hold HTTP/1.1" HELLO "GET /echo HTTP/1.1" HELLO));
    HK_CHECK(shutdown(client, SHUT_WR) == 0);
    HK_CHECK_BYTES("", rig_heard(&rig, client));
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(4, "GET ") ANSWER(4, "GET "), rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_request_that_is_cut_off_is_refused_and_not_served)
{
    static const char *const cut[] = {"GET /echo HTTP/1.1\r\nHost: a\r\n",
                                      "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nab"};
    for (size_t i = 0; i < 2; i++) {
        rig_t rig;
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig_write(client, hk_test_text(cut[i]));
        HK_CHECK(shutdown(client, SHUT_WR) == 0);
        HK_CHECK_BYTES(PROBLEM(400, "Bad Request", 121, "the connection was closed in the middle of a message"),
                       rig_heard(&rig, client));
        HK_CHECK_EQUAL_INT(0, rig.asked);
        HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
        rig_end(&rig);
    }
}

HK_TEST(a_client_that_says_nothing_and_goes_leaves_nothing_behind)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_close(&rig, rig_client(&rig));
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    rig_close(&rig, client);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}

HK_TEST(who_is_refused_may_go_on_sending_for_a_while_so_that_the_answer_arrives)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    bool ended;
    rig_say(&rig, client, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000\r\n\r\n");
    char *zeros = calloc(1, 10000);
    for (size_t sent = 0; sent + 10000 <= HK_LINGER_BYTES; sent += 10000) {
        HK_CHECK(send(client, zeros, 10000, MSG_NOSIGNAL | MSG_DONTWAIT) == 10000);
        rig_run(&rig);
        HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    }
    (void)send(client, zeros, 10000, MSG_NOSIGNAL | MSG_DONTWAIT);
    free(zeros);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    HK_CHECK_BYTES(ANSWER(14, "PUT  too large"), rig_receive(&rig, client, &ended));
    HK_CHECK(ended);
    rig_end(&rig);
}

HK_TEST(who_is_refused_is_closed_after_a_second_even_if_it_stays)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "nonsense\r\n\r\n");
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_pass(&rig, HK_SECOND - 1);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_pass(&rig, 1);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).malformed);
    rig_end(&rig);
}

HK_TEST(what_stands_behind_the_last_request_is_dropped_and_takes_no_answer_away)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    bool ended;
    rig_say(&rig, client, "GET /bye HTTP/1.1" HELLO "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_receive(&rig, client, &ended));
    HK_CHECK(ended);
    HK_CHECK_EQUAL_INT(1, rig.asked);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_close(&rig, client);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}

/* --- over TCP ----------------------------------------------------------------------------------------------------- */

HK_TEST(a_client_may_come_over_tcp_and_has_an_address)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_listen(&rig);
    int client = rig_connect(&rig);
    rig_write(client, hk_test_text("GET /hold HTTP/1.1" HELLO));
    RIG_UNTIL(&rig, rig.held_count == 1);
    HK_CHECK_BYTES("127.0.0.1", hk_ask_peer(rig.held[0]));
    HK_CHECK_BYTES("127.0.0.1", hk_ask_address(rig.held[0]));
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_await(&rig, client, strlen(ANSWER(4, "GET "))));
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).accepted);
    rig_end(&rig);
}

HK_TEST(what_was_sent_before_the_client_went_is_still_read)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_listen(&rig);
    int client = rig_connect(&rig);
    char text[512];
    int length = sprintf(text, "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM
                               "\r\nContent-Length: 15\r\n\r\ntopic=/a&data=1");
    rig_write(client, hk_bytes(text, (size_t)length));
    rig_close(&rig, client);
    RIG_UNTIL(&rig, rig_hub_stats(&rig).publishes == 1);
    RIG_UNTIL(&rig, rig_stats(&rig).connections == 0);
    rig_end(&rig);
}

HK_TEST(an_address_is_written_as_puma_writes_it)
{
    static const struct {
        int family;
        const char *in, *out;
    } rows[] = {
        {AF_INET, "192.0.2.7", "192.0.2.7"},
        {AF_INET6, "::ffff:192.0.2.7", "192.0.2.7"},
        {AF_INET6, "2001:db8::1", "2001:db8::1"},
        {AF_INET6, "::1", "::1"},
        {AF_INET6, "2001:db8:1111:2222:3333:4444:5555:6666", "2001:db8:1111:2222:3333:4444:5555:6666"},
    };
    char text[INET6_ADDRSTRLEN];
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct sockaddr_storage address = {.ss_family = (sa_family_t)rows[i].family};
        void *bytes = rows[i].family == AF_INET ? (void *)&((struct sockaddr_in *)&address)->sin_addr
                                                : (void *)&((struct sockaddr_in6 *)&address)->sin6_addr;
        HK_CHECK(inet_pton(rows[i].family, rows[i].in, bytes) == 1);
        HK_CHECK_BYTES(rows[i].out, hk_bytes(text, hk_peer_text(&address, sizeof(address), text)));
        HK_CHECK_EQUAL_UINT(0, hk_peer_text(&address, sizeof(sa_family_t), text));
    }
    struct sockaddr_storage local = {.ss_family = AF_UNIX};
    HK_CHECK_EQUAL_UINT(0, hk_peer_text(&local, sizeof(sa_family_t), text));
}
