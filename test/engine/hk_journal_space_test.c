/* Segments: when they are begun, what is kept when there is no room for another, how they go. */
#include "hk_journal_fixture.h"

static hk_replayed_t replayed;

/* Appends and syncs until this segment is the current one. How many records that took. */
static uint64_t fill_up_to(hk_journal_t *journal, uint64_t segment)
{
    uint64_t count = 0;
    while (hk_journal_current(journal) < segment) {
        HK_CHECK_OK(append_seeded(journal, 1, 6000, false, NULL, NULL));
        HK_CHECK_OK(sync_journal(journal));
        count++;
    }
    return count;
}

static hk_status_t reopen(hk_disk_t *disk, hk_journal_t **journal)
{
    hk_journal_drop_dead(*journal);
    hk_journal_trouble_t trouble;
    hk_status_t status = open_on(disk, &replayed, journal, &trouble);
    hk_test_note("%s", trouble.text);
    return status;
}

static bool has_segment(const hk_disk_t *disk, unsigned number)
{
    char name[HK_DISK_NAME];
    snprintf(name, sizeof(name), "journal-%020u.seg", number);
    return hk_disk_file(disk, name) != NULL;
}

HK_TEST(a_dropped_segment_becomes_a_spare_and_its_records_are_not_replayed)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    fill_up_to(journal, 3);
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_drop(journal, 3));
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_drop(journal, 4));
    HK_CHECK_OK(hk_journal_drop(journal, 1));
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_journal_drop(journal, 1));
    HK_CHECK_EQUAL_UINT(2, hk_journal_oldest(journal));
    HK_CHECK(has_segment(disk, 1));
    uint64_t bytes = hk_journal_bytes(journal);
    HK_CHECK_OK(hk_journal_write(journal, 2));
    HK_CHECK_OK(run_jobs(journal));
    HK_CHECK(!has_segment(disk, 1));
    HK_CHECK_EQUAL_UINT(bytes - SEGMENT, hk_journal_bytes(journal));
    hk_journal_stats_t stats;
    hk_journal_read_stats(journal, &stats);
    HK_CHECK_EQUAL_UINT(2, stats.spares);
    HK_CHECK_EQUAL_UINT(2, stats.segments);
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(2, replayed.segments[0]);
    HK_CHECK_EQUAL_UINT(replayed.last - replayed.first + 1, replayed.count);
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(one_old_segment_may_stay_while_all_behind_it_go)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    uint64_t of_first = fill_up_to(journal, 2) - 1;
    for (uint64_t segment = 3; segment < 20; segment++) {
        fill_up_to(journal, segment);
        HK_CHECK_OK(hk_journal_drop(journal, segment - 1));
        HK_CHECK_OK(hk_journal_write(journal, 2));
        HK_CHECK_OK(run_jobs(journal));
        hk_disk_t *after = hk_disk_cut(disk, disk->count, segment);
        hk_journal_t *other;
        hk_journal_trouble_t trouble;
        hk_status_t status = open_on(after, &replayed, &other, &trouble);
        hk_test_note("%s", trouble.text);
        HK_CHECK_OK(status);
        HK_CHECK(replayed.count >= of_first && replayed.positions[of_first - 1] == of_first);
        hk_journal_drop_dead(other);
        hk_disk_free(after);
    }
    /* Without a checkpoint the records say it. */
    HK_CHECK_OK(hk_journal_drop(journal, 1));
    HK_CHECK_OK(hk_journal_write(journal, 2));
    HK_CHECK_OK(run_jobs(journal));
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(19, replayed.segments[0]);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

HK_TEST(a_segment_behind_a_torn_one_stays_as_long_as_that)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(2, hk_journal_current(journal));
    hk_journal_stats_t stats;
    hk_journal_read_stats(journal, &stats);
    HK_CHECK_EQUAL_UINT(1, stats.torn_repaired);
    fill_up_to(journal, 4);
    HK_CHECK_OK(hk_journal_drop(journal, 2));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK(has_segment(disk, 2));
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(1, replayed.positions[0]);
    HK_CHECK_OK(hk_journal_drop(journal, 2));
    HK_CHECK_OK(hk_journal_drop(journal, 1));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK(!has_segment(disk, 1) && !has_segment(disk, 2));
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(3, replayed.segments[0]);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

HK_TEST(segments_are_used_again_and_again_in_any_order)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    for (uint64_t segment = 2; segment < 80; segment++) {
        fill_up_to(journal, segment);
        for (size_t drops = hk_test_below(4); drops > 0; drops--) {
            (void)hk_journal_drop(journal, segment - 1 - hk_test_below(segment < 8 ? segment - 1 : 7));
        }
        HK_CHECK_OK(sync_journal(journal));
        hk_journal_stats_t stats;
        hk_journal_read_stats(journal, &stats);
        HK_CHECK(stats.spares <= 2);
        size_t spares = 0;
        for (size_t i = 0; i < disk->entry_count; i++) {
            spares += strncmp(disk->entries[i].name, "spare-", 6) == 0;
        }
        HK_CHECK_EQUAL_UINT(stats.spares, spares);
    }
    uint64_t last = hk_journal_appended(journal);
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(last, replayed.last);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

/* -- A full disk ----------------------------------------------------------------------------------------------------- */

HK_TEST(a_full_journal_takes_what_frees_until_there_is_room_again)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK(hk_journal_remaining(journal) > SEGMENT);
    disk->room = SEGMENT / 2;
    hk_status_t status;
    while ((status = append_seeded(journal, 1, 1000, false, NULL, NULL)) == HK_OK) {
        HK_CHECK_OK(sync_journal(journal));
    }
    HK_CHECK_STATUS(HK_TOO_LARGE, status);
    HK_CHECK(hk_journal_full(journal));
    HK_CHECK(hk_journal_remaining(journal) < 1100);
    HK_CHECK(hk_journal_trouble(journal) == NULL);
    HK_CHECK_EQUAL_UINT(2, hk_journal_current(journal));
    /* No job but after hk_journal_retry. */
    HK_CHECK(hk_journal_job(journal, HK_LANE_SPACE) == NULL);
    hk_journal_retry(journal);
    HK_CHECK_OK(run_jobs(journal));
    HK_CHECK(hk_journal_full(journal));
    uint64_t urgent = 0;
    while ((status = append_seeded(journal, 1, 16, true, NULL, NULL)) == HK_OK) {
        HK_CHECK_OK(sync_journal(journal));
        urgent++;
    }
    HK_CHECK_STATUS(HK_TOO_LARGE, status);
    HK_CHECK(urgent > 50);
    /* A segment can be dropped even so, and that gives room. */
    uint64_t last = hk_journal_appended(journal);
    HK_CHECK_OK(hk_journal_drop(journal, 1));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK(!hk_journal_full(journal));
    HK_CHECK_OK(append_seeded(journal, 1, 1000, false, NULL, NULL));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK_EQUAL_UINT(last + 1, hk_journal_synced(journal));
    HK_CHECK_EQUAL_UINT(3, hk_journal_current(journal));
    disk->room = SIZE_MAX;
    hk_journal_retry(journal);
    HK_CHECK_OK(run_jobs(journal));
    HK_CHECK(!hk_journal_full(journal));
    HK_CHECK_OK(hk_journal_close(journal));
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_EQUAL_UINT(last + 1, replayed.last);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

HK_TEST(whatever_is_short_for_a_spare_at_whatever_step_the_journal_is_full_until_it_is_not)
{
    static const struct {
        const char *step;
        int error;
    } cases[] = {{"create", ENOSPC}, {"create", EDQUOT}, {"create", EMFILE}, {"create", ENFILE},
                 {"write", ENOSPC},  {"write", EDQUOT},  {"sync", ENOSPC},   {"sync", EDQUOT}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hk_test_note("%s, error %d", cases[i].step, cases[i].error);
        hk_disk_t *disk = hk_disk_new();
        hk_journal_t *journal;
        HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
        fill_up_to(journal, 2);
        hk_job_t *job;
        while ((job = hk_journal_job(journal, HK_LANE_SPACE)) == NULL) {
            HK_CHECK_OK(append_seeded(journal, 1, 1000, false, NULL, NULL));
        }
        disk->error = cases[i].error;
        disk->failed = disk->fails_on = true;
        disk->failed_call = cases[i].step;
        hk_job_run(job);
        HK_CHECK_OK(hk_journal_done(journal, job));
        hk_status_t status;
        disk->failed = false;
        while ((status = append_seeded(journal, 1, 1000, false, NULL, NULL)) == HK_OK) {
            HK_CHECK_OK(sync_journal(journal));
        }
        HK_CHECK_STATUS(HK_TOO_LARGE, status);
        HK_CHECK(hk_journal_full(journal));
        HK_CHECK(hk_journal_trouble(journal) == NULL);
        HK_CHECK_OK(append_seeded(journal, 1, 16, true, NULL, NULL));
        HK_CHECK_OK(sync_journal(journal));
        hk_journal_retry(journal);
        HK_CHECK_OK(run_jobs(journal));
        HK_CHECK(!hk_journal_full(journal));
        HK_CHECK_OK(append_seeded(journal, 1, 1000, false, NULL, NULL));
        HK_CHECK_OK(hk_journal_close(journal));
        HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(disk));
        hk_disk_free(disk);
    }
}

/* -- A folder that somebody touches ---------------------------------------------------------------------------------- */

static void expect_lost(hk_journal_t *journal, const char *name, const char *words)
{
    const hk_journal_trouble_t *trouble = hk_journal_trouble(journal);
    HK_CHECK(trouble != NULL);
    hk_test_note("%s", trouble->text);
    HK_CHECK_EQUAL_INT(ENOENT, trouble->error);
    HK_CHECK(strcmp(name, trouble->segment) == 0);
    HK_CHECK(strstr(trouble->text, words) != NULL);
    HK_CHECK_STATUS(HK_SYSTEM, append_seeded(journal, 1, 1, true, NULL, NULL));
}

HK_TEST(nothing_is_synced_into_a_segment_that_was_deleted)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    HK_CHECK_OK(sync_journal(journal));
    uint64_t synced = hk_journal_synced(journal);
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    hk_disk_forget_name(disk, "journal-00000000000000000001.seg");
    HK_CHECK_STATUS(HK_SYSTEM, sync_journal(journal));
    HK_CHECK_EQUAL_UINT(synced, hk_journal_synced(journal));
    expect_lost(journal, "journal-00000000000000000001.seg", "was deleted");
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

HK_TEST(nothing_is_synced_in_a_folder_that_is_not_where_it_was)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    disk->moved = true;
    HK_CHECK_STATUS(HK_SYSTEM, sync_journal(journal));
    HK_CHECK_EQUAL_UINT(0, hk_journal_synced(journal));
    expect_lost(journal, "", "the folder was moved");
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

HK_TEST(what_is_only_written_is_looked_after_now_and_then)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_write(journal, 1000));
    hk_disk_forget_name(disk, "journal-00000000000000000001.seg");
    HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
    HK_CHECK_STATUS(HK_SYSTEM, hk_journal_write(journal, 1100));
    expect_lost(journal, "journal-00000000000000000001.seg", "was deleted");
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

/* -- A full disk, from the beginning --------------------------------------------------------------------------------- */

HK_TEST(a_journal_is_not_opened_without_room_for_its_first_segment)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    disk->room = SEGMENT - 1;
    HK_CHECK_STATUS(HK_SYSTEM, open_on(disk, &replayed, &journal, &trouble));
    HK_CHECK_EQUAL_INT(ENOSPC, trouble.error);
    HK_CHECK(strstr(trouble.text, "ENOSPC") != NULL);
    disk->room = SEGMENT;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, &trouble));
    HK_CHECK(hk_journal_full(journal));
    HK_CHECK_OK(append_seeded(journal, 1, 1000, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(a_full_journal_is_opened_as_often_as_it_is_killed_or_closed)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    replayed.begins = 2;
    replayed.begin_of = 50;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    disk->room = 0;
    hk_status_t status;
    while ((status = append_seeded(journal, 1, 1000, false, NULL, NULL)) == HK_OK) {
        HK_CHECK_OK(sync_journal(journal));
    }
    HK_CHECK_STATUS(HK_TOO_LARGE, status);
    HK_CHECK(hk_journal_full(journal));
    for (int start = 0; start < 12; start++) {
        uint64_t last = hk_journal_appended(journal), current = hk_journal_current(journal);
        if (start % 3 == 1) {
            HK_CHECK_OK(hk_journal_close(journal));
            HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
        } else {
            HK_CHECK_OK(reopen(disk, &journal));
        }
        HK_CHECK_EQUAL_UINT(last, replayed.count);
        HK_CHECK_EQUAL_UINT(last, replayed.last);
        HK_CHECK_EQUAL_UINT(1, replayed.begun);
        HK_CHECK_EQUAL_UINT(last + 2, hk_journal_synced(journal));
        HK_CHECK_EQUAL_UINT(current, hk_journal_current(journal));
        HK_CHECK(hk_journal_full(journal));
        HK_CHECK(hk_journal_remaining(journal) < 1100);
        HK_CHECK_STATUS(HK_TOO_LARGE, append_seeded(journal, 1, 1000, false, NULL, NULL));
        HK_CHECK_OK(append_seeded(journal, 1, 16, true, NULL, NULL));
        HK_CHECK_OK(sync_journal(journal));
        HK_CHECK_EQUAL_UINT(last + 3, hk_journal_synced(journal));
    }
    /* However much of what is urgent came, it can be opened once more, and a segment be dropped. */
    while ((status = append_seeded(journal, 1, 16, true, NULL, NULL)) == HK_OK) {
        HK_CHECK_OK(sync_journal(journal));
    }
    HK_CHECK_STATUS(HK_TOO_LARGE, status);
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_OK(hk_journal_drop(journal, 1));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK(!hk_journal_full(journal));
    uint64_t last = hk_journal_appended(journal);
    HK_CHECK_OK(append_seeded(journal, 1, 1000, false, NULL, NULL));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK(replayed.last > last);
    HK_CHECK_EQUAL_UINT(replayed.last - replayed.first + 1, replayed.count);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
    replayed.begins = 0;
}

HK_TEST(a_full_journal_is_not_opened_without_room_for_what_the_log_remembers_and_is_whole)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_OK(append_seeded(journal, 1, 1000, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_close(journal));
    disk->room = 0;
    replayed.begins = 1;
    replayed.begin_of = 1000;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, &trouble));
    HK_CHECK_OK(hk_journal_close(journal));
    disk->room = 0;
    replayed.begins = SEGMENT / 1000;
    HK_CHECK_STATUS(HK_SYSTEM, open_on(disk, &replayed, &journal, &trouble));
    HK_CHECK_EQUAL_INT(ENOSPC, trouble.error);
    replayed.begins = 0;
    disk->room = SIZE_MAX;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, &trouble));
    HK_CHECK(replayed.count > 0);
    HK_CHECK_EQUAL_UINT(replayed.last, replayed.count);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

/* -- The switch ------------------------------------------------------------------------------------------------------ */

static void finish(hk_journal_t *journal, hk_job_t *job)
{
    HK_CHECK(job != NULL);
    hk_job_run(job);
    HK_CHECK_OK(hk_journal_done(journal, job));
}

HK_TEST(nothing_is_written_to_a_segment_before_the_one_before_it_is_on_the_disk)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    uint64_t last = 0;
    while (hk_journal_current(journal) == 1) {
        last = hk_journal_appended(journal);
        HK_CHECK_OK(append_seeded(journal, 1, 3000, false, NULL, NULL));
        HK_CHECK_OK(hk_journal_write(journal, 1));
    }
    /* Nobody wants it to be synced: it is due all the same. */
    HK_CHECK_EQUAL_UINT(last, hk_journal_written(journal));
    hk_job_t *sync = hk_journal_job(journal, HK_LANE_SYNC);
    HK_CHECK(sync != NULL);
    HK_CHECK(hk_journal_job(journal, HK_LANE_SYNC) == NULL);
    hk_job_t *space = hk_journal_job(journal, HK_LANE_SPACE);
    finish(journal, space);
    HK_CHECK(!has_segment(disk, 2));
    HK_CHECK_OK(append_seeded(journal, 1, 3000, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_write(journal, 1));
    HK_CHECK_EQUAL_UINT(last, hk_journal_written(journal));
    finish(journal, sync);
    HK_CHECK_EQUAL_UINT(last, hk_journal_synced(journal));
    HK_CHECK_EQUAL_UINT(last, hk_journal_written(journal));
    finish(journal, hk_journal_job(journal, HK_LANE_SPACE));
    HK_CHECK(has_segment(disk, 2));
    HK_CHECK_EQUAL_UINT(last + 2, hk_journal_written(journal));
    HK_CHECK_EQUAL_UINT(last, hk_journal_synced(journal));
    HK_CHECK(hk_journal_job(journal, HK_LANE_SYNC) == NULL);
    hk_journal_want_sync(journal, last + 1);
    finish(journal, hk_journal_job(journal, HK_LANE_SYNC));
    HK_CHECK_EQUAL_UINT(last + 2, hk_journal_synced(journal));
    HK_CHECK(hk_journal_job(journal, HK_LANE_SYNC) == NULL);
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(what_is_written_is_brought_to_the_disk_a_part_of_a_segment_at_a_time_though_nobody_waits)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_OK(append_seeded(journal, 1, SEGMENT / 16, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_write(journal, 1));
    HK_CHECK(hk_journal_job(journal, HK_LANE_SYNC) == NULL);
    HK_CHECK_OK(append_seeded(journal, 1, SEGMENT / 8, false, NULL, NULL));
    HK_CHECK_OK(hk_journal_write(journal, 1));
    finish(journal, hk_journal_job(journal, HK_LANE_SYNC));
    HK_CHECK_EQUAL_UINT(hk_journal_written(journal), hk_journal_synced(journal));
    HK_CHECK(hk_journal_job(journal, HK_LANE_SYNC) == NULL);
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(several_segments_can_be_begun_in_memory)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    hk_status_t status;
    for (uint64_t segment = 1; segment < 6; segment++) {
        while ((status = append_seeded(journal, 1, 9000, false, NULL, NULL)) == HK_OK) {
            HK_CHECK_OK(hk_journal_write(journal, 1));
        }
        HK_CHECK_STATUS(HK_TOO_LARGE, status);
        HK_CHECK(!hk_journal_full(journal));
        hk_job_t *job = hk_journal_job(journal, HK_LANE_SPACE);
        finish(journal, job);
    }
    HK_CHECK(hk_journal_current(journal) > 4);
    uint64_t last = hk_journal_appended(journal);
    HK_CHECK(hk_journal_written(journal) < last);
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK_EQUAL_UINT(last, hk_journal_synced(journal));
    HK_CHECK_OK(reopen(disk, &journal));
    HK_CHECK_EQUAL_UINT(last, replayed.count);
    HK_CHECK_OK(hk_journal_close(journal));
    hk_disk_free(disk);
}

HK_TEST(every_segment_begins_with_what_the_log_remembers)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    replayed.begins = 20;
    replayed.begin_of = 500;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    fill_up_to(journal, 4);
    HK_CHECK_EQUAL_UINT(4, replayed.begun);
    /* What does not fit behind it is refused, and no segment is begun for it. */
    HK_CHECK_STATUS(HK_INVALID, append_seeded(journal, 1, SEGMENT - 168 - 10000, false, NULL, NULL));
    HK_CHECK_EQUAL_UINT(4, hk_journal_current(journal));
    HK_CHECK_OK(append_seeded(journal, 1, SEGMENT - 168 - 20 * 528, false, NULL, NULL));
    HK_CHECK_EQUAL_UINT(5, hk_journal_current(journal));
    HK_CHECK_OK(reopen(disk, &journal));
    uint64_t segment = 0;
    for (uint64_t i = 0; i < replayed.count; i++) {
        if (replayed.segments[i] != segment) {
            segment = replayed.segments[i];
            for (uint64_t j = 0; j < 20; j++) {
                HK_CHECK_EQUAL_UINT(500, replayed.lengths[i + j]);
                HK_CHECK_EQUAL_UINT(segment, replayed.segments[i + j]);
            }
        }
    }
    hk_journal_drop_dead(journal);
    replayed.begins = 200;
    HK_CHECK_STATUS(HK_INVALID, open_on(disk, &replayed, &journal, NULL));
    replayed.begins = 0;
    HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(disk));
    hk_disk_free(disk);
}
