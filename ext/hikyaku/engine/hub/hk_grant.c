#include "hk_grant.h"

#include <stddef.h>

/* One block: the grant, its lists, its bytes. */
typedef struct room {
    char *at;
} room_t;

static size_t size_of_announcement(const hk_announcement_t *announcement)
{
    size_t size = announcement->topic_head.length + announcement->path_head.length + announcement->type.length;
    for (size_t i = 0; i < 4; i++) {
        size += announcement->parts[i].length;
    }
    return size;
}

static size_t size_of(const hk_grant_options_t *options)
{
    size_t size = sizeof(hk_grant_t) + options->subscription_count * sizeof(hk_grant_subscription_t) +
                  (options->read_count + options->publish_count) * sizeof(hk_matcher_t *) + options->subject.length;
    for (size_t i = 0; i < options->subscription_count; i++) {
        if (options->subscriptions[i].announced) {
            size += size_of_announcement(&options->subscriptions[i].announcement);
        }
    }
    return size;
}

static void *take(room_t *room, size_t size)
{
    char *at = room->at;
    room->at += size;
    return at;
}

static hk_bytes_t copy(room_t *room, hk_bytes_t bytes)
{
    if (bytes.length == 0) {
        return HK_BYTES("");
    }
    return hk_bytes(memcpy(take(room, bytes.length), bytes.at, bytes.length), bytes.length);
}

static hk_matcher_t *keep(hk_grant_t *grant, hk_matcher_t *matcher)
{
    if (matcher->instructions > grant->instructions) {
        grant->instructions = matcher->instructions;
    }
    return hk_matcher_retain(matcher);
}

static hk_matcher_t **keep_all(hk_grant_t *grant, room_t *room, hk_matcher_t *const *matchers, size_t count)
{
    hk_matcher_t **kept = take(room, count * sizeof(*kept));
    for (size_t i = 0; i < count; i++) {
        kept[i] = keep(grant, matchers[i]);
    }
    return kept;
}

static hk_grant_subscription_t copy_subscription(hk_grant_t *grant, room_t *room, const hk_grant_subscription_t *from)
{
    hk_grant_subscription_t to = {.matcher = keep(grant, from->matcher), .announced = from->announced};
    if (from->announced) {
        to.announcement.topic_head = copy(room, from->announcement.topic_head);
        to.announcement.path_head = copy(room, from->announcement.path_head);
        to.announcement.type = copy(room, from->announcement.type);
        for (size_t i = 0; i < 4; i++) {
            to.announcement.parts[i] = copy(room, from->announcement.parts[i]);
        }
    }
    return to;
}

hk_status_t hk_grant_new(const hk_alloc_t *alloc, const hk_grant_options_t *options, hk_grant_t **grant)
{
    if (options->subscription_count > UINT16_MAX || options->read_count > UINT32_MAX ||
        options->publish_count > UINT32_MAX) {
        return HK_TOO_LARGE;
    }
    size_t size = size_of(options);
    hk_grant_t *made = hk_alloc_new(alloc, size);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    *made = (hk_grant_t){
        .references = 1,
        .subscription_count = (uint32_t)options->subscription_count,
        .read_count = (uint32_t)options->read_count,
        .publish_count = (uint32_t)options->publish_count,
        .expires_at = options->expires_at,
        .tag = options->tag,
        .gone = options->gone,
        .context = options->context,
        .bytes = size + options->held,
        .alloc = alloc,
    };
    room_t room = {(char *)(made + 1)};
    made->subscriptions = take(&room, options->subscription_count * sizeof(*made->subscriptions));
    made->reads = keep_all(made, &room, options->reads, options->read_count);
    made->publishes = keep_all(made, &room, options->publishes, options->publish_count);
    for (size_t i = 0; i < options->subscription_count; i++) {
        made->subscriptions[i] = copy_subscription(made, &room, &options->subscriptions[i]);
    }
    made->subject = copy(&room, options->subject);
    *grant = made;
    return HK_OK;
}

hk_grant_t *hk_grant_retain(hk_grant_t *grant)
{
    grant->references++;
    return grant;
}

static void release_all(hk_matcher_t **matchers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hk_matcher_release(matchers[i]);
    }
}

void hk_grant_release(hk_grant_t *grant)
{
    if (grant == NULL || --grant->references > 0) {
        return;
    }
    for (size_t i = 0; i < grant->subscription_count; i++) {
        hk_matcher_release(grant->subscriptions[i].matcher);
    }
    release_all(grant->reads, grant->read_count);
    release_all(grant->publishes, grant->publish_count);
    if (grant->gone != NULL) {
        grant->gone(grant->context, grant->tag);
    }
    hk_alloc_free(grant->alloc, grant);
}

static bool any_matches(hk_matcher_t *const *matchers, size_t count, hk_program_space_t *space, const hk_topic_t *topic)
{
    for (size_t i = 0; i < count; i++) {
        if (hk_matcher_match(matchers[i], space, topic)) {
            return true;
        }
    }
    return false;
}

bool hk_grant_reads(const hk_grant_t *grant, hk_program_space_t *space, hk_topic_t *const *topics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (any_matches(grant->reads, grant->read_count, space, topics[i])) {
            return true;
        }
    }
    return false;
}

bool hk_grant_publishes(const hk_grant_t *grant, hk_program_space_t *space, hk_topic_t *const *topics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!any_matches(grant->publishes, grant->publish_count, space, topics[i])) {
            return false;
        }
    }
    return true;
}
