#include "rb_hk.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

/* The engine object, and the core behind it. */

rb_hk_core_t *rb_hk_core_hold(rb_hk_core_t *core)
{
    core->holders++;
    return core;
}

/* Its threads and its journal are the parent's; the hub itself is this process's, too. */
static void core_abandon(rb_hk_watched_t *watched)
{
    rb_hk_keeper_abandon(HK_OWNER(watched, rb_hk_core_t, watched));
}

static void core_free(rb_hk_core_t *core)
{
    rb_hk_fork_forget(&core->watched);
    while (core->unused != NULL) {
        rb_hk_part_t *part = core->unused;
        core->unused = part->next;
        rb_hk_part_free(part);
    }
    rb_hk_keeper_drop(core);
    hk_gate_free(core->gate);
    hk_hub_free(core->hub);
    hk_lock_release(&core->lock);
    hk_alloc_free(hk_alloc_default(), core);
}

void rb_hk_core_drop(rb_hk_core_t *core)
{
    if (core != NULL && --core->holders == 0) {
        core_free(core);
    }
}

static void engine_free(void *core)
{
    rb_hk_core_drop(core);
}

static void read_bytes(rb_hk_core_t *core, void *bytes)
{
    hk_hub_stats_t stats;
    hk_hub_read_stats(core->hub, &stats);
    *(size_t *)bytes = stats.history_bytes + stats.topic_bytes;
}

/* Who asks must not wait: it may be in the middle of going through all objects. */
static size_t engine_size(const void *data)
{
    size_t bytes = 0;
    if (data != NULL) {
        rb_hk_locked_now((rb_hk_core_t *)data, read_bytes, &bytes);
        bytes += sizeof(rb_hk_core_t);
    }
    return bytes;
}

static const rb_data_type_t engine_type = {
    .wrap_struct_name = "Hikyaku::Hub::NativeEngine",
    .function = {.dmark = NULL, .dfree = engine_free, .dsize = engine_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE engine_alloc(VALUE class)
{
    return TypedData_Wrap_Struct(class, &engine_type, NULL);
}

rb_hk_core_t *rb_hk_core_of(VALUE engine)
{
    rb_hk_core_t *core = rb_check_typeddata(engine, &engine_type);
    if (core == NULL) {
        rb_hk_fail(rb_eRuntimeError, "the engine is not set up");
    }
    return core;
}

static hk_status_t core_new(const hk_hub_options_t *options, rb_hk_core_t **made)
{
    const hk_alloc_t *alloc = hk_alloc_default();
    rb_hk_core_t *core = hk_alloc_zeroed(alloc, 1, sizeof(*core));
    if (core == NULL) {
        return HK_NO_MEMORY;
    }
    hk_status_t status = hk_hub_new(alloc, options, &core->hub);
    if (status == HK_OK) {
        status = hk_lock_init(&core->lock);
    }
    if (status != HK_OK) {
        hk_hub_free(core->hub);
        hk_alloc_free(alloc, core);
        return status;
    }
    core->holders = 1;
    core->generation = rb_hk_generation();
    rb_hk_fork_watch(&core->watched, &core->lock, core_abandon);
    *made = core;
    return HK_OK;
}

/* _setup(history:, heartbeat:, max_lifetime:, announces:, max_connections:, max_connections_per_address:,
 * max_pattern_cost_total:, max_pattern_cost_per_address:, max_pattern_cost_per_beginning:, hub:, comparable_path:,
 * topic_table_bytes:, key:, secret:) */
static VALUE engine_setup(VALUE self, VALUE options)
{
    if (rb_check_typeddata(self, &engine_type) != NULL) {
        rb_hk_fail(rb_eRuntimeError, "the engine is set up already");
    }
    VALUE kept[HK_URL_PARTS + 1];
    VALUE path = rb_hk_option(options, "comparable_path");
    hk_hub_options_t wanted = {
        .history_bytes = rb_hk_size_option(options, "history"),
        .heartbeat = rb_hk_ns(rb_hk_option(options, "heartbeat"), 0),
        .max_lifetime = rb_hk_ns(rb_hk_option(options, "max_lifetime"), 0),
        .announces = RTEST(rb_hk_option(options, "announces")),
        .max_subscribers = (uint32_t)rb_hk_size_option(options, "max_connections"),
        .max_of_address = (uint32_t)rb_hk_size_option(options, "max_connections_per_address"),
        .max_cost = (uint32_t)rb_hk_size_option(options, "max_pattern_cost_total"),
        .max_cost_of_address = (uint32_t)rb_hk_size_option(options, "max_pattern_cost_per_address"),
        .max_cost_beside = (uint32_t)rb_hk_size_option(options, "max_pattern_cost_per_beginning"),
        .hub_url = rb_hk_url(rb_hk_option(options, "hub"), kept),
        .comparable_path = rb_hk_bytes(&path),
        .topic_table_bytes = rb_hk_size_option(options, "topic_table_bytes"),
    };
    rb_hk_copy_exactly(rb_hk_option(options, "key"), "key", wanted.log_key, sizeof(wanted.log_key));
    rb_hk_copy_exactly(rb_hk_option(options, "secret"), "secret", wanted.secret, sizeof(wanted.secret));
    rb_hk_core_t *core = NULL;
    rb_hk_check(core_new(&wanted, &core), "hub");
    DATA_PTR(self) = core;
    RB_GC_GUARD(kept[0]);
    RB_GC_GUARD(path);
    return self;
}

static void rekey(rb_hk_core_t *core, void *argument)
{
    hk_hub_rekey(core->hub, argument);
}

/* _rekey(key) */
static VALUE engine_rekey(VALUE self, VALUE key)
{
    uint8_t bytes[HK_LOG_KEY_BYTES];
    rb_hk_copy_exactly(key, "key", bytes, sizeof(bytes));
    rb_hk_locked(rb_hk_core_of(self), rekey, bytes);
    return Qnil;
}

#ifdef __GLIBC__
static void *trim(void *argument)
{
    (void)argument;
    malloc_trim(0);
    return NULL;
}
#endif

/* _trim: gives memory that was freed back to the system, where the allocator keeps it. */
static VALUE engine_trim(VALUE self)
{
    (void)self;
#ifdef __GLIBC__
    rb_hk_without_gvl(trim, NULL);
#endif
    return Qnil;
}

void rb_hk_init_trim(VALUE proxy_class)
{
    rb_define_private_method(rb_singleton_class(proxy_class), "_trim", engine_trim, 0);
}

void rb_hk_init_engine(VALUE hub_class)
{
    VALUE class = rb_define_class_under(hub_class, "NativeEngine", rb_cObject);
    rb_define_alloc_func(class, engine_alloc);
    rb_undef_method(class, "initialize_copy");
    rb_define_private_method(class, "_setup", engine_setup, 1);
    rb_define_private_method(class, "_rekey", engine_rekey, 1);
    rb_define_private_method(class, "_trim", engine_trim, 0);
    rb_hk_init_compiled(class);
    rb_hk_init_publish(class);
    rb_hk_init_subscriber(class);
    rb_hk_init_change(class);
    rb_hk_init_delivery(class);
    rb_hk_init_keeper(class);
    rb_hk_init_figures(class);
}
