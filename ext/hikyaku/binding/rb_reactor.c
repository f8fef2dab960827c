#include "rb_broker.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The reactor: a loop, the sockets that it is given, and the thread that lends itself to it. */

rb_hk_driver_t *rb_hk_driver_hold(rb_hk_driver_t *driver)
{
    driver->holders++;
    return driver;
}

/* Nobody drives the broker any more. */
static void let_go_of_broker(rb_hk_driver_t *driver)
{
    if (driver->broker != NULL && driver->drives) {
        driver->drives = driver->broker->driven = false;
    }
}

/* The descriptors that a forked child inherited are the parent's. */
static void driver_free(rb_hk_driver_t *driver)
{
    if (driver->generation == rb_hk_generation()) {
        hk_loop_free(driver->loop);
    } else {
        hk_loop_abandon(driver->loop);
    }
    let_go_of_broker(driver);
    rb_hk_broker_drop(driver->broker);
    rb_hk_core_drop(driver->core);
    hk_alloc_free(hk_alloc_default(), driver);
}

void rb_hk_driver_drop(rb_hk_driver_t *driver)
{
    if (driver != NULL && --driver->holders == 0) {
        driver_free(driver);
    }
}

static void reactor_free(void *driver)
{
    rb_hk_driver_drop(driver);
}

static size_t reactor_size(const void *driver)
{
    return driver != NULL ? sizeof(rb_hk_driver_t) : 0;
}

static const rb_data_type_t reactor_type = {
    .wrap_struct_name = "Hikyaku::Server::NativeReactor",
    .function = {.dmark = NULL, .dfree = reactor_free, .dsize = reactor_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE reactor_alloc(VALUE class)
{
    return TypedData_Wrap_Struct(class, &reactor_type, NULL);
}

rb_hk_driver_t *rb_hk_driver_if_open(VALUE reactor)
{
    rb_hk_driver_t *driver = rb_check_typeddata(reactor, &reactor_type);
    return driver != NULL && driver->generation == rb_hk_generation() ? driver : NULL;
}

rb_hk_driver_t *rb_hk_driver_of(VALUE reactor)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(reactor);
    if (driver == NULL) {
        rb_hk_fail(rb_eIOError, "the reactor is not open");
    }
    return driver;
}

static hk_status_t driver_new(rb_hk_core_t *core, rb_hk_broker_t *broker, hk_loop_options_t *options,
                              rb_hk_driver_t **made)
{
    const hk_alloc_t *alloc = hk_alloc_default();
    rb_hk_driver_t *driver = hk_alloc_zeroed(alloc, 1, sizeof(*driver));
    if (driver == NULL) {
        return HK_NO_MEMORY;
    }
    hk_status_t status = hk_loop_new(alloc, options, &driver->loop);
    if (status != HK_OK) {
        hk_alloc_free(alloc, driver);
        return status;
    }
    driver->core = core != NULL ? rb_hk_core_hold(core) : NULL;
    driver->broker = broker != NULL ? rb_hk_broker_hold(broker) : NULL;
    if (broker != NULL) {
        driver->drives = broker->driven = true;
    }
    driver->holders = 1;
    driver->generation = rb_hk_generation();
    driver->max_body_bytes = options->max_body_bytes;
    *made = driver;
    return HK_OK;
}

static void read_broker(hk_broker_t *broker, void *argument)
{
    *(hk_broker_t **)argument = broker;
}

/* _open(engine or nil, broker's engine or nil, secret:, serves:, io_uring:, max_connections:, max_sessions:,
 * max_of_address:, max_asks:, max_head_bytes:, max_body_bytes:, send_buffer:, head_timeout:, idle_timeout:,
 * write_timeout:, hello_timeout:, drain_timeout:), in this process. Returns the errno for which io_uring is not used,
 * or nil. */
static VALUE reactor_open(VALUE self, VALUE engine, VALUE broker_engine, VALUE wanted)
{
    rb_hk_core_t *core = NIL_P(engine) ? NULL : rb_hk_core_of(engine);
    rb_hk_broker_t *broker = NIL_P(broker_engine) ? NULL : rb_hk_broker_undriven(broker_engine);
    hk_loop_options_t options = {
        .hub = core != NULL ? core->hub : NULL,
        .gate = core != NULL && RTEST(rb_hk_option(wanted, "serves")) ? core->gate : NULL,
        .lock = core != NULL ? &core->lock : NULL,
        .broker_lock = broker != NULL ? &broker->lock : NULL,
        .io_uring = RTEST(rb_hk_option(wanted, "io_uring")),
        .max_connections = (uint32_t)rb_hk_size_option(wanted, "max_connections"),
        .max_sessions = (uint32_t)rb_hk_size_option(wanted, "max_sessions"),
        .max_of_address = (uint32_t)rb_hk_size_option(wanted, "max_of_address"),
        .max_asks = (uint32_t)rb_hk_size_option(wanted, "max_asks"),
        .max_head_bytes = rb_hk_size_option(wanted, "max_head_bytes"),
        .max_body_bytes = rb_hk_size_option(wanted, "max_body_bytes"),
        .send_buffer = rb_hk_size_option(wanted, "send_buffer"),
        .head_timeout = rb_hk_ns(rb_hk_option(wanted, "head_timeout"), 0),
        .idle_timeout = rb_hk_ns(rb_hk_option(wanted, "idle_timeout"), 0),
        .write_timeout = rb_hk_ns(rb_hk_option(wanted, "write_timeout"), 0),
        .hello_timeout = rb_hk_ns(rb_hk_option(wanted, "hello_timeout"), 0),
        .drain_timeout = rb_hk_ns(rb_hk_option(wanted, "drain_timeout"), 0),
    };
    rb_hk_driver_t *driver = NULL;
    rb_hk_copy_exactly(rb_hk_option(wanted, "secret"), "secret", options.secret, sizeof(options.secret));
    if (broker != NULL) {
        rb_hk_with_broker(broker, read_broker, &options.broker);
    }
    rb_hk_check(driver_new(core, broker, &options, &driver), "reactor");
    rb_hk_driver_drop(rb_check_typeddata(self, &reactor_type));
    DATA_PTR(self) = driver;
    int error = hk_loop_ring_error(driver->loop);
    return error != 0 ? INT2FIX(error) : Qnil;
}

/* _close: lets go of the loop, which closes all that it still has once no request is being answered. */
static VALUE reactor_close(VALUE self)
{
    rb_hk_driver_t *driver = rb_check_typeddata(self, &reactor_type);
    DATA_PTR(self) = NULL;
    rb_hk_driver_drop(driver);
    return Qnil;
}

/* _open? */
static VALUE reactor_is_open(VALUE self)
{
    return rb_hk_driver_if_open(self) != NULL ? Qtrue : Qfalse;
}

static VALUE run(VALUE argument)
{
    rb_hk_driver_t *driver = (rb_hk_driver_t *)argument;
    hk_status_t status = rb_hk_run(driver->loop);
    if (status == HK_AGAIN) {
        rb_thread_check_ints();
        return Qtrue;
    }
    rb_hk_check(status, "reactor");
    let_go_of_broker(driver);
    return Qfalse;
}

static VALUE drop(VALUE argument)
{
    rb_hk_driver_drop((rb_hk_driver_t *)argument);
    return Qnil;
}

/* _run: carries bytes until the loop has stopped (false) or this thread was interrupted (true). */
static VALUE reactor_run(VALUE self)
{
    rb_hk_driver_t *driver = rb_hk_driver_hold(rb_hk_driver_of(self));
    return rb_ensure(run, (VALUE)driver, drop, (VALUE)driver);
}

/* _interrupt: ends one _run. */
static VALUE reactor_interrupt(VALUE self)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    if (driver != NULL) {
        hk_loop_interrupt(driver->loop);
    }
    return Qnil;
}

/* _wake: ends the loop's sleep, if what Ruby did to the hub has made somebody ready. */
static VALUE reactor_wake(VALUE self)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    if (driver != NULL && driver->core != NULL && atomic_load_explicit(&driver->core->ready, memory_order_relaxed)) {
        hk_loop_wake(driver->loop);
    }
    return Qnil;
}

/* _stop */
static VALUE reactor_stop(VALUE self)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    if (driver != NULL) {
        hk_loop_stop(driver->loop);
    }
    return Qnil;
}

/* --- sockets ----------------------------------------------------------------------------------------------------- */

/* A descriptor of its own for the loop: the Ruby object closes the other. */
static int copy_of(VALUE descriptor)
{
    int copy = fcntl(NUM2INT(descriptor), F_DUPFD_CLOEXEC, 3);
    if (copy < 0) {
        rb_hk_check(HK_SYSTEM, "reactor");
    }
    return copy;
}

static VALUE taken(hk_status_t status, int fd)
{
    if (status != HK_OK) {
        close(fd);
        rb_hk_check(status == HK_CLOSED ? HK_OK : status, "reactor");
    }
    return status == HK_OK ? Qtrue : Qfalse;
}

/* The descriptor, which Ruby leaves open: its object is closed first, since what has the same number later is none of
 * its business. Nothing here lets another thread run, or an interrupt in. To close for Ruby, with a copy for the loop,
 * would be two system calls more, and would let go of the GVL, for each subscriber. */
static int taken_from(VALUE connection)
{
    int fd = NUM2INT(rb_funcall(connection, rb_intern("fileno"), 0));
    rb_funcall(connection, rb_intern("autoclose="), 1, Qfalse);
    rb_funcall(connection, rb_intern("close"), 0);
    return fd;
}

/* _attach(connection, serial): closes the object, its socket is the loop's; false when the loop takes nothing more. */
static VALUE reactor_attach(VALUE self, VALUE connection, VALUE serial)
{
    rb_hk_driver_t *driver = rb_hk_driver_of(self);
    uint64_t subscriber = NUM2ULL(serial);
    int fd = taken_from(connection);
    return taken(hk_loop_attach(driver->loop, fd, subscriber), fd);
}

/* _listen(descriptor, tcp) */
static VALUE reactor_listen(VALUE self, VALUE descriptor, VALUE tcp)
{
    rb_hk_driver_t *driver = rb_hk_driver_of(self);
    int copy = copy_of(descriptor);
    return taken(hk_loop_listen(driver->loop, copy, RTEST(tcp)), copy);
}

/* _listen_broker(descriptor, tcp) */
static VALUE reactor_listen_broker(VALUE self, VALUE descriptor, VALUE tcp)
{
    rb_hk_driver_t *driver = rb_hk_driver_of(self);
    int copy = copy_of(descriptor);
    return taken(hk_loop_listen_broker(driver->loop, copy, RTEST(tcp)), copy);
}

/* _adopt(descriptor, bytes): as _attach. */
static VALUE reactor_adopt(VALUE self, VALUE descriptor, VALUE string)
{
    rb_hk_driver_t *driver = rb_hk_driver_of(self);
    hk_bytes_t bytes = rb_hk_bytes(&string);
    int copy = copy_of(descriptor);
    VALUE answer = taken(hk_loop_adopt(driver->loop, copy, bytes), copy);
    RB_GC_GUARD(string);
    return answer;
}

/* --- figures ----------------------------------------------------------------------------------------------------- */

/* _storage_trouble: nil, or what has failed: see rb_hk_trouble. */
static VALUE reactor_storage_trouble(VALUE self)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    hk_journal_trouble_t trouble = {.error = 0};
    return driver != NULL && hk_loop_storage_failed(driver->loop, &trouble) ? rb_hk_trouble(&trouble) : Qnil;
}

/* _loop_stats: a Hash, as hk_loop_stats_t; nil without a loop. */
static VALUE reactor_stats(VALUE self)
{
    rb_hk_driver_t *driver = rb_hk_driver_if_open(self);
    if (driver == NULL) {
        return Qnil;
    }
    hk_loop_stats_t stats;
    hk_loop_read_stats(driver->loop, &stats);
    VALUE hash = rb_hash_new();
#define FIGURE(name) rb_hash_aset(hash, ID2SYM(rb_intern(#name)), ULL2NUM(stats.name))
    FIGURE(connections);
    FIGURE(streams);
    FIGURE(sessions);
    FIGURE(accepted);
    FIGURE(requests);
    FIGURE(bytes_in);
    FIGURE(bytes_out);
    FIGURE(refused_connections);
    FIGURE(refused_of_address);
    FIGURE(refused_asks);
    FIGURE(malformed);
    FIGURE(timed_out_heads);
    FIGURE(timed_out_writes);
    FIGURE(timed_out_idle);
    FIGURE(timed_out_hellos);
    FIGURE(accept_pauses);
    FIGURE(ring_error);
    FIGURE(turns);
    FIGURE(turn_ns);
    FIGURE(longest_turn_ns);
#undef FIGURE
    return hash;
}

void rb_hk_init_reactor(VALUE server_class)
{
    VALUE class = rb_define_class_under(server_class, "NativeReactor", rb_cObject);
    rb_define_alloc_func(class, reactor_alloc);
    rb_undef_method(class, "initialize_copy");
    rb_define_private_method(class, "_open", reactor_open, 3);
    rb_define_private_method(class, "_close", reactor_close, 0);
    rb_define_private_method(class, "_open?", reactor_is_open, 0);
    rb_define_private_method(class, "_run", reactor_run, 0);
    rb_define_private_method(class, "_interrupt", reactor_interrupt, 0);
    rb_define_private_method(class, "_wake", reactor_wake, 0);
    rb_define_private_method(class, "_stop", reactor_stop, 0);
    rb_define_private_method(class, "_attach", reactor_attach, 2);
    rb_define_private_method(class, "_listen", reactor_listen, 2);
    rb_define_private_method(class, "_listen_broker", reactor_listen_broker, 2);
    rb_define_private_method(class, "_adopt", reactor_adopt, 2);
    rb_define_private_method(class, "_storage_trouble", reactor_storage_trouble, 0);
    rb_define_private_method(class, "_loop_stats", reactor_stats, 0);
    rb_hk_init_gate(class);
    rb_hk_init_request(class);
    rb_hk_init_hello(class);
}
