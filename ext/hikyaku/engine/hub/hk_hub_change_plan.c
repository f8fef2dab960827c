#include "hk_hub_state_plan.h"

#define EARLIEST HK_BYTES("earliest")

/* --- which subscriptions stay ------------------------------------------------------------------------------------- */

/* A subscription that there is, found by its matcher. */
typedef struct present {
    hk_map_node_t node;
    uint32_t place;
} present_t;

static hk_bytes_t key_of_former(const hk_change_plan_t *plan, uint32_t place)
{
    return hk_feed_matcher(plan->subscriber->subscriptions[place].feed)->key;
}

static hk_bytes_t key_from_now(const hk_change_plan_t *plan, uint32_t place)
{
    return plan->change->grant->subscriptions[place].matcher->key;
}

static bool is_as_it_was(const hk_change_plan_t *plan)
{
    if (plan->count != plan->former_count) {
        return false;
    }
    for (uint32_t i = 0; i < plan->count; i++) {
        if (!hk_bytes_equal(key_of_former(plan, i), key_from_now(plan, i))) {
            return false;
        }
    }
    return true;
}

static hk_status_t list_present(const hk_change_plan_t *plan, hk_map_t *map, present_t *present)
{
    for (uint32_t i = 0; i < plan->former_count; i++) {
        present[i].place = i;
        if (hk_map_add(map, &present[i].node, key_of_former(plan, i)) != HK_OK) {
            return HK_NO_MEMORY;
        }
    }
    return HK_OK;
}

static void compare(hk_change_plan_t *plan, const hk_map_t *map)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        hk_map_node_t *node = hk_map_find(map, key_from_now(plan, i));
        plan->origins[i] = node != NULL ? HK_OWNER(node, present_t, node)->place : HK_CHANGE_NEW;
        plan->stays[i] = node != NULL;
        plan->adds = plan->adds || node == NULL;
        if (node != NULL) {
            plan->stayed[plan->origins[i]] = true;
        }
    }
}

static hk_status_t compare_subscriptions(hk_hub_t *hub, hk_change_plan_t *plan)
{
    size_t count = plan->count, former = plan->former_count;
    hk_map_t map;
    plan->origins = hk_alloc_zeroed(hub->alloc, count, sizeof(*plan->origins));
    plan->stays = hk_alloc_zeroed(hub->alloc, count + former, sizeof(*plan->stays));
    present_t *present = hk_alloc_zeroed(hub->alloc, former, sizeof(*present));
    if (plan->origins == NULL || plan->stays == NULL || present == NULL) {
        hk_alloc_free(hub->alloc, present);
        return HK_NO_MEMORY;
    }
    plan->stayed = plan->stays + count;
    hk_map_init(&map, hub->alloc, hub->feeds.secret);
    hk_status_t status = list_present(plan, &map, present);
    if (status == HK_OK) {
        compare(plan, &map);
    }
    hk_map_release(&map);
    hk_alloc_free(hub->alloc, present);
    return status;
}

static bool have_same_reads(const hk_grant_t *one, const hk_grant_t *other)
{
    if (one->read_count != other->read_count) {
        return false;
    }
    for (size_t i = 0; i < one->read_count; i++) {
        if (one->reads[i] != other->reads[i] && !hk_bytes_equal(one->reads[i]->key, other->reads[i]->key)) {
            return false;
        }
    }
    return true;
}

/* Behind which position those begin that are added. */
static void find_beginning(hk_hub_t *hub, hk_change_plan_t *plan, hk_bytes_t *answer)
{
    const hk_change_t *change = plan->change;
    plan->from = hk_log_head(hub->log);
    if (plan->adds && change->has_cursor && change->cursor.length > 0) {
        plan->from = hk_hub_place_of(hub, change->grant, change->cursor, answer);
        if (hk_bytes_equal(*answer, EARLIEST)) {
            return;
        }
    }
    *answer = hk_hub_cursor(hub, change->grant);
}

/* --- what it takes ------------------------------------------------------------------------------------------------ */

static hk_status_t make_layer(hk_hub_t *hub, hk_change_plan_t *plan)
{
    hk_subscriber_t *subscriber = plan->subscriber;
    if (!plan->goes_back) {
        return HK_OK;
    }
    const hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    if (filter != NULL && hk_replay_filter_full(filter, plan->here)) {
        return HK_TOO_MANY;
    }
    hk_status_t status = hk_sent_range_new(hub->alloc, subscriber->grant, plan->here, &plan->range);
    for (uint32_t i = 0; status == HK_OK && i < plan->former_count; i++) {
        plan->range->since[i] = hk_subscriber_beginning(subscriber, i).since;
    }
    return status;
}

/* One to take the subscriber's place, to which is linked what is added. */
static hk_status_t make_successor(hk_hub_t *hub, hk_change_plan_t *plan)
{
    if (plan->as_it_was) {
        return HK_OK;
    }
    bool changed = plan->adds || hk_subscriber_filter(plan->subscriber) != NULL;
    const hk_coded_t *coded = hk_hub_coded(plan->subscriber);
    hk_status_t status = hk_subscriber_new_coded(hub->alloc, plan->count, changed, coded, &plan->made);
    if (status != HK_OK) {
        return status;
    }
    plan->made->subscription_count = (uint16_t)plan->count;
    /* By which its feeds are chosen; it is given its own when it takes the subscriber's place. */
    plan->made->grant = plan->change->grant;
    plan->made->address = plan->subscriber->address;
    if (plan->count > 1) {
        hk_subscriber_set(plan->made, HK_SUBSCRIBER_MANY);
    }
    for (uint32_t i = 0; status == HK_OK && i < plan->count; i++) {
        if (!plan->stays[i] || plan->moves) {
            status = hk_hub_link(hub, plan->made, i, plan->change->grant->subscriptions[i].matcher);
        }
    }
    plan->made->grant = NULL;
    return status;
}

static bool is_unknown(const hk_change_plan_t *plan, hk_bytes_t answer)
{
    return plan->adds && plan->change->has_cursor && plan->change->cursor.length > 0 &&
           hk_bytes_equal(answer, EARLIEST) && !hk_bytes_equal(plan->change->cursor, EARLIEST);
}

/* That something may be missing of what is added. */
static hk_status_t say_gap(hk_hub_t *hub, const hk_change_plan_t *plan)
{
    hk_gap_t gap;
    hk_status_t status = hk_gap_begin(&gap, &hub->scratch, HK_BYTES("unknown"), plan->change->cursor);
    for (uint32_t i = 0; status == HK_OK && i < plan->count; i++) {
        if (!plan->stays[i]) {
            status = hk_gap_add(&gap, plan->change->grant->subscriptions[i].matcher);
        }
    }
    hk_position_t continues = plan->goes_back ? plan->from : plan->here;
    return status == HK_OK ? hk_hub_say_gap(hub, plan->subscriber, &gap, continues) : status;
}

/* From now on it says which matcher it is. */
static void begin_naming(hk_change_plan_t *plan)
{
    hk_coded_t *coded = hk_hub_coded(plan->subscriber);
    if (coded != NULL && coded->naming == HK_NAMING_LATER && !is_as_it_was(plan)) {
        coded->naming = HK_NAMING;
        plan->begins_naming = true;
    }
}

static hk_status_t prepare(hk_hub_t *hub, hk_change_plan_t *plan, hk_bytes_t *answer)
{
    hk_status_t status = hk_hub_reserve(hub, plan->change->grant);
    if (status == HK_OK) {
        status = hk_heap_reserve(&hub->deadlines);
    }
    begin_naming(plan);
    plan->moves = plan->former_count > 0 && hk_hub_variant(plan->subscriber, plan->change->grant) !=
                                                plan->subscriber->subscriptions[0].feed->variant;
    plan->as_it_was = !plan->moves && is_as_it_was(plan);
    if (status == HK_OK && !plan->as_it_was) {
        status = compare_subscriptions(hub, plan);
    }
    if (status != HK_OK) {
        return status;
    }
    find_beginning(hub, plan, answer);
    plan->goes_back = plan->from < plan->here;
    plan->same_reads = have_same_reads(plan->subscriber->grant, plan->change->grant);
    status = make_layer(hub, plan);
    if (status == HK_OK) {
        status = make_successor(hub, plan);
    }
    return status == HK_OK && is_unknown(plan, *answer) ? say_gap(hub, plan) : status;
}

static void undo(hk_hub_t *hub, hk_change_plan_t *plan)
{
    hk_sent_range_free(hub->alloc, plan->range);
    if (plan->begins_naming) {
        hk_hub_coded(plan->subscriber)->naming = HK_NAMING_LATER;
    }
    if (plan->made != NULL) {
        for (uint32_t i = 0; i < plan->count; i++) {
            if (plan->made->subscriptions[i].feed != NULL) {
                hk_hub_leave(hub, &plan->made->subscriptions[i]);
            }
        }
        hk_subscriber_free(hub->alloc, plan->made);
    }
}

hk_status_t hk_hub_plan_change(hk_hub_t *hub, hk_change_plan_t *plan, hk_bytes_t *answer)
{
    plan->count = plan->change->grant->subscription_count;
    plan->former_count = plan->subscriber->subscription_count;
    plan->here = hk_subscriber_position(plan->subscriber);
    hk_status_t status = prepare(hub, plan, answer);
    if (status != HK_OK) {
        undo(hub, plan);
        hk_hub_forget_plan(hub, plan);
    }
    return status;
}

void hk_hub_forget_plan(hk_hub_t *hub, hk_change_plan_t *plan)
{
    hk_alloc_free(hub->alloc, plan->origins);
    hk_alloc_free(hub->alloc, plan->stays);
}
