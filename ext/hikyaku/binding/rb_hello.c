#include "rb_broker.h"

/* Sessions that Ruby lets in: taken from the loop, given back with a decision. */

typedef struct hello {
    rb_hk_driver_t *driver;
    hk_hello_ask_t *ask; /* NULL: it is decided */
} hello_t;

/* In a forked child it is the parent's. */
static bool is_ours(const hello_t *hello)
{
    return hello->ask != NULL && hello->driver->generation == rb_hk_generation();
}

static void hello_free(void *data)
{
    hello_t *hello = data;
    if (hello->driver != NULL && is_ours(hello)) {
        hk_loop_refuse(hello->driver->loop, hello->ask, HK_BYTES("nobody has decided about this client"));
    }
    rb_hk_driver_drop(hello->driver);
    ruby_xfree(hello);
}

static size_t hello_size(const void *data)
{
    (void)data;
    return sizeof(hello_t);
}

static const rb_data_type_t hello_type = {
    .wrap_struct_name = "Hikyaku::Server::NativeReactor::Hello",
    .function = {.dmark = NULL, .dfree = hello_free, .dsize = hello_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE hello_class;

static hello_t *hello_of(VALUE object)
{
    hello_t *hello = rb_check_typeddata(object, &hello_type);
    if (!is_ours(hello)) {
        rb_hk_fail(rb_eIOError, "the client was decided about already");
    }
    return hello;
}

/* _next_hello(seconds): as _next. */
static VALUE reactor_next_hello(VALUE self, VALUE seconds)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    int64_t timeout = rb_hk_ns(seconds, -1);
    if (driver == NULL) {
        return Qfalse;
    }
    hello_t *hello;
    VALUE object = TypedData_Make_Struct(hello_class, hello_t, &hello_type, hello);
    hello->driver = rb_hk_driver_hold(driver);
    hk_status_t status = rb_hk_next_hello(driver->loop, timeout, &hello->ask);
    if (status == HK_AGAIN) {
        rb_thread_check_ints();
        return Qnil;
    }
    if (status == HK_CLOSED) {
        return Qfalse;
    }
    rb_hk_check(status, "hello");
    return object;
}

/* _permit(hello, [[pattern, rights], …], until) */
static VALUE reactor_permit(VALUE self, VALUE object, VALUE array, VALUE until_ms)
{
    hello_t *hello = hello_of(object);
    VALUE memory, kept = rb_ary_new();
    size_t count = rb_hk_permission_count(array);
    hk_permission_t *permissions = RB_HK_TEMPORARY(hk_permission_t, memory, count);
    uint64_t until = NIL_P(until_ms) ? UINT64_MAX : NUM2ULL(until_ms);
    rb_hk_permissions(array, count, permissions, kept);
    hk_hello_ask_t *ask = hello_of(object)->ask;
    hello->ask = NULL;
    hk_status_t status = hk_loop_permit(hello->driver->loop, ask, permissions, count, until);
    RB_GC_GUARD(kept);
    RB_GC_GUARD(object);
    ALLOCV_END(memory);
    rb_hk_check(status, "permit");
    return Qnil;
}

/* _refuse(hello, sentence) */
static VALUE reactor_refuse(VALUE self, VALUE object, VALUE sentence)
{
    hk_bytes_t bytes = rb_hk_bytes(&sentence);
    hello_t *hello = hello_of(object);
    hk_hello_ask_t *ask = hello->ask;
    hello->ask = NULL;
    hk_loop_refuse(hello->driver->loop, ask, bytes);
    RB_GC_GUARD(sentence);
    RB_GC_GUARD(object);
    return Qnil;
}

/* _parts: as rb_hk_hello. */
static VALUE hello_parts(VALUE self)
{
    VALUE parts = rb_hk_hello(hk_hello_ask_hello(hello_of(self)->ask));
    RB_GC_GUARD(self);
    return parts;
}

/* _decided */
static VALUE hello_decided(VALUE self)
{
    const hello_t *hello = rb_check_typeddata(self, &hello_type);
    return hello->ask == NULL ? Qtrue : Qfalse;
}

void rb_hk_init_hello(VALUE reactor_class)
{
    hello_class = rb_define_class_under(reactor_class, "Hello", rb_cObject);
    rb_gc_register_mark_object(hello_class);
    rb_undef_alloc_func(hello_class);
    rb_define_private_method(hello_class, "_parts", hello_parts, 0);
    rb_define_private_method(hello_class, "_decided", hello_decided, 0);
    rb_define_private_method(reactor_class, "_next_hello", reactor_next_hello, 1);
    rb_define_private_method(reactor_class, "_permit", reactor_permit, 3);
    rb_define_private_method(reactor_class, "_refuse", reactor_refuse, 2);
}
