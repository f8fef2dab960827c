#include "hk_loop_fixture.h"

#include <netinet/tcp.h>

#define FAREWELL "retry: 2000\n\n"

/* The delay is at random, of that many digits: what is before it. */
static void check_farewell(hk_bytes_t before, hk_bytes_t heard)
{
    HK_CHECK(hk_bytes_start_with(heard, before));
    hk_bytes_t rest = hk_bytes(heard.at + before.length, heard.length - before.length);
    HK_CHECK(hk_bytes_start_with(rest, HK_BYTES("retry: ")));
    HK_CHECK(rest.length > 10 && rest.length < 20);
    HK_CHECK_BYTES("\n\n", hk_bytes(rest.at + rest.length - 2, 2));
}

static hk_subscriber_t *register_subscriber(rig_t *rig, const char *matches, const char *cursor)
{
    hk_grant_t *grant = grant_of(matches, "", "somebody", HK_NEVER);
    hk_subscribe_t subscribe = {.grant = grant,
                                .has_cursor = cursor != NULL,
                                .cursor = hk_test_text(cursor != NULL ? cursor : ""),
                                .expires_in = HK_NEVER,
                                .now = atomic_load(&rig->calls.now)};
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    HK_CHECK_OK(hk_hub_subscribe(rig->hub, &subscribe, &subscriber, &answer));
    hk_grant_release(grant);
    return subscriber;
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

HK_TEST(head_and_first_bytes_of_a_stream_leave_in_one_write)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)rig_subscribe(&rig, "match=/a");
    int client = rig_client(&rig);
    long sends = rig.calls.counts[HK_CALL_SEND], arms = rig.calls.counts[HK_CALL_EPOLL_CONTROL];
    rig_say(&rig, client, "GET " HUB "?match=/a HTTP/1.1" HELLO);
    HK_CHECK_BYTES(OPENING, rig_heard(&rig, client));
    HK_CHECK_EQUAL_INT(1, rig.calls.counts[HK_CALL_SEND] - sends);
    HK_CHECK_EQUAL_INT(1, rig.calls.counts[HK_CALL_EPOLL_CONTROL] - arms);
    HK_CHECK_EQUAL_INT(1, rig.asked);
    HK_CHECK_EQUAL_INT(2, rig_stats(&rig).streams);
    rig_end(&rig);
}

HK_TEST(a_stream_begins_with_what_it_missed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)rig_subscribe(&rig, "match=/a");
    rig_publish(&rig, "/a", "one");
    rig_publish(&rig, "/b", "not this");
    rig_publish(&rig, "/a", "two");
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET " HUB "?match=/a HTTP/1.1\r\nHost: example.com\r\nLast-Event-ID: earliest\r\n\r\n");
    HK_CHECK_BYTES(STREAM_HEAD "mercure-last-event-id: earliest\r\n\r\n:\n\n" EVENT("one") EVENT("two"),
                   rig_heard(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_gap_is_told_instead_of_a_comment)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET " HUB "?match=/a HTTP/1.1\r\nHost: example.com\r\nLast-Event-ID: unheard-of\r\n\r\n");
    hk_bytes_t heard = rig_heard(&rig, client);
    hk_bytes_t head = HK_BYTES(STREAM_HEAD "mercure-last-event-id: earliest\r\n\r\n");
    HK_CHECK(hk_bytes_start_with(heard, head));
    HK_CHECK(hk_bytes_start_with(hk_bytes(heard.at + head.length, heard.length - head.length),
                                 HK_BYTES("event: mercure\n")));
    rig_end(&rig);
}

HK_TEST(a_stream_may_begin_behind_other_requests_and_what_follows_is_not_looked_at)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO "GET " HUB "?match=/a HTTP/1.1" HELLO "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES("HTTP/1.1 200 X\r\ncontent-length: 4\r\n\r\nGET " OPENING, rig_heard(&rig, client));
    rig_publish(&rig, "/a", "one");
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, client));
    HK_CHECK_EQUAL_INT(2, rig.asked);
    rig_end(&rig);
}

HK_TEST(an_idle_stream_holds_little_memory_and_no_buffers)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)rig_subscribe(&rig, "match=/a");
    size_t before = hk_test_bytes_in_use(), blocks = hk_test_blocks();
    for (int i = 0; i < 32; i++) {
        int client = rig_client(&rig);
        rig_say(&rig, client, "GET " HUB "?match=/a HT");
        rig_say(&rig, client, "TP/1.1" HELLO);
        HK_CHECK_BYTES(OPENING, rig_heard(&rig, client));
    }
    HK_CHECK(sizeof(hk_connection_t) <= 64);
    HK_CHECK((hk_test_bytes_in_use() - before) / 32 <= 600);
    HK_CHECK(hk_test_blocks() - blocks <= 64 + 8);
    rig_end(&rig);
}

HK_TEST(delivering_allocates_nothing)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int clients[8];
    for (int i = 0; i < 8; i++) {
        clients[i] = rig_subscribe(&rig, "match=/a");
    }
    rig_publish(&rig, "/a", "one");
    size_t requests = hk_test_requests();
    rig_run(&rig);
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, clients[7]));
    rig_end(&rig);
}

/* --- delivering --------------------------------------------------------------------------------------------------- */

HK_TEST(an_event_reaches_everybody_whom_it_concerns_with_one_write_each)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int first = rig_subscribe(&rig, "match=/a"), second = rig_subscribe(&rig, "match=/a"),
        other = rig_subscribe(&rig, "match=/b");
    long sends = rig.calls.counts[HK_CALL_SEND];
    rig_publish(&rig, "/a", "one");
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, first));
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, second));
    HK_CHECK_BYTES("", rig_heard(&rig, other));
    HK_CHECK_EQUAL_INT(2, rig.calls.counts[HK_CALL_SEND] - sends);
    rig_end(&rig);
}

HK_TEST(publishes_of_one_turn_are_one_write_to_each_subscriber)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a"), publishers[3];
    static const char publish[] =
        "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1";
    for (int i = 0; i < 3; i++) {
        publishers[i] = rig_client(&rig);
    }
    rig_say(&rig, publishers[0], publish);
    HK_CHECK_BYTES(EVENT("1"), rig_heard(&rig, stream));
    for (int i = 0; i < 3; i++) {
        rig_write(publishers[i], hk_test_text(publish));
        rig_write(publishers[i], hk_test_text(publish));
    }
    long sends = rig.calls.counts[HK_CALL_SEND];
    HK_CHECK_BYTES(EVENT("1") EVENT("1") EVENT("1") EVENT("1") EVENT("1") EVENT("1"), rig_heard(&rig, stream));
    HK_CHECK_EQUAL_INT(3 + 1, rig.calls.counts[HK_CALL_SEND] - sends);
    rig_end(&rig);
}

HK_TEST(between_slices_of_a_large_fan_out_others_are_attended_to)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int clients[MOST_CLIENTS - 1], ends[2];
    for (int i = 0; i < 10; i++) {
        clients[i] = rig_subscribe(&rig, "match=/a");
    }
    for (int i = 0; i < 2 * HK_SLICE; i++) {
        HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
        close(ends[0]);
        HK_CHECK_OK(hk_loop_attach(rig.loop, ends[1], hk_subscriber_serial(register_subscriber(&rig, "/a", NULL))));
        rig_turn(&rig);
    }
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(10, rig_stats(&rig).streams);
    hk_subscriber_t *subscribers[2 * HK_SLICE];
    for (int i = 0; i < 2 * HK_SLICE; i++) {
        subscribers[i] = register_subscriber(&rig, "/a", NULL);
        hk_hub_writable(rig.hub, subscribers[i]);
    }
    rig_run(&rig);
    rig_publish(&rig, "/a", "one");
    rig_write(clients[0], HK_BYTES("chatter"));
    rig_turn(&rig);
    HK_CHECK(rig.loop->more);
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(0, rig.calls.timeout_ms);
    for (int i = 0; i < 2 * HK_SLICE; i++) {
        hk_hub_unsubscribe(rig.hub, subscribers[i], 0);
    }
    rig_end(&rig);
}

HK_TEST(heartbeats_are_sent_in_time)
{
    rig_t rig;
    hk_hub_options_t hub = hub_options();
    hub.heartbeat = 20 * HK_SECOND;
    rig_begin_with_hub(&rig, NULL, &hub);
    int stream = rig_subscribe(&rig, "match=/a");
    rig_run(&rig);
    HK_CHECK(rig.calls.timeout_ms > 19000 && rig.calls.timeout_ms <= 20500);
    rig_pass(&rig, 21 * HK_SECOND);
    HK_CHECK_BYTES(":\n\n", rig_heard(&rig, stream));
    rig_end(&rig);
}

/* --- what clients do ---------------------------------------------------------------------------------------------- */

HK_TEST(a_client_that_goes_is_unsubscribed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_close(&rig, rig_subscribe(&rig, "match=/a"));
    int half = rig_subscribe(&rig, "match=/a");
    shutdown(half, SHUT_WR);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).streams);
    HK_CHECK(rig_is_closed(&rig, half));
    rig_end(&rig);
}

HK_TEST(a_client_that_resets_its_connection_is_unsubscribed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_listen(&rig);
    int client = rig_connect(&rig);
    rig_write(client, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
    HK_CHECK_BYTES(OPENING, rig_await(&rig, client, strlen(OPENING)));
    struct linger reset = {.l_onoff = 1};
    HK_CHECK(setsockopt(client, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)) == 0);
    rig_close(&rig, client);
    RIG_UNTIL(&rig, rig_hub_stats(&rig).subscribers == 0);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}

HK_TEST(a_client_that_is_found_gone_when_it_is_written_to_is_unsubscribed)
{
    static const int errors[] = {EPIPE, ECONNRESET, ENOBUFS, ENOMEM};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        rig_t rig;
        rig_begin(&rig, NULL);
        int gone = rig_subscribe(&rig, "match=/a"), other = rig_subscribe(&rig, "match=/b");
        rig.calls.always[HK_CALL_SEND] = true;
        rig.calls.errors[HK_CALL_SEND] = errors[i];
        rig_publish(&rig, "/a", "one");
        rig_run(&rig);
        rig.calls.always[HK_CALL_SEND] = false;
        HK_CHECK_EQUAL_INT(1, rig_hub_stats(&rig).subscribers);
        HK_CHECK(rig_is_closed(&rig, gone));
        rig_publish(&rig, "/b", "two");
        HK_CHECK_BYTES(EVENT("two"), rig_heard(&rig, other));
        rig_end(&rig);
    }
}

HK_TEST(a_socket_that_is_full_or_disturbed_for_a_moment_loses_nothing)
{
    static const int errors[] = {EAGAIN, EINTR};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        rig_t rig;
        rig_begin(&rig, NULL);
        int client = rig_subscribe(&rig, "match=/a");
        rig.calls.always[HK_CALL_SEND] = true;
        rig.calls.errors[HK_CALL_SEND] = errors[i];
        rig_publish(&rig, "/a", "one");
        rig_turn(&rig);
        rig.calls.always[HK_CALL_SEND] = false;
        HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, client));
        rig_end(&rig);
    }
}

HK_TEST(a_subscriber_that_talks_too_much_is_closed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_subscribe(&rig, "match=/a");
    char *chatter = calloc(1, HK_CHATTER_BYTES / 4);
    for (int i = 0; i < 4; i++) {
        rig_say_bytes(&rig, client, hk_bytes(chatter, HK_CHATTER_BYTES / 4));
    }
    free(chatter);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).streams);
    rig_say(&rig, client, "x");
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).streams);
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

/* --- streams from elsewhere --------------------------------------------------------------------------------------- */

HK_TEST(a_stream_is_taken_over_whose_head_was_sent)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    rig_publish(&rig, "/a", "one");
    uint64_t serial = hk_subscriber_serial(register_subscriber(&rig, "/a", "earliest"));
    rig_pair(&rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, serial));
    HK_CHECK_BYTES(":\n\n" EVENT("one"), rig_heard(&rig, client));
    rig_publish(&rig, "/a", "two");
    HK_CHECK_BYTES(EVENT("two"), rig_heard(&rig, client));
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).streams);
    rig_close(&rig, client);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    rig_end(&rig);
}

HK_TEST(a_gap_is_all_that_is_said_at_first_to_a_stream_that_is_taken_over)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    uint64_t serial = hk_subscriber_serial(register_subscriber(&rig, "/a", "unheard-of"));
    rig_pair(&rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, serial));
    hk_bytes_t heard = rig_heard(&rig, client);
    HK_CHECK(hk_bytes_start_with(heard, HK_BYTES("event: mercure\n")));
    HK_CHECK(memmem(heard.at, heard.length, ":\n\n", 3) == NULL);
    rig_end(&rig);
}

HK_TEST(any_number_of_streams_can_be_handed_over_at_once)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int files = hk_open_files(), ends[2];
    for (int i = 0; i < 300; i++) {
        HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        HK_CHECK_OK(hk_loop_attach(rig.loop, ends[0], 4711));
        close(ends[1]);
    }
    rig_turn(&rig);
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(0, rig.calls.timeout_ms);
    HK_CHECK_EQUAL_INT(files, hk_open_files());
    rig_end(&rig);
}

HK_TEST(a_stream_whose_subscriber_has_gone_meanwhile_is_told_when_to_come_back)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    rig_pair(&rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, 4711));
    check_farewell(HK_BYTES(""), rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_stream_ends_for_whoever_shares_its_socket)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    uint64_t serial = hk_subscriber_serial(register_subscriber(&rig, "/a", NULL));
    rig_pair(&rig, &client, &server);
    int copy = dup(server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, serial));
    rig_run(&rig);
    hk_hub_disconnect(rig.hub, HK_BYTES("somebody"));
    check_farewell(HK_BYTES(":\n\n"), rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    rig_run(&rig);
    close(copy);
    rig_end(&rig);
}

HK_TEST(a_loop_without_a_gate_serves_streams_and_no_requests)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    hk_loop_free(rig.loop);
    rig.options.gate = NULL;
    HK_CHECK_OK(hk_loop_new(hk_test_alloc(), &rig.options, &rig.loop));
    rig_pair(&rig, &client, &server);
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_adopt(rig.loop, server, HK_BYTES("")));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_listen(rig.loop, server, false));
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, hk_subscriber_serial(register_subscriber(&rig, "/a", NULL))));
    HK_CHECK_BYTES(":\n\n", rig_heard(&rig, client));
    rig_end(&rig);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

HK_TEST(a_subscriber_that_is_not_wanted_any_more_is_told_when_to_come_back)
{
    rig_t rig;
    int client, server, other = -1;
    rig_begin(&rig, NULL);
    other = rig_subscribe(&rig, "match=/a");
    rig_pair(&rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, hk_subscriber_serial(register_subscriber(&rig, "/a", NULL))));
    HK_CHECK_BYTES(":\n\n", rig_heard(&rig, client));
    HK_CHECK_EQUAL_UINT(1, hk_hub_disconnect(rig.hub, HK_BYTES("somebody")));
    check_farewell(HK_BYTES(""), rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    HK_CHECK(!rig_is_closed(&rig, other));
    rig_end(&rig);
}

HK_TEST(what_is_on_its_way_to_a_subscriber_alone_comes_before_the_farewell)
{
    rig_t rig;
    int client, server;
    rig_begin(&rig, NULL);
    hk_subscriber_t *subscriber = register_subscriber(&rig, "/a", NULL);
    rig_pair(&rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig.loop, server, hk_subscriber_serial(subscriber)));
    HK_CHECK_BYTES(":\n\n", rig_heard(&rig, client));
    HK_CHECK_OK(hk_hub_control(rig.hub, subscriber, HK_BYTES(": wait\n\n")));
    hk_hub_close(rig.hub, subscriber, HK_CLOSING_LIFETIME);
    check_farewell(HK_BYTES(": wait\n\n"), rig_heard(&rig, client));
    rig_end(&rig);
}

HK_TEST(nothing_is_said_to_a_connection_that_is_broken)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)rig_subscribe(&rig, "match=/a");
    rig.calls.always[HK_CALL_SEND] = true;
    rig.calls.errors[HK_CALL_SEND] = EPIPE;
    long sends = rig.calls.counts[HK_CALL_SEND];
    rig_publish(&rig, "/a", "one");
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(1, rig.calls.counts[HK_CALL_SEND] - sends);
    rig_end(&rig);
}

HK_TEST(a_subscriber_that_has_no_connection_yet_is_unsubscribed_when_it_ends)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)register_subscriber(&rig, "/a", NULL);
    HK_CHECK_EQUAL_UINT(1, hk_hub_disconnect(rig.hub, HK_BYTES("somebody")));
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    rig_end(&rig);
}

HK_TEST(within_an_event_nothing_is_said)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_subscribe(&rig, "match=/a");
    rig.calls.send_limit = 5;
    rig_publish(&rig, "/a", "one");
    rig_turn(&rig);
    rig.calls.send_limit = 0;
    hk_hub_shutdown(rig.hub);
    HK_CHECK_BYTES("id: x", rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_head_that_has_not_left_yet_is_followed_by_nothing_when_the_subscriber_ends)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig.calls.send_limit = 5;
    rig_write(client, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
    hk_ask_t *ask;
    while (hk_loop_next(rig.loop, 0, &ask) != HK_OK) {
        rig_turn(&rig);
    }
    rig_answer_hub(&rig, ask);
    rig_turn(&rig);
    hk_hub_shutdown(rig.hub);
    HK_CHECK(hk_bytes_start_with(HK_BYTES(OPENING), rig_heard(&rig, client)));
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t length = sizeof(value);
    HK_CHECK(getsockopt(fd, level, name, &value, &length) == 0);
    return value;
}

/* A connection whose other end is the test's. */
static int tcp_pair(rig_t *rig)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_INET, SOCK_STREAM, 0);
    HK_CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 1) == 0);
    HK_CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    HK_CHECK(connect(client, (struct sockaddr *)&address, length) == 0);
    int server = accept(listener, NULL, NULL);
    HK_CHECK(server >= 0);
    close(listener);
    (void)rig_keep(rig, client);
    return server;
}

HK_TEST(streams_have_the_options_that_were_asked_for_whether_accepted_or_handed_over)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.send_buffer = 20000;
    rig_begin(&rig, &options);
    rig_listen(&rig);
    for (int i = 0; i < 3; i++) {
        long calls = rig.calls.counts[HK_CALL_SET_OPTION];
        int client = rig_connect(&rig);
        rig_write(client, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
        (void)rig_await(&rig, client, strlen(OPENING));
        const hk_connection_t *stream = HK_OWNER(rig.loop->phases[HK_PHASE_STREAM].previous, hk_connection_t, link);
        HK_CHECK_EQUAL_INT(40000, option(stream->watch.fd, SOL_SOCKET, SO_SNDBUF));
        HK_CHECK_EQUAL_INT(30000, option(stream->watch.fd, IPPROTO_TCP, TCP_USER_TIMEOUT));
        HK_CHECK_EQUAL_INT(1, option(stream->watch.fd, IPPROTO_TCP, TCP_NODELAY));
        HK_CHECK(i == 0 || calls == rig.calls.counts[HK_CALL_SET_OPTION]);
    }
    int copy = tcp_pair(&rig);
    HK_CHECK_OK(hk_loop_attach(rig.loop, copy, hk_subscriber_serial(register_subscriber(&rig, "/a", NULL))));
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(40000, option(copy, SOL_SOCKET, SO_SNDBUF));
    HK_CHECK_EQUAL_INT(30000, option(copy, IPPROTO_TCP, TCP_USER_TIMEOUT));
    int local, server;
    rig_pair(&rig, &local, &server);
    HK_CHECK_OK(hk_loop_adopt(rig.loop, server, HK_BYTES("GET " HUB "?match=/a HTTP/1.1" HELLO)));
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(40000, option(server, SOL_SOCKET, SO_SNDBUF));
    rig_end(&rig);
}
