#include "hk_hub_state.h"

#define EARLIEST HK_BYTES("earliest")

/* -- Feeds --------------------------------------------------------------------------------------------------------- */

static hk_map_t *feeds_of(hk_hub_t *hub, unsigned variant)
{
    return variant == 0 ? &hub->feeds : &hub->coding->feeds[variant];
}

size_t hk_hub_feed_count(const hk_hub_t *hub)
{
    size_t count = hub->feeds.count;
    for (unsigned variant = 1; hub->coding != NULL && variant < HK_VARIANTS; variant++) {
        count += hub->coding->feeds[variant].count;
    }
    return count;
}

hk_status_t hk_hub_feeds(hk_hub_t *hub, hk_bytes_t type, hk_bytes_t pattern, hk_feed_t *feeds[HK_VARIANTS])
{
    hk_buf_t *key = &hub->scratch;
    hk_buf_clear(key);
    if (hk_buf_append(key, type) != HK_OK || hk_buf_append(key, HK_BYTES("\0")) != HK_OK ||
        hk_buf_append(key, pattern) != HK_OK) {
        return HK_NO_MEMORY;
    }
    for (unsigned variant = 0; variant < HK_VARIANTS; variant++) {
        bool used = variant == 0 || hub->coding != NULL;
        hk_map_node_t *node = used ? hk_map_find(feeds_of(hub, variant), hk_buf_bytes(key)) : NULL;
        feeds[variant] = node != NULL ? HK_OWNER(node, hk_feed_t, node) : NULL;
    }
    return HK_OK;
}

static bool exceeds(uint64_t cost, const hk_matcher_t *matcher, uint32_t limit)
{
    return limit > 0 && cost + matcher->cost > limit;
}

/* Whether the patterns in use may be joined by one more. */
static hk_status_t afford(const hk_hub_t *hub, const hk_matcher_t *matcher, const hk_address_t *payer)
{
    if (matcher->cost == 0) {
        return HK_OK;
    }
    if (payer != NULL && exceeds(payer->cost, matcher, hub->max_cost_of_address)) {
        return HK_TOO_COSTLY_OF_ADDRESS;
    }
    bool too_costly = exceeds(hk_index_cost(hub->index), matcher, hub->max_cost) ||
                      exceeds(hk_index_cost_beside(hub->index, matcher), matcher, hub->max_cost_beside);
    return too_costly ? HK_TOO_COSTLY : HK_OK;
}

static hk_status_t add_feed(hk_hub_t *hub, hk_matcher_t *matcher, unsigned variant, hk_address_t *payer,
                            hk_feed_t **feed)
{
    hk_feed_t *made;
    hk_status_t affordable = afford(hub, matcher, payer);
    if (affordable != HK_OK) {
        return affordable;
    }
    if (hk_feed_new(hub->alloc, hk_log_head(hub->log) + 1, &made) != HK_OK) {
        return HK_NO_MEMORY;
    }
    if (hk_index_add(hub->index, &made->entry, matcher) != HK_OK) {
        hk_feed_free(made);
        return HK_NO_MEMORY;
    }
    if (hk_map_add(feeds_of(hub, variant), &made->node, hk_feed_matcher(made)->key) != HK_OK) {
        hk_index_remove(hub->index, &made->entry);
        hk_feed_free(made);
        return HK_NO_MEMORY;
    }
    made->variant = (uint8_t)variant;
    if (payer != NULL && matcher->cost > 0) {
        made->payer = payer;
        payer->cost += matcher->cost;
    }
    *feed = made;
    return HK_OK;
}

static void drop_feed(hk_hub_t *hub, hk_feed_t *feed)
{
    hk_map_remove(feeds_of(hub, feed->variant), &feed->node);
    hk_hub_drop_epoch(hub, feed);
    if (feed->payer != NULL) {
        hk_address_refund(&hub->addresses, feed->payer, hk_feed_matcher(feed)->cost);
    }
    hk_index_remove(hub->index, &feed->entry);
    hk_list_remove(&feed->dirty);
    if (hub->feed == feed) {
        hub->feed = NULL;
    }
    if (hub->batch.feed == feed) {
        hub->batch.feed = NULL;
    }
    hk_feed_free(feed);
}

static hk_status_t feed_for(hk_hub_t *hub, hk_matcher_t *matcher, unsigned variant, hk_address_t *payer,
                            hk_feed_t **feed)
{
    hk_map_node_t *node = hk_map_find(feeds_of(hub, variant), matcher->key);
    if (node == NULL) {
        return add_feed(hub, matcher, variant, payer, feed);
    }
    *feed = HK_OWNER(node, hk_feed_t, node);
    return HK_OK;
}

hk_status_t hk_hub_link(hk_hub_t *hub, hk_subscriber_t *subscriber, uint32_t subscription, hk_matcher_t *matcher)
{
    hk_feed_t *feed;
    unsigned variant = hk_hub_variant(subscriber, subscriber->grant);
    hk_status_t status = feed_for(hub, matcher, variant, subscriber->address, &feed);
    if (status != HK_OK) {
        return status;
    }
    hk_subscription_t *made = &subscriber->subscriptions[subscription];
    if (hk_feed_link(feed, (hk_member_t){subscriber, subscription}, &made->place) != HK_OK) {
        return HK_NO_MEMORY;
    }
    made->feed = feed;
    if ((feed->variant & HK_VARIANT_GROUPED) != 0) {
        hk_hub_add_epoch(hub, feed);
    }
    hub->subscriptions++;
    return HK_OK;
}

void hk_hub_leave(hk_hub_t *hub, const hk_subscription_t *subscription)
{
    hk_feed_t *feed = subscription->feed;
    hk_member_t moved = hk_feed_unlink(feed, subscription->place);
    if (moved.subscriber != NULL) {
        moved.subscriber->subscriptions[moved.subscription].place = subscription->place;
    }
    if (feed->member_count == 0) {
        drop_feed(hub, feed);
    }
    hub->subscriptions--;
}

/* -- Cursors ------------------------------------------------------------------------------------------------------- */

hk_bytes_t hk_hub_cursor(hk_hub_t *hub, const hk_grant_t *grant)
{
    hk_record_t *record = hk_log_at(hub->log, hk_log_head(hub->log));
    if (record != NULL && hk_hub_reserve(hub, grant) == HK_OK && hk_grant_admits(grant, &hub->space, record)) {
        hk_record_release(hub->answered);
        hub->answered = hk_record_retain(record);
        return record->id;
    }
    hk_log_seal(hub->log, hk_log_head(hub->log), hub->sealed);
    return hk_bytes(hub->sealed, sizeof(hub->sealed));
}

/* Mercure draft-08, section "Reconnection, State Reconciliation, and Event Sourcing". */
hk_position_t hk_hub_place_of(hk_hub_t *hub, const hk_grant_t *grant, hk_bytes_t cursor, hk_bytes_t *answer)
{
    hk_position_t position;
    if (cursor.length == 0) {
        *answer = hk_log_count(hub->log) == 0 ? EARLIEST : hk_hub_cursor(hub, grant);
        return hk_log_head(hub->log);
    }
    if (!hk_bytes_equal(cursor, EARLIEST) && hk_log_find(hub->log, cursor, &position) == HK_OK) {
        *answer = cursor;
        return position;
    }
    *answer = EARLIEST;
    return hk_log_first(hub->log) - 1;
}

void hk_hub_resolve(hk_hub_t *hub, const hk_grant_t *grant, hk_bytes_t cursor, hk_bytes_t *answer)
{
    (void)hk_hub_place_of(hub, grant, cursor, answer);
}

static hk_status_t place(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_subscribe_t *subscribe,
                         hk_bytes_t *answer)
{
    *answer = HK_BYTES("");
    subscriber->began_at = hk_log_head(hub->log);
    if (subscribe->has_cursor) {
        subscriber->began_at = hk_hub_place_of(hub, subscriber->grant, subscribe->cursor, answer);
    }
    subscriber->cursor = subscriber->began_at;
    if (!hk_bytes_equal(*answer, EARLIEST)) {
        return HK_OK;
    }
    subscriber->traits |= HK_SUBSCRIBER_FROM_OLDEST;
    if (subscribe->cursor.length == 0 || hk_bytes_equal(subscribe->cursor, EARLIEST)) {
        return HK_OK;
    }
    hk_gap_t gap;
    hk_status_t status = hk_gap_begin(&gap, &hub->scratch, HK_BYTES("unknown"), subscribe->cursor);
    return status == HK_OK ? hk_hub_say_gap(hub, subscriber, &gap, subscriber->cursor) : status;
}

/* -- Coming and going ---------------------------------------------------------------------------------------------- */

static hk_status_t admit(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_subscribe_t *subscribe)
{
    hk_bytes_t address = subscribe->address;
    if (address.length == 0) {
        return HK_OK;
    }
    hk_status_t status = hk_address_enter(&hub->addresses, address, hub->max_of_address, &subscriber->address);
    hub->refused_address += status == HK_TOO_MANY_OF_ADDRESS && !subscribe->tentative;
    return status;
}

static hk_status_t settle(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_subscribe_t *subscribe,
                          hk_bytes_t *answer)
{
    hk_status_t status = admit(hub, subscriber, subscribe);
    hk_hub_begin_coded(hub, subscriber);
    for (uint32_t i = 0; status == HK_OK && i < subscriber->grant->subscription_count; i++) {
        status = hk_hub_link(hub, subscriber, i, subscriber->grant->subscriptions[i].matcher);
        subscriber->subscription_count = (uint16_t)(status == HK_OK ? i + 1 : i);
    }
    if (status == HK_OK) {
        status = place(hub, subscriber, subscribe, answer);
    }
    if (status == HK_OK) {
        status = hk_hub_time(hub, subscriber, subscribe->now, subscribe->expires_in);
    }
    if (status == HK_OK) {
        status = hk_roster_add(&hub->roster, subscriber);
    }
    if (status == HK_OK) {
        hk_hub_join_group(hub, subscriber);
    }
    return status;
}

hk_status_t hk_hub_subscribe(hk_hub_t *hub, const hk_subscribe_t *subscribe, hk_subscriber_t **subscriber,
                             hk_bytes_t *answer)
{
    if (hub->max_subscribers > 0 && hub->roster.count >= hub->max_subscribers) {
        hub->refused_total += !subscribe->tentative;
        return HK_TOO_MANY;
    }
    size_t count = subscribe->grant->subscription_count;
    hk_subscriber_t *made;
    uint8_t naming = !subscribe->naming ? HK_NAMING_NOT : count == 1 ? HK_NAMING_LATER : HK_NAMING;
    hk_coded_t coded = {.form = (uint8_t)subscribe->form, .coding = (uint8_t)subscribe->coding, .naming = naming};
    bool plain =
        subscribe->form == HK_STREAM_EVENTS && subscribe->coding == HK_STREAM_IDENTITY && naming == HK_NAMING_NOT;
    hk_status_t status = hk_hub_prepare_coding(hub, subscribe->form, subscribe->coding, subscribe->naming);
    if (status == HK_OK) {
        status = hk_hub_reserve(hub, subscribe->grant);
    }
    if (status == HK_OK) {
        status = hk_subscriber_new_coded(hub->alloc, count, false, plain ? NULL : &coded, &made);
    }
    if (status != HK_OK) {
        return status;
    }
    made->grant = hk_grant_retain(subscribe->grant);
    made->connection = subscribe->connection;
    made->active_at = subscribe->now;
    hk_subscriber_set(made, count == 1 ? HK_SUBSCRIBER_BLOCKED : HK_SUBSCRIBER_BLOCKED | HK_SUBSCRIBER_MANY);
    if (subscribe->changeable) {
        made->traits |= HK_SUBSCRIBER_CHANGEABLE;
        if (subscribe->has_cursor && subscribe->cursor.length > 0) {
            hk_subscriber_set(made, HK_SUBSCRIBER_CATCHING_UP);
        }
    }
    hk_bytes_t answered;
    status = settle(hub, made, subscribe, &answered);
    if (status != HK_OK) {
        hk_hub_forget(hub, made);
        return subscribe->tentative ? status : hk_hub_count_costly(hub, status);
    }
    hk_hub_announce(hub, made->grant, NULL, made->serial, true, subscribe->now);
    *subscriber = made;
    *answer = answered;
    return HK_OK;
}

/* Also of one that was not settled in wholly. */
void hk_hub_forget(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_hub_leave_group(hub, subscriber);
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        hk_hub_leave(hub, &subscriber->subscriptions[i]);
    }
    if (subscriber->serial != 0) {
        hk_roster_remove(&hub->roster, subscriber);
    }
    if (subscriber->address != NULL) {
        hk_address_leave(&hub->addresses, subscriber->address);
    }
    if (hub->taken.subscriber == subscriber) {
        hub->taken.subscriber = NULL;
    }
    /* Another grant may get the same address. */
    if (hub->batch.grant == subscriber->grant) {
        hub->batch.feed = NULL;
    }
    hk_list_remove(&subscriber->ready);
    hk_hub_let_go(hub, subscriber);
    hk_hub_cancel_timing(hub, subscriber);
    hk_grant_release(subscriber->grant);
    hk_subscriber_free(hub->alloc, subscriber);
}

void hk_hub_unsubscribe(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now)
{
    hk_grant_t *grant = hk_grant_retain(subscriber->grant);
    uint64_t serial = subscriber->serial;
    hk_hub_forget(hub, subscriber);
    hk_hub_announce(hub, grant, NULL, serial, false, now);
    hk_grant_release(grant);
}
