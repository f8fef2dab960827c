#include "hk_subscriber.h"

enum { CACHE_LINE = 64, LOOKED_AT = 32, ALIGNED = 16 };

_Static_assert(sizeof(hk_coded_t) == 32 && sizeof(hk_membership_t) == ALIGNED, "what stands before it has grown");
_Static_assert(offsetof(hk_subscriber_t, serial) == LOOKED_AT, "what a delivery looks at has changed its size");

/* An allocator may begin blocks at any multiple of 16: moved by 16 where the line's end would cut through. */
static uint8_t shift_for(const char *block)
{
    size_t within = (uintptr_t)block % CACHE_LINE;
    return within == CACHE_LINE - ALIGNED ? ALIGNED : 0;
}

hk_status_t hk_subscriber_new_coded(const hk_alloc_t *alloc, size_t subscriptions, bool changed,
                                    const hk_coded_t *coded, hk_subscriber_t **subscriber)
{
    bool several = coded != NULL && subscriptions > 1;
    size_t before = (coded != NULL ? sizeof(*coded) : 0) + (several ? sizeof(hk_membership_t) : 0);
    size_t size = before + sizeof(hk_subscriber_t) + subscriptions * sizeof(hk_subscription_t);
    size += changed ? hk_replay_filter_size(subscriptions) : 0;
    char *block = hk_alloc_zeroed(alloc, 1, size + ALIGNED);
    if (block == NULL) {
        return HK_NO_MEMORY;
    }
    uint8_t shift = (uint8_t)(before + shift_for(block + before));
    hk_subscriber_t *made = (hk_subscriber_t *)(void *)(block + shift);
    made->shift = shift;
    if (coded != NULL) {
        made->flags = HK_SUBSCRIBER_CODED;
        *hk_subscriber_coded(made) = *coded;
        hk_subscriber_coded(made)->several = several;
    }
    if (changed) {
        made->traits = HK_SUBSCRIBER_CHANGED;
        made->subscription_count = (uint16_t)subscriptions;
        hk_replay_filter_init(hk_subscriber_filter(made));
    }
    *subscriber = made;
    return HK_OK;
}

hk_status_t hk_subscriber_new(const hk_alloc_t *alloc, size_t subscriptions, bool changed, hk_subscriber_t **subscriber)
{
    return hk_subscriber_new_coded(alloc, subscriptions, changed, NULL, subscriber);
}

void hk_subscriber_free(const hk_alloc_t *alloc, hk_subscriber_t *subscriber)
{
    hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    if (filter != NULL) {
        hk_replay_filter_release(alloc, filter);
    }
    hk_control_release(alloc, subscriber->control);
    hk_record_release(subscriber->partial);
    hk_alloc_free(alloc, (char *)subscriber - subscriber->shift);
}

/* -- Changes ------------------------------------------------------------------------------------------------------- */

void hk_subscriber_take_over(hk_subscriber_t *subscriber, hk_subscriber_t *other)
{
    hk_subscriber_t own = *subscriber;
    *subscriber = *other;
    subscriber->shift = own.shift;
    subscriber->subscription_count = own.subscription_count;
    subscriber->traits = (uint8_t)((other->traits & ~HK_SUBSCRIBER_CHANGED) | own.traits);
    subscriber->came = subscriber->ready = subscriber->beat = (hk_list_t){NULL, NULL};
    subscriber->deadline = (hk_heap_node_t){0};
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CODED)) {
        hk_coded_t *coded = hk_subscriber_coded(subscriber);
        bool several = coded->several;
        *coded = *hk_subscriber_coded(other);
        coded->several = several;
    }
    other->grant = NULL;
    other->control = NULL;
    other->partial = NULL;
    other->address = NULL;
}

hk_position_t hk_subscriber_position(const hk_subscriber_t *subscriber)
{
    if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_WITHIN)) {
        return subscriber->cursor;
    }
    const hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    return filter != NULL && filter->resumes_at != HK_POSITION_NONE ? filter->resumes_at : subscriber->partial_at;
}

hk_beginning_t hk_subscriber_beginning(const hk_subscriber_t *subscriber, size_t subscription)
{
    const hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    hk_position_t began_at = subscriber->began_at;
    return filter != NULL ? filter->beginnings[subscription] : (hk_beginning_t){began_at, began_at};
}

/* -- Control ------------------------------------------------------------------------------------------------------- */

static hk_status_t new_control(const hk_alloc_t *alloc, hk_bytes_t first, hk_bytes_t second, hk_control_t **control)
{
    size_t length = first.length + second.length;
    hk_control_t *made = length > UINT32_MAX ? NULL : hk_alloc_new(alloc, sizeof(*made) + length);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->references = 1;
    made->length = (uint32_t)length;
    if (first.length > 0) {
        memcpy(made->bytes, first.at, first.length);
    }
    if (second.length > 0) {
        memcpy(made->bytes + first.length, second.at, second.length);
    }
    *control = made;
    return HK_OK;
}

hk_status_t hk_control_new(const hk_alloc_t *alloc, hk_bytes_t bytes, hk_control_t **control)
{
    return new_control(alloc, bytes, HK_BYTES(""), control);
}

void hk_control_release(const hk_alloc_t *alloc, hk_control_t *control)
{
    if (control != NULL && --control->references == 0) {
        hk_alloc_free(alloc, control);
    }
}

static void replace_control(const hk_alloc_t *alloc, hk_subscriber_t *subscriber, hk_control_t *control)
{
    hk_control_release(alloc, subscriber->control);
    subscriber->control = control;
    subscriber->spoken = 0;
    if (control != NULL) {
        hk_subscriber_set(subscriber, HK_SUBSCRIBER_CONTROL);
    } else {
        hk_subscriber_clear(subscriber, HK_SUBSCRIBER_CONTROL);
    }
}

hk_bytes_t hk_subscriber_control(const hk_subscriber_t *subscriber)
{
    const hk_control_t *control = subscriber->control;
    if (control == NULL) {
        return HK_BYTES("");
    }
    return hk_bytes(control->bytes + subscriber->spoken, control->length - subscriber->spoken);
}

hk_status_t hk_subscriber_say(const hk_alloc_t *alloc, hk_subscriber_t *subscriber, hk_bytes_t bytes)
{
    hk_control_t *control;
    if (new_control(alloc, hk_subscriber_control(subscriber), bytes, &control) != HK_OK) {
        return HK_NO_MEMORY;
    }
    replace_control(alloc, subscriber, control);
    return HK_OK;
}

void hk_subscriber_share(hk_subscriber_t *subscriber, hk_control_t *control)
{
    control->references++;
    replace_control(NULL, subscriber, control);
}

void hk_subscriber_spoke(const hk_alloc_t *alloc, hk_subscriber_t *subscriber, size_t count)
{
    subscriber->spoken += (uint32_t)count;
    if (subscriber->spoken == subscriber->control->length) {
        replace_control(alloc, subscriber, NULL);
    }
}

/* -- Parts of events ----------------------------------------------------------------------------------------------- */

void hk_subscriber_begin_part(hk_subscriber_t *subscriber, hk_position_t at, size_t offset, hk_record_t *record)
{
    subscriber->partial = record != NULL ? hk_record_retain(record) : NULL;
    subscriber->partial_at = at;
    subscriber->offset = offset;
    hk_subscriber_set(subscriber, HK_SUBSCRIBER_WITHIN);
}

void hk_subscriber_end_part(hk_subscriber_t *subscriber)
{
    hk_record_release(subscriber->partial);
    subscriber->partial = NULL;
    subscriber->offset = 0;
    hk_subscriber_clear(subscriber, HK_SUBSCRIBER_WITHIN);
    hk_replay_filter_t *filter = hk_subscriber_filter(subscriber);
    if (filter != NULL) {
        filter->resumes_at = HK_POSITION_NONE;
    }
}

/* -- What drivers ask ---------------------------------------------------------------------------------------------- */

uint64_t hk_subscriber_serial(const hk_subscriber_t *subscriber)
{
    return subscriber->serial;
}

const hk_grant_t *hk_subscriber_grant(const hk_subscriber_t *subscriber)
{
    return subscriber->grant;
}

hk_bytes_t hk_subscriber_address(const hk_subscriber_t *subscriber)
{
    return subscriber->address != NULL ? hk_address_bytes(subscriber->address) : HK_BYTES("");
}

hk_position_t hk_subscriber_cursor(const hk_subscriber_t *subscriber)
{
    return subscriber->cursor;
}

hk_closing_t hk_subscriber_closing(const hk_subscriber_t *subscriber)
{
    return (hk_closing_t)subscriber->closing;
}

bool hk_subscriber_blocked(const hk_subscriber_t *subscriber)
{
    return hk_subscriber_is(subscriber, HK_SUBSCRIBER_BLOCKED);
}

bool hk_subscriber_within_event(const hk_subscriber_t *subscriber)
{
    return hk_subscriber_is(subscriber, HK_SUBSCRIBER_WITHIN);
}

void *hk_subscriber_connection(const hk_subscriber_t *subscriber)
{
    return subscriber->connection;
}

void hk_subscriber_connect(hk_subscriber_t *subscriber, void *connection)
{
    subscriber->connection = connection;
}
