#include "hk_map.h"

enum { SMALLEST = 8 };

void hk_map_init(hk_map_t *map, const hk_alloc_t *alloc, const uint64_t secret[2])
{
    *map = (hk_map_t){.alloc = alloc, .secret = {secret[0], secret[1]}};
}

void hk_map_release(hk_map_t *map)
{
    hk_alloc_free(map->alloc, map->buckets);
    map->buckets = NULL;
    map->bucket_count = 0;
    map->count = 0;
}

uint64_t hk_map_hash(const hk_map_t *map, hk_bytes_t key)
{
    return hk_hash(map->secret, key);
}

static hk_map_node_t **bucket_of(const hk_map_t *map, uint64_t hash)
{
    return &map->buckets[hash & (map->bucket_count - 1)];
}

hk_map_node_t *hk_map_find(const hk_map_t *map, hk_bytes_t key)
{
    if (map->count == 0) {
        return NULL;
    }
    uint64_t hash = hk_map_hash(map, key);
    hk_map_node_t *node = *bucket_of(map, hash);
    while (node != NULL && !(node->hash == hash && hk_bytes_equal(node->key, key))) {
        node = node->next;
    }
    return node;
}

static void put(hk_map_t *map, hk_map_node_t *node)
{
    hk_map_node_t **bucket = bucket_of(map, node->hash);
    node->next = *bucket;
    *bucket = node;
}

static hk_status_t grow(hk_map_t *map)
{
    size_t old_count = map->bucket_count;
    size_t new_count = old_count > 0 ? old_count * 2 : SMALLEST;
    hk_map_node_t **old = map->buckets;
    hk_map_node_t **buckets = hk_alloc_zeroed(map->alloc, new_count, sizeof(*buckets));
    if (buckets == NULL) {
        return HK_NO_MEMORY;
    }
    map->buckets = buckets;
    map->bucket_count = new_count;
    for (size_t i = 0; i < old_count; i++) {
        for (hk_map_node_t *node = old[i], *next; node != NULL; node = next) {
            next = node->next;
            put(map, node);
        }
    }
    hk_alloc_free(map->alloc, old);
    return HK_OK;
}

hk_status_t hk_map_add(hk_map_t *map, hk_map_node_t *node, hk_bytes_t key)
{
    /* Without memory for a larger table the one that is there goes on, with longer chains. */
    if (map->count >= map->bucket_count && grow(map) != HK_OK && map->bucket_count == 0) {
        return HK_NO_MEMORY;
    }
    node->hash = hk_map_hash(map, key);
    node->key = key;
    put(map, node);
    map->count++;
    return HK_OK;
}

void hk_map_remove(hk_map_t *map, hk_map_node_t *node)
{
    hk_map_node_t **link = bucket_of(map, node->hash);
    while (*link != node) {
        link = &(*link)->next;
    }
    *link = node->next;
    node->next = NULL;
    map->count--;
}

void hk_map_each(hk_map_t *map, void (*visit)(void *context, hk_map_node_t *node), void *context)
{
    for (size_t i = 0; i < map->bucket_count; i++) {
        for (hk_map_node_t *node = map->buckets[i], *next; node != NULL; node = next) {
            next = node->next;
            visit(context, node);
        }
    }
}
