#include "hk_gzip.h"

#include <string.h>

/* -- Checksums -------------------------------------------------------------------------------------------------------
 *
 * A checksum is a polynomial over GF(2) modulo P, its highest bit the constant term. Bytes behind it multiply it by x
 * to the power of their bits.
 */

static const uint32_t modulus = 0xEDB88320u, one = 0x80000000u;

static uint32_t product(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (uint32_t bit = one; a != 0; bit >>= 1) {
        if ((a & bit) != 0) {
            sum ^= b;
            a ^= bit;
        }
        b = (b & 1) != 0 ? b >> 1 ^ modulus : b >> 1;
    }
    return sum;
}

uint32_t hk_gzip_behind(uint32_t length)
{
    uint32_t power = one >> 8, result = one;
    for (; length > 0; length >>= 1) {
        if ((length & 1) != 0) {
            result = product(result, power);
        }
        power = product(power, power);
    }
    return result;
}

hk_gzip_sum_t hk_gzip_join(hk_gzip_sum_t first, hk_gzip_sum_t second, uint32_t behind)
{
    return (hk_gzip_sum_t){product(behind, first.crc) ^ second.crc, first.length + second.length};
}

hk_gzip_sum_t hk_gzip_rest(hk_gzip_sum_t whole, hk_gzip_sum_t first)
{
    uint32_t length = whole.length - first.length;
    return (hk_gzip_sum_t){whole.crc ^ product(hk_gzip_behind(length), first.crc), length};
}

static char *put_little_endian(char *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (char)(unsigned char)(value >> 8 * i);
    }
    return at + 4;
}

void hk_gzip_tail(hk_gzip_sum_t sum, char tail[HK_GZIP_TAIL_BYTES])
{
    /* The last block, which is empty. */
    tail[0] = 3;
    tail[1] = 0;
    (void)put_little_endian(put_little_endian(tail + 2, sum.crc), sum.length);
}

#ifdef HK_HAVE_ZLIB

#include <limits.h>
#include <zlib.h>

/* LEVEL          6: events are small, and looking longer finds little more.
 * WINDOW_BITS    32 KiB; negative: no head and tail of zlib's.
 * BEHIND_FLUSH   what a flush adds, and what the bits of the block before it do. */
enum { LEVEL = 6, WINDOW_BITS = -15, MEMORY_LEVEL = 8, BEHIND_FLUSH = 16 };

struct hk_gzip {
    const hk_alloc_t *alloc;
    z_stream stream;
    uint32_t events; /* of the epoch; 0: it has not begun */
    size_t bytes;
};

static void *give(void *context, unsigned count, unsigned size)
{
    return hk_alloc_zeroed(context, count, size);
}

static void take_back(void *context, void *memory)
{
    hk_alloc_free(context, memory);
}

bool hk_gzip_available(void)
{
    return true;
}

hk_gzip_sum_t hk_gzip_sum(hk_bytes_t bytes)
{
    uLong crc = bytes.length > 0 ? crc32_z(0, (const Bytef *)bytes.at, bytes.length) : 0;
    return (hk_gzip_sum_t){(uint32_t)crc, (uint32_t)bytes.length};
}

hk_status_t hk_gzip_new(const hk_alloc_t *alloc, hk_gzip_t **gzip)
{
    hk_gzip_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->stream.zalloc = give;
    made->stream.zfree = take_back;
    made->stream.opaque = (void *)(uintptr_t)alloc;
    if (deflateInit2(&made->stream, LEVEL, Z_DEFLATED, WINDOW_BITS, MEMORY_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK) {
        hk_alloc_free(alloc, made);
        return HK_NO_MEMORY;
    }
    *gzip = made;
    return HK_OK;
}

void hk_gzip_free(hk_gzip_t *gzip)
{
    if (gzip != NULL) {
        (void)deflateEnd(&gzip->stream);
        hk_alloc_free(gzip->alloc, gzip);
    }
}

void hk_gzip_begin(hk_gzip_t *gzip)
{
    gzip->stream.avail_in = 0;
    (void)deflateReset(&gzip->stream);
    gzip->events = 0;
    gzip->bytes = 0;
}

static void give_input(z_stream *stream, hk_bytes_t *rest)
{
    if (stream->avail_in == 0 && rest->length > 0) {
        size_t count = rest->length < UINT_MAX ? rest->length : UINT_MAX;
        stream->next_in = (z_const Bytef *)(uintptr_t)rest->at;
        stream->avail_in = (uInt)count;
        *rest = hk_bytes(rest->at + count, rest->length - count);
    }
}

/* Until it is flushed, that is, there is room left behind it. */
static hk_status_t deflate_all(z_stream *stream, hk_bytes_t rest, int flush, hk_buf_t *out)
{
    do {
        give_input(stream, &rest);
        uLong room = deflateBound(stream, stream->avail_in) + BEHIND_FLUSH;
        room = room < UINT_MAX ? room : UINT_MAX;
        if (hk_buf_reserve(out, room) != HK_OK) {
            return HK_NO_MEMORY;
        }
        stream->next_out = (Bytef *)hk_buf_end(out);
        stream->avail_out = (uInt)room;
        (void)deflate(stream, rest.length > 0 ? Z_NO_FLUSH : flush);
        hk_buf_grew(out, room - stream->avail_out);
    } while (rest.length > 0 || stream->avail_in > 0 || stream->avail_out == 0);
    return HK_OK;
}

static hk_status_t append(hk_gzip_t *gzip, hk_bytes_t bytes, int flush, hk_buf_t *out)
{
    size_t before = out->length;
    hk_status_t status = deflate_all(&gzip->stream, bytes, flush, out);
    if (status != HK_OK) {
        out->length = before;
        hk_gzip_begin(gzip);
    }
    return status;
}

hk_status_t hk_gzip_block(hk_gzip_t *gzip, hk_bytes_t bytes, hk_buf_t *out)
{
    hk_gzip_begin(gzip);
    hk_status_t status = bytes.length > 0 ? append(gzip, bytes, Z_FULL_FLUSH, out) : HK_OK;
    hk_gzip_begin(gzip);
    return status;
}

bool hk_gzip_at_beginning(const hk_gzip_t *gzip)
{
    return gzip->events == 0;
}

hk_status_t hk_gzip_event(hk_gzip_t *gzip, hk_bytes_t event, hk_buf_t *out)
{
    if (event.length == 0) {
        return HK_OK;
    }
    bool last = gzip->events + 1 >= HK_GZIP_EPOCH_EVENTS || gzip->bytes + event.length >= HK_GZIP_EPOCH_BYTES;
    hk_status_t status = append(gzip, event, last ? Z_FULL_FLUSH : Z_SYNC_FLUSH, out);
    if (status == HK_OK) {
        gzip->events = last ? 0 : gzip->events + 1;
        gzip->bytes = last ? 0 : gzip->bytes + event.length;
    }
    return status;
}

#else

bool hk_gzip_available(void)
{
    return false;
}

/* Nobody is in a hurry who has no use for it. */
hk_gzip_sum_t hk_gzip_sum(hk_bytes_t bytes)
{
    uint32_t crc = 0xFFFFFFFFu;
    for (size_t i = 0; i < bytes.length; i++) {
        crc ^= (unsigned char)bytes.at[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            crc = (crc & 1) != 0 ? crc >> 1 ^ modulus : crc >> 1;
        }
    }
    return (hk_gzip_sum_t){~crc, (uint32_t)bytes.length};
}

hk_status_t hk_gzip_new(const hk_alloc_t *alloc, hk_gzip_t **gzip)
{
    (void)alloc;
    (void)gzip;
    return HK_NOT_FOUND;
}

void hk_gzip_free(hk_gzip_t *gzip)
{
    (void)gzip;
}

hk_status_t hk_gzip_block(hk_gzip_t *gzip, hk_bytes_t bytes, hk_buf_t *out)
{
    (void)gzip;
    (void)bytes;
    (void)out;
    return HK_NOT_FOUND;
}

void hk_gzip_begin(hk_gzip_t *gzip)
{
    (void)gzip;
}

bool hk_gzip_at_beginning(const hk_gzip_t *gzip)
{
    (void)gzip;
    return true;
}

hk_status_t hk_gzip_event(hk_gzip_t *gzip, hk_bytes_t event, hk_buf_t *out)
{
    return hk_gzip_block(gzip, event, out);
}

#endif
