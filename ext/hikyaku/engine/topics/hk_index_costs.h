/* hk_index_costs.h: what the patterns cost together that a topic can lead to.
 *
 * A tree of beginnings, in which each node's key begins those of its children. A node is there for its own cost, or
 * because children part there:
 *
 *     "/" 5 ──► "/books/" 10 ──► "/books/1/" 7        the heaviest way through "/books/" costs 5 + 10 + 7
 *           └─► "/cars/" 3       └─► "/books/2/" 2
 */
#ifndef HK_INDEX_COSTS_H
#define HK_INDEX_COSTS_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdint.h>

typedef struct hk_index_cost {
    struct hk_index_cost *parent, *child, *next; /* child: the first; next: of the same parent */
    hk_bytes_t key;                              /* lies behind it */
    uint64_t cost, heaviest;                     /* its own; of the heaviest way below it */
} hk_index_cost_t;

typedef struct hk_index_costs {
    const hk_alloc_t *alloc;
    hk_index_cost_t *root; /* or NULL */
} hk_index_costs_t;

/* Adds a cost, above 0, to that of a key. HK_OK, or HK_NO_MEMORY (unchanged). O(length + children on the way). */
hk_status_t hk_index_costs_add(hk_index_costs_t *costs, hk_bytes_t key, uint64_t cost);

/* Takes away what was added. */
void hk_index_costs_remove(hk_index_costs_t *costs, hk_bytes_t key, uint64_t cost);

/* The heaviest that texts with this beginning lead to: the keys that begin it, and one way of keys that it begins. */
uint64_t hk_index_costs_through(const hk_index_costs_t *costs, hk_bytes_t key);

void hk_index_costs_release(hk_index_costs_t *costs);

#endif
