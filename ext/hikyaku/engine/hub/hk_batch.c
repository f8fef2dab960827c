#include "hk_batch.h"

bool hk_batch_gather(hk_batch_t *batch, const hk_batch_source_t *source, const hk_subscriber_t *subscriber)
{
    const hk_feed_t *feed = hk_subscriber_feed(subscriber);
    hk_position_t cursor = subscriber->cursor;
    batch->feed = NULL;
    if (!hk_feed_covers(feed, cursor)) {
        return false;
    }
    hk_position_t first = hk_feed_after(feed, cursor);
    if (first < hk_log_first(source->log)) {
        return false;
    }
    *batch = (hk_batch_t){.feed = feed, .after = cursor, .first = first, .to = cursor, .newest = feed->newest};
    if (first == HK_POSITION_NONE) {
        batch->first = cursor;
        return true;
    }
    batch->after = hk_feed_until(feed, cursor);
    for (hk_position_t at = first; at != HK_POSITION_NONE; at = hk_feed_after(feed, at)) {
        hk_record_t *record = hk_log_at(source->log, at);
        if (record->is_private) {
            batch->grant = subscriber->grant;
        }
        if (hk_grant_admits(subscriber->grant, source->space, record) &&
            !hk_frames_add(&batch->frames, record->frame, source->together, source->max_bytes)) {
            break;
        }
        batch->to = at;
    }
    return true;
}
