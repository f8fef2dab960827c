/* hk_hub_state_coded.h: streams of another form, and compressed ones, within a hub. Not for drivers: see hk_hub.h.
 *
 *     record ──► events of a form ──► a block: for whoever is alone, or out of step
 *                                 └─► an epoch of a feed: for all its members that are in step
 *
 * A feed has members of one variant, so those whose streams are of events as they are see nothing of the others. A
 * variant is grouped where one matcher is all that a stream has and no private update is admitted: such feeds have
 * epochs, some of them. Whatever else is said, and to whom, is said in blocks, each of which is made once and kept for
 * a while. What a socket does not take of something is kept for its subscriber as bytes for it alone.
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

/* HK_RENDERED_KEPT  of each form and coding, the latest events are kept, so many. */
enum { HK_RENDERED_KEPT = 16 };

/* An event in a form and a coding. */
typedef struct hk_rendered {
    hk_position_t position; /* 0: none */
    hk_buf_t bytes;
    hk_gzip_sum_t sum; /* of what they say */
    uint32_t behind;
} hk_rendered_t;

/* What a hub has as soon as it has had such a stream. */
typedef struct hk_coding {
    hk_map_t feeds[HK_VARIANTS];            /* of each variant but the first, by the matcher's key */
    hk_said_t comments[HK_VARIANT_GROUPED]; /* of each form and coding that was in use, what a heartbeat is */
    hk_rendered_t rendered[HK_VARIANT_GROUPED][HK_RENDERED_KEPT];
    hk_rendered_t *large[HK_VARIANT_GROUPED]; /* the only one of them that may be large */
    hk_gzip_t *blocks;                        /* NULL: none was needed */
    hk_buf_t packed;                          /* within one call */
    hk_buf_t together;                        /* the blocks that are handed out */
    uint64_t epochs;                          /* numbers taken */
    uint32_t epoch_feeds;
    size_t held;
} hk_coding_t;

#endif
