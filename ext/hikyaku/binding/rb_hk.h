/* rb_hk.h: what Ruby sees of the engine, and how the two keep out of each other's way.
 *
 *     Hikyaku::Hub::NativeEngine ──┐
 *     …::Compiled (matcher, grant) ├──► rb_hk_core_t: hub, gate, lock
 *     Hikyaku::Server::NativeReactor ──────┤         ▲
 *     …::Request, …::Hello ────────┴──► rb_hk_driver_t: loop
 *
 * A broker's engine is in rb_broker.h; a loop may have a hub, a broker, or both.
 *
 * Nothing here is public: Ruby files wrap each private method `_x`.
 *
 * Rules. Whoever touches hub or gate holds the lock: rb_hk_locked. What runs there neither raises nor allocates Ruby
 * objects nor calls Ruby: it gets C structs, and leaves its results in them. Raising is done in rb_error.c, waiting in
 * rb_gvl.c, and nothing holds the lock while it waits for Ruby's (GVL), so that any two threads always get on. The
 * engine holds no VALUE: what belongs to a Ruby object is found again by number (a subscriber's serial, a grant's tag).
 */
#ifndef RB_HK_H
#define RB_HK_H

#include "hikyaku.h"
#include "hk_list.h"

#include <alloca.h>
#include <ruby.h>
#include <stdatomic.h>
#include <stdbool.h>

/* --- what the Ruby objects share --------------------------------------------------------------------------------- */

typedef struct rb_hk_part rb_hk_part_t;
typedef struct rb_hk_broker rb_hk_broker_t;

/* What a fork must not find half changed: see rb_fork.c. */
typedef struct rb_hk_watched {
    hk_list_t link;
    hk_lock_t *lock;
    void (*abandon)(struct rb_hk_watched *watched); /* in the child: lets go of what is the parent's */
} rb_hk_watched_t;

/* A hub with its lock. Freed with the last Ruby object that holds it; counted under the GVL. */
typedef struct rb_hk_core {
    hk_lock_t lock;
    hk_hub_t *hub;
    hk_gate_t *gate;       /* NULL unless requests are served */
    hk_keeper_t *keeper;   /* NULL: nothing is kept. Changed with the lock and the GVL */
    hk_keeping_t *keeping; /* its threads */
    size_t awaiting;       /* who waits for them; under the GVL */
    size_t holders;
    atomic_bool ready;        /* somebody was, when Ruby last had the lock: the loop must be woken */
    unsigned long generation; /* of the process whose subscribers these are: see rb_fork.c */
    rb_hk_part_t *unused;     /* parts whose Ruby objects are gone, until somebody holds the lock */
    rb_hk_watched_t watched;
} rb_hk_core_t;

/* A matcher or a grant that a Ruby object holds: the other is NULL. */
struct rb_hk_part {
    rb_hk_core_t *core;
    hk_matcher_t *matcher;
    hk_grant_t *grant;
    struct rb_hk_part *next; /* in core->unused */
};

/* A loop. Freed with the last Ruby object that holds it: a request outlives its reactor. */
typedef struct rb_hk_driver {
    rb_hk_core_t *core;     /* NULL: without a hub */
    rb_hk_broker_t *broker; /* NULL: without a broker */
    hk_loop_t *loop;
    size_t holders;
    unsigned long generation;
    size_t max_body_bytes;
    bool drives; /* the broker */
} rb_hk_driver_t;

rb_hk_core_t *rb_hk_core_hold(rb_hk_core_t *core);
void rb_hk_core_drop(rb_hk_core_t *core);
rb_hk_driver_t *rb_hk_driver_hold(rb_hk_driver_t *driver);
void rb_hk_driver_drop(rb_hk_driver_t *driver);

/* The structs behind Ruby objects; raise TypeError, or RuntimeError for one that was never set up. */
rb_hk_core_t *rb_hk_core_of(VALUE engine);
rb_hk_driver_t *rb_hk_driver_if_open(VALUE reactor); /* NULL for one that is not open in this process … */
rb_hk_driver_t *rb_hk_driver_of(VALUE reactor);      /* … IOError */
rb_hk_part_t *rb_hk_part_of(VALUE compiled);
rb_hk_part_t *rb_hk_grant_part(VALUE compiled); /* TypeError for a matcher */
VALUE rb_hk_too_costly(hk_status_t status);     /* :cost, or :cost_of_address: rb_subscriber.c */

/* Lets go of what a part holds. With the lock, or when nobody else has the core. */
void rb_hk_part_free(rb_hk_part_t *part);

/* Lets go of what keeps the hub's log, as a crash would; in a forked child without a lock. See rb_keeper.c. */
void rb_hk_keeper_drop(rb_hk_core_t *core);
void rb_hk_keeper_abandon(rb_hk_core_t *core);

/* --- rb_gvl.c: where Ruby's lock is let go ----------------------------------------------------------------------- */

/* Runs `work` with the core's lock: at once if it is free, else without the GVL. May raise before `work` ran, never
 * after. `argument` is on the caller's stack, and what it points to is kept alive by the caller. */
void rb_hk_locked(rb_hk_core_t *core, void (*work)(rb_hk_core_t *core, void *argument), void *argument);

/* The same without waiting: false if the lock was not free. Never raises. */
bool rb_hk_locked_now(rb_hk_core_t *core, void (*work)(rb_hk_core_t *core, void *argument), void *argument);

/* Runs `work` without the GVL, however long it takes: it sets *done. May raise before it ran, never after. */
void rb_hk_slowly(void *(*work)(void *argument), void *argument, const bool *done);

/* A Log::Journal::Reading, which hears with the GVL what a journal that is opened without it says. raised: it has ended
 * the opening, and what it raised is to be raised again. On the caller's stack. */
typedef struct rb_hk_reading {
    VALUE object;
    int raised;
} rb_hk_reading_t;

hk_journal_reading_t rb_hk_journal_reading(rb_hk_reading_t *reading);

/* Runs the loop without the GVL, until it ends or this thread is interrupted; does not raise. */
hk_status_t rb_hk_run(hk_loop_t *loop);

/* Waits without the GVL for a request, or for a HELLO, at most so many ns; do not raise. */
hk_status_t rb_hk_next(hk_loop_t *loop, int64_t timeout, hk_ask_t **ask);
hk_status_t rb_hk_next_hello(hk_loop_t *loop, int64_t timeout, hk_hello_ask_t **ask);

/* Waits without the GVL until an update is safe: HK_OK, HK_AGAIN or HK_SYSTEM; does not raise. */
hk_status_t rb_hk_await_kept(hk_keeping_t *keeping, uint64_t ticket);

/* Does something without the GVL, whatever happens. */
void rb_hk_without_gvl(void *(*work)(void *argument), void *argument);

/* --- rb_fork.c: processes ---------------------------------------------------------------------------------------- */

/* Rises in each forked child. */
unsigned long rb_hk_generation(void);
/* From now on a fork waits for the lock, and the child has a new one and abandons. Until rb_hk_fork_forget. */
void rb_hk_fork_watch(rb_hk_watched_t *watched, hk_lock_t *lock, void (*abandon)(rb_hk_watched_t *watched));
void rb_hk_fork_forget(rb_hk_watched_t *watched);
/* Lets go of the subscribers whose connections are the parent's. With the lock. */
void rb_hk_fork_enter(rb_hk_core_t *core);
void rb_hk_init_fork(void);

/* --- rb_error.c: where it is raised ------------------------------------------------------------------------------ */

/* Raises what a status means, unless it is HK_OK. `doing`: "publish". With HK_SYSTEM errno says more. */
void rb_hk_check(hk_status_t status, const char *doing);
NORETURN(void rb_hk_fail(VALUE error_class, const char *message));

/* --- rb_values.c: there and back --------------------------------------------------------------------------------- */

/* A String's bytes: *string is replaced by a frozen one that shares them, and must stay on the stack, or in a buffer of
 * ALLOCV, as long as they are used, so that nobody frees or moves it. nil: none. */
hk_bytes_t rb_hk_bytes(VALUE *string);

/* The components and the origin of a URL, an Array of nine Strings, which are kept in `kept`: see rb_hk_bytes. */
hk_url_t rb_hk_url(VALUE array, VALUE kept[HK_URL_PARTS + 1]);

/* Room for so many of a type until the function ends, or ALLOCV_END(memory): on the stack if it is little. VALUEs in it
 * are kept alive and where they are. */
#define RB_HK_TEMPORARY(type, memory, count)                                                                           \
    ((type *)((size_t)(count) * sizeof(type) <= 1024                                                                   \
                  ? ((memory) = 0, alloca((size_t)(count) * sizeof(type)))                                             \
                  : rb_alloc_tmp_buffer(&(memory), (long)((size_t)(count) * sizeof(type)))))

/* Seconds as ns, cut to half of what can be counted; nil: `absent`. Where that is HK_NEVER, what is cut is never. */
int64_t rb_hk_ns(VALUE seconds, int64_t absent);
VALUE rb_hk_seconds(int64_t ns);

/* A binary String. */
VALUE rb_hk_string(hk_bytes_t bytes);
/* A UTF-8 String, nil when empty. */
VALUE rb_hk_text_or_nil(hk_bytes_t text);

/* A String of what was collected under the lock, which is released, also when there is no memory for the String. */
VALUE rb_hk_string_of(hk_buf_t *buf);
/* `make(argument)`, after which, come what may, the buffer is released. */
VALUE rb_hk_releasing(hk_buf_t *buf, VALUE (*make)(VALUE argument), VALUE argument);

/* `hash[name]`, nil without. */
VALUE rb_hk_option(VALUE hash, const char *name);

/* Copies a String's bytes, of which there must be so many. `name`: what is said to be wrong otherwise. */
void rb_hk_copy_exactly(VALUE string, const char *name, void *bytes, size_t size);
size_t rb_hk_size_option(VALUE hash, const char *name);

/* --- the classes ------------------------------------------------------------------------------------------------- */

void rb_hk_init_engine(VALUE hub_class);        /* rb_engine.c */
void rb_hk_init_trim(VALUE proxy_class);        /* rb_engine.c */
void rb_hk_init_compiled(VALUE engine_class);   /* rb_compiled.c */
void rb_hk_init_publish(VALUE engine_class);    /* rb_publish.c */
void rb_hk_init_subscriber(VALUE engine_class); /* rb_subscriber.c */
void rb_hk_init_change(VALUE engine_class);     /* rb_change.c */
void rb_hk_init_delivery(VALUE engine_class);   /* rb_delivery.c */
void rb_hk_init_keeper(VALUE engine_class);     /* rb_keeper.c */
void rb_hk_init_figures(VALUE engine_class);    /* rb_figures.c */
void rb_hk_init_reactor(VALUE server_class);          /* rb_reactor.c */
void rb_hk_init_gate(VALUE reactor_class);      /* rb_gate.c */
void rb_hk_init_request(VALUE reactor_class);   /* rb_request.c */
void rb_hk_init_env(VALUE request_class);       /* rb_env.c */
void rb_hk_init_hello(VALUE reactor_class);     /* rb_hello.c */
void rb_hk_init_broker(VALUE module);           /* rb_broker.c */
void rb_hk_init_crc32c(VALUE module);           /* rb_crc32c.c */
void rb_hk_init_head(VALUE module);             /* rb_head.c */
void rb_hk_init_plain(VALUE module);            /* rb_plain.c */
void rb_hk_init_unpack(VALUE module);           /* rb_unpack.c */

#endif
