#include "hk_gate_support.h"

#define STREAM "GET " HUB "?match=/a"
#define TOKEN "POST " HUB "|Authorization: Bearer t|" FORM
#define HEAD "HTTP/1.1 200 OK\r\n"

static void allow(setup_t setup, const char *lines, const char *subject, int64_t expires_at)
{
    remember(setup.gate, lines, HK_BYTES(HEAD), grant_of("/a", "/a", subject, expires_at));
}

static hk_status_t ask(setup_t setup, const char *lines)
{
    hk_gate_answer_t answer;
    return serve(setup.gate, lines, HK_BYTES("topic=/a"), &answer);
}

static hk_gate_stats_t stats_of(setup_t setup)
{
    hk_gate_stats_t stats;
    hk_gate_read_stats(setup.gate, &stats);
    return stats;
}

HK_TEST(what_was_not_decided_is_asked_and_what_was_is_answered_for_the_same_values_alone)
{
    setup_t setup = set_up(gate_options());
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, TOKEN));
    allow(setup, STREAM "|Authorization: Bearer a", "alice", HK_NEVER);
    allow(setup, TOKEN, "press", HK_NEVER);
    HK_CHECK_OK(ask(setup, STREAM "|Authorization: Bearer a|User-Agent: x"));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM "|Authorization: Bearer b"));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM "&match=/b|Authorization: Bearer a"));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM "|Authorization: Bearer a|Origin: https://x.example"));
    HK_CHECK_OK(ask(setup, TOKEN));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, "POST " HUB "|Authorization: Bearer T|" FORM));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, "HEAD " HUB "?match=/a|Authorization: Bearer a"));
    tear_down(setup);
}

HK_TEST(the_figures_tell_hits_from_want_of_a_decision_and_from_other_reasons)
{
    setup_t setup = set_up(gate_options());
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, "OPTIONS " HUB));
    allow(setup, STREAM, "alice", HK_NEVER);
    HK_CHECK_OK(ask(setup, STREAM));
    HK_CHECK_OK(ask(setup, STREAM));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM "|Last-Event-ID: \x80"));
    hk_gate_stats_t stats = stats_of(setup);
    HK_CHECK_EQUAL_UINT(2, stats.hits);
    HK_CHECK_EQUAL_UINT(1, stats.misses);
    HK_CHECK_EQUAL_UINT(3, stats.asks);
    HK_CHECK_EQUAL_UINT(1, stats.decisions);
    HK_CHECK(stats.bytes > 200 && stats.bytes < 2000);
    hk_gate_forget(setup.gate, HK_BYTES(""));
    HK_CHECK_EQUAL_UINT(0, stats_of(setup).decisions + stats_of(setup).bytes);
    tear_down(setup);
}

HK_TEST(the_end_of_a_grant_is_compared_with_the_clock_each_time)
{
    setup_t setup = set_up(gate_options());
    request_t request;
    write_request(STREAM, &request);
    allow(setup, STREAM, "alice", WALL + 10);
    static const struct {
        int64_t after;
        hk_status_t status;
    } times[] = {{0, HK_OK}, {9, HK_OK}, {-1000, HK_OK}, {10, HK_UNKNOWN}, {9, HK_UNKNOWN}};
    for (size_t i = 0; i < sizeof(times) / sizeof(*times); i++) {
        hk_gate_request_t whole = {.head = &request.head, .now = NOW, .wall = WALL + times[i].after};
        hk_gate_answer_t answer;
        HK_CHECK_STATUS(times[i].status, hk_gate_serve(setup.gate, &whole, &answer));
    }
    HK_CHECK_EQUAL_UINT(0, stats_of(setup).decisions);
    HK_CHECK_EQUAL_UINT(2, stats_of(setup).misses);
    allow(setup, STREAM, "alice", HK_NEVER);
    hk_gate_request_t late = {.head = &request.head, .now = NOW, .wall = INT64_MAX};
    hk_gate_answer_t answer;
    HK_CHECK_OK(hk_gate_serve(setup.gate, &late, &answer));
    tear_down(setup);
}

HK_TEST(the_decisions_about_one_subject_or_about_all_are_forgotten)
{
    setup_t setup = set_up(gate_options());
    allow(setup, STREAM "|Authorization: a", "alice", HK_NEVER);
    allow(setup, STREAM "|Authorization: b", "bob", HK_NEVER);
    allow(setup, STREAM, "", HK_NEVER);
    hk_gate_forget(setup.gate, HK_BYTES("alice"));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM "|Authorization: a"));
    HK_CHECK_OK(ask(setup, STREAM "|Authorization: b"));
    HK_CHECK_OK(ask(setup, STREAM));
    hk_gate_forget(setup.gate, HK_BYTES(""));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM "|Authorization: b"));
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM));
    tear_down(setup);
}

HK_TEST(a_decision_asked_for_before_something_was_forgotten_is_not_remembered_after)
{
    setup_t setup = set_up(gate_options());
    hk_buf_t key;
    hk_buf_init(&key, hk_test_alloc());
    uint64_t epoch;
    key_of(setup.gate, STREAM, &key, &epoch);
    hk_gate_forget(setup.gate, HK_BYTES("somebody"));
    hk_grant_t *grant = grant_of("/a", "", "alice", HK_NEVER);
    hk_decision_t decision = {.key = hk_buf_bytes(&key), .epoch = epoch, .grant = grant, .head = HK_BYTES(HEAD)};
    HK_CHECK_OK(hk_gate_remember(setup.gate, &decision));
    HK_CHECK_EQUAL_UINT(1, grant->references);
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM));
    decision.epoch = epoch + 1;
    HK_CHECK_OK(hk_gate_remember(setup.gate, &decision));
    HK_CHECK_EQUAL_UINT(2, grant->references);
    HK_CHECK_OK(ask(setup, STREAM));
    decision.epoch = epoch + 2;
    HK_CHECK_OK(hk_gate_remember(setup.gate, &decision));
    HK_CHECK_EQUAL_UINT(3, grant->references);
    hk_grant_release(grant);
    hk_buf_release(&key);
    tear_down(setup);
}

HK_TEST(a_decision_without_a_key_is_not_remembered)
{
    setup_t setup = set_up(gate_options());
    hk_grant_t *grant = grant_of("/a", "", "alice", HK_NEVER);
    hk_decision_t decision = {.grant = grant, .head = HK_BYTES(HEAD)};
    HK_CHECK_OK(hk_gate_remember(setup.gate, &decision));
    HK_CHECK_EQUAL_UINT(0, stats_of(setup).decisions);
    hk_grant_release(grant);
    tear_down(setup);
}

HK_TEST(a_new_decision_for_the_same_values_replaces_the_former)
{
    setup_t setup = set_up(gate_options());
    allow(setup, STREAM, "alice", HK_NEVER);
    allow(setup, STREAM, "bob", HK_NEVER);
    hk_gate_answer_t answer;
    HK_CHECK_OK(serve(setup.gate, STREAM, HK_BYTES(""), &answer));
    HK_CHECK_BYTES("bob", hk_subscriber_grant(answer.subscriber)->subject);
    HK_CHECK_EQUAL_UINT(1, stats_of(setup).decisions);
    tear_down(setup);
}

HK_TEST(nothing_is_remembered_where_nothing_may_be)
{
    hk_gate_options_t options = gate_options();
    options.max_table_bytes = 0;
    setup_t setup = set_up(options);
    allow(setup, STREAM, "alice", HK_NEVER);
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, STREAM));
    tear_down(setup);
}

HK_TEST(a_gate_keeps_copies_of_its_options)
{
    char path[] = "/hub", name[] = "token";
    hk_bytes_t names[] = {hk_test_text(name)};
    hk_network_t networks[] = {{4, 8, {10}}};
    hk_gate_options_t options = gate_options();
    options.path = hk_test_text(path);
    options.cookie_names = names;
    options.cookie_name_count = 1;
    options.trusted_proxies = networks;
    options.trusted_proxy_count = 1;
    setup_t setup = set_up(options);
    memset(path, 'x', 4);
    memset(name, 'x', 5);
    names[0] = HK_BYTES("");
    networks[0].family = 6;
    allow(setup, "GET /hub|Cookie: token=a", "alice", HK_NEVER);
    HK_CHECK_STATUS(HK_UNKNOWN, ask(setup, "GET /hub|Cookie: token=b"));
    HK_CHECK_OK(ask(setup, "GET /hub|Cookie: xxxxx=b; token=a"));
    request_t request;
    write_request("GET /hub|X-Forwarded-For: 203.0.113.1", &request);
    HK_CHECK_BYTES("203.0.113.1", hk_gate_address(setup.gate, &request.head, HK_BYTES("10.0.0.1")));
    tear_down(setup);
}

HK_TEST(a_gate_that_was_not_made_can_be_freed)
{
    hk_gate_free(NULL);
}

HK_TEST(a_request_that_is_known_is_answered_without_allocating)
{
    setup_t setup = set_up(gate_options());
    allow(setup, STREAM, "alice", HK_NEVER);
    request_t request;
    write_request(STREAM "|Last-Event-ID: \x80", &request);
    hk_gate_request_t whole = {.head = &request.head, .now = NOW, .wall = WALL};
    hk_gate_answer_t answer;
    HK_CHECK_STATUS(HK_UNKNOWN, hk_gate_serve(setup.gate, &whole, &answer));
    size_t before = hk_test_requests();
    HK_CHECK_STATUS(HK_UNKNOWN, hk_gate_serve(setup.gate, &whole, &answer));
    HK_CHECK_EQUAL_UINT(before, hk_test_requests());
    tear_down(setup);
}

/* --- when an answer was given -------------------------------------------------------------------------------------- */

HK_TEST(answers_say_when_they_were_given_if_they_are_to)
{
    hk_gate_options_t options = gate_options();
    setup_t setup = set_up(options);
    HK_CHECK_BYTES("", hk_gate_date(setup.gate, WALL));
    tear_down(setup);
    options.dates = true;
    setup = set_up(options);
    HK_CHECK_BYTES("date: Tue, 14 Nov 2023 22:13:20 GMT\r\n", hk_gate_date(setup.gate, WALL));
    hk_gate_answer_t answer;
    remember(setup.gate, "GET " HUB "?match=/a", HK_BYTES("H\r\nX: y\r\n"), grant_of("/a", "", "", HK_NEVER));
    HK_CHECK_OK(serve(setup.gate, "GET " HUB "?match=/a", HK_BYTES(""), &answer));
    HK_CHECK_BYTES("H\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\nX: y\r\n\r\n", answer.head);
    remember(setup.gate, "POST " HUB "|" FORM, HK_BYTES("H\r\nX: y\r\n"), grant_of("", "*", "", HK_NEVER));
    HK_CHECK_OK(serve(setup.gate, "POST " HUB "|" FORM, HK_BYTES("topic=/a&id=x"), &answer));
    HK_CHECK_BYTES("H\r\ndate: Tue, 14 Nov 2023 22:13:20 GMT\r\nX: y\r\ncontent-length: 1\r\n\r\n", answer.head);
    tear_down(setup);
}
