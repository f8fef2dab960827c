/* hk_map.h: finds things by bytes.
 *
 * A hash table with chaining whose nodes are part of what they find (the first member, or wherever offsetof leads):
 * adding allocates nothing but, now and then, a larger table. The hash is keyed (SipHash-1-3), so nobody outside can
 * choose keys that collide; keys are compared whole.
 *
 *     typedef struct { hk_map_node_t node; ... } thing_t;
 *
 * The key's bytes belong to the node's owner and must not change while it is in a map.
 */
#ifndef HK_MAP_H
#define HK_MAP_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdint.h>

typedef struct hk_map_node {
    struct hk_map_node *next;
    uint64_t hash;
    hk_bytes_t key;
} hk_map_node_t;

typedef struct hk_map {
    const hk_alloc_t *alloc;
    hk_map_node_t **buckets;
    size_t bucket_count; /* a power of two, or 0 */
    size_t count;
    uint64_t secret[2];
} hk_map_t;

/* An empty map without memory. `secret`: random, the same for as long as the map lives. */
void hk_map_init(hk_map_t *map, const hk_alloc_t *alloc, const uint64_t secret[2]);

/* Gives the table back, not the nodes. */
void hk_map_release(hk_map_t *map);

/* The hash of a key in this map; for those who look it up in several. */
uint64_t hk_map_hash(const hk_map_t *map, hk_bytes_t key);

/* The node with this key, or NULL. O(1). */
hk_map_node_t *hk_map_find(const hk_map_t *map, hk_bytes_t key);

/* Adds a node under a key that is not there yet (callers look first). HK_OK, or HK_NO_MEMORY (unchanged). O(1). */
hk_status_t hk_map_add(hk_map_t *map, hk_map_node_t *node, hk_bytes_t key);

/* Removes a node that is in the map. O(1). */
void hk_map_remove(hk_map_t *map, hk_map_node_t *node);

/* Calls `visit` for each node; it may remove that node, and add none. */
void hk_map_each(hk_map_t *map, void (*visit)(void *context, hk_map_node_t *node), void *context);

/* SipHash-1-3 of the bytes, for whoever needs a keyed hash without a map. */
uint64_t hk_hash(const uint64_t secret[2], hk_bytes_t bytes);

#endif
