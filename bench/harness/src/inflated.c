#include "inflated.h"

#ifdef BENCH_ZLIB

#include <stdlib.h>
#include <zlib.h>

enum { OUT_BYTES = 65536, WINDOW_BITS = 15, GZIP = 16 };

struct inflated {
    z_stream stream;
};

bool inflated_available(void)
{
    return true;
}

struct inflated *inflated_new(void)
{
    struct inflated *inflated = calloc(1, sizeof *inflated);
    if (inflated && inflateInit2(&inflated->stream, WINDOW_BITS + GZIP) == Z_OK) return inflated;
    free(inflated);
    return NULL;
}

void inflated_free(struct inflated *inflated)
{
    if (inflated) inflateEnd(&inflated->stream);
    free(inflated);
}

bool inflated_read(struct inflated *inflated, const char *bytes, size_t length,
                   void (*take)(void *context, const char *bytes, size_t length), void *context)
{
    static char out[OUT_BYTES];
    z_stream *stream = &inflated->stream;
    stream->next_in = (unsigned char *)(size_t)bytes;
    stream->avail_in = (unsigned)length;
    do {
        stream->next_out = (unsigned char *)out;
        stream->avail_out = OUT_BYTES;
        int status = inflate(stream, Z_SYNC_FLUSH);
        if (status != Z_OK && status != Z_BUF_ERROR) return false;
        if (stream->avail_out < OUT_BYTES) take(context, out, OUT_BYTES - stream->avail_out);
    } while (stream->avail_in > 0 || stream->avail_out == 0);
    return true;
}

#else

bool inflated_available(void)
{
    return false;
}

struct inflated *inflated_new(void)
{
    return NULL;
}

void inflated_free(struct inflated *inflated)
{
    (void)inflated;
}

bool inflated_read(struct inflated *inflated, const char *bytes, size_t length,
                   void (*take)(void *context, const char *bytes, size_t length), void *context)
{
    (void)inflated, (void)bytes, (void)length, (void)take, (void)context;
    return false;
}

#endif
