#include "rb_hk.h"

/* The steps of a driver that is written in Ruby, and time. */

typedef struct step {
    uint64_t serial;
    size_t count;
    int64_t now;
    bool found;
    hk_buf_t bytes;
    hk_status_t status;
} step_t;

static void next_ready(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_next_ready(core->hub);
    call->found = subscriber != NULL;
    if (call->found) {
        call->serial = hk_subscriber_serial(subscriber);
    }
}

/* _next_ready: a serial or nil. */
static VALUE engine_next_ready(VALUE self)
{
    step_t call = {0};
    rb_hk_locked(rb_hk_core_of(self), next_ready, &call);
    return call.found ? ULL2NUM(call.serial) : Qnil;
}

static void take(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    if (subscriber == NULL) {
        return;
    }
    hk_bytes_t bytes;
    call->status = hk_hub_take(core->hub, subscriber, call->count, &bytes);
    call->found = call->status == HK_OK && bytes.length > 0;
    if (call->found) {
        call->status = hk_buf_append(&call->bytes, bytes);
    }
}

/* _take(serial, max_bytes): a String or nil. */
static VALUE engine_take(VALUE self, VALUE serial, VALUE max_bytes)
{
    step_t call = {.serial = NUM2ULL(serial), .count = NUM2SIZET(max_bytes)};
    hk_buf_init(&call.bytes, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), take, &call);
    rb_hk_check(call.status, "take");
    return call.found ? rb_hk_string_of(&call.bytes) : Qnil;
}

static void wrote(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    if (subscriber != NULL) {
        call->status = hk_hub_wrote(core->hub, subscriber, call->count, call->now);
    }
}

/* _wrote(serial, count, now) */
static VALUE engine_wrote(VALUE self, VALUE serial, VALUE count, VALUE now)
{
    step_t call = {.serial = NUM2ULL(serial), .count = NUM2SIZET(count), .now = rb_hk_ns(now, 0)};
    rb_hk_locked(rb_hk_core_of(self), wrote, &call);
    rb_hk_check(call.status, "write");
    return Qnil;
}

static void writable(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    if (subscriber != NULL) {
        hk_hub_writable(core->hub, subscriber);
    }
}

/* _writable(serial) */
static VALUE engine_writable(VALUE self, VALUE serial)
{
    step_t call = {.serial = NUM2ULL(serial)};
    rb_hk_locked(rb_hk_core_of(self), writable, &call);
    return Qnil;
}

static void ready(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    call->found = hk_hub_ready(core->hub);
}

/* _ready */
static VALUE engine_ready(VALUE self)
{
    step_t call = {0};
    rb_hk_locked(rb_hk_core_of(self), ready, &call);
    return call.found ? Qtrue : Qfalse;
}

static void tick(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    call->status = hk_hub_tick(core->hub, call->now);
}

/* _tick(now) */
static VALUE engine_tick(VALUE self, VALUE now)
{
    step_t call = {.now = rb_hk_ns(now, 0)};
    rb_hk_locked(rb_hk_core_of(self), tick, &call);
    rb_hk_check(call.status, "tick");
    return Qnil;
}

static void next_tick(rb_hk_core_t *core, void *argument)
{
    step_t *call = argument;
    call->now = hk_hub_next_tick(core->hub);
}

/* _next_tick: seconds, or nil. */
static VALUE engine_next_tick(VALUE self)
{
    step_t call = {0};
    rb_hk_locked(rb_hk_core_of(self), next_tick, &call);
    return call.now == HK_NEVER ? Qnil : rb_hk_seconds(call.now);
}

void rb_hk_init_delivery(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_next_ready", engine_next_ready, 0);
    rb_define_private_method(engine_class, "_take", engine_take, 2);
    rb_define_private_method(engine_class, "_wrote", engine_wrote, 3);
    rb_define_private_method(engine_class, "_writable", engine_writable, 1);
    rb_define_private_method(engine_class, "_ready", engine_ready, 0);
    rb_define_private_method(engine_class, "_tick", engine_tick, 1);
    rb_define_private_method(engine_class, "_next_tick", engine_next_tick, 0);
}
