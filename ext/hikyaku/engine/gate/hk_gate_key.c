#include "hk_gate_private.h"

#include "hk_gate_address.h"
#include "hk_gate_network.h"

/*     kind version  length query  length Authorization  length Cookie  length Origin  …
 *
 * Each value behind its length, so that no two requests with different values have one key. */
static const size_t NOT_SENT = SIZE_MAX;

static void put_length(hk_buf_t *key, size_t length)
{
    memcpy(hk_buf_end(key), &length, sizeof(length));
    hk_buf_grew(key, sizeof(length));
}

static void put_value(hk_buf_t *key, hk_bytes_t value)
{
    put_length(key, value.length);
    if (value.length > 0) {
        memcpy(hk_buf_end(key), value.at, value.length);
        hk_buf_grew(key, value.length);
    }
}

static void put_query(const hk_gate_t *gate, hk_bytes_t query, hk_buf_t *key)
{
    char *room = hk_buf_end(key) + sizeof(size_t);
    size_t length = hk_gate_write_query(gate, query, false, room);
    put_length(key, length);
    hk_buf_grew(key, length);
}

static void put_cookie(const hk_gate_t *gate, hk_bytes_t cookie, hk_buf_t *key)
{
    char *room = hk_buf_end(key) + sizeof(size_t);
    size_t length = hk_gate_write_cookie(gate, cookie, room);
    put_length(key, length > 0 ? length : NOT_SENT);
    hk_buf_grew(key, length);
}

static size_t room_for(const hk_gate_asked_t *asked)
{
    size_t size = 2 + sizeof(size_t) + asked->head->query.length;
    for (hk_gate_field_t field = 0; field < HK_GATE_FIELDS; field++) {
        size += sizeof(size_t) + asked->values[field].length;
    }
    return size;
}

hk_status_t hk_gate_write_key(const hk_gate_t *gate, const hk_gate_asked_t *asked, hk_buf_t *key)
{
    hk_status_t status = hk_buf_reserve(key, room_for(asked));
    if (status != HK_OK) {
        return status;
    }
    char beginning[] = {asked->publishes ? 'P' : 'S', (char)('0' + asked->head->minor)};
    memcpy(hk_buf_end(key), beginning, sizeof(beginning));
    hk_buf_grew(key, sizeof(beginning));
    if (!asked->publishes) {
        put_query(gate, asked->head->query, key);
    }
    for (hk_gate_field_t field = 0; field < HK_GATE_FIELDS; field++) {
        if (!hk_gate_field_decides(field, asked->publishes)) {
            continue;
        }
        if (asked->counts[field] == 0) {
            put_length(key, NOT_SENT);
        } else if (field == HK_GATE_COOKIE) {
            put_cookie(gate, asked->values[field], key);
        } else {
            put_value(key, asked->values[field]);
        }
    }
    return HK_OK;
}

hk_status_t hk_gate_key(hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *key, uint64_t *epoch)
{
    hk_gate_asked_t asked;
    hk_gate_ask(gate, head, &asked);
    hk_status_t status = asked.has_key ? hk_gate_write_key(gate, &asked, key) : HK_OK;
    if (status == HK_OK) {
        *epoch = gate->epoch;
    }
    return status;
}

static bool publishes(const hk_http1_request_t *head)
{
    return hk_bytes_equal(head->method, HK_BYTES("POST"));
}

hk_status_t hk_gate_shown_query(const hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *query)
{
    hk_status_t status = hk_buf_reserve(query, head->query.length);
    if (status == HK_OK && head->query.length > 0) {
        hk_buf_grew(query, hk_gate_write_query(gate, head->query, true, hk_buf_end(query)));
    }
    return status;
}

bool hk_gate_shown_header(const hk_gate_t *gate, const hk_http1_request_t *head, hk_bytes_t name)
{
    (void)gate;
    hk_gate_field_t field = hk_gate_field_of(name);
    if (field == HK_GATE_LAST_EVENT_ID || field == HK_GATE_STREAM) {
        return !publishes(head);
    }
    return field != HK_GATE_COOKIE && hk_gate_field_decides(field, publishes(head));
}

hk_status_t hk_gate_shown_cookie(const hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *cookie)
{
    const hk_http1_header_t *header = hk_http1_header_find(head->headers, head->header_count, HK_BYTES("cookie"));
    if (header == NULL || header->value.length == 0) {
        return HK_OK;
    }
    hk_status_t status = hk_buf_reserve(cookie, header->value.length);
    if (status == HK_OK) {
        hk_buf_grew(cookie, hk_gate_write_cookie(gate, header->value, hk_buf_end(cookie)));
    }
    return status;
}

bool hk_gate_counts(const hk_gate_t *gate, hk_bytes_t address)
{
    return address.length > 0 && (gate->options.counts_loopback || !hk_ip_is_loopback(address)) &&
           !hk_networks_hold(gate->options.trusted_proxies, gate->options.trusted_proxy_count, address);
}

hk_bytes_t hk_gate_address(const hk_gate_t *gate, const hk_http1_request_t *head, hk_bytes_t peer)
{
    return hk_gate_client(gate->options.trusted_proxies, gate->options.trusted_proxy_count, head->headers,
                          head->header_count, peer);
}
