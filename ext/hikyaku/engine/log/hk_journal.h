/* hk_journal.h: a log on the disk. docs/journal.md is the format.
 *
 *     append ──► image in memory (pieces) ──► write: one pwritev a turn ──► sync: fdatasync, by a job
 *                   │
 *                   └─ whoever retains a piece reads the record from there, without a copy
 *
 * What is quick is done by whoever owns the journal (the loop's thread): append, write. What may take long is a *job*:
 * it is taken from the journal, run by any thread (hk_job_run touches nothing but the job and the files), and brought
 * back. There are two lanes, so that a sync never waits for a segment being filled with zeros; at most one job of a
 * lane is out at a time. A test, or a program with nothing else to do, runs them at once.
 *
 * What it costs. An append: its bytes are copied once and summed up once; memory is asked for once in 256 KiB. A write:
 * one system call for up to 64 pieces. When a segment is full, appends go on in memory while jobs sync it and give the
 * next one its name; what they append is `written` when that is done.
 *
 * Not thread-safe but for hk_job_run. After HK_SYSTEM from append, write or done, the journal has failed: it takes
 * nothing any more and acknowledges nothing.
 */
#ifndef HK_JOURNAL_H
#define HK_JOURNAL_H

#include "hk_alloc.h"
#include "hk_arena.h"
#include "hk_bytes.h"
#include "hk_files.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HK_JOURNAL_IDENTITY_BYTES = 16,
    HK_JOURNAL_HEADER_BYTES = 64,
    HK_JOURNAL_RECORD_BYTES = 24,
    HK_JOURNAL_SEGMENT_LEAST = 64 * 1024,
    HK_JOURNAL_SEGMENT_MOST = 1024 * 1024 * 1024,
    HK_JOURNAL_SEGMENT_USUAL = 32 * 1024 * 1024,
    HK_JOURNAL_TEXT_BYTES = 512
};

typedef struct hk_journal hk_journal_t;
typedef struct hk_job hk_job_t;

/* One record, as it is read or was appended. */
typedef struct hk_journal_record {
    uint64_t position;
    uint8_t type, flags;
    hk_bytes_t body;  /* borrowed: in `piece` after an append; until the callback returns when reading */
    uint64_t segment; /* where it stands: the body's first byte */
    uint32_t offset;
    hk_piece_t *piece; /* after an append: borrowed, retain it to keep the body. NULL when reading */
} hk_journal_record_t;

/* Who is told how far the reading is. `read` may be NULL: nobody. It is called for each piece of a file, of about a
 * MiB or one record, and when all was read, with the bytes and records since the last call; each file is read twice,
 * and its records count the second time. Anything but HK_OK ends the opening with it. */
typedef struct hk_journal_reading {
    hk_status_t (*read)(void *context, uint64_t bytes, uint64_t records);
    void *context;
} hk_journal_reading_t;

typedef struct hk_journal_options {
    const char *path; /* of the folder, which exists */
    const hk_files_t *files;
    uint32_t segment_bytes; /* of new segments; 0: the usual */
    size_t image_bytes;     /* of records whose pieces are kept in memory though they are written; see _trim */
    uint64_t wall;          /* now: ms since 1970 */
    /* Called whenever a segment is begun, before any other record of it, and when the journal is opened, even where
     * there is no room for another segment: appends what the log has to remember for ever. Appends made in it never
     * fail for want of a next segment. What it returns but HK_OK is what the append returns that began the segment; the
     * next append calls it again. May be NULL. */
    hk_status_t (*begin)(void *context, hk_journal_t *journal);
    /* Called while opening, for every record of the log's types, in order. Anything but HK_OK ends the opening with it.
     * May be NULL. */
    hk_status_t (*replay)(void *context, const hk_journal_record_t *record);
    void *context;
    hk_journal_reading_t reading;
} hk_journal_options_t;

/* Why it could not be opened, or failed: words for a person. */
typedef struct hk_journal_trouble {
    char text[HK_JOURNAL_TEXT_BYTES]; /* "journal-….seg is damaged at offset 4,096: …" */
    char segment[48];                 /* file name; empty: none */
    uint64_t offset;
    int error; /* errno; 0: none */
} hk_journal_trouble_t;

/* Opens a journal, or makes one in an empty folder; replays its records; repairs a torn tail; begins a new segment;
 * makes the first spare, if there is room; where there is none for the segment, it is full, and goes on in the newest
 * one. Runs its jobs itself. All that was replayed is synced.
 *
 * HK_OK; HK_TOO_MANY: another process has it; HK_INVALID: it is corrupt; HK_SYSTEM; HK_NO_MEMORY; what `replay`,
 * `begin` or `reading` returned. `trouble` (may be NULL) says more. */
hk_status_t hk_journal_open(const hk_alloc_t *alloc, const hk_journal_options_t *options, hk_journal_t **journal,
                            hk_journal_trouble_t *trouble);

/* Writes and syncs everything, CLOSE, the checkpoint; runs all jobs itself; frees the journal whatever happens. No job
 * may be out. Pieces that somebody retained live on. HK_OK or HK_SYSTEM. */
hk_status_t hk_journal_close(hk_journal_t *journal);

/* Frees the memory, closes descriptors, and touches no file: as a crash would leave it. No job may be out. */
void hk_journal_drop_dead(hk_journal_t *journal);

/* Appends a record: body is the parts one behind the other (copied). O(bytes).
 *
 * urgent  it frees something: it may use what is reserved for that. Others get HK_TOO_LARGE when the journal is full.
 *
 * HK_OK; HK_TOO_LARGE: the journal is full, or a spare is not there yet (see hk_journal_remaining, hk_journal_full);
 * HK_INVALID: the body is larger than a segment holds; HK_NO_MEMORY; HK_SYSTEM. On failure nothing was appended but,
 * maybe, what `begin` appends to a new segment. */
hk_status_t hk_journal_append(hk_journal_t *journal, uint8_t type, uint8_t flags, const hk_bytes_t *parts, size_t count,
                              bool urgent, hk_journal_record_t *record);

/* Hands what was appended to the kernel: one pwritev, most of the time. HK_OK or HK_SYSTEM. */
hk_status_t hk_journal_write(hk_journal_t *journal, uint64_t wall);

/* Positions: of the newest record that was appended, is written, is synced. 0: none. */
uint64_t hk_journal_appended(const hk_journal_t *journal);
uint64_t hk_journal_written(const hk_journal_t *journal);
uint64_t hk_journal_synced(const hk_journal_t *journal);

/* Somebody waits for this position to be synced: a sync job will be there until it is. */
void hk_journal_want_sync(hk_journal_t *journal, uint64_t position);

typedef enum hk_lane { HK_LANE_SYNC, HK_LANE_SPACE, HK_LANES } hk_lane_t;

/* What is to be done now in a lane, or NULL. It must come back by hk_journal_done. */
hk_job_t *hk_journal_job(hk_journal_t *journal, hk_lane_t lane);

/* Any thread. */
void hk_job_run(hk_job_t *job);

/* Takes note of what became of it; the job is gone. HK_OK, or HK_SYSTEM: the journal has failed. */
hk_status_t hk_journal_done(hk_journal_t *journal, hk_job_t *job);

/* Bytes of records (24 to 31 each, and the body) that bulk appends may still take before another segment must be made.
 * 0 when the journal is full, or while the next segment is being made and the current one is almost full. */
uint64_t hk_journal_remaining(const hk_journal_t *journal);

/* The journal is full: there is no spare, and was no room to make one. It is tried again, by a job, after
 * hk_journal_retry. HK_TOO_LARGE from a journal that is not full means that a spare is in the making. */
bool hk_journal_full(const hk_journal_t *journal);
/* What it was that there was none of: errno; 0: nothing. */
int hk_journal_shortage(const hk_journal_t *journal);
void hk_journal_retry(hk_journal_t *journal);

/* Numbers of the oldest segment that is there, and of the one that is being written. */
uint64_t hk_journal_oldest(const hk_journal_t *journal);
uint64_t hk_journal_current(const hk_journal_t *journal);

/* Bytes of all segments that are there, without spares. */
uint64_t hk_journal_bytes(const hk_journal_t *journal);

/* A segment that is not the current one is not needed any more: DROPPED is laid by the next write, and when that is
 * synced (it is wanted by itself) a job removes the file, or makes it a spare. HK_OK, HK_NOT_FOUND, HK_NO_MEMORY. */
hk_status_t hk_journal_drop(hk_journal_t *journal, uint64_t segment);

/* Reads `size` bytes of a record's body back, from memory or from the file, where an append said they are. (The whole
 * record is verified by hk_journal_reread alone.) HK_OK; HK_NOT_FOUND: there are no such bytes; HK_AGAIN: there is no
 * descriptor to read with, which passes; HK_SYSTEM: the journal itself has not failed by that. */
hk_status_t hk_journal_read(hk_journal_t *journal, uint64_t segment, uint32_t offset, void *bytes, size_t size);

/* Reads a whole record again, verifies it, and lays it into a piece of its own with one reference. offset: of its body.
 * HK_OK; HK_NOT_FOUND; HK_INVALID: it is damaged; HK_AGAIN; HK_SYSTEM; HK_NO_MEMORY. */
hk_status_t hk_journal_reread(hk_journal_t *journal, uint64_t segment, uint32_t offset, hk_journal_record_t *record);

/* Gives bytes of written pieces back, the oldest first, until no more than `image_bytes` are held: their records must
 * be reread. Called by write. */
void hk_journal_trim(hk_journal_t *journal);

/* From now on `image_bytes` is another. */
void hk_journal_keep_image(hk_journal_t *journal, size_t image_bytes);

/* What went wrong, once a function returned HK_SYSTEM; NULL: nothing. */
const hk_journal_trouble_t *hk_journal_trouble(const hk_journal_t *journal);

/* Bytes between two records in which nothing verified. `first` to `last` are the positions that are missing there;
 * `last` is below `first` when none is. */
typedef struct hk_journal_hole {
    uint64_t from, to, first, last; /* offsets; positions */
} hk_journal_hole_t;

enum { HK_JOURNAL_HOLES = 16 };

/* What was found when the journal was opened. */
typedef struct hk_journal_repair {
    bool in_order;     /* the process before had ended it in order: nothing of it can be missing */
    uint64_t segment;  /* the newest that there was; 0: none */
    uint64_t open_end; /* bytes of it behind the newest record */
    uint64_t holes;    /* that were found in it, before records that are whole */
    uint64_t missing;  /* positions in all of them */
    hk_journal_hole_t first_holes[HK_JOURNAL_HOLES];
} hk_journal_repair_t;

const hk_journal_repair_t *hk_journal_repair(const hk_journal_t *journal);

typedef struct hk_journal_stats {
    uint64_t records, bytes, batches, syncs, sync_ns, longest_sync_ns; /* the last: since last read */
    uint64_t segments, spares, torn_repaired, torn_places, torn_missing;
} hk_journal_stats_t;

void hk_journal_read_stats(hk_journal_t *journal, hk_journal_stats_t *stats);

#endif
