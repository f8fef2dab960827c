#include "rb_hk.h"

/* The gate: decisions that are remembered. */

enum { MAX_NAMES = 64 };

static void read_network(VALUE array, hk_network_t *network)
{
    Check_Type(array, T_ARRAY);
    VALUE string = rb_ary_entry(array, 2);
    hk_bytes_t address = rb_hk_bytes(&string);
    *network = (hk_network_t){.family = (uint8_t)NUM2UINT(rb_ary_entry(array, 0)),
                              .bits = (uint8_t)NUM2UINT(rb_ary_entry(array, 1))};
    if (address.length != (network->family == 4 ? 4U : 16U) || network->bits > 8 * address.length) {
        rb_hk_fail(rb_eArgError, "this is no network");
    }
    memcpy(network->address, address.at, address.length);
    RB_GC_GUARD(string);
}

typedef struct make_gate {
    const hk_gate_options_t *options;
    bool there;
    hk_status_t status;
} make_gate_t;

static void make_gate(rb_hk_core_t *core, void *argument)
{
    make_gate_t *call = argument;
    call->there = core->gate != NULL;
    if (!call->there) {
        call->status = hk_gate_new(hk_alloc_default(), call->options, core->hub, &core->gate);
    }
}

/* _gate(engine, path:, cookie_names:, legacy:, counts_loopback:, dates:, trusted_proxies: [[family, bits, address], …],
 * max_table_bytes:, max_topics:, max_topic_bytes:, max_id_bytes:, max_type_bytes:, max_body_bytes:, max_fields:, secret:) */
static VALUE reactor_gate(VALUE self, VALUE engine, VALUE wanted)
{
    VALUE names = rb_hk_option(wanted, "cookie_names"), proxies = rb_hk_option(wanted, "trusted_proxies");
    VALUE path = rb_hk_option(wanted, "path");
    Check_Type(names, T_ARRAY);
    Check_Type(proxies, T_ARRAY);
    VALUE kept[MAX_NAMES], networks_memory;
    hk_bytes_t cookie_names[MAX_NAMES];
    size_t name_count = (size_t)RARRAY_LEN(names), proxy_count = (size_t)RARRAY_LEN(proxies);
    if (name_count > MAX_NAMES) {
        rb_hk_fail(rb_eArgError, "there are too many cookie names");
    }
    for (size_t i = 0; i < name_count; i++) {
        kept[i] = rb_ary_entry(names, (long)i);
        cookie_names[i] = rb_hk_bytes(&kept[i]);
    }
    hk_network_t *networks = RB_HK_TEMPORARY(hk_network_t, networks_memory, proxy_count + 1);
    for (size_t i = 0; i < proxy_count; i++) {
        read_network(rb_ary_entry(proxies, (long)i), &networks[i]);
    }
    hk_gate_options_t options = {
        .path = rb_hk_bytes(&path),
        .cookie_names = cookie_names,
        .cookie_name_count = name_count,
        .legacy = RTEST(rb_hk_option(wanted, "legacy")),
        .counts_loopback = RTEST(rb_hk_option(wanted, "counts_loopback")),
        .dates = RTEST(rb_hk_option(wanted, "dates")),
        .trusted_proxies = networks,
        .trusted_proxy_count = proxy_count,
        .max_table_bytes = rb_hk_size_option(wanted, "max_table_bytes"),
        .max_topics = rb_hk_size_option(wanted, "max_topics"),
        .max_topic_bytes = rb_hk_size_option(wanted, "max_topic_bytes"),
        .max_id_bytes = rb_hk_size_option(wanted, "max_id_bytes"),
        .max_type_bytes = rb_hk_size_option(wanted, "max_type_bytes"),
        .max_body_bytes = rb_hk_size_option(wanted, "max_body_bytes"),
        .max_fields = rb_hk_size_option(wanted, "max_fields"),
    };
    rb_hk_copy_exactly(rb_hk_option(wanted, "secret"), "secret", options.secret, sizeof(options.secret));
    make_gate_t call = {.options = &options};
    rb_hk_locked(rb_hk_core_of(engine), make_gate, &call);
    ALLOCV_END(networks_memory);
    RB_GC_GUARD(path);
    RB_GC_GUARD(names);
    if (call.there) {
        rb_hk_fail(rb_eRuntimeError, "the engine answers requests already");
    }
    rb_hk_check(call.status, "gate");
    return Qnil;
}

typedef struct remember {
    hk_decision_t decision;
    rb_hk_part_t *part;
    hk_status_t status;
} remember_t;

static void remember(rb_hk_core_t *core, void *argument)
{
    remember_t *call = argument;
    call->decision.grant = call->part->grant;
    if (core->gate != NULL) {
        call->status = hk_gate_remember(core->gate, &call->decision);
    }
}

/* _remember(engine, key, epoch, grant, head) */
static VALUE reactor_remember(VALUE self, VALUE engine, VALUE key, VALUE epoch, VALUE grant, VALUE head)
{
    remember_t call = {
        .decision = {.key = rb_hk_bytes(&key), .epoch = NUM2ULL(epoch), .head = rb_hk_bytes(&head)},
        .part = rb_hk_grant_part(grant),
    };
    rb_hk_locked(rb_hk_core_of(engine), remember, &call);
    RB_GC_GUARD(key);
    RB_GC_GUARD(grant);
    RB_GC_GUARD(head);
    rb_hk_check(call.status, "remember");
    return Qnil;
}

static void forget(rb_hk_core_t *core, void *argument)
{
    if (core->gate != NULL) {
        hk_gate_forget(core->gate, *(hk_bytes_t *)argument);
    }
}

/* _forget(engine, subject): nil for everybody. */
static VALUE reactor_forget(VALUE self, VALUE engine, VALUE subject)
{
    hk_bytes_t bytes = rb_hk_bytes(&subject);
    rb_hk_locked(rb_hk_core_of(engine), forget, &bytes);
    RB_GC_GUARD(subject);
    return Qnil;
}

static void read_stats(rb_hk_core_t *core, void *argument)
{
    if (core->gate != NULL) {
        hk_gate_read_stats(core->gate, argument);
    }
}

/* _gate_stats(engine): a Hash, as hk_gate_stats_t. */
static VALUE reactor_gate_stats(VALUE self, VALUE engine)
{
    hk_gate_stats_t stats = {0};
    rb_hk_locked(rb_hk_core_of(engine), read_stats, &stats);
    VALUE hash = rb_hash_new();
#define FIGURE(name) rb_hash_aset(hash, ID2SYM(rb_intern(#name)), ULL2NUM(stats.name))
    FIGURE(hits);
    FIGURE(misses);
    FIGURE(asks);
    FIGURE(decisions);
    FIGURE(bytes);
#undef FIGURE
    return hash;
}

void rb_hk_init_gate(VALUE reactor_class)
{
    rb_define_private_method(reactor_class, "_gate", reactor_gate, 2);
    rb_define_private_method(reactor_class, "_remember", reactor_remember, 5);
    rb_define_private_method(reactor_class, "_forget", reactor_forget, 2);
    rb_define_private_method(reactor_class, "_gate_stats", reactor_gate_stats, 1);
}
