#include "hk_journal_private.h"

enum {
    WINDOW_BYTES = 1024 * 1024,
    /* Segments' worth of bytes that are verified to find what is whole behind the end. What stood in the segment before
     * takes two at most; bodies that are made of heads, each of a long record, take no more than that. */
    SEARCH_SEGMENTS = 4
};

void hk_scan_init(hk_scan_t *scan, const hk_alloc_t *alloc, const hk_files_t *files, hk_crc32c_t *crc32c,
                  hk_journal_trouble_t *trouble)
{
    *scan = (hk_scan_t){.alloc = alloc, .files = files, .crc32c = crc32c, .trouble = trouble, .fd = -1};
}

void hk_scan_release(hk_scan_t *scan)
{
    hk_scan_close(scan);
    hk_alloc_free(scan->alloc, scan->bytes);
}

hk_status_t hk_scan_open(hk_scan_t *scan, int dir, const char *name)
{
    const hk_files_t *files = scan->files;
    snprintf(scan->name, sizeof(scan->name), "%s", name);
    scan->fd = files->open(files->context, dir, name);
    if (scan->fd < 0) {
        return hk_journal_say(scan->trouble, "open", name, files->error(files->context));
    }
    int64_t size = files->size(files->context, scan->fd);
    if (size < 0) {
        return hk_journal_say(scan->trouble, "fstat", name, files->error(files->context));
    }
    scan->size = (uint64_t)size;
    scan->from = scan->filled = 0;
    return HK_OK;
}

void hk_scan_close(hk_scan_t *scan)
{
    if (scan->fd >= 0) {
        (void)scan->files->close(scan->files->context, scan->fd);
        scan->fd = -1;
    }
}

/* -- The window ---------------------------------------------------------------------------------------------------- */

static hk_status_t widen(hk_scan_t *scan, uint64_t size)
{
    size_t least = size > WINDOW_BYTES ? (size_t)size : WINDOW_BYTES;
    if (scan->capacity >= least) {
        return HK_OK;
    }
    char *bytes = hk_alloc_resize(scan->alloc, scan->bytes, 1, least);
    if (bytes == NULL) {
        return HK_NO_MEMORY;
    }
    scan->bytes = bytes;
    scan->capacity = least;
    return HK_OK;
}

hk_status_t hk_scan_tell(hk_scan_t *scan, uint64_t bytes)
{
    uint64_t records = scan->records;
    scan->records = 0;
    return scan->reading.read != NULL ? scan->reading.read(scan->reading.context, bytes, records) : HK_OK;
}

static hk_status_t fill(hk_scan_t *scan, uint64_t least)
{
    size_t before = scan->filled;
    while (scan->filled < least) {
        uint64_t offset = scan->from + scan->filled;
        ssize_t count = scan->files->read_at(scan->files->context, scan->fd, scan->bytes + scan->filled,
                                             scan->capacity - scan->filled, offset);
        int error = count < 0 ? scan->files->error(scan->files->context) : EIO;
        if (count <= 0 && !(count < 0 && error == EINTR)) {
            hk_journal_say(scan->trouble, "pread", scan->name, error);
            scan->trouble->offset = offset;
            return HK_SYSTEM;
        }
        scan->filled += count > 0 ? (size_t)count : 0;
    }
    return hk_scan_tell(scan, scan->filled - before);
}

hk_status_t hk_scan_view(hk_scan_t *scan, uint64_t offset, uint64_t size, const char **bytes)
{
    if (size > scan->size || offset > scan->size - size) {
        return HK_NOT_FOUND;
    }
    if (offset < scan->from || offset + size > scan->from + scan->filled) {
        hk_status_t status = widen(scan, size);
        if (status != HK_OK) {
            return status;
        }
        size_t kept = 0;
        if (offset >= scan->from && offset < scan->from + scan->filled) {
            kept = (size_t)(scan->from + scan->filled - offset);
            memmove(scan->bytes, scan->bytes + (offset - scan->from), kept);
        }
        scan->from = offset;
        scan->filled = kept;
        status = fill(scan, size);
        if (status != HK_OK) {
            return status;
        }
    }
    *bytes = scan->bytes + (offset - scan->from);
    return HK_OK;
}

/* -- Records ------------------------------------------------------------------------------------------------------- */

/* Whether a record may begin there, which is not verified yet. */
static hk_status_t look_at_head(hk_scan_t *scan, const hk_segment_t *segment, uint64_t offset, hk_journal_head_t *head)
{
    const char *bytes;
    if (offset + HK_JOURNAL_RECORD_BYTES > segment->bytes) {
        return HK_NOT_FOUND;
    }
    hk_status_t status = hk_scan_view(scan, offset, HK_JOURNAL_RECORD_BYTES, &bytes);
    if (status != HK_OK) {
        return status;
    }
    bool fits = hk_journal_read_head(bytes, head) && hk_journal_size(head->length) <= segment->bytes - offset;
    return fits ? HK_OK : HK_NOT_FOUND;
}

hk_status_t hk_scan_record(hk_scan_t *scan, const hk_segment_t *segment, uint64_t offset, hk_journal_head_t *head,
                           const char **body)
{
    const char *bytes;
    hk_status_t status = look_at_head(scan, segment, offset, head);
    if (status != HK_OK) {
        return status;
    }
    status = hk_scan_view(scan, offset, hk_journal_size(head->length), &bytes);
    if (status != HK_OK) {
        return status;
    }
    if (!hk_journal_verifies(bytes, scan->crc32c, segment->salt_crc, head)) {
        return HK_NOT_FOUND;
    }
    *body = bytes + HK_JOURNAL_RECORD_BYTES;
    return HK_OK;
}

/* What a record of the journal says. */
static hk_status_t hear(hk_found_t *found, hk_survey_t *survey, const hk_journal_head_t *head, const char *body)
{
    if (head->type == HK_JOURNAL_SKIP) {
        return HK_OK;
    }
    if (head->type == HK_JOURNAL_DROPPED) {
        for (uint32_t i = 0; i < head->length && survey != NULL; i += 8) {
            uint64_t number = hk_journal_get(body + i, 8);
            /* No segment says that it is dropped itself, let alone one that is to come. */
            if (number < found->segment.number && hk_survey_add_dropped(survey, number) != HK_OK) {
                return HK_NO_MEMORY;
            }
        }
        return HK_OK;
    }
    uint64_t synced = hk_journal_get(body, 8);
    found->synced = synced > found->synced ? synced : found->synced;
    return HK_OK;
}

static bool is_due(const hk_journal_head_t *head, uint64_t next)
{
    return head->type == HK_JOURNAL_SKIP ? head->position >= next : head->position == next;
}

/* What a DROPPED relies on may be missing, and so may the segment behind an END. */
static bool counts_behind(const hk_journal_head_t *head)
{
    return head->type == HK_JOURNAL_MARK || head->type == HK_JOURNAL_SKIP || head->type >= HK_JOURNAL_OF_LOG;
}

/* From the end that is known so far. bridging: only what counts behind what does not verify. */
static hk_status_t read_on(hk_scan_t *scan, hk_found_t *found, hk_survey_t *survey, bool bridging,
                           hk_status_t (*replay)(void *context, const hk_journal_record_t *record), void *context)
{
    hk_segment_t *segment = &found->segment;
    uint64_t next = segment->last + 1, offset = segment->end;
    hk_journal_head_t head;
    const char *body;
    while (!found->ended) {
        hk_status_t status = hk_scan_record(scan, segment, offset, &head, &body);
        if (status == HK_NOT_FOUND || (status == HK_OK && !is_due(&head, next)) ||
            (status == HK_OK && bridging && !counts_behind(&head))) {
            break;
        }
        if (status != HK_OK) {
            return status;
        }
        if (head.type < HK_JOURNAL_OF_LOG) {
            status = hear(found, survey, &head, body);
            next = head.position;
            found->closed = head.type == HK_JOURNAL_CLOSE;
            found->ended = found->closed || head.type == HK_JOURNAL_END;
        } else {
            next++;
            hk_journal_record_t record = {.position = head.position,
                                          .type = head.type,
                                          .flags = head.flags,
                                          .body = hk_bytes(body, head.length),
                                          .segment = segment->number,
                                          .offset = (uint32_t)offset + HK_JOURNAL_RECORD_BYTES};
            scan->records += replay != NULL;
            status = replay != NULL ? replay(context, &record) : HK_OK;
        }
        if (status != HK_OK) {
            return status;
        }
        offset += hk_journal_size(head.length);
    }
    segment->end = (uint32_t)offset;
    segment->last = next - 1;
    hk_status_t status = found->closed ? hk_scan_record(scan, segment, offset, &head, &body) : HK_NOT_FOUND;
    found->followed = status == HK_OK;
    return status == HK_NOT_FOUND ? HK_OK : status;
}

hk_status_t hk_scan_segment(hk_scan_t *scan, hk_found_t *found, hk_survey_t *survey,
                            hk_status_t (*replay)(void *context, const hk_journal_record_t *record), void *context)
{
    found->segment.end = HK_JOURNAL_HEADER_BYTES;
    found->segment.last = found->segment.first - 1;
    found->ended = found->closed = false;
    return read_on(scan, found, survey, false, replay, context);
}

/* Where the records go on behind what is not read at the end: at the first of the log that verifies, or behind what
 * does not count. allowance: bytes that may be verified. HK_OK, HK_NOT_FOUND, HK_SYSTEM, HK_NO_MEMORY. */
static hk_status_t find_behind(hk_scan_t *scan, const hk_segment_t *segment, uint64_t *allowance, uint64_t *offset,
                               uint64_t *position)
{
    hk_journal_head_t head;
    const char *body;
    hk_status_t status = hk_scan_record(scan, segment, segment->end, &head, &body);
    if (status == HK_OK && is_due(&head, segment->last + 1)) {
        *offset = segment->end + hk_journal_size(head.length);
        *position = head.position;
        return HK_OK;
    }
    for (uint64_t at = (uint64_t)segment->end + HK_JOURNAL_RECORD_BYTES; at + HK_JOURNAL_RECORD_BYTES <= segment->bytes;
         at += 8) {
        status = look_at_head(scan, segment, at, &head);
        if (status == HK_OK && head.position > segment->last && head.type >= HK_JOURNAL_OF_LOG &&
            head.length <= *allowance) {
            *allowance -= head.length;
            status = hk_scan_record(scan, segment, at, &head, &body);
            if (status == HK_OK) {
                *offset = at;
                *position = head.position;
                return HK_OK;
            }
        }
        if (status != HK_OK && status != HK_NOT_FOUND) {
            return status;
        }
    }
    return status == HK_OK ? HK_NOT_FOUND : status;
}

/* A SKIP over the bytes up to `to`, whose body is what stands there. */
static hk_status_t write_skip(hk_scan_t *scan, const hk_segment_t *segment, uint64_t to, uint64_t position)
{
    const char *window;
    uint64_t from = segment->end;
    hk_status_t status = hk_scan_view(scan, from, to - from, &window);
    if (status != HK_OK) {
        return status;
    }
    hk_journal_head_t head = {
        .length = (uint32_t)(to - from - HK_JOURNAL_RECORD_BYTES), .position = position, .type = HK_JOURNAL_SKIP};
    char *record = scan->bytes + (from - scan->from);
    hk_journal_write_head(record, scan->crc32c, segment->salt_crc, &head);
    for (size_t done = 0; done < HK_JOURNAL_RECORD_BYTES;) {
        struct iovec part = {.iov_base = record + done, .iov_len = HK_JOURNAL_RECORD_BYTES - done};
        ssize_t count = scan->files->write_at(scan->files->context, scan->fd, &part, 1, from + done);
        int error = count < 0 ? scan->files->error(scan->files->context) : EIO;
        if (count <= 0 && !(count < 0 && error == EINTR)) {
            return hk_journal_say(scan->trouble, "pwritev", scan->name, error);
        }
        done += count > 0 ? (size_t)count : 0;
    }
    return HK_OK;
}

static void note_hole(hk_journal_repair_t *repair, const hk_segment_t *segment, uint64_t to, uint64_t position)
{
    if (repair->holes < HK_JOURNAL_HOLES) {
        repair->first_holes[repair->holes] = (hk_journal_hole_t){segment->end, to, segment->last + 1, position - 1};
    }
    repair->holes++;
    repair->missing += position - 1 - segment->last;
}

static hk_status_t sync_skips(hk_scan_t *scan)
{
    while (scan->files->sync(scan->files->context, scan->fd) != 0) {
        int error = scan->files->error(scan->files->context);
        if (error != EINTR) {
            return hk_journal_say(scan->trouble, "fsync", scan->name, error);
        }
    }
    return HK_OK;
}

hk_status_t hk_scan_bridge(hk_scan_t *scan, hk_found_t *found, hk_survey_t *survey, hk_journal_repair_t *repair)
{
    hk_segment_t *segment = &found->segment;
    bool written = false;
    uint64_t allowance = (uint64_t)SEARCH_SEGMENTS * segment->bytes;
    while (!found->ended) {
        uint64_t to, position;
        hk_status_t status = find_behind(scan, segment, &allowance, &to, &position);
        if (status == HK_NOT_FOUND) {
            break;
        }
        if (status == HK_OK) {
            status = write_skip(scan, segment, to, position);
        }
        if (status != HK_OK) {
            return status;
        }
        written = true;
        note_hole(repair, segment, to, position);
        segment->end = (uint32_t)to;
        segment->last = position - 1;
        status = read_on(scan, found, survey, true, NULL, NULL);
        if (status != HK_OK) {
            return status;
        }
    }
    return written ? sync_skips(scan) : HK_OK;
}

/* Only these are verified: another could be as long as the segment, and stand at every offset. */
static bool says_synced(const hk_journal_head_t *head)
{
    return head->length == HK_JOURNAL_MARK_BYTES - HK_JOURNAL_RECORD_BYTES &&
           (head->type == HK_JOURNAL_MARK || head->type == HK_JOURNAL_END || head->type == HK_JOURNAL_CLOSE);
}

hk_status_t hk_scan_behind(hk_scan_t *scan, hk_found_t *found)
{
    const hk_segment_t *segment = &found->segment;
    for (uint64_t offset = segment->end; offset + HK_JOURNAL_MARK_BYTES <= segment->bytes; offset += 8) {
        hk_journal_head_t head;
        const char *body;
        hk_status_t status = look_at_head(scan, segment, offset, &head);
        if (status == HK_OK && says_synced(&head) && head.position > segment->last) {
            status = hk_scan_record(scan, segment, offset, &head, &body);
            if (status == HK_OK) {
                status = hear(found, NULL, &head, body);
            }
        }
        if (status != HK_OK && status != HK_NOT_FOUND) {
            return status;
        }
    }
    return HK_OK;
}
