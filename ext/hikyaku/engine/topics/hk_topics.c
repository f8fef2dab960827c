#include "hk_topic.h"

/* All topics stand in one map; two lists say which generation they belong to. When the young one is full the old one is
 * forgotten, and the young one is old: the number of a topic's generation tells which it is, so none is touched. */
struct hk_topics {
    const hk_alloc_t *alloc;
    hk_map_t map;
    hk_list_t young, old;
    size_t young_bytes, old_bytes, generation_bytes;
    uint8_t generation;
    hk_topic_t *hub; /* holds a copy of the hub's URL */
    hk_bytes_t comparable_path;
};

hk_status_t hk_topics_new(const hk_alloc_t *alloc, const hk_topics_options_t *options, hk_topics_t **topics)
{
    hk_topics_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL || hk_topic_new(alloc, options->comparable_path, &options->hub, true, &made->hub) != HK_OK) {
        hk_alloc_free(alloc, made);
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->comparable_path = hk_topic_value(made->hub);
    made->generation_bytes = options->max_bytes / 2;
    hk_map_init(&made->map, alloc, options->secret);
    hk_list_init(&made->young);
    hk_list_init(&made->old);
    *topics = made;
    return HK_OK;
}

static void forget_old(hk_topics_t *topics)
{
    for (hk_list_t *link; (link = hk_list_shift(&topics->old)) != NULL;) {
        hk_topic_t *topic = HK_OWNER(link, hk_topic_t, link);
        hk_map_remove(&topics->map, &topic->node);
        hk_topic_release(topic);
    }
    hk_list_move(&topics->young, &topics->old);
    topics->old_bytes = topics->young_bytes;
    topics->young_bytes = 0;
    topics->generation++;
}

/* Of a topic that is in the map and in no list. */
static void remember(hk_topics_t *topics, hk_topic_t *topic)
{
    if (topics->young_bytes + topic->bytes > topics->generation_bytes) {
        forget_old(topics);
    }
    topic->generation = topics->generation;
    hk_list_append(&topics->young, &topic->link);
    topics->young_bytes += topic->bytes;
}

void hk_topics_free(hk_topics_t *topics)
{
    if (topics == NULL) {
        return;
    }
    forget_old(topics);
    forget_old(topics);
    hk_map_release(&topics->map);
    hk_topic_release(topics->hub);
    hk_alloc_free(topics->alloc, topics);
}

/* From the table, or NULL. */
static hk_topic_t *known(hk_topics_t *topics, hk_bytes_t value)
{
    /* The node is the first member. */
    hk_topic_t *topic = (hk_topic_t *)hk_map_find(&topics->map, value);
    if (topic != NULL && topic->generation != topics->generation) {
        hk_list_remove(&topic->link);
        topics->old_bytes -= topic->bytes;
        remember(topics, topic);
    }
    return topic;
}

static hk_status_t add(hk_topics_t *topics, hk_bytes_t value, const hk_url_t *url, bool reserved, hk_topic_t **topic)
{
    hk_topic_t *made;
    if (hk_topic_new(topics->alloc, value, url, reserved, &made) != HK_OK) {
        return HK_NO_MEMORY;
    }
    if (hk_map_add(&topics->map, &made->node, made->node.key) != HK_OK) {
        hk_topic_release(made);
        return HK_NO_MEMORY;
    }
    remember(topics, made);
    *topic = made;
    return HK_OK;
}

/* Of a canonical path: nothing in it is percent-encoded. Empty segments do not count. */
static bool below_hub(const hk_topics_t *topics, hk_bytes_t path)
{
    hk_bytes_t hub = topics->comparable_path;
    size_t same = 0, at = 0;
    for (; at < path.length; at++) {
        if (at > 0 && path.at[at] == '/' && path.at[at - 1] == '/') {
            continue;
        }
        if (same == hub.length) {
            return path.at[at] == '/';
        }
        if (path.at[at] != hub.at[same]) {
            return false;
        }
        same++;
    }
    return same == hub.length;
}

hk_status_t hk_topics_find(hk_topics_t *topics, hk_bytes_t value, hk_topic_t **topic)
{
    hk_topic_t *found = known(topics, value);
    if (found != NULL) {
        *topic = found;
        return HK_OK;
    }
    hk_url_t url;
    if (hk_topic_split(value, &topics->hub->url, &url) != HK_OK) {
        return HK_UNKNOWN;
    }
    return add(topics, value, &url, below_hub(topics, url.parts[HK_URL_PATHNAME]), topic);
}

hk_status_t hk_topics_add(hk_topics_t *topics, hk_bytes_t value, const hk_url_t *url, bool reserved, hk_topic_t **topic)
{
    hk_topic_t *found = known(topics, value);
    if (found != NULL) {
        *topic = found;
        return HK_OK;
    }
    return add(topics, value, url, reserved, topic);
}

size_t hk_topics_count(const hk_topics_t *topics)
{
    return topics->map.count;
}

size_t hk_topics_bytes(const hk_topics_t *topics)
{
    return topics->young_bytes + topics->old_bytes;
}
