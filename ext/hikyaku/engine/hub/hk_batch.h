/* hk_batch.h: what comes next for every subscriber of one feed whose cursor stands at the same place, gathered once.
 *
 *     feed     ...  42 ······ 45  47  48
 *     cursors       after ──► first    to      whoever stands from `after` on and before `first` receives 45 to 48
 *
 * A single event's bytes are those of its record, several are copied together once. Where private events are among
 * them, the batch is for one grant. As Hikyaku::Hub::Batch.
 */
#ifndef HK_BATCH_H
#define HK_BATCH_H

#include "hk_buf.h"
#include "hk_feed.h"
#include "hk_frames.h"
#include "hk_grant.h"
#include "hk_log.h"
#include "hk_subscriber.h"

typedef struct hk_batch {
    const hk_feed_t *feed; /* NULL: there is none */
    hk_position_t after, first, to;
    hk_position_t newest;    /* the feed's, when it was gathered */
    const hk_grant_t *grant; /* NULL: for all */
    hk_frames_t frames;      /* none: nothing of it is for the reader */
} hk_batch_t;

/* What a batch is gathered from, and into. */
typedef struct hk_batch_source {
    const hk_log_t *log;
    hk_program_space_t *space;
    hk_buf_t *together; /* where several events are copied to */
    size_t max_bytes;   /* of several */
} hk_batch_source_t;

/* Gathers the events of a subscriber's only feed that follow its cursor. Without memory to copy them together it is
 * fewer events. False when the feed alone cannot tell: the cursor is before the feed's index, or the ring has passed
 * it; then there is no batch. */
bool hk_batch_gather(hk_batch_t *batch, const hk_batch_source_t *source, const hk_subscriber_t *subscriber);

/* Whether the batch is what a subscriber with one feed receives next, if it was gathered in this log. */
static inline bool hk_batch_covers(const hk_batch_t *batch, const hk_log_t *log, const hk_subscriber_t *subscriber)
{
    return batch->feed == hk_subscriber_feed(subscriber) && batch->newest == batch->feed->newest &&
           subscriber->cursor < batch->first && subscriber->cursor >= batch->after &&
           batch->first >= hk_log_first(log) && (batch->grant == NULL || batch->grant == subscriber->grant);
}

/* Whether the feed has more after it. */
static inline bool hk_batch_more(const hk_batch_t *batch)
{
    return batch->to < batch->newest;
}

#endif
