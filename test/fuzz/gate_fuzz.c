/* gate_fuzz.c: a request has the key of what Ruby is shown of it, and what is answered is one head and one event.
 *
 *     legacy, one byte │ head │ body
 */
#include "hk_gate.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HUB HK_BYTES("/.well-known/mercure")

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

typedef struct request {
    hk_http1_header_t headers[HK_HTTP1_HEADERS];
    hk_http1_request_t head;
    size_t consumed;
} request_t;

static bool parse(hk_bytes_t input, request_t *request)
{
    hk_http1_scan_t scan = {0};
    request->head = (hk_http1_request_t){.headers = request->headers, .header_capacity = HK_HTTP1_HEADERS};
    return hk_http1_parse_request(input, &hk_http1_default_limits, &scan, &request->head, &request->consumed) == HK_OK;
}

static void set_up(bool legacy, hk_hub_t **hub, hk_gate_t **gate)
{
    static const hk_bytes_t names[] = {{"token", 5}, {"old", 3}};
    static const hk_network_t networks[] = {{4, 9, {10}}, {6, 33, {0x20, 1}}};
    hk_hub_options_t of_hub = {
        .history_bytes = 1 << 16, .comparable_path = HUB, .topic_table_bytes = 1 << 16, .secret = {1, 2}};
    of_hub.hub_url.parts[HK_URL_PROTOCOL] = HK_BYTES("https");
    of_hub.hub_url.parts[HK_URL_HOSTNAME] = HK_BYTES("a.example");
    of_hub.hub_url.parts[HK_URL_PATHNAME] = HUB;
    of_hub.hub_url.origin = HK_BYTES("https://a.example");
    hk_gate_options_t of_gate = {
        .path = HUB,
        .cookie_names = names,
        .cookie_name_count = 2,
        .legacy = legacy,
        .trusted_proxies = networks,
        .trusted_proxy_count = 2,
        .max_table_bytes = 1 << 16,
        .max_topics = 3,
        .max_topic_bytes = 40,
        .max_id_bytes = 10,
        .max_type_bytes = 10,
        .max_body_bytes = 1000,
        .secret = {3, 4},
    };
    check(hk_hub_new(hk_alloc_default(), &of_hub, hub) == HK_OK);
    check(hk_gate_new(hk_alloc_default(), &of_gate, *hub, gate) == HK_OK);
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

static void append(hk_buf_t *out, hk_bytes_t bytes)
{
    check(hk_buf_append(out, bytes) == HK_OK);
}

static void write_shown(hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *out)
{
    append(out, head->method);
    append(out, HK_BYTES(" "));
    append(out, head->path);
    if (head->query.at != NULL) {
        append(out, HK_BYTES("?"));
        check(hk_gate_shown_query(gate, head, out) == HK_OK);
    }
    append(out, head->minor == 0 ? HK_BYTES(" HTTP/1.0\r\n") : HK_BYTES(" HTTP/1.1\r\n"));
    bool has_host = false;
    for (size_t i = 0; i < head->header_count; i++) {
        if (hk_gate_shown_header(gate, head, head->headers[i].name)) {
            append(out, head->headers[i].name);
            append(out, HK_BYTES(": "));
            append(out, head->headers[i].value);
            append(out, HK_BYTES("\r\n"));
            has_host = has_host || hk_bytes_equal_ignoring_case(head->headers[i].name, HK_BYTES("host"));
        }
    }
    append(out, has_host || head->minor == 0 ? HK_BYTES("Cookie: ") : HK_BYTES("Host: x\r\nCookie: "));
    check(hk_gate_shown_cookie(gate, head, out) == HK_OK);
    append(out, HK_BYTES("\r\n\r\n"));
}

static void check_shown(hk_gate_t *gate, const hk_http1_request_t *head, hk_bytes_t key)
{
    hk_buf_t shown, key_of_shown;
    hk_buf_init(&shown, hk_alloc_default());
    hk_buf_init(&key_of_shown, hk_alloc_default());
    write_shown(gate, head, &shown);
    request_t request;
    check(parse(hk_buf_bytes(&shown), &request));
    uint64_t epoch;
    check(hk_gate_key(gate, &request.head, &key_of_shown, &epoch) == HK_OK);
    check(hk_bytes_equal(key, hk_buf_bytes(&key_of_shown)));
    hk_buf_release(&shown);
    hk_buf_release(&key_of_shown);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

static void grant_everything(hk_gate_t *gate, hk_bytes_t key, uint64_t epoch)
{
    hk_matcher_options_t all = {.type = HK_BYTES("exact"), .pattern = HK_BYTES("*"), .kind = HK_MATCHER_ALL};
    hk_matcher_t *matcher;
    check(hk_matcher_new(hk_alloc_default(), &all, &matcher) == HK_OK);
    hk_grant_subscription_t subscription = {.matcher = matcher};
    hk_grant_options_t options = {
        .subscriptions = &subscription,
        .subscription_count = 1,
        .publishes = &matcher,
        .publish_count = 1,
        .expires_at = HK_NEVER,
    };
    hk_decision_t decision = {.key = key, .epoch = epoch, .head = HK_BYTES("HTTP/1.1 200 OK\r\n")};
    check(hk_grant_new(hk_alloc_default(), &options, &decision.grant) == HK_OK);
    check(hk_gate_remember(gate, &decision) == HK_OK);
    hk_grant_release(decision.grant);
    hk_matcher_release(matcher);
}

/* Takes a line off; checks that it holds no control character. */
static hk_bytes_t line_of(hk_bytes_t *text, hk_bytes_t end)
{
    const char *found = memmem(text->at, text->length, end.at, end.length);
    check(found != NULL);
    hk_bytes_t line = hk_bytes(text->at, (size_t)(found - text->at));
    for (size_t i = 0; i < line.length; i++) {
        check((unsigned char)line.at[i] >= 0x20 || end.length == 1);
        check(line.at[i] != '\r' && line.at[i] != '\n');
    }
    size_t taken = line.length + end.length;
    *text = hk_bytes(text->at + taken, text->length - taken);
    return line;
}

static void check_head(hk_bytes_t head, size_t most_lines)
{
    size_t lines = 0;
    while (line_of(&head, HK_BYTES("\r\n")).length > 0) {
        lines++;
    }
    check(head.length == 0 && lines >= 1 && lines <= most_lines);
}

static void check_event(hk_bytes_t frame, hk_bytes_t id)
{
    hk_bytes_t line = line_of(&frame, HK_BYTES("\n"));
    if (hk_bytes_start_with(line, HK_BYTES("event: "))) {
        check(line.length > 7 && hk_bytes_printable(line) && !hk_bytes_equal(line, HK_BYTES("event: mercure")));
        line = line_of(&frame, HK_BYTES("\n"));
    }
    if (hk_bytes_start_with(line, HK_BYTES("retry: "))) {
        check(line.length > 7 && line.length < 20);
        line = line_of(&frame, HK_BYTES("\n"));
    }
    check(hk_bytes_start_with(line, HK_BYTES("id: ")));
    check(hk_bytes_equal(hk_bytes(line.at + 4, line.length - 4), id) && hk_bytes_printable(id));
    line = line_of(&frame, HK_BYTES("\n"));
    do {
        check(hk_bytes_start_with(line, HK_BYTES("data: ")) && hk_bytes_utf8(line));
        line = line_of(&frame, HK_BYTES("\n"));
    } while (line.length > 0);
    check(frame.length == 0);
}

static void check_answer(hk_hub_t *hub, hk_gate_t *gate, const hk_gate_request_t *request)
{
    hk_gate_answer_t answer;
    hk_status_t status = hk_gate_serve(gate, request, &answer);
    const hk_log_t *log = hk_hub_log(hub);
    check(status == HK_OK || (status == HK_UNKNOWN && hk_log_head(log) == 0));
    if (status == HK_OK && answer.kind == HK_GATE_PUBLISHED) {
        hk_record_t *record = hk_log_at(log, 1);
        check(record != NULL && hk_bytes_equal(record->id, answer.body));
        check(record->topic_count >= 1 && record->topic_count <= 3);
        check_head(answer.head, 3);
        check_event(record->frame, record->id);
    } else if (status == HK_OK) {
        check_head(answer.head, 3);
        hk_hub_unsubscribe(hub, answer.subscriber, 0);
    }
}

static void check_address(const hk_gate_t *gate, const hk_http1_request_t *head, hk_bytes_t peer)
{
    hk_bytes_t address = hk_gate_address(gate, head, peer);
    bool inside = address.at == peer.at;
    for (size_t i = 0; i < head->header_count && !inside; i++) {
        hk_bytes_t value = head->headers[i].value;
        inside =
            address.length == 0 || (address.at >= value.at && address.at + address.length <= value.at + value.length);
    }
    check(inside);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    request_t parsed;
    hk_bytes_t input = size > 1 ? hk_bytes((const char *)data + 1, size - 1) : HK_BYTES("");
    if (!parse(input, &parsed)) {
        return 0;
    }
    hk_hub_t *hub;
    hk_gate_t *gate;
    set_up(data[0] & 1, &hub, &gate);
    hk_buf_t key;
    hk_buf_init(&key, hk_alloc_default());
    uint64_t epoch;
    check(hk_gate_key(gate, &parsed.head, &key, &epoch) == HK_OK);
    if (key.length > 0) {
        check_shown(gate, &parsed.head, hk_buf_bytes(&key));
        grant_everything(gate, hk_buf_bytes(&key), epoch);
    }
    hk_gate_request_t request = {
        .head = &parsed.head,
        .body = hk_bytes(input.at + parsed.consumed, input.length - parsed.consumed),
        .body_is_whole = true,
        .peer = HK_BYTES("10.1.2.3"),
    };
    check_answer(hub, gate, &request);
    check_address(gate, &parsed.head, request.peer);
    hk_buf_release(&key);
    hk_gate_free(gate);
    hk_hub_free(hub);
    return 0;
}
