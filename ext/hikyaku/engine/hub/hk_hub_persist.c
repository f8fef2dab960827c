#include "hk_hub_state.h"

static hk_status_t keep(void *context, hk_position_t position, const hk_log_update_t *update)
{
    hk_hub_t *hub = context;
    return hk_keeper_append(hub->keeper, position, update, hub->now);
}

void hk_hub_persist(hk_hub_t *hub, hk_keeper_t *keeper)
{
    hub->keeper = keeper;
    hk_log_keep(hub->log, keeper != NULL ? keep : NULL, hub);
}

hk_status_t hk_hub_restore(hk_hub_t *hub, hk_position_t position, const hk_log_update_t *update)
{
    hk_log_go_on_at(hub->log, position);
    return hk_log_append(hub->log, update, NULL);
}

/* Positions of a gap that the log remembers one by one; of a larger one it remembers nothing before. */
enum { MOST_VOID = 1 << 20 };

hk_status_t hk_hub_lose(hk_hub_t *hub, hk_position_t from, hk_position_t upto, const uint8_t *key)
{
    hk_gap_t gap;
    hk_sse_event_t event;
    char after[HK_EVENT_ID_BYTES], id[HK_EVENT_ID_BYTES];
    hk_log_go_on_at(hub->log, from);
    hk_log_seal(hub->log, hk_log_head(hub->log), after);
    hk_status_t status = key != NULL ? hk_log_begin_generation(hub->log, upto, key) : HK_OK;
    if (status == HK_OK && upto - hk_log_head(hub->log) > MOST_VOID) {
        hk_log_go_on_at(hub->log, upto + 1);
        return HK_OK;
    }
    if (status == HK_OK) {
        status = hk_gap_begin(&gap, &hub->scratch, HK_BYTES("lost"), hk_bytes(after, sizeof(after)));
    }
    if (status != HK_OK) {
        return status;
    }
    hk_log_seal(hub->log, upto, id);
    status = hk_gap_end(&gap, hk_bytes(id, sizeof(id)), &event);
    return status == HK_OK ? hk_log_append_gap(hub->log, upto, &event) : status;
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
