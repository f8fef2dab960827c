/* hk_journal_private.h: what the files of hk_journal share. Nobody else includes it.
 *
 *     hk_journal_format      numbers, headers, records, checkpoints, names: bytes and nothing else
 *     hk_journal_append      laying records into the image, and the switch to the next segment
 *     hk_journal_write       handing the image to the kernel; reading it back
 *     hk_journal_space       which segments there are: dropping them, remembering them
 *     hk_journal_job         which job is due, and what its end means
 *     hk_journal_run         what a job does: the only file whose functions run in other threads
 *     hk_journal_scan        reading a segment from its beginning, or behind its end
 *     hk_journal_survey      whether a folder's segments are whole, torn or corrupt
 *     hk_journal_open        opening and closing
 *
 * A segment's life:
 *
 *     spare ──switch──► begun in memory ──job──► named ──write──► ended ──sync──► whole ──drop──► gone
 *                       (appends gather)         (once the one before is whole)
 */
#ifndef HK_JOURNAL_PRIVATE_H
#define HK_JOURNAL_PRIVATE_H

#include "hk_crc32c.h"
#include "hk_journal.h"

#include <errno.h>
#include <stdio.h>

enum {
    HK_JOURNAL_MARK = 1,
    HK_JOURNAL_END = 2,
    HK_JOURNAL_CLOSE = 3,
    HK_JOURNAL_DROPPED = 4,
    HK_JOURNAL_SKIP = 5,
    HK_JOURNAL_OF_LOG = 16, /* from here on types are the log's */

    HK_JOURNAL_MARK_BYTES = 40,      /* MARK, END and CLOSE, whole */
    HK_JOURNAL_OVERHEAD_BYTES = 168, /* of a segment with one record: header, MARK, the record's, END */
    HK_JOURNAL_PIECE_BYTES = 256 * 1024,
    HK_JOURNAL_IDLE_PIECES = 4,
    HK_JOURNAL_SPARES = 2,
    HK_JOURNAL_NAME_BYTES = 48,
    HK_JOURNAL_CHECKPOINT_BYTES = 64, /* without numbers */

    HK_JOURNAL_LEAST_RESERVE = 8 * 1024, /* of a segment without a successor, for what is urgent */
    HK_JOURNAL_LAST_RESERVE = 1024       /* and of that, for DROPPED alone: else a full journal stayed full */
};

#define HK_JOURNAL_LOCK "lock"
#define HK_JOURNAL_CHECKPOINT "checkpoint"
#define HK_JOURNAL_CHECKPOINT_MADE "checkpoint.tmp"

/* -- Bytes: hk_journal_format -------------------------------------------------------------------------------------- */

static inline void hk_journal_put(void *to, uint64_t number, size_t bytes)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(to, &number, bytes);
#else
    for (size_t i = 0; i < bytes; i++) {
        ((unsigned char *)to)[i] = (unsigned char)(number >> 8 * i);
    }
#endif
}

static inline uint64_t hk_journal_get(const void *from, size_t bytes)
{
    uint64_t number = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(&number, from, bytes);
#else
    for (size_t i = 0; i < bytes; i++) {
        number |= (uint64_t)((const unsigned char *)from)[i] << 8 * i;
    }
#endif
    return number;
}

/* Bytes of a record with a body of this length. */
static inline uint64_t hk_journal_size(uint64_t length)
{
    return HK_JOURNAL_RECORD_BYTES + ((length + 7) & ~(uint64_t)7);
}

/* What stands in a segment's header, and what becomes of the segment. */
typedef struct hk_segment {
    uint64_t number, first, begun; /* first: position */
    char salt[8];
    uint32_t bytes;
    uint32_t salt_crc; /* with which every record's checksum begins */

    uint32_t end;  /* offset behind the newest record */
    uint64_t last; /* position of the newest record; that before `first` when it has none */
    int fd;        /* -1: not open */
    bool named;    /* it has its name: it can be written to */
    bool ended;    /* END or CLOSE is laid, or nothing is written to it for another reason */
    bool synced;   /* ended, and all of it is on the disk */
    bool torn;     /* it has no END */
    bool doomed;   /* hk_journal_drop was called */
    bool dropped;  /* DROPPED is laid, within so many bytes of the image */
    uint64_t dropped_within;
    uint64_t spare; /* what it is made of, until it is named */
} hk_segment_t;

/* A record in memory, verified or not. */
typedef struct hk_journal_head {
    uint32_t length, crc;
    uint64_t position;
    uint8_t type, flags;
} hk_journal_head_t;

typedef struct hk_checkpoint {
    char identity[HK_JOURNAL_IDENTITY_BYTES];
    uint64_t synced, newest, first, when; /* first: number of the first segment that is needed */
    const char *dropped;                  /* the numbers, as they stand there */
    uint32_t dropped_count;
} hk_checkpoint_t;

void hk_journal_write_header(char header[HK_JOURNAL_HEADER_BYTES], hk_crc32c_t *crc32c, const char *identity,
                             const hk_segment_t *segment);

/* HK_OK, or HK_INVALID. Sets what stands in it, and salt_crc. */
hk_status_t hk_journal_read_header(const char header[HK_JOURNAL_HEADER_BYTES], hk_crc32c_t *crc32c, char *identity,
                                   hk_segment_t *segment);

/* Writes the head of a record whose body stands behind it already, and the zeros behind that. */
void hk_journal_write_head(char *record, hk_crc32c_t *crc32c, uint32_t salt_crc, const hk_journal_head_t *head);

/* The head, when it can be one: the length is twice the same, what must be zero is. Nothing is verified. */
bool hk_journal_read_head(const char *record, hk_journal_head_t *head);

/* Whether the checksum of a record is right, and its body has a form that its type allows. */
bool hk_journal_verifies(const char *record, hk_crc32c_t *crc32c, uint32_t salt_crc, const hk_journal_head_t *head);

/* A checkpoint of HK_JOURNAL_CHECKPOINT_BYTES and 8 for each number of dropped segments, which stand in it already. */
void hk_journal_write_checkpoint(char *bytes, hk_crc32c_t *crc32c, const hk_checkpoint_t *checkpoint);
hk_status_t hk_journal_read_checkpoint(const char *bytes, size_t size, hk_crc32c_t *crc32c,
                                       hk_checkpoint_t *checkpoint);

/* File names. */
void hk_journal_segment_name(uint64_t number, char name[HK_JOURNAL_NAME_BYTES]);
void hk_journal_spare_name(uint64_t number, char name[HK_JOURNAL_NAME_BYTES]);
bool hk_journal_is_segment(const char *name, uint64_t *number);
bool hk_journal_is_spare(const char *name, uint64_t *number);

/* Room on the disk, or descriptors, are short: that passes, and where nothing was written nothing was lost by it. */
static inline bool hk_journal_is_shortage(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE;
}

/* "EIO"; "error 1234" has no name: "". */
const char *hk_journal_error_name(int error);

/* Says what went wrong. call: "fdatasync"; name: of a file. HK_SYSTEM. */
hk_status_t hk_journal_say(hk_journal_trouble_t *trouble, const char *call, const char *name, int error);

/* -- Jobs ---------------------------------------------------------------------------------------------------------- */

typedef enum hk_task {
    HK_TASK_SYNC,      /* fdatasync of `fd` */
    HK_TASK_BEGIN,     /* a spare becomes a segment */
    HK_TASK_REMOVE,    /* a segment goes, or becomes a spare */
    HK_TASK_SPARE,     /* a new spare */
    HK_TASK_CHECKPOINT /* a new checkpoint */
} hk_task_t;

struct hk_job {
    const hk_files_t *files;
    hk_lane_t lane;
    hk_task_t task;
    bool is_out;
    int dir, fd;      /* fd: of a spare that was made, it is the journal's afterwards */
    const char *path; /* of the folder */
    char name[HK_JOURNAL_NAME_BYTES], to[HK_JOURNAL_NAME_BYTES]; /* to: empty when it is to be unlinked */
    char header[HK_JOURNAL_HEADER_BYTES];
    char *bytes; /* of a checkpoint */
    size_t size;
    uint32_t segment_bytes;
    hk_segment_t *segment;
    uint64_t number, position, within;
    bool whole; /* of a sync: the segment has ended, and all of it is written */

    const char *call; /* which call failed; NULL: none */
    const char *lost; /* what became of the segment or the folder; NULL: it is where it was */
    int error;
    int64_t took;
};

/* -- The journal --------------------------------------------------------------------------------------------------- */

struct hk_journal {
    const hk_alloc_t *alloc;
    const hk_files_t *files;
    hk_crc32c_t *crc32c;
    uint32_t segment_bytes;
    size_t image_bytes;
    hk_status_t (*begin)(void *context, hk_journal_t *journal);
    void *context;
    int dir, lock;
    char *path;      /* of the folder */
    uint64_t looked; /* when it was last looked whether the segment still has a name: ms since 1970 */
    char identity[HK_JOURNAL_IDENTITY_BYTES];
    uint64_t wall;

    uint64_t next;                    /* the position that is due */
    uint64_t written, synced, wanted; /* positions */
    /* The same in bytes of the image since it was opened: the journal's own records have no positions. */
    uint64_t laid_within, written_within, synced_within, wanted_within;

    /* By number; the last is the current one, to which records are appended. */
    hk_segment_t **segments;
    size_t segment_count, segment_capacity;
    size_t doomed_count, dropped_count; /* doomed: DROPPED is not laid yet; dropped: it is, and the file is there */
    hk_segment_t *writing;              /* that with the newest bytes that are written */
    struct hk_spare {
        uint64_t number;
        int fd;
    } spares[HK_JOURNAL_SPARES];
    size_t spare_count;
    uint64_t spare_number; /* of the newest one */
    /* Dropped segments that are gone; remembered until no checkpoint needs one before them. Room for all segments that
     * are doomed, too. */
    uint64_t *gone;
    size_t gone_count, gone_capacity;
    size_t gone_listed; /* of those, the checkpoint on the disk names the first so many */
    uint64_t checkpoint_first;
    uint64_t newest; /* the highest number that a segment has or had */

    hk_arena_t *arena;
    hk_list_t unwritten, images; /* pieces: a reference to each, and those that are held by others alone */
    hk_piece_t *filling;         /* the last of `unwritten` */
    uint32_t piece_written;      /* of the first of `unwritten` */
    hk_piece_t *mark_piece;      /* where the MARK of the open batch stands; NULL: no batch is open */
    uint32_t mark_at;

    bool begin_due, beginning; /* `begin` has still to be called for the current segment; is running */
    uint64_t begin_bytes;      /* what it appended the last time */
    bool failed, closing;
    int no_room;   /* errno with which the last spare was not made; 0: it was, or none was tried */
    bool retrying; /* one is tried again all the same */
    bool checkpoint_due, checkpoint_missed; /* missed: there was no room */
    hk_job_t jobs[HK_LANES];
    uint64_t reader_of; /* the segment that `reader` is open for; 0: none */
    int reader;
    hk_journal_trouble_t trouble;
    hk_journal_repair_t repair;
    hk_journal_stats_t stats;
};

static inline hk_segment_t *hk_journal_last_segment(const hk_journal_t *journal)
{
    return journal->segments[journal->segment_count - 1];
}

/* What became of a file or folder that somebody else has touched. */
#define HK_JOURNAL_SEGMENT_LOST "was deleted while it was in use"
#define HK_JOURNAL_FOLDER_LOST "was moved, replaced or deleted while it was in use"

/* The journal has failed, as its segment, or the folder (""), is not where it was. HK_SYSTEM. */
hk_status_t hk_journal_lose(hk_journal_t *journal, const char *lost, const char *name);

/* The journal has failed: says so, HK_SYSTEM. error: errno, of hk_files or of a job. */
hk_status_t hk_journal_fail(hk_journal_t *journal, const char *call, const char *name, int error);

/* hk_journal_append: begins a segment in memory, of a spare that there is. `end`: END is laid into the one before.
 * HK_OK, HK_NO_MEMORY, HK_SYSTEM. */
hk_status_t hk_journal_begin_segment(hk_journal_t *journal, bool end);

/* Calls `begin` for the current segment, if that is still due. */
hk_status_t hk_journal_remember(hk_journal_t *journal);

/* Lays CLOSE. All must be synced. */
void hk_journal_lay_close(hk_journal_t *journal);

/* Lays DROPPED with these numbers (little-endian), or with the first of them that there is room for: `count` is how
 * many. HK_OK, HK_TOO_LARGE, HK_NO_MEMORY, HK_SYSTEM. */
hk_status_t hk_journal_lay_dropped(hk_journal_t *journal, const char *numbers, size_t *count);

/* Completes the MARK of the open batch, if there is one. */
void hk_journal_close_batch(hk_journal_t *journal);

/* hk_journal_write: writes what can be written now. HK_OK or HK_SYSTEM. */
hk_status_t hk_journal_write_ready(hk_journal_t *journal);

/* hk_journal_space */
hk_segment_t *hk_journal_find(const hk_journal_t *journal, uint64_t number);
/* Makes room for one more in `segments`. */
hk_status_t hk_journal_reserve_segment(hk_journal_t *journal);
void hk_journal_remove_segment(hk_journal_t *journal, hk_segment_t *segment);
hk_status_t hk_journal_reserve_gone(hk_journal_t *journal, size_t count);

/* Lays DROPPED for the segments that are doomed, as far as there is room. HK_OK or HK_SYSTEM. */
hk_status_t hk_journal_drop_doomed(hk_journal_t *journal);

/* Numbers of dropped segments, little-endian, at most `capacity`: those from `first` on, whose files are still there or
 * among the gone behind the first `skipped`. on_disk: only those of which DROPPED is known to be on the disk. */
size_t hk_journal_list_dropped(const hk_journal_t *journal, char *numbers, size_t capacity, uint64_t first,
                               size_t skipped, bool on_disk);

/* Whether DROPPED is on the disk: the file may go. */
static inline bool hk_journal_may_go(const hk_journal_t *journal, const hk_segment_t *segment)
{
    return segment->dropped && segment->dropped_within <= journal->synced_within;
}

/* hk_journal_job: runs jobs of both lanes until none is due. HK_OK or HK_SYSTEM. */
hk_status_t hk_journal_run_all(hk_journal_t *journal);

/* -- Reading: hk_journal_scan, hk_journal_survey ------------------------------------------------------------------- */

/* A window on a file. */
typedef struct hk_scan {
    const hk_alloc_t *alloc;
    const hk_files_t *files;
    hk_crc32c_t *crc32c;
    hk_journal_trouble_t *trouble;
    char *bytes;
    size_t capacity, filled;
    uint64_t from, size; /* offset of the window; bytes of the file */
    hk_journal_reading_t reading;
    uint64_t records; /* replayed since it was last told */
    int fd;
    char name[HK_JOURNAL_NAME_BYTES];
} hk_scan_t;

typedef struct hk_found {
    hk_segment_t segment;
    bool has_header, ended, closed;
    bool renamed;    /* the header has another number than the name */
    bool foreign;    /* the header is of another journal */
    bool followed;   /* something stands behind CLOSE */
    uint64_t size;   /* of its file */
    uint64_t synced; /* the highest position that a record in it says is on the disk */
    bool unneeded;   /* it stands before the first that the checkpoint needs, and was not read */
    bool dropped;
    bool unbegun; /* the newest, which the crash came before: it goes */
} hk_found_t;

typedef struct hk_survey {
    const hk_alloc_t *alloc;
    hk_scan_t scan;
    int dir;
    bool has_identity, has_checkpoint;
    char identity[HK_JOURNAL_IDENTITY_BYTES];
    hk_checkpoint_t checkpoint;
    hk_found_t *found; /* by number */
    size_t count, capacity;
    uint64_t *dropped; /* numbers that were said to be dropped; in any order, maybe more than once */
    size_t dropped_count, dropped_capacity;
    uint64_t *spares;
    size_t spare_count, spare_capacity;
    bool no_memory, has_temporary_checkpoint;
    hk_journal_repair_t repair;
    uint64_t synced;
    uint64_t next, newest; /* the position that is due; the highest number there is or was */
} hk_survey_t;

void hk_scan_init(hk_scan_t *scan, const hk_alloc_t *alloc, const hk_files_t *files, hk_crc32c_t *crc32c,
                  hk_journal_trouble_t *trouble);
void hk_scan_release(hk_scan_t *scan);

/* Opens a file for reading. HK_OK or HK_SYSTEM. */
hk_status_t hk_scan_open(hk_scan_t *scan, int dir, const char *name);
void hk_scan_close(hk_scan_t *scan);

/* Says how far the reading is. What it returns. */
hk_status_t hk_scan_tell(hk_scan_t *scan, uint64_t bytes);

/* `size` bytes at an offset; borrowed until the next call. HK_OK; HK_NOT_FOUND: the file ends before; HK_SYSTEM;
 * HK_NO_MEMORY; what hk_scan_tell returned. This holds for all that read. */
hk_status_t hk_scan_view(hk_scan_t *scan, uint64_t offset, uint64_t size, const char **bytes);

/* The record at an offset, verified; but its position is not looked at. HK_OK; HK_NOT_FOUND: none verifies there;
 * HK_SYSTEM; HK_NO_MEMORY. */
hk_status_t hk_scan_record(hk_scan_t *scan, const hk_segment_t *segment, uint64_t offset, hk_journal_head_t *head,
                           const char **body);

/* Reads an open segment from the header to its end: sets end, last, ended, closed, synced of `found`, and adds to what
 * was dropped. `replay` (may be NULL) gets the log's records. */
hk_status_t hk_scan_segment(hk_scan_t *scan, hk_found_t *found, hk_survey_t *survey,
                            hk_status_t (*replay)(void *context, const hk_journal_record_t *record), void *context);

/* What records behind the end say to be synced. */
hk_status_t hk_scan_behind(hk_scan_t *scan, hk_found_t *found);

/* Goes on behind what does not verify, as long as there are records, and writes a SKIP over it, synced. Adds to
 * `repair`. */
hk_status_t hk_scan_bridge(hk_scan_t *scan, hk_found_t *found, hk_survey_t *survey, hk_journal_repair_t *repair);

/* Reads a folder. HK_OK: it is whole, or its tail is torn; HK_INVALID, HK_SYSTEM, HK_NO_MEMORY. */
hk_status_t hk_survey_take(hk_survey_t *survey);
void hk_survey_release(hk_survey_t *survey);
bool hk_survey_knows_dropped(const hk_survey_t *survey, uint64_t number);
hk_status_t hk_survey_add_dropped(hk_survey_t *survey, uint64_t number);

#endif
