#include "hk_gap.h"

#include "hk_json.h"

/* Of an id that a client made up so many bytes are told. */
enum { SHOWN = 1024 };

static hk_status_t append_printable(hk_buf_t *data, hk_bytes_t id)
{
    hk_buf_t text;
    hk_buf_init(&text, data->alloc);
    /* Scrubbed text is never shorter: what of the id comes later is cut off in any case. */
    hk_bytes_t beginning = hk_bytes(id.at, id.length < SHOWN ? id.length : SHOWN);
    hk_status_t status = hk_json_scrub(&text, beginning);
    if (status == HK_OK) {
        hk_bytes_t cut = hk_buf_bytes(&text);
        status = hk_json_string(data, hk_bytes(cut.at, cut.length < SHOWN ? cut.length : SHOWN));
    }
    hk_buf_release(&text);
    return status;
}

hk_status_t hk_gap_begin(hk_gap_t *gap, hk_buf_t *data, hk_bytes_t reason, hk_bytes_t after)
{
    *gap = (hk_gap_t){.data = data};
    hk_buf_clear(data);
    hk_status_t status = hk_buf_append(data, HK_BYTES("{\"type\":\"gap\",\"reason\":"));
    if (status == HK_OK) {
        status = hk_json_string(data, reason);
    }
    if (status == HK_OK) {
        status = hk_buf_append(data, HK_BYTES(",\"last_event_id\":"));
    }
    return status == HK_OK ? append_printable(data, after) : status;
}

hk_status_t hk_gap_add(hk_gap_t *gap, const hk_matcher_t *matcher)
{
    hk_bytes_t opening = gap->has_matches ? HK_BYTES(",{\"match\":") : HK_BYTES(",\"matches\":[{\"match\":");
    gap->has_matches = true;
    hk_status_t status = hk_buf_append(gap->data, opening);
    if (status == HK_OK) {
        status = hk_json_string(gap->data, matcher->pattern);
    }
    if (status == HK_OK) {
        status = hk_buf_append(gap->data, HK_BYTES(",\"match_type\":"));
    }
    if (status == HK_OK) {
        status = hk_json_string(gap->data, matcher->type);
    }
    return status == HK_OK ? hk_buf_append(gap->data, HK_BYTES("}")) : status;
}

hk_status_t hk_gap_end(hk_gap_t *gap, hk_bytes_t id, hk_sse_event_t *event)
{
    hk_status_t status = hk_buf_append(gap->data, gap->has_matches ? HK_BYTES("]}") : HK_BYTES("}"));
    if (status == HK_OK) {
        *event =
            (hk_sse_event_t){.id = id, .data = hk_buf_bytes(gap->data), .type = HK_BYTES("mercure"), .retry_ms = -1};
    }
    return status;
}
