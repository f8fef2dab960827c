/* hk_gate_support.h: a gate with its hub, and requests written in short, for the tests of the gate. */
#ifndef HK_GATE_SUPPORT_H
#define HK_GATE_SUPPORT_H

#include "hk_gate.h"
#include "hk_test.h"

#include <stdio.h>
#include <string.h>

#define HUB "/.well-known/mercure"
#define FORM "Content-Type: application/x-www-form-urlencoded"

static const int64_t NOW = INT64_C(7000000000000);
static const int64_t WALL = INT64_C(1700000000000000000);

static const hk_bytes_t COOKIE_NAMES[] = {{"__Secure-mercure_access_token", 29}, {"mercureAuthorization", 20}};

/* --- a gate ------------------------------------------------------------------------------------------------------- */

static inline hk_hub_options_t hub_options(void)
{
    return (hk_hub_options_t){
        .history_bytes = 1 << 20,
        .hub_url =
            {
                .parts = {[HK_URL_PROTOCOL] = HK_BYTES("https"),
                          [HK_URL_HOSTNAME] = HK_BYTES("example.com"),
                          [HK_URL_PATHNAME] = HK_BYTES(HUB)},
                .origin = HK_BYTES("https://example.com"),
            },
        .comparable_path = HK_BYTES(HUB),
        .topic_table_bytes = 1 << 20,
        .secret = {3, 4},
    };
}

static inline hk_gate_options_t gate_options(void)
{
    return (hk_gate_options_t){
        .path = HK_BYTES(HUB),
        .cookie_names = COOKIE_NAMES,
        .cookie_name_count = 2,
        .counts_loopback = true,
        .max_table_bytes = 1 << 20,
        .max_topics = 3,
        .max_topic_bytes = 32,
        .max_id_bytes = 8,
        .max_type_bytes = 8,
        .max_body_bytes = 300,
        .secret = {1, 2},
    };
}

typedef struct setup {
    hk_hub_t *hub;
    hk_gate_t *gate;
} setup_t;

/* HK_OK, or HK_NO_MEMORY with nothing to be given back. */
static inline hk_status_t try_set_up(setup_t *setup, hk_hub_options_t hub, hk_gate_options_t gate)
{
    if (hk_hub_new(hk_test_alloc(), &hub, &setup->hub) != HK_OK) {
        return HK_NO_MEMORY;
    }
    if (hk_gate_new(hk_test_alloc(), &gate, setup->hub, &setup->gate) != HK_OK) {
        hk_hub_free(setup->hub);
        return HK_NO_MEMORY;
    }
    return HK_OK;
}

static inline setup_t set_up(hk_gate_options_t options)
{
    setup_t setup;
    HK_CHECK_OK(try_set_up(&setup, hub_options(), options));
    return setup;
}

static inline void tear_down(setup_t setup)
{
    hk_gate_free(setup.gate);
    hk_hub_free(setup.hub);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

typedef struct request {
    char text[8192];
    hk_http1_header_t fields[HK_HTTP1_HEADERS];
    hk_http1_request_t head;
} request_t;

/* "POST /a?b=c|Origin: x" with HTTP/1.1 and Host: example.com, unless it says others. */
static inline void write_request(const char *lines, request_t *request)
{
    char *at = request->text;
    bool first = true;
    for (const char *line = lines; line != NULL; first = false) {
        const char *stop = strchr(line, '|');
        int length = stop != NULL ? (int)(stop - line) : (int)strlen(line);
        bool versioned = !first || strstr(lines, " HTTP/1.") != NULL;
        at += sprintf(at, "%.*s%s\r\n", length, line, versioned ? "" : " HTTP/1.1");
        line = stop != NULL ? stop + 1 : NULL;
    }
    at += sprintf(at, "%s\r\n", strcasestr(lines, "|Host:") != NULL ? "" : "Host: example.com\r\n");
    request->head = (hk_http1_request_t){.headers = request->fields, .header_capacity = HK_HTTP1_HEADERS};
    hk_http1_scan_t scan = {0};
    size_t consumed;
    hk_test_note("the request %s", lines);
    HK_CHECK_OK(hk_http1_parse_request(hk_bytes(request->text, (size_t)(at - request->text)), &hk_http1_default_limits,
                                       &scan, &request->head, &consumed));
}

/* What was appended to `key` before goes. */
static inline void key_of(hk_gate_t *gate, const char *lines, hk_buf_t *key, uint64_t *epoch)
{
    request_t request;
    write_request(lines, &request);
    hk_buf_clear(key);
    HK_CHECK_OK(hk_gate_key(gate, &request.head, key, epoch));
}

/* --- decisions ---------------------------------------------------------------------------------------------------- */

/* A grant for everything exact that is listed: "/a /b". NULL when there is no memory. */
static inline hk_grant_t *grant_of(const char *subscribes, const char *publishes, const char *subject,
                                   int64_t expires_at)
{
    hk_matcher_t *matchers[2][8];
    size_t counts[2] = {0, 0};
    bool enough = true;
    for (size_t side = 0; side < 2; side++) {
        hk_bytes_t list = hk_test_text(side == 0 ? subscribes : publishes);
        while (list.length > 0) {
            hk_bytes_t pattern = hk_test_field(&list, ' ');
            hk_matcher_options_t options = {.type = HK_BYTES("exact"), .pattern = pattern, .kind = HK_MATCHER_EXACT};
            if (hk_bytes_equal(pattern, HK_BYTES("*"))) {
                options.kind = HK_MATCHER_ALL;
            }
            if (hk_matcher_new(hk_test_alloc(), &options, &matchers[side][counts[side]]) != HK_OK) {
                enough = false;
                break;
            }
            counts[side]++;
        }
    }
    hk_grant_subscription_t subscriptions[8];
    for (size_t i = 0; i < counts[0]; i++) {
        subscriptions[i] = (hk_grant_subscription_t){.matcher = matchers[0][i]};
    }
    hk_grant_options_t options = {
        .subscriptions = subscriptions,
        .subscription_count = counts[0],
        .publishes = matchers[1],
        .publish_count = counts[1],
        .subject = hk_test_text(subject),
        .expires_at = expires_at,
    };
    hk_grant_t *grant = NULL;
    if (!enough || hk_grant_new(hk_test_alloc(), &options, &grant) != HK_OK) {
        grant = NULL;
    }
    for (size_t side = 0; side < 2; side++) {
        for (size_t i = 0; i < counts[side]; i++) {
            hk_matcher_release(matchers[side][i]);
        }
    }
    return grant;
}

/* Takes over the grant. */
static inline hk_status_t try_remember(hk_gate_t *gate, const char *lines, hk_bytes_t head, hk_grant_t *grant)
{
    request_t request;
    write_request(lines, &request);
    hk_buf_t key;
    hk_buf_init(&key, hk_test_alloc());
    uint64_t epoch = 0;
    hk_status_t status = grant != NULL ? hk_gate_key(gate, &request.head, &key, &epoch) : HK_NO_MEMORY;
    if (status == HK_OK) {
        hk_decision_t decision = {.key = hk_buf_bytes(&key), .epoch = epoch, .grant = grant, .head = head};
        status = hk_gate_remember(gate, &decision);
    }
    hk_buf_release(&key);
    hk_grant_release(grant);
    return status;
}

static inline void remember(hk_gate_t *gate, const char *lines, hk_bytes_t head, hk_grant_t *grant)
{
    HK_CHECK(grant != NULL);
    HK_CHECK_OK(try_remember(gate, lines, head, grant));
}

/* A request with a body, as it would be served now. The answer is borrowed as hk_gate_serve has it. */
static inline hk_status_t serve(hk_gate_t *gate, const char *lines, hk_bytes_t body, hk_gate_answer_t *answer)
{
    request_t request;
    write_request(lines, &request);
    hk_gate_request_t whole = {
        .head = &request.head,
        .body = body,
        .body_is_whole = true,
        .peer = HK_BYTES("192.0.2.1"),
        .now = NOW,
        .wall = WALL,
    };
    return hk_gate_serve(gate, &whole, answer);
}

#endif
