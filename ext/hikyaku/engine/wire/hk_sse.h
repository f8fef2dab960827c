/* hk_sse.h: Server-Sent Events, as the hub sends them.
 *
 *     event: note            only with a type
 *     retry: 5000            only when told
 *     id: #K7gNU3sdo-O
 *     data: first line
 *     data: second line
 *     (an empty line)
 *
 * HTML Living Standard, section "Server-sent events"; the bytes are those of Hikyaku::Hub::Event. Ids and types are
 * written as they are: whoever makes them keeps line breaks out.
 */
#ifndef HK_SSE_H
#define HK_SSE_H

#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdint.h>

#define HK_SSE_HEARTBEAT HK_BYTES(":\n\n")

/* A comment: tells a stream that may be changed that it has been sent what it asked for. */
#define HK_SSE_CAUGHT_UP HK_BYTES(": caught up\n\n")

typedef struct hk_sse_event {
    hk_bytes_t id;
    hk_bytes_t data;  /* any bytes; each line becomes a field, whether CR, LF or CRLF ends it */
    hk_bytes_t type;  /* empty: none */
    int64_t retry_ms; /* negative: none */
} hk_sse_event_t;

/* How many bytes the event takes. O(data). */
size_t hk_sse_size(const hk_sse_event_t *event);

/* Writes the event; `out` has room for hk_sse_size bytes, and shares none with the event. Returns how many were
 * written. O(data). */
size_t hk_sse_write(const hk_sse_event_t *event, char *out);

/* Where the id stands in what hk_sse_write writes. O(1). */
size_t hk_sse_id_offset(const hk_sse_event_t *event);

#endif
