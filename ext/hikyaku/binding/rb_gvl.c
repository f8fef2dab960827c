#include "rb_hk.h"

#include <ruby/thread.h>

typedef struct locked_call {
    rb_hk_core_t *core;
    void (*work)(rb_hk_core_t *core, void *argument);
    void *argument;
    bool done;
} locked_call_t;

/* With the lock and the GVL. */
static void release_unused(rb_hk_core_t *core)
{
    rb_hk_part_t *part = core->unused;
    core->unused = NULL;
    while (part != NULL) {
        rb_hk_part_t *next = part->next;
        rb_hk_part_free(part);
        part = next;
    }
}

/* With the lock. */
static void work_with(rb_hk_core_t *core, void (*work)(rb_hk_core_t *core, void *argument), void *argument)
{
    rb_hk_fork_enter(core);
    work(core, argument);
    atomic_store_explicit(&core->ready, hk_hub_ready(core->hub), memory_order_relaxed);
}

static void *take_work_give(void *argument)
{
    locked_call_t *call = argument;
    hk_lock_take(&call->core->lock);
    work_with(call->core, call->work, call->argument);
    call->done = true;
    hk_lock_give(&call->core->lock);
    return NULL;
}

bool rb_hk_locked_now(rb_hk_core_t *core, void (*work)(rb_hk_core_t *core, void *argument), void *argument)
{
    if (!hk_lock_try(&core->lock)) {
        return false;
    }
    work_with(core, work, argument);
    release_unused(core);
    hk_lock_give(&core->lock);
    return true;
}

/* Without RB_NOGVL_INTR_FAIL it would be asked for interrupts when the work is
 * done, and what was done be lost. */
void rb_hk_slowly(void *(*work)(void *argument), void *argument, const bool *done)
{
    while (!*done) {
        rb_nogvl(work, argument, NULL, NULL, RB_NOGVL_INTR_FAIL);
        if (!*done) {
            rb_thread_check_ints();
        }
    }
}

void rb_hk_locked(rb_hk_core_t *core, void (*work)(rb_hk_core_t *core, void *argument), void *argument)
{
    if (rb_hk_locked_now(core, work, argument)) {
        return;
    }
    locked_call_t call = {.core = core, .work = work, .argument = argument};
    rb_hk_slowly(take_work_give, &call, &call.done);
}

typedef struct run_call {
    hk_loop_t *loop;
    hk_status_t status;
} run_call_t;

static void *run(void *argument)
{
    run_call_t *call = argument;
    call->status = hk_loop_run(call->loop);
    return NULL;
}

static void interrupt_run(void *argument)
{
    run_call_t *call = argument;
    hk_loop_interrupt(call->loop);
}

hk_status_t rb_hk_run(hk_loop_t *loop)
{
    run_call_t call = {.loop = loop, .status = HK_AGAIN};
    rb_nogvl(run, &call, interrupt_run, &call, RB_NOGVL_INTR_FAIL);
    return call.status;
}

typedef struct next_call {
    hk_loop_t *loop;
    int64_t timeout;
    hk_ask_t *ask;
    hk_hello_ask_t *hello;
    hk_status_t status;
} next_call_t;

static void *next(void *argument)
{
    next_call_t *call = argument;
    call->status = hk_loop_next(call->loop, call->timeout, &call->ask);
    return NULL;
}

static void *next_hello(void *argument)
{
    next_call_t *call = argument;
    call->status = hk_loop_next_hello(call->loop, call->timeout, &call->hello);
    return NULL;
}

static void interrupt_next(void *argument)
{
    hk_loop_interrupt_asks(((next_call_t *)argument)->loop);
}

/* What was waited for stands in the call if the status is HK_OK. */
static next_call_t wait_for(void *(*wait)(void *argument), hk_loop_t *loop, int64_t timeout)
{
    next_call_t call = {.loop = loop, .timeout = timeout, .status = HK_AGAIN};
    rb_nogvl(wait, &call, interrupt_next, &call, RB_NOGVL_INTR_FAIL);
    return call;
}

hk_status_t rb_hk_next(hk_loop_t *loop, int64_t timeout, hk_ask_t **ask)
{
    next_call_t call = wait_for(next, loop, timeout);
    if (call.status == HK_OK) {
        *ask = call.ask;
    }
    return call.status;
}

hk_status_t rb_hk_next_hello(hk_loop_t *loop, int64_t timeout, hk_hello_ask_t **ask)
{
    next_call_t call = wait_for(next_hello, loop, timeout);
    if (call.status == HK_OK) {
        *ask = call.hello;
    }
    return call.status;
}

typedef struct await_call {
    hk_keeping_t *keeping;
    uint64_t ticket;
    hk_status_t status;
} await_call_t;

static void *await(void *argument)
{
    await_call_t *call = argument;
    call->status = hk_keeping_await(call->keeping, call->ticket, -1);
    return NULL;
}

static void interrupt_await(void *argument)
{
    hk_keeping_interrupt(((await_call_t *)argument)->keeping);
}

hk_status_t rb_hk_await_kept(hk_keeping_t *keeping, uint64_t ticket)
{
    await_call_t call = {.keeping = keeping, .ticket = ticket, .status = HK_AGAIN};
    rb_nogvl(await, &call, interrupt_await, &call, RB_NOGVL_INTR_FAIL);
    return call.status;
}

void rb_hk_without_gvl(void *(*work)(void *argument), void *argument)
{
    rb_thread_call_without_gvl(work, argument, NULL, NULL);
}

typedef struct passage {
    rb_hk_reading_t *reading;
    uint64_t bytes, records;
} passage_t;

static VALUE pass(VALUE argument)
{
    const passage_t *passage = (const passage_t *)argument;
    return rb_funcall(passage->reading->object, rb_intern("read"), 2, ULL2NUM(passage->bytes),
                      ULL2NUM(passage->records));
}

static void *pass_with_gvl(void *argument)
{
    rb_protect(pass, (VALUE)argument, &((passage_t *)argument)->reading->raised);
    return NULL;
}

static hk_status_t tell_reading(void *context, uint64_t bytes, uint64_t records)
{
    rb_hk_reading_t *reading = context;
    passage_t passage = {.reading = reading, .bytes = bytes, .records = records};
    rb_thread_call_with_gvl(pass_with_gvl, &passage);
    return reading->raised == 0 ? HK_OK : HK_CLOSED;
}

hk_journal_reading_t rb_hk_journal_reading(rb_hk_reading_t *reading)
{
    return (hk_journal_reading_t){.read = tell_reading, .context = reading};
}
