#include "hk_gzip.h"
#include "hk_test.h"

#include <stdio.h>

enum { EVENTS = 200, ROOM = 1 << 20, LONGEST = 200000 };

HK_TEST(the_sum_of_two_is_found_from_the_length_of_the_second)
{
    static char bytes[2000];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)hk_test_random();
    }
    HK_CHECK_EQUAL_UINT(0xCBF43926, hk_gzip_sum(HK_BYTES("123456789")).crc);
    HK_CHECK_EQUAL_UINT(0, hk_gzip_sum(HK_BYTES("")).crc);
    for (size_t length = 0; length <= sizeof(bytes); length += 1 + length / 3) {
        hk_test_note("%zu bytes before", length);
        hk_gzip_sum_t whole = hk_gzip_sum(hk_bytes(bytes, sizeof(bytes)));
        hk_gzip_sum_t first = hk_gzip_sum(hk_bytes(bytes, length));
        hk_gzip_sum_t second = hk_gzip_sum(hk_bytes(bytes + length, sizeof(bytes) - length));
        hk_gzip_sum_t joined = hk_gzip_join(first, second, hk_gzip_behind(second.length));
        HK_CHECK_EQUAL_UINT(whole.crc, joined.crc);
        HK_CHECK_EQUAL_UINT(whole.length, joined.length);
        HK_CHECK_EQUAL_UINT(second.crc, hk_gzip_rest(whole, first).crc);
        HK_CHECK_EQUAL_UINT(second.length, hk_gzip_rest(whole, first).length);
    }
}

HK_TEST(without_memory_nothing_is_stored)
{
    static char bytes[200000];
    HK_EACH_FAILING_ALLOCATION {
        hk_buf_t out;
        hk_buf_init(&out, hk_test_alloc());
        hk_status_t status = hk_gzip_stored(hk_bytes(bytes, sizeof(bytes)), &out);
        /* Four blocks. */
        HK_CHECK_EQUAL_UINT(status == HK_OK ? sizeof(bytes) + 4 * 5 : 0, out.length);
        hk_buf_release(&out);
    }
}

#ifdef HK_HAVE_ZLIB

#include <zlib.h>

/* -- Events -------------------------------------------------------------------------------------------------------- */

/* One of a row, of 20 to 400 bytes; some are large, and some of what cannot be compressed. */
static hk_bytes_t event(size_t number)
{
    static char bytes[LONGEST];
    size_t length = (size_t)snprintf(bytes, sizeof(bytes), "id: %zu\ndata: {\"sensor\":\"%zu\",\"value\":%zu}\n\n",
                                     number, number % 7, number * 977 % 1000);
    size_t more = number % 41 == 40 ? LONGEST - length : number % 5 * 80;
    for (size_t i = 0; i < more; i++) {
        size_t mixed = (number + i) * UINT64_C(0x9E3779B97F4A7C15) >> 40;
        bytes[length + i] = (char)(number % 3 == 0 ? mixed : 'a' + mixed % 4);
    }
    return hk_bytes(bytes, length + more);
}

/* -- What a client does -------------------------------------------------------------------------------------------- */

typedef struct reader {
    z_stream stream;
    hk_buf_t said;
    bool ended;
} reader_t;

static void reader_begin(reader_t *reader)
{
    *reader = (reader_t){.ended = false};
    hk_buf_init(&reader->said, hk_alloc_default());
    HK_CHECK_EQUAL_INT(Z_OK, inflateInit2(&reader->stream, 16 + MAX_WBITS));
}

/* All that the bytes say can be read at once. */
static void reader_take(reader_t *reader, hk_bytes_t bytes)
{
    int status = Z_OK;
    reader->stream.next_in = (z_const Bytef *)(uintptr_t)bytes.at;
    reader->stream.avail_in = (uInt)bytes.length;
    do {
        HK_CHECK_OK(hk_buf_reserve(&reader->said, 4096));
        reader->stream.next_out = (Bytef *)hk_buf_end(&reader->said);
        reader->stream.avail_out = 4096;
        status = inflate(&reader->stream, Z_SYNC_FLUSH);
        HK_CHECK(status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END);
        hk_buf_grew(&reader->said, 4096 - reader->stream.avail_out);
    } while (status == Z_OK && reader->stream.avail_out == 0);
    HK_CHECK_EQUAL_UINT(0, reader->stream.avail_in);
    reader->ended = reader->ended || status == Z_STREAM_END;
}

static void reader_end(reader_t *reader)
{
    hk_buf_release(&reader->said);
    HK_CHECK_EQUAL_INT(Z_OK, inflateEnd(&reader->stream));
}

/* -- Pieces -------------------------------------------------------------------------------------------------------- */

typedef struct piece {
    hk_buf_t bytes;
    bool begins; /* an epoch */
} piece_t;

static void make_events(piece_t pieces[EVENTS], bool blocks)
{
    hk_gzip_t *gzip;
    HK_CHECK_OK(hk_gzip_new(hk_test_alloc(), blocks ? HK_GZIP_BLOCKS : HK_GZIP_EPOCHS, &gzip));
    for (size_t i = 0; i < EVENTS; i++) {
        hk_buf_init(&pieces[i].bytes, hk_test_alloc());
        if (hk_test_below(20) == 0) {
            hk_gzip_begin(gzip);
        }
        pieces[i].begins = hk_gzip_at_beginning(gzip);
        HK_CHECK_OK(blocks ? hk_gzip_block(gzip, event(i), &pieces[i].bytes)
                           : hk_gzip_event(gzip, event(i), &pieces[i].bytes));
    }
    hk_gzip_free(gzip);
}

static void release(piece_t pieces[EVENTS])
{
    for (size_t i = 0; i < EVENTS; i++) {
        hk_buf_release(&pieces[i].bytes);
    }
}

HK_TEST(wherever_a_reader_joins_it_reads_what_was_said)
{
    static piece_t blocks[EVENTS], events[EVENTS];
    make_events(blocks, true);
    make_events(events, false);
    for (size_t turn = 0; turn < 200; turn++) {
        size_t first = hk_test_below(EVENTS), last = first + hk_test_below(EVENTS - first);
        bool in_step = false;
        hk_gzip_sum_t sum = {0, 0};
        char tail[HK_GZIP_TAIL_BYTES];
        hk_buf_t expected;
        reader_t reader;
        hk_test_note("events %zu to %zu", first, last);
        hk_buf_init(&expected, hk_alloc_default());
        reader_begin(&reader);
        reader_take(&reader, HK_GZIP_HEAD);
        for (size_t i = first; i <= last; i++) {
            /* Now and then it gets something else, and is out of step. */
            in_step = (in_step || events[i].begins) && hk_test_below(20) != 0;
            reader_take(&reader, hk_buf_bytes(in_step ? &events[i].bytes : &blocks[i].bytes));
            HK_CHECK_OK(hk_buf_append(&expected, event(i)));
            hk_gzip_sum_t of_event = hk_gzip_sum(event(i));
            sum = hk_gzip_join(sum, of_event, hk_gzip_behind(of_event.length));
            HK_CHECK_EQUAL_UINT(expected.length, reader.said.length);
        }
        HK_CHECK(hk_bytes_equal(hk_buf_bytes(&expected), hk_buf_bytes(&reader.said)));
        HK_CHECK(!reader.ended);
        hk_gzip_tail(sum, tail);
        reader_take(&reader, hk_bytes(tail, sizeof(tail)));
        HK_CHECK(reader.ended);
        reader_end(&reader);
        hk_buf_release(&expected);
    }
    release(blocks);
    release(events);
}

HK_TEST(an_epoch_lasts_until_the_next_is_begun_or_a_block_is_made)
{
    hk_gzip_t *gzip;
    hk_buf_t out;
    hk_buf_init(&out, hk_test_alloc());
    HK_CHECK_OK(hk_gzip_new(hk_test_alloc(), HK_GZIP_EPOCHS, &gzip));
    HK_CHECK(hk_gzip_at_beginning(gzip));
    size_t sizes[6];
    for (size_t i = 0; i < 6; i++) {
        size_t before = out.length;
        if (i == 3) {
            hk_gzip_begin(gzip);
        }
        HK_CHECK_EQUAL_INT(i % 3 == 0, hk_gzip_at_beginning(gzip));
        HK_CHECK_OK(hk_gzip_event(gzip, HK_BYTES("data: what is said again is short\n\n"), &out));
        sizes[i] = out.length - before;
    }
    HK_CHECK(sizes[1] * 2 < sizes[0]);
    HK_CHECK_EQUAL_UINT(sizes[0], sizes[3]);
    HK_CHECK_EQUAL_UINT(sizes[1], sizes[4]);
    HK_CHECK_OK(hk_gzip_block(gzip, HK_BYTES("data: x\n\n"), &out));
    HK_CHECK(hk_gzip_at_beginning(gzip));
    hk_gzip_free(gzip);
    hk_buf_release(&out);
}

HK_TEST(events_of_one_kind_take_a_quarter_in_an_epoch)
{
    hk_gzip_t *gzip;
    hk_buf_t out;
    size_t said = 0;
    hk_buf_init(&out, hk_test_alloc());
    HK_CHECK_OK(hk_gzip_new(hk_test_alloc(), HK_GZIP_EPOCHS, &gzip));
    for (size_t i = 0; i < 320; i++) {
        char bytes[400];
        size_t length = (size_t)snprintf(
            bytes, sizeof(bytes),
            "id: #%zx\ndata: "
            "{\"type\":\"reading\",\"sensor\":\"urn:example:sensor:%zu\",\"at\":\"2026-01-01T00:00:%02zuZ\","
            "\"values\":{\"temperature\":%zu.%zu,\"humidity\":%zu,\"pressure\":%zu},\"location\":{\"building\":"
            "\"north\","
            "\"floor\":%zu,\"room\":\"%zu\"},\"status\":\"ok\",\"tags\":[\"measured\",\"calibrated\",\"indoor\"]}\n\n",
            i * 2654435761u, i % 40, i % 60, i % 30, i % 10, i * 7 % 100, 900 + i * 13 % 200, i % 5, i * 31 % 500);
        said += length;
        HK_CHECK_OK(hk_gzip_event(gzip, hk_bytes(bytes, length), &out));
    }
    hk_test_note("%zu bytes of %zu", out.length, said);
    HK_CHECK(out.length * 4 < said);
    hk_gzip_free(gzip);
    hk_buf_release(&out);
}

HK_TEST(nothing_is_no_bytes)
{
    hk_gzip_t *gzip;
    hk_buf_t out;
    hk_buf_init(&out, hk_test_alloc());
    HK_CHECK_OK(hk_gzip_new(hk_test_alloc(), HK_GZIP_EPOCHS, &gzip));
    HK_CHECK_OK(hk_gzip_block(gzip, HK_BYTES(""), &out));
    HK_CHECK_OK(hk_gzip_event(gzip, HK_BYTES(""), &out));
    HK_CHECK_EQUAL_UINT(0, out.length);
    hk_gzip_free(gzip);
    hk_gzip_free(NULL);
    hk_buf_release(&out);
}

HK_TEST(without_memory_nothing_is_appended_and_the_epoch_ends)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_gzip_t *gzip = NULL;
        hk_buf_t out;
        hk_buf_init(&out, hk_test_alloc());
        hk_status_t status = hk_gzip_new(hk_test_alloc(), HK_GZIP_EPOCHS, &gzip);
        for (size_t i = 0; status == HK_OK && i < 3; i++) {
            size_t before = out.length;
            status = hk_gzip_event(gzip, event(40 + i), &out);
            HK_CHECK(status == HK_OK || out.length == before);
            HK_CHECK_EQUAL_INT(status != HK_OK, hk_gzip_at_beginning(gzip));
        }
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        if (status != HK_OK && gzip != NULL) {
            /* It goes on with a block that can be read. */
            hk_test_not_failing();
            reader_t reader;
            reader_begin(&reader);
            hk_buf_clear(&out);
            HK_CHECK_OK(hk_gzip_block(gzip, HK_BYTES("data: x\n\n"), &out));
            reader_take(&reader, HK_GZIP_HEAD);
            reader_take(&reader, hk_buf_bytes(&out));
            HK_CHECK_BYTES("data: x\n\n", hk_buf_bytes(&reader.said));
            reader_end(&reader);
        }
        hk_gzip_free(gzip);
        hk_buf_release(&out);
    }
}

#else

HK_TEST(without_zlib_there_is_no_context)
{
    hk_gzip_t *gzip = NULL;
    HK_CHECK(!hk_gzip_available());
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_gzip_new(hk_test_alloc(), HK_GZIP_EPOCHS, &gzip));
}

#endif
