/* hk_pack.h: a stream of events as MessagePack: values back to back.
 *
 *     id: #K7gNU3sdo-O
 *     data: 21 °C                    ──►   ["#K7gNU3sdo-O", nil, "21 °C"]
 *
 *     event: note                          [nil, "note", "first line\nsecond line"]
 *     data: first line
 *     data: second line
 *
 *     :                                    nil: a heartbeat
 *     : caught up                          true
 *     retry: 5000                          5000, before the event that it stands in
 *
 * It is made of the bytes that hk_sse writes, which are what the log keeps. A line break of the data that was CR or
 * CRLF is LF there, and here: what a reader of an event stream gets is what a reader of this one gets. All strings are
 * of the str family, whether their bytes are UTF-8 or not (what is published is).
 */
#ifndef HK_PACK_H
#define HK_PACK_H

#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_status.h"

/* Appends what stands in an event stream.
 *
 * events  whole events and comments, an empty line behind each (behind the last it may be missing). Any bytes will do:
 *         fields that have no name of the four are left out, as are numbers that are none and events without data.
 *         Lines end with LF.
 *
 * HK_OK; HK_TOO_LARGE: a string of 4 GiB; HK_NO_MEMORY. On failure nothing was appended. O(bytes). */
hk_status_t hk_pack_append(hk_buf_t *out, hk_bytes_t events);

#endif
