/* Records that are read again: from memory while they are there, from the file afterwards. */
#include "hk_journal_fixture.h"

static hk_replayed_t replayed;

enum { RECORDS = 60 };

static hk_journal_record_t records[RECORDS];
static uint32_t sums[RECORDS];

static void append_all(hk_journal_t *journal, bool retain)
{
    for (uint64_t i = 0; i < RECORDS; i++) {
        HK_CHECK_OK(append_seeded(journal, i, (size_t)(i * 150), false, &sums[i], &records[i]));
        HK_CHECK_EQUAL_UINT(i * 150, records[i].body.length);
        HK_CHECK_EQUAL_UINT(sums[i], sum_of(records[i].body));
        if (retain) {
            hk_piece_retain(records[i].piece);
        }
        HK_CHECK_OK(sync_journal(journal));
    }
}

static void check_all(hk_journal_t *journal)
{
    static char body[RECORDS * 150];
    for (uint64_t i = 0; i < RECORDS; i++) {
        hk_journal_record_t again;
        uint64_t segment = records[i].segment;
        uint32_t offset = records[i].offset;
        hk_test_note("record %llu", (unsigned long long)i);
        HK_CHECK_OK(hk_journal_read(journal, segment, offset, body, (size_t)(i * 150)));
        HK_CHECK_EQUAL_UINT(sums[i], sum_of(hk_bytes(body, (size_t)(i * 150))));
        HK_CHECK_OK(hk_journal_reread(journal, segment, offset, &again));
        HK_CHECK_EQUAL_UINT(i + 1, again.position);
        HK_CHECK_EQUAL_UINT(TYPE, again.type);
        HK_CHECK_EQUAL_UINT(sums[i], sum_of(again.body));
        hk_piece_release(again.piece);
    }
}

HK_TEST(records_are_read_back_from_memory_and_from_files)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    append_all(journal, false);
    HK_CHECK(hk_journal_current(journal) > 3);
    check_all(journal);
    /* Not written yet. */
    HK_CHECK_OK(append_seeded(journal, 7, 1000, false, &sums[0], &records[0]));
    char body[1000];
    HK_CHECK_OK(hk_journal_read(journal, records[0].segment, records[0].offset, body, 1000));
    HK_CHECK_EQUAL_UINT(sums[0], sum_of(hk_bytes(body, 1000)));
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_read(journal, 99, 100, body, 10));
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_read(journal, 1, SEGMENT - 5, body, 10));
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_read(journal, 1, 63, body, 10));
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_reread(journal, 99, 100, &records[1]));
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(pieces_that_are_retained_are_evicted_beyond_the_limit_and_outlive_the_journal)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    append_all(journal, true);
    size_t held = 0, evicted = 0;
    for (uint64_t i = 0; i < RECORDS; i++) {
        bool here = records[i].piece->bytes != NULL;
        /* The oldest first. */
        HK_CHECK(here || held == 0);
        held += here;
        evicted += !here;
        if (here) {
            HK_CHECK_EQUAL_UINT(sums[i], sum_of(records[i].body));
        }
    }
    HK_CHECK(held > 0 && evicted > 0);
    check_all(journal);
    HK_CHECK_OK(hk_journal_close(journal));
    for (uint64_t i = 0; i < RECORDS; i++) {
        if (records[i].piece->bytes != NULL) {
            HK_CHECK_EQUAL_UINT(sums[i], sum_of(records[i].body));
        }
        hk_piece_release(records[i].piece);
    }
    hk_disk_free(disk);
}

HK_TEST(what_nobody_retains_is_given_back_when_it_is_written)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    append_all(journal, false);
    size_t bytes = hk_test_bytes_in_use(), requests = hk_test_requests();
    for (uint64_t i = 0; i < 5; i++) {
        HK_CHECK_OK(append_seeded(journal, i, 100, false, NULL, NULL));
        HK_CHECK_OK(hk_journal_write(journal, 1));
    }
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    append_all(journal, false);
    HK_CHECK(hk_test_bytes_in_use() < bytes + SEGMENT);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

HK_TEST(a_record_that_was_changed_on_the_disk_is_not_read_again)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    append_all(journal, false);
    hk_disk_file_t *file = hk_disk_file(disk, "journal-00000000000000000001.seg");
    for (size_t at = 0; at < 24 + 150; at++) {
        file->bytes[records[1].offset - 24 + at] ^= 0x10;
        hk_journal_record_t again;
        hk_test_note("byte %zu", at);
        HK_CHECK_STATUS(HK_INVALID, hk_journal_reread(journal, 1, records[1].offset, &again));
        file->bytes[records[1].offset - 24 + at] ^= 0x10;
    }
    disk->fail_at = 1;
    disk->error = EIO;
    char body[10];
    HK_CHECK_STATUS(HK_SYSTEM, hk_journal_read(journal, 2, 200, body, 10));
    HK_CHECK_EQUAL_INT(EIO, hk_journal_trouble(journal)->error);
    /* A descriptor that is missing is missed by this read alone: the next one finds it. */
    disk->fail_at = 1;
    disk->error = EMFILE;
    HK_CHECK_STATUS(HK_AGAIN, hk_journal_read(journal, 3, 200, body, 10));
    disk->fail_at = 1;
    disk->error = ENFILE;
    HK_CHECK_STATUS(HK_AGAIN, hk_journal_reread(journal, records[1].segment, records[1].offset, &records[1]));
    HK_CHECK_OK(hk_journal_read(journal, 3, 200, body, 10));
    /* That was not the end of the journal. */
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(types_of_the_journal_itself_are_refused)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    hk_bytes_t body = HK_BYTES("0123456789abcdef");
    for (uint8_t type = 0; type < 16; type++) {
        HK_CHECK_STATUS(HK_INVALID, hk_journal_append(journal, type, 0, &body, 1, true, NULL));
    }
    HK_CHECK_OK(hk_journal_append(journal, 16, 255, NULL, 0, false, NULL));
    HK_CHECK_OK(hk_journal_append(journal, 255, 0, &body, 1, false, NULL));
    HK_CHECK_OK(hk_journal_close(journal));
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_EQUAL_UINT(2, replayed.count);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

/* What is told of the reading. */
typedef struct told {
    uint64_t bytes, records, count;
    uint64_t last; /* time that it is told of: then the opening ends; 0: never */
} told_t;

static hk_status_t hear(void *context, uint64_t bytes, uint64_t count)
{
    told_t *told = context;
    told->bytes += bytes;
    told->records += count;
    return ++told->count == told->last ? HK_CLOSED : HK_OK;
}

HK_TEST(who_opens_is_told_how_far_the_reading_is_and_may_end_it_anywhere_without_harm)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    append_all(journal, false);
    HK_CHECK_OK(hk_journal_close(journal));
    memset(&replayed, 0, sizeof(replayed));
    hk_journal_options_t options = options_on(&disk->files, &replayed);
    hk_status_t status = HK_CLOSED;
    uint64_t ended = 0;
    for (told_t told = {.last = 1}; status == HK_CLOSED; told = (told_t){.last = told.last + 1}) {
        replayed.count = 0;
        options.reading = (hk_journal_reading_t){.read = hear, .context = &told};
        status = hk_journal_open(hk_test_alloc(), &options, &journal, NULL);
        HK_CHECK_EQUAL_UINT(replayed.count, status == HK_OK ? told.records : replayed.count);
        HK_CHECK(status == HK_CLOSED || told.bytes >= 2 * SEGMENT);
        ended += status == HK_CLOSED;
    }
    HK_CHECK_OK(status);
    HK_CHECK_EQUAL_UINT(RECORDS, replayed.count);
    HK_CHECK(ended > 6);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

/* As whoever sends the body of a record may make it. */
static void write_heads(char *body, size_t count, uint32_t length)
{
    for (char *head = body; head < body + 24 * count; head += 24) {
        uint32_t inverted = ~length;
        memcpy(head, &length, 4);
        head[8] = 9; /* a position that may come */
        head[16] = TYPE;
        memcpy(head + 20, &inverted, 4);
    }
}

HK_TEST(a_damaged_body_of_heads_of_long_records_is_not_read_once_for_each_and_what_is_whole_behind_it_is_kept)
{
    enum { BODY = 1 << 20, LONG = 1500000, HEADS = 4000 };
    static char heads[BODY];
    memset(&replayed, 0, sizeof(replayed));
    hk_disk_t *disk = hk_disk_new();
    hk_journal_options_t options = options_on(&disk->files, &replayed);
    options.segment_bytes = 4 << 20;
    hk_journal_t *journal;
    HK_CHECK_OK(hk_journal_open(hk_test_alloc(), &options, &journal, NULL));
    write_heads(heads, HEADS, LONG);
    hk_bytes_t body = hk_bytes(heads, sizeof(heads)), behind = HK_BYTES("whole");
    hk_journal_record_t record;
    HK_CHECK_OK(hk_journal_append(journal, TYPE, 0, &body, 1, false, &record));
    HK_CHECK_OK(hk_journal_append(journal, TYPE, 0, &behind, 1, false, NULL));
    HK_CHECK_OK(hk_journal_write(journal, 1700000000000));
    hk_journal_drop_dead(journal);
    hk_disk_file(disk, "journal-00000000000000000001.seg")->bytes[record.offset - 20] ^= 1;
    long calls = disk->calls;
    HK_CHECK_OK(hk_journal_open(hk_test_alloc(), &options, &journal, NULL));
    HK_CHECK(disk->calls - calls < HEADS / 2);
    HK_CHECK_EQUAL_UINT(1, replayed.count);
    HK_CHECK_EQUAL_UINT(sum_of(behind), replayed.sums[0]);
    HK_CHECK_EQUAL_UINT(1, hk_journal_repair(journal)->holes);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}
