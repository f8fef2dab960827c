#include "hk_journal_private.h"

/* -- Laying records into the image --------------------------------------------------------------------------------- */

/* Where `size` bytes of the current segment go; NULL: there is no memory. END always fits into the same piece behind
 * them, so that a segment can be ended without asking for memory. */
static char *place_for(hk_journal_t *journal, uint64_t size)
{
    hk_piece_t *piece = journal->filling;
    uint64_t needed = size + HK_JOURNAL_MARK_BYTES;
    if (piece->size - piece->used < needed) {
        piece = hk_piece_new(journal->arena, needed);
        if (piece == NULL) {
            return NULL;
        }
        const hk_segment_t *segment = hk_journal_last_segment(journal);
        piece->segment = segment->number;
        piece->offset = segment->end;
        hk_list_append(&journal->unwritten, &piece->link);
        journal->filling = piece;
    }
    return piece->bytes + piece->used;
}

static void laid(hk_journal_t *journal, uint64_t size)
{
    journal->filling->used += (uint32_t)size;
    hk_journal_last_segment(journal)->end += (uint32_t)size;
    journal->laid_within += size;
    journal->stats.bytes += size;
}

/* MARK, END or CLOSE. */
static void write_mark(const hk_journal_t *journal, char *record, uint8_t type, uint64_t position, uint32_t salt_crc)
{
    hk_journal_put(record + HK_JOURNAL_RECORD_BYTES, journal->synced, 8);
    hk_journal_put(record + HK_JOURNAL_RECORD_BYTES + 8, journal->wall, 8);
    hk_journal_head_t head = {.length = 16, .position = position, .type = type};
    hk_journal_write_head(record, journal->crc32c, salt_crc, &head);
}

/* What it says is known when the batch is written: its place is kept until then. */
static void open_batch(hk_journal_t *journal)
{
    hk_piece_t *piece = journal->filling;
    journal->mark_piece = piece;
    journal->mark_at = piece->used;
    hk_journal_put(piece->bytes + piece->used + 8, journal->next, 8);
    laid(journal, HK_JOURNAL_MARK_BYTES);
}

void hk_journal_close_batch(hk_journal_t *journal)
{
    if (journal->mark_piece != NULL) {
        char *record = journal->mark_piece->bytes + journal->mark_at;
        const hk_segment_t *segment = hk_journal_last_segment(journal);
        write_mark(journal, record, HK_JOURNAL_MARK, hk_journal_get(record + 8, 8), segment->salt_crc);
        journal->mark_piece = NULL;
        journal->stats.batches++;
    }
}

/* Room for a record in the open batch, or in one that begins with it; NULL: there is no memory. */
static char *place_in_batch(hk_journal_t *journal, uint64_t size)
{
    bool is_open = journal->mark_piece != NULL;
    char *at = place_for(journal, size + (is_open ? 0 : HK_JOURNAL_MARK_BYTES));
    if (at == NULL || is_open) {
        return at;
    }
    open_batch(journal);
    return at + HK_JOURNAL_MARK_BYTES;
}

static void lay_last(hk_journal_t *journal, uint8_t type)
{
    hk_journal_close_batch(journal);
    hk_segment_t *segment = hk_journal_last_segment(journal);
    /* There is room: place_for has seen to it. */
    char *record = journal->filling->bytes + journal->filling->used;
    write_mark(journal, record, type, journal->next, segment->salt_crc);
    laid(journal, HK_JOURNAL_MARK_BYTES);
    segment->ended = true;
    segment->last = journal->next - 1;
}

void hk_journal_lay_close(hk_journal_t *journal)
{
    lay_last(journal, HK_JOURNAL_CLOSE);
}

/* -- Room ---------------------------------------------------------------------------------------------------------- */

typedef enum hk_use { BULK, URGENT, DROPPING } hk_use_t;

/* Bytes of records that the current segment takes. */
static uint64_t left(const hk_journal_t *journal)
{
    const hk_segment_t *segment = hk_journal_last_segment(journal);
    uint64_t used = (uint64_t)segment->end + HK_JOURNAL_MARK_BYTES;
    used += journal->mark_piece != NULL ? 0 : HK_JOURNAL_MARK_BYTES;
    return used < segment->bytes ? segment->bytes - used : 0;
}

/* What of it is kept for others as long as the segment has no successor. */
static uint64_t reserve(const hk_journal_t *journal, hk_use_t use)
{
    if (journal->spare_count > 0 || use == DROPPING) {
        return 0;
    }
    uint64_t part = journal->segment_bytes / 8;
    /* The next process goes on here if there is no room for it either, and repeats what the log remembers. */
    uint64_t kept = HK_JOURNAL_LAST_RESERVE + (journal->begin_bytes < part ? journal->begin_bytes : part);
    if (use == URGENT) {
        return kept;
    }
    return kept + (part > HK_JOURNAL_LEAST_RESERVE ? part : HK_JOURNAL_LEAST_RESERVE);
}

uint64_t hk_journal_remaining(const hk_journal_t *journal)
{
    uint64_t here = left(journal), kept = reserve(journal, BULK);
    here = here > kept ? here - kept : 0;
    if (journal->failed || journal->spare_count == 0) {
        return journal->failed ? 0 : here;
    }
    uint64_t taken = HK_JOURNAL_OVERHEAD_BYTES + journal->begin_bytes + journal->segment_bytes / 8;
    return here + (taken < journal->segment_bytes ? journal->segment_bytes - taken : 0);
}

static hk_status_t make_way(hk_journal_t *journal, uint64_t size, hk_use_t use)
{
    if (journal->beginning) {
        return size <= left(journal) ? HK_OK : HK_INVALID;
    }
    if (size + reserve(journal, use) > left(journal)) {
        if (journal->spare_count == 0) {
            return HK_TOO_LARGE;
        }
        hk_status_t status = hk_journal_begin_segment(journal, true);
        if (status != HK_OK) {
            return status;
        }
    }
    hk_status_t status = use == DROPPING ? HK_OK : hk_journal_remember(journal);
    if (status != HK_OK) {
        return status;
    }
    /* What the log has to remember may have taken it. */
    return size <= left(journal) ? HK_OK : HK_INVALID;
}

/* -- Appending ----------------------------------------------------------------------------------------------------- */

static hk_status_t body_length(const hk_journal_t *journal, const hk_bytes_t *parts, size_t count, uint64_t *length)
{
    uint64_t most = journal->segment_bytes - HK_JOURNAL_OVERHEAD_BYTES, sum = 0;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length > most - sum) {
            return HK_INVALID;
        }
        sum += parts[i].length;
    }
    *length = sum;
    /* A segment is not begun for what will not fit into it either. */
    return journal->beginning || journal->begin_bytes + sum <= most ? HK_OK : HK_INVALID;
}

hk_status_t hk_journal_append(hk_journal_t *journal, uint8_t type, uint8_t flags, const hk_bytes_t *parts, size_t count,
                              bool urgent, hk_journal_record_t *record)
{
    if (journal->failed) {
        return HK_SYSTEM;
    }
    uint64_t length;
    if (type < HK_JOURNAL_OF_LOG || body_length(journal, parts, count, &length) != HK_OK) {
        return HK_INVALID;
    }
    uint64_t size = hk_journal_size(length);
    hk_status_t status = make_way(journal, size, urgent ? URGENT : BULK);
    if (status != HK_OK) {
        return status;
    }
    char *at = place_in_batch(journal, size);
    if (at == NULL) {
        return HK_NO_MEMORY;
    }
    char *body = at + HK_JOURNAL_RECORD_BYTES, *end = body;
    for (size_t i = 0; i < count; i++) {
        if (parts[i].length > 0) {
            memcpy(end, parts[i].at, parts[i].length);
            end += parts[i].length;
        }
    }
    hk_segment_t *segment = hk_journal_last_segment(journal);
    hk_journal_head_t head = {.length = (uint32_t)length, .position = journal->next, .type = type, .flags = flags};
    hk_journal_write_head(at, journal->crc32c, segment->salt_crc, &head);
    if (record != NULL) {
        *record = (hk_journal_record_t){.position = journal->next,
                                        .type = type,
                                        .flags = flags,
                                        .body = hk_bytes(body, length),
                                        .segment = segment->number,
                                        .offset = segment->end + HK_JOURNAL_RECORD_BYTES,
                                        .piece = journal->filling};
    }
    laid(journal, size);
    segment->last = journal->next++;
    journal->stats.records++;
    return HK_OK;
}

hk_status_t hk_journal_lay_dropped(hk_journal_t *journal, const char *numbers, size_t *count)
{
    size_t some = *count;
    hk_status_t status = make_way(journal, hk_journal_size(8 * (uint64_t)some), DROPPING);
    if (status == HK_TOO_LARGE) {
        uint64_t remaining = left(journal);
        some = remaining > HK_JOURNAL_RECORD_BYTES ? (size_t)((remaining - HK_JOURNAL_RECORD_BYTES) / 8) : 0;
        status = some > 0 ? HK_OK : HK_TOO_LARGE;
    }
    uint64_t size = hk_journal_size(8 * (uint64_t)some);
    char *at = status == HK_OK ? place_in_batch(journal, size) : NULL;
    if (at == NULL) {
        return status == HK_OK ? HK_NO_MEMORY : status;
    }
    memcpy(at + HK_JOURNAL_RECORD_BYTES, numbers, 8 * some);
    hk_journal_head_t head = {.length = (uint32_t)(8 * some), .position = journal->next, .type = HK_JOURNAL_DROPPED};
    hk_journal_write_head(at, journal->crc32c, hk_journal_last_segment(journal)->salt_crc, &head);
    laid(journal, size);
    *count = some;
    return HK_OK;
}

/* -- The next segment ---------------------------------------------------------------------------------------------- */

/* Everything that can fail. */
static hk_status_t prepare_segment(hk_journal_t *journal, hk_segment_t **segment, hk_piece_t **piece)
{
    hk_segment_t *made = hk_alloc_zeroed(journal->alloc, 1, sizeof(*made));
    hk_piece_t *first = hk_piece_new(journal->arena, journal->arena->piece_bytes);
    hk_status_t status = made != NULL && first != NULL ? HK_OK : HK_NO_MEMORY;
    if (status == HK_OK && journal->files->random(journal->files->context, made->salt, sizeof(made->salt)) != 0) {
        status = hk_journal_fail(journal, "random", "", journal->files->error(journal->files->context));
    }
    if (status == HK_OK) {
        status = hk_journal_reserve_segment(journal);
    }
    if (status != HK_OK) {
        hk_alloc_free(journal->alloc, made);
        hk_piece_release(first);
        return status;
    }
    *segment = made;
    *piece = first;
    return HK_OK;
}

hk_status_t hk_journal_begin_segment(hk_journal_t *journal, bool end)
{
    hk_segment_t *segment;
    hk_piece_t *piece;
    hk_status_t status = prepare_segment(journal, &segment, &piece);
    if (status != HK_OK) {
        return status;
    }
    if (end) {
        lay_last(journal, HK_JOURNAL_END);
    }
    journal->segments[journal->segment_count++] = segment;
    segment->number = ++journal->newest;
    segment->first = journal->next;
    segment->last = journal->next - 1;
    segment->begun = journal->wall;
    segment->bytes = journal->segment_bytes;
    segment->salt_crc = journal->crc32c(0, segment->salt, sizeof(segment->salt));
    segment->end = HK_JOURNAL_HEADER_BYTES;
    segment->spare = journal->spares[--journal->spare_count].number;
    segment->fd = journal->spares[journal->spare_count].fd;
    piece->segment = segment->number;
    piece->offset = segment->end;
    hk_list_append(&journal->unwritten, &piece->link);
    journal->filling = piece;
    journal->begin_due = true;
    return HK_OK;
}

/* The numbers of dropped segments come first: what the log remembers must not take their room. */
static hk_status_t repeat_dropped(hk_journal_t *journal)
{
    size_t most = journal->gone_count - journal->gone_listed + journal->dropped_count;
    most = most < journal->segment_bytes / 64 ? most : journal->segment_bytes / 64;
    if (most == 0) {
        return HK_OK;
    }
    char *numbers = hk_alloc_new(journal->alloc, 8 * most);
    if (numbers == NULL) {
        return HK_NO_MEMORY;
    }
    size_t count = hk_journal_list_dropped(journal, numbers, most, 0, journal->gone_listed, false);
    hk_status_t status = count > 0 ? hk_journal_lay_dropped(journal, numbers, &count) : HK_OK;
    hk_alloc_free(journal->alloc, numbers);
    return status;
}

hk_status_t hk_journal_remember(hk_journal_t *journal)
{
    if (!journal->begin_due || journal->beginning) {
        return HK_OK;
    }
    hk_segment_t *segment = hk_journal_last_segment(journal);
    hk_status_t status = repeat_dropped(journal);
    uint32_t from = segment->end + (journal->mark_piece == NULL ? HK_JOURNAL_MARK_BYTES : 0);
    if (status == HK_OK && journal->begin != NULL) {
        journal->beginning = true;
        status = journal->begin(journal->context, journal);
        journal->beginning = false;
    }
    if (status == HK_OK) {
        journal->begin_due = false;
        journal->begin_bytes = segment->end > from ? segment->end - from : 0;
    }
    return status;
}
