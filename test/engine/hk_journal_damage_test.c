/* A disk changes or loses what it was told to keep. */
#include "hk_journal_fixture.h"

static hk_replayed_t whole, replayed;

enum { RECORDS = 9 };

/* Three segments of few records; the last holds up to `end`. closed: in order, else nothing followed the last sync but a
 * batch that was not synced. */
static hk_disk_t *make(bool closed, uint64_t *known)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    for (uint64_t part = 0; part < 3; part++) {
        HK_CHECK_OK(open_on(disk, &whole, &journal, NULL));
        for (uint64_t i = 0; i < RECORDS / 3; i++) {
            HK_CHECK_OK(append_seeded(journal, i, (size_t)(i * 5 + part), false, NULL, NULL));
            HK_CHECK_OK(sync_journal(journal));
        }
        if (part < 2 || closed) {
            HK_CHECK_OK(hk_journal_close(journal));
        } else {
            hk_journal_drop_dead(journal);
        }
    }
    /* The newest batch cannot know that it was synced. */
    *known = closed ? RECORDS : RECORDS - 1;
    hk_disk_t *copy = hk_disk_cut(disk, disk->count, 1);
    HK_CHECK_OK(open_on(disk, &whole, &journal, NULL));
    HK_CHECK_EQUAL_UINT(RECORDS, whole.count);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
    return copy;
}

/* Everything that is known to have been synced, or a refusal that says where. */
static bool opens(hk_disk_t *disk, uint64_t known)
{
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    hk_status_t status = open_on(disk, &replayed, &journal, &trouble);
    HK_CHECK_EQUAL_INT(status == HK_OK, hk_disk_open_count(disk) > 0);
    if (status != HK_OK) {
        HK_CHECK_STATUS(HK_INVALID, status);
        HK_CHECK(trouble.segment[0] != 0 && strstr(trouble.text, trouble.segment) != NULL);
        HK_CHECK(strstr(trouble.text, "at offset") != NULL && strstr(trouble.text, "hikyaku log salvage") != NULL);
        return false;
    }
    HK_CHECK(replayed.count >= known);
    for (uint64_t i = 0; i < replayed.count; i++) {
        HK_CHECK_EQUAL_UINT(i + 1, replayed.positions[i]);
        HK_CHECK_EQUAL_UINT(whole.sums[i], replayed.sums[i]);
    }
    hk_journal_drop_dead(journal);
    return true;
}

/* The files that an opened journal reads. */
static const char *const files[] = {"journal-00000000000000000001.seg", "journal-00000000000000000002.seg",
                                    "journal-00000000000000000003.seg", "checkpoint"};

/* What of a file has a meaning. */
static size_t used(const hk_disk_t *disk, const char *name)
{
    const hk_disk_file_t *file = hk_disk_file(disk, name);
    size_t size = file->size;
    while (size > 0 && file->bytes[size - 1] == 0) {
        size--;
    }
    return size;
}

static void flip_each_bit(bool closed)
{
    uint64_t known;
    hk_disk_t *disk = make(closed, &known);
    size_t refused = 0, opened = 0;
    for (size_t i = 0; i < 4; i++) {
        size_t end = used(disk, files[i]);
        for (size_t at = 0; at < end + 3 && at < hk_disk_file(disk, files[i])->size; at++) {
            for (int bit = 0; bit < 8; bit++) {
                hk_disk_t *damaged = hk_disk_cut(disk, disk->count, 1);
                hk_disk_file(damaged, files[i])->bytes[at] ^= (char)(1 << bit);
                hk_test_note("%s at %zu, bit %d", files[i], at, bit);
                bool is_open = opens(damaged, known);
                refused += !is_open;
                opened += is_open;
                hk_disk_free(damaged);
            }
        }
    }
    HK_CHECK(refused > 5000 && opened > 50);
    hk_disk_free(disk);
}

HK_TEST(a_bit_that_changes_in_a_closed_journal_loses_nothing_unsaid)
{
    flip_each_bit(true);
}

HK_TEST(a_bit_that_changes_in_one_that_was_killed_loses_nothing_that_was_known_to_be_synced)
{
    flip_each_bit(false);
}

HK_TEST(a_file_that_is_cut_off_is_refused)
{
    uint64_t known;
    hk_disk_t *disk = make(true, &known);
    for (size_t i = 0; i < 4; i++) {
        size_t size = hk_disk_file(disk, files[i])->size, end = used(disk, files[i]) + 10;
        for (size_t at = 0; at < size; at += at < end ? 1 : 4093) {
            hk_disk_t *damaged = hk_disk_cut(disk, disk->count, 1);
            hk_disk_resize(hk_disk_file(damaged, files[i]), at);
            hk_test_note("%s cut off at %zu", files[i], at);
            HK_CHECK(!opens(damaged, known));
            hk_disk_free(damaged);
        }
    }
    hk_disk_free(disk);
}

HK_TEST(a_file_that_is_missing_is_refused_unless_it_is_the_checkpoint)
{
    uint64_t known;
    for (int closed = 0; closed < 2; closed++) {
        hk_disk_t *disk = make(closed != 0, &known);
        for (size_t i = 0; i < 4; i++) {
            hk_disk_t *damaged = hk_disk_cut(disk, disk->count, 1);
            hk_disk_forget_name(damaged, files[i]);
            hk_test_note("%s", files[i]);
            HK_CHECK(opens(damaged, known) == (i == 3));
            hk_disk_free(damaged);
        }
        hk_disk_free(disk);
    }
}

HK_TEST(sectors_that_are_lost_from_a_long_segment_are_said)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &whole, &journal, NULL));
    for (uint64_t i = 0; i < 50; i++) {
        HK_CHECK_OK(append_seeded(journal, i, hk_test_below(2000), false, NULL, NULL));
        HK_CHECK_OK(sync_journal(journal));
    }
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_t *copy = hk_disk_cut(disk, disk->count, 1);
    HK_CHECK_OK(open_on(disk, &whole, &journal, NULL));
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
    for (size_t at = 0; at < used(copy, files[0]); at += HK_DISK_SECTOR) {
        hk_disk_t *damaged = hk_disk_cut(copy, copy->count, 1);
        memset(hk_disk_file(damaged, files[0])->bytes + at, 0, HK_DISK_SECTOR);
        hk_test_note("zeros at %zu", at);
        HK_CHECK(!opens(damaged, 50));
        hk_disk_free(damaged);
    }
    hk_disk_free(copy);
}
