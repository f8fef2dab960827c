/* hk_slab.h: many things of one size.
 *
 *     chunk: [ slab: header │ item item item … ] [ slab ] [ slab ] …      one block of memory, slabs aligned within it
 *
 * Taking and giving back are O(1) and touch one slab; memory is asked for once for thousands of items, and a chunk
 * without items goes back, but for one. An item's slab is found by its address. Items stay where they are, so that all
 * of them can be walked through, a slice at a time, while others come and go.
 */
#ifndef HK_SLAB_H
#define HK_SLAB_H

#include "hk_alloc.h"
#include "hk_list.h"

#include <stdbool.h>
#include <stdint.h>

enum { HK_SLAB_BYTES = 16 * 1024 };

typedef struct hk_slab_chunk hk_slab_chunk_t;

typedef struct hk_slab_pool {
    const hk_alloc_t *alloc;
    uint32_t size, per_slab;
    size_t count, bytes; /* items; of memory */
    hk_list_t chunks, partial;
    hk_slab_chunk_t *spare;
    /* Where the walk stands. */
    hk_slab_chunk_t *walked;
    uint32_t walked_slab;
} hk_slab_pool_t;

/* An empty pool without memory, which must not be moved. size: of an item, from 8 bytes to 1 KiB, a multiple of 8. */
void hk_slab_init(hk_slab_pool_t *pool, const hk_alloc_t *alloc, uint32_t size);

/* Gives all memory back, with the items. */
void hk_slab_release(hk_slab_pool_t *pool);

/* An item, not cleared, or NULL: there is no memory. */
void *hk_slab_new(hk_slab_pool_t *pool);

/* Gives an item back. Its first 8 bytes are used by the pool from now on, the others are left as they are. */
void hk_slab_free(hk_slab_pool_t *pool, void *item);

/* Begins a walk through all items. One at a time for a pool. */
void hk_slab_walk(hk_slab_pool_t *pool);

/* Calls `visit` for each item of the next slab, also for items that were given back: whoever owns them must be able to
 * tell. It gives none back. What is added while the walk goes on may be visited or not. false: the walk has ended,
 * nothing was visited. */
bool hk_slab_step(hk_slab_pool_t *pool, void (*visit)(void *context, void *item), void *context);

#endif
