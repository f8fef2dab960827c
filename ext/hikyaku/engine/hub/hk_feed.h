/* hk_feed.h: the log positions that one matcher selects, shared by every subscriber that uses the matcher.
 *
 *     log     ... 41 42 43 44 45 46 47
 *     feed           42       45    47      hk_feed_after(42) = 45
 *
 * A feed is an index, never a copy: it holds positions, oldest first, at most HK_FEED_LIMIT of them. It is complete
 * from `since` on; before that, the log must be scanned. As Hikyaku::Hub::Feed.
 *
 * Its members stand in one array, so that a fan-out walks through memory in order; a removal moves the last one.
 */
#ifndef HK_FEED_H
#define HK_FEED_H

#include "hk_alloc.h"
#include "hk_index.h"
#include "hk_list.h"
#include "hk_log.h"
#include "hk_map.h"
#include "hk_status.h"

#include <stdint.h>

/* Positions that a feed remembers. Whoever is further behind scans the log, so that thousands of matchers that select
 * everything cost thousands of kilobytes, not gigabytes. */
enum { HK_FEED_LIMIT = 1024, HK_FEED_FEW = 4 };

typedef struct hk_subscriber hk_subscriber_t;

/* A subscription, seen from its feed. */
typedef struct hk_member {
    hk_subscriber_t *subscriber;
    uint32_t subscription; /* which of the subscriber's */
} hk_member_t;

typedef struct hk_epoch hk_epoch_t;
typedef struct hk_feed hk_feed_t;

/* A feed that has what some feeds have together: one of a group of streams, see hk_hub_group. */
typedef struct hk_branch {
    hk_feed_t *feed;
    struct hk_branch *next;
} hk_branch_t;

struct hk_feed {
    const hk_alloc_t *alloc;
    hk_index_entry_t entry; /* its matcher */
    hk_map_node_t node;     /* by the matcher's key */
    hk_list_t dirty;        /* it grew since its members were last looked at */
    hk_position_t since;    /* from here on, every position that the matcher selects is in the feed */
    hk_position_t newest;   /* 0 when there was none yet */
    hk_position_t *positions;
    hk_member_t *members;
    uint32_t position_count, position_capacity;
    uint32_t member_count, member_capacity;
    hk_position_t few[HK_FEED_FEW]; /* until there are more */
    hk_member_t only;               /* as long as there is one */
    struct hk_address *payer;       /* whom the matcher's cost is charged to; NULL: nobody in particular */
    hk_epoch_t *epoch;              /* what its members share compressed; NULL: nothing */
    hk_branch_t *branches;          /* what grows with it */
    uint8_t variant;                /* the form and coding of its members: see hk_hub_state */
};

/* A feed without members, in no index. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_feed_new(const hk_alloc_t *alloc, hk_position_t since, hk_feed_t **feed);

/* NULL is allowed. */
void hk_feed_free(hk_feed_t *feed);

/* The matcher that it belongs to. */
static inline hk_matcher_t *hk_feed_matcher(const hk_feed_t *feed)
{
    return feed->entry.matcher;
}

/* Appends a position; the same again is ignored. Cannot fail: without memory the older half is forgotten, and `since`
 * says so. Amortised O(1).
 *
 * position  not smaller than the newest.
 * oldest    the oldest position that the log retains.
 *
 * Whether the feed grew. */
bool hk_feed_append(hk_feed_t *feed, hk_position_t position, hk_position_t oldest);

/* The first position after a cursor, or HK_POSITION_NONE. O(1) at the end of the feed, else O(log n).
 *
 * cursor  covered: see hk_feed_covers. */
hk_position_t hk_feed_after(const hk_feed_t *feed, hk_position_t cursor);

/* The last position that is not after a cursor that is covered, or since - 1. As above. */
hk_position_t hk_feed_until(const hk_feed_t *feed, hk_position_t cursor);

/* Whether the feed knows all positions after the cursor. */
static inline bool hk_feed_covers(const hk_feed_t *feed, hk_position_t cursor)
{
    return cursor + 1 >= feed->since;
}

/* Adds a member. Amortised O(1).
 *
 * place  where it stands now.
 *
 * HK_OK or HK_NO_MEMORY; the first member always has room. */
hk_status_t hk_feed_link(hk_feed_t *feed, hk_member_t member, uint32_t *place);

/* Removes the member at a place. O(1). When another moved there, returns it, else a member without subscriber. */
hk_member_t hk_feed_unlink(hk_feed_t *feed, uint32_t place);

#endif
