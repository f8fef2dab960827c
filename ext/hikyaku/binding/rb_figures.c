#include "rb_hk.h"

/* Looking into an engine: who is there, and figures. */

typedef struct listing {
    const hk_hub_t *hub;
    hk_bytes_t type, pattern;
    hk_buf_t found; /* entry_t and the address, one behind the other */
    size_t count;
    hk_status_t status;
} listing_t;

typedef struct entry {
    uint64_t serial, tag;
    char id[HK_SUBSCRIBER_ID_BYTES];
    size_t address_length;
} entry_t;

static bool note(void *context, hk_subscriber_t *subscriber)
{
    listing_t *call = context;
    hk_bytes_t address = hk_subscriber_address(subscriber);
    entry_t entry = {.serial = hk_subscriber_serial(subscriber),
                     .tag = hk_subscriber_grant(subscriber)->tag,
                     .address_length = address.length};
    hk_subscriber_id(call->hub, subscriber, entry.id);
    call->status = hk_buf_append(&call->found, hk_bytes((const char *)&entry, sizeof(entry)));
    if (call->status == HK_OK) {
        call->status = hk_buf_append(&call->found, address);
    }
    call->count++;
    return call->status == HK_OK;
}

static void list(rb_hk_core_t *core, void *argument)
{
    listing_t *call = argument;
    call->hub = core->hub;
    if (call->type.length == 0) {
        hk_hub_each(core->hub, note, call);
    } else {
        hk_hub_each_of_matcher(core->hub, call->type, call->pattern, note, call);
    }
}

static VALUE listing_array(VALUE argument)
{
    listing_t *call = (listing_t *)argument;
    const char *at = hk_buf_bytes(&call->found).at;
    VALUE array = rb_ary_new_capa((long)call->count * 4);
    for (size_t i = 0; i < call->count; i++) {
        entry_t entry;
        memcpy(&entry, at, sizeof(entry));
        at += sizeof(entry);
        rb_ary_push(array, ULL2NUM(entry.serial));
        rb_ary_push(array, rb_str_freeze(rb_utf8_str_new(entry.id, HK_SUBSCRIBER_ID_BYTES)));
        rb_ary_push(array, ULL2NUM(entry.tag));
        rb_ary_push(array, rb_hk_text_or_nil(hk_bytes(at, entry.address_length)));
        at += entry.address_length;
    }
    return array;
}

/* _subscribers(type, pattern): [serial, id, tag of the grant, address, serial, …], of one matcher, or of all. */
static VALUE engine_subscribers(VALUE self, VALUE type, VALUE pattern)
{
    listing_t call = {.type = rb_hk_bytes(&type), .pattern = rb_hk_bytes(&pattern)};
    hk_buf_init(&call.found, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), list, &call);
    RB_GC_GUARD(type);
    RB_GC_GUARD(pattern);
    if (call.status != HK_OK) {
        hk_buf_release(&call.found);
        rb_hk_check(call.status, "subscribers");
    }
    return rb_hk_releasing(&call.found, listing_array, (VALUE)&call);
}

typedef struct user {
    hk_bytes_t type, pattern;
    uint64_t tag;
    bool found;
} user_t;

static bool note_user(void *context, hk_subscriber_t *subscriber)
{
    user_t *call = context;
    call->tag = hk_subscriber_grant(subscriber)->tag;
    call->found = true;
    return false;
}

static void find_user(rb_hk_core_t *core, void *argument)
{
    user_t *call = argument;
    hk_hub_each_of_matcher(core->hub, call->type, call->pattern, note_user, call);
}

/* _user_of(type, pattern): the tag of a grant that uses this matcher, or nil. */
static VALUE engine_user_of(VALUE self, VALUE type, VALUE pattern)
{
    user_t call = {.type = rb_hk_bytes(&type), .pattern = rb_hk_bytes(&pattern)};
    rb_hk_locked(rb_hk_core_of(self), find_user, &call);
    RB_GC_GUARD(type);
    RB_GC_GUARD(pattern);
    return call.found ? ULL2NUM(call.tag) : Qnil;
}

typedef struct last_id {
    hk_buf_t id;
    hk_status_t status;
} last_id_t;

static void read_last_id(rb_hk_core_t *core, void *argument)
{
    last_id_t *call = argument;
    call->status = hk_buf_append(&call->id, hk_hub_last_event_id(core->hub));
}

static VALUE id_string(VALUE argument)
{
    return rb_hk_text_or_nil(hk_buf_bytes((hk_buf_t *)argument));
}

/* _last_event_id: a String or nil. */
static VALUE engine_last_event_id(VALUE self)
{
    last_id_t call = {.status = HK_OK};
    hk_buf_init(&call.id, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), read_last_id, &call);
    rb_hk_check(call.status, "last event id");
    return rb_hk_releasing(&call.id, id_string, (VALUE)&call.id);
}

static void read_stats(rb_hk_core_t *core, void *argument)
{
    hk_hub_read_stats(core->hub, argument);
}

/* _stats: a Hash, as hk_hub_stats_t. */
static VALUE engine_stats(VALUE self)
{
    hk_hub_stats_t stats;
    rb_hk_locked(rb_hk_core_of(self), read_stats, &stats);
    VALUE hash = rb_hash_new();
#define FIGURE(name) rb_hash_aset(hash, ID2SYM(rb_intern(#name)), ULL2NUM(stats.name))
    FIGURE(subscribers);
    FIGURE(subscriptions);
    FIGURE(feeds);
    FIGURE(publishes);
    FIGURE(deliveries);
    FIGURE(delivered_bytes);
    FIGURE(history_bytes);
    FIGURE(history_updates);
    FIGURE(topics);
    FIGURE(topic_bytes);
    FIGURE(gaps);
    FIGURE(overruns);
    FIGURE(refused_total);
    FIGURE(refused_address);
    FIGURE(pattern_cost);
    FIGURE(refused_cost);
#undef FIGURE
    return hash;
}

/* _subscriber_count */
static VALUE engine_subscriber_count(VALUE self)
{
    hk_hub_stats_t stats;
    rb_hk_locked(rb_hk_core_of(self), read_stats, &stats);
    return ULL2NUM(stats.subscribers);
}

typedef struct lag {
    uint64_t slowest, p99;
} lag_t;

static void read_lag(rb_hk_core_t *core, void *argument)
{
    lag_t *call = argument;
    hk_hub_read_lag(core->hub, &call->slowest, &call->p99);
}

/* _lag: [slowest, 99th percentile] */
static VALUE engine_lag(VALUE self)
{
    lag_t call = {0};
    rb_hk_locked(rb_hk_core_of(self), read_lag, &call);
    return rb_assoc_new(ULL2NUM(call.slowest), ULL2NUM(call.p99));
}

void rb_hk_init_figures(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_subscribers", engine_subscribers, 2);
    rb_define_private_method(engine_class, "_user_of", engine_user_of, 2);
    rb_define_private_method(engine_class, "_last_event_id", engine_last_event_id, 0);
    rb_define_private_method(engine_class, "_stats", engine_stats, 0);
    rb_define_private_method(engine_class, "_subscriber_count", engine_subscriber_count, 0);
    rb_define_private_method(engine_class, "_lag", engine_lag, 0);
}
