#include "rb_hk.h"

/* Streams that are changed while they last. */

typedef struct capability {
    uint64_t serial;
    hk_bytes_t given;
    char bytes[HK_STREAM_CAPABILITY_BYTES];
    bool found;
} capability_t;

static void read_capability(rb_hk_core_t *core, void *argument)
{
    capability_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    call->found = subscriber != NULL && hk_hub_capability(core->hub, subscriber, call->bytes) == HK_OK;
}

/* _capability(serial): a String, nil when it has none or is gone. */
static VALUE engine_capability(VALUE self, VALUE serial)
{
    capability_t call = {.serial = NUM2ULL(serial)};
    rb_hk_locked(rb_hk_core_of(self), read_capability, &call);
    return call.found ? rb_str_freeze(rb_utf8_str_new(call.bytes, sizeof(call.bytes))) : Qnil;
}

static void find(rb_hk_core_t *core, void *argument)
{
    capability_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find_changeable(core->hub, call->given);
    call->found = subscriber != NULL;
    if (call->found) {
        call->serial = hk_subscriber_serial(subscriber);
    }
}

/* _find(capability): a serial or nil. */
static VALUE engine_find(VALUE self, VALUE capability)
{
    capability_t call = {.given = rb_hk_bytes(&capability)};
    rb_hk_locked(rb_hk_core_of(self), find, &call);
    RB_GC_GUARD(capability);
    return call.found ? ULL2NUM(call.serial) : Qnil;
}

typedef struct change {
    hk_change_t wanted;
    rb_hk_part_t *part;
    uint64_t serial;
    hk_buf_t answer;
    hk_status_t status;
} change_t;

static void change(rb_hk_core_t *core, void *argument)
{
    change_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    if (subscriber == NULL) {
        call->status = HK_CLOSED;
        return;
    }
    call->wanted.grant = call->part->grant;
    hk_bytes_t answer;
    call->status = hk_hub_change(core->hub, &subscriber, &call->wanted, &answer);
    if (call->status == HK_OK) {
        call->status = hk_buf_append(&call->answer, answer);
    }
}

static VALUE changed(VALUE argument)
{
    change_t *call = (change_t *)argument;
    return rb_hk_text_or_nil(hk_buf_bytes(&call->answer));
}

/* _change(serial, grant, last_event_id, expires_in, now): the answer; nil: it is gone, or about to be; false: it
 * catches up for as many changes as it may; :cost or :cost_of_address: the patterns cost too much. */
static VALUE engine_change(VALUE self, VALUE serial, VALUE grant, VALUE cursor, VALUE expires_in, VALUE now)
{
    change_t call = {
        .wanted = {.has_cursor = !NIL_P(cursor),
                   .cursor = rb_hk_bytes(&cursor),
                   .expires_in = rb_hk_ns(expires_in, HK_NEVER),
                   .now = rb_hk_ns(now, 0)},
        .part = rb_hk_grant_part(grant),
        .serial = NUM2ULL(serial),
    };
    hk_buf_init(&call.answer, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), change, &call);
    RB_GC_GUARD(cursor);
    RB_GC_GUARD(grant);
    if (call.status == HK_CLOSED) {
        return Qnil;
    }
    if (call.status == HK_TOO_MANY) {
        return Qfalse;
    }
    if (call.status == HK_TOO_COSTLY || call.status == HK_TOO_COSTLY_OF_ADDRESS) {
        return rb_hk_too_costly(call.status);
    }
    rb_hk_check(call.status, "change");
    return rb_hk_releasing(&call.answer, changed, (VALUE)&call);
}

void rb_hk_init_change(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_capability", engine_capability, 1);
    rb_define_private_method(engine_class, "_find", engine_find, 1);
    rb_define_private_method(engine_class, "_change", engine_change, 5);
}
