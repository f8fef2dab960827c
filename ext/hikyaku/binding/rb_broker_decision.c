#include "rb_broker.h"

/* Who may: HELLOs, and what was decided about them. */

VALUE rb_hk_hello(const hk_hello_t *hello)
{
    return rb_ary_new_from_args(6, ULL2NUM(hello->serial),
                                rb_utf8_str_new(hello->identity.at, (long)hello->identity.length),
                                rb_hk_string(hello->credentials), INT2FIX(hello->kind),
                                rb_utf8_str_new(hello->agent.at, (long)hello->agent.length),
                                rb_utf8_str_new(hello->address.at, (long)hello->address.length));
}

size_t rb_hk_permission_count(VALUE array)
{
    Check_Type(array, T_ARRAY);
    return (size_t)RARRAY_LEN(array);
}

void rb_hk_permissions(VALUE array, size_t count, hk_permission_t *permissions, VALUE kept)
{
    for (size_t i = 0; i < count; i++) {
        VALUE pair = rb_check_array_type(rb_ary_entry(array, (long)i));
        Check_Type(pair, T_ARRAY);
        VALUE pattern = rb_ary_entry(pair, 0);
        permissions[i] = (hk_permission_t){.pattern = rb_hk_bytes(&pattern),
                                           .rights = (uint8_t)(NUM2UINT(rb_ary_entry(pair, 1)) & 7)};
        rb_ary_push(kept, pattern);
    }
}

/* A HELLO, whose bytes stand in `texts` one behind the other. */
typedef struct asking {
    hk_hello_t hello;
    hk_buf_t texts;
    hk_status_t status;
    bool found;
} asking_t;

static void keep(asking_t *call, hk_bytes_t bytes)
{
    if (call->status == HK_OK) {
        call->status = hk_buf_append(&call->texts, bytes);
    }
}

static void ask(hk_broker_t *broker, void *argument)
{
    asking_t *call = argument;
    call->found = hk_broker_asking(broker, &call->hello);
    if (call->found) {
        keep(call, call->hello.identity);
        keep(call, call->hello.credentials);
        keep(call, call->hello.agent);
        keep(call, call->hello.address);
    }
}

static void place(const char **at, hk_bytes_t *bytes)
{
    bytes->at = *at;
    *at += bytes->length;
}

static VALUE make_hello(VALUE argument)
{
    asking_t *call = (asking_t *)argument;
    const char *at = hk_buf_bytes(&call->texts).at;
    place(&at, &call->hello.identity);
    place(&at, &call->hello.credentials);
    place(&at, &call->hello.agent);
    place(&at, &call->hello.address);
    return rb_hk_hello(&call->hello);
}

/* _asking: as rb_hk_hello, or nil. */
static VALUE engine_asking(VALUE self)
{
    asking_t call = {.status = HK_OK};
    hk_buf_init(&call.texts, hk_alloc_default());
    rb_hk_with_broker(rb_hk_broker_undriven(self), ask, &call);
    if (!call.found) {
        return Qnil;
    }
    if (call.status != HK_OK) {
        hk_buf_release(&call.texts);
        rb_hk_check(call.status, "hello");
    }
    return rb_hk_releasing(&call.texts, make_hello, (VALUE)&call);
}

typedef struct decision {
    uint64_t serial;
    const hk_permission_t *permissions;
    size_t count;
    uint64_t until;
    hk_bytes_t sentence;
    int64_t now;
    uint64_t wall;
    hk_status_t status;
} decision_t;

static void permit(hk_broker_t *broker, void *argument)
{
    decision_t *call = argument;
    call->status =
        hk_broker_permit(broker, call->serial, call->permissions, call->count, call->until, call->now, call->wall);
}

static VALUE found(hk_status_t status, const char *doing)
{
    if (status != HK_NOT_FOUND) {
        rb_hk_check(status, doing);
    }
    return status == HK_OK ? Qtrue : Qfalse;
}

/* _permit(serial, permissions, until, now, wall): false when the session is gone. */
static VALUE engine_permit(VALUE self, VALUE serial, VALUE array, VALUE until, VALUE now, VALUE wall)
{
    rb_hk_broker_t *broker = rb_hk_broker_undriven(self);
    VALUE memory, kept = rb_ary_new();
    size_t count = rb_hk_permission_count(array);
    hk_permission_t *permissions = RB_HK_TEMPORARY(hk_permission_t, memory, count);
    decision_t call = {.serial = NUM2ULL(serial),
                       .permissions = permissions,
                       .count = count,
                       .until = NIL_P(until) ? UINT64_MAX : NUM2ULL(until),
                       .now = rb_hk_ns(now, 0),
                       .wall = NUM2ULL(wall)};
    rb_hk_permissions(array, count, permissions, kept);
    rb_hk_with_broker(broker, permit, &call);
    RB_GC_GUARD(kept);
    ALLOCV_END(memory);
    return found(call.status, "permit");
}

static void refuse(hk_broker_t *broker, void *argument)
{
    decision_t *call = argument;
    call->status = hk_broker_refuse(broker, call->serial, call->sentence);
}

/* _refuse(serial, sentence): as _permit. */
static VALUE engine_refuse(VALUE self, VALUE serial, VALUE sentence)
{
    decision_t call = {.serial = NUM2ULL(serial), .sentence = rb_hk_bytes(&sentence)};
    rb_hk_with_broker(rb_hk_broker_undriven(self), refuse, &call);
    RB_GC_GUARD(sentence);
    return found(call.status, "refuse");
}

void rb_hk_init_broker_decision(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_asking", engine_asking, 0);
    rb_define_private_method(engine_class, "_permit", engine_permit, 5);
    rb_define_private_method(engine_class, "_refuse", engine_refuse, 2);
}
