/* hk_epoch.h: what the members of a feed share compressed: the events of an epoch, one behind the other.
 *
 *     after ──► [ 42 │ 45 │ 47 ]        whoever stands at 45 and has got all before receives the bytes of 47;
 *               bytes of the epoch      whoever stands from `after` on and before 42 can begin here, if it is the first
 *
 * A member is in step as long as it has got the epoch from its beginning, and nothing else since. The next one has
 * another number, by which members know with which they are in step. Of a long epoch the older half of the entries is
 * forgotten now and then: who was in step and has not got them by then is so no more.
 *
 * When does the next one begin? What it costs and what it saves, in bytes, of JSON events of 300 bytes:
 *
 *     an event in step     240 at an epoch's beginning, falling to 78 within 100 events (32 KiB, zlib's window), and no
 *                          further: a new one costs each member that was in step about 600 bytes in all
 *     an event alone       240: 160 more than in step, to each member that waits
 *
 * As long as nobody waits, an epoch goes on. Since one that waits loses as much by 4 events as one in step does by a
 * new epoch, that begins when the pieces that were got alone are 4 times as many as there are in step, but not before
 * 16 events; and nobody waits for more than 64, or 64 KiB. Where nobody is in step it costs nothing, and begins at
 * once.
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

/* HK_EPOCH_FEWEST  events, before it ends for the sake of some while others are in step.
 * HK_EPOCH_EVENTS  events, and
 * HK_EPOCH_BYTES   bytes of them, for which somebody waits at most.
 * HK_EPOCH_WORTH   pieces alone that cost as much as a new epoch costs one in step.
 * HK_EPOCH_MOST    bytes of its events, whoever waits: checksums are joined by lengths below 2^32.
 * HK_EPOCH_KEPT    entries. */
enum {
    HK_EPOCH_FEWEST = 16,
    HK_EPOCH_EVENTS = 64,
    HK_EPOCH_BYTES = 64 * 1024,
    HK_EPOCH_WORTH = 4,
    HK_EPOCH_MOST = 1 << 30,
    HK_EPOCH_KEPT = 64
};

typedef struct hk_epoch_entry {
    hk_position_t position;
    size_t end;        /* of its bytes */
    hk_gzip_sum_t sum; /* of what was said from the epoch's beginning on */
} hk_epoch_entry_t;

typedef struct hk_epoch {
    const hk_alloc_t *alloc;
    hk_gzip_t *gzip;
    uint64_t number;     /* not 0 */
    hk_position_t after; /* its entries are all that it has behind this */
    hk_position_t at;    /* what is up to here is in this epoch, or in one before, or not for its members */
    hk_buf_t bytes;      /* of the entries */
    uint64_t events;     /* of the epoch, also those that were forgotten */
    hk_gzip_sum_t sum;   /* of what they say */
    uint64_t alone;      /* pieces that members got alone since it began, */
    uint64_t alone_now;  /* and those since something was added; */
    uint64_t in_step;    /* how many got something of it since then */
    uint32_t count;
    hk_epoch_entry_t entries[HK_EPOCH_KEPT];
} hk_epoch_t;

/* An epoch of nothing. HK_OK; HK_NO_MEMORY; HK_NOT_FOUND: the engine cannot compress. */
hk_status_t hk_epoch_new(const hk_alloc_t *alloc, uint64_t number, hk_position_t after, hk_epoch_t **epoch);

/* NULL is allowed. */
void hk_epoch_free(hk_epoch_t *epoch);

/* Begins the next one, of nothing, behind a position. */
void hk_epoch_begin(hk_epoch_t *epoch, uint64_t number, hk_position_t after);

/* Whether the next one is to begin before something is added; to be asked once before each time that is. */
bool hk_epoch_over(hk_epoch_t *epoch);

/* Whether nothing can be added before some of it is forgotten. */
static inline bool hk_epoch_full(const hk_epoch_t *epoch)
{
    return epoch->count == HK_EPOCH_KEPT || epoch->bytes.length >= HK_EPOCH_BYTES || epoch->sum.length >= HK_EPOCH_MOST;
}

/* Forgets the older half of its entries; when their bytes were many, all. */
void hk_epoch_forget(hk_epoch_t *epoch);

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

/* A member got its bytes up to the last. */
static inline void hk_epoch_got(hk_epoch_t *epoch)
{
    epoch->in_step++;
}

/* A member got so many pieces alone. */
static inline void hk_epoch_missed(hk_epoch_t *epoch, uint32_t count)
{
    epoch->alone_now += count;
}

#endif
