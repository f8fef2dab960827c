#include "hk_index_private.h"

enum { FEW_SLOTS = 16 };

hk_status_t hk_index_new(const hk_alloc_t *alloc, const uint64_t secret[2], hk_index_t **index)
{
    hk_index_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->secret[0] = secret[0];
    made->secret[1] = secret[1];
    hk_map_init(&made->exact, alloc, secret);
    hk_map_init(&made->origins, alloc, secret);
    hk_index_group_init(&made->anywhere, alloc, secret);
    hk_index_group_init(&made->texts, alloc, secret);
    hk_program_space_init(&made->space, alloc);
    *index = made;
    return HK_OK;
}

static bool is_pattern(const hk_matcher_t *matcher)
{
    return matcher->kind == HK_MATCHER_URL || matcher->kind == HK_MATCHER_TEXT;
}

/* -- Slots --------------------------------------------------------------------------------------------------------- */

static hk_status_t reserve_slot(hk_index_t *index)
{
    if (index->first_free < index->slot_count || index->slot_count < index->slot_capacity) {
        return HK_OK;
    }
    uint32_t capacity = index->slot_capacity > 0 ? 2 * index->slot_capacity : FEW_SLOTS;
    hk_index_slot_t *slots = hk_alloc_resize(index->alloc, index->slots, capacity, sizeof(*slots));
    if (slots == NULL) {
        return HK_NO_MEMORY;
    }
    index->slots = slots;
    index->slot_capacity = capacity;
    return HK_OK;
}

/* One was reserved. */
static void take_slot(hk_index_t *index, hk_index_entry_t *entry)
{
    uint32_t slot = index->first_free;
    if (slot == index->slot_count) {
        index->slots[slot] = (hk_index_slot_t){.serial = 0, .next_free = slot + 1};
        index->slot_count++;
    }
    index->first_free = index->slots[slot].next_free;
    index->slots[slot].entry = entry;
    entry->slot = slot;
    entry->serial = ++index->slots[slot].serial;
    entry->added = ++index->generation;
    index->recent[index->generation % HK_INDEX_RECENT] = (hk_topic_match_t){.slot = slot, .serial = entry->serial};
    index->pattern_count++;
}

static void give_slot_back(hk_index_t *index, hk_index_entry_t *entry)
{
    index->slots[entry->slot].entry = NULL;
    index->slots[entry->slot].next_free = index->first_free;
    index->first_free = entry->slot;
    index->pattern_count--;
}

/* -- Adding and removing ------------------------------------------------------------------------------------------- */

static hk_status_t make_group(hk_index_t *index, hk_bytes_t origin, hk_index_group_t **group)
{
    hk_index_group_t *made = hk_alloc_new(index->alloc, sizeof(*made) + origin.length);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    hk_index_group_init(made, index->alloc, index->secret);
    char *copy = (char *)(made + 1);
    if (origin.length > 0) {
        memcpy(copy, origin.at, origin.length);
    }
    if (hk_map_add(&index->origins, &made->node, hk_bytes(copy, origin.length)) != HK_OK) {
        hk_alloc_free(index->alloc, made);
        return HK_NO_MEMORY;
    }
    *group = made;
    return HK_OK;
}

static void drop_group_if_empty(hk_index_t *index, hk_index_group_t *group)
{
    if (group == &index->anywhere || group == &index->texts || group->places.count > 0) {
        return;
    }
    hk_map_remove(&index->origins, &group->node);
    hk_index_group_release(group);
    hk_alloc_free(index->alloc, group);
}

static hk_bytes_t indexed_prefix(const hk_matcher_t *matcher)
{
    size_t length = matcher->prefix.length;
    return hk_bytes(matcher->prefix.at, length < HK_INDEX_LONGEST_PREFIX ? length : HK_INDEX_LONGEST_PREFIX);
}

static const hk_index_group_t *group_of(const hk_index_t *index, const hk_matcher_t *matcher)
{
    if (matcher->kind == HK_MATCHER_TEXT) {
        return &index->texts;
    }
    return matcher->has_origin ? hk_index_group_of(index, matcher->origin) : &index->anywhere;
}

static hk_status_t place_in_group(hk_index_t *index, const hk_matcher_t *matcher, hk_index_place_t **place)
{
    hk_index_group_t *group = (hk_index_group_t *)group_of(index, matcher);
    if (group == NULL && make_group(index, matcher->origin, &group) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_status_t status = hk_index_group_place(group, indexed_prefix(matcher), place);
    if (status == HK_OK && matcher->cost > 0) {
        status = hk_index_costs_add(&group->costs, indexed_prefix(matcher), matcher->cost);
        if (status != HK_OK && (*place)->first == NULL) {
            hk_index_group_drop(group, *place);
        }
    }
    drop_group_if_empty(index, group);
    return status;
}

static hk_status_t place_for(hk_index_t *index, const hk_matcher_t *matcher, hk_index_place_t **place)
{
    if (matcher->kind == HK_MATCHER_ALL) {
        *place = &index->all;
        return HK_OK;
    }
    return matcher->kind == HK_MATCHER_EXACT ? hk_index_place(&index->exact, matcher->pattern, place)
                                             : place_in_group(index, matcher, place);
}

hk_status_t hk_index_add(hk_index_t *index, hk_index_entry_t *entry, hk_matcher_t *matcher)
{
    hk_index_place_t *place;
    if (hk_program_space_reserve(&index->space, matcher->instructions) != HK_OK || reserve_slot(index) != HK_OK ||
        place_for(index, matcher, &place) != HK_OK) {
        return HK_NO_MEMORY;
    }
    *entry = (hk_index_entry_t){.matcher = hk_matcher_retain(matcher)};
    hk_index_link(place, entry);
    index->cost += matcher->cost;
    if (is_pattern(matcher)) {
        take_slot(index, entry);
    }
    return HK_OK;
}

void hk_index_remove(hk_index_t *index, hk_index_entry_t *entry)
{
    hk_index_place_t *place = entry->place;
    hk_index_unlink(entry);
    index->cost -= entry->matcher->cost;
    if (place->group != NULL && entry->matcher->cost > 0) {
        hk_index_costs_remove(&place->group->costs, indexed_prefix(entry->matcher), entry->matcher->cost);
    }
    if (is_pattern(entry->matcher)) {
        give_slot_back(index, entry);
    }
    if (place->first == NULL && place->group != NULL) {
        hk_index_group_t *group = place->group;
        hk_index_group_drop(group, place);
        drop_group_if_empty(index, group);
    } else if (place->first == NULL && place != &index->all) {
        hk_index_drop_place(&index->exact, place);
    }
    hk_matcher_release(entry->matcher);
    entry->matcher = NULL;
}

uint64_t hk_index_cost(const hk_index_t *index)
{
    return index->cost;
}

uint64_t hk_index_cost_beside(const hk_index_t *index, const hk_matcher_t *matcher)
{
    const hk_index_group_t *group = is_pattern(matcher) ? group_of(index, matcher) : NULL;
    return group != NULL ? hk_index_costs_through(&group->costs, indexed_prefix(matcher)) : 0;
}

/* -- Freeing ------------------------------------------------------------------------------------------------------- */

static void let_go(void *context, hk_index_entry_t *entry)
{
    (void)context;
    hk_matcher_release(entry->matcher);
}

static void free_place(void *context, hk_map_node_t *node)
{
    const hk_index_t *index = context;
    hk_index_place_t *place = (hk_index_place_t *)node;
    hk_index_visit(place, let_go, NULL);
    hk_alloc_free(index->alloc, place);
}

static void free_places(hk_index_t *index, hk_map_t *places)
{
    hk_map_each(places, free_place, index);
    places->count = 0;
}

static void free_group(void *context, hk_map_node_t *node)
{
    hk_index_t *index = context;
    hk_index_group_t *group = (hk_index_group_t *)node;
    free_places(index, &group->places);
    hk_index_group_release(group);
    hk_alloc_free(index->alloc, group);
}

void hk_index_free(hk_index_t *index)
{
    if (index == NULL) {
        return;
    }
    hk_index_visit(&index->all, let_go, NULL);
    free_places(index, &index->exact);
    free_places(index, &index->anywhere.places);
    free_places(index, &index->texts.places);
    hk_map_each(&index->origins, free_group, index);
    hk_map_release(&index->exact);
    hk_map_release(&index->origins);
    hk_index_group_release(&index->anywhere);
    hk_index_group_release(&index->texts);
    hk_program_space_release(&index->space);
    hk_alloc_free(index->alloc, index->slots);
    hk_alloc_free(index->alloc, index);
}
