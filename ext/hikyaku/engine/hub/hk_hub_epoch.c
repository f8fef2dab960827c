#include "hk_hub_state.h"

/* Who is in step with a feed's epoch, and what they are handed. */

/* Whose epoch is of the least use; NULL: all are in use right now. */
static hk_feed_t *smallest_owner(const hk_hub_t *hub)
{
    const hk_coding_t *coding = hub->coding;
    hk_feed_t *smallest = NULL;
    for (uint32_t i = 0; i < coding->epoch_feeds; i++) {
        hk_feed_t *owner = coding->owners[i];
        bool taken = hub->taken.subscriber != NULL && hub->taken.epoch == owner->epoch->number;
        if (!taken && (smallest == NULL || owner->member_count < smallest->member_count)) {
            smallest = owner;
        }
    }
    return smallest;
}

/* Of feeds with an epoch that with the fewest members loses it to one with twice as many. It is asked for each time
 * that these have doubled. */
static bool has_room(hk_hub_t *hub, uint32_t members)
{
    if (hub->coding->epoch_feeds < HK_MOST_EPOCHS) {
        return true;
    }
    hk_feed_t *smallest = (members & (members - 1)) == 0 ? smallest_owner(hub) : NULL;
    if (smallest == NULL || smallest->member_count > members / 2) {
        return false;
    }
    hk_hub_drop_epoch(hub, smallest);
    return true;
}

void hk_hub_add_epoch(hk_hub_t *hub, hk_feed_t *feed)
{
    hk_coding_t *coding = hub->coding;
    if (feed->epoch == NULL && has_room(hub, feed->member_count) &&
        hk_epoch_new(hub->alloc, coding->epochs + 1, hk_log_head(hub->log), &feed->epoch) == HK_OK) {
        coding->epochs++;
        coding->owners[coding->epoch_feeds++] = feed;
    }
}

void hk_hub_drop_epoch(hk_hub_t *hub, hk_feed_t *feed)
{
    hk_coding_t *coding = hub->coding;
    if (feed->epoch == NULL) {
        return;
    }
    uint32_t place = 0;
    while (coding->owners[place] != feed) {
        place++;
    }
    coding->owners[place] = coding->owners[--coding->epoch_feeds];
    hk_epoch_free(feed->epoch);
    feed->epoch = NULL;
}

static void begin(hk_hub_t *hub, hk_epoch_t *epoch, hk_position_t after)
{
    hk_epoch_begin(epoch, ++hub->coding->epochs, after);
}

/* Private updates are not for those who share an epoch. */
static void add(hk_hub_t *hub, hk_feed_t *feed, const hk_record_t *record)
{
    hk_epoch_t *epoch = feed->epoch;
    const hk_rendered_t *rendered;
    if (record->is_private) {
        epoch->at = record->position;
        return;
    }
    unsigned form = feed->variant & HK_VARIANT_FORM;
    hk_bytes_t event = record->frame;
    hk_gzip_sum_t sum;
    hk_status_t status = HK_OK;
    if (form != 0) {
        status = hk_hub_render(hub, form, record, &rendered);
        event = status == HK_OK ? hk_buf_bytes(&rendered->bytes) : event;
    }
    sum = hk_gzip_sum(event);
    if (status != HK_OK || hk_epoch_add(epoch, record->position, event, sum, hk_gzip_behind(sum.length)) != HK_OK) {
        begin(hub, epoch, record->position);
    }
}

void hk_hub_advance(hk_hub_t *hub, hk_feed_t *feed)
{
    hk_epoch_t *epoch = feed->epoch;
    if (feed->newest <= epoch->at) {
        return;
    }
    bool over = hk_epoch_over(epoch);
    if (!hk_feed_covers(feed, epoch->at)) {
        begin(hub, epoch, feed->since - 1);
    } else if (over) {
        begin(hub, epoch, epoch->at);
    } else if (hk_epoch_full(epoch)) {
        hk_epoch_forget(epoch);
    }
    for (hk_position_t at; !hk_epoch_full(epoch) && (at = hk_feed_after(feed, epoch->at)) != HK_POSITION_NONE;) {
        const hk_record_t *record = hk_log_at(hub->log, at);
        if (record == NULL) {
            begin(hub, epoch, at);
        } else {
            add(hub, feed, record);
        }
    }
}

static bool has_past(const hk_subscriber_t *subscriber)
{
    const hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    return filter != NULL && (filter->ranges != NULL || subscriber->cursor < filter->ends);
}

/* Where what it receives next depends on its feed, or its group's, alone. */
hk_epoch_t *hk_hub_epoch_of(hk_subscriber_t *subscriber)
{
    const hk_membership_t *membership = hk_subscriber_membership(subscriber);
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CATCHING_UP) || subscriber->grant->read_count > 0 ||
        has_past(subscriber)) {
        return NULL;
    }
    if (membership != NULL) {
        return membership->group != NULL ? membership->group->feed->epoch : NULL;
    }
    return subscriber->subscription_count == 1 ? hk_subscriber_feed(subscriber)->epoch : NULL;
}

hk_taken_t hk_hub_rest_of_epoch(const hk_epoch_t *epoch, uint32_t place)
{
    hk_bytes_t bytes = hk_epoch_from(epoch, place);
    return (hk_taken_t){.at = bytes.at,
                        .length = bytes.length,
                        .to = epoch->at,
                        .count = epoch->count - place,
                        .sum = epoch->sum,
                        .epoch = epoch->number};
}

hk_status_t hk_hub_take_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes)
{
    const hk_epoch_t *epoch = hk_hub_epoch_of(subscriber);
    uint32_t place;
    if (epoch == NULL) {
        return hk_hub_gather_coded(hub, subscriber, max_bytes, HK_POSITION_NONE, bytes);
    }
    /* What the feed has beyond the epoch, all are given when it begins the next. */
    if (subscriber->cursor >= epoch->at) {
        *bytes = HK_BYTES("");
        return HK_OK;
    }
    if (!hk_epoch_place(epoch, hk_subscriber_coded(subscriber)->epoch, subscriber->cursor, &place)) {
        return hk_hub_gather_coded(hub, subscriber, max_bytes, epoch->at, bytes);
    }
    *bytes = HK_BYTES("");
    if (place == epoch->count) {
        subscriber->cursor = epoch->at;
        return HK_OK;
    }
    hub->taken = hk_hub_rest_of_epoch(epoch, place);
    hub->taken.subscriber = subscriber;
    *bytes = hk_bytes(hub->taken.at, hub->taken.length);
    return HK_OK;
}
