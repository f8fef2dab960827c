/* hk_hub_state_coded.h: streams of another form, and compressed ones, within a hub. Not for drivers: see hk_hub.h.
 *
 *     record ──► events of a form ──► a block: for whoever is alone, or out of step
 *                                 └─► an epoch of a feed: for all its members that are in step
 *
 * A feed has members of one variant, so those whose streams are of events as they are see nothing of the others. A
 * variant is grouped where one matcher is all that a stream has and no private update is admitted: such feeds have
 * epochs, some of them. Streams with the same several matchers, and no private updates either, have a feed of their
 * own beside those of the matchers, which grows with each of these, and has the epoch:
 *
 *     feed of /a   41 ·· 45 ·· 47        members: whoever listens to /a
 *     feed of /b   41 43 ·· ·· 47        members: whoever listens to /b
 *     group        41 43 45 ·· 47        members: whoever listens to /a and /b, and to nothing else
 *
 * Whatever else is said, and to whom, is said in blocks, each of which is made once and kept for a while. What a socket
 * does not take of something is kept for its subscriber as bytes for it alone.
 */
#ifndef HK_HUB_STATE_CODED_H
#define HK_HUB_STATE_CODED_H

#include "hk_buf.h"
#include "hk_epoch.h"
#include "hk_feed.h"
#include "hk_gzip.h"
#include "hk_hub.h"
#include "hk_log.h"
#include "hk_map.h"
#include "hk_subscriber.h"

/* A form, a coding, and whether the feed is grouped. */
enum { HK_VARIANT_FORM = 1, HK_VARIANT_GZIP = 2, HK_VARIANT_GROUPED = 4, HK_VARIANTS = 8 };

/* Bytes for some subscribers alone, as those of one variant receive them. */
typedef struct hk_said {
    hk_control_t *control; /* NULL: none */
    hk_gzip_sum_t sum;     /* of what they say */
    uint32_t behind;       /* hk_gzip_behind */
} hk_said_t;

/* HK_RENDERED_KEPT  of each form and coding, the latest events are kept, so many.
 * HK_MOST_EPOCHS    there may be: contexts of 150 KiB each. */
enum { HK_RENDERED_KEPT = 16, HK_MOST_EPOCHS = 64 };

/* An event in a form and a coding. */
typedef struct hk_rendered {
    hk_position_t position; /* 0: none */
    hk_buf_t bytes;
    hk_gzip_sum_t sum; /* of what they say */
    uint32_t behind;
} hk_rendered_t;

/* Where a group's feed grows from that of a matcher. */
typedef struct hk_twig {
    hk_feed_t *of;
    hk_branch_t branch;
} hk_twig_t;

/* Streams with the same several matchers. */
struct hk_group {
    hk_feed_t *feed;    /* in no index: it has what the matchers' feeds have */
    hk_map_node_t node; /* by the variant, and the matchers' keys in order */
    uint32_t count;
    hk_twig_t twigs[];
};

/* What a hub has as soon as it has had such a stream. */
typedef struct hk_coding {
    hk_map_t groups;
    hk_map_t feeds[HK_VARIANTS];            /* of each variant but the first, by the matcher's key */
    hk_said_t comments[HK_VARIANT_GROUPED]; /* of each form and coding that was in use, what a heartbeat is, */
    hk_said_t openings[HK_VARIANT_GROUPED]; /* and what a compressed stream begins with and one behind it */
    hk_control_t *head;                     /* what it begins with; NULL: there was none */
    hk_rendered_t rendered[HK_VARIANT_GROUPED][HK_RENDERED_KEPT];
    hk_rendered_t *large[HK_VARIANT_GROUPED]; /* the only one of them that may be large */
    hk_gzip_t *blocks;                        /* NULL: none was needed */
    hk_buf_t packed;                          /* within one call */
    hk_buf_t together;                        /* the blocks that are handed out */
    uint64_t epochs;                          /* numbers taken */
    uint32_t epoch_feeds;
    hk_feed_t *owners[HK_MOST_EPOCHS]; /* those feeds */
    size_t held;
} hk_coding_t;

#endif
