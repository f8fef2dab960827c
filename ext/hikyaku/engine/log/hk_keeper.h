/* hk_keeper.h: keeps a hub's log over a restart. docs/journal.md, section "What the hub keeps", is the format; in Ruby
 * this is Hikyaku::Hub::Storage.
 *
 *     hk_log_append ──► hk_keeper_append ──► hk_journal: one record, one pwritev ──► seen by others
 *
 * What was published is kept as it was published; published again at its position, with the same key, it becomes the
 * same event. Segments go when the log's ring retains nothing of them any more.
 */
#ifndef HK_KEEPER_H
#define HK_KEEPER_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_journal.h"
#include "hk_log.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hk_keeper hk_keeper_t;

/* An update as it is kept. */
typedef struct hk_kept {
    hk_position_t position;
    hk_bytes_t topics; /* `topic_count` times: 4 bytes length, little-endian, and the text; see hk_kept_topic */
    size_t topic_count;
    hk_bytes_t id, type, data; /* id and type may be empty: none */
    int64_t retry_ms;          /* negative: none */
    bool is_private;
} hk_kept_t;

/* Takes the next topic from the front of `topics`; there must be one. */
hk_bytes_t hk_kept_topic(hk_bytes_t *topics);

typedef struct hk_keeper_options {
    const char *path; /* of the folder, which exists */
    const hk_files_t *files;
    uint32_t segment_bytes;
    bool synced;   /* an update is safe when the disk has it; else when the kernel has */
    int64_t age;   /* ms after which an update is not kept any more; 0: never */
    int64_t now;   /* ns on the clock of hk_keeper_append */
    uint64_t wall; /* now: ms since 1970 */
    /* The newest position that was given to anybody (see hk_keeper_watch), if that is known. */
    hk_position_t given;
    bool has_given;
    bool is_copy; /* the journal that it was copied from may have gone on, whether that was closed or not */
    /* Called for each update that is kept, in order; borrowed. hk_keeper_key is there from the first on. Anything but
     * HK_OK ends the opening with it. */
    hk_status_t (*restore)(void *context, const hk_keeper_t *keeper, const hk_kept_t *kept);
    /* Called for positions of updates that are missing, in order with the others: from the first to the last of them,
     * with the key that held before, and the one that holds from the last of them on. May be NULL. */
    hk_status_t (*lose)(void *context, hk_position_t from, hk_position_t upto, const uint8_t *before,
                        const uint8_t *key);
    void *context;
    hk_journal_reading_t reading;
} hk_keeper_options_t;

/* What may be missing at the end of what was found. */
typedef struct hk_keeper_loss {
    bool happened;
    bool has_newest, is_known;
    int64_t newest; /* ms since 1970: when the newest update was published that is there */
    uint64_t known; /* updates that are missing, if that is known */
    uint64_t room;  /* bytes in which they stood */
} hk_keeper_loss_t;

/* Opens the journal, or makes one. As hk_journal_open. */
hk_status_t hk_keeper_open(const hk_alloc_t *alloc, const hk_keeper_options_t *options, hk_keeper_t **keeper,
                           hk_journal_trouble_t *trouble);

/* Ends it in order; frees it whatever happens. No job may be out. HK_OK or HK_SYSTEM. NULL is allowed. */
hk_status_t hk_keeper_close(hk_keeper_t *keeper);

/* Frees the memory and touches no file: as a crash would leave it. NULL is allowed. */
void hk_keeper_drop_dead(hk_keeper_t *keeper);

const hk_keeper_loss_t *hk_keeper_loss(const hk_keeper_t *keeper);
const hk_journal_repair_t *hk_keeper_repair(const hk_keeper_t *keeper);

/* The newest position is written to this file, at this offset, from now on, after each append, and behind it the time
 * of files, or 0 where it is not timed. It is not synced: it tells the next process what this one has given, as long as
 * the kernel runs. A failure is not said. -1: to none. */
void hk_keeper_watch(hk_keeper_t *keeper, int fd, uint64_t offset, bool is_timed);

/* The key of the ids that the hub makes, and the position of its next event. */
const uint8_t *hk_keeper_key(const hk_keeper_t *keeper);
hk_position_t hk_keeper_next(const hk_keeper_t *keeper);

/* Keeps an update: it is in the hands of the kernel when this returns, but while a segment is begun. O(its bytes), one
 * system call.
 *
 * position  above all before.
 *
 * HK_OK; HK_AGAIN: the next segment is not ready yet; HK_TOO_LARGE: there is no room for it; HK_SYSTEM: the storage has
 * failed; HK_NO_MEMORY. On failure nothing was kept. */
hk_status_t hk_keeper_append(hk_keeper_t *keeper, hk_position_t position, const hk_log_update_t *update, int64_t now);

/* What hk_keeper_safe takes, for the newest update. */
uint64_t hk_keeper_ticket(const hk_keeper_t *keeper);

/* Whether an update is as safe as was asked for, and up to which all are. */
bool hk_keeper_safe(const hk_keeper_t *keeper, uint64_t ticket);
uint64_t hk_keeper_safe_up_to(const hk_keeper_t *keeper);

/* Calls a function whenever there may be a job; it must not call the keeper. NULL: nobody is called. */
void hk_keeper_rouse_with(hk_keeper_t *keeper, void (*rouse)(void *context), void *context);

/* Whether an update of about so many bytes would be safe when hk_keeper_append returns. */
bool hk_keeper_prompt(const hk_keeper_t *keeper, size_t bytes);

/* What stands before a position is not needed any more. O(segments that go). */
void hk_keeper_retain(hk_keeper_t *keeper, hk_position_t from);

/* The oldest position that is young enough; 0: all are. Amortised O(1). */
hk_position_t hk_keeper_young_from(hk_keeper_t *keeper, int64_t now);

/* As hk_journal_job and hk_journal_done; what waits for a segment's name is written by done. */
hk_job_t *hk_keeper_job(hk_keeper_t *keeper, hk_lane_t lane);
hk_status_t hk_keeper_done(hk_keeper_t *keeper, hk_job_t *job);

/* What went wrong; NULL: nothing. */
const hk_journal_trouble_t *hk_keeper_trouble(const hk_keeper_t *keeper);
void hk_keeper_read_stats(hk_keeper_t *keeper, hk_journal_stats_t *stats);

#endif
