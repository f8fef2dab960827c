#include "rb_request.h"

/* Requests that Ruby answers: taken from the loop, given back with an answer. */

#define FORGOTTEN "HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

static void request_free(void *data)
{
    rb_hk_request_t *request = data;
    rb_hk_driver_t *driver = request->driver;
    if (driver != NULL && request->ask != NULL && driver->generation == rb_hk_generation()) {
        hk_loop_answer(driver->loop, request->ask, HK_BYTES(FORGOTTEN), hk_bytes(NULL, 0), true);
    }
    rb_hk_driver_drop(driver);
    ruby_xfree(request);
}

static size_t request_size(const void *data)
{
    (void)data;
    return sizeof(rb_hk_request_t);
}

static const rb_data_type_t request_type = {
    .wrap_struct_name = "Hikyaku::Server::NativeReactor::Request",
    .function = {.dmark = NULL, .dfree = request_free, .dsize = request_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE request_class;

rb_hk_request_t *rb_hk_request_of(VALUE object)
{
    rb_hk_request_t *request = rb_check_typeddata(object, &request_type);
    if (request->ask == NULL || request->driver->generation != rb_hk_generation()) {
        rb_hk_fail(rb_eIOError, "the request was answered already");
    }
    return request;
}

/* _next(seconds): a request; nil when none came in that time; false when none will come. */
static VALUE reactor_next(VALUE self, VALUE seconds)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    int64_t timeout = rb_hk_ns(seconds, -1);
    if (driver == NULL) {
        return Qfalse;
    }
    rb_hk_request_t *request;
    VALUE object = TypedData_Make_Struct(request_class, rb_hk_request_t, &request_type, request);
    request->driver = rb_hk_driver_hold(driver);
    hk_status_t status = rb_hk_next(driver->loop, timeout, &request->ask);
    if (status == HK_AGAIN) {
        rb_thread_check_ints();
        return Qnil;
    }
    if (status == HK_CLOSED) {
        return Qfalse;
    }
    rb_hk_check(status, "request");
    return object;
}

static hk_ask_t *consume(rb_hk_request_t *request)
{
    if (request->readers > 0) {
        rb_hk_fail(rb_eIOError, "another thread reads the request");
    }
    hk_ask_t *ask = request->ask;
    request->ask = NULL;
    return ask;
}

/* _answer(request, head, body, close) */
static VALUE reactor_answer(VALUE self, VALUE object, VALUE head, VALUE body, VALUE close)
{
    rb_hk_request_t *request = rb_hk_request_of(object);
    hk_bytes_t head_bytes = rb_hk_bytes(&head), body_bytes = rb_hk_bytes(&body);
    hk_status_t status = hk_loop_answer(request->driver->loop, consume(request), head_bytes, body_bytes, RTEST(close));
    RB_GC_GUARD(head);
    RB_GC_GUARD(body);
    RB_GC_GUARD(object);
    rb_hk_check(status, "answer");
    return Qnil;
}

/* _answer_stream(request, head, serial) */
static VALUE reactor_answer_stream(VALUE self, VALUE object, VALUE head, VALUE serial)
{
    rb_hk_request_t *request = rb_hk_request_of(object);
    hk_bytes_t bytes = rb_hk_bytes(&head);
    uint64_t subscriber = NUM2ULL(serial);
    hk_status_t status = hk_loop_answer_stream(request->driver->loop, consume(request), bytes, subscriber);
    RB_GC_GUARD(head);
    RB_GC_GUARD(object);
    rb_hk_check(status, "answer");
    return Qnil;
}

/* _answer_yourself(request): a descriptor, or nil when the client is gone. */
static VALUE reactor_answer_yourself(VALUE self, VALUE object)
{
    rb_hk_request_t *request = rb_hk_request_of(object);
    int descriptor;
    hk_status_t status = hk_loop_answer_yourself(request->driver->loop, consume(request), &descriptor);
    RB_GC_GUARD(object);
    if (status == HK_CLOSED) {
        return Qnil;
    }
    rb_hk_check(status, "answer");
    return INT2NUM(descriptor);
}

/* _key: what a decision about it is remembered under, nil where none may be. */
static VALUE request_key(VALUE self)
{
    hk_bytes_t key = hk_ask_key(rb_hk_request_of(self)->ask);
    return key.length == 0 ? Qnil : rb_hk_string(key);
}

/* _epoch: until when a decision about it counts. */
static VALUE request_epoch(VALUE self)
{
    return ULL2NUM(hk_ask_epoch(rb_hk_request_of(self)->ask));
}

/* _keep_alive: the client wants to send another. */
static VALUE request_keep_alive(VALUE self)
{
    return hk_ask_head(rb_hk_request_of(self)->ask)->keep_alive ? Qtrue : Qfalse;
}

/* _body_too_large: the body is not there, because it is larger than was allowed. */
static VALUE request_body_too_large(VALUE self)
{
    return hk_ask_body_too_large(rb_hk_request_of(self)->ask) ? Qtrue : Qfalse;
}

/* _answered */
static VALUE request_answered(VALUE self)
{
    rb_hk_request_t *request = rb_check_typeddata(self, &request_type);
    return request->ask == NULL ? Qtrue : Qfalse;
}

void rb_hk_init_request(VALUE reactor_class)
{
    request_class = rb_define_class_under(reactor_class, "Request", rb_cObject);
    rb_gc_register_mark_object(request_class);
    rb_undef_alloc_func(request_class);
    rb_define_private_method(request_class, "_key", request_key, 0);
    rb_define_private_method(request_class, "_epoch", request_epoch, 0);
    rb_define_private_method(request_class, "_keep_alive", request_keep_alive, 0);
    rb_define_private_method(request_class, "_body_too_large", request_body_too_large, 0);
    rb_define_private_method(request_class, "_answered", request_answered, 0);
    rb_define_private_method(reactor_class, "_next", reactor_next, 1);
    rb_define_private_method(reactor_class, "_answer", reactor_answer, 4);
    rb_define_private_method(reactor_class, "_answer_stream", reactor_answer_stream, 3);
    rb_define_private_method(reactor_class, "_answer_yourself", reactor_answer_yourself, 1);
    rb_hk_init_env(request_class);
}
