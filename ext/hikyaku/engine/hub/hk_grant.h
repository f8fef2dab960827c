/* hk_grant.h: a decision about what somebody may do, as a value.
 *
 * Made once from what Ruby has decided, shared by reference by every connection that it holds for, and immutable. A
 * grant says which matchers a subscriber listens to, which topics' private updates it may read, which topics a
 * publisher may publish, who it is, and until when.
 */
#ifndef HK_GRANT_H
#define HK_GRANT_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_log.h"
#include "hk_matcher.h"
#include "hk_status.h"

#include <stdint.h>

#define HK_NEVER INT64_MAX

/* How a subscription is announced (Mercure draft-08, section "Subscription Events"). The subscriber's id, which only
 * the engine knows, stands between these parts:
 *
 *     topic     topic_head ID%
 *     path      path_head ID%                  the topic's pathname when resolved against the hub's URL
 *     document  parts[0] ID% parts[1] ID parts[2] true|false parts[3]
 *
 * ID is "urn:uuid:…", ID% the same percent-encoded ("urn%3Auuid%3A…"). */
typedef struct hk_announcement {
    hk_bytes_t topic_head, path_head;
    hk_bytes_t parts[4];
    hk_bytes_t type; /* of the event: "mercure", or empty for subscriptions of 0.x clients */
} hk_announcement_t;

typedef struct hk_grant_subscription {
    hk_matcher_t *matcher;
    bool announced; /* `announcement` is there */
    hk_announcement_t announcement;
} hk_grant_subscription_t;

/* All bytes are copied, matchers are retained. */
typedef struct hk_grant_options {
    const hk_grant_subscription_t *subscriptions; /* no two of the same matcher */
    size_t subscription_count;                    /* at most 65,535 */
    hk_matcher_t *const *reads;                   /* private updates on these topics may be read */
    size_t read_count;
    hk_matcher_t *const *publishes; /* updates on these topics may be published */
    size_t publish_count;
    hk_bytes_t subject; /* empty: nobody in particular */
    int64_t expires_at; /* ns since 1970, or HK_NEVER */
    uint64_t tag;       /* the maker's own number for it */
    size_t held;        /* bytes that the maker keeps beside it, as long as it lives */
    /* Told, on whatever thread, when nobody holds the grant any more; may be NULL. */
    void (*gone)(void *context, uint64_t tag);
    void *context;
} hk_grant_options_t;

typedef struct hk_grant {
    uint32_t references;
    uint32_t subscription_count, read_count, publish_count;
    hk_grant_subscription_t *subscriptions;
    hk_matcher_t **reads, **publishes;
    hk_bytes_t subject;
    int64_t expires_at;
    uint64_t tag;
    void (*gone)(void *context, uint64_t tag);
    void *context;
    size_t bytes;        /* that it takes, with what its maker keeps, without its matchers */
    size_t instructions; /* of the largest program of its matchers: what a space must be reserved for */
    const hk_alloc_t *alloc;
} hk_grant_t;

/* HK_OK, HK_TOO_LARGE or HK_NO_MEMORY. */
hk_status_t hk_grant_new(const hk_alloc_t *alloc, const hk_grant_options_t *options, hk_grant_t **grant);

hk_grant_t *hk_grant_retain(hk_grant_t *grant);

/* NULL is allowed. */
void hk_grant_release(hk_grant_t *grant);

/* Whether its bearer may read private updates on one of these topics: one suffices, whichever was matched (Mercure
 * draft-08, section "Subscribers"). */
bool hk_grant_reads(const hk_grant_t *grant, hk_program_space_t *space, hk_topic_t *const *topics, size_t count);

/* Whether its bearer may read a record: a public one, or one that hk_grant_reads. */
static inline bool hk_grant_admits(const hk_grant_t *grant, hk_program_space_t *space, const hk_record_t *record)
{
    return !record->is_private || hk_grant_reads(grant, space, record->topics, record->topic_count);
}

/* Whether its bearer may publish on all of these topics (Mercure draft-08, section "Publishers"). */
bool hk_grant_publishes(const hk_grant_t *grant, hk_program_space_t *space, hk_topic_t *const *topics, size_t count);

#endif
