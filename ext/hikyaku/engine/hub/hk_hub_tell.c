#include "hk_hub_state.h"

/* What somebody is told beside the log, and that a stream ends. */

static bool may_be_told(const hk_subscriber_t *subscriber)
{
    return !hk_subscriber_is(subscriber, HK_SUBSCRIBER_BLOCKED | HK_SUBSCRIBER_CONTROL);
}

/* What the members of a feed are told: those whose events name matchers, and the others. */
typedef struct news {
    hk_said_t said, named;
} news_t;

/* No stream names matchers unless there is a coding, and none of another form does. */
static hk_status_t encode(hk_hub_t *hub, const hk_feed_t *feed, unsigned variant, hk_bytes_t frame, news_t *news)
{
    hk_buf_t *named = &hub->scratch;
    hk_status_t status = hk_hub_encode(hub, variant, frame, &news->said);
    if (status != HK_OK || hub->coding == NULL || (variant & HK_VARIANT_FORM) != 0) {
        return status;
    }
    hk_buf_clear(named);
    status = hk_hub_name(hk_feed_matcher(feed), named);
    if (status == HK_OK) {
        status = hk_buf_append(named, frame);
    }
    return status == HK_OK ? hk_hub_encode(hub, variant, hk_buf_bytes(named), &news->named) : status;
}

static void tell(hk_hub_t *hub, const hk_feed_t *feed, const news_t *news)
{
    for (size_t i = 0; i < feed->member_count; i++) {
        hk_subscriber_t *subscriber = feed->members[i].subscriber;
        if (may_be_told(subscriber)) {
            hk_hub_share(hub, subscriber, hk_subscriber_names(subscriber) ? &news->named : &news->said);
            hk_hub_make_ready(hub, subscriber);
        }
    }
}

hk_status_t hk_hub_notify(hk_hub_t *hub, hk_bytes_t topic, hk_bytes_t frame, size_t *count)
{
    hk_feed_t *feeds[HK_VARIANTS];
    news_t news[HK_VARIANTS] = {0};
    hk_status_t status = hk_hub_feeds(hub, HK_BYTES("exact"), topic, feeds);
    for (unsigned i = 0; status == HK_OK && i < HK_VARIANTS; i++) {
        if (feeds[i] != NULL) {
            status = encode(hub, feeds[i], i, frame, &news[i]);
        }
    }
    size_t members = 0;
    for (unsigned i = 0; i < HK_VARIANTS; i++) {
        if (status == HK_OK && feeds[i] != NULL) {
            members += feeds[i]->member_count;
            tell(hub, feeds[i], &news[i]);
        }
        hk_control_release(hub->alloc, news[i].said.control);
        hk_control_release(hub->alloc, news[i].named.control);
    }
    if (status == HK_OK && count != NULL) {
        *count = members;
    }
    return status;
}

bool hk_hub_watched(hk_hub_t *hub, hk_bytes_t topic)
{
    hk_feed_t *feeds[HK_VARIANTS];
    return hk_hub_feeds(hub, HK_BYTES("exact"), topic, feeds) == HK_OK && hk_hub_first_feed(feeds) != NULL;
}

hk_status_t hk_hub_control(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t bytes)
{
    if (bytes.length == 0) {
        return HK_OK;
    }
    bool beaten = hk_bytes_equal(bytes, HK_SSE_HEARTBEAT) && hk_hub_beat(hub, subscriber);
    if (!beaten && hk_hub_say(hub, subscriber, bytes) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_hub_make_ready(hub, subscriber);
    return HK_OK;
}

void hk_hub_writable(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_subscriber_clear(subscriber, HK_SUBSCRIBER_BLOCKED);
    hk_hub_make_ready(hub, subscriber);
}

void hk_hub_close(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_closing_t closing)
{
    if (closing == HK_CLOSING_NOT || hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING)) {
        return;
    }
    subscriber->closing = (uint8_t)closing;
    hk_subscriber_set(subscriber, HK_SUBSCRIBER_CLOSING);
    hub->overruns += closing == HK_CLOSING_OVERRUN;
    hk_hub_make_ready(hub, subscriber);
}

size_t hk_hub_disconnect(hk_hub_t *hub, hk_bytes_t subject)
{
    size_t count = 0;
    if (subject.length == 0) {
        return 0;
    }
    for (hk_subscriber_t *subscriber = NULL; (subscriber = hk_roster_next(&hub->roster, subscriber)) != NULL;) {
        if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING) &&
            hk_bytes_equal(subscriber->grant->subject, subject)) {
            hk_hub_close(hub, subscriber, HK_CLOSING_DISCONNECTED);
            count++;
        }
    }
    return count;
}

static bool holds(const uint64_t *tags, size_t count, uint64_t tag)
{
    while (count > 0) {
        size_t middle = count / 2;
        if (tags[middle] == tag) {
            return true;
        }
        bool above = tags[middle] < tag;
        tags += above ? middle + 1 : 0;
        count = above ? count - middle - 1 : middle;
    }
    return false;
}

size_t hk_hub_expel(hk_hub_t *hub, const uint64_t *tags, size_t count)
{
    size_t marked = 0;
    if (count == 0) {
        return 0;
    }
    for (hk_subscriber_t *subscriber = NULL; (subscriber = hk_roster_next(&hub->roster, subscriber)) != NULL;) {
        if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING) && holds(tags, count, subscriber->grant->tag)) {
            hk_hub_close(hub, subscriber, HK_CLOSING_DISCONNECTED);
            marked++;
        }
    }
    return marked;
}

void hk_hub_shutdown(hk_hub_t *hub)
{
    hub->shut_down = true;
    hk_hub_keep_silent(hub);
    for (hk_subscriber_t *subscriber = NULL; (subscriber = hk_roster_next(&hub->roster, subscriber)) != NULL;) {
        hk_hub_close(hub, subscriber, HK_CLOSING_SHUTDOWN);
    }
}
