#include "hk_coded_reader.h"
#include "hk_epoch.h"
#include "hk_test.h"

#ifdef HK_HAVE_ZLIB

static hk_epoch_t *make_epoch(hk_position_t after)
{
    hk_epoch_t *epoch;
    HK_CHECK_OK(hk_epoch_new(hk_test_alloc(), 1, after, &epoch));
    return epoch;
}

static void add(hk_epoch_t *epoch, hk_position_t position, hk_bytes_t event)
{
    hk_gzip_sum_t sum = hk_gzip_sum(event);
    HK_CHECK_OK(hk_epoch_add(epoch, position, event, sum, hk_gzip_behind(sum.length)));
}

/* Whether it is over, after an event that so many got in step and so many alone. */
static bool over_after(hk_epoch_t *epoch, unsigned in_step, unsigned alone)
{
    add(epoch, epoch->at + 1, HK_BYTES("data: x\n\n"));
    for (unsigned i = 0; i < in_step; i++) {
        hk_epoch_got(epoch);
    }
    hk_epoch_missed(epoch, alone);
    return hk_epoch_over(epoch);
}

static bool is_at(const hk_epoch_t *epoch, uint64_t number, hk_position_t cursor, uint32_t expected)
{
    uint32_t place = 99;
    return hk_epoch_place(epoch, number, cursor, &place) && place == expected;
}

static bool waits(const hk_epoch_t *epoch, uint64_t number, hk_position_t cursor)
{
    uint32_t place;
    return !hk_epoch_place(epoch, number, cursor, &place);
}

HK_TEST(an_epoch_goes_on_as_long_as_nobody_waits)
{
    hk_epoch_t *epoch = make_epoch(0);
    for (size_t i = 0; i < 10000; i++) {
        HK_CHECK(!over_after(epoch, 3, 0));
        if (hk_epoch_full(epoch)) {
            hk_epoch_forget(epoch);
        }
    }
    HK_CHECK(over_after(epoch, 3, 1));
    hk_epoch_free(epoch);
}

HK_TEST(it_is_over_when_those_that_wait_lose_more_than_those_in_step_would)
{
    static const struct {
        unsigned in_step, alone, events;
    } rows[] = {{1000, 1, 64}, {1000, 60, 64}, {100, 10, 40}, {3, 1, 16}, {1, 1, 16}, {1, 1000, 16}, {0, 1, 1}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_epoch_t *epoch = make_epoch(0);
        hk_test_note("row %zu", i);
        for (unsigned count = 1; count < rows[i].events; count++) {
            HK_CHECK(!over_after(epoch, rows[i].in_step, rows[i].alone));
        }
        HK_CHECK(over_after(epoch, rows[i].in_step, rows[i].alone));
        hk_epoch_begin(epoch, 2, epoch->at);
        HK_CHECK(!hk_epoch_over(epoch));
        HK_CHECK(!over_after(epoch, rows[i].in_step, 0));
        hk_epoch_free(epoch);
    }
}

HK_TEST(who_waited_and_is_gone_counts_no_more_and_large_events_end_it_sooner)
{
    static char large[HK_EPOCH_BYTES];
    hk_epoch_t *epoch = make_epoch(0);
    for (size_t i = 0; i < 20; i++) {
        (void)over_after(epoch, 100, i < 10 ? 2 : 0);
    }
    HK_CHECK(!over_after(epoch, 4, 0));
    HK_CHECK(!over_after(epoch, 100, 1));
    add(epoch, 100, hk_bytes(large, sizeof(large)));
    HK_CHECK(!over_after(epoch, 100, 0));
    HK_CHECK(over_after(epoch, 100, 1));
    hk_epoch_free(epoch);
}

HK_TEST(before_lengths_are_too_great_it_is_over_whoever_waits)
{
    hk_epoch_t *epoch = make_epoch(0);
    HK_CHECK(!over_after(epoch, 1, 0));
    epoch->sum.length = HK_EPOCH_MOST;
    HK_CHECK(hk_epoch_full(epoch));
    HK_CHECK(hk_epoch_over(epoch));
    hk_epoch_free(epoch);
}

HK_TEST(who_can_go_on_and_who_can_begin)
{
    hk_epoch_t *epoch = make_epoch(10);
    add(epoch, 12, HK_BYTES("one"));
    add(epoch, 15, HK_BYTES("two"));
    HK_CHECK(is_at(epoch, 0, 10, 0) && is_at(epoch, 0, 11, 0) && is_at(epoch, 7, 11, 0));
    HK_CHECK(waits(epoch, 0, 9) && waits(epoch, 0, 12) && waits(epoch, 7, 15));
    HK_CHECK(is_at(epoch, 1, 12, 1) && is_at(epoch, 1, 14, 1) && is_at(epoch, 1, 15, 2));
    hk_epoch_forget(epoch);
    HK_CHECK(waits(epoch, 0, 12) && waits(epoch, 1, 11) && waits(epoch, 0, 10));
    HK_CHECK(is_at(epoch, 1, 12, 0) && is_at(epoch, 1, 15, 1));
    hk_epoch_begin(epoch, 2, 15);
    add(epoch, 17, HK_BYTES("three"));
    HK_CHECK(is_at(epoch, 1, 15, 0) && is_at(epoch, 0, 15, 0) && waits(epoch, 1, 17));
    hk_epoch_free(epoch);
}

HK_TEST(what_is_in_step_reads_all_of_it_also_when_the_older_half_is_forgotten)
{
    hk_epoch_t *epoch = make_epoch(0);
    hk_buf_t stream, said, expected;
    hk_position_t cursor = 0;
    hk_buf_init(&stream, hk_alloc_default());
    hk_buf_init(&said, hk_alloc_default());
    hk_buf_init(&expected, hk_alloc_default());
    HK_CHECK_OK(hk_buf_append(&stream, HK_GZIP_HEAD));
    for (size_t i = 1; i <= 300; i++) {
        static char event[10000];
        size_t length = i % 50 == 0 ? sizeof(event) : 100 + i % 7;
        memset(event, (int)('a' + i % 20), length);
        if (hk_epoch_full(epoch)) {
            hk_epoch_forget(epoch);
            HK_CHECK(epoch->count <= HK_EPOCH_KEPT / 2 && epoch->bytes.capacity <= HK_EPOCH_BYTES);
        }
        add(epoch, i, hk_bytes(event, length));
        HK_CHECK_OK(hk_buf_append(&expected, hk_bytes(event, length)));
        if (i % 29 == 0) {
            uint32_t place;
            HK_CHECK(hk_epoch_place(epoch, 1, cursor, &place));
            HK_CHECK_OK(hk_buf_append(&stream, hk_epoch_from(epoch, place)));
            cursor = i;
            HK_CHECK(!coded_inflate(hk_buf_bytes(&stream), &said));
            HK_CHECK(hk_bytes_equal(hk_buf_bytes(&expected), hk_buf_bytes(&said)));
            HK_CHECK_EQUAL_UINT(hk_gzip_sum(hk_buf_bytes(&said)).crc, epoch->entries[epoch->count - 1].sum.crc);
            hk_buf_clear(&said);
        }
    }
    hk_buf_release(&stream);
    hk_buf_release(&said);
    hk_buf_release(&expected);
    hk_epoch_free(epoch);
}

HK_TEST(bytes_of_large_events_are_not_kept_beyond_the_next)
{
    static char large[200000];
    hk_epoch_t *epoch = make_epoch(0);
    for (size_t i = 0; i < sizeof(large); i++) {
        large[i] = (char)hk_test_random();
    }
    add(epoch, 1, HK_BYTES("one"));
    add(epoch, 2, hk_bytes(large, sizeof(large)));
    HK_CHECK(hk_epoch_full(epoch));
    hk_epoch_forget(epoch);
    HK_CHECK(!hk_epoch_full(epoch));
    HK_CHECK(epoch->bytes.capacity <= HK_EPOCH_BYTES);
    HK_CHECK(is_at(epoch, 1, 2, 0));
    hk_epoch_free(epoch);
}

HK_TEST(without_memory_there_is_no_epoch_or_it_is_as_it_was)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_epoch_t *epoch = NULL;
        hk_status_t status = hk_epoch_new(hk_test_alloc(), 1, 0, &epoch);
        if (status == HK_OK) {
            hk_gzip_sum_t sum = hk_gzip_sum(HK_BYTES("x"));
            status = hk_epoch_add(epoch, 1, HK_BYTES("x"), sum, hk_gzip_behind(1));
            HK_CHECK_EQUAL_UINT(status == HK_OK, epoch->count);
        }
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        hk_epoch_free(epoch);
    }
}

#else

HK_TEST(without_zlib_there_is_no_epoch)
{
    hk_epoch_t *epoch = NULL;
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_epoch_new(hk_test_alloc(), 1, 0, &epoch));
}

#endif
