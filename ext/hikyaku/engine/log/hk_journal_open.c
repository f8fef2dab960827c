#include "hk_journal_private.h"

static void free_journal(hk_journal_t *journal)
{
    const hk_files_t *files = journal->files;
    for (size_t i = 0; i < journal->segment_count; i++) {
        if (journal->segments[i]->fd >= 0) {
            (void)files->close(files->context, journal->segments[i]->fd);
        }
        hk_alloc_free(journal->alloc, journal->segments[i]);
    }
    for (hk_list_t *link; (link = hk_list_shift(&journal->unwritten)) != NULL;) {
        hk_piece_release(HK_OWNER(link, hk_piece_t, link));
    }
    /* Those belong to whoever retained them. */
    while (hk_list_shift(&journal->images) != NULL) {
    }
    if (journal->reader_of != 0) {
        (void)files->close(files->context, journal->reader);
    }
    for (size_t i = 0; i < journal->spare_count; i++) {
        (void)files->close(files->context, journal->spares[i].fd);
    }
    for (int lane = 0; lane < HK_LANES; lane++) {
        if (journal->jobs[lane].is_out) {
            hk_alloc_free(journal->alloc, journal->jobs[lane].bytes);
        }
    }
    if (journal->lock >= 0) {
        (void)files->close(files->context, journal->lock);
    }
    if (journal->dir >= 0) {
        (void)files->close(files->context, journal->dir);
    }
    hk_arena_free(journal->arena);
    hk_alloc_free(journal->alloc, journal->path);
    hk_alloc_free(journal->alloc, journal->gone);
    hk_alloc_free(journal->alloc, journal->segments);
    hk_alloc_free(journal->alloc, journal);
}

/* -- Opening ------------------------------------------------------------------------------------------------------- */

static hk_status_t new_journal(const hk_alloc_t *alloc, const hk_journal_options_t *options, hk_journal_t **journal)
{
    hk_journal_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->files = options->files;
    made->crc32c = hk_crc32c_best();
    made->segment_bytes = options->segment_bytes > 0 ? options->segment_bytes : HK_JOURNAL_SEGMENT_USUAL;
    made->image_bytes = options->image_bytes;
    made->begin = options->begin;
    made->context = options->context;
    made->wall = options->wall;
    made->dir = made->lock = -1;
    hk_list_init(&made->unwritten);
    hk_list_init(&made->images);
    uint32_t piece = made->segment_bytes < HK_JOURNAL_PIECE_BYTES ? made->segment_bytes : HK_JOURNAL_PIECE_BYTES;
    made->arena = hk_arena_new(alloc, piece, HK_JOURNAL_IDLE_PIECES);
    size_t length = strlen(options->path) + 1;
    made->path = hk_alloc_new(alloc, length);
    if (made->arena == NULL || made->path == NULL) {
        hk_arena_free(made->arena);
        hk_alloc_free(alloc, made->path);
        hk_alloc_free(alloc, made);
        return HK_NO_MEMORY;
    }
    memcpy(made->path, options->path, length);
    *journal = made;
    return HK_OK;
}

static hk_status_t say_text(hk_journal_t *journal, hk_status_t status, const char *text)
{
    snprintf(journal->trouble.text, sizeof(journal->trouble.text), "%s", text);
    return status;
}

static hk_status_t open_folder(hk_journal_t *journal, const char *path)
{
    const hk_files_t *files = journal->files;
    uint32_t bytes = journal->segment_bytes;
    if (bytes < HK_JOURNAL_SEGMENT_LEAST || bytes > HK_JOURNAL_SEGMENT_MOST || bytes % 4096 != 0) {
        return say_text(journal, HK_INVALID, "segments have 64 KiB to 1 GiB, a multiple of 4,096 bytes");
    }
    journal->dir = files->open_folder(files->context, path);
    if (journal->dir < 0) {
        return hk_journal_say(&journal->trouble, "open", "", files->error(files->context));
    }
    journal->lock = files->lock(files->context, journal->dir, HK_JOURNAL_LOCK);
    if (journal->lock < 0) {
        int error = files->error(files->context);
        if (error == EWOULDBLOCK) {
            return say_text(journal, HK_TOO_MANY,
                            "another process has the journal open: stop it, or use another folder");
        }
        return hk_journal_say(&journal->trouble, "flock", HK_JOURNAL_LOCK, error);
    }
    return HK_OK;
}

static hk_status_t replay_all(hk_survey_t *survey, const hk_journal_options_t *options)
{
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < survey->count && status == HK_OK && options->replay != NULL; i++) {
        hk_found_t *found = &survey->found[i];
        if (found->unneeded || found->dropped || found->unbegun) {
            continue;
        }
        char name[HK_JOURNAL_NAME_BYTES];
        hk_journal_segment_name(found->segment.number, name);
        uint64_t last = found->segment.last;
        status = hk_scan_open(&survey->scan, survey->dir, name);
        if (status == HK_OK) {
            status = hk_scan_segment(&survey->scan, found, NULL, options->replay, options->context);
        }
        hk_scan_close(&survey->scan);
        if (status == HK_OK && found->segment.last != last) {
            status = hk_journal_say(survey->scan.trouble, "pread", name, EIO);
        }
    }
    return status == HK_OK ? hk_scan_tell(&survey->scan, 0) : status;
}

static hk_status_t unlink_file(hk_journal_t *journal, const char *name)
{
    const hk_files_t *files = journal->files;
    if (files->unlink(files->context, journal->dir, name) != 0) {
        return hk_journal_fail(journal, "unlink", name, files->error(files->context));
    }
    return HK_OK;
}

/* What was in the making when the process before ended. */
static hk_status_t clear_away(hk_journal_t *journal, const hk_survey_t *survey)
{
    char name[HK_JOURNAL_NAME_BYTES];
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < survey->spare_count && status == HK_OK; i++) {
        hk_journal_spare_name(survey->spares[i], name);
        status = unlink_file(journal, name);
    }
    if (status == HK_OK && survey->has_temporary_checkpoint) {
        status = unlink_file(journal, HK_JOURNAL_CHECKPOINT_MADE);
    }
    if (status == HK_OK && survey->count > 0 && survey->found[survey->count - 1].unbegun) {
        hk_journal_segment_name(survey->found[survey->count - 1].segment.number, name);
        status = unlink_file(journal, name);
    }
    return status;
}

static hk_status_t sync_fd(hk_journal_t *journal, int fd, const char *name)
{
    const hk_files_t *files = journal->files;
    while (files->sync(files->context, fd) != 0) {
        int error = files->error(files->context);
        if (error != EINTR) {
            return hk_journal_fail(journal, "fsync", name, error);
        }
    }
    return HK_OK;
}

/* What was read may stand in the page cache alone. */
static hk_status_t sync_tail(hk_journal_t *journal, const hk_survey_t *survey)
{
    const hk_files_t *files = journal->files;
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < survey->count && status == HK_OK; i++) {
        const hk_found_t *found = &survey->found[i];
        bool known = found->segment.last <= survey->synced && (found->ended || i + 1 < survey->count);
        if (found->unneeded || found->dropped || found->unbegun || known) {
            continue;
        }
        char name[HK_JOURNAL_NAME_BYTES];
        hk_journal_segment_name(found->segment.number, name);
        int fd = files->open(files->context, journal->dir, name);
        if (fd < 0) {
            return hk_journal_fail(journal, "open", name, files->error(files->context));
        }
        status = sync_fd(journal, fd, name);
        (void)files->close(files->context, fd);
    }
    return status == HK_OK ? sync_fd(journal, journal->dir, "") : status;
}

static hk_status_t take_segment(hk_journal_t *journal, const hk_found_t *found, bool is_witness)
{
    hk_segment_t *segment = hk_alloc_new(journal->alloc, sizeof(*segment));
    if (segment == NULL || hk_journal_reserve_segment(journal) != HK_OK) {
        hk_alloc_free(journal->alloc, segment);
        return HK_NO_MEMORY;
    }
    *segment = found->segment;
    segment->named = segment->ended = segment->synced = true;
    segment->torn = !found->ended;
    segment->doomed = found->unneeded || found->dropped;
    segment->dropped = segment->doomed && !is_witness;
    journal->doomed_count += segment->doomed && is_witness;
    journal->dropped_count += segment->dropped;
    journal->segments[journal->segment_count++] = segment;
    return HK_OK;
}

static hk_status_t take_over(hk_journal_t *journal, const hk_survey_t *survey)
{
    hk_status_t status = hk_journal_reserve_gone(journal, survey->count + survey->dropped_count);
    for (size_t i = 0; i < survey->count && status == HK_OK; i++) {
        const hk_found_t *found = &survey->found[i], *before = found - 1;
        if (found->unbegun) {
            continue;
        }
        bool is_witness = i > 0 && found->dropped && !before->dropped && !before->unneeded && !before->ended &&
                          before->segment.number + 1 == found->segment.number;
        status = take_segment(journal, found, is_witness);
        journal->stats.torn_repaired += status == HK_OK && i + 1 == survey->count && !found->ended;
    }
    for (size_t i = 0; i < survey->dropped_count && status == HK_OK; i++) {
        uint64_t number = survey->dropped[i];
        if (hk_journal_find(journal, number) == NULL && number >= survey->checkpoint.first) {
            journal->gone[journal->gone_count++] = number;
        }
    }
    memcpy(journal->identity, survey->identity, sizeof(journal->identity));
    journal->checkpoint_first = survey->checkpoint.first;
    journal->newest = survey->newest;
    journal->repair = survey->repair;
    journal->stats.torn_places = survey->repair.holes;
    journal->stats.torn_missing = survey->repair.missing;
    journal->next = survey->next;
    journal->written = journal->synced = journal->wanted = survey->next - 1;
    return status;
}

/* -- Where the first record goes ----------------------------------------------------------------------------------- */

/* The segment in which it may be gone on where there is no room for another: nothing has to follow its records. */
static const hk_found_t *find_open_end(const hk_survey_t *survey)
{
    const hk_found_t *newest = survey->count > 0 ? &survey->found[survey->count - 1] : NULL;
    newest -= newest != NULL && newest->unbegun ? 1 : 0;
    return newest != NULL && !newest->unneeded && (!newest->ended || newest->closed) ? newest : NULL;
}

/* What stood behind the records is gone before others are written there: else what is left of it might continue
 * them. */
static hk_status_t clear_behind(hk_journal_t *journal, const hk_segment_t *segment, const char *name)
{
    static const char zeros[4096] = {0};
    const hk_files_t *files = journal->files;
    for (uint64_t offset = segment->end; offset < segment->bytes;) {
        uint64_t rest = segment->bytes - offset;
        struct iovec part = {.iov_base = (void *)(uintptr_t)zeros,
                             .iov_len = rest < sizeof(zeros) ? (size_t)rest : sizeof(zeros)};
        ssize_t done = files->write_at(files->context, segment->fd, &part, 1, offset);
        int error = done < 0 ? files->error(files->context) : EIO;
        if (done <= 0 && !(done < 0 && error == EINTR)) {
            return hk_journal_fail(journal, "pwritev", name, error);
        }
        offset += done > 0 ? (uint64_t)done : 0;
    }
    return sync_fd(journal, segment->fd, name);
}

/* There is no room for another segment: what frees something goes into what is left of the newest one. */
static hk_status_t go_on(hk_journal_t *journal, const hk_found_t *newest)
{
    if (newest == NULL) {
        return hk_journal_fail(journal, "making a segment", "", journal->no_room);
    }
    const hk_files_t *files = journal->files;
    hk_segment_t *segment = hk_journal_last_segment(journal);
    char name[HK_JOURNAL_NAME_BYTES];
    hk_journal_segment_name(segment->number, name);
    hk_piece_t *piece = hk_piece_new(journal->arena, journal->arena->piece_bytes);
    if (piece == NULL) {
        return HK_NO_MEMORY;
    }
    segment->end -= newest->closed ? HK_JOURNAL_MARK_BYTES : 0;
    piece->segment = segment->number;
    piece->offset = segment->end;
    hk_list_append(&journal->unwritten, &piece->link);
    journal->filling = piece;
    segment->ended = segment->synced = segment->torn = false;
    segment->fd = files->open(files->context, journal->dir, name);
    if (segment->fd < 0) {
        return hk_journal_fail(journal, "open", name, files->error(files->context));
    }
    journal->begin_due = true;
    return clear_behind(journal, segment, name);
}

/* The first segment of this process, and all that belongs to it. */
static hk_status_t begin_first(hk_journal_t *journal, const hk_survey_t *survey)
{
    hk_status_t status = hk_journal_run_all(journal);
    bool goes_on = journal->spare_count == 0;
    if (status == HK_OK) {
        status = goes_on ? go_on(journal, find_open_end(survey)) : hk_journal_begin_segment(journal, false);
    }
    if (status == HK_OK) {
        status = hk_journal_remember(journal);
        if (goes_on && (status == HK_INVALID || status == HK_TOO_LARGE)) {
            status = hk_journal_fail(journal, "making a segment", "", journal->no_room);
        }
    }
    if (status != HK_OK) {
        return status;
    }
    hk_journal_close_batch(journal);
    journal->wanted = journal->next - 1;
    journal->wanted_within = journal->laid_within;
    status = goes_on ? hk_journal_write_ready(journal) : HK_OK;
    return status == HK_OK ? hk_journal_run_all(journal) : status;
}

static hk_status_t open_journal(hk_journal_t *journal, const hk_journal_options_t *options, hk_survey_t *survey)
{
    hk_status_t status = open_folder(journal, options->path);
    if (status != HK_OK) {
        return status;
    }
    survey->dir = journal->dir;
    status = hk_survey_take(survey);
    if (status == HK_OK && !survey->has_identity &&
        journal->files->random(journal->files->context, survey->identity, sizeof(survey->identity)) != 0) {
        status = hk_journal_say(&journal->trouble, "random", "", journal->files->error(journal->files->context));
    }
    if (status == HK_OK) {
        status = replay_all(survey, options);
    }
    if (status == HK_OK) {
        status = clear_away(journal, survey);
    }
    if (status == HK_OK) {
        status = sync_tail(journal, survey);
    }
    if (status == HK_OK) {
        status = take_over(journal, survey);
    }
    return status == HK_OK ? begin_first(journal, survey) : status;
}

hk_status_t hk_journal_open(const hk_alloc_t *alloc, const hk_journal_options_t *options, hk_journal_t **journal,
                            hk_journal_trouble_t *trouble)
{
    hk_journal_t *made;
    hk_survey_t survey = {.alloc = alloc};
    if (trouble != NULL) {
        *trouble = (hk_journal_trouble_t){.error = 0};
    }
    hk_status_t status = new_journal(alloc, options, &made);
    if (status != HK_OK) {
        return status;
    }
    hk_scan_init(&survey.scan, alloc, made->files, made->crc32c, &made->trouble);
    survey.scan.reading = options->reading;
    status = open_journal(made, options, &survey);
    hk_survey_release(&survey);
    if (status == HK_OK) {
        *journal = made;
        return HK_OK;
    }
    if (trouble != NULL) {
        *trouble = made->trouble;
    }
    free_journal(made);
    return status;
}

/* -- Closing ------------------------------------------------------------------------------------------------------- */

static hk_status_t sync_all(hk_journal_t *journal)
{
    journal->wanted = journal->next - 1;
    journal->wanted_within = journal->laid_within;
    return hk_journal_run_all(journal);
}

hk_status_t hk_journal_close(hk_journal_t *journal)
{
    journal->closing = true;
    hk_status_t status = hk_journal_write(journal, journal->wall);
    if (status == HK_OK) {
        status = sync_all(journal);
    }
    if (status == HK_OK) {
        hk_journal_lay_close(journal);
        status = hk_journal_write_ready(journal);
    }
    if (status == HK_OK) {
        journal->checkpoint_due = true;
        status = sync_all(journal);
    }
    free_journal(journal);
    return status;
}

void hk_journal_drop_dead(hk_journal_t *journal)
{
    free_journal(journal);
}

/* -- Looking ------------------------------------------------------------------------------------------------------- */

uint64_t hk_journal_appended(const hk_journal_t *journal)
{
    return journal->next - 1;
}

uint64_t hk_journal_written(const hk_journal_t *journal)
{
    return journal->written;
}

uint64_t hk_journal_synced(const hk_journal_t *journal)
{
    return journal->synced;
}

int hk_journal_shortage(const hk_journal_t *journal)
{
    return journal->no_room;
}

bool hk_journal_full(const hk_journal_t *journal)
{
    return journal->no_room != 0 && journal->spare_count == 0;
}

const hk_journal_repair_t *hk_journal_repair(const hk_journal_t *journal)
{
    return &journal->repair;
}

const hk_journal_trouble_t *hk_journal_trouble(const hk_journal_t *journal)
{
    return journal->trouble.text[0] != 0 ? &journal->trouble : NULL;
}

void hk_journal_read_stats(hk_journal_t *journal, hk_journal_stats_t *stats)
{
    *stats = journal->stats;
    stats->segments = journal->segment_count;
    stats->spares = journal->spare_count;
    journal->stats.longest_sync_ns = 0;
}
