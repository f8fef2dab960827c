#include "hk_journal_private.h"

enum { PARTS = 64 };

/* There is always one: that which is being filled. */
static hk_piece_t *first_unwritten(const hk_journal_t *journal)
{
    return HK_OWNER(journal->unwritten.next, hk_piece_t, link);
}

/* Between two looks whether what is written to still has a name. */
enum { LOOK_MS = 100 };

/* -- Writing ------------------------------------------------------------------------------------------------------- */

/* Whoever else refers to it reads it until it is evicted. */
static void retire_first(hk_journal_t *journal)
{
    hk_piece_t *piece = first_unwritten(journal);
    hk_list_remove(&piece->link);
    hk_list_append(&journal->images, &piece->link);
    hk_piece_release(piece);
    journal->piece_written = 0;
}

/* Pieces that stand one behind the other in one segment. */
static int gather(const hk_journal_t *journal, uint64_t segment, struct iovec parts[PARTS])
{
    uint32_t from = journal->piece_written;
    int count = 0;
    for (const hk_list_t *link = journal->unwritten.next; link != &journal->unwritten && count < PARTS;
         link = link->next) {
        const hk_piece_t *piece = HK_OWNER(link, hk_piece_t, link);
        if (piece->segment != segment) {
            break;
        }
        parts[count++] = (struct iovec){.iov_base = piece->bytes + from, .iov_len = piece->used - from};
        from = 0;
    }
    return count;
}

static void advance(hk_journal_t *journal, uint64_t count)
{
    journal->written_within += count;
    while (count > 0) {
        hk_piece_t *piece = first_unwritten(journal);
        uint32_t rest = piece->used - journal->piece_written;
        uint32_t part = count < rest ? (uint32_t)count : rest;
        journal->piece_written += part;
        count -= part;
        if (count > 0) {
            retire_first(journal);
        }
    }
}

static hk_status_t write_some(hk_journal_t *journal, hk_segment_t *segment)
{
    struct iovec parts[PARTS];
    int count = gather(journal, segment->number, parts);
    uint64_t offset = first_unwritten(journal)->offset + (uint64_t)journal->piece_written;
    const hk_files_t *files = journal->files;
    ssize_t done = files->write_at(files->context, segment->fd, parts, count, offset);
    int error = done < 0 ? files->error(files->context) : EIO;
    if (done > 0) {
        journal->writing = segment;
        advance(journal, (uint64_t)done);
        return HK_OK;
    }
    if (done < 0 && error == EINTR) {
        return HK_OK;
    }
    char name[HK_JOURNAL_NAME_BYTES];
    hk_journal_segment_name(segment->number, name);
    return hk_journal_fail(journal, "pwritev", name, error);
}

hk_status_t hk_journal_write_ready(hk_journal_t *journal)
{
    hk_journal_close_batch(journal);
    for (hk_status_t status = HK_OK; status == HK_OK;) {
        hk_piece_t *piece = first_unwritten(journal);
        if (journal->piece_written == piece->used) {
            if (piece == journal->filling) {
                break;
            }
            retire_first(journal);
            continue;
        }
        hk_segment_t *segment = hk_journal_find(journal, piece->segment);
        if (!segment->named) {
            break;
        }
        status = write_some(journal, segment);
    }
    if (journal->failed) {
        return HK_SYSTEM;
    }
    /* All of every segment that has its name. */
    journal->written = journal->writing != NULL ? journal->writing->last : journal->written;
    hk_journal_trim(journal);
    return HK_OK;
}

/* What is only written is not looked at by a sync. */
static hk_status_t look(hk_journal_t *journal)
{
    const hk_segment_t *segment = journal->writing;
    const hk_files_t *files = journal->files;
    if (segment == NULL || segment->fd < 0 || journal->wall - journal->looked < LOOK_MS) {
        return HK_OK;
    }
    journal->looked = journal->wall;
    if (files->linked(files->context, segment->fd) != 0) {
        return HK_OK;
    }
    char name[HK_JOURNAL_NAME_BYTES];
    hk_journal_segment_name(segment->number, name);
    return hk_journal_lose(journal, HK_JOURNAL_SEGMENT_LOST, name);
}

hk_status_t hk_journal_write(hk_journal_t *journal, uint64_t wall)
{
    if (journal->failed) {
        return HK_SYSTEM;
    }
    journal->wall = wall;
    hk_status_t status = hk_journal_drop_doomed(journal);
    if (status == HK_OK) {
        status = hk_journal_write_ready(journal);
    }
    return status == HK_OK ? look(journal) : status;
}

void hk_journal_trim(hk_journal_t *journal)
{
    hk_arena_t *arena = journal->arena;
    while (arena->bytes - (size_t)arena->idle_count * arena->piece_bytes > journal->image_bytes) {
        hk_list_t *link = hk_list_shift(&journal->images);
        if (link == NULL) {
            break;
        }
        hk_piece_evict(HK_OWNER(link, hk_piece_t, link));
    }
}

void hk_journal_keep_image(hk_journal_t *journal, size_t image_bytes)
{
    journal->image_bytes = image_bytes;
}

/* -- Reading back -------------------------------------------------------------------------------------------------- */

/* Bytes that are still in memory, or NULL. */
static const char *in_memory(const hk_list_t *pieces, uint64_t segment, uint64_t offset, size_t size)
{
    for (const hk_list_t *link = pieces->previous; link != pieces; link = link->previous) {
        const hk_piece_t *piece = HK_OWNER(link, hk_piece_t, link);
        if (piece->segment == segment && piece->bytes != NULL && offset >= piece->offset &&
            offset + size <= (uint64_t)piece->offset + piece->used) {
            return piece->bytes + (offset - piece->offset);
        }
    }
    return NULL;
}

static hk_status_t say_unread(hk_journal_t *journal, const char *call, const char *name, int error)
{
    if (!journal->failed) {
        hk_journal_say(&journal->trouble, call, name, error);
    }
    return HK_SYSTEM;
}

/* The descriptor to read a segment with: its own, or one that is kept for the segment that was read last. HK_AGAIN:
 * there is none now. */
static hk_status_t open_reader(hk_journal_t *journal, const hk_segment_t *segment, const char *name, int *fd)
{
    const hk_files_t *files = journal->files;
    if (segment->fd >= 0) {
        *fd = segment->fd;
        return HK_OK;
    }
    if (journal->reader_of != segment->number) {
        if (journal->reader_of != 0) {
            (void)files->close(files->context, journal->reader);
            journal->reader_of = 0;
        }
        journal->reader = files->open(files->context, journal->dir, name);
        if (journal->reader < 0) {
            int error = files->error(files->context);
            return error == EMFILE || error == ENFILE ? HK_AGAIN : say_unread(journal, "open", name, error);
        }
        journal->reader_of = segment->number;
    }
    *fd = journal->reader;
    return HK_OK;
}

static hk_status_t read_file(hk_journal_t *journal, const hk_segment_t *segment, uint64_t offset, char *to, size_t size)
{
    char name[HK_JOURNAL_NAME_BYTES];
    hk_journal_segment_name(segment->number, name);
    int fd;
    hk_status_t status = open_reader(journal, segment, name, &fd);
    if (status != HK_OK) {
        return status;
    }
    const hk_files_t *files = journal->files;
    while (size > 0) {
        ssize_t count = files->read_at(files->context, fd, to, size, offset);
        int error = count < 0 ? files->error(files->context) : EIO;
        if (count <= 0 && !(count < 0 && error == EINTR)) {
            return say_unread(journal, "pread", name, error);
        }
        if (count > 0) {
            to += count;
            size -= (size_t)count;
            offset += (uint64_t)count;
        }
    }
    return HK_OK;
}

static hk_status_t read_back(hk_journal_t *journal, const hk_segment_t *segment, uint64_t offset, void *to, size_t size)
{
    const char *bytes = in_memory(&journal->unwritten, segment->number, offset, size);
    if (bytes == NULL) {
        bytes = in_memory(&journal->images, segment->number, offset, size);
    }
    if (bytes == NULL) {
        return read_file(journal, segment, offset, to, size);
    }
    memcpy(to, bytes, size);
    return HK_OK;
}

hk_status_t hk_journal_read(hk_journal_t *journal, uint64_t segment, uint32_t offset, void *bytes, size_t size)
{
    const hk_segment_t *found = hk_journal_find(journal, segment);
    if (found == NULL || offset < HK_JOURNAL_HEADER_BYTES || (uint64_t)offset + size > found->end) {
        return HK_NOT_FOUND;
    }
    return read_back(journal, found, offset, bytes, size);
}

hk_status_t hk_journal_reread(hk_journal_t *journal, uint64_t segment, uint32_t offset, hk_journal_record_t *record)
{
    const hk_segment_t *found = hk_journal_find(journal, segment);
    if (found == NULL || offset < HK_JOURNAL_HEADER_BYTES + HK_JOURNAL_RECORD_BYTES || offset > found->end) {
        return HK_NOT_FOUND;
    }
    uint64_t at = offset - HK_JOURNAL_RECORD_BYTES;
    char bytes[HK_JOURNAL_RECORD_BYTES];
    hk_status_t status = read_back(journal, found, at, bytes, sizeof(bytes));
    hk_journal_head_t head;
    if (status != HK_OK) {
        return status;
    }
    if (!hk_journal_read_head(bytes, &head) || head.length > found->end - offset) {
        return HK_INVALID;
    }
    uint64_t size = hk_journal_size(head.length);
    hk_piece_t *piece = hk_piece_new(journal->arena, size);
    if (piece == NULL) {
        return HK_NO_MEMORY;
    }
    status = read_back(journal, found, at, piece->bytes, size);
    if (status == HK_OK && (!hk_journal_read_head(piece->bytes, &head) || hk_journal_size(head.length) != size ||
                            !hk_journal_verifies(piece->bytes, journal->crc32c, found->salt_crc, &head))) {
        status = HK_INVALID;
    }
    if (status != HK_OK) {
        hk_piece_release(piece);
        return status;
    }
    piece->used = (uint32_t)size;
    piece->segment = segment;
    piece->offset = (uint32_t)at;
    *record = (hk_journal_record_t){.position = head.position,
                                    .type = head.type,
                                    .flags = head.flags,
                                    .body = hk_bytes(piece->bytes + HK_JOURNAL_RECORD_BYTES, head.length),
                                    .segment = segment,
                                    .offset = offset,
                                    .piece = piece};
    return HK_OK;
}
