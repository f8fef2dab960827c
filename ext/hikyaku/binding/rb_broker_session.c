#include "rb_broker.h"

/* Sessions: bytes in, bytes out. */

enum { PARTS = 64 };

static void session_free(void *data)
{
    rb_hk_session_t *session = data;
    rb_hk_broker_drop(session->broker);
    ruby_xfree(session);
}

static size_t session_size(const void *data)
{
    (void)data;
    return sizeof(rb_hk_session_t);
}

static const rb_data_type_t session_type = {
    .wrap_struct_name = "Hikyaku::Broker::NativeEngine::Session",
    .function = {.dmark = NULL, .dfree = session_free, .dsize = session_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE session_class;

rb_hk_session_t *rb_hk_session_of(VALUE object, const rb_hk_broker_t *broker)
{
    rb_hk_session_t *session = rb_check_typeddata(object, &session_type);
    if (session->broker != broker) {
        rb_hk_fail(rb_eArgError, "the session is another broker's");
    }
    return session;
}

/* One call of the engine about one session. */
typedef struct call {
    rb_hk_session_t *session;
    hk_bytes_t bytes;
    uintptr_t number;
    int64_t now;
    uint64_t wall;
    size_t count;
    hk_buf_t out;
    hk_status_t status;
    bool answer;
} call_t;

/* With `work`, unless the session has ended: IOError. */
static void run(VALUE self, VALUE object, void (*work)(hk_broker_t *broker, void *argument), call_t *call)
{
    rb_hk_broker_t *broker = rb_hk_broker_undriven(self);
    call->session = rb_hk_session_of(object, broker);
    if (call->session->session == NULL) {
        rb_hk_fail(rb_eIOError, "the session has ended");
    }
    rb_hk_with_broker(broker, work, call);
    RB_GC_GUARD(object);
}

/* --- coming and going -------------------------------------------------------------------------------------------- */

static void come(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    call->session->session = hk_broker_connect(broker, call->bytes, (void *)call->number, call->now);
}

/* _connect(address, number, now): a session, which next_ready calls by its number; nil: there are too many. */
static VALUE engine_connect(VALUE self, VALUE address, VALUE number, VALUE now)
{
    rb_hk_broker_t *broker = rb_hk_broker_undriven(self);
    call_t call = {.number = (uintptr_t)NUM2ULL(number), .now = rb_hk_ns(now, 0), .bytes = rb_hk_bytes(&address)};
    VALUE object = TypedData_Make_Struct(session_class, rb_hk_session_t, &session_type, call.session);
    call.session->broker = rb_hk_broker_hold(broker);
    rb_hk_with_broker(broker, come, &call);
    RB_GC_GUARD(address);
    return call.session->session != NULL ? object : Qnil;
}

static void disconnect(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    hk_broker_disconnect(broker, call->session->session, call->now, call->wall);
    call->session->session = NULL;
}

/* _disconnect(session, now, wall) */
static VALUE engine_disconnect(VALUE self, VALUE object, VALUE now, VALUE wall)
{
    call_t call = {.now = rb_hk_ns(now, 0), .wall = NUM2ULL(wall)};
    run(self, object, disconnect, &call);
    return Qnil;
}

/* --- input ------------------------------------------------------------------------------------------------------- */

static void receive(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    call->status = hk_broker_receive(broker, call->session->session, call->bytes, call->now, call->wall);
}

/* _receive(session, bytes, now, wall): false when nothing more is to be read. */
static VALUE engine_receive(VALUE self, VALUE object, VALUE string, VALUE now, VALUE wall)
{
    call_t call = {.now = rb_hk_ns(now, 0), .wall = NUM2ULL(wall), .bytes = rb_hk_bytes(&string)};
    run(self, object, receive, &call);
    RB_GC_GUARD(string);
    return call.status == HK_OK ? Qtrue : Qfalse;
}

static void full(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    call->answer = hk_session_full(call->session->session);
}

/* _full(session) */
static VALUE engine_full(VALUE self, VALUE object)
{
    call_t call = {.answer = false};
    run(self, object, full, &call);
    return call.answer ? Qtrue : Qfalse;
}

static void over(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    call->answer = hk_session_over(call->session->session);
}

/* _over(session) */
static VALUE engine_over(VALUE self, VALUE object)
{
    call_t call = {.answer = false};
    run(self, object, over, &call);
    return call.answer ? Qtrue : Qfalse;
}

/* --- output ------------------------------------------------------------------------------------------------------ */

static void next_ready(hk_broker_t *broker, void *argument)
{
    hk_session_t *session = hk_broker_next_ready(broker);
    *(uintptr_t *)argument = session != NULL ? (uintptr_t)hk_session_context(session) : 0;
}

/* _next_ready: a session's number, or nil. */
static VALUE engine_next_ready(VALUE self)
{
    uintptr_t number = 0;
    rb_hk_with_broker(rb_hk_broker_undriven(self), next_ready, &number);
    return number != 0 ? ULL2NUM(number) : Qnil;
}

static void take(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    rb_hk_session_t *session = call->session;
    struct iovec parts[PARTS];
    int count = hk_session_gather(session->session, parts, PARTS);
    session->taken = session->gathered = 0;
    for (int i = 0; i < count; i++) {
        size_t room = call->count - session->taken;
        size_t some = parts[i].iov_len < room ? parts[i].iov_len : room;
        session->gathered += parts[i].iov_len;
        if (some > 0 && call->status == HK_OK) {
            call->status = hk_buf_append(&call->out, hk_bytes(parts[i].iov_base, some));
            session->taken += call->status == HK_OK ? some : 0;
        }
    }
}

/* _take(session, max_bytes) */
static VALUE engine_take(VALUE self, VALUE object, VALUE max_bytes)
{
    call_t call = {.count = NUM2SIZET(max_bytes), .status = HK_OK};
    hk_buf_init(&call.out, hk_alloc_default());
    run(self, object, take, &call);
    if (call.status != HK_OK) {
        hk_buf_release(&call.out);
        rb_hk_check(call.status, "take");
    }
    return rb_hk_string_of(&call.out);
}

/* The engine has gathered more than was wanted: then it is not blocked that more was not sent. */
static void wrote(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    rb_hk_session_t *session = call->session;
    bool all = call->count >= session->taken && session->taken < session->gathered;
    hk_session_wrote(session->session, call->count < session->taken ? call->count : session->taken);
    if (all) {
        hk_session_writable(session->session);
    }
    session->taken = session->gathered = 0;
}

/* _wrote(session, count) */
static VALUE engine_wrote(VALUE self, VALUE object, VALUE count)
{
    call_t call = {.count = NUM2SIZET(count)};
    run(self, object, wrote, &call);
    return Qnil;
}

static void writable(hk_broker_t *broker, void *argument)
{
    const call_t *call = argument;
    hk_session_writable(call->session->session);
}

/* _writable(session) */
static VALUE engine_writable(VALUE self, VALUE object)
{
    call_t call = {.count = 0};
    run(self, object, writable, &call);
    return Qnil;
}

/* _ended: it has no connection any more. */
static VALUE session_ended(VALUE self)
{
    const rb_hk_session_t *session = rb_check_typeddata(self, &session_type);
    return session->session == NULL ? Qtrue : Qfalse;
}

void rb_hk_init_broker_session(VALUE engine_class)
{
    session_class = rb_define_class_under(engine_class, "Session", rb_cObject);
    rb_gc_register_mark_object(session_class);
    rb_undef_alloc_func(session_class);
    rb_define_private_method(session_class, "_ended", session_ended, 0);
    rb_define_private_method(engine_class, "_connect", engine_connect, 3);
    rb_define_private_method(engine_class, "_disconnect", engine_disconnect, 3);
    rb_define_private_method(engine_class, "_receive", engine_receive, 4);
    rb_define_private_method(engine_class, "_full", engine_full, 1);
    rb_define_private_method(engine_class, "_over", engine_over, 1);
    rb_define_private_method(engine_class, "_next_ready", engine_next_ready, 0);
    rb_define_private_method(engine_class, "_take", engine_take, 2);
    rb_define_private_method(engine_class, "_wrote", engine_wrote, 2);
    rb_define_private_method(engine_class, "_writable", engine_writable, 1);
}
