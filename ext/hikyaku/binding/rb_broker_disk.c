#include "rb_broker.h"

#include <ruby/thread.h>

/* What is written, and what may take long: at once, or piece by piece in threads of Ruby's.
 *
 *     NONE ─► HELD ─► RUNNING ─► RAN ─► (commit, work, close) ─► NONE
 */

typedef struct call {
    rb_hk_broker_t *broker;
    uint64_t wall;
    hk_lane_t lane;
    hk_job_t *job;
    bool answer;
    hk_status_t status;
    hk_journal_trouble_t trouble;
} call_t;

void rb_hk_copy_trouble(hk_broker_t *broker, hk_journal_trouble_t *trouble)
{
    const hk_journal_trouble_t *found = hk_broker_trouble(broker);
    if (found != NULL) {
        *trouble = *found;
    }
}

VALUE rb_hk_outcome(hk_status_t status, const hk_journal_trouble_t *trouble)
{
    if (status == HK_SYSTEM) {
        return rb_hk_trouble(trouble);
    }
    rb_hk_check(status, "broker");
    return Qnil;
}

/* --- jobs, with the lock ----------------------------------------------------------------------------------------- */

/* Whether there is something to run in a lane. */
static bool hold(rb_hk_broker_t *broker, hk_lane_t lane)
{
    if (broker->errands[lane] == RB_HK_NONE) {
        broker->jobs[lane] = hk_broker_job(broker->broker, lane);
        broker->errands[lane] = broker->jobs[lane] != NULL ? RB_HK_HELD : RB_HK_NONE;
    }
    return broker->errands[lane] == RB_HK_HELD;
}

static hk_status_t give_back(rb_hk_broker_t *broker, hk_lane_t lane)
{
    if (broker->errands[lane] != RB_HK_RAN) {
        return HK_OK;
    }
    broker->errands[lane] = RB_HK_NONE;
    return hk_broker_done(broker->broker, broker->jobs[lane]);
}

static hk_status_t give_all_back(rb_hk_broker_t *broker)
{
    hk_status_t status = HK_OK;
    for (int lane = 0; lane < HK_LANES; lane++) {
        hk_status_t done = give_back(broker, (hk_lane_t)lane);
        status = status == HK_OK ? done : status;
    }
    return status;
}

/* Runs what there is, here and now. Whether there was anything. */
static bool run_all(rb_hk_broker_t *broker)
{
    bool any = false;
    for (int lane = 0; lane < HK_LANES; lane++) {
        if (hold(broker, (hk_lane_t)lane)) {
            hk_job_run(broker->jobs[lane]);
            broker->errands[lane] = RB_HK_RAN;
            any = true;
        }
    }
    return any;
}

bool rb_hk_finish_jobs(rb_hk_broker_t *broker)
{
    for (int lane = 0; lane < HK_LANES; lane++) {
        if (broker->errands[lane] == RB_HK_RUNNING) {
            return false;
        }
        if (broker->errands[lane] == RB_HK_HELD) {
            hk_job_run(broker->jobs[lane]);
            broker->errands[lane] = RB_HK_RAN;
        }
    }
    (void)give_all_back(broker);
    return true;
}

/* --- all at once ------------------------------------------------------------------------------------------------- */

static void commit(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    call->status = give_all_back(call->broker);
    hk_status_t status = hk_broker_commit(broker, call->wall);
    call->status = call->status == HK_OK ? status : call->status;
    rb_hk_copy_trouble(broker, &call->trouble);
}

/* _commit(wall): nil, or what went wrong. */
static VALUE engine_commit(VALUE self, VALUE wall)
{
    call_t call = {.broker = rb_hk_broker_undriven(self), .wall = NUM2ULL(wall), .status = HK_OK};
    rb_hk_with_broker_slowly(call.broker, commit, &call);
    return rb_hk_outcome(call.status, &call.trouble);
}

/* Nobody else has the lock for long: nothing drives the broker but this. */
static void work(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    do {
        call->status = give_all_back(call->broker);
    } while (call->status == HK_OK && run_all(call->broker));
    rb_hk_copy_trouble(broker, &call->trouble);
}

/* _work: nil, or what went wrong. */
static VALUE engine_work(VALUE self)
{
    call_t call = {.broker = rb_hk_broker_undriven(self), .status = HK_OK};
    rb_hk_with_broker_slowly(call.broker, work, &call);
    return rb_hk_outcome(call.status, &call.trouble);
}

/* --- piece by piece ---------------------------------------------------------------------------------------------- */

static hk_lane_t lane_of(VALUE lane)
{
    return NUM2INT(lane) == HK_LANE_SYNC ? HK_LANE_SYNC : HK_LANE_SPACE;
}

static void look(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    (void)broker;
    call->answer = hold(call->broker, call->lane);
}

/* _wanted(lane) */
static VALUE engine_wanted(VALUE self, VALUE lane)
{
    call_t call = {.broker = rb_hk_broker_undriven(self), .lane = lane_of(lane)};
    rb_hk_with_broker(call.broker, look, &call);
    return call.answer ? Qtrue : Qfalse;
}

static void begin(hk_broker_t *broker, void *argument)
{
    call_t *call = argument;
    (void)broker;
    if (hold(call->broker, call->lane)) {
        call->broker->errands[call->lane] = RB_HK_RUNNING;
        call->job = call->broker->jobs[call->lane];
    }
}

/* Without the lock and the GVL. */
static void *run(void *argument)
{
    call_t *call = argument;
    hk_job_run(call->job);
    call->answer = true;
    hk_lock_take(&call->broker->lock);
    call->broker->errands[call->lane] = RB_HK_RAN;
    hk_lock_give(&call->broker->lock);
    return NULL;
}

/* _run(lane). What was begun must be run: where this thread is to be interrupted, with the GVL. */
static VALUE engine_run(VALUE self, VALUE lane)
{
    call_t call = {.broker = rb_hk_broker_undriven(self), .lane = lane_of(lane)};
    rb_hk_with_broker(call.broker, begin, &call);
    if (call.job != NULL) {
        rb_nogvl(run, &call, NULL, NULL, RB_NOGVL_INTR_FAIL);
        if (!call.answer) {
            (void)run(&call);
        }
    }
    RB_GC_GUARD(self);
    return Qnil;
}

void rb_hk_init_broker_disk(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_commit", engine_commit, 1);
    rb_define_private_method(engine_class, "_work", engine_work, 0);
    rb_define_private_method(engine_class, "_wanted", engine_wanted, 1);
    rb_define_private_method(engine_class, "_run", engine_run, 1);
}
