#include "hk_gate_private.h"

#include "hk_form.h"

static hk_gate_field_t if_named(hk_bytes_t name, hk_bytes_t expected, hk_gate_field_t field)
{
    return hk_bytes_equal_ignoring_case(name, expected) ? field : HK_GATE_OTHER_FIELD;
}

static hk_gate_field_t either_of(hk_bytes_t name, hk_bytes_t expected, hk_gate_field_t field, hk_bytes_t other,
                                 hk_gate_field_t other_field)
{
    hk_gate_field_t found = if_named(name, expected, field);
    return found != HK_GATE_OTHER_FIELD ? found : if_named(name, other, other_field);
}

hk_gate_field_t hk_gate_field_of(hk_bytes_t name)
{
    switch (name.length) {
    case 4:
        return if_named(name, HK_BYTES("host"), HK_GATE_HOST);
    case 6:
        if (hk_bytes_equal_ignoring_case(name, HK_BYTES("accept"))) {
            return HK_GATE_ACCEPT;
        }
        return either_of(name, HK_BYTES("origin"), HK_GATE_ORIGIN, HK_BYTES("cookie"), HK_GATE_COOKIE);
    case 7:
        return if_named(name, HK_BYTES("referer"), HK_GATE_REFERER);
    case 12:
        return if_named(name, HK_BYTES("content-type"), HK_GATE_CONTENT_TYPE);
    case 13:
        return either_of(name, HK_BYTES("authorization"), HK_GATE_AUTHORIZATION, HK_BYTES("last-event-id"),
                         HK_GATE_LAST_EVENT_ID);
    case 14:
        return if_named(name, HK_BYTES("hikyaku-stream"), HK_GATE_STREAM);
    case 15:
        if (hk_bytes_equal_ignoring_case(name, HK_BYTES("accept-encoding"))) {
            return HK_GATE_ACCEPT_ENCODING;
        }
        return either_of(name, HK_BYTES("idempotency-key"), HK_GATE_IDEMPOTENCY_KEY, HK_BYTES("x-forwarded-ssl"),
                         HK_GATE_FORWARDED_SSL);
    case 17:
        return if_named(name, HK_BYTES("x-forwarded-proto"), HK_GATE_FORWARDED_PROTO);
    case 18:
        return if_named(name, HK_BYTES("x-forwarded-scheme"), HK_GATE_FORWARDED_SCHEME);
    case 19:
        return if_named(name, HK_BYTES("hikyaku-idempotency"), HK_GATE_IDEMPOTENCY_MEMORY);
    default:
        return HK_GATE_OTHER_FIELD;
    }
}

bool hk_gate_field_decides(hk_gate_field_t field, bool publishes)
{
    switch (field) {
    case HK_GATE_AUTHORIZATION:
    case HK_GATE_COOKIE:
    case HK_GATE_ORIGIN:
        return true;
    case HK_GATE_HOST:
    case HK_GATE_REFERER:
    case HK_GATE_FORWARDED_PROTO:
    case HK_GATE_FORWARDED_SCHEME:
    case HK_GATE_FORWARDED_SSL:
    case HK_GATE_CONTENT_TYPE:
        return publishes;
    case HK_GATE_ACCEPT:
    case HK_GATE_ACCEPT_ENCODING:
        return !publishes;
    default:
        return false;
    }
}

/* A GET with a body is odd, and a publish with a query may say things that only Ruby understands; a query with too many
 * fields is Ruby's to refuse, which must see them all. */
static bool is_usual(const hk_gate_t *gate, const hk_http1_request_t *head, bool publishes)
{
    bool bodyless =
        head->framing.kind == HK_HTTP1_NO_BODY || (head->framing.kind == HK_HTTP1_LENGTH && head->framing.length == 0);
    bool understood = publishes ? head->query.at == NULL : hk_bytes_equal(head->method, HK_BYTES("GET")) && bodyless;
    if (gate->options.max_fields > 0 && hk_form_exceeds(head->query, gate->options.max_fields)) {
        return false;
    }
    return understood && head->form == HK_HTTP1_ORIGIN && hk_bytes_equal(head->path, gate->options.path);
}

void hk_gate_ask(const hk_gate_t *gate, const hk_http1_request_t *head, hk_gate_asked_t *asked)
{
    *asked = (hk_gate_asked_t){.head = head, .publishes = hk_bytes_equal(head->method, HK_BYTES("POST"))};
    if (!is_usual(gate, head, asked->publishes)) {
        return;
    }
    for (size_t i = 0; i < head->header_count; i++) {
        hk_gate_field_t field = hk_gate_field_of(head->headers[i].name);
        asked->values[field] = head->headers[i].value;
        asked->counts[field]++;
    }
    asked->has_key = asked->counts[HK_GATE_IDEMPOTENCY_KEY] == 0 && asked->counts[HK_GATE_IDEMPOTENCY_MEMORY] == 0;
    for (hk_gate_field_t field = 0; field < HK_GATE_FIELDS; field++) {
        /* What a server makes of a field that is sent twice is its own business. */
        if (asked->counts[field] > 1 && hk_gate_field_decides(field, asked->publishes)) {
            asked->has_key = false;
        }
    }
}
