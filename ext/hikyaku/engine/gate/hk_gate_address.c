#include "hk_gate_address.h"

#include "hk_gate_network.h"

static bool is_space(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r') || byte == '\0';
}

static hk_bytes_t stripped(hk_bytes_t text)
{
    while (text.length > 0 && is_space(text.at[0])) {
        text = hk_bytes(text.at + 1, text.length - 1);
    }
    while (text.length > 0 && is_space(text.at[text.length - 1])) {
        text.length--;
    }
    return text;
}

/* Takes the last hop off a list; false when none is left. */
static bool last_hop(hk_bytes_t *list, bool *more, hk_bytes_t *hop)
{
    if (!*more) {
        return false;
    }
    const char *comma = list->length > 0 ? memrchr(list->at, ',', list->length) : NULL;
    size_t start = comma != NULL ? (size_t)(comma - list->at) + 1 : 0;
    *hop = stripped(hk_bytes(list->at + start, list->length - start));
    *more = comma != NULL;
    list->length = comma != NULL ? start - 1 : 0;
    return true;
}

/* Commas with nothing behind them say nothing, as with String#split. */
static hk_bytes_t without_last_commas(hk_bytes_t list)
{
    while (list.length > 0 && list.at[list.length - 1] == ',') {
        list.length--;
    }
    return list;
}

hk_bytes_t hk_gate_client(const hk_network_t *networks, size_t count, const hk_http1_header_t *headers,
                          size_t header_count, hk_bytes_t peer)
{
    bool trusted = peer.length == 0 || hk_networks_hold(networks, count, peer);
    /* From the last line to the first, as if they were one. */
    for (size_t i = header_count; trusted && i > 0; i--) {
        if (!hk_bytes_equal_ignoring_case(headers[i - 1].name, HK_BYTES("x-forwarded-for"))) {
            continue;
        }
        hk_bytes_t list = without_last_commas(headers[i - 1].value), hop;
        bool more = list.length > 0;
        while (trusted && last_hop(&list, &more, &hop)) {
            peer = hop;
            trusted = peer.length == 0 || hk_networks_hold(networks, count, peer);
        }
    }
    return peer;
}
