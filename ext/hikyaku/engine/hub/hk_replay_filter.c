#include "hk_replay_filter.h"

void hk_replay_filter_init(hk_replay_filter_t *filter)
{
    filter->ranges = NULL;
    filter->ends = 0;
    filter->resumes_at = HK_POSITION_NONE;
}

void hk_replay_filter_release(const hk_alloc_t *alloc, hk_replay_filter_t *filter)
{
    hk_replay_filter_pass(alloc, filter, HK_POSITION_NONE);
}

/* --- ranges ------------------------------------------------------------------------------------------------------- */

hk_status_t hk_sent_range_new(const hk_alloc_t *alloc, hk_grant_t *grant, hk_position_t to, hk_sent_range_t **range)
{
    hk_sent_range_t *made = hk_alloc_new(alloc, sizeof(*made) + grant->subscription_count * sizeof(*made->since));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->below = NULL;
    made->to = to;
    made->grant = hk_grant_retain(grant);
    *range = made;
    return HK_OK;
}

void hk_sent_range_free(const hk_alloc_t *alloc, hk_sent_range_t *range)
{
    if (range != NULL) {
        hk_grant_release(range->grant);
        hk_alloc_free(alloc, range);
    }
}

bool hk_replay_filter_full(const hk_replay_filter_t *filter, hk_position_t position)
{
    size_t count = 0;
    for (const hk_sent_range_t *range = filter->ranges; range != NULL; range = range->below) {
        count += range->to > position;
    }
    return count >= HK_REPLAY_FILTER_RANGES;
}

/* Those that lie above reach less far. */
void hk_replay_filter_pass(const hk_alloc_t *alloc, hk_replay_filter_t *filter, hk_position_t cursor)
{
    for (hk_sent_range_t *range; (range = filter->ranges) != NULL && range->to <= cursor;) {
        filter->ranges = range->below;
        hk_sent_range_free(alloc, range);
    }
}

void hk_replay_filter_add(const hk_alloc_t *alloc, hk_replay_filter_t *filter, hk_sent_range_t *range)
{
    hk_replay_filter_pass(alloc, filter, range->to);
    range->below = filter->ranges;
    filter->ranges = range;
}

void hk_replay_filter_settle(hk_replay_filter_t *filter, size_t subscriptions)
{
    filter->ends = 0;
    for (const hk_sent_range_t *range = filter->ranges; range != NULL; range = range->below) {
        filter->ends = range->to > filter->ends ? range->to : filter->ends;
    }
    for (size_t i = 0; i < subscriptions; i++) {
        hk_position_t from = filter->beginnings[i].from;
        filter->ends = from > filter->ends ? from : filter->ends;
    }
}

/* --- what was sent ------------------------------------------------------------------------------------------------ */

static bool selects(const hk_matcher_t *matcher, hk_program_space_t *space, const hk_record_t *record)
{
    for (size_t i = 0; i < record->topic_count; i++) {
        if (hk_matcher_match(matcher, space, record->topics[i])) {
            return true;
        }
    }
    return record->topic_count == 0;
}

static bool sent(const hk_sent_range_t *range, hk_program_space_t *space, const hk_record_t *record)
{
    const hk_grant_t *grant = range->grant;
    for (size_t i = 0; i < grant->subscription_count; i++) {
        if (range->since[i] < record->position && selects(grant->subscriptions[i].matcher, space, record)) {
            return hk_grant_admits(grant, space, record);
        }
    }
    return false;
}

bool hk_replay_filter_sent(const hk_replay_filter_t *filter, hk_program_space_t *space, const hk_record_t *record)
{
    for (const hk_sent_range_t *range = filter->ranges; range != NULL; range = range->below) {
        if (record->position <= range->to && sent(range, space, record)) {
            return true;
        }
    }
    return false;
}
