/* hk_heap.h: finds what is due first.
 *
 * A binary heap whose nodes are part of what is due. Adding and removing are O(log n), looking at the first is O(1).
 */
#ifndef HK_HEAP_H
#define HK_HEAP_H

#include "hk_alloc.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hk_heap_node {
    int64_t at;   /* when it is due; whatever the clock counts */
    size_t place; /* 1 and up while it is in a heap, 0 when not */
} hk_heap_node_t;

typedef struct hk_heap {
    const hk_alloc_t *alloc;
    hk_heap_node_t **nodes;
    size_t count, capacity;
} hk_heap_t;

void hk_heap_init(hk_heap_t *heap, const hk_alloc_t *alloc);

/* Gives the memory back, not the nodes. */
void hk_heap_release(hk_heap_t *heap);

/* Makes room for one more, so that the next to be added is. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_heap_reserve(hk_heap_t *heap);

/* Adds a node that is in no heap. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_heap_add(hk_heap_t *heap, hk_heap_node_t *node, int64_t at);

/* Takes a node out; harmless when it is in none. */
void hk_heap_remove(hk_heap_t *heap, hk_heap_node_t *node);

/* The node that is due first, or NULL. */
hk_heap_node_t *hk_heap_first(const hk_heap_t *heap);

static inline bool hk_heap_holds(const hk_heap_node_t *node)
{
    return node->place > 0;
}

#endif
