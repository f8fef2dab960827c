#include "hk_hub_state.h"

static hk_status_t keep(void *context, hk_position_t position, const hk_log_update_t *update)
{
    hk_hub_t *hub = context;
    return hk_keeper_append(hub->keeper, position, update, hub->now);
}

void hk_hub_keep(hk_hub_t *hub, hk_keeper_t *keeper)
{
    hub->keeper = keeper;
    hk_log_keep(hub->log, keeper != NULL ? keep : NULL, hub);
}

hk_status_t hk_hub_restore(hk_hub_t *hub, hk_position_t position, const hk_log_update_t *update)
{
    hk_log_go_on_at(hub->log, position);
    return hk_log_append(hub->log, update, NULL);
}

void hk_hub_go_on_at(hk_hub_t *hub, hk_position_t position)
{
    hk_log_go_on_at(hub->log, position);
}

bool hk_hub_prompt(const hk_hub_t *hub, size_t bytes)
{
    return hub->keeper == NULL || hk_keeper_prompt(hub->keeper, bytes);
}

void hk_hub_forget_the_old(hk_hub_t *hub, int64_t now)
{
    if (hub->keeper != NULL) {
        hk_log_keep_from(hub->log, hk_keeper_young_from(hub->keeper, now));
        hk_keeper_retain(hub->keeper, hk_log_first(hub->log));
    }
}
