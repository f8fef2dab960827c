#include "hk_gate_network.h"
#include "hk_gate_private.h"

bool hk_gate_subscribable(const hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked)
{
    (void)gate;
    return !request->stopping && asked->counts[HK_GATE_LAST_EVENT_ID] <= 1;
}

/* The header goes before the query. HK_OK; HK_UNKNOWN: bytes that only Ruby judges; HK_NO_MEMORY. */
static hk_status_t read_cursor(hk_gate_t *gate, const hk_gate_asked_t *asked, bool *sent, hk_bytes_t *cursor)
{
    *sent = asked->counts[HK_GATE_LAST_EVENT_ID] > 0;
    *cursor = asked->values[HK_GATE_LAST_EVENT_ID];
    hk_bytes_t raw;
    if (cursor->length == 0 && hk_gate_query_cursor(gate, asked->head->query, &raw)) {
        hk_buf_clear(&gate->decoded);
        hk_status_t status = hk_buf_reserve(&gate->decoded, raw.length);
        if (status != HK_OK) {
            return status;
        }
        *sent = true;
        *cursor = hk_gate_decode(gate, raw);
    }
    return hk_bytes_printable(*cursor) ? HK_OK : HK_UNKNOWN;
}

/* Ids of updates hold no control characters; but nothing that the log says may begin another header line. */
static bool fits_into_header(hk_bytes_t id)
{
    for (size_t i = 0; i < id.length; i++) {
        unsigned char byte = (unsigned char)id.at[i];
        if (byte < 0x20 || byte == 0x7F) {
            return false;
        }
    }
    return true;
}

static hk_status_t append_field(hk_buf_t *out, hk_bytes_t name, hk_bytes_t value)
{
    hk_status_t status = hk_buf_reserve(out, name.length + value.length + 4);
    if (status == HK_OK) {
        (void)hk_buf_append(out, name);
        (void)hk_buf_append(out, HK_BYTES(": "));
        (void)hk_buf_append(out, value);
        (void)hk_buf_append(out, HK_BYTES("\r\n"));
    }
    return status;
}

static hk_status_t append_cursor(hk_gate_t *gate, const hk_grant_t *grant, hk_bytes_t cursor)
{
    hk_bytes_t id;
    hk_hub_resolve(gate->hub, grant, cursor, &id);
    if (!fits_into_header(id)) {
        return HK_UNKNOWN;
    }
    hk_status_t status = append_field(&gate->answer, HK_BYTES("mercure-last-event-id"), id);
    if (status == HK_OK && gate->options.legacy) {
        status = append_field(&gate->answer, HK_BYTES("last-event-id"), id);
    }
    return status;
}

/* What is asked for. As Ruby reads it: a field that is sent twice has another value. */
static bool asks_for_stream(const hk_gate_asked_t *asked, hk_bytes_t value)
{
    return asked->counts[HK_GATE_STREAM] == 1 && hk_bytes_equal(asked->values[HK_GATE_STREAM], value);
}

/* What a capability is written over, when there is a subscriber. */
static const char placeholder[HK_STREAM_CAPABILITY_BYTES] = {0};

static void write_capability(hk_gate_t *gate, const hk_subscriber_t *subscriber)
{
    hk_buf_t *answer = &gate->answer;
    char *end = hk_buf_end(answer) - 4;
    (void)hk_hub_capability(gate->hub, subscriber, end - HK_STREAM_CAPABILITY_BYTES);
}

/* Before anything is done: what becomes of the cursor is told, and can fail. */
static hk_status_t write_head(hk_gate_t *gate, const hk_gate_entry_t *entry, int64_t wall, const hk_subscribe_t *asked)
{
    hk_status_t status = hk_gate_begin(gate, entry->head, wall);
    if (status == HK_OK && asked->has_cursor) {
        status = append_cursor(gate, entry->grant, asked->cursor);
    }
    if (status == HK_OK && asked->changeable) {
        status = append_field(&gate->answer, HK_BYTES("hikyaku-stream"), hk_bytes(placeholder, sizeof(placeholder)));
    }
    return status == HK_OK ? hk_buf_append(&gate->answer, HK_BYTES("\r\n")) : status;
}

hk_status_t hk_gate_subscribe(hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked,
                              const hk_gate_entry_t *entry, hk_gate_answer_t *answer)
{
    hk_grant_t *grant = entry->grant;
    if (grant->subscription_count == 0) {
        return HK_UNKNOWN;
    }
    bool naming = entry->form == HK_STREAM_EVENTS && asks_for_stream(asked, HK_BYTES("matchers"));
    hk_subscribe_t subscribe = {
        .grant = grant,
        .address = hk_gate_address(gate, request->head, request->peer),
        .expires_in = grant->expires_at == HK_NEVER ? HK_NEVER : grant->expires_at - request->wall,
        .now = request->now,
        .tentative = true,
        .naming = naming,
        .changeable = naming || asks_for_stream(asked, HK_BYTES("1")),
        .form = entry->form,
        .coding = entry->coding,
    };
    if (!gate->options.counts_loopback && hk_ip_is_loopback(subscribe.address)) {
        subscribe.address = HK_BYTES("");
    }
    hk_status_t status = read_cursor(gate, asked, &subscribe.has_cursor, &subscribe.cursor);
    if (status == HK_OK) {
        status = write_head(gate, entry, request->wall, &subscribe);
    }
    if (status != HK_OK) {
        return status;
    }
    hk_subscriber_t *subscriber;
    hk_bytes_t id;
    status = hk_hub_subscribe(gate->hub, &subscribe, &subscriber, &id);
    if (status != HK_OK) {
        return status == HK_NO_MEMORY ? HK_NO_MEMORY : HK_UNKNOWN;
    }
    if (subscribe.changeable) {
        write_capability(gate, subscriber);
    }
    *answer = (hk_gate_answer_t){
        .kind = HK_GATE_SUBSCRIBED,
        .head = hk_buf_bytes(&gate->answer),
        .subscriber = subscriber,
    };
    return HK_OK;
}
