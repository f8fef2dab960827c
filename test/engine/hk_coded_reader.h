/* hk_coded_reader.h: what a client makes of a stream in another form, or of a compressed one. */
#ifndef HK_CODED_READER_H
#define HK_CODED_READER_H

#include "hk_buf.h"
#include "hk_gzip.h"
#include "hk_hub.h"
#include "hk_pack.h"
#include "hk_test.h"

#ifdef HK_HAVE_ZLIB
#include <zlib.h>

/* What a stream says, as far as it goes. Whether it was ended in order. */
static inline bool coded_inflate(hk_bytes_t bytes, hk_buf_t *said)
{
    z_stream stream = {0};
    int status = Z_OK;
    HK_CHECK_EQUAL_INT(Z_OK, inflateInit2(&stream, 16 + MAX_WBITS));
    stream.next_in = (z_const Bytef *)(uintptr_t)bytes.at;
    stream.avail_in = (uInt)bytes.length;
    do {
        HK_CHECK_OK(hk_buf_reserve(said, 65536));
        stream.next_out = (Bytef *)hk_buf_end(said);
        stream.avail_out = 65536;
        status = inflate(&stream, Z_SYNC_FLUSH);
        HK_CHECK(status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END);
        hk_buf_grew(said, 65536 - stream.avail_out);
    } while (status == Z_OK);
    HK_CHECK_EQUAL_UINT(0, stream.avail_in);
    (void)inflateEnd(&stream);
    return status == Z_STREAM_END;
}
#else
static inline bool coded_inflate(hk_bytes_t bytes, hk_buf_t *said)
{
    (void)bytes;
    (void)said;
    HK_FAIL("there is no zlib");
}
#endif

static inline uint64_t coded_number(hk_bytes_t *rest, unsigned count)
{
    uint64_t value = 0;
    HK_CHECK(rest->length >= count);
    for (unsigned i = 0; i < count; i++) {
        value = value << 8 | (unsigned char)rest->at[i];
    }
    *rest = hk_bytes(rest->at + count, rest->length - count);
    return value;
}

/* A string; at == NULL: nil. */
static inline hk_bytes_t coded_string(hk_bytes_t *rest)
{
    unsigned head = (unsigned)coded_number(rest, 1);
    if (head == 0xC0) {
        return hk_bytes(NULL, 0);
    }
    size_t length = head >= 0xA0 && head <= 0xBF ? head & 31 : coded_number(rest, 1u << (head - 0xD9));
    HK_CHECK(length <= rest->length);
    hk_bytes_t string = hk_bytes(rest->at, length);
    *rest = hk_bytes(rest->at + length, rest->length - length);
    return string;
}

/* The arrays of a row of values, one behind the other; what else it holds is counted. */
static inline void coded_events(hk_bytes_t rest, hk_buf_t *events, size_t *heartbeats, size_t *words)
{
    while (rest.length > 0) {
        const char *at = rest.at;
        unsigned head = (unsigned)coded_number(&rest, 1);
        if (head == 0x93) {
            (void)coded_string(&rest);
            (void)coded_string(&rest);
            HK_CHECK(coded_string(&rest).at != NULL);
            HK_CHECK_OK(hk_buf_append(events, hk_bytes(at, (size_t)(rest.at - at))));
        } else if (head >= 0xCC) {
            (void)coded_number(&rest, 1u << (head - 0xCC));
        } else {
            HK_CHECK(head < 128 || head == 0xC0 || head == 0xC3);
            *heartbeats += head == 0xC0;
            *words += head == 0xC3;
        }
    }
}

/* The events that a client has read, as coded_events. */
typedef struct coded_stream {
    hk_buf_t said, packed, events;
    size_t heartbeats, words;
    bool ended;
} coded_stream_t;

static inline void coded_read(coded_stream_t *stream, hk_bytes_t received, hk_stream_form_t form,
                              hk_stream_coding_t coding)
{
    *stream = (coded_stream_t){.heartbeats = 0};
    hk_buf_init(&stream->said, hk_alloc_default());
    hk_buf_init(&stream->packed, hk_alloc_default());
    hk_buf_init(&stream->events, hk_alloc_default());
    hk_bytes_t said = received;
    if (coding == HK_STREAM_GZIP) {
        stream->ended = coded_inflate(received, &stream->said);
        said = hk_buf_bytes(&stream->said);
    }
    if (form == HK_STREAM_EVENTS) {
        HK_CHECK_OK(hk_pack_append(&stream->packed, said));
        said = hk_buf_bytes(&stream->packed);
    }
    coded_events(said, &stream->events, &stream->heartbeats, &stream->words);
}

static inline void coded_release(coded_stream_t *stream)
{
    hk_buf_release(&stream->said);
    hk_buf_release(&stream->packed);
    hk_buf_release(&stream->events);
}

/* Whether two have read the same events. */
static inline void coded_check_same(hk_bytes_t expected, const hk_buf_t *actual)
{
    HK_CHECK_EQUAL_UINT(expected.length, actual->length);
    HK_CHECK(hk_bytes_equal(expected, hk_buf_bytes(actual)));
}

#endif
