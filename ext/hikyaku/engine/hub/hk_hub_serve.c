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

static hk_subscriber_t *first_of(hk_list_t *list)
{
    for (hk_list_t *first; (first = hk_list_shift(list)) != NULL;) {
        hk_subscriber_t *subscriber = HK_OWNER(first, hk_subscriber_t, ready);
        hk_subscriber_clear(subscriber, HK_SUBSCRIBER_READY);
        if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_BLOCKED) ||
            hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING)) {
            return subscriber;
        }
    }
    return NULL;
}

static hk_subscriber_t *next_ready(hk_hub_t *hub)
{
    hk_subscriber_t *ready = first_of(&hub->ready);
    if (ready != NULL) {
        return ready;
    }
    while (hub->feed != NULL || next_feed(hub)) {
        hk_subscriber_t *subscriber = next_of_feed(hub);
        if (subscriber != NULL) {
            return subscriber;
        }
    }
    return NULL;
}

hk_subscriber_t *hk_hub_next_ready(hk_hub_t *hub)
{
    hk_subscriber_t *subscriber = next_ready(hub);
    while (subscriber == NULL && !hk_list_empty(&hub->untold)) {
        hk_hub_tell(hub, hub->now);
        subscriber = next_ready(hub);
    }
    if (subscriber == NULL) {
        hub->scan_allowance = HK_HUB_STEPS;
        subscriber = first_of(&hub->scanning);
    }
    return subscriber;
}

static bool has_more_to_do(const hk_hub_t *hub)
{
    return !hk_list_empty(&hub->untold) || !hk_list_empty(&hub->scanning);
}

bool hk_hub_ready(const hk_hub_t *hub)
{
    return !hk_list_empty(&hub->ready) || !hk_list_empty(&hub->dirty) || hub->feed != NULL || has_more_to_do(hub);
}

/* -- What it receives ---------------------------------------------------------------------------------------------- */

/* Whether the hub's batch is what this subscriber receives next, gathered now if need be. */
static bool batch_for(hk_hub_t *hub, const hk_subscriber_t *subscriber, size_t max_bytes)
{
    if (hk_batch_covers(&hub->batch, hub->log, subscriber)) {
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

static ptrdiff_t deliver_to_one(const turn_t *turn, hk_subscriber_t *subscriber, hk_bytes_t bytes)
{
    ptrdiff_t accepted = 0;
    turn->deliver(turn->context, &subscriber, 1, bytes, &accepted);
    return accepted;
}

static hk_status_t hand_out(hk_hub_t *hub, hk_subscriber_t *subscriber, const turn_t *turn)
{
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING)) {
        (void)deliver_to_one(turn, subscriber, hk_bytes(NULL, 0));
        return HK_OK;
    }
    hk_bytes_t bytes;
    hk_status_t status = hk_hub_take(hub, subscriber, turn->max_bytes, &bytes);
    if (status == HK_OK && bytes.length > 0) {
        accept(hub, subscriber, deliver_to_one(turn, subscriber, bytes), turn->now);
    }
    return status;
}

/* Subscribers that receive the same bytes, gathered for one call. */
typedef struct recipients {
    const hk_taken_t *share; /* of each */
    hk_bytes_t bytes;
    hk_epoch_t *epoch; /* that the bytes are from, or NULL */
    size_t count;
    hk_subscriber_t *all[HK_MAX_RECIPIENTS];
} recipients_t;

static void took_all(const recipients_t *recipients, hk_subscriber_t *subscriber, int64_t now)
{
    subscriber->cursor = recipients->share->to;
    subscriber->active_at = now;
    if (recipients->epoch != NULL) {
        hk_hub_count_in_step(subscriber, recipients->share->sum, recipients->share->epoch);
        hk_epoch_got(recipients->epoch);
    }
}

static void deliver_to_all(hk_hub_t *hub, recipients_t *recipients, const turn_t *turn)
{
    ptrdiff_t accepted[HK_MAX_RECIPIENTS] = {0};
    const size_t length = recipients->bytes.length;
    size_t whole = 0;
    if (recipients->count == 0) {
        return;
    }
    turn->deliver(turn->context, recipients->all, recipients->count, recipients->bytes, accepted);
    for (size_t i = 0; i < recipients->count; i++) {
        if (accepted[i] == (ptrdiff_t)length) {
            took_all(recipients, recipients->all[i], turn->now);
            whole++;
        } else {
            hub->taken = *recipients->share;
            hub->taken.subscriber = recipients->all[i];
            accept(hub, recipients->all[i], accepted[i], turn->now);
        }
    }
    hub->deliveries += whole * recipients->share->count;
    hub->delivered_bytes += whole * length;
    recipients->count = 0;
}

static void add_recipient(hk_hub_t *hub, recipients_t *recipients, hk_subscriber_t *subscriber, const turn_t *turn)
{
    recipients->all[recipients->count++] = subscriber;
    if (recipients->count == HK_MAX_RECIPIENTS) {
        deliver_to_all(hub, recipients, turn);
    }
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
    const hk_taken_t share = {.length = batch.frames.bytes.length, .to = batch.to, .count = batch.frames.count};
    recipients_t recipients = {.share = &share, .bytes = batch.frames.bytes};
    const bool more = hk_batch_more(&batch);
    size_t left = limit;
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
        add_recipient(hub, &recipients, subscriber, turn);
    }
    hub->place = place;
    deliver_to_all(hub, &recipients, turn);
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
    recipients_t recipients = {
        .share = &rank.rest, .bytes = hk_bytes(rank.rest.at, rank.rest.length), .epoch = rank.epoch};
    size_t left = limit;
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
        add_recipient(hub, &recipients, subscriber, turn);
    }
    hub->place = place;
    deliver_to_all(hub, &recipients, turn);
    return left;
}

/* Of those who scan the log, one after the other, as long as the allowance of this turn lasts. */
static hk_status_t go_on_scanning(hk_hub_t *hub, size_t *limit, const turn_t *turn)
{
    hk_status_t status = HK_OK;
    hub->scan_allowance = HK_HUB_STEPS;
    while (status == HK_OK && *limit > 0 && hub->scan_allowance > 0) {
        hk_subscriber_t *subscriber = first_of(&hub->scanning);
        if (subscriber == NULL) {
            break;
        }
        --*limit;
        status = hand_out(hub, subscriber, turn);
    }
    return status;
}

hk_status_t hk_hub_serve(hk_hub_t *hub, size_t limit, size_t max_bytes, int64_t now, hk_deliver_t deliver,
                         void *context, bool *more)
{
    const turn_t turn = {max_bytes, now, deliver, context};
    hk_hub_tell(hub, now);
    hk_status_t scanned = go_on_scanning(hub, &limit, &turn);
    if (scanned != HK_OK) {
        return scanned;
    }
    while (limit > 0) {
        if (hk_list_empty(&hub->ready) && (hub->feed != NULL || next_feed(hub))) {
            limit = hub->feed->epoch != NULL ? fan_out_in_step(hub, limit, &turn) : fan_out(hub, limit, &turn);
            if (limit == 0) {
                break;
            }
        }
        hk_subscriber_t *subscriber = next_ready(hub);
        if (subscriber == NULL) {
            *more = has_more_to_do(hub);
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
