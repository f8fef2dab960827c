/* hk_gap.h: tells a reader in its own stream that events may be missing.
 *
 *     event: mercure
 *     id: #PGzYTzR-0Sg
 *     data: {"type":"gap","reason":"overrun","last_event_id":"#0a…","matches":[{"match":"/news","match_type":"exact"}]}
 *
 * The data is written piece by piece; the bytes are those of Hikyaku::Hub::Gap.
 *
 *     hk_gap_begin(&data, HK_BYTES("overrun"), after);
 *     hk_gap_add(&data, matcher);                           for each whose events may be missing; none: any
 *     hk_gap_end(&data);
 *
 * Each returns HK_OK or HK_NO_MEMORY.
 */
#ifndef HK_GAP_H
#define HK_GAP_H

#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_matcher.h"
#include "hk_sse.h"
#include "hk_status.h"

typedef struct hk_gap {
    hk_buf_t *data;
    bool has_matches;
} hk_gap_t;

/* data   emptied.
 * after  the last event that the reader has: any bytes, of which the first 1,024 or so are shown. */
hk_status_t hk_gap_begin(hk_gap_t *gap, hk_buf_t *data, hk_bytes_t reason, hk_bytes_t after);

hk_status_t hk_gap_add(hk_gap_t *gap, const hk_matcher_t *matcher);

/* event  what to encode, from where the stream goes on (`id`); slices of `id` and of the data. */
hk_status_t hk_gap_end(hk_gap_t *gap, hk_bytes_t id, hk_sse_event_t *event);

#endif
