/* hk_journal_fixture.h: a journal on a simulated disk, and records that can be known again. */
#ifndef HK_JOURNAL_FIXTURE_H
#define HK_JOURNAL_FIXTURE_H

#include "hk_disk.h"
#include "hk_journal.h"
#include "hk_test.h"

enum { SEGMENT = HK_JOURNAL_SEGMENT_LEAST, TYPE = 32, MOST_RECORDS = 4096 };

/* What replay has seen. */
typedef struct hk_replayed {
    uint64_t count, first, last;
    uint64_t positions[MOST_RECORDS], segments[MOST_RECORDS];
    uint32_t offsets[MOST_RECORDS], sums[MOST_RECORDS], lengths[MOST_RECORDS];
    bool rising;
    size_t begins;    /* how many records `begin` appends */
    size_t begin_of;  /* bytes of each */
    uint64_t begun;   /* how often it was called */
    hk_status_t stop; /* what replay returns */
    /* Where begin notes, by position, what it appends; NULL: nowhere. */
    uint32_t *noted_sums;
    uint64_t *noted_segments;
} hk_replayed_t;

/* The sum of a body, by which it is known again. */
static inline uint32_t sum_of(hk_bytes_t body)
{
    uint32_t sum = 2166136261u;
    for (size_t i = 0; i < body.length; i++) {
        sum = (sum ^ (unsigned char)body.at[i]) * 16777619u;
    }
    return sum;
}

static inline hk_status_t replay_record(void *context, const hk_journal_record_t *record)
{
    hk_replayed_t *replayed = context;
    HK_CHECK(replayed->count < MOST_RECORDS);
    replayed->rising = replayed->count == 0 || (replayed->rising && record->position > replayed->last);
    replayed->first = replayed->count == 0 ? record->position : replayed->first;
    replayed->last = record->position;
    size_t at = replayed->count++;
    replayed->positions[at] = record->position;
    replayed->segments[at] = record->segment;
    replayed->offsets[at] = record->offset;
    replayed->sums[at] = sum_of(record->body);
    replayed->lengths[at] = (uint32_t)record->body.length;
    return replayed->stop;
}

static inline hk_status_t begin_log(void *context, hk_journal_t *journal)
{
    hk_replayed_t *replayed = context;
    static const char zeros[1000] = {0};
    replayed->begun++;
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < replayed->begins && status == HK_OK; i++) {
        hk_bytes_t body = hk_bytes(zeros, replayed->begin_of);
        hk_journal_record_t record;
        status = hk_journal_append(journal, 39, 0, &body, 1, false, &record);
        if (status == HK_OK && replayed->noted_sums != NULL) {
            replayed->noted_sums[record.position] = sum_of(body);
            replayed->noted_segments[record.position] = record.segment;
        }
    }
    return status;
}

static inline hk_journal_options_t options_on(const hk_files_t *files, hk_replayed_t *replayed)
{
    return (hk_journal_options_t){.path = "folder",
                                  .files = files,
                                  .segment_bytes = SEGMENT,
                                  .image_bytes = SEGMENT,
                                  .wall = 1700000000000,
                                  .begin = begin_log,
                                  .replay = replay_record,
                                  .context = replayed};
}

/* Opens the journal of a disk; `replayed` is cleared but for what begin does. */
static inline hk_status_t open_on(hk_disk_t *disk, hk_replayed_t *replayed, hk_journal_t **journal,
                                  hk_journal_trouble_t *trouble)
{
    static hk_replayed_t kept;
    kept = *replayed;
    memset(replayed, 0, sizeof(*replayed));
    replayed->begins = kept.begins;
    replayed->begin_of = kept.begin_of;
    replayed->stop = kept.stop;
    replayed->noted_sums = kept.noted_sums;
    replayed->noted_segments = kept.noted_segments;
    hk_journal_options_t options = options_on(&disk->files, replayed);
    return hk_journal_open(hk_test_alloc(), &options, journal, trouble);
}

/* Appends a body of `length` bytes which `seed` chooses. */
static inline hk_status_t append_seeded(hk_journal_t *journal, uint64_t seed, size_t length, bool urgent, uint32_t *sum,
                                        hk_journal_record_t *record)
{
    static char bytes[SEGMENT];
    for (size_t i = 0; i < length; i++) {
        bytes[i] = (char)(seed * 31 + i * 7 + (i >> 8));
    }
    size_t cut = length / 3;
    hk_bytes_t parts[] = {hk_bytes(bytes, cut), hk_bytes(bytes + cut, length - cut)};
    if (sum != NULL) {
        *sum = sum_of(hk_bytes(bytes, length));
    }
    return hk_journal_append(journal, TYPE, 0, parts, 2, urgent, record);
}

/* Runs all jobs there are. */
static inline hk_status_t run_jobs(hk_journal_t *journal)
{
    hk_status_t status = HK_OK;
    for (bool again = true; again && status == HK_OK;) {
        again = false;
        for (int lane = 0; lane < HK_LANES && status == HK_OK; lane++) {
            hk_job_t *job = hk_journal_job(journal, (hk_lane_t)lane);
            if (job != NULL) {
                hk_job_run(job);
                status = hk_journal_done(journal, job);
                again = true;
            }
        }
    }
    return status;
}

/* Writes and syncs everything. */
static inline hk_status_t sync_journal(hk_journal_t *journal)
{
    hk_status_t status = hk_journal_write(journal, 1700000000001);
    hk_journal_want_sync(journal, hk_journal_appended(journal));
    return status == HK_OK ? run_jobs(journal) : status;
}

#endif
