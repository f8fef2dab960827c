/* hk_gate_table.h: decisions, found by the values that decided.
 *
 * Bounded in bytes by two generations: what was not asked for while half of the bytes were filled anew is forgotten. A
 * decision that takes more than half of them is not kept at all. What a decision takes is its key and head, the grant
 * and its share of the grant's matchers, with what the makers of both keep beside them. It is counted again when the
 * decision is asked for in a new generation.
 */
#ifndef HK_GATE_TABLE_H
#define HK_GATE_TABLE_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_grant.h"
#include "hk_hub.h"
#include "hk_map.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hk_gate_entry {
    hk_map_node_t node;                    /* node.key: the deciding values */
    struct hk_gate_entry *next, *previous; /* in its generation */
    hk_grant_t *grant;
    hk_bytes_t head;
    hk_stream_form_t form; /* of a stream: those that its head says */
    hk_stream_coding_t coding;
    size_t bytes;
    uint8_t generation;
} hk_gate_entry_t;

typedef struct hk_gate_generation {
    hk_gate_entry_t *first;
    size_t bytes;
} hk_gate_generation_t;

typedef struct hk_gate_table {
    const hk_alloc_t *alloc;
    hk_map_t map; /* of both generations */
    hk_gate_generation_t young, old;
    size_t generation_bytes;
    uint8_t generation;    /* the young one's number */
    hk_gate_entry_t *last; /* what was found last, maybe NULL: whoever comes again costs no hash */
} hk_gate_table_t;

/* An empty table without memory. */
void hk_gate_table_init(hk_gate_table_t *table, const hk_alloc_t *alloc, size_t max_bytes, const uint64_t secret[2]);

/* Forgets everything and gives the memory back. */
void hk_gate_table_release(hk_gate_table_t *table);

/* The decision under a key, or NULL. Borrowed until the table changes. */
hk_gate_entry_t *hk_gate_table_find(hk_gate_table_t *table, hk_bytes_t key);

/* Remembers a decision in the place of what stands under its key. HK_OK (also when it is too large to be kept; what
 * stood there is gone then as well), or HK_NO_MEMORY (nothing was changed).
 *
 * key, head  copied.
 * grant      retained. */
hk_status_t hk_gate_table_add(hk_gate_table_t *table, hk_bytes_t key, hk_bytes_t head, hk_grant_t *grant);

void hk_gate_table_remove(hk_gate_table_t *table, hk_gate_entry_t *entry);

/* Forgets the decisions about a subject; empty: all. O(decisions). */
void hk_gate_table_forget(hk_gate_table_t *table, hk_bytes_t subject);

/* How many decisions there are, and the bytes that they take. */
size_t hk_gate_table_count(const hk_gate_table_t *table);
size_t hk_gate_table_bytes(const hk_gate_table_t *table);

#endif
