#include "hk_journal_private.h"

/* Of a segment, one of which may be written and not synced though nobody waits for it. */
enum { PARTS = 8 };

/* -- What is due --------------------------------------------------------------------------------------------------- */

/* Whether nothing of an ended segment is still to be written. */
static bool all_written(const hk_journal_t *journal, const hk_segment_t *segment)
{
    const hk_piece_t *piece = HK_OWNER(journal->unwritten.next, hk_piece_t, link);
    return segment->ended &&
           (piece->segment != segment->number || (piece == journal->filling && journal->piece_written == piece->used));
}

static bool prepare_sync(hk_journal_t *journal, hk_job_t *job)
{
    hk_segment_t *segment = journal->writing;
    if (segment == NULL || journal->written_within <= journal->synced_within) {
        return false;
    }
    /* The next segment waits for all of the one before. */
    bool whole = all_written(journal, segment);
    bool wanted = (journal->wanted > journal->synced && journal->written > journal->synced) ||
                  journal->wanted_within > journal->synced_within;
    /* Nobody waits for it, but the next segment will: it is to wait for a part of this one, not for all. */
    bool much = journal->written_within - journal->synced_within >= journal->segment_bytes / PARTS;
    if (!whole && !wanted && !much) {
        return false;
    }
    job->task = HK_TASK_SYNC;
    job->fd = segment->fd;
    job->segment = segment;
    job->position = journal->written;
    job->within = journal->written_within;
    job->whole = whole;
    hk_journal_segment_name(segment->number, job->name);
    return true;
}

static bool prepare_begin(hk_journal_t *journal, hk_job_t *job)
{
    for (size_t i = journal->segment_count; i > 0 && !journal->segments[i - 1]->named; i--) {
        hk_segment_t *segment = journal->segments[i - 1];
        const hk_segment_t *before = i > 1 ? journal->segments[i - 2] : NULL;
        if (before == NULL || (before->named && before->synced)) {
            job->task = HK_TASK_BEGIN;
            job->segment = segment;
            job->fd = segment->fd;
            hk_journal_spare_name(segment->spare, job->name);
            hk_journal_segment_name(segment->number, job->to);
            hk_journal_write_header(job->header, journal->crc32c, journal->identity, segment);
            return true;
        }
    }
    return false;
}

static bool prepare_remove(hk_journal_t *journal, hk_job_t *job)
{
    for (size_t i = 0; i < journal->segment_count && journal->dropped_count > 0; i++) {
        hk_segment_t *segment = journal->segments[i];
        if (hk_journal_may_go(journal, segment)) {
            job->task = HK_TASK_REMOVE;
            job->segment = segment;
            hk_journal_segment_name(segment->number, job->name);
            if (journal->spare_count < HK_JOURNAL_SPARES && segment->bytes == journal->segment_bytes &&
                !journal->closing) {
                job->number = ++journal->spare_number;
                hk_journal_spare_name(job->number, job->to);
            }
            return true;
        }
    }
    return false;
}

/* There is one when a segment is begun, and another soon enough for the one behind it. */
static bool prepare_spare(hk_journal_t *journal, hk_job_t *job)
{
    const hk_segment_t *current = journal->segment_count > 0 ? hk_journal_last_segment(journal) : NULL;
    size_t wanted = current != NULL && current->end > current->bytes / 2 ? 2 : 1;
    if (journal->spare_count >= wanted || (journal->no_room != 0 && !journal->retrying) || journal->closing) {
        return false;
    }
    job->task = HK_TASK_SPARE;
    job->number = ++journal->spare_number;
    job->segment_bytes = journal->segment_bytes;
    hk_journal_spare_name(job->number, job->name);
    return true;
}

/* The first segment that is needed, and the newest that has its name. */
static void ends_of(const hk_journal_t *journal, hk_checkpoint_t *checkpoint)
{
    for (size_t i = journal->segment_count; i > 0; i--) {
        const hk_segment_t *segment = journal->segments[i - 1];
        if (segment->named && checkpoint->newest == 0) {
            checkpoint->newest = segment->number;
        }
        if (segment->named && !hk_journal_may_go(journal, segment)) {
            checkpoint->first = segment->number;
        }
    }
}

static bool prepare_checkpoint(hk_journal_t *journal, hk_job_t *job)
{
    if (!journal->checkpoint_due) {
        return false;
    }
    size_t most = journal->gone_count + journal->dropped_count;
    char *bytes = hk_alloc_new(journal->alloc, HK_JOURNAL_CHECKPOINT_BYTES + 8 * most);
    if (bytes == NULL) {
        return false;
    }
    hk_checkpoint_t checkpoint = {.synced = journal->synced, .when = journal->wall};
    memcpy(checkpoint.identity, journal->identity, sizeof(checkpoint.identity));
    ends_of(journal, &checkpoint);
    checkpoint.dropped_count = (uint32_t)hk_journal_list_dropped(journal, bytes + 60, most, checkpoint.first, 0, true);
    hk_journal_write_checkpoint(bytes, journal->crc32c, &checkpoint);
    job->task = HK_TASK_CHECKPOINT;
    job->bytes = bytes;
    job->size = HK_JOURNAL_CHECKPOINT_BYTES + 8 * (size_t)checkpoint.dropped_count;
    job->number = checkpoint.first;
    memcpy(job->name, HK_JOURNAL_CHECKPOINT_MADE, sizeof(HK_JOURNAL_CHECKPOINT_MADE));
    memcpy(job->to, HK_JOURNAL_CHECKPOINT, sizeof(HK_JOURNAL_CHECKPOINT));
    journal->checkpoint_due = false;
    return true;
}

hk_job_t *hk_journal_job(hk_journal_t *journal, hk_lane_t lane)
{
    hk_job_t *job = &journal->jobs[lane];
    if (journal->failed || job->is_out) {
        return NULL;
    }
    *job = (hk_job_t){.files = journal->files, .lane = lane, .dir = journal->dir, .path = journal->path, .fd = -1};
    /* What others wait for comes first, then what gives room without taking any. */
    bool due = lane == HK_LANE_SYNC ? prepare_sync(journal, job)
                                    : prepare_begin(journal, job) || prepare_remove(journal, job) ||
                                          prepare_spare(journal, job) || prepare_checkpoint(journal, job);
    job->is_out = due;
    return due ? job : NULL;
}

void hk_journal_want_sync(hk_journal_t *journal, uint64_t position)
{
    journal->wanted = position > journal->wanted ? position : journal->wanted;
}

void hk_journal_retry(hk_journal_t *journal)
{
    journal->retrying = true;
    journal->checkpoint_due = journal->checkpoint_due || journal->checkpoint_missed;
}

/* -- What became of it --------------------------------------------------------------------------------------------- */

static void synced(hk_journal_t *journal, const hk_job_t *job)
{
    journal->synced = job->position > journal->synced ? job->position : journal->synced;
    journal->synced_within = job->within;
    journal->stats.syncs++;
    journal->stats.sync_ns += (uint64_t)job->took;
    if ((uint64_t)job->took > journal->stats.longest_sync_ns) {
        journal->stats.longest_sync_ns = (uint64_t)job->took;
    }
    if (job->whole) {
        job->segment->synced = true;
        (void)journal->files->close(journal->files->context, job->segment->fd);
        job->segment->fd = -1;
    }
}

static hk_status_t begun(hk_journal_t *journal, const hk_job_t *job)
{
    job->segment->named = true;
    journal->checkpoint_due = true;
    /* What was appended meanwhile. */
    return hk_journal_write_ready(journal);
}

static void add_spare(hk_journal_t *journal, const hk_job_t *job)
{
    journal->spares[journal->spare_count++] = (struct hk_spare){.number = job->number, .fd = job->fd};
    journal->no_room = 0;
    journal->retrying = false;
}

static void removed(hk_journal_t *journal, const hk_job_t *job)
{
    journal->gone[journal->gone_count++] = job->segment->number;
    journal->dropped_count--;
    hk_journal_remove_segment(journal, job->segment);
    journal->checkpoint_due = true;
    if (job->number != 0) {
        add_spare(journal, job);
    }
}

static void checkpointed(hk_journal_t *journal, const hk_job_t *job)
{
    journal->checkpoint_missed = false;
    journal->checkpoint_first = job->number;
    size_t kept = 0;
    for (size_t i = 0; i < journal->gone_count; i++) {
        if (journal->gone[i] >= job->number) {
            journal->gone[kept++] = journal->gone[i];
        }
    }
    journal->gone_count = journal->gone_listed = kept;
}

static hk_status_t not_done(hk_journal_t *journal, const hk_job_t *job)
{
    if (job->lost != NULL) {
        return hk_journal_lose(journal, job->lost, job->name);
    }
    if (job->task == HK_TASK_SPARE && hk_journal_is_shortage(job->error)) {
        journal->no_room = job->error;
        journal->retrying = false;
        return HK_OK;
    }
    if (job->task == HK_TASK_CHECKPOINT && hk_journal_is_shortage(job->error)) {
        journal->checkpoint_missed = true;
        return HK_OK;
    }
    return hk_journal_fail(journal, job->call, job->name, job->error);
}

hk_status_t hk_journal_done(hk_journal_t *journal, hk_job_t *job)
{
    hk_status_t status = HK_OK;
    job->is_out = false;
    if (job->call != NULL || job->lost != NULL) {
        status = not_done(journal, job);
    } else {
        switch (job->task) {
        case HK_TASK_SYNC:
            synced(journal, job);
            break;
        case HK_TASK_BEGIN:
            status = begun(journal, job);
            break;
        case HK_TASK_REMOVE:
            removed(journal, job);
            break;
        case HK_TASK_SPARE:
            add_spare(journal, job);
            break;
        case HK_TASK_CHECKPOINT:
            checkpointed(journal, job);
        }
    }
    hk_alloc_free(journal->alloc, job->bytes);
    return journal->failed ? HK_SYSTEM : status;
}

hk_status_t hk_journal_run_all(hk_journal_t *journal)
{
    for (bool again = true; again && !journal->failed;) {
        again = false;
        for (int lane = 0; lane < HK_LANES; lane++) {
            hk_job_t *job = hk_journal_job(journal, (hk_lane_t)lane);
            if (job != NULL) {
                hk_job_run(job);
                (void)hk_journal_done(journal, job);
                again = true;
            }
        }
    }
    return journal->failed ? HK_SYSTEM : HK_OK;
}
