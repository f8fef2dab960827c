#include "hk_slab.h"

#include <string.h>

enum { SLABS_MOST = 64 };

typedef struct slab {
    hk_list_t partial; /* while there is room in it */
    hk_slab_chunk_t *chunk;
    void *idle; /* given back: each points to the next */
    uint32_t used, begun;
} slab_t;

struct hk_slab_chunk {
    hk_list_t link;
    uint32_t slabs, used; /* used: items */
    size_t bytes;
};

static slab_t *slab_at(hk_slab_chunk_t *chunk, uint32_t place)
{
    uintptr_t first = ((uintptr_t)chunk + sizeof(*chunk) + HK_SLAB_BYTES - 1) & ~(uintptr_t)(HK_SLAB_BYTES - 1);
    return (slab_t *)(void *)((char *)chunk + (first - (uintptr_t)chunk) + (size_t)place * HK_SLAB_BYTES);
}

static slab_t *slab_of(void *item)
{
    return (slab_t *)(void *)((char *)item - ((uintptr_t)item & (HK_SLAB_BYTES - 1)));
}

static void *item_at(const hk_slab_pool_t *pool, slab_t *slab, uint32_t place)
{
    return (char *)slab + 64 + (size_t)place * pool->size;
}

void hk_slab_init(hk_slab_pool_t *pool, const hk_alloc_t *alloc, uint32_t size)
{
    *pool = (hk_slab_pool_t){.alloc = alloc, .size = size, .per_slab = (HK_SLAB_BYTES - 64) / size};
    hk_list_init(&pool->chunks);
    hk_list_init(&pool->partial);
}

void hk_slab_release(hk_slab_pool_t *pool)
{
    for (hk_list_t *link; (link = hk_list_shift(&pool->chunks)) != NULL;) {
        hk_alloc_free(pool->alloc, HK_OWNER(link, hk_slab_chunk_t, link));
    }
    hk_slab_init(pool, pool->alloc, pool->size);
}

/* The first chunk is small, each has as many slabs as all before it together. */
static bool grow(hk_slab_pool_t *pool)
{
    size_t slabs = pool->bytes / HK_SLAB_BYTES;
    slabs = slabs < 1 ? 1 : slabs > SLABS_MOST ? SLABS_MOST : slabs;
    size_t bytes = sizeof(hk_slab_chunk_t) + (slabs + 1) * HK_SLAB_BYTES;
    hk_slab_chunk_t *chunk = hk_alloc_new(pool->alloc, bytes);
    if (chunk == NULL) {
        return false;
    }
    *chunk = (hk_slab_chunk_t){.slabs = (uint32_t)slabs, .bytes = bytes};
    for (uint32_t i = 0; i < slabs; i++) {
        slab_t *slab = slab_at(chunk, i);
        *slab = (slab_t){.chunk = chunk};
        hk_list_append(&pool->partial, &slab->partial);
    }
    hk_list_append(&pool->chunks, &chunk->link);
    pool->bytes += bytes;
    return true;
}

void *hk_slab_new(hk_slab_pool_t *pool)
{
    hk_list_t *first = hk_list_first(&pool->partial);
    if (first == NULL) {
        if (!grow(pool)) {
            return NULL;
        }
        first = hk_list_first(&pool->partial);
    }
    slab_t *slab = HK_OWNER(first, slab_t, partial);
    void *item = slab->idle;
    if (item != NULL) {
        memcpy(&slab->idle, item, sizeof(item));
    } else {
        item = item_at(pool, slab, slab->begun++);
    }
    if (++slab->used == pool->per_slab) {
        hk_list_remove(&slab->partial);
    }
    if (slab->chunk->used++ == 0 && pool->spare == slab->chunk) {
        pool->spare = NULL;
    }
    pool->count++;
    return item;
}

static void free_chunk(hk_slab_pool_t *pool, hk_slab_chunk_t *chunk)
{
    for (uint32_t i = 0; i < chunk->slabs; i++) {
        hk_list_remove(&slab_at(chunk, i)->partial);
    }
    if (pool->walked == chunk) {
        pool->walked_slab = 0;
        pool->walked = chunk->link.next == &pool->chunks ? NULL : HK_OWNER(chunk->link.next, hk_slab_chunk_t, link);
    }
    hk_list_remove(&chunk->link);
    pool->bytes -= chunk->bytes;
    hk_alloc_free(pool->alloc, chunk);
}

void hk_slab_free(hk_slab_pool_t *pool, void *item)
{
    slab_t *slab = slab_of(item);
    hk_slab_chunk_t *chunk = slab->chunk;
    memcpy(item, &slab->idle, sizeof(item));
    slab->idle = item;
    if (slab->used-- == pool->per_slab) {
        hk_list_append(&pool->partial, &slab->partial);
    }
    pool->count--;
    if (--chunk->used > 0) {
        return;
    }
    if (pool->spare == NULL) {
        pool->spare = chunk;
    } else {
        /* The larger is the better spare: whoever needed it once may need it again. */
        hk_slab_chunk_t *smaller = pool->spare->bytes < chunk->bytes ? pool->spare : chunk;
        pool->spare = smaller == chunk ? pool->spare : chunk;
        free_chunk(pool, smaller);
    }
}

void hk_slab_walk(hk_slab_pool_t *pool)
{
    hk_list_t *first = hk_list_first(&pool->chunks);
    pool->walked = first == NULL ? NULL : HK_OWNER(first, hk_slab_chunk_t, link);
    pool->walked_slab = 0;
}

bool hk_slab_step(hk_slab_pool_t *pool, void (*visit)(void *context, void *item), void *context)
{
    hk_slab_chunk_t *chunk = pool->walked;
    if (chunk == NULL) {
        return false;
    }
    slab_t *slab = slab_at(chunk, pool->walked_slab);
    if (++pool->walked_slab == chunk->slabs) {
        hk_list_t *next = chunk->link.next;
        pool->walked = next == &pool->chunks ? NULL : HK_OWNER(next, hk_slab_chunk_t, link);
        pool->walked_slab = 0;
    }
    for (uint32_t i = 0; i < slab->begun; i++) {
        visit(context, item_at(pool, slab, i));
    }
    return true;
}
