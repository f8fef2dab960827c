#include "rb_broker.h"

#include <ruby/thread.h>

/* The engine object, and the broker behind it: opening, time, the disk, closing. */

rb_hk_broker_t *rb_hk_broker_hold(rb_hk_broker_t *broker)
{
    broker->holders++;
    return broker;
}

static void let_go(rb_hk_broker_t *broker)
{
    if (broker->broker != NULL) {
        hk_broker_drop_dead(broker->broker);
        broker->broker = NULL;
    }
}

/* At once: whoever has its journal open keeps others from it. */
static void broker_abandon(rb_hk_watched_t *watched)
{
    let_go(HK_OWNER(watched, rb_hk_broker_t, watched));
}

/* Who did not close it wants a crash. */
void rb_hk_broker_drop(rb_hk_broker_t *broker)
{
    if (broker != NULL && --broker->holders == 0) {
        rb_hk_fork_forget(&broker->watched);
        let_go(broker);
        hk_lock_release(&broker->lock);
        hk_alloc_free(hk_alloc_default(), broker);
    }
}

static void engine_free(void *broker)
{
    rb_hk_broker_drop(broker);
}

static size_t engine_size(const void *broker)
{
    return broker != NULL ? sizeof(rb_hk_broker_t) : 0;
}

static const rb_data_type_t engine_type = {
    .wrap_struct_name = "Hikyaku::Broker::NativeEngine",
    .function = {.dmark = NULL, .dfree = engine_free, .dsize = engine_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE engine_alloc(VALUE class)
{
    return TypedData_Wrap_Struct(class, &engine_type, NULL);
}

rb_hk_broker_t *rb_hk_broker_of(VALUE engine)
{
    rb_hk_broker_t *broker = rb_check_typeddata(engine, &engine_type);
    if (broker == NULL) {
        rb_hk_fail(rb_eIOError, "the broker is not open");
    }
    return broker;
}

rb_hk_broker_t *rb_hk_broker_undriven(VALUE engine)
{
    rb_hk_broker_t *broker = rb_hk_broker_of(engine);
    if (broker->driven) {
        rb_hk_fail(rb_eIOError, "a reactor has the broker");
    }
    return broker;
}

/* --- with the lock ----------------------------------------------------------------------------------------------- */

typedef struct call {
    rb_hk_broker_t *broker;
    void (*work)(hk_broker_t *broker, void *argument);
    void *argument;
    bool done, closed;
} call_t;

static void *take_work_give(void *argument)
{
    call_t *call = argument;
    hk_lock_take(&call->broker->lock);
    call->closed = call->broker->broker == NULL;
    if (!call->closed) {
        call->work(call->broker->broker, call->argument);
    }
    call->done = true;
    hk_lock_give(&call->broker->lock);
    return NULL;
}

static void check_open(const call_t *call)
{
    if (call->closed) {
        rb_hk_fail(rb_eIOError, "the broker is closed, or another process's");
    }
}

/* See rb_hk_locked. */
void rb_hk_with_broker_slowly(rb_hk_broker_t *broker, void (*work)(hk_broker_t *broker, void *argument), void *argument)
{
    call_t call = {.broker = broker, .work = work, .argument = argument};
    rb_hk_slowly(take_work_give, &call, &call.done);
    check_open(&call);
}

void rb_hk_with_broker(rb_hk_broker_t *broker, void (*work)(hk_broker_t *broker, void *argument), void *argument)
{
    if (!hk_lock_try(&broker->lock)) {
        rb_hk_with_broker_slowly(broker, work, argument);
        return;
    }
    call_t call = {.closed = broker->broker == NULL};
    if (!call.closed) {
        work(broker->broker, argument);
    }
    hk_lock_give(&broker->lock);
    check_open(&call);
}

/* --- opening ----------------------------------------------------------------------------------------------------- */

VALUE rb_hk_trouble(const hk_journal_trouble_t *trouble)
{
    return rb_ary_new_from_args(4, rb_utf8_str_new_cstr(trouble->text), rb_utf8_str_new_cstr(trouble->segment),
                                ULL2NUM(trouble->offset), INT2NUM(trouble->error));
}

typedef struct opening {
    hk_broker_options_t options;
    hk_broker_t *broker;
    int64_t now;
    uint64_t wall;
    hk_journal_trouble_t trouble;
    hk_status_t status;
    bool done;
} opening_t;

static void *open_broker(void *argument)
{
    opening_t *call = argument;
    call->status =
        hk_broker_open(hk_alloc_default(), &call->options, call->now, call->wall, &call->broker, &call->trouble);
    call->done = true;
    return NULL;
}

static uint32_t small(VALUE options, const char *name)
{
    VALUE value = rb_hk_option(options, name);
    return NIL_P(value) ? 0 : NUM2UINT(value);
}

static uint16_t smaller(VALUE options, const char *name)
{
    uint32_t value = small(options, name);
    return value > UINT16_MAX ? UINT16_MAX : (uint16_t)value;
}

static uint64_t large(VALUE options, const char *name)
{
    VALUE value = rb_hk_option(options, name);
    return NIL_P(value) ? 0 : NUM2ULL(value);
}

static hk_broker_options_t options_of(VALUE hash)
{
    hk_broker_options_t options = {
        .segment_bytes = small(hash, "segment_bytes"),
        .max_memory = rb_hk_size_option(hash, "max_memory"),
        .max_storage = large(hash, "max_storage"),
        .level = (uint8_t)small(hash, "level"),
        .open = RTEST(rb_hk_option(hash, "open")),
        .max_frame = small(hash, "max_frame"),
        .heartbeat_least = small(hash, "heartbeat_least"),
        .heartbeat_most = small(hash, "heartbeat_most"),
        .window_messages = small(hash, "window_messages"),
        .window_bytes = small(hash, "window_bytes"),
        .lease = small(hash, "lease"),
        .lease_most = small(hash, "lease_most"),
        .max_failures = smaller(hash, "max_failures"),
        .max_crashes = smaller(hash, "max_crashes"),
        .max_queue_messages = large(hash, "max_queue_messages"),
        .max_queue_bytes = large(hash, "max_queue_bytes"),
        .max_queues = small(hash, "max_queues"),
        .max_identities = small(hash, "max_identities"),
        .max_sessions = small(hash, "max_sessions"),
        .max_subscriptions = small(hash, "max_subscriptions"),
        .queue_idle = small(hash, "queue_idle"),
        .producer_idle = small(hash, "producer_idle"),
    };
    rb_hk_copy_exactly(rb_hk_option(hash, "secret"), "secret", options.secret, sizeof(options.secret));
    return options;
}

static hk_status_t broker_new(rb_hk_broker_t **made)
{
    rb_hk_broker_t *broker = hk_alloc_zeroed(hk_alloc_default(), 1, sizeof(*broker));
    if (broker == NULL) {
        return HK_NO_MEMORY;
    }
    hk_lock_init(&broker->lock);
    broker->holders = 1;
    rb_hk_fork_watch(&broker->watched, &broker->lock, broker_abandon);
    *made = broker;
    return HK_OK;
}

/* _open(options, now, wall, reading): nil, or [name of the status, what went wrong as rb_hk_trouble]. */
static VALUE engine_open(VALUE self, VALUE hash, VALUE now, VALUE wall, VALUE journal_reading)
{
    if (rb_check_typeddata(self, &engine_type) != NULL) {
        rb_hk_fail(rb_eRuntimeError, "the broker is open already");
    }
    rb_hk_broker_t *broker = NULL;
    VALUE path = rb_hk_option(hash, "storage");
    opening_t call = {.options = options_of(hash), .now = rb_hk_ns(now, 0), .wall = NUM2ULL(wall)};
    rb_hk_reading_t reading = {.object = journal_reading};
    if (!NIL_P(path)) {
        /* The journal looks at it again: the process may go elsewhere. */
        path = rb_str_new_frozen(rb_file_expand_path(path, Qnil));
        call.options.path = StringValueCStr(path);
        call.options.files = hk_files_default();
        call.options.reading = rb_hk_journal_reading(&reading);
    }
    rb_hk_check(broker_new(&broker), "broker");
    DATA_PTR(self) = broker;
    rb_hk_slowly(open_broker, &call, &call.done);
    RB_GC_GUARD(path);
    if (reading.raised != 0) {
        rb_jump_tag(reading.raised);
    }
    if (call.status == HK_OK) {
        broker->broker = call.broker;
        return Qnil;
    }
    rb_hk_check(call.status == HK_NO_MEMORY ? HK_NO_MEMORY : HK_OK, "broker");
    return rb_assoc_new(rb_str_new_cstr(hk_status_name(call.status)), rb_hk_trouble(&call.trouble));
}

/* --- closing ----------------------------------------------------------------------------------------------------- */

typedef struct closing {
    rb_hk_broker_t *broker;
    int64_t now;
    uint64_t wall;
    bool busy;
    hk_status_t status;
    hk_journal_trouble_t trouble;
} closing_t;

static void close_broker(hk_broker_t *broker, void *argument)
{
    closing_t *call = argument;
    call->busy = !rb_hk_finish_jobs(call->broker);
    if (call->busy) {
        return;
    }
    rb_hk_copy_trouble(broker, &call->trouble);
    call->status = hk_broker_close(broker, call->now, call->wall);
    call->broker->broker = NULL;
}

static void check_idle(const closing_t *call)
{
    if (call->busy) {
        rb_hk_fail(rb_eIOError, "another thread is at work for the broker");
    }
}

/* _close(now, wall): nil, or what went wrong. */
static VALUE engine_close(VALUE self, VALUE now, VALUE wall)
{
    closing_t call = {
        .broker = rb_hk_broker_undriven(self), .now = rb_hk_ns(now, 0), .wall = NUM2ULL(wall), .status = HK_OK};
    rb_hk_with_broker_slowly(call.broker, close_broker, &call);
    check_idle(&call);
    return rb_hk_outcome(call.status, &call.trouble);
}

static void drop_dead(hk_broker_t *broker, void *argument)
{
    closing_t *call = argument;
    for (int lane = 0; lane < HK_LANES; lane++) {
        call->busy = call->busy || call->broker->errands[lane] == RB_HK_RUNNING;
    }
    if (!call->busy) {
        hk_broker_drop_dead(broker);
        call->broker->broker = NULL;
    }
}

/* _drop_dead: harmless when it is closed. */
static VALUE engine_drop_dead(VALUE self)
{
    closing_t call = {.broker = rb_hk_broker_undriven(self)};
    if (call.broker->broker == NULL) {
        return Qnil;
    }
    rb_hk_with_broker_slowly(call.broker, drop_dead, &call);
    check_idle(&call);
    return Qnil;
}

/* _driven? */
static VALUE engine_is_driven(VALUE self)
{
    return rb_hk_broker_of(self)->driven ? Qtrue : Qfalse;
}

/* --- time ------------------------------------------------------------------------------------------------------- */

typedef struct moment {
    int64_t now;
    uint64_t wall;
} moment_t;

static void tick(hk_broker_t *broker, void *argument)
{
    const moment_t *call = argument;
    hk_broker_tick(broker, call->now, call->wall);
}

/* _tick(now, wall) */
static VALUE engine_tick(VALUE self, VALUE now, VALUE wall)
{
    moment_t call = {.now = rb_hk_ns(now, 0), .wall = NUM2ULL(wall)};
    rb_hk_with_broker(rb_hk_broker_undriven(self), tick, &call);
    return Qnil;
}

static void next_tick(hk_broker_t *broker, void *argument)
{
    *(int64_t *)argument = hk_broker_next_tick(broker);
}

/* _next_tick: seconds, or nil. */
static VALUE engine_next_tick(VALUE self)
{
    int64_t at = HK_NEVER;
    rb_hk_with_broker(rb_hk_broker_undriven(self), next_tick, &at);
    return at == HK_NEVER ? Qnil : rb_hk_seconds(at);
}

static void drain(hk_broker_t *broker, void *argument)
{
    hk_broker_drain(broker, *(uint32_t *)argument);
}

/* _drain(ms) */
static VALUE engine_drain(VALUE self, VALUE ms)
{
    uint32_t retry_after = NUM2UINT(ms);
    rb_hk_with_broker(rb_hk_broker_undriven(self), drain, &retry_after);
    return Qnil;
}

static void drained(hk_broker_t *broker, void *argument)
{
    *(bool *)argument = hk_broker_drained(broker);
}

/* _drained */
static VALUE engine_drained(VALUE self)
{
    bool answer = false;
    rb_hk_with_broker(rb_hk_broker_of(self), drained, &answer);
    return answer ? Qtrue : Qfalse;
}

void rb_hk_init_broker(VALUE module)
{
    VALUE class = rb_define_class_under(rb_define_module_under(module, "Broker"), "NativeEngine", rb_cObject);
    rb_define_alloc_func(class, engine_alloc);
    rb_undef_method(class, "initialize_copy");
    rb_define_private_method(class, "_open", engine_open, 4);
    rb_define_private_method(class, "_close", engine_close, 2);
    rb_define_private_method(class, "_drop_dead", engine_drop_dead, 0);
    rb_define_private_method(class, "_driven?", engine_is_driven, 0);
    rb_define_private_method(class, "_tick", engine_tick, 2);
    rb_define_private_method(class, "_next_tick", engine_next_tick, 0);
    rb_define_private_method(class, "_drain", engine_drain, 1);
    rb_define_private_method(class, "_drained", engine_drained, 0);
    rb_hk_init_broker_disk(class);
    rb_hk_init_broker_session(class);
    rb_hk_init_broker_decision(class);
    rb_hk_init_broker_figures(class);
}
