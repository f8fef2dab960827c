#include "hk_hub_state.h"

/* Streams whose events name the matchers that selected them: fields before those of the event, which are as all others
 * have them. */

static bool feed_selects(hk_hub_t *hub, const hk_feed_t *feed, const hk_record_t *record)
{
    if (hk_feed_covers(feed, record->position - 1)) {
        return hk_feed_after(feed, record->position - 1) == record->position;
    }
    for (size_t i = 0; i < record->topic_count; i++) {
        if (hk_matcher_match(hk_feed_matcher(feed), &hub->space, record->topics[i])) {
            return true;
        }
    }
    return false;
}

static bool is_for(hk_hub_t *hub, const hk_subscriber_t *subscriber, size_t subscription, const hk_record_t *record)
{
    const hk_replay_filter_t *filter = hk_subscriber_restriction(subscriber);
    return (filter == NULL || filter->beginnings[subscription].from < record->position) &&
           feed_selects(hub, subscriber->subscriptions[subscription].feed, record);
}

/* As the parameters are called that ask for it. */
static hk_bytes_t field_of(const hk_matcher_t *matcher)
{
    if (hk_bytes_equal(matcher->type, HK_BYTES("exact"))) {
        return HK_BYTES("match: ");
    }
    return hk_bytes_equal(matcher->type, HK_BYTES("urlpattern")) ? HK_BYTES("match_urlpattern: ") : HK_BYTES("topic: ");
}

hk_status_t hk_hub_name(const hk_matcher_t *matcher, hk_buf_t *names)
{
    hk_bytes_t field = field_of(matcher);
    hk_status_t status = hk_buf_reserve(names, field.length + matcher->pattern.length + 1);
    if (status == HK_OK) {
        (void)hk_buf_append(names, field);
        (void)hk_buf_append(names, matcher->pattern);
        (void)hk_buf_append(names, HK_BYTES("\n"));
    }
    return status;
}

hk_status_t hk_hub_write_names(hk_hub_t *hub, const hk_subscriber_t *subscriber, const hk_record_t *record,
                               hk_buf_t *names)
{
    hk_status_t status = HK_OK;
    hk_buf_clear(names);
    for (size_t i = 0; status == HK_OK && record->topic_count > 0 && i < subscriber->subscription_count; i++) {
        if (is_for(hub, subscriber, i, record)) {
            status = hk_hub_name(hk_feed_matcher(subscriber->subscriptions[i].feed), names);
        }
    }
    return status;
}
