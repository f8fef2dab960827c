/* Every call fails once, and every request for memory. */
#include "hk_journal_model.h"

static hk_replayed_t replayed;
static hk_model_t model;

/* Whether the call that failed is one that is made again when it was interrupted. */
static bool is_repeated(void)
{
    static const char *const repeated[] = {"write", "read", "sync", "sync_data", "sync of the folder"};
    for (size_t i = 0; i < 5; i++) {
        if (strcmp(model.disk->failed_call, repeated[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_shortage(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE;
}

/* What the same history is, with the call after so many failing; whether it came to that. */
static bool run_failing(long call, int error, bool goes_on)
{
    hk_journal_trouble_t trouble = {.error = 0};
    memset(&model, 0, sizeof(model));
    replayed.begins = 2;
    replayed.begin_of = 50;
    replayed.noted_sums = model.sums;
    replayed.noted_segments = model.segments;
    model.disk = hk_disk_new();
    model.disk->fail_at = call;
    model.disk->error = error;
    model.disk->fails_on = goes_on;
    hk_status_t status = open_on(model.disk, &replayed, &model.journal, &trouble);
    bool failed = model.disk->failed;
    const char *name = failed ? model.disk->failed_call : "none";
    hk_test_note("call %ld (%s), error %d: %s", call, name, error, trouble.text);
    if (status == HK_OK) {
        hk_test_note("call %ld, error %d", call, error);
        /* The same steps each time, as far as they come. */
        for (uint64_t i = 0; i < 40 && model.status == HK_OK; i++) {
            model_append(&model);
            if (model.status == HK_OK && i % 3 != 0) {
                model.status = hk_journal_write(model.journal, i);
                model_note(&model);
            }
            if (i == 25 && hk_journal_drop(model.journal, 1) == HK_OK) {
                model.dropped_at[1] = model.disk->count + 1;
                model.dropped_behind[1] = hk_journal_appended(model.journal);
            }
            hk_journal_want_sync(model.journal, hk_journal_written(model.journal));
            if (model.status == HK_OK && i % 2 == 0) {
                model.status = run_jobs(model.journal);
                model_note(&model);
            }
        }
        failed = model.disk->failed;
        const hk_journal_trouble_t *said = hk_journal_trouble(model.journal);
        if (model.status != HK_OK) {
            HK_CHECK_STATUS(HK_SYSTEM, model.status);
            HK_CHECK(failed && said != NULL);
            HK_CHECK_EQUAL_INT(error != 0 ? error : EINTR, said->error);
            /* And nothing goes on after that. */
            uint64_t synced = hk_journal_synced(model.journal);
            HK_CHECK_STATUS(HK_SYSTEM, append_seeded(model.journal, 1, 1, true, NULL, NULL));
            HK_CHECK_STATUS(HK_SYSTEM, hk_journal_write(model.journal, 1));
            HK_CHECK(hk_journal_job(model.journal, HK_LANE_SYNC) == NULL);
            HK_CHECK(hk_journal_job(model.journal, HK_LANE_SPACE) == NULL);
            HK_CHECK_EQUAL_UINT(synced, hk_journal_synced(model.journal));
            HK_CHECK_EQUAL_UINT(0, hk_journal_remaining(model.journal));
            HK_CHECK_STATUS(HK_SYSTEM, hk_journal_close(model.journal));
        } else if (failed) {
            /* What may fail: what is made for want of room, and what is repeated. */
            HK_CHECK(is_shortage(error) || error == EINTR || error == 0);
            hk_journal_drop_dead(model.journal);
        } else {
            status = hk_journal_close(model.journal);
            failed = model.disk->failed;
            HK_CHECK(status == HK_OK || (failed && status == HK_SYSTEM));
            HK_CHECK(status != HK_OK || !failed || is_shortage(error) || error == EINTR || error == 0);
        }
    } else {
        HK_CHECK(failed);
        HK_CHECK(status == HK_SYSTEM);
        HK_CHECK(trouble.text[0] != 0);
        HK_CHECK_EQUAL_INT(error != 0 ? error : EINTR, trouble.error);
    }
    HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(model.disk));
    if (failed && (error == 0 || error == EINTR) && is_repeated()) {
        HK_CHECK(status == HK_OK && model.status == HK_OK);
    }
    return failed;
}

/* What is left by such a failure is a journal that holds all that was acknowledged. */
static void check_left(uint64_t seed)
{
    static hk_replayed_t after;
    hk_disk_t *disk = hk_disk_cut(model.disk, model.disk->count, seed);
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    hk_status_t status = open_on(disk, &after, &journal, &trouble);
    hk_test_note("afterwards: %s", trouble.text);
    HK_CHECK_OK(status);
    model_check(&model, &after, model.disk->count);
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

static void fail_each(int error, bool goes_on)
{
    for (long call = 1; run_failing(call, error, goes_on); call++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            check_left(seed * 7);
        }
        check_left(1);
        hk_disk_free(model.disk);
    }
    hk_disk_free(model.disk);
}

HK_TEST(a_call_that_fails_loses_nothing_that_was_acknowledged_and_is_said)
{
    fail_each(EIO, false);
}

HK_TEST(a_call_that_fails_for_ever_does_neither)
{
    fail_each(EIO, true);
}

HK_TEST(a_call_without_room_is_an_error_but_where_a_spare_or_a_checkpoint_is_made)
{
    fail_each(ENOSPC, false);
    fail_each(EDQUOT, false);
}

HK_TEST(a_call_without_a_descriptor_is_an_error_but_where_a_spare_or_a_checkpoint_is_made)
{
    fail_each(EMFILE, false);
    fail_each(ENFILE, false);
    fail_each(EMFILE, true);
}

HK_TEST(what_is_interrupted_or_short_is_done_again)
{
    fail_each(EINTR, false);
    /* Writes take half. */
    fail_each(0, false);
}

HK_TEST(writes_may_all_be_short)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    uint32_t sums[40];
    replayed.noted_sums = NULL;
    replayed.begins = 0;
    disk->write_most = 777;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    for (uint64_t i = 0; i < 40; i++) {
        HK_CHECK_OK(append_seeded(journal, i, (size_t)(i * 211), false, &sums[i], NULL));
        if (i % 5 == 0) {
            HK_CHECK_OK(sync_journal(journal));
        }
    }
    HK_CHECK_OK(hk_journal_close(journal));
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_EQUAL_UINT(40, replayed.count);
    for (uint64_t i = 0; i < 40; i++) {
        HK_CHECK_EQUAL_UINT(sums[i], replayed.sums[i]);
    }
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
}

/* A journal that has no room for another segment. */
static hk_disk_t *full_disk(void)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    replayed.noted_sums = NULL;
    replayed.begins = 2;
    replayed.begin_of = 50;
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    disk->room = 0;
    for (uint64_t i = 0; append_seeded(journal, i, 3000, false, NULL, NULL) == HK_OK; i++) {
        HK_CHECK_OK(sync_journal(journal));
    }
    HK_CHECK(hk_journal_full(journal));
    hk_journal_drop_dead(journal);
    return disk;
}

HK_TEST(a_call_that_fails_while_a_full_journal_is_opened_loses_nothing)
{
    hk_disk_t *full = full_disk();
    hk_journal_t *journal;
    bool failed = true;
    for (long call = 1; failed; call++) {
        static const int errors[] = {EIO, EINTR, 0};
        failed = false;
        for (size_t i = 0; i < 3; i++) {
            hk_disk_t *disk = hk_disk_cut(full, full->count, 1);
            hk_journal_trouble_t trouble;
            disk->room = 0;
            disk->fail_at = call;
            disk->error = errors[i];
            hk_status_t status = open_on(disk, &replayed, &journal, &trouble);
            failed = failed || disk->failed;
            hk_test_note("call %ld (%s), error %d: %s", call, disk->failed ? disk->failed_call : "none", errors[i],
                         trouble.text);
            HK_CHECK(status == HK_OK || (disk->failed && status == HK_SYSTEM));
            if (status == HK_OK) {
                hk_journal_drop_dead(journal);
            }
            HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(disk));
            uint64_t before = replayed.last;
            hk_disk_t *after = hk_disk_cut(disk, disk->count, (uint64_t)call);
            after->room = 0;
            HK_CHECK_OK(open_on(after, &replayed, &journal, NULL));
            HK_CHECK(replayed.last >= before);
            HK_CHECK_EQUAL_UINT(replayed.last, replayed.count);
            hk_journal_drop_dead(journal);
            hk_disk_free(after);
            hk_disk_free(disk);
        }
    }
    hk_disk_free(full);
}

HK_TEST(without_memory_a_full_journal_is_not_opened)
{
    hk_disk_t *full = full_disk();
    hk_journal_t *journal;
    HK_EACH_FAILING_ALLOCATION {
        hk_disk_t *disk = hk_disk_cut(full, full->count, 1);
        disk->room = 0;
        hk_status_t status = open_on(disk, &replayed, &journal, NULL);
        HK_CHECK(status == HK_OK || (hk_test_failed() && status == HK_NO_MEMORY));
        if (status == HK_OK) {
            HK_CHECK(hk_journal_full(journal));
            HK_CHECK_OK(hk_journal_close(journal));
        }
        HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(disk));
        hk_disk_free(disk);
    }
    hk_disk_free(full);
}

/* -- Memory ---------------------------------------------------------------------------------------------------------- */

static void use_without_memory(hk_journal_t *journal)
{
    uint64_t before = hk_journal_appended(journal);
    for (uint64_t i = 0; i < 12; i++) {
        uint64_t appended = hk_journal_appended(journal);
        hk_status_t status = append_seeded(journal, i, 9000, false, NULL, NULL);
        HK_CHECK(status == HK_OK || (hk_test_failed() && (status == HK_NO_MEMORY || status == HK_TOO_LARGE)));
        /* What a new segment begins with may have been appended before it failed. */
        HK_CHECK(status != HK_OK || hk_journal_appended(journal) > appended);
        HK_CHECK_OK(sync_journal(journal));
    }
    hk_status_t dropped = hk_journal_drop(journal, hk_journal_oldest(journal));
    HK_CHECK(dropped == HK_OK || hk_test_failed());
    HK_CHECK_OK(sync_journal(journal));
    hk_journal_record_t record;
    hk_status_t status = hk_journal_reread(journal, replayed.segments[0], replayed.offsets[0], &record);
    HK_CHECK(status == HK_OK || status == HK_NOT_FOUND || hk_test_failed());
    if (status == HK_OK) {
        hk_piece_release(record.piece);
    }
    HK_CHECK(hk_journal_synced(journal) >= before);
}

HK_TEST(without_memory_nothing_is_lost)
{
    hk_disk_t *whole = hk_disk_new();
    hk_journal_t *journal;
    replayed.begins = 2;
    replayed.begin_of = 50;
    HK_CHECK_OK(open_on(whole, &replayed, &journal, NULL));
    for (uint64_t i = 0; i < 10; i++) {
        HK_CHECK_OK(append_seeded(journal, i, 9000, false, NULL, NULL));
        HK_CHECK_OK(sync_journal(journal));
    }
    hk_journal_drop_dead(journal);
    HK_EACH_FAILING_ALLOCATION {
        hk_disk_t *disk = hk_disk_cut(whole, whole->count, 1);
        hk_status_t status = open_on(disk, &replayed, &journal, NULL);
        HK_CHECK(status == HK_OK || (hk_test_failed() && status == HK_NO_MEMORY));
        if (status == HK_OK) {
            use_without_memory(journal);
            HK_CHECK_OK(hk_journal_close(journal));
        }
        HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(disk));
        hk_disk_free(disk);
    }
    hk_disk_free(whole);
}
