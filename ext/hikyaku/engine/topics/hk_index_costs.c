#include "hk_index_costs.h"

#include <string.h>

static size_t common(hk_bytes_t one, hk_bytes_t other)
{
    size_t length = one.length < other.length ? one.length : other.length, same = 0;
    while (same < length && one.at[same] == other.at[same]) {
        same++;
    }
    return same;
}

/* The way that goes on with the byte of the key behind the node's own. NULL: none does. */
static hk_index_cost_t *child_for(const hk_index_cost_t *node, hk_bytes_t key)
{
    hk_index_cost_t *child = node->child;
    while (child != NULL && child->key.at[node->key.length] != key.at[node->key.length]) {
        child = child->next;
    }
    return child;
}

/* Where the node stands in its parent, or in the tree. */
static hk_index_cost_t **place_of(hk_index_costs_t *costs, const hk_index_cost_t *node)
{
    hk_index_cost_t **place = node->parent != NULL ? &node->parent->child : &costs->root;
    while (*place != node) {
        place = &(*place)->next;
    }
    return place;
}

static void weigh(hk_index_cost_t *node)
{
    for (; node != NULL; node = node->parent) {
        node->heaviest = 0;
        for (const hk_index_cost_t *child = node->child; child != NULL; child = child->next) {
            uint64_t weight = child->cost + child->heaviest;
            node->heaviest = weight > node->heaviest ? weight : node->heaviest;
        }
    }
}

static hk_index_cost_t *make(const hk_index_costs_t *costs, hk_bytes_t key)
{
    hk_index_cost_t *made = hk_alloc_new(costs->alloc, sizeof(*made) + key.length);
    if (made != NULL) {
        *made = (hk_index_cost_t){.key = hk_bytes((char *)(made + 1), key.length)};
        if (key.length > 0) {
            memcpy(made + 1, key.at, key.length);
        }
    }
    return made;
}

/* The last node on the way to a key whose own key begins it, or NULL; and the one behind it that does not, or NULL. */
static hk_index_cost_t *walk(const hk_index_costs_t *costs, hk_bytes_t key, hk_index_cost_t **beyond)
{
    hk_index_cost_t *last = NULL, *next = costs->root;
    while (next != NULL && hk_bytes_start_with(key, next->key)) {
        last = next;
        next = key.length > last->key.length ? child_for(last, key) : NULL;
    }
    *beyond = next;
    return last;
}

static void adopt(hk_index_cost_t *parent, hk_index_cost_t *child)
{
    child->parent = parent;
    child->next = parent->child;
    parent->child = child;
}

/* Puts a node with what two keys have in common where the first stands. False: no memory. */
static hk_index_cost_t *part(hk_index_costs_t *costs, hk_index_cost_t *node, hk_bytes_t key)
{
    hk_index_cost_t *made = make(costs, hk_bytes(key.at, common(node->key, key)));
    if (made != NULL) {
        *place_of(costs, node) = made;
        made->parent = node->parent;
        made->next = node->next;
        adopt(made, node);
        node->next = NULL;
        weigh(made);
    }
    return made;
}

/* Takes out a node without cost at which no children part, and then its parent, likewise. */
static void prune(hk_index_costs_t *costs, hk_index_cost_t *node)
{
    while (node != NULL && node->cost == 0 && (node->child == NULL || node->child->next == NULL)) {
        hk_index_cost_t *parent = node->parent, *child = node->child;
        hk_index_cost_t **place = place_of(costs, node);
        *place = child != NULL ? child : node->next;
        if (child != NULL) {
            child->parent = parent;
            child->next = node->next;
        }
        hk_alloc_free(costs->alloc, node);
        node = parent;
    }
}

hk_status_t hk_index_costs_add(hk_index_costs_t *costs, hk_bytes_t key, uint64_t cost)
{
    hk_index_cost_t *beyond, *node = walk(costs, key, &beyond);
    if (beyond != NULL) {
        node = part(costs, beyond, key);
        if (node == NULL) {
            return HK_NO_MEMORY;
        }
    }
    if (node == NULL || node->key.length < key.length) {
        hk_index_cost_t *made = make(costs, key);
        if (made == NULL) {
            prune(costs, node);
            return HK_NO_MEMORY;
        }
        if (node != NULL) {
            adopt(node, made);
        } else {
            costs->root = made;
        }
        node = made;
    }
    node->cost += cost;
    weigh(node->parent);
    return HK_OK;
}

void hk_index_costs_remove(hk_index_costs_t *costs, hk_bytes_t key, uint64_t cost)
{
    hk_index_cost_t *beyond, *node = walk(costs, key, &beyond);
    node->cost -= cost;
    weigh(node->parent);
    prune(costs, node);
}

uint64_t hk_index_costs_through(const hk_index_costs_t *costs, hk_bytes_t key)
{
    hk_index_cost_t *beyond, *node = walk(costs, key, &beyond);
    uint64_t cost = 0;
    if (beyond != NULL && hk_bytes_start_with(beyond->key, key)) {
        cost = beyond->cost + beyond->heaviest;
    } else if (node != NULL && node->key.length == key.length) {
        cost = node->heaviest;
    }
    for (; node != NULL; node = node->parent) {
        cost += node->cost;
    }
    return cost;
}

void hk_index_costs_release(hk_index_costs_t *costs)
{
    for (hk_index_cost_t *node = costs->root; node != NULL;) {
        if (node->child != NULL) {
            hk_index_cost_t *child = node->child;
            node->child = child->next;
            node = child;
        } else {
            hk_index_cost_t *parent = node->parent;
            hk_alloc_free(costs->alloc, node);
            node = parent;
        }
    }
    costs->root = NULL;
}
