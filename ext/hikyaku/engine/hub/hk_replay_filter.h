/* hk_replay_filter.h: what a stream was sent before it went back to catch up, so that nothing is sent twice.
 *
 *     log      ... 40 ····· 50 ····· 60 ················ 100 ...
 *     /a       ─────────────────────────────────────────► sent; then /b is added, from 50 on:
 *     range    [ up to 100 what /a selects                ]
 *     /b                    ────────► sent; then /c is added, from 40 on:
 *     range                 [ what /b selects ]
 *     /c           ─► now; events within a range are left out
 *
 * A range is dropped when the stream has passed it. As Hikyaku::Hub::ReplayFilter.
 */
#ifndef HK_REPLAY_FILTER_H
#define HK_REPLAY_FILTER_H

#include "hk_alloc.h"
#include "hk_grant.h"
#include "hk_log.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

/* Ranges that a filter may have. */
enum { HK_REPLAY_FILTER_RANGES = 8 };

/* Where a subscription begins. */
typedef struct hk_beginning {
    hk_position_t from;  /* what is behind this position is for the stream */
    hk_position_t since; /* what is behind this position, and not behind the cursor, was sent */
} hk_beginning_t;

/* What was sent up to a position: of what each of a grant's matchers selects behind its position, what the grant
 * admits. */
typedef struct hk_sent_range {
    struct hk_sent_range *below; /* up to a later position */
    hk_position_t to;
    hk_grant_t *grant;
    hk_position_t since[]; /* of each of its subscriptions */
} hk_sent_range_t;

typedef struct hk_replay_filter {
    hk_sent_range_t *ranges;
    hk_position_t ends; /* from here on, everything that a matcher selects is for the stream */
    hk_position_t
        resumes_at; /* behind the rest of the event of which it has a part; HK_POSITION_NONE: behind that event */
    hk_beginning_t beginnings[]; /* of each subscription */
} hk_replay_filter_t;

static inline size_t hk_replay_filter_size(size_t subscriptions)
{
    return sizeof(hk_replay_filter_t) + subscriptions * sizeof(hk_beginning_t);
}

/* An empty filter. */
void hk_replay_filter_init(hk_replay_filter_t *filter);

/* Gives back what it holds. */
void hk_replay_filter_release(const hk_alloc_t *alloc, hk_replay_filter_t *filter);

/* Whether as many ranges as a filter may have reach beyond a position. */
bool hk_replay_filter_full(const hk_replay_filter_t *filter, hk_position_t position);

/* A range that is in no filter yet, with room for where the grant's subscriptions begin. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_sent_range_new(const hk_alloc_t *alloc, hk_grant_t *grant, hk_position_t to, hk_sent_range_t **range);

/* NULL is allowed. */
void hk_sent_range_free(const hk_alloc_t *alloc, hk_sent_range_t *range);

/* Adds a range, and drops those that do not reach beyond it. */
void hk_replay_filter_add(const hk_alloc_t *alloc, hk_replay_filter_t *filter, hk_sent_range_t *range);

/* Drops the ranges that the stream has passed. */
void hk_replay_filter_pass(const hk_alloc_t *alloc, hk_replay_filter_t *filter, hk_position_t cursor);

/* Finds where it ends. */
void hk_replay_filter_settle(hk_replay_filter_t *filter, size_t subscriptions);

/* Whether a record was sent before. */
bool hk_replay_filter_sent(const hk_replay_filter_t *filter, hk_program_space_t *space, const hk_record_t *record);

#endif
