/* gate_dump.c: what the gate makes of requests.
 *
 * In, each beginning with a field of one letter:
 *
 *     L                           the hub serves 0.x; only before the first R
 *     T  family, bits, address    a trusted network: "4", "8", 16 bytes; only before the first R
 *     R  request, peer            head and body in one
 *
 * Out, for each R, a line of fields in hexadecimal with spaces between them: key, shown query, shown cookie, names of
 * the shown headers (line feeds between them), address, what became of it once everything was granted that can be
 * ("published", "subscribed", "asked", "malformed": that alone), head, body, and of an update topics (line feeds
 * between them), "private" or "", frame. What is published stays in the log.
 */
#include "dump.h"
#include "hk_gate.h"

enum { MOST_NETWORKS = 16 };

static const hk_bytes_t cookie_names[] = {{"__Secure-mercure_access_token", 29}, {"mercureAuthorization", 20}};
static hk_network_t networks[MOST_NETWORKS];
static hk_gate_options_t options = {
    .cookie_names = cookie_names,
    .trusted_proxies = networks,
    .max_table_bytes = 1 << 20,
    .max_topics = 3,
    .max_topic_bytes = 40,
    .max_id_bytes = 10,
    .max_type_bytes = 10,
    .max_body_bytes = 1024,
    .secret = {1, 2},
};
static hk_hub_t *hub;
static hk_gate_t *gate;

static void check(hk_status_t status)
{
    if (status != HK_OK) {
        dump_fail(hk_status_text(status));
    }
}

static void print(hk_bytes_t bytes)
{
    for (size_t i = 0; i < bytes.length; i++) {
        printf("%02x", (unsigned char)bytes.at[i]);
    }
    putchar(' ');
}

static void set_up(void)
{
    static const char path[] = "/.well-known/mercure";
    hk_hub_options_t of_hub = {
        .history_bytes = 1 << 24,
        .hub_url = {.origin = HK_BYTES("https://hub.example.com")},
        .comparable_path = HK_BYTES(path),
        .topic_table_bytes = 1 << 20,
        .secret = {3, 4},
    };
    of_hub.hub_url.parts[HK_URL_PROTOCOL] = HK_BYTES("https");
    of_hub.hub_url.parts[HK_URL_HOSTNAME] = HK_BYTES("hub.example.com");
    of_hub.hub_url.parts[HK_URL_PATHNAME] = HK_BYTES(path);
    options.path = HK_BYTES(path);
    options.cookie_name_count = options.legacy ? 2 : 1;
    check(hk_hub_new(DUMP_ALLOC, &of_hub, &hub));
    check(hk_gate_new(DUMP_ALLOC, &options, hub, &gate));
}

static void grant_everything(hk_bytes_t key, uint64_t epoch)
{
    hk_matcher_options_t everything = {.type = HK_BYTES("exact"), .pattern = HK_BYTES("*"), .kind = HK_MATCHER_ALL};
    hk_matcher_t *matcher;
    check(hk_matcher_new(DUMP_ALLOC, &everything, &matcher));
    hk_grant_subscription_t subscription = {.matcher = matcher};
    hk_grant_options_t granted = {.subscriptions = &subscription,
                                  .subscription_count = 1,
                                  .publishes = &matcher,
                                  .publish_count = 1,
                                  .expires_at = HK_NEVER};
    hk_decision_t decision = {.key = key, .epoch = epoch};
    check(hk_grant_new(DUMP_ALLOC, &granted, &decision.grant));
    check(hk_gate_remember(gate, &decision));
    hk_grant_release(decision.grant);
    hk_matcher_release(matcher);
}

static void print_shown(const hk_http1_request_t *head)
{
    hk_buf_t buf;
    hk_buf_init(&buf, DUMP_ALLOC);
    check(hk_gate_shown_query(gate, head, &buf));
    print(hk_buf_bytes(&buf));
    hk_buf_clear(&buf);
    check(hk_gate_shown_cookie(gate, head, &buf));
    print(hk_buf_bytes(&buf));
    hk_buf_clear(&buf);
    for (size_t i = 0; i < head->header_count; i++) {
        if (hk_gate_shown_header(gate, head, head->headers[i].name)) {
            check(hk_buf_append(&buf, head->headers[i].name));
            check(hk_buf_append(&buf, HK_BYTES("\n")));
        }
    }
    print(hk_buf_bytes(&buf));
    hk_buf_release(&buf);
}

static void print_update(void)
{
    const hk_log_t *log = hk_hub_log(hub);
    hk_record_t *record = hk_log_at(log, hk_log_head(log));
    hk_buf_t topics;
    hk_buf_init(&topics, DUMP_ALLOC);
    for (size_t i = 0; i < record->topic_count; i++) {
        check(hk_buf_append(&topics, hk_topic_value(record->topics[i])));
        check(hk_buf_append(&topics, HK_BYTES("\n")));
    }
    print(hk_buf_bytes(&topics));
    print(record->is_private ? HK_BYTES("private") : HK_BYTES(""));
    print(record->frame);
    hk_buf_release(&topics);
}

static void print_answer(const hk_gate_request_t *request)
{
    hk_gate_answer_t answer;
    hk_status_t status = hk_gate_serve(gate, request, &answer);
    if (status == HK_UNKNOWN) {
        print(HK_BYTES("asked"));
        return;
    }
    check(status);
    print(answer.kind == HK_GATE_PUBLISHED ? HK_BYTES("published") : HK_BYTES("subscribed"));
    print(answer.head);
    print(answer.body);
    if (answer.kind == HK_GATE_PUBLISHED) {
        print_update();
    } else {
        hk_hub_unsubscribe(hub, answer.subscriber, request->now);
    }
}

static void print_request(hk_bytes_t input, hk_bytes_t peer)
{
    hk_http1_header_t headers[HK_HTTP1_HEADERS];
    hk_http1_request_t head = {.headers = headers, .header_capacity = HK_HTTP1_HEADERS};
    hk_http1_scan_t scan = {0};
    size_t consumed;
    if (hk_http1_parse_request(input, &hk_http1_default_limits, &scan, &head, &consumed) != HK_OK) {
        puts("");
        return;
    }
    hk_buf_t key;
    hk_buf_init(&key, DUMP_ALLOC);
    uint64_t epoch;
    check(hk_gate_key(gate, &head, &key, &epoch));
    print(hk_buf_bytes(&key));
    print_shown(&head);
    print(hk_gate_address(gate, &head, peer));
    if (key.length > 0) {
        grant_everything(hk_buf_bytes(&key), epoch);
    }
    hk_gate_request_t request = {
        .head = &head,
        .body = hk_bytes(input.at + consumed, input.length - consumed),
        .body_is_whole = true,
        .peer = peer,
    };
    print_answer(&request);
    puts("");
    hk_buf_release(&key);
}

static void trust(void)
{
    if (options.trusted_proxy_count == MOST_NETWORKS) {
        dump_fail("too many networks");
    }
    hk_network_t *network = &networks[options.trusted_proxy_count++];
    char text[2][8] = {"", ""};
    for (size_t i = 0; i < 2; i++) {
        hk_bytes_t field = dump_field();
        memcpy(text[i], field.at, field.length < 8 ? field.length : 7);
    }
    network->family = (uint8_t)atoi(text[0]);
    network->bits = (uint8_t)atoi(text[1]);
    hk_bytes_t address = dump_field();
    memcpy(network->address, address.at, address.length < 16 ? address.length : 16);
}

int main(void)
{
    hk_bytes_t letter;
    while (dump_take(&letter)) {
        if (hk_bytes_equal(letter, HK_BYTES("L"))) {
            options.legacy = true;
        } else if (hk_bytes_equal(letter, HK_BYTES("T"))) {
            trust();
        } else if (hk_bytes_equal(letter, HK_BYTES("R"))) {
            if (gate == NULL) {
                set_up();
            }
            hk_bytes_t input = dump_field(), peer = dump_field();
            print_request(input, peer);
            free((char *)(uintptr_t)input.at);
            free((char *)(uintptr_t)peer.at);
        } else {
            dump_fail("there is no such letter");
        }
        free((char *)(uintptr_t)letter.at);
    }
    hk_gate_free(gate);
    hk_hub_free(hub);
    return EXIT_SUCCESS;
}
