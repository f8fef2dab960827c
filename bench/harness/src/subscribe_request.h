/* subscribe_request.h: the request that opens a subscriber's stream: a GET, a POST with a form, or the GET that becomes a
 * WebSocket of Action Cable. */
#ifndef BENCH_SUBSCRIBE_REQUEST_H
#define BENCH_SUBSCRIBE_REQUEST_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>

enum { SUBSCRIBE_REQUEST_BYTES = 65536 };

/* Prepares the parts. Once, before anything else. */
void subscribe_request_prepare(const struct options *options);

/* Writes it to `out`, of SUBSCRIBE_REQUEST_BYTES, and returns its length.
 *
 * `stalled`: of one that never reads, and may have a path of its own. */
size_t subscribe_request_write(char *out, int index, int topic, bool stalled);

#endif
