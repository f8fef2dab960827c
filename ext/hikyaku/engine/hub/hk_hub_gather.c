#include "hk_hub_state.h"

/* Finds what a subscriber receives next where the short way does not do: bytes for it alone, events in pieces, several
 * feeds, private records, positions before a feed's index, a ring that has passed it. */

/* SCAN_BUDGET  records that one taking looks at before others get their turn; with costly patterns fewer, as the hub's
 *              allowance says.
 * KEPT         bytes of an event that is kept for a reader who has a part of it when the ring drops it: no more than
 *              the kernel holds for the reader anyway. Of a larger one the rest is lost, and the stream with it. */
enum { SCAN_BUDGET = 256, KEPT = 64 * 1024 };

typedef struct search {
    hk_hub_t *hub;
    const hk_subscriber_t *subscriber;
    const hk_replay_filter_t *filter; /* that restricts it; or NULL */
    uint64_t budget;                  /* records that may still be looked at */
    uint64_t cost;                    /* of its matchers, for each byte of a topic */
    bool limited;                     /* by the hub's allowance */
    bool scans;                       /* stopped where patterns are still to be matched */
    hk_position_t reached;            /* when nothing is found: everything up to here is done with */
} search_t;

static search_t begin_search(hk_hub_t *hub, const hk_subscriber_t *subscriber, uint64_t budget)
{
    search_t search = {.hub = hub,
                       .subscriber = subscriber,
                       .filter = hk_subscriber_restriction(subscriber),
                       .budget = budget,
                       .limited = budget != UINT64_MAX};
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        search.cost += hk_feed_matcher(subscriber->subscriptions[i].feed)->cost;
    }
    return search;
}

/* From here on the feeds together know what it receives; before, the log must be scanned. */
static hk_position_t indexed_from(const search_t *search)
{
    const hk_subscriber_t *subscriber = search->subscriber;
    hk_position_t since = 1;
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        const hk_feed_t *feed = subscriber->subscriptions[i].feed;
        bool knows_all = search->filter != NULL && hk_feed_covers(feed, search->filter->beginnings[i].from);
        since = feed->since > since && !knows_all ? feed->since : since;
    }
    return since - 1;
}

static bool selects(const search_t *search, const hk_record_t *record)
{
    const hk_subscriber_t *subscriber = search->subscriber;
    if (record->topic_count == 0) {
        return true;
    }
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        const hk_matcher_t *matcher = hk_feed_matcher(subscriber->subscriptions[i].feed);
        if (search->filter != NULL && search->filter->beginnings[i].from >= record->position) {
            continue;
        }
        for (size_t j = 0; j < record->topic_count; j++) {
            if (hk_matcher_match(matcher, &search->hub->space, record->topics[j])) {
                return true;
            }
        }
    }
    return false;
}

/* Of what names its matchers, for all of them: those that stay begin where the stream went back from. */
static bool sent(const search_t *search, const hk_record_t *record)
{
    return (record->topic_count == 0 || !hk_subscriber_names(search->subscriber)) &&
           hk_replay_filter_sent(search->filter, &search->hub->space, record);
}

static bool admits(const search_t *search, const hk_record_t *record)
{
    return hk_grant_admits(search->subscriber->grant, &search->hub->space, record) &&
           (search->filter == NULL || !sent(search, record));
}

static hk_position_t nearest(const search_t *search, hk_position_t cursor)
{
    const hk_subscriber_t *subscriber = search->subscriber;
    hk_position_t best = HK_POSITION_NONE;
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        hk_position_t from = search->filter != NULL ? search->filter->beginnings[i].from : 0;
        hk_position_t position = hk_feed_after(subscriber->subscriptions[i].feed, cursor > from ? cursor : from);
        best = position < best ? position : best;
    }
    return best;
}

static hk_record_t *stop_at(search_t *search, hk_position_t position)
{
    search->reached = position;
    return NULL;
}

static bool spend(search_t *search)
{
    return search->budget > 0 && search->budget-- > 0;
}

/* As spend, where patterns are to be matched. */
static bool spend_on_scan(search_t *search)
{
    search->scans = search->cost > 0;
    return !(search->scans && search->limited && search->hub->scan_allowance == 0) && spend(search);
}

static void pay(const search_t *search, const hk_record_t *record)
{
    uint64_t *allowance = &search->hub->scan_allowance;
    for (size_t i = 0; search->cost > 0 && i < record->topic_count; i++) {
        uint64_t steps = search->cost * (hk_topic_value(record->topics[i]).length + 1);
        *allowance -= steps < *allowance ? steps : *allowance;
    }
}

/* The next record after the cursor that the subscriber receives; NULL: there is none, or the budget is used up. */
static hk_record_t *following(search_t *search, hk_position_t cursor)
{
    const hk_log_t *log = search->hub->log;
    hk_position_t head = hk_log_head(log), indexed = indexed_from(search);
    while (cursor < indexed && cursor < head) {
        if (!spend_on_scan(search)) {
            return stop_at(search, cursor);
        }
        hk_record_t *record = hk_log_at(log, ++cursor);
        if (record != NULL) {
            pay(search, record);
        }
        if (record != NULL && selects(search, record) && admits(search, record)) {
            return record;
        }
    }
    search->scans = false;
    for (hk_position_t at; (at = nearest(search, cursor)) != HK_POSITION_NONE; cursor = at) {
        if (!spend(search)) {
            return stop_at(search, cursor);
        }
        hk_record_t *record = hk_log_at(log, at);
        if (record != NULL && admits(search, record)) {
            return record;
        }
    }
    return stop_at(search, head);
}

/* -- Gaps ---------------------------------------------------------------------------------------------------------- */

/* Who has asked for all that is retained and has got nothing yet misses nothing of what it asked for. */
static bool is_before_oldest(const hk_subscriber_t *subscriber)
{
    return (subscriber->traits & HK_SUBSCRIBER_FROM_OLDEST) != 0 && subscriber->cursor == subscriber->began_at;
}

/* Whether the ring has dropped something that one of its matchers selects and that it was to receive. */
static bool loses(const hk_subscriber_t *subscriber, size_t subscription, hk_position_t oldest)
{
    const hk_feed_t *feed = subscriber->subscriptions[subscription].feed;
    hk_position_t from = hk_subscriber_beginning(subscriber, subscription).from, cursor = subscriber->cursor;
    if (from > cursor) {
        cursor = from;
    } else if (is_before_oldest(subscriber)) {
        return false;
    }
    return !hk_feed_covers(feed, cursor) || hk_feed_after(feed, cursor) < oldest;
}

hk_status_t hk_hub_say_gap(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_gap_t *gap, hk_position_t continues)
{
    hk_sse_event_t event;
    char id[HK_EVENT_ID_BYTES];
    hk_log_seal(hub->log, continues, id);
    hk_status_t status = hk_gap_end(gap, hk_bytes(id, sizeof(id)), &event);
    hk_buf_clear(&hub->gathered);
    if (status != HK_OK || hk_buf_reserve(&hub->gathered, hk_sse_size(&event)) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_buf_grew(&hub->gathered, hk_sse_write(&event, hk_buf_end(&hub->gathered)));
    return hk_hub_say(hub, subscriber, hk_buf_bytes(&hub->gathered));
}

static hk_status_t tell_of_loss(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_position_t oldest)
{
    hk_gap_t gap;
    char after[HK_EVENT_ID_BYTES];
    hk_log_seal(hub->log, subscriber->cursor, after);
    hk_status_t status = hk_gap_begin(&gap, &hub->scratch, HK_BYTES("overrun"), hk_bytes(after, sizeof(after)));
    for (size_t i = 0; status == HK_OK && i < subscriber->subscription_count; i++) {
        if (loses(subscriber, i, oldest)) {
            status = hk_gap_add(&gap, hk_feed_matcher(subscriber->subscriptions[i].feed));
        }
    }
    /* Behind what is pending: that may be the rest of something of which a part was written. */
    return status == HK_OK ? hk_hub_say_gap(hub, subscriber, &gap, oldest - 1) : status;
}

/* Tells a reader that the ring has passed it, and moves it on or closes it; who has not begun with the oldest that
 * there is begins where the ring begins now. */
static hk_status_t pass(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_position_t oldest = hk_log_first(hub->log);
    if (subscriber->cursor + 1 >= oldest) {
        return HK_OK;
    }
    bool lost = false, closes = false;
    for (size_t i = 0; i < subscriber->subscription_count; i++) {
        if (loses(subscriber, i, oldest)) {
            lost = true;
            closes = closes || hk_feed_matcher(subscriber->subscriptions[i].feed)->close_on_gap;
        }
    }
    if (!lost) {
        if (is_before_oldest(subscriber)) {
            subscriber->cursor = subscriber->began_at = oldest - 1;
        }
        return HK_OK;
    }
    if (closes) {
        hk_hub_close(hub, subscriber, HK_CLOSING_OVERRUN);
        return HK_OK;
    }
    hk_status_t status = tell_of_loss(hub, subscriber, oldest);
    if (status == HK_OK) {
        subscriber->cursor = oldest - 1;
        hub->gaps++;
    }
    return status;
}

/* -- Taking -------------------------------------------------------------------------------------------------------- */

static hk_bytes_t hand(hk_hub_t *hub, const hk_taken_t *taken, hk_bytes_t bytes)
{
    hub->taken = *taken;
    hub->taken.length = bytes.length;
    return bytes;
}

/* The rest of an event; empty: it is lost, and the stream with it. */
static hk_bytes_t take_rest(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    const hk_record_t *record = subscriber->partial;
    if (record == NULL) {
        record = hk_log_at(hub->log, subscriber->partial_at);
    }
    if (record == NULL) {
        hk_hub_close(hub, subscriber, HK_CLOSING_OVERRUN);
        return HK_BYTES("");
    }
    hk_hub_make_ready(hub, subscriber);
    hk_taken_t taken = {.subscriber = subscriber, .to = hk_subscriber_position(subscriber), .count = 1};
    size_t offset = subscriber->offset;
    return hand(hub, &taken, hk_bytes(record->frame.at + offset, record->frame.length - offset));
}

/* Nothing is left of what it asked for. */
static hk_bytes_t take_word(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_subscriber_clear(subscriber, HK_SUBSCRIBER_CATCHING_UP);
    hk_subscriber_share(subscriber, hub->word);
    hk_taken_t taken = {.subscriber = subscriber, .control = true};
    return hand(hub, &taken, hk_subscriber_control(subscriber));
}

/* Forgets what it has passed of its filter, and lets it go the short way again if that does for it. */
static void leave_past_behind(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    if (filter != NULL) {
        hk_replay_filter_pass(hub->alloc, filter, subscriber->cursor);
        if (subscriber->subscription_count == 1 && subscriber->cursor >= filter->ends) {
            hk_subscriber_clear(subscriber, HK_SUBSCRIBER_MANY);
        }
    }
}

/* More may be pending, or it is to be told that there is no more. */
static void go_on(const search_t *search, hk_subscriber_t *subscriber, const hk_record_t *record)
{
    if (record == NULL && search->scans) {
        hk_hub_defer(search->hub, subscriber);
    } else {
        hk_hub_make_ready(search->hub, subscriber);
    }
}

static hk_bytes_t gather(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes)
{
    leave_past_behind(hub, subscriber);
    search_t search = begin_search(hub, subscriber, SCAN_BUDGET);
    hk_frames_t frames = {0};
    hk_position_t to = subscriber->cursor;
    hk_record_t *record;
    while ((record = following(&search, to)) != NULL &&
           hk_frames_add(&frames, record->frame, &hub->gathered, max_bytes)) {
        to = record->position;
    }
    if (record == NULL) {
        to = search.reached;
    }
    bool pending = record != NULL || to < hk_log_head(hub->log);
    bool to_be_told = hk_subscriber_is(subscriber, HK_SUBSCRIBER_CATCHING_UP);
    if (pending || to_be_told) {
        go_on(&search, subscriber, record);
    }
    if (frames.count == 0) {
        subscriber->cursor = to;
        return to_be_told && !pending ? take_word(hub, subscriber) : HK_BYTES("");
    }
    hk_taken_t taken = {.subscriber = subscriber, .to = to, .count = frames.count};
    return hand(hub, &taken, frames.bytes);
}

/* As take_word, in its form and coding. */
static hk_status_t say_word(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    if (hk_hub_say(hub, subscriber, HK_SSE_CAUGHT_UP) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_subscriber_clear(subscriber, HK_SUBSCRIBER_CATCHING_UP);
    return HK_OK;
}

/* Appends what stands before an event for one subscriber alone. HK_OK or HK_NO_MEMORY. */
static hk_status_t append_names(hk_hub_t *hub, const hk_record_t *record, hk_taken_t *taken, hk_buf_t *out)
{
    hk_buf_t *names = &hub->coding->packed;
    hk_status_t status = hk_hub_write_names(hub, taken->subscriber, record, names);
    hk_bytes_t bytes = hk_buf_bytes(names);
    if (status != HK_OK || bytes.length == 0) {
        return status;
    }
    if (hk_subscriber_coded(taken->subscriber)->coding != HK_STREAM_GZIP) {
        return hk_buf_append(out, bytes);
    }
    hk_gzip_sum_t sum = hk_gzip_sum(bytes);
    taken->sum = hk_gzip_join(taken->sum, sum, hk_gzip_behind(sum.length));
    return hk_gzip_stored(bytes, out);
}

/* Appends a record as the subscriber receives it. False, and nothing was done: it would be too much together, or there
 * is no memory. */
static bool append_record(hk_hub_t *hub, unsigned variant, const hk_record_t *record, size_t max_bytes,
                          hk_taken_t *taken)
{
    hk_buf_t *out = &hub->coding->together;
    size_t before = out->length;
    hk_gzip_sum_t sum = taken->sum;
    const hk_rendered_t *rendered;
    hk_status_t status = hk_hub_render(hub, variant, record, &rendered);
    if (status == HK_OK && hk_subscriber_names(taken->subscriber)) {
        status = append_names(hub, record, taken, out);
    }
    if (status != HK_OK || (taken->count > 0 && out->length + rendered->bytes.length > max_bytes) ||
        hk_buf_append(out, hk_buf_bytes(&rendered->bytes)) != HK_OK) {
        out->length = before;
        taken->sum = sum;
        return false;
    }
    taken->sum = hk_gzip_join(taken->sum, rendered->sum, rendered->behind);
    taken->to = record->position;
    taken->count++;
    return true;
}

/* Puts the next records behind one another. The one at which it stopped, or NULL: there are no more for now. */
static hk_record_t *append_coded(search_t *search, hk_taken_t *taken, size_t max_bytes, hk_position_t until)
{
    hk_hub_t *hub = search->hub;
    unsigned variant = hk_hub_variant(taken->subscriber, taken->subscriber->grant);
    hk_record_t *record;
    hk_buf_clear(&hub->coding->together);
    while ((record = following(search, taken->to)) != NULL && record->position <= until &&
           append_record(hub, variant, record, max_bytes, taken)) {
    }
    return record;
}

hk_status_t hk_hub_gather_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_position_t until,
                                hk_bytes_t *bytes)
{
    leave_past_behind(hub, subscriber);
    search_t search = begin_search(hub, subscriber, SCAN_BUDGET);
    hk_taken_t taken = {.subscriber = subscriber, .to = subscriber->cursor};
    const hk_record_t *record = append_coded(&search, &taken, max_bytes, until);
    bool failed = record != NULL && record->position <= until && taken.count == 0;
    hk_position_t reached = record == NULL ? search.reached : record->position > until ? until : taken.to;
    hk_position_t last = until < hk_log_head(hub->log) ? until : hk_log_head(hub->log);
    taken.to = reached < until ? reached : until;
    bool pending = taken.to < last, to_be_told = hk_subscriber_is(subscriber, HK_SUBSCRIBER_CATCHING_UP);
    if (pending || to_be_told) {
        go_on(&search, subscriber, record);
    }
    *bytes = HK_BYTES("");
    if (failed) {
        return HK_NO_MEMORY;
    }
    if (taken.count == 0) {
        subscriber->cursor = taken.to;
        return to_be_told && !pending ? say_word(hub, subscriber) : HK_OK;
    }
    *bytes = hand(hub, &taken, hk_buf_bytes(&hub->coding->together));
    hub->taken.at = bytes->at;
    return HK_OK;
}

hk_status_t hk_hub_take_slowly(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes)
{
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_WITHIN)) {
        *bytes = take_rest(hub, subscriber);
        return HK_OK;
    }
    if (pass(hub, subscriber) != HK_OK) {
        hk_hub_make_ready(hub, subscriber);
        return HK_NO_MEMORY;
    }
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CLOSING)) {
        *bytes = HK_BYTES("");
    } else if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CONTROL)) {
        hk_taken_t taken = {.subscriber = subscriber, .control = true};
        *bytes = hand(hub, &taken, hk_subscriber_control(subscriber));
    } else if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CODED)) {
        return hk_hub_take_coded(hub, subscriber, max_bytes, bytes);
    } else {
        *bytes = gather(hub, subscriber, max_bytes);
    }
    return HK_OK;
}

void hk_hub_wrote_part(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t count)
{
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_WITHIN)) {
        subscriber->offset += count;
        return;
    }
    search_t search = begin_search(hub, subscriber, UINT64_MAX);
    for (hk_record_t *record; count > 0 && (record = following(&search, subscriber->cursor)) != NULL;) {
        size_t size = record->frame.length;
        if (count < size) {
            hk_subscriber_begin_part(subscriber, record->position, count, size <= KEPT ? record : NULL);
            return;
        }
        count -= size;
        hub->deliveries++;
        subscriber->cursor = record->position;
    }
}
