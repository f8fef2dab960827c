#include "marker.h"

#include <string.h>

enum { READ_BYTES = 65536 };

static void put_hex(char *out, uint64_t value, int count)
{
    while (count--) {
        out[count] = "0123456789abcdef"[value & 15];
        value >>= 4;
    }
}

void marker_write(char *out, int64_t sent_ns, uint32_t message)
{
    out[0] = out[MARKER_BYTES - 1] = '@';
    out[1] = 'T';
    put_hex(out + 2, (uint64_t)sent_ns, 16);
    put_hex(out + 18, message, 8);
}

static uint64_t hex(const char *digits, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) {
        int c = digits[i];
        value = value * 16 + (uint64_t)(c <= '9' ? c - '0' : (c | 32) - 'a' + 10);
    }
    return value;
}

static int is_marker(const char *at)
{
    return at[1] == 'T' && at[MARKER_BYTES - 1] == '@';
}

/* Keeps what follows the last marker and is too short to be one. */
static void keep_tail(struct marker_tail *tail, const char *rest, size_t length)
{
    size_t keep = length < MARKER_BYTES ? length : MARKER_BYTES - 1;
    memcpy(tail->bytes, rest + length - keep, keep);
    tail->length = (unsigned char)keep;
}

void marker_scan(struct marker_tail *tail, const char *bytes, size_t length,
                 void (*found)(void *context, int64_t sent_ns, uint32_t message), void *context)
{
    static char joined[READ_BYTES + MARKER_BYTES];
    memcpy(joined, tail->bytes, tail->length);
    memcpy(joined + tail->length, bytes, length);
    const char *at = joined, *end = joined + tail->length + length;

    while (end - at >= MARKER_BYTES) {
        const char *start = memchr(at, '@', (size_t)(end - at) - MARKER_BYTES + 1);
        if (!start) {
            at = end - MARKER_BYTES + 1;
        } else if (is_marker(start)) {
            found(context, (int64_t)hex(start + 2, 16), (uint32_t)hex(start + 18, 8));
            at = start + MARKER_BYTES;
        } else {
            at = start + 1;
        }
    }
    keep_tail(tail, at, (size_t)(end - at));
}
