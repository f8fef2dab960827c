#include "hk_hub_state.h"

/* MOST_MATCHERS, MOST_KEY  streams with more, or longer ones, are in no group: what finds it is sorted and copied each
 *                          time that one comes.
 * MOST_GROUPS              there may be, with an epoch or not yet. */
enum { MOST_MATCHERS = 256, MOST_KEY = 64 * 1024, MOST_GROUPS = 1024 };

/* -- What it is found by ------------------------------------------------------------------------------------------- */

static int compare(hk_bytes_t one, hk_bytes_t other)
{
    size_t length = one.length < other.length ? one.length : other.length;
    int difference = memcmp(one.at, other.at, length);
    return difference != 0 ? difference : one.length < other.length ? -1 : one.length > other.length;
}

/* Its feeds in the order of their matchers' keys. */
static void sort(const hk_subscriber_t *subscriber, hk_feed_t *feeds[MOST_MATCHERS])
{
    for (uint32_t i = 0; i < subscriber->subscription_count; i++) {
        hk_feed_t *feed = subscriber->subscriptions[i].feed;
        uint32_t low = 0, high = i;
        while (low < high) {
            uint32_t middle = low + (high - low) / 2;
            if (compare(hk_feed_matcher(feeds[middle])->key, hk_feed_matcher(feed)->key) < 0) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        memmove(feeds + low + 1, feeds + low, (i - low) * sizeof(*feeds));
        feeds[low] = feed;
    }
}

static bool write_key(hk_buf_t *key, unsigned variant, hk_feed_t *const feeds[], uint32_t count)
{
    char first = (char)variant;
    hk_buf_clear(key);
    bool written = hk_buf_append(key, hk_bytes(&first, 1)) == HK_OK;
    for (uint32_t i = 0; written && i < count && key->length <= MOST_KEY; i++) {
        hk_bytes_t one = hk_feed_matcher(feeds[i])->key;
        uint32_t length = (uint32_t)one.length;
        written = hk_buf_append(key, hk_bytes((const char *)&length, sizeof(length))) == HK_OK &&
                  hk_buf_append(key, one) == HK_OK;
    }
    return written && key->length <= MOST_KEY;
}

/* -- Beginning and end --------------------------------------------------------------------------------------------- */

static void grow_from(hk_group_t *group, hk_feed_t *const feeds[], uint32_t count)
{
    group->count = count;
    for (uint32_t i = 0; i < count; i++) {
        group->twigs[i] = (hk_twig_t){feeds[i], {group->feed, feeds[i]->branches}};
        feeds[i]->branches = &group->twigs[i].branch;
    }
}

static void cut_off(hk_twig_t *twig)
{
    hk_branch_t **at = &twig->of->branches;
    while (*at != &twig->branch) {
        at = &(*at)->next;
    }
    *at = twig->branch.next;
}

static void drop(hk_hub_t *hub, hk_group_t *group)
{
    for (uint32_t i = 0; i < group->count; i++) {
        cut_off(&group->twigs[i]);
    }
    hk_hub_drop_epoch(hub, group->feed);
    hk_list_remove(&group->feed->dirty);
    if (hub->feed == group->feed) {
        hub->feed = NULL;
    }
    hk_feed_free(group->feed);
    hk_alloc_free(hub->alloc, group);
}

/* A group of nobody; NULL: there is no memory, or there are as many as there may be. */
static hk_group_t *make(hk_hub_t *hub, unsigned variant, hk_feed_t *const feeds[], uint32_t count, hk_bytes_t key)
{
    size_t size = sizeof(hk_group_t) + count * sizeof(hk_twig_t);
    bool room = hub->coding->groups.count < MOST_GROUPS;
    hk_group_t *made = room ? hk_alloc_zeroed(hub->alloc, 1, size + key.length) : NULL;
    if (made == NULL) {
        return NULL;
    }
    if (hk_feed_new(hub->alloc, hk_log_head(hub->log) + 1, &made->feed) != HK_OK) {
        hk_alloc_free(hub->alloc, made);
        return NULL;
    }
    made->feed->variant = (uint8_t)(variant | HK_VARIANT_GROUPED);
    char *copy = (char *)made + size;
    memcpy(copy, key.at, key.length);
    if (hk_map_add(&hub->coding->groups, &made->node, hk_bytes(copy, key.length)) != HK_OK) {
        drop(hub, made);
        return NULL;
    }
    grow_from(made, feeds, count);
    return made;
}

static hk_group_t *group_for(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_feed_t *feeds[MOST_MATCHERS];
    unsigned variant = hk_hub_variant(subscriber, subscriber->grant);
    hk_buf_t *key = &hub->coding->packed;
    sort(subscriber, feeds);
    if (!write_key(key, variant, feeds, subscriber->subscription_count)) {
        return NULL;
    }
    hk_map_node_t *node = hk_map_find(&hub->coding->groups, hk_buf_bytes(key));
    return node != NULL ? HK_OWNER(node, hk_group_t, node)
                        : make(hub, variant, feeds, subscriber->subscription_count, hk_buf_bytes(key));
}

/* -- Members ------------------------------------------------------------------------------------------------------- */

static bool may_share(hk_subscriber_t *subscriber)
{
    const hk_coded_t *coded = hk_hub_coded(subscriber);
    return coded != NULL && coded->coding == HK_STREAM_GZIP && coded->several &&
           hk_subscriber_membership(subscriber)->group == NULL && subscriber->subscription_count <= MOST_MATCHERS &&
           subscriber->grant->read_count == 0 && !hk_subscriber_names(subscriber);
}

static void drop_empty(hk_hub_t *hub, hk_group_t *group)
{
    if (group->feed->member_count == 0) {
        hk_map_remove(&hub->coding->groups, &group->node);
        drop(hub, group);
    }
}

void hk_hub_join_group(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_group_t *group = may_share(subscriber) ? group_for(hub, subscriber) : NULL;
    if (group == NULL) {
        return;
    }
    hk_membership_t *membership = hk_subscriber_membership(subscriber);
    if (hk_feed_link(group->feed, (hk_member_t){subscriber, 0}, &membership->place) == HK_OK) {
        membership->group = group;
        hk_hub_add_epoch(hub, group->feed);
    }
    drop_empty(hub, group);
}

void hk_hub_leave_group(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_membership_t *membership = hk_hub_coded(subscriber) != NULL ? hk_subscriber_membership(subscriber) : NULL;
    hk_group_t *group = membership != NULL ? membership->group : NULL;
    if (group == NULL) {
        return;
    }
    hk_member_t moved = hk_feed_unlink(group->feed, membership->place);
    if (moved.subscriber != NULL) {
        hk_subscriber_membership(moved.subscriber)->place = membership->place;
    }
    membership->group = NULL;
    drop_empty(hub, group);
}
