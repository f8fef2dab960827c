#include "hk_hub_state.h"

/* The hot path. For a caught-up subscriber with one matcher `fan_out` compares two integers, hands out bytes that all
 * its equals share, and moves the cursor. Whoever it does not suit goes through hk_hub_next_ready, hk_hub_take and
 * hk_hub_wrote. */

/* Members whose memory is asked for ahead: of their own, and of their connections. */
enum { AHEAD = 8, CONNECTION_AHEAD = 4 };

/* Who is not looked at when a feed's members are gone through: it comes by the ready list, or not at all for now. */
enum { NOT_NOW = HK_SUBSCRIBER_BLOCKED | HK_SUBSCRIBER_READY | HK_SUBSCRIBER_CLOSING };

/* Who needs more than a batch of its only feed. */
enum {
    SLOWLY = HK_SUBSCRIBER_MANY | HK_SUBSCRIBER_WITHIN | HK_SUBSCRIBER_CONTROL | HK_SUBSCRIBER_CATCHING_UP |
             HK_SUBSCRIBER_CODED
};

typedef struct turn {
    size_t max_bytes;
    int64_t now;
    hk_deliver_t deliver;
    void *context;
} turn_t;

/* -- Who is next --------------------------------------------------------------------------------------------------- */

/* A feed that grows while it is gone through is dirty again and gets another turn after the others. */
static bool next_feed(hk_hub_t *hub)
{
    hk_list_t *first = hk_list_shift(&hub->dirty);
    if (first == NULL) {
        return false;
    }
    hub->feed = HK_OWNER(first, hk_feed_t, dirty);
    hub->place = hub->feed->member_count;
    if (hub->feed->epoch != NULL) {
        hk_hub_advance(hub, hub->feed);
    }
    return true;
}

/* Goes down the members, so that one moved by a removal into a place not yet visited is at worst visited twice, never
 * left out. */
static hk_subscriber_t *next_of_feed(hk_hub_t *hub)
{
    hk_feed_t *feed = hub->feed;
    size_t place = hub->place < feed->member_count ? hub->place : feed->member_count;
    while (place > 0) {
        hk_subscriber_t *subscriber = feed->members[--place].subscriber;
        if (subscriber->cursor < feed->newest && !hk_subscriber_is(subscriber, NOT_NOW)) {
            hub->place = place;
            return subscriber;
        }
    }
    hub->feed = NULL;
    /* The next epoch begins when all have been given this one. */
    if (feed->epoch != NULL && feed->epoch->at < feed->newest && !hk_list_holds(&feed->dirty)) {
        hk_list_append(&hub->dirty, &feed->dirty);
    }
    return NULL;
}

hk_subscriber_t *hk_hub_next_ready(hk_hub_t *hub)
{
    for (hk_list_t *first; (first = hk_list_shift(&hub->ready)) != NULL;) {
        hk_subscriber_t *subscriber = HK_OWNER(first, hk_subscriber_t, ready);
        hk_subscriber_clear(subscriber, HK_SUBSCRIBER_READY);
        if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_BLOCKED) ||
            hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING)) {
            return subscriber;
        }
    }
    while (hub->feed != NULL || next_feed(hub)) {
        hk_subscriber_t *subscriber = next_of_feed(hub);
        if (subscriber != NULL) {
            return subscriber;
        }
    }
    return NULL;
}

bool hk_hub_ready(const hk_hub_t *hub)
{
    return !hk_list_empty(&hub->ready) || !hk_list_empty(&hub->dirty) || hub->feed != NULL;
}

/* -- What it receives ---------------------------------------------------------------------------------------------- */

/* Whether the hub's batch is what this subscriber receives next, gathered now if need be. */
static bool batch_for(hk_hub_t *hub, const hk_subscriber_t *subscriber, size_t max_bytes)
{
    if (hk_batch_serves(&hub->batch, hub->log, subscriber)) {
        return true;
    }
    hk_batch_source_t source = {hub->log, &hub->space, &hub->batch_bytes, max_bytes};
    return hk_batch_gather(&hub->batch, &source, subscriber);
}

hk_status_t hk_hub_take(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes)
{
    hub->taken.subscriber = NULL;
    if (hk_subscriber_is(subscriber, SLOWLY) || !batch_for(hub, subscriber, max_bytes)) {
        return hk_hub_take_slowly(hub, subscriber, max_bytes, bytes);
    }
    const hk_batch_t *batch = &hub->batch;
    if (hk_batch_more(batch)) {
        hk_hub_make_ready(hub, subscriber);
    }
    if (batch->frames.count == 0) {
        subscriber->cursor = batch->to;
    } else {
        hub->taken = (hk_taken_t){.subscriber = subscriber,
                                  .length = batch->frames.bytes.length,
                                  .to = batch->to,
                                  .count = batch->frames.count};
    }
    *bytes = batch->frames.bytes;
    return HK_OK;
}

hk_status_t hk_hub_wrote(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t count, int64_t now)
{
    hk_taken_t taken = hub->taken;
    if (taken.subscriber != subscriber) {
        return HK_OK;
    }
    hub->taken.subscriber = NULL;
    if (count > taken.length) {
        count = taken.length;
    }
    if (count > 0) {
        subscriber->active_at = now;
        hub->delivered_bytes += count;
    }
    if (count < taken.length) {
        hk_subscriber_set(subscriber, HK_SUBSCRIBER_BLOCKED);
    }
    if (taken.control) {
        hk_subscriber_spoke(hub->alloc, subscriber, count);
        if (count == taken.length) {
            hk_hub_make_ready(hub, subscriber);
        }
        if (subscriber->control == NULL) {
            hk_hub_let_go(hub, subscriber);
        }
    } else if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CODED)) {
        hk_hub_wrote_coded(hub, subscriber, &taken, count);
    } else if (count < taken.length) {
        hk_hub_wrote_part(hub, subscriber, count);
    } else {
        subscriber->cursor = taken.to;
        hk_subscriber_end_part(subscriber);
        hub->deliveries += taken.count;
    }
    return HK_OK;
}

/* -- Handing out --------------------------------------------------------------------------------------------------- */

static void accept(hk_hub_t *hub, hk_subscriber_t *subscriber, ptrdiff_t accepted, int64_t now)
{
    if (accepted < 0) {
        hk_hub_close(hub, subscriber, HK_CLOSING_HUNG_UP);
    } else {
        (void)hk_hub_wrote(hub, subscriber, (size_t)accepted, now);
    }
}

static hk_status_t hand_out(hk_hub_t *hub, hk_subscriber_t *subscriber, const turn_t *turn)
{
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING)) {
        (void)turn->deliver(turn->context, subscriber, hk_bytes(NULL, 0));
        return HK_OK;
    }
    hk_bytes_t bytes;
    hk_status_t status = hk_hub_take(hub, subscriber, turn->max_bytes, &bytes);
    if (status == HK_OK && bytes.length > 0) {
        accept(hub, subscriber, turn->deliver(turn->context, subscriber, bytes), turn->now);
    }
    return status;
}

/* The place behind the first member, downwards, that has something to receive now. */
static size_t first_pending(const hk_feed_t *feed, size_t place)
{
    while (place > 0) {
        const hk_subscriber_t *subscriber = feed->members[place - 1].subscriber;
        if (subscriber->cursor < feed->newest && !hk_subscriber_is(subscriber, NOT_NOW)) {
            break;
        }
        place--;
    }
    return place;
}

static void look_ahead(const hk_member_t *members, size_t place)
{
    if (place >= AHEAD) {
        __builtin_prefetch(members[place - AHEAD].subscriber, 1);
        __builtin_prefetch(members[place - CONNECTION_AHEAD].subscriber->connection);
    }
}

/* Serves the members of the current feed for as long as one batch suits them. Those that it does not suit are left to
 * hk_hub_next_ready, which goes down the same members from the same place. Returns what is left of the limit. */
static size_t fan_out(hk_hub_t *hub, size_t limit, const turn_t *turn)
{
    const hk_feed_t *feed = hub->feed;
    const hk_member_t *members = feed->members;
    size_t place = first_pending(feed, hub->place < feed->member_count ? hub->place : feed->member_count);
    hub->place = place;
    if (place == 0 || hk_subscriber_is(members[place - 1].subscriber, SLOWLY) ||
        !batch_for(hub, members[place - 1].subscriber, turn->max_bytes) || hub->batch.frames.count == 0) {
        return limit;
    }
    const hk_batch_t batch = hub->batch;
    const hk_bytes_t bytes = batch.frames.bytes;
    const bool more = hk_batch_more(&batch);
    size_t left = limit, whole = 0;
    while (place > 0 && left > 0) {
        look_ahead(members, place);
        hk_subscriber_t *subscriber = members[place - 1].subscriber;
        if (subscriber->cursor >= batch.newest || hk_subscriber_is(subscriber, NOT_NOW)) {
            place--;
            continue;
        }
        if (subscriber->flags != 0 || subscriber->cursor < batch.after || subscriber->cursor >= batch.first ||
            (batch.grant != NULL && batch.grant != subscriber->grant)) {
            break;
        }
        place--;
        left--;
        if (more) {
            hk_hub_make_ready(hub, subscriber);
        }
        ptrdiff_t accepted = turn->deliver(turn->context, subscriber, bytes);
        if (accepted == (ptrdiff_t)bytes.length) {
            subscriber->cursor = batch.to;
            subscriber->active_at = turn->now;
            whole++;
        } else {
            hub->taken = (hk_taken_t){
                .subscriber = subscriber, .length = bytes.length, .to = batch.to, .count = batch.frames.count};
            accept(hub, subscriber, accepted, turn->now);
        }
    }
    hub->place = place;
    hub->deliveries += whole * batch.frames.count;
    hub->delivered_bytes += whole * bytes.length;
    return left;
}

/* Those who have got of an epoch what one has: who stands from `after` on and before `first`, and is in step, or begins
 * with it. */
typedef struct rank {
    hk_epoch_t *epoch;
    hk_position_t after, first;
    bool begins;
    hk_taken_t rest;
} rank_t;

static bool find_rank(const hk_hub_t *hub, hk_subscriber_t *subscriber, rank_t *rank)
{
    hk_epoch_t *epoch = hub->feed->epoch;
    uint32_t place;
    if (!hk_epoch_place(epoch, hk_subscriber_coded(subscriber)->epoch, subscriber->cursor, &place) ||
        place == epoch->count || epoch->entries[place].position < hk_log_first(hub->log)) {
        return false;
    }
    *rank = (rank_t){.epoch = epoch,
                     .after = place > 0 ? epoch->entries[place - 1].position : epoch->after,
                     .first = epoch->entries[place].position,
                     .begins = place == 0 && epoch->events == epoch->count,
                     .rest = hk_hub_rest_of_epoch(epoch, place)};
    return true;
}

static bool is_of_rank(const rank_t *rank, hk_subscriber_t *subscriber)
{
    return (subscriber->flags | HK_SUBSCRIBER_MANY) == (HK_SUBSCRIBER_CODED | HK_SUBSCRIBER_MANY) &&
           subscriber->cursor >= rank->after && subscriber->cursor < rank->first &&
           (rank->begins || hk_subscriber_coded(subscriber)->epoch == rank->epoch->number) &&
           hk_hub_epoch_of(subscriber) == rank->epoch;
}

/* As fan_out, of a feed with an epoch, for as long as those come who have got of it what the first has. */
static size_t fan_out_in_step(hk_hub_t *hub, size_t limit, const turn_t *turn)
{
    const hk_feed_t *feed = hub->feed;
    const hk_member_t *members = feed->members;
    size_t place = first_pending(feed, hub->place < feed->member_count ? hub->place : feed->member_count);
    rank_t rank;
    hub->place = place;
    if (place == 0 || !find_rank(hub, members[place - 1].subscriber, &rank)) {
        return limit;
    }
    const hk_bytes_t bytes = hk_bytes(rank.rest.at, rank.rest.length);
    size_t left = limit, whole = 0;
    while (place > 0 && left > 0) {
        look_ahead(members, place);
        hk_subscriber_t *subscriber = members[place - 1].subscriber;
        if (subscriber->cursor >= feed->newest || hk_subscriber_is(subscriber, NOT_NOW)) {
            place--;
            continue;
        }
        if (!is_of_rank(&rank, subscriber)) {
            break;
        }
        place--;
        left--;
        ptrdiff_t accepted = turn->deliver(turn->context, subscriber, bytes);
        if (accepted == (ptrdiff_t)bytes.length) {
            subscriber->cursor = rank.rest.to;
            subscriber->active_at = turn->now;
            hk_hub_count_in_step(subscriber, rank.rest.sum, rank.rest.epoch);
            hk_epoch_got(rank.epoch);
            whole++;
        } else {
            hub->taken = rank.rest;
            hub->taken.subscriber = subscriber;
            accept(hub, subscriber, accepted, turn->now);
        }
    }
    hub->place = place;
    hub->deliveries += whole * rank.rest.count;
    hub->delivered_bytes += whole * bytes.length;
    return left;
}

hk_status_t hk_hub_serve(hk_hub_t *hub, size_t limit, size_t max_bytes, int64_t now, hk_deliver_t deliver,
                         void *context, bool *more)
{
    const turn_t turn = {max_bytes, now, deliver, context};
    while (limit > 0) {
        if (hk_list_empty(&hub->ready) && (hub->feed != NULL || next_feed(hub))) {
            limit = hub->feed->epoch != NULL ? fan_out_in_step(hub, limit, &turn) : fan_out(hub, limit, &turn);
            if (limit == 0) {
                break;
            }
        }
        hk_subscriber_t *subscriber = hk_hub_next_ready(hub);
        if (subscriber == NULL) {
            *more = false;
            return HK_OK;
        }
        limit--;
        hk_status_t status = hand_out(hub, subscriber, &turn);
        if (status != HK_OK) {
            return status;
        }
    }
    *more = true;
    return HK_OK;
}
