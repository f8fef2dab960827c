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
