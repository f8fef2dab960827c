#include "rb_broker.h"

/* Looking into a broker. */

#define FIGURE(hash, stats, name) rb_hash_aset(hash, ID2SYM(rb_intern(#name)), ULL2NUM((stats)->name))

static void read_stats(hk_broker_t *broker, void *argument)
{
    hk_broker_read_stats(broker, argument);
}

static VALUE counts(const uint64_t *numbers, size_t count)
{
    VALUE array = rb_ary_new_capa((long)count);
    for (size_t i = 0; i < count; i++) {
        rb_ary_push(array, ULL2NUM(numbers[i]));
    }
    return array;
}

static VALUE journal_figures(const hk_journal_stats_t *stats)
{
    VALUE hash = rb_hash_new();
    FIGURE(hash, stats, records);
    FIGURE(hash, stats, bytes);
    FIGURE(hash, stats, batches);
    FIGURE(hash, stats, syncs);
    FIGURE(hash, stats, sync_ns);
    FIGURE(hash, stats, longest_sync_ns);
    FIGURE(hash, stats, segments);
    FIGURE(hash, stats, spares);
    FIGURE(hash, stats, torn_repaired);
    FIGURE(hash, stats, torn_places);
    FIGURE(hash, stats, torn_missing);
    return hash;
}

/* _stats(storage): a Hash, as hk_broker_stats_t; `journal` only with storage. */
static VALUE engine_stats(VALUE self, VALUE storage)
{
    hk_broker_stats_t stats;
    rb_hk_with_broker(rb_hk_broker_of(self), read_stats, &stats);
    VALUE hash = rb_hash_new();
    FIGURE(hash, &stats, sessions);
    FIGURE(hash, &stats, queues);
    FIGURE(hash, &stats, identities);
    FIGURE(hash, &stats, identities_evicted);
    FIGURE(hash, &stats, messages);
    FIGURE(hash, &stats, messages_lost);
    FIGURE(hash, &stats, bytes);
    FIGURE(hash, &stats, memory_bytes);
    FIGURE(hash, &stats, index_bytes);
    FIGURE(hash, &stats, ready);
    FIGURE(hash, &stats, delayed);
    FIGURE(hash, &stats, out);
    FIGURE(hash, &stats, dead);
    rb_hash_aset(hash, ID2SYM(rb_intern("received")), counts(stats.received, 3));
    FIGURE(hash, &stats, delivered);
    FIGURE(hash, &stats, freed);
    FIGURE(hash, &stats, redelivered);
    FIGURE(hash, &stats, failed);
    FIGURE(hash, &stats, crashed);
    FIGURE(hash, &stats, released);
    FIGURE(hash, &stats, expired);
    FIGURE(hash, &stats, duplicates);
    FIGURE(hash, &stats, stale);
    FIGURE(hash, &stats, copied);
    rb_hash_aset(hash, ID2SYM(rb_intern("refused")), counts(stats.refused, sizeof(stats.refused) / sizeof(uint64_t)));
    if (RTEST(storage)) {
        rb_hash_aset(hash, ID2SYM(rb_intern("journal")), journal_figures(&stats.journal));
    }
    return hash;
}

/* --- queues ------------------------------------------------------------------------------------------------------ */

typedef struct listing {
    uint64_t wall;
    hk_buf_t found; /* hk_queue_stats_t and the name, one behind the other */
    size_t count;
    hk_status_t status;
} listing_t;

static void note(void *context, const hk_queue_stats_t *stats)
{
    listing_t *call = context;
    if (call->status == HK_OK) {
        call->status = hk_buf_append(&call->found, hk_bytes((const char *)stats, sizeof(*stats)));
    }
    if (call->status == HK_OK) {
        call->status = hk_buf_append(&call->found, stats->name);
    }
    call->count++;
}

static void list(hk_broker_t *broker, void *argument)
{
    listing_t *call = argument;
    hk_broker_each_queue(broker, call->wall, note, call);
}

static VALUE queue_figures(const hk_queue_stats_t *stats)
{
    VALUE hash = rb_hash_new();
    rb_hash_aset(hash, ID2SYM(rb_intern("name")), rb_utf8_str_new(stats->name.at, (long)stats->name.length));
    FIGURE(hash, stats, kind);
    FIGURE(hash, stats, ready);
    FIGURE(hash, stats, delayed);
    FIGURE(hash, stats, out);
    FIGURE(hash, stats, dead);
    FIGURE(hash, stats, bytes);
    FIGURE(hash, stats, oldest_ms);
    FIGURE(hash, stats, receivers);
    FIGURE(hash, stats, sent);
    FIGURE(hash, stats, freed);
    FIGURE(hash, stats, redelivered);
    FIGURE(hash, stats, failed);
    FIGURE(hash, stats, crashed);
    FIGURE(hash, stats, expired);
    return hash;
}

static VALUE listing_array(VALUE argument)
{
    const listing_t *call = (const listing_t *)argument;
    const char *at = hk_buf_bytes(&call->found).at;
    VALUE array = rb_ary_new_capa((long)call->count);
    for (size_t i = 0; i < call->count; i++) {
        hk_queue_stats_t stats;
        memcpy(&stats, at, sizeof(stats));
        at += sizeof(stats);
        stats.name.at = at;
        at += stats.name.length;
        rb_ary_push(array, queue_figures(&stats));
    }
    return array;
}

/* _queues(wall): an Array of Hashes, as hk_queue_stats_t. */
static VALUE engine_queues(VALUE self, VALUE wall)
{
    listing_t call = {.wall = NUM2ULL(wall), .status = HK_OK};
    rb_hk_broker_t *broker = rb_hk_broker_of(self);
    hk_buf_init(&call.found, hk_alloc_default());
    rb_hk_with_broker(broker, list, &call);
    if (call.status != HK_OK) {
        hk_buf_release(&call.found);
        rb_hk_check(call.status, "queues");
    }
    return rb_hk_releasing(&call.found, listing_array, (VALUE)&call);
}

void rb_hk_init_broker_figures(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_stats", engine_stats, 1);
    rb_define_private_method(engine_class, "_queues", engine_queues, 1);
}
