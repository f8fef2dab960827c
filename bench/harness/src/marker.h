/* marker.h: the 27 bytes that each message carries, whatever transport wraps it:
 *
 *     @T<16 hexadecimal digits: when, ns><8 digits: which message>@
 *
 * A reader looks for them in its bytes, however they were cut. */
#ifndef BENCH_MARKER_H
#define BENCH_MARKER_H

#include <stddef.h>
#include <stdint.h>

enum { MARKER_BYTES = 27 };

/* The end of what was read, when it may be the beginning of a marker. */
struct marker_tail {
    char bytes[MARKER_BYTES];
    unsigned char length;
};

void marker_write(char *out, int64_t sent_ns, uint32_t message);

/* Calls `found` for each marker that these bytes complete. */
void marker_scan(struct marker_tail *tail, const char *bytes, size_t length,
                 void (*found)(void *context, int64_t sent_ns, uint32_t message), void *context);

#endif
