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

/* The topic of an announcement, or NULL. */
static hk_topic_t *topic_of(hk_hub_t *hub, const texts_t *texts)
{
    hk_url_t url = hub->home->url;
    url.parts[HK_URL_PATHNAME] = texts->path;
    url.parts[HK_URL_SEARCH] = url.parts[HK_URL_HASH] = HK_BYTES("");
    hk_topic_t *topic;
    return hk_topic_new(hub->alloc, texts->topic, &url, true, &topic) == HK_OK ? topic : NULL;
}

static void publish(hk_hub_t *hub, const hk_announcement_t *by, hk_bytes_t document, hk_topic_t *topic, int64_t now)
{
    hk_log_update_t update = {
        .topics = &topic, .topic_count = 1, .data = document, .type = by->type, .retry_ms = -1, .is_private = true};
    (void)hk_hub_publish(hub, &update, now, NULL);
}

/* -- What waits ---------------------------------------------------------------------------------------------------- */

/* What saying something takes beside the steps of programs. */
enum { STEPS_OF_ONE = 1024 };

/* Behind it lies of each subscription whether nothing is said of it, if of any. */
typedef struct untold {
    hk_list_t link;
    hk_map_node_t node; /* while `droppable`: under the subscriber's number */
    hk_grant_t *grant;
    uint64_t serial;
    const bool *stays; /* or NULL */
    uint32_t next;     /* the subscription that is said next */
    bool active, droppable;
} untold_t;

static hk_bytes_t key_of(const uint64_t *serial)
{
    return hk_bytes((const char *)serial, sizeof(*serial));
}

static void keep(hk_hub_t *hub, untold_t *untold)
{
    if (untold->droppable) {
        hk_map_remove(&hub->coming, &untold->node);
        untold->droppable = false;
    }
}

static void drop(hk_hub_t *hub, untold_t *untold)
{
    keep(hub, untold);
    hk_list_remove(&untold->link);
    hub->untold_count--;
    hk_grant_release(untold->grant);
    hk_alloc_free(hub->alloc, untold);
}

/* Whoever goes before it was said that it came, of that nothing is said: so there never waits more than two words for
 * each who may be there, however often somebody comes and goes. */
static bool drop_coming(hk_hub_t *hub, uint64_t serial, bool goes)
{
    hk_map_node_t *node = hk_map_find(&hub->coming, key_of(&serial));
    untold_t *coming = node != NULL ? HK_OWNER(node, untold_t, node) : NULL;
    if (coming != NULL && goes) {
        drop(hub, coming);
    } else if (coming != NULL) {
        keep(hub, coming);
    }
    return coming != NULL && goes;
}

static void wait(hk_hub_t *hub, const untold_t *untold)
{
    size_t count = untold->stays != NULL ? untold->grant->subscription_count : 0;
    untold_t *made = hk_alloc_new(hub->alloc, sizeof(*made) + count);
    if (made == NULL) {
        return;
    }
    *made = *untold;
    if (untold->stays != NULL) {
        bool *stays = (bool *)(made + 1);
        memcpy(stays, untold->stays, count * sizeof(*stays));
        made->stays = stays;
    }
    made->droppable = made->active && made->stays == NULL && made->next == 0 &&
                      hk_map_add(&hub->coming, &made->node, key_of(&made->serial)) == HK_OK;
    hk_grant_retain(made->grant);
    hk_list_append(&hub->untold, &made->link);
    hub->untold_count++;
}

/* -- Saying -------------------------------------------------------------------------------------------------------- */

/* Of which subscription something is to be said next. False: of none. */
static bool find_next(untold_t *untold)
{
    const hk_grant_t *grant = untold->grant;
    while (untold->next < grant->subscription_count &&
           (!grant->subscriptions[untold->next].announced || (untold->stays != NULL && untold->stays[untold->next]))) {
        untold->next++;
    }
    return untold->next < grant->subscription_count;
}

/* Finds out whom a topic concerns, in pieces if that takes long. False: the allowance is used up. */
static bool look_at(hk_hub_t *hub, hk_topic_t *topic, bool waits)
{
    uint64_t steps = hk_index_steps(hub->index, topic);
    if (hub->survey.topic == NULL && steps <= hub->allowance) {
        hub->allowance -= steps;
        return true;
    }
    if (!waits || (hub->survey.topic == NULL && hk_index_survey_begin(hub->index, topic, &hub->survey) != HK_OK)) {
        return false;
    }
    return hk_index_survey_step(hub->index, &hub->survey, &hub->allowance);
}

/* Says what is next. False: not now. */
static bool say(hk_hub_t *hub, untold_t *untold, bool waits, int64_t now)
{
    const hk_announcement_t *by = &untold->grant->subscriptions[untold->next].announcement;
    names_t names;
    texts_t texts;
    name(hub, untold->serial, &names);
    hk_topic_t *topic = NULL;
    if (write_texts(&hub->scratch, by, &names, untold->active, &texts) == HK_OK) {
        topic = hub->survey.topic != NULL && waits ? hk_topic_retain(hub->survey.topic) : topic_of(hub, &texts);
    }
    bool known = topic == NULL || look_at(hub, topic, waits);
    if (known && topic != NULL) {
        publish(hub, by, texts.document, topic, now);
    }
    if (known && waits) {
        hk_hub_stop_looking(&hub->survey);
    }
    untold->next += known;
    hk_topic_release(topic);
    return known;
}

void hk_hub_tell(hk_hub_t *hub, int64_t now)
{
    hub->allowance = HK_HUB_STEPS;
    while (hub->allowance > 0 && !hk_list_empty(&hub->untold)) {
        untold_t *untold = HK_OWNER(hk_list_first(&hub->untold), untold_t, link);
        keep(hub, untold);
        if (!find_next(untold)) {
            drop(hub, untold);
        } else if (!say(hub, untold, true, now)) {
            return;
        }
        hub->allowance -= hub->allowance < STEPS_OF_ONE ? hub->allowance : STEPS_OF_ONE;
    }
}

void hk_hub_keep_silent(hk_hub_t *hub)
{
    hk_hub_stop_looking(&hub->survey);
    while (!hk_list_empty(&hub->untold)) {
        drop(hub, HK_OWNER(hk_list_first(&hub->untold), untold_t, link));
    }
}

void hk_hub_announce(hk_hub_t *hub, hk_grant_t *grant, const bool *stays, uint64_t serial, bool active, int64_t now)
{
    if (!hub->announces || hub->shut_down || drop_coming(hub, serial, !active && stays == NULL)) {
        return;
    }
    untold_t untold = {.grant = grant, .serial = serial, .stays = stays, .active = active};
    bool told = hk_list_empty(&hub->untold);
    while (find_next(&untold) && told) {
        told = say(hub, &untold, false, now);
    }
    if (find_next(&untold)) {
        wait(hub, &untold);
    }
}
