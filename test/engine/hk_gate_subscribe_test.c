#include "hk_address_ip.h"
#include "hk_gate_support.h"

#include "hk_gzip.h"
#include "hk_subscriber.h"

#define ROWS(rows) (sizeof(rows) / sizeof(*(rows)))
#define STREAM "GET " HUB "?match=/a"
#define HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"

static const int64_t SECOND = 1000000000;

static hk_gate_options_t options_of(bool legacy)
{
    hk_gate_options_t options = gate_options();
    options.legacy = legacy;
    return options;
}

/* With three events: "one", then one whose id the hub makes, then "three", which is private. */
static setup_t set_up_with_events(bool legacy)
{
    setup_t setup = set_up(options_of(legacy));
    static const char *const ids[] = {"one", "", "three"};
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topics_find(hk_hub_topics(setup.hub), HK_BYTES("/a"), &topic));
    for (size_t i = 0; i < ROWS(ids); i++) {
        hk_log_update_t update = {
            .topics = &topic, .topic_count = 1, .id = hk_test_text(ids[i]), .retry_ms = -1, .is_private = i == 2};
        HK_CHECK_OK(hk_hub_publish(setup.hub, &update, NOW, NULL));
    }
    return setup;
}

/* Subscribes once with a decision that is remembered for just these lines. */
static hk_status_t subscribe(setup_t setup, const char *lines, hk_gate_answer_t *answer)
{
    remember(setup.gate, lines, HK_BYTES(HEAD), grant_of("/a", "", "alice", HK_NEVER));
    return serve(setup.gate, lines, HK_BYTES(""), answer);
}

/* --- cursors ------------------------------------------------------------------------------------------------------ */

static const struct {
    const char *lines;
    const char *now, *legacy; /* the cursor that is answered by a hub of today and by one that serves 0.x; NULL: none */
} cursors[] = {
    {STREAM, NULL, NULL},
    {STREAM "|Last-Event-ID: one", "one", "one"},
    {STREAM "|last-event-id: earliest", "earliest", "earliest"},
    {STREAM "|Last-Event-ID: gone", "earliest", "earliest"},
    {STREAM "|Last-Event-ID: three", "three", "three"},
    {STREAM "&last_event_id=one", "one", "one"},
    {STREAM "&l%61st_event_id=%6Fne", "one", "one"},
    {STREAM "&last_event_id=gone&last_event_id=one", "earliest", "earliest"},
    {STREAM "&last_event_id=gone|Last-Event-ID: one", "one", "one"},
    {STREAM "&last_event_id=one|Last-Event-ID:", "one", "one"},
    {STREAM "&lastEventID=one", NULL, "one"},
    {STREAM "&Last-Event-ID=one", NULL, "one"},
    {STREAM "&last-event-id=one&LastEventID=one&last_event_id_=one&last_event_i=one", NULL, NULL},
    {STREAM "&Last-Event-ID=gone&lastEventID=one", NULL, "one"},
    {STREAM "&lastEventID=gone&last_event_id=one", "one", "one"},
    {STREAM "&lastEventID=&Last-Event-ID=one&last_event_id=", "#3", "one"},
    {STREAM "&last_event_id=&last_event_id=one", "#3", "#3"},
    {STREAM "&last_event_id", "#3", "#3"},
    {STREAM "&last_event_id=", "#3", "#3"},
    {STREAM "|Last-Event-ID:", "#3", "#3"},
    {STREAM "&last_event_id=+|Last-Event-ID:", "earliest", "earliest"},
};

HK_TEST(the_answer_says_where_a_stream_begins_if_the_request_named_an_event)
{
    for (size_t i = 0; i < 2 * ROWS(cursors); i++) {
        bool legacy = i % 2 == 1;
        const char *cursor = legacy ? cursors[i / 2].legacy : cursors[i / 2].now;
        setup_t setup = set_up_with_events(legacy);
        hk_gate_answer_t answer = {.body = HK_BYTES("former")};
        HK_CHECK_OK(subscribe(setup, cursors[i / 2].lines, &answer));
        char text[400] = HEAD "\r\n", sealed[HK_EVENT_ID_BYTES + 1] = "";
        if (cursor != NULL && strcmp(cursor, "#3") == 0) {
            hk_log_seal(hk_hub_log(setup.hub), 3, sealed);
            cursor = sealed;
        }
        if (cursor != NULL) {
            char *at = text + sprintf(text, HEAD "mercure-last-event-id: %s\r\n", cursor);
            at += legacy ? sprintf(at, "last-event-id: %s\r\n", cursor) : 0;
            sprintf(at, "\r\n");
        }
        HK_CHECK_BYTES(hk_test_text(text), answer.head);
        HK_CHECK_BYTES("", answer.body);
        HK_CHECK_EQUAL_INT(HK_GATE_SUBSCRIBED, answer.kind);
        hk_position_t from = cursor == NULL || cursor == sealed ? 3
                             : strcmp(cursor, "one") == 0       ? 1
                             : strcmp(cursor, "three") == 0     ? 3
                                                                : 0;
        HK_CHECK_EQUAL_UINT(from, hk_subscriber_cursor(answer.subscriber));
        tear_down(setup);
    }
}

static const char *const asked[] = {
    STREAM "|Last-Event-ID: one|Last-Event-ID: one",
    STREAM "|Last-Event-ID: one|last-event-id:",
    STREAM "|Last-Event-ID: \xC3\xA9",
    STREAM "|Last-Event-ID: a\tb",
    STREAM "&last_event_id=a%0D%0Aset-cookie:x",
    STREAM "&last_event_id=a%0Ab",
    STREAM "&last_event_id=%00",
    STREAM "&last_event_id=%7F",
    STREAM "&last_event_id=%C3%A9",
    STREAM "&last_event_id=%FF",
    STREAM "&last_event_id=%0A|Last-Event-ID:",
};

HK_TEST(a_cursor_that_only_Ruby_can_judge_is_asked)
{
    setup_t setup = set_up_with_events(true);
    hk_gate_answer_t answer = {0};
    for (size_t i = 0; i < ROWS(asked); i++) {
        HK_CHECK_STATUS(HK_UNKNOWN, subscribe(setup, asked[i], &answer));
        HK_CHECK(answer.head.at == NULL);
    }
    hk_hub_stats_t stats;
    hk_hub_read_stats(setup.hub, &stats);
    HK_CHECK_EQUAL_UINT(0, stats.subscribers);
    tear_down(setup);
}

HK_TEST(what_is_asked_takes_no_memory_however_often)
{
    setup_t setup = set_up(gate_options());
    hk_gate_answer_t answer;
    const char *lines = STREAM "&last_event_id=%0A";
    HK_CHECK_STATUS(HK_UNKNOWN, subscribe(setup, lines, &answer));
    size_t before = hk_test_bytes_in_use();
    for (size_t i = 0; i < 1000; i++) {
        HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, lines, HK_BYTES(""), &answer));
    }
    HK_CHECK_EQUAL_UINT(before, hk_test_bytes_in_use());
    tear_down(setup);
}

HK_TEST(no_event_id_of_the_log_begins_another_header)
{
    setup_t setup = set_up(gate_options());
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topics_find(hk_hub_topics(setup.hub), HK_BYTES("/a"), &topic));
    static const char *const ids[] = {"a\r\nx: y", "a\nb", "\x7F", "\xC3\xA9"};
    hk_gate_answer_t answer;
    for (size_t i = 0; i < ROWS(ids); i++) {
        hk_log_update_t update = {.topics = &topic, .topic_count = 1, .id = hk_test_text(ids[i]), .retry_ms = -1};
        HK_CHECK_OK(hk_hub_publish(setup.hub, &update, NOW, NULL));
        HK_CHECK_STATUS(i == 3 ? HK_OK : HK_UNKNOWN, subscribe(setup, STREAM "|Last-Event-ID:", &answer));
    }
    HK_CHECK_BYTES(HEAD "mercure-last-event-id: \xC3\xA9\r\n\r\n", answer.head);
    hk_hub_stats_t stats;
    hk_hub_read_stats(setup.hub, &stats);
    HK_CHECK_EQUAL_UINT(1, stats.subscribers);
    tear_down(setup);
}

/* --- capabilities ------------------------------------------------------------------------------------------------- */

HK_TEST(a_stream_that_asks_for_it_is_told_its_capability_and_shares_the_decision_with_others)
{
    setup_t setup = set_up_with_events(true);
    hk_gate_answer_t answer;
    static const char *const lines[] = {STREAM "|Hikyaku-Stream: 1", STREAM "|hikyaku-stream:1|Last-Event-ID: one",
                                        STREAM "|Hikyaku-Stream: matchers",
                                        STREAM "|hikyaku-stream: matchers |Last-Event-ID: one"};
    remember(setup.gate, STREAM, HK_BYTES(HEAD), grant_of("/a", "", "alice", HK_NEVER));
    for (size_t i = 0; i < 2 * ROWS(lines); i++) {
        HK_CHECK_OK(serve(setup.gate, lines[i % 4], HK_BYTES(""), &answer));
        char capability[HK_STREAM_CAPABILITY_BYTES], expected[400];
        HK_CHECK_OK(hk_hub_capability(setup.hub, answer.subscriber, capability));
        sprintf(expected, HEAD "%shikyaku-stream: %.*s\r\n\r\n",
                i % 2 == 1 ? "mercure-last-event-id: one\r\nlast-event-id: one\r\n" : "", (int)sizeof(capability),
                capability);
        HK_CHECK_BYTES(hk_test_text(expected), answer.head);
        hk_bytes_t bytes = hk_bytes(capability, sizeof(capability));
        HK_CHECK(hk_hub_find_changeable(setup.hub, bytes) == answer.subscriber);
    }
    tear_down(setup);
}

HK_TEST(a_stream_that_does_not_ask_for_it_has_no_capability)
{
    setup_t setup = set_up(gate_options());
    hk_gate_answer_t answer;
    static const char *const lines[] = {STREAM,
                                        STREAM "|Hikyaku-Stream: 0",
                                        STREAM "|Hikyaku-Stream:",
                                        STREAM "|Hikyaku-Stream: 11",
                                        STREAM "|Hikyaku-Stream: matcher",
                                        STREAM "|Hikyaku-Stream: 1|Hikyaku-Stream: matchers",
                                        STREAM "|Hikyaku-Stream: 1|Hikyaku-Stream: 1"};
    remember(setup.gate, STREAM, HK_BYTES(HEAD), grant_of("/a", "", "alice", HK_NEVER));
    for (size_t i = 0; i < ROWS(lines); i++) {
        HK_CHECK_OK(serve(setup.gate, lines[i], HK_BYTES(""), &answer));
        char capability[HK_STREAM_CAPABILITY_BYTES];
        HK_CHECK_BYTES(HEAD "\r\n", answer.head);
        HK_CHECK_STATUS(HK_NOT_FOUND, hk_hub_capability(setup.hub, answer.subscriber, capability));
    }
    tear_down(setup);
}

/* --- who, and how many -------------------------------------------------------------------------------------------- */

HK_TEST(a_subscriber_has_the_grant_and_waits_for_its_connection)
{
    setup_t setup = set_up(gate_options());
    hk_gate_answer_t answer;
    HK_CHECK_OK(subscribe(setup, STREAM, &answer));
    const hk_grant_t *grant = hk_subscriber_grant(answer.subscriber);
    HK_CHECK_BYTES("alice", grant->subject);
    HK_CHECK_EQUAL_UINT(2, grant->references);
    HK_CHECK(hk_subscriber_blocked(answer.subscriber));
    HK_CHECK(hk_subscriber_connection(answer.subscriber) == NULL);
    HK_CHECK_OK(serve(setup.gate, STREAM, HK_BYTES(""), &answer));
    HK_CHECK(hk_subscriber_grant(answer.subscriber) == grant && grant->references == 3);
    tear_down(setup);
}

HK_TEST(who_is_on_this_machine_is_counted_only_if_that_is_wanted)
{
    static const hk_network_t peers[] = {{4, 24, {192, 0, 2, 0}}};
    static const char *const clients[] = {"127.0.0.1", "127.255.0.3", "::1", "128.0.0.1", "127.0.0.1.example"};
    for (size_t i = 0; i < 2 * ROWS(clients); i++) {
        bool counts = i % 2 == 1 || i / 2 >= 3;
        hk_gate_options_t options = gate_options();
        options.counts_loopback = i % 2 == 1;
        options.trusted_proxies = peers;
        options.trusted_proxy_count = 1;
        setup_t setup = set_up(options);
        char lines[200];
        hk_gate_answer_t answer;
        hk_bytes_t client = hk_test_text(clients[i / 2]);
        hk_test_note("%s", clients[i / 2]);
        sprintf(lines, STREAM "|X-Forwarded-For: %s", clients[i / 2]);
        remember(setup.gate, lines, HK_BYTES(HEAD), grant_of("/a", "", "", HK_NEVER));
        HK_CHECK_OK(serve(setup.gate, lines, HK_BYTES(""), &answer));
        char room[HK_IP_CLIENT_BYTES];
        HK_CHECK_BYTES(counts ? hk_ip_client(client, room) : HK_BYTES(""), hk_subscriber_address(answer.subscriber));
        HK_CHECK_EQUAL_INT(counts, hk_gate_counts(setup.gate, client));
        HK_CHECK(!hk_gate_counts(setup.gate, HK_BYTES("192.0.2.1")));
        tear_down(setup);
    }
}

HK_TEST(a_subscriber_has_the_address_that_trusted_proxies_say)
{
    static const hk_network_t peers[] = {{4, 24, {192, 0, 2, 0}}};
    for (size_t trusted = 0; trusted < 2; trusted++) {
        hk_hub_options_t hub = hub_options();
        hub.max_of_address = 1;
        hk_gate_options_t options = gate_options();
        options.trusted_proxies = peers;
        options.trusted_proxy_count = trusted;
        setup_t setup;
        HK_CHECK_OK(try_set_up(&setup, hub, options));
        hk_gate_answer_t answer;
        HK_CHECK_OK(subscribe(setup, STREAM "|X-Forwarded-For: 203.0.113.5, 192.0.2.9", &answer));
        HK_CHECK_BYTES(trusted ? "203.0.113.5" : "192.0.2.1", hk_subscriber_address(answer.subscriber));
        hk_status_t other = subscribe(setup, STREAM "|X-Forwarded-For: 203.0.113.6", &answer);
        HK_CHECK_STATUS(trusted ? HK_OK : HK_UNKNOWN, other);
        tear_down(setup);
    }
}

HK_TEST(a_hub_that_is_full_or_stops_is_Ruby_s_to_explain)
{
    hk_hub_options_t hub = hub_options();
    hub.max_subscribers = 1;
    setup_t setup;
    HK_CHECK_OK(try_set_up(&setup, hub, gate_options()));
    hk_gate_answer_t answer;
    request_t request;
    HK_CHECK_OK(subscribe(setup, STREAM, &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, STREAM, HK_BYTES(""), &answer));
    hk_hub_unsubscribe(setup.hub, answer.subscriber, NOW);
    write_request(STREAM, &request);
    hk_gate_request_t late = {.head = &request.head, .stopping = true, .now = NOW, .wall = WALL};
    HK_CHECK_STATUS(HK_UNKNOWN, hk_gate_serve(setup.gate, &late, &answer));
    late.stopping = false;
    HK_CHECK_OK(hk_gate_serve(setup.gate, &late, &answer));
    tear_down(setup);
}

HK_TEST(a_grant_without_subscriptions_subscribes_nobody)
{
    setup_t setup = set_up(gate_options());
    remember(setup.gate, STREAM, HK_BYTES(HEAD), grant_of("", "/a", "", HK_NEVER));
    hk_gate_answer_t answer;
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, STREAM, HK_BYTES(""), &answer));
    tear_down(setup);
}

static const struct {
    const char *fields; /* of the head that was remembered */
    hk_stream_form_t form;
    hk_stream_coding_t coding;
} forms[] = {
    {"content-type: text/event-stream\r\n", HK_STREAM_EVENTS, HK_STREAM_IDENTITY},
    {"content-type: application/vnd.msgpack\r\nvary: Accept\r\n", HK_STREAM_MESSAGE_PACK, HK_STREAM_IDENTITY},
    {"x-content-type: application/vnd.msgpack\r\nx: content-encoding: gzip\r\n", HK_STREAM_EVENTS, HK_STREAM_IDENTITY},
    {"content-type: text/event-stream\r\nContent-Encoding:  gzip \r\n", HK_STREAM_EVENTS, HK_STREAM_GZIP},
    {"content-encoding: gzip\r\ncontent-type: application/vnd.msgpack\r\n", HK_STREAM_MESSAGE_PACK, HK_STREAM_GZIP},
};

HK_TEST(a_stream_is_what_its_head_says)
{
    for (size_t i = 0; i < ROWS(forms); i++) {
        char head[200];
        hk_gate_answer_t answer;
        setup_t setup = set_up(gate_options());
        if (forms[i].coding == HK_STREAM_GZIP && !hk_gzip_available()) {
            tear_down(setup);
            continue;
        }
        hk_test_note("row %zu", i);
        snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\n%s", forms[i].fields);
        remember(setup.gate, STREAM, hk_test_text(head), grant_of("/a", "", "alice", HK_NEVER));
        HK_CHECK_OK(serve(setup.gate, STREAM, HK_BYTES(""), &answer));
        bool coded = hk_subscriber_is(answer.subscriber, HK_SUBSCRIBER_CODED);
        HK_CHECK_EQUAL_INT(forms[i].form != HK_STREAM_EVENTS || forms[i].coding != HK_STREAM_IDENTITY, coded);
        if (coded) {
            HK_CHECK_EQUAL_INT(forms[i].form, hk_subscriber_coded(answer.subscriber)->form);
            HK_CHECK_EQUAL_INT(forms[i].coding, hk_subscriber_coded(answer.subscriber)->coding);
        }
        tear_down(setup);
    }
}

HK_TEST(a_stream_ends_when_its_grant_does)
{
    setup_t setup = set_up(gate_options());
    remember(setup.gate, STREAM, HK_BYTES(HEAD), grant_of("/a", "", "alice", WALL + 60 * SECOND));
    hk_gate_answer_t answer;
    HK_CHECK_OK(serve(setup.gate, STREAM, HK_BYTES(""), &answer));
    hk_hub_writable(setup.hub, answer.subscriber);
    HK_CHECK_OK(hk_hub_tick(setup.hub, NOW + 50 * SECOND));
    HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, hk_subscriber_closing(answer.subscriber));
    HK_CHECK_OK(hk_hub_tick(setup.hub, NOW + 61 * SECOND));
    HK_CHECK_EQUAL_INT(HK_CLOSING_EXPIRED, hk_subscriber_closing(answer.subscriber));
    tear_down(setup);
}

HK_TEST(without_memory_nobody_is_subscribed)
{
    HK_EACH_FAILING_ALLOCATION {
        setup_t setup;
        if (try_set_up(&setup, hub_options(), options_of(true)) == HK_OK) {
            const char *lines = STREAM "&last_event_id=%6Fne";
            hk_grant_t *grant = grant_of("/a", "", "alice", WALL + 1);
            hk_status_t status = try_remember(setup.gate, lines, HK_BYTES(HEAD), grant);
            hk_gate_answer_t answer = {0};
            if (status == HK_OK) {
                status = serve(setup.gate, lines, HK_BYTES(""), &answer);
            }
            HK_CHECK(status == HK_OK || (status == HK_NO_MEMORY && hk_test_failed()));
            hk_hub_stats_t stats;
            hk_hub_read_stats(setup.hub, &stats);
            HK_CHECK_EQUAL_UINT(status == HK_OK, stats.subscribers);
            HK_CHECK_EQUAL_INT(status == HK_OK, answer.subscriber != NULL);
            tear_down(setup);
        }
    }
}
