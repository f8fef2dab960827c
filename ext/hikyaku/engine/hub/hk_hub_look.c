#include "hk_hub_state.h"

void hk_hub_each(hk_hub_t *hub, bool (*visit)(void *context, hk_subscriber_t *subscriber), void *context)
{
    hk_subscriber_t *subscriber = NULL;
    do {
        subscriber = hk_roster_next(&hub->roster, subscriber);
    } while (subscriber != NULL && visit(context, subscriber));
}

void hk_hub_each_of_matcher(hk_hub_t *hub, hk_bytes_t type, hk_bytes_t pattern,
                            bool (*visit)(void *context, hk_subscriber_t *subscriber), void *context)
{
    hk_feed_t *feeds[HK_VARIANTS];
    bool more = hk_hub_feeds(hub, type, pattern, feeds) == HK_OK;
    for (unsigned variant = 0; variant < HK_VARIANTS; variant++) {
        const hk_feed_t *feed = more ? feeds[variant] : NULL;
        for (size_t i = 0; more && feed != NULL && i < feed->member_count; i++) {
            more = visit(context, feed->members[i].subscriber);
        }
    }
}

hk_matcher_t *hk_hub_matcher(hk_hub_t *hub, hk_bytes_t type, hk_bytes_t pattern)
{
    hk_feed_t *feeds[HK_VARIANTS];
    if (hk_hub_feeds(hub, type, pattern, feeds) != HK_OK) {
        return NULL;
    }
    const hk_feed_t *feed = hk_hub_first_feed(feeds);
    return feed != NULL ? hk_feed_matcher(feed) : NULL;
}

hk_bytes_t hk_hub_last_event_id(const hk_hub_t *hub)
{
    const hk_record_t *record = hk_log_at(hub->log, hk_log_head(hub->log));
    return record != NULL ? record->id : HK_BYTES("");
}

void hk_hub_read_stats(const hk_hub_t *hub, hk_hub_stats_t *stats)
{
    *stats = (hk_hub_stats_t){
        .subscribers = hub->roster.count,
        .subscriptions = hub->subscriptions,
        .feeds = hk_hub_feed_count(hub),
        .publishes = hub->publishes,
        .deliveries = hub->deliveries,
        .delivered_bytes = hub->delivered_bytes,
        .history_bytes = hk_log_bytes(hub->log),
        .history_updates = hk_log_count(hub->log),
        .topics = hk_topics_count(hub->topics),
        .topic_bytes = hk_topics_bytes(hub->topics),
        .gaps = hub->gaps,
        .overruns = hub->overruns,
        .refused_total = hub->refused_total,
        .refused_address = hub->refused_address,
        .pattern_cost = hk_index_cost(hub->index),
        .refused_cost = hub->refused_cost,
    };
}

/* -- Lag ----------------------------------------------------------------------------------------------------------- */

/* Numbers are counted by DIGIT bits at a time, from the highest: that finds one of a rank without a place for all. */
enum { DIGIT = 10, DIGITS = 1 << DIGIT };

/* Who has received all that is for it is not behind, whatever was published to others. */
static uint64_t lag_of(const hk_subscriber_t *subscriber)
{
    hk_position_t newest = 0;
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        const hk_feed_t *feed = subscriber->subscriptions[i].feed;
        newest = feed->newest > newest ? feed->newest : newest;
    }
    return newest > subscriber->cursor ? newest - subscriber->cursor : 0;
}

static uint64_t greatest(const hk_hub_t *hub)
{
    uint64_t most = 0;
    for (const hk_subscriber_t *subscriber = NULL; (subscriber = hk_roster_next(&hub->roster, subscriber)) != NULL;) {
        uint64_t lag = lag_of(subscriber);
        most = lag > most ? lag : most;
    }
    return most;
}

/* The digit that the number of a rank has above `shift`, its higher digits being known; the rank becomes that among
 * those with the same digit. */
static uint64_t digit_of_rank(const hk_hub_t *hub, uint64_t higher, unsigned shift, size_t *rank)
{
    uint32_t counts[DIGITS] = {0};
    for (const hk_subscriber_t *subscriber = NULL; (subscriber = hk_roster_next(&hub->roster, subscriber)) != NULL;) {
        uint64_t lag = lag_of(subscriber) >> shift;
        if (lag >> DIGIT == higher) {
            counts[lag & (DIGITS - 1)]++;
        }
    }
    uint64_t digit = 0;
    while (*rank >= counts[digit]) {
        *rank -= counts[digit++];
    }
    return digit;
}

void hk_hub_read_lag(hk_hub_t *hub, uint64_t *slowest, uint64_t *p99)
{
    *slowest = *p99 = 0;
    if (hub->roster.count == 0) {
        return;
    }
    *slowest = greatest(hub);
    size_t rank = (hub->roster.count * 99 + 99) / 100 - 1;
    unsigned shift = 0;
    while (shift + DIGIT < 60 && *slowest >> (shift + DIGIT) > 0) {
        shift += DIGIT;
    }
    for (;; shift -= DIGIT) {
        *p99 = *p99 << DIGIT | digit_of_rank(hub, *p99, shift, &rank);
        if (shift == 0) {
            return;
        }
    }
}
