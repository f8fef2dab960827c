/* The power goes, at any moment, and again. */
#include "hk_journal_model.h"

static hk_replayed_t replayed;
static hk_model_t first, second;

static void clear(hk_model_t *model)
{
    memset(model, 0, sizeof(*model));
    model->random_state = hk_test_random();
    replayed.noted_sums = model->sums;
    replayed.noted_segments = model->segments;
}

/* Opens what a power cut has left, checks it, and goes on: the model takes over what is there. */
static void open_after(hk_model_t *model, const hk_model_t *before, size_t changes, uint64_t seed)
{
    hk_journal_trouble_t trouble;
    clear(model);
    model->disk = hk_disk_cut(before->disk, changes, seed);
    hk_status_t status = open_on(model->disk, &replayed, &model->journal, &trouble);
    hk_test_note("cut after %zu of %zu, seed %llu: %s", changes, before->disk->count, (unsigned long long)seed,
                 trouble.text);
    HK_CHECK_OK(status);
    model_check(before, &replayed, changes);
    model_forget(model, before, &replayed, changes);
    for (uint64_t i = 0; i < replayed.count; i++) {
        model->sums[replayed.positions[i]] = replayed.sums[i];
        model->segments[replayed.positions[i]] = replayed.segments[i];
    }
    for (size_t i = 1; i < MOST_SEGMENTS; i++) {
        model->dropped_at[i] = before->dropped_at[i] > 0 && before->dropped_at[i] <= changes + 1;
        model->dropped_behind[i] = model->dropped_at[i] > 0 ? before->dropped_behind[i] : 0;
    }
    /* Of what is missing no more is known than that it may be. */
    for (uint64_t i = 1; replayed.count > 0 && i <= replayed.last; i++) {
        model->segments[i] = model->segments[i] != 0 ? model->segments[i] : before->segments[i];
    }
    model_note(model);
}

static void leave(hk_model_t *model)
{
    hk_journal_drop_dead(model->journal);
    HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(model->disk));
    hk_disk_free(model->disk);
}

static void begin(hk_model_t *model)
{
    clear(model);
    model->disk = hk_disk_new();
    model->disk->random_state = hk_test_random();
    HK_CHECK_OK(open_on(model->disk, &replayed, &model->journal, NULL));
    model_note(model);
}

static uint64_t seed_of(size_t turn)
{
    return turn < 2 ? turn : hk_test_random() | 2;
}

HK_TEST(what_was_synced_is_there_after_a_power_cut_at_any_moment)
{
    for (int history = 0; history < 4; history++) {
        replayed.begins = (size_t)history;
        replayed.begin_of = 100;
        begin(&first);
        model_run(&first, 250);
        for (size_t changes = 0; changes <= first.disk->count; changes++) {
            for (size_t turn = 0; turn < 4; turn++) {
                hk_replayed_t *seen = &replayed;
                open_after(&second, &first, changes, seed_of(turn));
                HK_CHECK(seen->begun > 0);
                leave(&second);
            }
        }
        leave(&first);
    }
}

HK_TEST(it_is_there_after_a_second_power_cut_in_what_followed_the_first)
{
    static hk_model_t third;
    for (int turn = 0; turn < 150; turn++) {
        replayed.begins = 1;
        replayed.begin_of = 60;
        begin(&first);
        model_run(&first, 150);
        open_after(&second, &first, hk_test_below(first.disk->count + 1), seed_of((size_t)turn % 4));
        model_run(&second, 60);
        for (int again = 0; again < 12; again++) {
            open_after(&third, &second, hk_test_below(second.disk->count + 1), seed_of((size_t)again % 4));
            leave(&third);
        }
        leave(&second);
        leave(&first);
    }
}

HK_TEST(a_power_cut_while_it_is_opened_loses_nothing_either)
{
    static hk_model_t third;
    for (int turn = 0; turn < 20; turn++) {
        begin(&first);
        model_run(&first, 200);
        size_t changes = hk_test_below(first.disk->count + 1);
        open_after(&second, &first, changes, hk_test_random());
        /* All that was replayed is acknowledged; until then what the first had is. */
        second.changes[1] = second.changes[0];
        second.synced[1] = second.synced[0];
        second.synced[0] = model_synced(&first, changes);
        second.changes[0] = 0;
        second.sync_count = 2;
        for (size_t at = 0; at <= second.disk->count; at++) {
            open_after(&third, &second, at, hk_test_random());
            leave(&third);
        }
        leave(&second);
        leave(&first);
    }
}

/* What a process wrote before it was killed can be read, but need not be on the disk. */
HK_TEST(what_was_replayed_after_the_process_was_killed_is_there_after_a_power_cut)
{
    for (int turn = 0; turn < 60; turn++) {
        begin(&first);
        model_run(&first, 200);
        HK_CHECK_OK(hk_journal_write(first.journal, 1));
        hk_journal_drop_dead(first.journal);
        HK_CHECK_OK(open_on(first.disk, &replayed, &first.journal, NULL));
        model_check(&first, &replayed, first.disk->count);
        model_note(&first);
        model_run(&first, (size_t)turn % 3 * 20);
        open_after(&second, &first, first.disk->count, seed_of((size_t)turn % 5));
        leave(&second);
        leave(&first);
    }
}

static size_t bytes_on(const hk_disk_t *disk)
{
    size_t bytes = 0;
    for (size_t i = 0; i < disk->entry_count; i++) {
        bytes += disk->contents[disk->entries[i].file].size;
    }
    return bytes;
}

/* On a disk that holds so many bytes, or those that are there after the cut (0). Whether the journal could be opened. */
static bool open_full(hk_model_t *model, const hk_model_t *before, size_t changes, uint64_t seed, size_t capacity)
{
    hk_journal_trouble_t trouble;
    clear(model);
    model->disk = hk_disk_cut(before->disk, changes, seed);
    size_t bytes = bytes_on(model->disk);
    model->disk->room = capacity > bytes ? capacity - bytes : 0;
    hk_status_t status = open_on(model->disk, &replayed, &model->journal, &trouble);
    hk_test_note("cut after %zu of %zu, seed %llu: %s", changes, before->disk->count, (unsigned long long)seed,
                 trouble.text);
    if (status != HK_OK) {
        HK_CHECK_STATUS(HK_SYSTEM, status);
        HK_CHECK_EQUAL_INT(ENOSPC, trouble.error);
        HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(model->disk));
        hk_disk_free(model->disk);
        return false;
    }
    model_check(before, &replayed, changes);
    model_forget(model, before, &replayed, changes);
    for (uint64_t i = 0; i < replayed.count; i++) {
        model->sums[replayed.positions[i]] = replayed.sums[i];
        model->segments[replayed.positions[i]] = replayed.segments[i];
    }
    for (size_t i = 1; i < MOST_SEGMENTS; i++) {
        model->dropped_at[i] = before->dropped_at[i] > 0 && before->dropped_at[i] <= changes + 1;
        model->dropped_behind[i] = model->dropped_at[i] > 0 ? before->dropped_behind[i] : 0;
    }
    for (uint64_t i = 1; replayed.count > 0 && i <= replayed.last; i++) {
        model->segments[i] = model->segments[i] != 0 ? model->segments[i] : before->segments[i];
    }
    /* Until it was open, what the one before had acknowledged is what has to be there. */
    model->synced[model->sync_count++] = model_synced(before, changes);
    model_note(model);
    return true;
}

/* Then the rest of the newest segment is cleared, and gone on in. */
HK_TEST(a_journal_whose_disk_is_full_is_there_after_any_number_of_power_cuts)
{
    static hk_model_t third;
    int refused = 0, opened = 0, went_on = 0;
    for (int turn = 0; turn < 60; turn++) {
        replayed.begins = 1;
        replayed.begin_of = 60;
        begin(&first);
        model_run(&first, 60 + hk_test_below(120));
        if (!open_full(&second, &first, hk_test_below(first.disk->count + 1), seed_of((size_t)turn % 4), 0)) {
            refused++;
            leave(&first);
            continue;
        }
        opened++;
        went_on += replayed.count > 0 && replayed.segments[replayed.count - 1] == hk_journal_current(second.journal);
        size_t capacity = bytes_on(second.disk) + second.disk->room;
        model_run(&second, 60);
        for (size_t at = 0; at <= second.disk->count; at++) {
            for (size_t again = 0; again < 3; again++) {
                HK_CHECK(open_full(&third, &second, at, seed_of(again), capacity));
                leave(&third);
            }
        }
        leave(&second);
        leave(&first);
    }
    hk_test_note("%d refused, %d opened, %d went on", refused, opened, went_on);
    HK_CHECK(refused < opened / 4);
    HK_CHECK(went_on > 5);
}
