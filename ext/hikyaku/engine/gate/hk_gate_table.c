#include "hk_gate_table.h"

/* What the allocator and the map need for one more. */
enum { OVERHEAD = 48 };

void hk_gate_table_init(hk_gate_table_t *table, const hk_alloc_t *alloc, size_t max_bytes, const uint64_t secret[2])
{
    *table = (hk_gate_table_t){.alloc = alloc, .generation_bytes = max_bytes / 2};
    hk_map_init(&table->map, alloc, secret);
}

/* All who hold a matcher pay for it, but its maker. */
static size_t share_of_matcher(const hk_matcher_t *matcher)
{
    return matcher->bytes / (matcher->references > 2 ? matcher->references - 1 : 1);
}

static size_t share_of_matchers(hk_matcher_t *const *matchers, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += share_of_matcher(matchers[i]);
    }
    return bytes;
}

static size_t bytes_of_grant(const hk_grant_t *grant)
{
    size_t bytes = grant->bytes;
    for (size_t i = 0; i < grant->subscription_count; i++) {
        bytes += share_of_matcher(grant->subscriptions[i].matcher);
    }
    return bytes + share_of_matchers(grant->reads, grant->read_count) +
           share_of_matchers(grant->publishes, grant->publish_count);
}

static size_t bytes_of(const hk_gate_entry_t *entry)
{
    return sizeof(*entry) + entry->node.key.length + entry->head.length + bytes_of_grant(entry->grant) + OVERHEAD;
}

static hk_gate_generation_t *generation_of(hk_gate_table_t *table, const hk_gate_entry_t *entry)
{
    return entry->generation == table->generation ? &table->young : &table->old;
}

static void link_entry(hk_gate_table_t *table, hk_gate_entry_t *entry)
{
    hk_gate_generation_t *generation = generation_of(table, entry);
    entry->previous = NULL;
    entry->next = generation->first;
    if (entry->next != NULL) {
        entry->next->previous = entry;
    }
    generation->first = entry;
    generation->bytes += entry->bytes;
}

static void unlink_entry(hk_gate_table_t *table, hk_gate_entry_t *entry)
{
    hk_gate_generation_t *generation = generation_of(table, entry);
    if (entry->next != NULL) {
        entry->next->previous = entry->previous;
    }
    if (entry->previous != NULL) {
        entry->previous->next = entry->next;
    } else {
        generation->first = entry->next;
    }
    generation->bytes -= entry->bytes;
}

static void free_entry(hk_gate_table_t *table, hk_gate_entry_t *entry)
{
    hk_grant_release(entry->grant);
    hk_alloc_free(table->alloc, entry);
}

void hk_gate_table_remove(hk_gate_table_t *table, hk_gate_entry_t *entry)
{
    if (table->last == entry) {
        table->last = NULL;
    }
    hk_map_remove(&table->map, &entry->node);
    unlink_entry(table, entry);
    free_entry(table, entry);
}

static void forget_generation(hk_gate_table_t *table, hk_gate_generation_t *generation, hk_bytes_t subject)
{
    for (hk_gate_entry_t *entry = generation->first, *next; entry != NULL; entry = next) {
        next = entry->next;
        if (subject.length == 0 || hk_bytes_equal(entry->grant->subject, subject)) {
            hk_gate_table_remove(table, entry);
        }
    }
}

void hk_gate_table_forget(hk_gate_table_t *table, hk_bytes_t subject)
{
    forget_generation(table, &table->young, subject);
    forget_generation(table, &table->old, subject);
}

void hk_gate_table_release(hk_gate_table_t *table)
{
    hk_gate_table_forget(table, HK_BYTES(""));
    hk_map_release(&table->map);
}

static void age(hk_gate_table_t *table)
{
    forget_generation(table, &table->old, HK_BYTES(""));
    table->old = table->young;
    table->young = (hk_gate_generation_t){0};
    table->generation++;
}

/* For an entry that is in the map and in no generation. Others who paid for its matchers may have gone. */
static void rejuvenate(hk_gate_table_t *table, hk_gate_entry_t *entry)
{
    entry->bytes = bytes_of(entry);
    if (table->young.bytes + entry->bytes > table->generation_bytes) {
        age(table);
    }
    entry->generation = table->generation;
    link_entry(table, entry);
}

hk_gate_entry_t *hk_gate_table_find(hk_gate_table_t *table, hk_bytes_t key)
{
    bool again = table->last != NULL && hk_bytes_equal(table->last->node.key, key);
    /* The node is the first member. */
    hk_gate_entry_t *entry = again ? table->last : (hk_gate_entry_t *)hk_map_find(&table->map, key);
    table->last = entry;
    if (entry != NULL && entry->generation != table->generation) {
        unlink_entry(table, entry);
        rejuvenate(table, entry);
    }
    return entry;
}

static hk_gate_entry_t *new_entry(hk_gate_table_t *table, hk_bytes_t key, hk_bytes_t head, hk_grant_t *grant)
{
    hk_gate_entry_t *entry = hk_alloc_new(table->alloc, sizeof(*entry) + key.length + head.length);
    if (entry == NULL) {
        return NULL;
    }
    char *text = (char *)(entry + 1);
    *entry = (hk_gate_entry_t){
        .grant = grant,
        .head = {text + key.length, head.length},
    };
    if (key.length > 0) {
        memcpy(text, key.at, key.length);
    }
    if (head.length > 0) {
        memcpy(text + key.length, head.at, head.length);
    }
    entry->node.key = hk_bytes(text, key.length);
    entry->bytes = bytes_of(entry);
    return entry;
}

hk_status_t hk_gate_table_add(hk_gate_table_t *table, hk_bytes_t key, hk_bytes_t head, hk_grant_t *grant)
{
    hk_gate_entry_t *entry = new_entry(table, key, head, grant);
    if (entry == NULL) {
        return HK_NO_MEMORY;
    }
    hk_gate_entry_t *former = (hk_gate_entry_t *)hk_map_find(&table->map, key);
    bool fits = entry->bytes <= table->generation_bytes;
    if (fits && hk_map_add(&table->map, &entry->node, entry->node.key) != HK_OK) {
        hk_alloc_free(table->alloc, entry);
        return HK_NO_MEMORY;
    }
    if (former != NULL) {
        hk_gate_table_remove(table, former);
    }
    if (fits) {
        hk_grant_retain(grant);
        rejuvenate(table, entry);
    } else {
        hk_alloc_free(table->alloc, entry);
    }
    return HK_OK;
}

size_t hk_gate_table_count(const hk_gate_table_t *table)
{
    return table->map.count;
}

size_t hk_gate_table_bytes(const hk_gate_table_t *table)
{
    return table->young.bytes + table->old.bytes;
}
