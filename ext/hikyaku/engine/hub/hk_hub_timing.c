#include "hk_hub_state.h"

/* What happens because time passes: heartbeats and ends. */

#define MILLISECOND INT64_C(1000000)

/* By so much a stream ends before its grant does, so that it never ends after it. */
#define EXPIRY_MARGIN (250 * MILLISECOND)

/* In which heartbeats, and ends, are gathered. Of heartbeats that are very far apart there are no more slots than so
 * many. */
#define BEAT_SLOT (250 * MILLISECOND)
#define DEADLINE_SLOT (50 * MILLISECOND)
#define MOST_BEAT_SLOTS 1024

static int64_t later(int64_t at, int64_t by)
{
    int64_t sum;
    return __builtin_add_overflow(at, by, &sum) ? HK_NEVER : sum;
}

hk_status_t hk_hub_start_timing(hk_hub_t *hub, int64_t heartbeat, int64_t max_lifetime)
{
    hub->max_lifetime = max_lifetime > 0 ? max_lifetime : 0;
    if (heartbeat <= 0) {
        return HK_OK;
    }
    int64_t slot = heartbeat / MOST_BEAT_SLOTS > BEAT_SLOT ? heartbeat / MOST_BEAT_SLOTS : BEAT_SLOT;
    hub->heartbeat = heartbeat;
    return hk_wheel_init(&hub->beats, hub->alloc, later(heartbeat, slot), slot);
}

/* When it would have been silent for so long, and not before. */
static void file_beat(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t silent_at, int64_t now)
{
    hk_wheel_file(&hub->beats, &subscriber->beat, later(silent_at, hub->beats.slot), now);
}

static int64_t slot_of(int64_t deadline)
{
    return deadline - deadline % DEADLINE_SLOT;
}

/* Those of one slot end in the order in which they came. */
static int64_t within_slot(const hk_hub_t *hub, int64_t deadline)
{
    return later(slot_of(deadline), (int64_t)(hub->roster.arrivals % DEADLINE_SLOT));
}

/* When its longest lifetime is over, which is remembered in slots. */
static int64_t begin_lifetime(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now)
{
    if (hub->max_lifetime <= 0) {
        return HK_NEVER;
    }
    int64_t tenth = hub->max_lifetime / 10;
    int64_t earlier = tenth > 0 ? (int64_t)hk_hub_chance(hub, (uint64_t)tenth) : 0;
    int64_t lifetime = later(now, hub->max_lifetime - earlier), slots = lifetime / DEADLINE_SLOT;
    subscriber->lifetime = slots > 0 && slots <= UINT32_MAX ? (uint32_t)slots : 0;
    return lifetime;
}

static int64_t lifetime_of(const hk_subscriber_t *subscriber)
{
    return subscriber->lifetime > 0 ? subscriber->lifetime * DEADLINE_SLOT : HK_NEVER;
}

/* When it ends, and why. */
static int64_t end_of(hk_subscriber_t *subscriber, int64_t now, int64_t expires_in, int64_t lifetime)
{
    int64_t expiry = expires_in == HK_NEVER ? HK_NEVER : later(now, expires_in > 0 ? expires_in : 0);
    if (expiry != HK_NEVER) {
        expiry -= EXPIRY_MARGIN;
    }
    subscriber->end = lifetime < expiry ? HK_CLOSING_LIFETIME : HK_CLOSING_EXPIRED;
    return lifetime < expiry ? lifetime : expiry;
}

hk_status_t hk_hub_time(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now, int64_t expires_in)
{
    int64_t deadline = end_of(subscriber, now, expires_in, begin_lifetime(hub, subscriber, now));
    if (deadline != HK_NEVER &&
        hk_heap_add(&hub->deadlines, &subscriber->deadline, within_slot(hub, deadline)) != HK_OK) {
        return HK_NO_MEMORY;
    }
    if (hub->heartbeat > 0) {
        file_beat(hub, subscriber, later(now, hub->heartbeat), now);
    }
    return HK_OK;
}

void hk_hub_retime(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now, int64_t expires_in)
{
    hk_heap_remove(&hub->deadlines, &subscriber->deadline);
    int64_t deadline = end_of(subscriber, now, expires_in, lifetime_of(subscriber));
    if (deadline != HK_NEVER) {
        (void)hk_heap_add(&hub->deadlines, &subscriber->deadline, within_slot(hub, deadline));
    }
}

void hk_hub_cancel_timing(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_heap_remove(&hub->deadlines, &subscriber->deadline);
    hk_wheel_remove(&hub->beats, &subscriber->beat);
}

typedef struct moment {
    hk_hub_t *hub;
    int64_t now;
} moment_t;

static void beat(void *context, hk_list_t *link)
{
    const moment_t *moment = context;
    hk_hub_t *hub = moment->hub;
    hk_subscriber_t *subscriber = HK_OWNER(link, hk_subscriber_t, beat);
    int64_t silent_at = later(subscriber->active_at, hub->heartbeat);
    if (silent_at <= moment->now) {
        if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_BLOCKED | HK_SUBSCRIBER_CONTROL)) {
            hk_hub_share(hub, subscriber, hk_hub_comment(hub, subscriber));
            hk_hub_make_ready(hub, subscriber);
        }
        silent_at = later(moment->now, hub->heartbeat);
    }
    file_beat(hub, subscriber, silent_at, moment->now);
}

hk_status_t hk_hub_tick(hk_hub_t *hub, int64_t now)
{
    moment_t moment = {hub, now};
    hk_hub_forget_the_old(hub, now);
    for (hk_heap_node_t *first; (first = hk_heap_first(&hub->deadlines)) != NULL && slot_of(first->at) <= now;) {
        hk_subscriber_t *subscriber = HK_OWNER(first, hk_subscriber_t, deadline);
        hk_heap_remove(&hub->deadlines, first);
        hk_hub_close(hub, subscriber, (hk_closing_t)subscriber->end);
    }
    hk_wheel_turn(&hub->beats, now, beat, &moment);
    return HK_OK;
}

int64_t hk_hub_next_tick(const hk_hub_t *hub)
{
    const hk_heap_node_t *first = hk_heap_first(&hub->deadlines);
    int64_t end = first != NULL ? slot_of(first->at) : HK_NEVER;
    int64_t next = hk_wheel_next(&hub->beats);
    return end < next ? end : next;
}
