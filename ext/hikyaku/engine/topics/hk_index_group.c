#include "hk_index_private.h"

enum { FEW_LENGTHS = 4 };

/* -- Places -------------------------------------------------------------------------------------------------------- */

void hk_index_link(hk_index_place_t *place, hk_index_entry_t *entry)
{
    entry->place = place;
    entry->previous = NULL;
    entry->next = place->first;
    if (entry->next != NULL) {
        entry->next->previous = entry;
    }
    place->first = entry;
    place->cost += entry->matcher->cost;
}

void hk_index_unlink(hk_index_entry_t *entry)
{
    hk_index_place_t *place = entry->place;
    if (entry->next != NULL) {
        entry->next->previous = entry->previous;
    }
    if (entry->previous != NULL) {
        entry->previous->next = entry->next;
    } else {
        place->first = entry->next;
    }
    place->cost -= entry->matcher->cost;
    entry->place = NULL;
    entry->next = entry->previous = NULL;
}

void hk_index_visit(const hk_index_place_t *place, hk_index_visit_t visit, void *context)
{
    for (hk_index_entry_t *entry = place->first; entry != NULL; entry = entry->next) {
        visit(context, entry);
    }
}

hk_status_t hk_index_place(hk_map_t *places, hk_bytes_t key, hk_index_place_t **place)
{
    /* The node is the first member. */
    hk_index_place_t *found = (hk_index_place_t *)hk_map_find(places, key);
    if (found != NULL) {
        *place = found;
        return HK_OK;
    }
    hk_index_place_t *made = hk_alloc_new(places->alloc, sizeof(*made) + key.length);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    *made = (hk_index_place_t){.first = NULL};
    char *copy = (char *)(made + 1);
    if (key.length > 0) {
        memcpy(copy, key.at, key.length);
    }
    if (hk_map_add(places, &made->node, hk_bytes(copy, key.length)) != HK_OK) {
        hk_alloc_free(places->alloc, made);
        return HK_NO_MEMORY;
    }
    *place = made;
    return HK_OK;
}

void hk_index_drop_place(hk_map_t *places, hk_index_place_t *place)
{
    hk_map_remove(places, &place->node);
    hk_alloc_free(places->alloc, place);
}

/* -- Groups -------------------------------------------------------------------------------------------------------- */

void hk_index_group_init(hk_index_group_t *group, const hk_alloc_t *alloc, const uint64_t secret[2])
{
    *group = (hk_index_group_t){.alloc = alloc, .costs = {.alloc = alloc}};
    hk_map_init(&group->places, alloc, secret);
}

void hk_index_group_release(hk_index_group_t *group)
{
    hk_index_costs_release(&group->costs);
    hk_map_release(&group->places);
    hk_alloc_free(group->alloc, group->lengths);
}

/* Where a length stands, or should. */
static size_t place_of_length(const hk_index_group_t *group, size_t length)
{
    size_t low = 0, high = group->length_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->lengths[middle].length < length) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static hk_status_t reserve_length(hk_index_group_t *group)
{
    if (group->length_count < group->length_capacity) {
        return HK_OK;
    }
    size_t capacity = group->length_capacity > 0 ? 2 * group->length_capacity : FEW_LENGTHS;
    hk_index_length_t *lengths = hk_alloc_resize(group->alloc, group->lengths, capacity, sizeof(*lengths));
    if (lengths == NULL) {
        return HK_NO_MEMORY;
    }
    group->lengths = lengths;
    group->length_capacity = capacity;
    return HK_OK;
}

/* Room for it was reserved. */
static void count_length(hk_index_group_t *group, size_t length)
{
    size_t at = place_of_length(group, length);
    hk_index_length_t *found = &group->lengths[at];
    if (at < group->length_count && found->length == length) {
        found->places++;
        return;
    }
    memmove(found + 1, found, (group->length_count - at) * sizeof(*found));
    *found = (hk_index_length_t){.length = (uint32_t)length, .places = 1};
    group->length_count++;
}

static void discount_length(hk_index_group_t *group, size_t length)
{
    size_t at = place_of_length(group, length);
    hk_index_length_t *found = &group->lengths[at];
    if (--found->places == 0) {
        group->length_count--;
        memmove(found, found + 1, (group->length_count - at) * sizeof(*found));
    }
}

hk_status_t hk_index_group_place(hk_index_group_t *group, hk_bytes_t prefix, hk_index_place_t **place)
{
    hk_index_place_t *found;
    if (reserve_length(group) != HK_OK || hk_index_place(&group->places, prefix, &found) != HK_OK) {
        return HK_NO_MEMORY;
    }
    if (found->group == NULL) {
        found->group = group;
        count_length(group, prefix.length);
    }
    *place = found;
    return HK_OK;
}

void hk_index_group_drop(hk_index_group_t *group, hk_index_place_t *place)
{
    discount_length(group, place->node.key.length);
    hk_index_drop_place(&group->places, place);
}

/* Calls `use` for each place whose key begins the text. */
static void each_place(const hk_index_group_t *group, hk_bytes_t text,
                       void (*use)(void *context, const hk_index_place_t *place), void *context)
{
    for (size_t i = 0; i < group->length_count && group->lengths[i].length <= text.length; i++) {
        hk_bytes_t prefix = hk_bytes(text.at, group->lengths[i].length);
        const hk_index_place_t *place = (const hk_index_place_t *)hk_map_find(&group->places, prefix);
        if (place != NULL) {
            use(context, place);
        }
    }
}

typedef struct visit {
    hk_index_visit_t visit;
    void *context;
} visit_t;

static void visit_place(void *context, const hk_index_place_t *place)
{
    const visit_t *visit = context;
    hk_index_visit(place, visit->visit, visit->context);
}

void hk_index_group_visit(const hk_index_group_t *group, hk_bytes_t text, hk_index_visit_t visit, void *context)
{
    visit_t call = {visit, context};
    each_place(group, text, visit_place, &call);
}

static void add_cost(void *context, const hk_index_place_t *place)
{
    *(uint64_t *)context += place->cost;
}

uint64_t hk_index_group_cost(const hk_index_group_t *group, hk_bytes_t text)
{
    uint64_t cost = 0;
    each_place(group, text, add_cost, &cost);
    return cost;
}
