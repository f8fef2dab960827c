#include "hk_loop_fixture.h"

#define ANSWER(length, body) "HTTP/1.1 200 X\r\ncontent-length: " #length "\r\n\r\n" body

static void stop(rig_t *rig)
{
    hk_loop_stop(rig->loop);
    rig_run(rig);
}

HK_TEST(a_loop_that_holds_nothing_stops_at_once_and_stays_stopped)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    hk_loop_stop(rig.loop);
    hk_loop_stop(rig.loop);
    HK_CHECK_OK(hk_loop_run(rig.loop));
    HK_CHECK_OK(hk_loop_run(rig.loop));
    rig_pair(&rig, &client, &server);
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_adopt(rig.loop, server, HK_BYTES("x")));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_attach(rig.loop, server, 1));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_listen(rig.loop, server, false));
    close(server);
    rig_end(&rig);
}

HK_TEST(a_stop_closes_streams_with_a_time_to_come_back)
{
    rig_t rig;
    bool ended;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a");
    rig_publish(&rig, "/a", "last");
    stop(&rig);
    HK_CHECK(rig.ended);
    hk_bytes_t heard = rig_receive(&rig, stream, &ended);
    HK_CHECK(hk_bytes_start_with(heard, HK_BYTES(EVENT("last") "retry: ")));
    HK_CHECK(ended);
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    rig_end(&rig);
}

HK_TEST(a_stop_takes_no_connections_any_more)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_listen(&rig);
    int held = rig_client(&rig), idle = rig_client(&rig), fresh = rig_client(&rig);
    rig_say(&rig, idle, "GET /echo HTTP/1.1" HELLO);
    (void)rig_heard(&rig, idle);
    rig_say(&rig, held, "GET /hold HTTP/1.1" HELLO);
    stop(&rig);
    HK_CHECK(!rig.ended);
    HK_CHECK(rig_is_closed(&rig, idle));
    HK_CHECK(rig_is_closed(&rig, fresh));
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)rig.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = rig_keep(&rig, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    HK_CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 && errno == ECONNREFUSED);
    int late = rig_client(&rig);
    HK_CHECK(rig_is_closed(&rig, late));
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, held));
    HK_CHECK(rig.ended);
    rig_end(&rig);
}

HK_TEST(requests_in_hand_are_answered_and_what_they_publish_is_delivered_before_the_end)
{
    rig_t rig;
    bool ended;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a"), client = rig_client(&rig), half = rig_client(&rig);
    rig_say(&rig, client,
            "GET /hold HTTP/1.1" HELLO "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM
            "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1");
    rig_say(&rig, half, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    stop(&rig);
    HK_CHECK(!rig.ended);
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(4, "GET ") "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1\r\n\r\nx",
                   rig_heard(&rig, client));
    HK_CHECK_BYTES(EVENT("1"), rig_heard(&rig, stream));
    HK_CHECK(!rig.ended);
    rig_say(&rig, half, "cd");
    HK_CHECK_BYTES(ANSWER(8, "PUT abcd"), rig_heard(&rig, half));
    HK_CHECK(rig.ended);
    HK_CHECK(hk_bytes_start_with(rig_receive(&rig, stream, &ended), HK_BYTES("retry: ")));
    HK_CHECK(ended);
    rig_end(&rig);
}

HK_TEST(a_request_that_has_begun_may_come_to_its_end)
{
    rig_t rig;
    bool ended;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a"), client = rig_client(&rig);
    rig_say(&rig, client, "GET /ec");
    stop(&rig);
    HK_CHECK_BYTES("", rig_receive(&rig, stream, &ended));
    HK_CHECK(!ended);
    rig_say(&rig, client, "ho HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, client));
    HK_CHECK(rig.ended);
    rig_end(&rig);
}

HK_TEST(an_answer_that_has_begun_may_come_to_its_end)
{
    rig_t rig;
    bool ended;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a"), client = rig_client(&rig);
    rig_say(&rig, client, "GET /large?900000 HTTP/1.1" HELLO);
    stop(&rig);
    HK_CHECK_BYTES("", rig_receive(&rig, stream, &ended));
    HK_CHECK(!ended);
    HK_CHECK(rig_await(&rig, client, 900000).length >= 900000);
    RIG_UNTIL(&rig, rig.ended);
    rig_end(&rig);
}

HK_TEST(what_was_published_before_a_stop_reaches_everybody_however_many_they_are)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a");
    hk_grant_t *grant = grant_of("/a", "", "", HK_NEVER);
    for (int i = 0; i < HK_SLICE; i++) {
        hk_subscribe_t subscribe = {.grant = grant, .expires_in = HK_NEVER};
        hk_subscriber_t *subscriber;
        hk_bytes_t answer;
        HK_CHECK_OK(hk_hub_subscribe(rig.hub, &subscribe, &subscriber, &answer));
        hk_hub_writable(rig.hub, subscriber);
    }
    hk_grant_release(grant);
    rig_run(&rig);
    rig_publish(&rig, "/a", "last");
    stop(&rig);
    HK_CHECK(rig.ended);
    HK_CHECK(hk_bytes_start_with(rig_receive(&rig, stream, NULL), HK_BYTES(EVENT("last") "retry: ")));
    rig_end(&rig);
}

HK_TEST(a_publish_whose_client_has_gone_is_waited_for)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    rig_close(&rig, client);
    stop(&rig);
    HK_CHECK(!rig.ended);
    rig_release(&rig);
    rig_run(&rig);
    HK_CHECK(rig.ended);
    rig_end(&rig);
}

HK_TEST(who_wants_to_subscribe_while_the_loop_stops_is_asked_about)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)rig_subscribe(&rig, "match=/a");
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO "GET " HUB "?match=/a HTTP/1.1" HELLO);
    size_t asked = rig.asked;
    stop(&rig);
    rig_release(&rig);
    rig_run(&rig);
    HK_CHECK_EQUAL_UINT(asked + 1, rig.asked);
    rig_end(&rig);
}

HK_TEST(a_stop_takes_no_longer_than_it_may)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int held = rig_client(&rig), stream = rig_subscribe(&rig, "match=/a");
    bool ended;
    rig_say(&rig, held, "GET /hold HTTP/1.1" HELLO);
    stop(&rig);
    HK_CHECK_EQUAL_INT(3000, rig.calls.timeout_ms);
    rig_pass(&rig, 3 * HK_SECOND - 1);
    HK_CHECK_BYTES("", rig_receive(&rig, stream, &ended));
    HK_CHECK(!ended);
    rig_pass(&rig, 1);
    HK_CHECK(hk_bytes_start_with(rig_receive(&rig, stream, &ended), HK_BYTES("retry: ")));
    HK_CHECK(ended);
    HK_CHECK(!rig.ended);
    HK_CHECK_EQUAL_INT(2000, rig.calls.timeout_ms);
    rig_pass(&rig, 2 * HK_SECOND);
    HK_CHECK(rig.ended);
    HK_CHECK(rig_is_closed(&rig, held));
    rig_release(&rig);
    rig_end(&rig);
}

HK_TEST(a_stop_without_time_still_tells_everybody)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.drain_timeout = 0;
    rig_begin(&rig, &options);
    int streams[20], held = rig_client(&rig);
    bool ended;
    for (int i = 0; i < 20; i++) {
        streams[i] = rig_subscribe(&rig, "match=/a");
    }
    rig_say(&rig, held, "GET /hold HTTP/1.1" HELLO);
    rig_publish(&rig, "/a", "lost or not");
    stop(&rig);
    HK_CHECK(rig.ended);
    for (int i = 0; i < 20; i++) {
        hk_bytes_t heard = rig_receive(&rig, streams[i], &ended);
        HK_CHECK(memmem(heard.at, heard.length, "retry: ", 7) != NULL);
        HK_CHECK(ended);
    }
    rig_release(&rig);
    rig_end(&rig);
}

HK_TEST(what_was_handed_over_and_not_taken_is_closed)
{
    rig_t rig;
    int client, server, files = hk_open_files();
    rig_begin(&rig, NULL);
    hk_grant_t *grant = grant_of("/a", "", "", HK_NEVER);
    hk_subscribe_t subscribe = {.grant = grant, .expires_in = HK_NEVER};
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    HK_CHECK_OK(hk_hub_subscribe(rig.hub, &subscribe, &subscriber, &answer));
    hk_grant_release(grant);
    rig_pair(&rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, hk_subscriber_serial(subscriber)));
    (void)rig_client(&rig);
    rig_listen(&rig);
    rig_end(&rig);
    HK_CHECK_EQUAL_INT(files, hk_open_files());
}

HK_TEST(freeing_a_loop_in_the_middle_of_everything_closes_everything)
{
    rig_t rig;
    int files = hk_open_files();
    rig_begin(&rig, NULL);
    rig_listen(&rig);
    (void)rig_subscribe(&rig, "match=/a");
    rig_say(&rig, rig_client(&rig), "GET /hold HTTP/1.1" HELLO);
    rig_say(&rig, rig_client(&rig), "GET /large?900000 HTTP/1.1" HELLO);
    rig_say(&rig, rig_client(&rig), "nonsense\r\n\r\n");
    rig_say(&rig, rig_client(&rig), "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    rig_write(rig_connect(&rig), HK_BYTES("GET"));
    rig_turn(&rig);
    rig_end(&rig);
    HK_CHECK_EQUAL_INT(files, hk_open_files());
}

HK_TEST(an_interrupted_loop_can_go_on)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a");
    hk_loop_interrupt(rig.loop);
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_run(rig.loop));
    rig_publish(&rig, "/a", "one");
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, stream));
    hk_loop_stop(rig.loop);
    HK_CHECK_OK(hk_loop_run(rig.loop));
    rig_end(&rig);
}
