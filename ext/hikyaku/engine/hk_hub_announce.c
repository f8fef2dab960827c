#include "hk_hub_state.h"

/* "urn:uuid:…" and the same percent-encoded (RFC 6570, section 3.2.2). */
typedef struct names {
    char plain[HK_SUBSCRIBER_ID_BYTES];
    char encoded[HK_SUBSCRIBER_ID_BYTES + 4];
} names_t;

static void name(const hk_hub_t *hub, uint64_t serial, names_t *names)
{
    hk_hub_id_of(hub, serial, names->plain);
    memcpy(names->encoded, "urn%3Auuid%3A", 13);
    memcpy(names->encoded + 13, names->plain + 9, HK_SUBSCRIBER_ID_BYTES - 9);
}

typedef struct texts {
    hk_bytes_t topic, path, document;
} texts_t;

enum { PIECES = 11 };

/* Writes topic, path and document one behind the other. */
static hk_status_t write_texts(hk_buf_t *out, const hk_announcement_t *by, const names_t *names, bool active,
                               texts_t *texts)
{
    hk_bytes_t plain = hk_bytes(names->plain, sizeof(names->plain));
    hk_bytes_t encoded = hk_bytes(names->encoded, sizeof(names->encoded));
    const hk_bytes_t pieces[PIECES] = {
        by->topic_head, encoded,      by->path_head, encoded,      by->parts[0],
        encoded,        by->parts[1], plain,         by->parts[2], active ? HK_BYTES("true") : HK_BYTES("false"),
        by->parts[3],
    };
    hk_buf_clear(out);
    for (size_t i = 0; i < PIECES; i++) {
        if (hk_buf_append(out, pieces[i]) != HK_OK) {
            return HK_NO_MEMORY;
        }
    }
    hk_bytes_t all = hk_buf_bytes(out);
    texts->topic = hk_bytes(all.at, by->topic_head.length + encoded.length);
    texts->path = hk_bytes(all.at + texts->topic.length, by->path_head.length + encoded.length);
    size_t before = texts->topic.length + texts->path.length;
    texts->document = hk_bytes(all.at + before, all.length - before);
    return HK_OK;
}

static void publish(hk_hub_t *hub, const hk_announcement_t *by, const texts_t *texts, int64_t now)
{
    hk_url_t url = hub->home->url;
    url.parts[HK_URL_PATHNAME] = texts->path;
    url.parts[HK_URL_SEARCH] = url.parts[HK_URL_HASH] = HK_BYTES("");
    hk_topic_t *topic;
    if (hk_topic_new(hub->alloc, texts->topic, &url, true, &topic) != HK_OK) {
        return;
    }
    hk_log_update_t update = {.topics = &topic,
                              .topic_count = 1,
                              .data = texts->document,
                              .type = by->type,
                              .retry_ms = -1,
                              .is_private = true};
    (void)hk_hub_publish(hub, &update, now, NULL);
    hk_topic_release(topic);
}

void hk_hub_announce(hk_hub_t *hub, const hk_grant_t *grant, const bool *stays, uint64_t serial, bool active,
                     int64_t now)
{
    if (!hub->announces || hub->shut_down) {
        return;
    }
    names_t names;
    name(hub, serial, &names);
    for (size_t i = 0; i < grant->subscription_count; i++) {
        const hk_grant_subscription_t *subscription = &grant->subscriptions[i];
        texts_t texts;
        if (subscription->announced && (stays == NULL || !stays[i]) &&
            write_texts(&hub->scratch, &subscription->announcement, &names, active, &texts) == HK_OK) {
            publish(hub, &subscription->announcement, &texts, now);
        }
    }
}
