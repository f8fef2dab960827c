#include "hk_topic.h"

/* Parts that are slices of the topic's value become slices of its copy; the others are copied behind it. */
static bool lies_in(hk_bytes_t part, hk_bytes_t value)
{
    uintptr_t start = (uintptr_t)value.at, at = (uintptr_t)part.at;
    return at >= start && at - start <= value.length && part.length <= value.length - (at - start);
}

static size_t size_beside(hk_bytes_t part, hk_bytes_t value)
{
    return part.length == 0 || lies_in(part, value) ? 0 : part.length;
}

static hk_bytes_t placed(hk_bytes_t part, hk_bytes_t value, char *copy, char **room)
{
    if (part.length == 0) {
        return HK_BYTES("");
    }
    if (lies_in(part, value)) {
        return hk_bytes(copy + (part.at - value.at), part.length);
    }
    char *at = memcpy(*room, part.at, part.length);
    *room += part.length;
    return hk_bytes(at, part.length);
}

hk_status_t hk_topic_new(const hk_alloc_t *alloc, hk_bytes_t value, const hk_url_t *url, bool reserved,
                         hk_topic_t **topic)
{
    size_t beside = 0;
    if (url != NULL) {
        beside += size_beside(url->origin, value);
        for (size_t part = 0; part < HK_URL_PARTS; part++) {
            beside += size_beside(url->parts[part], value);
        }
    }
    size_t size = sizeof(**topic) + value.length + beside;
    hk_topic_t *made = hk_alloc_new(alloc, size);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    char *copy = (char *)(made + 1), *room = copy + value.length;
    *made = (hk_topic_t){
        .node = {.key = {copy, value.length}},
        .references = 1,
        .is_url = url != NULL,
        .reserved = reserved,
        .bytes = size + HK_TOPIC_MATCHES * sizeof(hk_topic_match_t),
        .beside = beside,
        .alloc = alloc,
    };
    if (value.length > 0) {
        memcpy(copy, value.at, value.length);
    }
    if (url != NULL) {
        made->url.origin = placed(url->origin, value, copy, &room);
        for (size_t part = 0; part < HK_URL_PARTS; part++) {
            made->url.parts[part] = placed(url->parts[part], value, copy, &room);
        }
    }
    *topic = made;
    return HK_OK;
}

hk_topic_t *hk_topic_retain(hk_topic_t *topic)
{
    topic->references++;
    return topic;
}

void hk_topic_release(hk_topic_t *topic)
{
    if (topic == NULL || --topic->references > 0) {
        return;
    }
    hk_alloc_free(topic->alloc, topic->matches);
    hk_alloc_free(topic->alloc, topic);
}
