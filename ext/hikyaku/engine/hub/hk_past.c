#include "hk_past.h"

void hk_past_init(hk_past_t *past)
{
    past->layers = NULL;
    past->ends = 0;
    past->resumes_at = HK_POSITION_NONE;
}

void hk_past_release(const hk_alloc_t *alloc, hk_past_t *past)
{
    hk_past_pass(alloc, past, HK_POSITION_NONE);
}

/* --- layers ------------------------------------------------------------------------------------------------------- */

hk_status_t hk_layer_new(const hk_alloc_t *alloc, hk_grant_t *grant, hk_position_t to, hk_layer_t **layer)
{
    hk_layer_t *made = hk_alloc_new(alloc, sizeof(*made) + grant->subscription_count * sizeof(*made->since));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->below = NULL;
    made->to = to;
    made->grant = hk_grant_retain(grant);
    *layer = made;
    return HK_OK;
}

void hk_layer_free(const hk_alloc_t *alloc, hk_layer_t *layer)
{
    if (layer != NULL) {
        hk_grant_release(layer->grant);
        hk_alloc_free(alloc, layer);
    }
}

bool hk_past_full(const hk_past_t *past, hk_position_t position)
{
    size_t count = 0;
    for (const hk_layer_t *layer = past->layers; layer != NULL; layer = layer->below) {
        count += layer->to > position;
    }
    return count >= HK_PAST_LAYERS;
}

/* Those that lie above reach less far. */
void hk_past_pass(const hk_alloc_t *alloc, hk_past_t *past, hk_position_t cursor)
{
    for (hk_layer_t *layer; (layer = past->layers) != NULL && layer->to <= cursor;) {
        past->layers = layer->below;
        hk_layer_free(alloc, layer);
    }
}

void hk_past_add(const hk_alloc_t *alloc, hk_past_t *past, hk_layer_t *layer)
{
    hk_past_pass(alloc, past, layer->to);
    layer->below = past->layers;
    past->layers = layer;
}

void hk_past_settle(hk_past_t *past, size_t subscriptions)
{
    past->ends = 0;
    for (const hk_layer_t *layer = past->layers; layer != NULL; layer = layer->below) {
        past->ends = layer->to > past->ends ? layer->to : past->ends;
    }
    for (size_t i = 0; i < subscriptions; i++) {
        hk_position_t from = past->beginnings[i].from;
        past->ends = from > past->ends ? from : past->ends;
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

static bool had(const hk_layer_t *layer, hk_program_space_t *space, const hk_record_t *record)
{
    const hk_grant_t *grant = layer->grant;
    for (size_t i = 0; i < grant->subscription_count; i++) {
        if (layer->since[i] < record->position && selects(grant->subscriptions[i].matcher, space, record)) {
            return hk_grant_admits(grant, space, record);
        }
    }
    return false;
}

bool hk_past_had(const hk_past_t *past, hk_program_space_t *space, const hk_record_t *record)
{
    for (const hk_layer_t *layer = past->layers; layer != NULL; layer = layer->below) {
        if (record->position <= layer->to && had(layer, space, record)) {
            return true;
        }
    }
    return false;
}
