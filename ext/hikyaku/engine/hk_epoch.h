/* hk_epoch.h: what the members of a feed share compressed: the events of an epoch, one behind the other.
 *
 *     after ──► [ 42 │ 45 │ 47 ]        whoever stands at 45 and has got all before receives the bytes of 47;
 *               bytes of the epoch      whoever stands from `after` on and before 42 can begin here
 *
 * A member is in step as long as it has got the epoch from its beginning, and nothing else since. When the next begins
 * the bytes of this one are forgotten; it has another number, by which members know with which they are in step.
 */
#ifndef HK_EPOCH_H
#define HK_EPOCH_H

#include "hk_alloc.h"
#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_gzip.h"
#include "hk_log.h"
#include "hk_status.h"

#include <stdint.h>

typedef struct hk_epoch_entry {
    hk_position_t position;
    size_t end;        /* of its bytes */
    hk_gzip_sum_t sum; /* of what was said from the epoch's beginning on */
} hk_epoch_entry_t;

typedef struct hk_epoch {
    const hk_alloc_t *alloc;
    hk_gzip_t *gzip;
    uint64_t number;     /* not 0 */
    hk_position_t after; /* what it began behind */
    hk_position_t at;    /* what is up to here is in this epoch, or in one before, or not for its members */
    hk_buf_t bytes;
    uint32_t count;
    hk_epoch_entry_t entries[HK_GZIP_EPOCH_EVENTS];
} hk_epoch_t;

/* An epoch of nothing. HK_OK; HK_NO_MEMORY; HK_NOT_FOUND: the engine cannot compress. */
hk_status_t hk_epoch_new(const hk_alloc_t *alloc, uint64_t number, hk_position_t after, hk_epoch_t **epoch);

/* NULL is allowed. */
void hk_epoch_free(hk_epoch_t *epoch);

/* Begins the next one, of nothing, behind a position. */
void hk_epoch_begin(hk_epoch_t *epoch, uint64_t number, hk_position_t after);

/* Whether nothing can be added before the next one begins. */
static inline bool hk_epoch_full(const hk_epoch_t *epoch)
{
    return epoch->count > 0 && hk_gzip_at_beginning(epoch->gzip);
}

/* Adds an event to an epoch that is not full. HK_OK, or HK_NO_MEMORY: it must begin anew. */
hk_status_t hk_epoch_add(hk_epoch_t *epoch, hk_position_t position, hk_bytes_t event, hk_gzip_sum_t sum,
                         uint32_t behind);

/* How many of the entries somebody has got who is in step.
 *
 * number  of the epoch that it is in step with; 0: none.
 *
 * False: it has to wait for the next epoch. */
bool hk_epoch_place(const hk_epoch_t *epoch, uint64_t number, hk_position_t cursor, uint32_t *place);

/* The bytes of the entries from a place on. Borrowed until something is added. */
hk_bytes_t hk_epoch_from(const hk_epoch_t *epoch, uint32_t place);

#endif
