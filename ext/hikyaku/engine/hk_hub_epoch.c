#include "hk_hub_state.h"

/* Who is in step with a feed's epoch, and what they are handed. */

/* Contexts there may be: a quarter of a MiB each. */
enum { MOST_EPOCHS = 64 };

void hk_hub_add_epoch(hk_hub_t *hub, hk_feed_t *feed)
{
    hk_coding_t *coding = hub->coding;
    if (coding->epoch_feeds < MOST_EPOCHS &&
        hk_epoch_new(hub->alloc, coding->epochs + 1, hk_log_head(hub->log), &feed->epoch) == HK_OK) {
        coding->epochs++;
        coding->epoch_feeds++;
    }
}

void hk_hub_drop_epoch(hk_hub_t *hub, hk_feed_t *feed)
{
    if (feed->epoch != NULL) {
        hub->coding->epoch_feeds--;
        hk_epoch_free(feed->epoch);
        feed->epoch = NULL;
    }
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
    if (!hk_feed_covers(feed, epoch->at)) {
        begin(hub, epoch, feed->since - 1);
    } else if (hk_epoch_full(epoch)) {
        begin(hub, epoch, epoch->at);
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

/* Whether what a subscriber receives next depends on its feed alone. */
static hk_epoch_t *epoch_of(hk_subscriber_t *subscriber)
{
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_MANY | HK_SUBSCRIBER_CATCHING_UP) ||
        subscriber->grant->read_count > 0) {
        return NULL;
    }
    return hk_subscriber_feed(subscriber)->epoch;
}

hk_status_t hk_hub_take_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes)
{
    const hk_epoch_t *epoch = epoch_of(subscriber);
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
    *bytes = hk_epoch_from(epoch, place);
    hub->taken = (hk_taken_t){.subscriber = subscriber,
                              .at = bytes->at,
                              .length = bytes->length,
                              .to = epoch->at,
                              .count = epoch->count - place,
                              .sum = epoch->entries[epoch->count - 1].sum,
                              .epoch = epoch->number};
    return HK_OK;
}
