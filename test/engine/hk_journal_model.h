/* hk_journal_model.h: what a journal was told and has acknowledged, to be compared with what is there afterwards. */
#ifndef HK_JOURNAL_MODEL_H
#define HK_JOURNAL_MODEL_H

#include "hk_journal_fixture.h"

enum { MOST_SYNCS = 4096, MOST_SEGMENTS = 256 };

/* What happened on a disk, by the number of changes that were made to it until then. */
typedef struct hk_model {
    hk_disk_t *disk;
    hk_journal_t *journal;
    uint32_t sums[MOST_RECORDS];     /* by position */
    uint64_t segments[MOST_RECORDS]; /* where a record stands */
    bool lost[MOST_RECORDS];         /* never acknowledged as synced, and not there when the journal was opened */
    uint64_t last;                   /* the newest record */
    size_t changes[MOST_SYNCS];      /* when a position was acknowledged as synced */
    uint64_t synced[MOST_SYNCS];
    size_t sync_count;
    size_t dropped_at[MOST_SEGMENTS];       /* when hk_journal_drop was called; 0: never */
    uint64_t dropped_behind[MOST_SEGMENTS]; /* the newest record then: those before it may have taken its place */
    hk_job_t *out[HK_LANES];
    hk_status_t status;
    uint64_t random_state; /* the same steps for the same */
} hk_model_t;

static inline size_t model_below(hk_model_t *model, size_t limit)
{
    return hk_disk_random(&model->random_state) % limit;
}

static inline void model_note(hk_model_t *model)
{
    uint64_t synced = hk_journal_synced(model->journal);
    model->last = hk_journal_appended(model->journal);
    HK_CHECK(synced <= hk_journal_written(model->journal));
    HK_CHECK(hk_journal_written(model->journal) <= hk_journal_appended(model->journal));
    if (model->sync_count == 0 || synced > model->synced[model->sync_count - 1]) {
        HK_CHECK(model->sync_count < MOST_SYNCS);
        model->changes[model->sync_count] = model->disk->count;
        model->synced[model->sync_count++] = synced;
    }
}

/* What had been acknowledged when so many changes were made. */
static inline uint64_t model_synced(const hk_model_t *model, size_t changes)
{
    uint64_t synced = 0;
    for (size_t i = 0; i < model->sync_count; i++) {
        synced = model->changes[i] <= changes ? model->synced[i] : synced;
    }
    return synced;
}

static inline void model_append(hk_model_t *model)
{
    uint64_t position = hk_journal_appended(model->journal) + 1;
    HK_CHECK(position < MOST_RECORDS);
    static const size_t longest[] = {40, 40, 700, 5000, 30000};
    hk_journal_record_t record;
    uint32_t sum;
    size_t length = model_below(model, longest[model_below(model, 5)]);
    hk_status_t status = append_seeded(model->journal, position, length, model_below(model, 4) == 0, &sum, &record);
    if (status == HK_OK) {
        model->sums[record.position] = sum;
        model->segments[record.position] = record.segment;
        model->last = record.position;
    } else if (status != HK_TOO_LARGE) {
        model->status = status;
    }
}

/* Jobs are taken, run and brought back in any order with what else happens. */
static inline void model_step(hk_model_t *model)
{
    hk_journal_t *journal = model->journal;
    size_t lane = model_below(model, HK_LANES);
    switch (model_below(model, 8)) {
    case 0:
    case 1:
    case 2:
        model_append(model);
        break;
    case 3:
        model->status = hk_journal_write(journal, 1700000000000 + model->last);
        break;
    case 4:
        hk_journal_want_sync(journal, hk_journal_appended(journal));
        break;
    case 5:
        if (model_below(model, 6) == 0) {
            uint64_t number = 1 + model_below(model, hk_journal_current(journal));
            if (number < MOST_SEGMENTS && hk_journal_drop(journal, number) == HK_OK) {
                model->dropped_at[number] = model->disk->count + 1;
                model->dropped_behind[number] = hk_journal_appended(journal);
            }
        }
        break;
    default:
        if (model->out[lane] == NULL) {
            model->out[lane] = hk_journal_job(journal, (hk_lane_t)lane);
            if (model->out[lane] != NULL) {
                hk_job_run(model->out[lane]);
            }
        } else {
            model->status = hk_journal_done(journal, model->out[lane]);
            model->out[lane] = NULL;
        }
    }
    model_note(model);
}

/* So many steps, or until the journal has failed. */
static inline void model_run(hk_model_t *model, size_t steps)
{
    model->status = HK_OK;
    for (size_t i = 0; i < steps && model->status == HK_OK; i++) {
        model_step(model);
    }
    for (int lane = 0; lane < HK_LANES; lane++) {
        if (model->out[lane] != NULL) {
            (void)hk_journal_done(model->journal, model->out[lane]);
            model->out[lane] = NULL;
        }
    }
    model_note(model);
}

/* What was not acknowledged before `changes`, and was not replayed, is not missed any more. */
static inline void model_forget(hk_model_t *model, const hk_model_t *before, const hk_replayed_t *replayed,
                                size_t changes)
{
    uint64_t synced = model_synced(before, changes), due = 1;
    for (uint64_t i = 0; i < replayed->count; i++) {
        for (; due < replayed->positions[i]; due++) {
            model->lost[due] = before->lost[due] || due > synced;
        }
        due++;
    }
    /* At the end, too, but for what `begin` has appended. */
    for (; due <= hk_journal_appended(model->journal); due++) {
        model->lost[due] = model->segments[due] == 0;
    }
}

/* Whether what was replayed is what was appended: right bytes, in order, and everything that was acknowledged before
 * `changes` but for segments that were dropped until then. */
static inline void model_check(const hk_model_t *model, const hk_replayed_t *replayed, size_t changes)
{
    uint64_t synced = model_synced(model, changes), due = 1;
    HK_CHECK(replayed->count == 0 || replayed->rising);
    for (uint64_t i = 0; i <= replayed->count; i++) {
        uint64_t position = i < replayed->count ? replayed->positions[i] : synced + 1;
        for (; due < position; due++) {
            uint64_t segment = model->segments[due];
            hk_test_note("position %llu of %llu is missing, %llu was synced at %zu", (unsigned long long)due,
                         (unsigned long long)model->last, (unsigned long long)synced, changes);
            if (due > synced || model->lost[due]) {
                continue;
            }
            HK_CHECK(segment < MOST_SEGMENTS && model->dropped_at[segment] > 0 &&
                     model->dropped_at[segment] <= changes + 1);
            HK_CHECK(replayed->count > 0 && replayed->last >= model->dropped_behind[segment]);
        }
        if (i < replayed->count) {
            HK_CHECK(position < MOST_RECORDS);
            HK_CHECK_EQUAL_UINT(model->sums[position], replayed->sums[i]);
            due = position + 1;
        }
    }
}

#endif
