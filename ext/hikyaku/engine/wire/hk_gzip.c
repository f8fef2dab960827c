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

/* RFC 1951, section 3.2.4. */
enum { MOST_STORED = 0xFFFF, STORED_HEAD = 5 };

hk_status_t hk_gzip_stored(hk_bytes_t bytes, hk_buf_t *out)
{
    size_t blocks = bytes.length / MOST_STORED + 1;
    hk_status_t status = hk_buf_reserve(out, bytes.length + blocks * STORED_HEAD);
    for (size_t at = 0; status == HK_OK && at < bytes.length;) {
        size_t length = bytes.length - at < MOST_STORED ? bytes.length - at : MOST_STORED;
        char head[STORED_HEAD] = {0};
        (void)put_little_endian(head + 1, (uint32_t)length | ~(uint32_t)length << 16);
        (void)hk_buf_append(out, hk_bytes(head, sizeof(head)));
        (void)hk_buf_append(out, hk_bytes(bytes.at + at, length));
        at += length;
    }
    return status;
}

#ifdef HK_HAVE_ZLIB

#include <limits.h>
#include <zlib.h>

/* Of one use: `level` as of zlib; `window` bits, below zero for no head and tail of zlib's; `memory` as of zlib, which
 * says how well it remembers where to look: of events more than 5 finds nothing more. Of events in an epoch level 8
 * makes 2.5 % less than 6, in 14 us for 10; 9 makes no less. */
typedef struct setting {
    int level, window, memory;
} setting_t;

static const setting_t settings[] = {[HK_GZIP_EPOCHS] = {8, -15, 5}, [HK_GZIP_BLOCKS] = {6, -12, 5}};

/* What a flush adds, and what the bits of the block before it do. */
enum { BEHIND_FLUSH = 16 };

struct hk_gzip {
    const hk_alloc_t *alloc;
    z_stream stream;
    bool begun; /* the stream holds something of the epoch; else it may hold something of one before */
};

/* Not of zeros: what nobody has written to yet takes no memory. */
static void *give(void *context, unsigned count, unsigned size)
{
    return hk_alloc_new(context, (size_t)count * size);
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

hk_status_t hk_gzip_new(const hk_alloc_t *alloc, hk_gzip_use_t use, hk_gzip_t **gzip)
{
    setting_t set = settings[use];
    hk_gzip_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->stream.zalloc = give;
    made->stream.zfree = take_back;
    made->stream.opaque = (void *)(uintptr_t)alloc;
    if (deflateInit2(&made->stream, set.level, Z_DEFLATED, set.window, set.memory, Z_DEFAULT_STRATEGY) != Z_OK) {
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
    gzip->begun = false;
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

/* Until it is flushed, that is, there is room left behind it. At an empty block, which a sync flush ends with, every
 * reader hands over what it has; at less (Z_PARTIAL_FLUSH), some wait for more. */
static hk_status_t deflate_all(z_stream *stream, hk_bytes_t rest, hk_buf_t *out)
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
        (void)deflate(stream, rest.length > 0 ? Z_NO_FLUSH : Z_SYNC_FLUSH);
        hk_buf_grew(out, room - stream->avail_out);
    } while (rest.length > 0 || stream->avail_in > 0 || stream->avail_out == 0);
    return HK_OK;
}

hk_status_t hk_gzip_event(hk_gzip_t *gzip, hk_bytes_t event, hk_buf_t *out)
{
    size_t before = out->length;
    if (event.length == 0) {
        return HK_OK;
    }
    if (!gzip->begun) {
        gzip->stream.avail_in = 0;
        (void)deflateReset(&gzip->stream);
    }
    hk_status_t status = deflate_all(&gzip->stream, event, out);
    gzip->begun = status == HK_OK;
    if (status != HK_OK) {
        out->length = before;
    }
    return status;
}

hk_status_t hk_gzip_block(hk_gzip_t *gzip, hk_bytes_t bytes, hk_buf_t *out)
{
    hk_gzip_begin(gzip);
    hk_status_t status = hk_gzip_event(gzip, bytes, out);
    hk_gzip_begin(gzip);
    return status;
}

bool hk_gzip_at_beginning(const hk_gzip_t *gzip)
{
    return !gzip->begun;
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

hk_status_t hk_gzip_new(const hk_alloc_t *alloc, hk_gzip_use_t use, hk_gzip_t **gzip)
{
    (void)alloc;
    (void)use;
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
