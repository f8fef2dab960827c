/* hk_index_private.h: how an index finds entries.
 *
 *     index ─► exact     "Books"  ─► place ─► entries
 *           ─► all                   place ─► entries
 *           ─► texts     group: "/a/" ─► place ─► entries
 *           ─► anywhere  group: "/b/" ─► place ─► entries         URL patterns of any origin
 *           ─► origins   "https://example.com" ─► group: "/c/" ─► place ─► entries
 */
#ifndef HK_INDEX_PRIVATE_H
#define HK_INDEX_PRIVATE_H

#include "hk_index.h"
#include "hk_index_costs.h"

typedef void (*hk_index_visit_t)(void *context, hk_index_entry_t *entry);

/* Where entries stand that are found by the same bytes. */
typedef struct hk_index_place {
    hk_map_node_t node; /* the key lies behind the place */
    hk_index_entry_t *first;
    struct hk_index_group *group; /* NULL: not in a group */
    uint64_t cost;                /* of the matchers of all entries */
} hk_index_place_t;

/* How many places of a group have a key of this length. */
typedef struct hk_index_length {
    uint32_t length, places;
} hk_index_length_t;

/* Patterns that are found by what the text, or the path of the URL, begins with. */
typedef struct hk_index_group {
    hk_map_node_t node; /* of an origin: the key lies behind the group */
    const hk_alloc_t *alloc;
    hk_map_t places;
    hk_index_length_t *lengths; /* rising */
    size_t length_count, length_capacity;
    hk_index_costs_t costs; /* of those that cost anything */
} hk_index_group_t;

/* Longer beginnings than this are compared by their matchers: a text has no more prefixes that have to be looked up,
 * and
 * to hash. */
enum { HK_INDEX_LONGEST_PREFIX = 512 };

/* A topic whose knowledge is older than so many patterns is matched anew: that costs about as much. */
enum { HK_INDEX_RECENT = 64 };

/* A number for a pattern that topics can remember; the serial says whether it is still the same pattern. */
typedef struct hk_index_slot {
    hk_index_entry_t *entry; /* NULL: free */
    uint32_t serial, next_free;
} hk_index_slot_t;

struct hk_index {
    const hk_alloc_t *alloc;
    uint64_t secret[2];
    hk_index_place_t all;
    hk_map_t exact;   /* of places */
    hk_map_t origins; /* of groups */
    hk_index_group_t anywhere, texts;
    size_t pattern_count;
    uint64_t cost; /* of all matchers */
    hk_index_slot_t *slots;
    uint32_t slot_count, slot_capacity, first_free; /* first_free == slot_count: none */
    uint64_t generation;                            /* of the newest pattern; 0: there never was one */
    hk_topic_match_t recent[HK_INDEX_RECENT]; /* the pattern of a generation is at `generation % HK_INDEX_RECENT` */
    hk_program_space_t space;
};

/* The entry that a topic remembers, or NULL when it was removed. */
static inline hk_index_entry_t *hk_index_entry_of(const hk_index_t *index, hk_topic_match_t match)
{
    const hk_index_slot_t *slot = &index->slots[match.slot];
    return slot->serial == match.serial ? slot->entry : NULL;
}

/* The patterns of an origin, or NULL. */
static inline hk_index_group_t *hk_index_group_of(const hk_index_t *index, hk_bytes_t origin)
{
    /* The node is the first member. */
    return (hk_index_group_t *)hk_map_find(&index->origins, origin);
}

/* Calls `visit` for each pattern that a topic's beginning leads to. */
void hk_index_each_candidate(const hk_index_t *index, const hk_topic_t *topic, hk_index_visit_t visit, void *context);

void hk_index_link(hk_index_place_t *place, hk_index_entry_t *entry);
void hk_index_unlink(hk_index_entry_t *entry);
void hk_index_visit(const hk_index_place_t *place, hk_index_visit_t visit, void *context);

/* The place of a key, made when there is none. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_index_place(hk_map_t *places, hk_bytes_t key, hk_index_place_t **place);

/* Frees a place that is empty. */
void hk_index_drop_place(hk_map_t *places, hk_index_place_t *place);

void hk_index_group_init(hk_index_group_t *group, const hk_alloc_t *alloc, const uint64_t secret[2]);

/* Gives back the memory of a group without places. */
void hk_index_group_release(hk_index_group_t *group);

/* As hk_index_place and hk_index_drop_place. */
hk_status_t hk_index_group_place(hk_index_group_t *group, hk_bytes_t prefix, hk_index_place_t **place);
void hk_index_group_drop(hk_index_group_t *group, hk_index_place_t *place);

/* Calls `visit` for each entry whose prefix begins the text. One hash look-up for each length of prefix in use. */
void hk_index_group_visit(const hk_index_group_t *group, hk_bytes_t text, hk_index_visit_t visit, void *context);

/* What the matchers of those entries cost together. */
uint64_t hk_index_group_cost(const hk_index_group_t *group, hk_bytes_t text);

#endif
