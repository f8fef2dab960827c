#include "hk_heap.h"

enum { SMALLEST = 16 };

void hk_heap_init(hk_heap_t *heap, const hk_alloc_t *alloc)
{
    *heap = (hk_heap_t){.alloc = alloc};
}

void hk_heap_release(hk_heap_t *heap)
{
    hk_alloc_free(heap->alloc, heap->nodes);
    hk_heap_init(heap, heap->alloc);
}

/* Places count from 1, so that a parent is at half the place of its children. */
static void put(hk_heap_t *heap, hk_heap_node_t *node, size_t place)
{
    heap->nodes[place - 1] = node;
    node->place = place;
}

static hk_heap_node_t *node_at(const hk_heap_t *heap, size_t place)
{
    return heap->nodes[place - 1];
}

static void rise(hk_heap_t *heap, hk_heap_node_t *node, size_t place)
{
    while (place > 1 && node_at(heap, place / 2)->at > node->at) {
        put(heap, node_at(heap, place / 2), place);
        place /= 2;
    }
    put(heap, node, place);
}

static void sink(hk_heap_t *heap, hk_heap_node_t *node, size_t place)
{
    for (size_t child; (child = place * 2) <= heap->count; place = child) {
        if (child < heap->count && node_at(heap, child + 1)->at < node_at(heap, child)->at) {
            child++;
        }
        if (node_at(heap, child)->at >= node->at) {
            break;
        }
        put(heap, node_at(heap, child), place);
    }
    put(heap, node, place);
}

static hk_status_t grow(hk_heap_t *heap)
{
    size_t capacity = heap->capacity > 0 ? heap->capacity * 2 : SMALLEST;
    hk_heap_node_t **nodes = hk_alloc_resize(heap->alloc, heap->nodes, capacity, sizeof(hk_heap_node_t *));
    if (nodes == NULL) {
        return HK_NO_MEMORY;
    }
    heap->nodes = nodes;
    heap->capacity = capacity;
    return HK_OK;
}

hk_status_t hk_heap_reserve(hk_heap_t *heap)
{
    return heap->count == heap->capacity ? grow(heap) : HK_OK;
}

hk_status_t hk_heap_add(hk_heap_t *heap, hk_heap_node_t *node, int64_t at)
{
    if (hk_heap_reserve(heap) != HK_OK) {
        return HK_NO_MEMORY;
    }
    node->at = at;
    rise(heap, node, ++heap->count);
    return HK_OK;
}

void hk_heap_remove(hk_heap_t *heap, hk_heap_node_t *node)
{
    if (node->place == 0) {
        return;
    }
    size_t place = node->place;
    hk_heap_node_t *last = node_at(heap, heap->count--);
    node->place = 0;
    if (last == node) {
        return;
    }
    if (place > 1 && node_at(heap, place / 2)->at > last->at) {
        rise(heap, last, place);
    } else {
        sink(heap, last, place);
    }
}

hk_heap_node_t *hk_heap_first(const hk_heap_t *heap)
{
    return heap->count > 0 ? heap->nodes[0] : NULL;
}
