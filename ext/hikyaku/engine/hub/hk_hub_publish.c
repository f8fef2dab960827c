#include "hk_hub_state.h"

typedef struct growth {
    hk_hub_t *hub;
    hk_position_t position, oldest;
} growth_t;

static void append(const growth_t *growth, hk_feed_t *feed)
{
    if (hk_feed_append(feed, growth->position, growth->oldest) && !hk_list_holds(&feed->dirty)) {
        hk_list_append(&growth->hub->dirty, &feed->dirty);
    }
}

/* Its branches come first: by them members are given what they share. */
static void grow(void *context, hk_index_entry_t *entry)
{
    hk_feed_t *feed = HK_OWNER(entry, hk_feed_t, entry);
    for (const hk_branch_t *branch = feed->branches; branch != NULL; branch = branch->next) {
        append(context, branch->feed);
    }
    append(context, feed);
}

hk_status_t hk_hub_publish(hk_hub_t *hub, const hk_log_update_t *update, int64_t now, hk_bytes_t *id)
{
    hk_record_t *record;
    hub->now = now;
    hk_status_t status = hk_log_append(hub->log, update, &record);
    if (status != HK_OK) {
        return status;
    }
    if (hub->keeper != NULL) {
        hk_keeper_retain(hub->keeper, hk_log_first(hub->log));
    }
    growth_t growth = {hub, record->position, hk_log_first(hub->log)};
    for (size_t i = 0; i < record->topic_count; i++) {
        hk_index_each(hub->index, record->topics[i], grow, &growth);
    }
    hub->publishes++;
    if (id != NULL) {
        *id = record->id;
    }
    return HK_OK;
}

bool hk_hub_takes_long(const hk_hub_t *hub, hk_topic_t *const *topics, size_t count)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < count && steps <= HK_HUB_STEPS; i++) {
        steps += hk_index_steps(hub->index, topics[i]);
    }
    return steps > HK_HUB_STEPS;
}

hk_status_t hk_hub_look_at(hk_hub_t *hub, hk_topic_t *topic, hk_index_survey_t *survey)
{
    if (survey->topic == NULL) {
        return hk_index_survey_begin(hub->index, topic, survey) == HK_OK ? HK_AGAIN : HK_NO_MEMORY;
    }
    uint64_t steps = HK_HUB_STEPS;
    if (!hk_index_survey_step(hub->index, survey, &steps)) {
        return HK_AGAIN;
    }
    hk_index_survey_end(survey);
    return HK_OK;
}

void hk_hub_stop_looking(hk_index_survey_t *survey)
{
    if (survey->topic != NULL) {
        hk_index_survey_end(survey);
    }
}
