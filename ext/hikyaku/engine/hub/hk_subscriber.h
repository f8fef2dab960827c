/* hk_subscriber.h: one connection, as the hub sees it: a grant, a cursor into the log, and no queue.
 *
 * One block of memory: before the subscriber the state of its coding, if its stream is compressed or in another format;
 * after it its subscriptions, and once it was changed its replay filter. What each delivery reads comes first and lies
 * within one line of the processor's cache. Public questions about a subscriber: hk_hub.h.
 */
#ifndef HK_SUBSCRIBER_H
#define HK_SUBSCRIBER_H

#include "hk_address.h"
#include "hk_feed.h"
#include "hk_gzip.h"
#include "hk_heap.h"
#include "hk_hub.h"
#include "hk_list.h"
#include "hk_replay_filter.h"

#include <stdint.h>

/* Why it is not served the short way. */
enum {
    HK_SUBSCRIBER_BLOCKED = 1,      /* its socket is full */
    HK_SUBSCRIBER_READY = 2,        /* it waits in one of the hub's lists */
    HK_SUBSCRIBER_CLOSING = 4,      /* it has to be closed */
    HK_SUBSCRIBER_MANY = 8,         /* it has several subscriptions, or a filter restricts it */
    HK_SUBSCRIBER_WITHIN = 16,      /* a part of an event was sent */
    HK_SUBSCRIBER_CONTROL = 32,     /* bytes for it alone are pending */
    HK_SUBSCRIBER_CATCHING_UP = 64, /* it is to be told when nothing is */
    HK_SUBSCRIBER_CODED = 128       /* its stream is not one of events as they are */
};

/* What else it is. */
enum {
    HK_SUBSCRIBER_CHANGEABLE = 1,  /* it has a capability */
    HK_SUBSCRIBER_CHANGED = 2,     /* its replay filter stands behind its subscriptions */
    HK_SUBSCRIBER_FROM_OLDEST = 4, /* it asked for all that is retained, where it began */
};

/* Bytes for some subscribers alone (a heartbeat, a gap), which go out at the next event boundary: shared by them, and
 * immutable. */
typedef struct hk_control {
    uint32_t references;
    uint32_t length;
    char bytes[];
} hk_control_t;

/* One matcher of one subscriber. */
typedef struct hk_subscription {
    hk_feed_t *feed;
    uint32_t place; /* among the feed's members */
} hk_subscription_t;

typedef struct hk_group hk_group_t;

/* Whether the events of a stream name the matchers that selected them. */
enum {
    HK_NAMING_NOT,
    HK_NAMING_LATER, /* as soon as it has had another matcher than the one that it began with */
    HK_NAMING
};

/* Of a stream with another form or a coding, or whose events name matchers. */
typedef struct hk_coded {
    hk_gzip_sum_t sum; /* of what was said before it came into step */
    hk_gzip_sum_t in;  /* and of what was said since */
    uint64_t epoch;    /* whose number it is in step with; 0: with none */
    uint32_t held;     /* bytes that are kept for it, if they are many: see hk_hub_coded */
    uint8_t form, coding;
    bool several; /* it has several subscriptions, and before this a membership */
    uint8_t naming;
} hk_coded_t;

/* In the group of those that have the same several matchers: see hk_hub_group. */
typedef struct hk_membership {
    hk_group_t *group; /* NULL: in none */
    uint32_t place;    /* among the members of its feed */
} hk_membership_t;

struct hk_subscriber {
    hk_position_t cursor; /* everything up to here was sent, or is not for it */
    int64_t active_at;    /* when bytes were last accepted */
    void *connection;
    uint8_t flags;
    uint8_t closing; /* hk_closing_t */
    uint8_t end;     /* hk_closing_t: what its deadline means */
    uint8_t shift;   /* bytes between the block's beginning and this */
    uint32_t spoken; /* bytes of `control` that were sent */
    /* The rest is looked at where something else than a delivery happens. */
    uint64_t serial;
    hk_grant_t *grant;
    hk_control_t *control;
    hk_position_t began_at; /* the cursor that it began with */
    size_t offset;          /* bytes sent of the event of which a part was sent: */
    hk_position_t partial_at;
    hk_record_t *partial; /* that event, if it is kept for the rest */
    hk_address_t *address;
    hk_list_t came;  /* in the roster */
    hk_list_t ready; /* in the hub's list of those who are ready, or scan */
    hk_list_t beat;
    hk_heap_node_t deadline;
    uint32_t lifetime; /* when its longest is over: see hk_hub_timing; 0: never */
    uint16_t subscription_count;
    uint8_t traits;
    hk_subscription_t subscriptions[];
};

/* A subscriber of zeros with room for so many subscriptions and none of them; one that is changed has all of them, for
 * the caller to fill in, and an empty replay filter. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_subscriber_new(const hk_alloc_t *alloc, size_t subscriptions, bool changed,
                              hk_subscriber_t **subscriber);

/* The same with what its form or coding needs.
 *
 * coded  copied; NULL: its stream is one of events as they are. */
hk_status_t hk_subscriber_new_coded(const hk_alloc_t *alloc, size_t subscriptions, bool changed,
                                    const hk_coded_t *coded, hk_subscriber_t **subscriber);

/* Gives back the block and what it alone holds: its control, its part of an event, its filter. */
void hk_subscriber_free(const hk_alloc_t *alloc, hk_subscriber_t *subscriber);

/* Gives a new subscriber what another is: all but its subscriptions, its filter, and the lists and tables in which it
 * stands. The other holds nothing of it any more. */
void hk_subscriber_take_over(hk_subscriber_t *subscriber, hk_subscriber_t *other);

/* The only feed; of a subscriber with one subscription. */
static inline hk_feed_t *hk_subscriber_feed(const hk_subscriber_t *subscriber)
{
    return subscriber->subscriptions[0].feed;
}

/* What its form or coding needs; of one that is HK_SUBSCRIBER_CODED. */
static inline hk_coded_t *hk_subscriber_coded(hk_subscriber_t *subscriber)
{
    return (hk_coded_t *)(void *)subscriber - 1;
}

/* What says in which group it is, of one that is HK_SUBSCRIBER_CODED; NULL: it cannot be in one. */
static inline hk_membership_t *hk_subscriber_membership(hk_subscriber_t *subscriber)
{
    hk_coded_t *coded = hk_subscriber_coded(subscriber);
    return coded->several ? (hk_membership_t *)(void *)coded - 1 : NULL;
}

/* Whether its events name the matchers that selected them. */
static inline bool hk_subscriber_names(const hk_subscriber_t *subscriber)
{
    const void *coded = (const hk_coded_t *)(const void *)subscriber - 1;
    return (subscriber->flags & HK_SUBSCRIBER_CODED) != 0 && ((const hk_coded_t *)coded)->naming == HK_NAMING;
}

/* Its filter; NULL: it never was changed. */
static inline hk_replay_filter_t *hk_subscriber_filter(const hk_subscriber_t *subscriber)
{
    if ((subscriber->traits & HK_SUBSCRIBER_CHANGED) == 0) {
        return NULL;
    }
    const hk_subscription_t *end = subscriber->subscriptions + subscriber->subscription_count;
    return (hk_replay_filter_t *)(uintptr_t)end;
}

/* Its filter, if that restricts what it is sent behind its cursor; else NULL. */
static inline hk_replay_filter_t *hk_subscriber_restriction(const hk_subscriber_t *subscriber)
{
    hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    return filter != NULL && subscriber->cursor < filter->ends ? filter : NULL;
}

/* Everything up to here was sent, or is about to be as the rest of an event, or is not for it. */
hk_position_t hk_subscriber_position(const hk_subscriber_t *subscriber);

/* Where one of its subscriptions begins. */
hk_beginning_t hk_subscriber_beginning(const hk_subscriber_t *subscriber, size_t subscription);

/* Which of the flags are set. */
static inline bool hk_subscriber_is(const hk_subscriber_t *subscriber, unsigned flags)
{
    return (subscriber->flags & flags) != 0;
}

static inline void hk_subscriber_set(hk_subscriber_t *subscriber, unsigned flag)
{
    subscriber->flags |= (uint8_t)flag;
}

static inline void hk_subscriber_clear(hk_subscriber_t *subscriber, unsigned flag)
{
    subscriber->flags &= (uint8_t)~flag;
}

/* Bytes to be shared; `references` is 1. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_control_new(const hk_alloc_t *alloc, hk_bytes_t bytes, hk_control_t **control);

/* NULL is allowed. */
void hk_control_release(const hk_alloc_t *alloc, hk_control_t *control);

/* Adds bytes behind what is pending. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_subscriber_say(const hk_alloc_t *alloc, hk_subscriber_t *subscriber, hk_bytes_t bytes);

/* As hk_subscriber_say, for a subscriber to whom nothing is being said; retains the bytes. */
void hk_subscriber_share(hk_subscriber_t *subscriber, hk_control_t *control);

/* So many bytes of what is pending were sent. */
void hk_subscriber_spoke(const hk_alloc_t *alloc, hk_subscriber_t *subscriber, size_t count);

/* A part of an event was sent, so many bytes (1 and more). The event is kept for the rest if `record` is given. */
void hk_subscriber_begin_part(hk_subscriber_t *subscriber, hk_position_t at, size_t offset, hk_record_t *record);

/* The rest of it was sent as well. Harmless when nothing was begun. */
void hk_subscriber_end_part(hk_subscriber_t *subscriber);

#endif
