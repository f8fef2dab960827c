#include "hk_hub_state_plan.h"

_Static_assert((int)HK_STREAM_CAPABILITY_BYTES == (int)HK_CAPABILITY_BYTES, "what drivers have room for");

#define EARLIEST HK_BYTES("earliest")

/* --- who may ------------------------------------------------------------------------------------------------------ */

hk_status_t hk_hub_capability(const hk_hub_t *hub, const hk_subscriber_t *subscriber,
                              char capability[HK_STREAM_CAPABILITY_BYTES])
{
    if ((subscriber->traits & HK_SUBSCRIBER_CHANGEABLE) == 0) {
        return HK_NOT_FOUND;
    }
    hk_capability_write(&hub->capabilities, subscriber->serial, capability);
    return HK_OK;
}

hk_subscriber_t *hk_hub_find_changeable(hk_hub_t *hub, hk_bytes_t capability)
{
    uint64_t serial;
    if (hk_capability_read(&hub->capabilities, capability, &serial) != HK_OK) {
        return NULL;
    }
    hk_subscriber_t *subscriber = hk_hub_find(hub, serial);
    return subscriber != NULL && (subscriber->traits & HK_SUBSCRIBER_CHANGEABLE) != 0 ? subscriber : NULL;
}

/* --- what it becomes ---------------------------------------------------------------------------------------------- */

/* Where a subscription that stays begins from now on. With other private topics than before, what it selects behind
 * the cursor is not what was sent. */
static hk_beginning_t go_on(const hk_change_plan_t *plan, hk_beginning_t beginning)
{
    if (plan->goes_back && beginning.from < plan->here) {
        beginning.from = plan->here;
    }
    if (!plan->same_reads && beginning.since < plan->here) {
        beginning.since = plan->here;
    }
    return beginning;
}

static void begin(const hk_change_plan_t *plan, hk_replay_filter_t *filter)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        uint32_t origin = plan->as_it_was ? i : plan->origins[i];
        filter->beginnings[i] = origin == HK_CHANGE_NEW
                                    ? (hk_beginning_t){plan->from, plan->from}
                                    : go_on(plan, hk_subscriber_beginning(plan->subscriber, origin));
    }
}

/* For a stream without a filter. */
static void begin_without_filter(const hk_change_plan_t *plan, hk_subscriber_t *subscriber)
{
    if (!plan->same_reads && subscriber->began_at < plan->here) {
        subscriber->began_at = plan->here;
        subscriber->traits &= (uint8_t)~HK_SUBSCRIBER_FROM_OLDEST;
    }
}

static void rearrange(hk_hub_t *hub, const hk_change_plan_t *plan)
{
    hk_subscriber_t *former = plan->subscriber, *made = plan->made;
    for (uint32_t i = 0; i < plan->count; i++) {
        if (plan->stays[i] && !plan->moves) {
            made->subscriptions[i] = former->subscriptions[plan->origins[i]];
            hk_feed_t *feed = made->subscriptions[i].feed;
            feed->members[made->subscriptions[i].place] = (hk_member_t){made, i};
        }
    }
    for (uint32_t i = 0; i < plan->former_count; i++) {
        if (!plan->stayed[i] || plan->moves) {
            hk_hub_leave(hub, &former->subscriptions[i]);
        }
    }
}

/* Nothing knows the former any more. */
static void take_place(hk_hub_t *hub, const hk_change_plan_t *plan)
{
    hk_subscriber_t *former = plan->subscriber, *made = plan->made;
    hk_replay_filter_t *filter = hk_subscriber_filter(made), *former_filter = hk_subscriber_filter(former);
    if (former_filter != NULL) {
        filter->ranges = former_filter->ranges;
        filter->resumes_at = former_filter->resumes_at;
        former_filter->ranges = NULL;
    }
    hk_heap_remove(&hub->deadlines, &former->deadline);
    hk_subscriber_take_over(made, former);
    hk_list_replace(&former->ready, &made->ready);
    hk_list_replace(&former->beat, &made->beat);
    hk_roster_replace(&hub->roster, former, made);
    if (hub->taken.subscriber == former) {
        hub->taken.subscriber = NULL;
    }
    hk_subscriber_free(hub->alloc, former);
}

static void go_back(hk_hub_t *hub, const hk_change_plan_t *plan, hk_subscriber_t *subscriber, bool to_oldest)
{
    hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    hk_replay_filter_add(hub->alloc, filter, plan->range);
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_WITHIN)) {
        filter->resumes_at = plan->from;
    } else {
        subscriber->cursor = plan->from;
    }
    subscriber->began_at = plan->from;
    subscriber->traits &= (uint8_t)~HK_SUBSCRIBER_FROM_OLDEST;
    subscriber->traits |= to_oldest ? HK_SUBSCRIBER_FROM_OLDEST : 0;
}

static void choose_way(hk_subscriber_t *subscriber)
{
    if (subscriber->subscription_count > 1 || hk_subscriber_restriction(subscriber) != NULL) {
        hk_subscriber_set(subscriber, HK_SUBSCRIBER_MANY);
    } else {
        hk_subscriber_clear(subscriber, HK_SUBSCRIBER_MANY);
    }
}

/* The grant is the caller's to release; returns the one that the subscriber is from now on. */
static hk_subscriber_t *carry_out(hk_hub_t *hub, const hk_change_plan_t *plan, bool to_oldest)
{
    hk_subscriber_t *subscriber = plan->made != NULL ? plan->made : plan->subscriber;
    hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    if (!plan->as_it_was || !plan->same_reads || plan->goes_back) {
        hk_hub_step_out(hub, plan->subscriber);
    }
    if (filter != NULL) {
        begin(plan, filter);
    }
    if (plan->made != NULL) {
        hk_hub_leave_group(hub, plan->subscriber);
        rearrange(hub, plan);
        take_place(hub, plan);
    }
    if (plan->goes_back) {
        go_back(hub, plan, subscriber, to_oldest);
    }
    if (filter != NULL) {
        hk_replay_filter_settle(filter, plan->count);
    } else {
        begin_without_filter(plan, subscriber);
    }
    choose_way(subscriber);
    return subscriber;
}

static void change_grant(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_change_t *change)
{
    /* Another grant may get the same address. */
    if (hub->batch.grant == subscriber->grant) {
        hub->batch.feed = NULL;
    }
    subscriber->grant = hk_grant_retain(change->grant);
    if (subscriber->grant->read_count > 0) {
        hk_hub_leave_group(hub, subscriber);
    }
    hk_hub_join_group(hub, subscriber);
    hk_hub_retime(hub, subscriber, change->now, change->expires_in);
    if (change->has_cursor && change->cursor.length > 0) {
        hk_subscriber_set(subscriber, HK_SUBSCRIBER_CATCHING_UP);
    }
    hk_hub_make_ready(hub, subscriber);
}

static void announce(hk_hub_t *hub, const hk_change_plan_t *plan, hk_grant_t *former, uint64_t serial)
{
    if (!plan->as_it_was) {
        hk_hub_announce(hub, former, plan->stayed, serial, false, plan->change->now);
        hk_hub_announce(hub, plan->change->grant, plan->stays, serial, true, plan->change->now);
    }
}

hk_status_t hk_hub_change(hk_hub_t *hub, hk_subscriber_t **subscriber, const hk_change_t *change, hk_bytes_t *answer)
{
    hk_subscriber_t *former = *subscriber;
    if (hk_subscriber_is(former, HK_SUBSCRIBER_CLOSING)) {
        return HK_CLOSED;
    }
    if (hub->untold_count >= HK_MOST_UNTOLD) {
        return hk_hub_count_costly(hub, HK_TOO_COSTLY);
    }
    hk_change_plan_t plan = {.change = change, .subscriber = former};
    hk_bytes_t answered;
    hk_status_t status = hk_hub_plan_change(hub, &plan, &answered);
    if (status != HK_OK) {
        return hk_hub_count_costly(hub, status);
    }
    hk_grant_t *former_grant = former->grant;
    hk_subscriber_t *changed = carry_out(hub, &plan, hk_bytes_equal(answered, EARLIEST));
    change_grant(hub, changed, change);
    announce(hub, &plan, former_grant, changed->serial);
    hk_grant_release(former_grant);
    hk_hub_forget_plan(hub, &plan);
    *subscriber = changed;
    *answer = answered;
    return HK_OK;
}
