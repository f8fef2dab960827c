#include "hk_loop_broker_private.h"

/* Before it is tried again to start a thread. */
#define PAUSE (100 * HK_MILLISECOND)

static void run(hk_errand_t *errand)
{
    hk_job_run(HK_OWNER(errand, hk_lane_work_t, errand)->job);
}

static void wake(void *loop)
{
    hk_loop_wake(loop);
}

static hk_status_t take_back(hk_jobs_t *jobs, hk_lane_work_t *lane)
{
    hk_job_t *job = lane->job;
    lane->job = NULL;
    lane->out = false;
    return jobs->done(jobs->journal, job);
}

bool hk_jobs_finished(const hk_jobs_t *jobs)
{
    for (size_t i = 0; i < HK_LANES; i++) {
        if (jobs->lanes[i].out && hk_worker_has_finished(jobs->lanes[i].worker)) {
            return true;
        }
    }
    return false;
}

hk_status_t hk_jobs_take_back(hk_jobs_t *jobs)
{
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < HK_LANES && status == HK_OK; i++) {
        hk_lane_work_t *lane = &jobs->lanes[i];
        if (lane->out && hk_worker_collect(lane->worker) != NULL) {
            status = take_back(jobs, lane);
        }
    }
    return status;
}

/* False: there can be no thread now. */
static bool has_thread(hk_loop_t *loop, hk_lane_work_t *lane)
{
    return lane->worker != NULL || hk_worker_start(loop->alloc, loop->sys, wake, loop, &lane->worker) == HK_OK;
}

void hk_jobs_hand_out(hk_loop_t *loop, hk_jobs_t *jobs)
{
    jobs->retry_at = HK_NEVER;
    for (size_t i = 0; i < HK_LANES; i++) {
        hk_lane_work_t *lane = &jobs->lanes[i];
        if (lane->job == NULL) {
            lane->job = jobs->next(jobs->journal, (hk_lane_t)i);
        }
        if (lane->job == NULL || lane->out) {
            continue;
        }
        lane->out = has_thread(loop, lane);
        if (lane->out) {
            lane->errand.run = run;
            hk_worker_submit(lane->worker, &lane->errand);
        } else {
            jobs->retry_at = hk_later(loop->now, PAUSE);
        }
    }
}

bool hk_jobs_out(const hk_jobs_t *jobs)
{
    for (size_t i = 0; i < HK_LANES; i++) {
        if (jobs->lanes[i].out) {
            return true;
        }
    }
    return false;
}

/* A job that found no thread is run here: there is nobody left to wait. */
hk_status_t hk_jobs_end(hk_jobs_t *jobs)
{
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < HK_LANES; i++) {
        hk_lane_work_t *lane = &jobs->lanes[i];
        if (lane->worker != NULL) {
            hk_worker_stop(lane->worker);
            (void)hk_worker_collect(lane->worker);
            hk_worker_free(lane->worker);
            lane->worker = NULL;
        }
        if (lane->job != NULL) {
            if (!lane->out) {
                hk_job_run(lane->job);
            }
            hk_status_t done = take_back(jobs, lane);
            status = status == HK_OK ? done : status;
        }
    }
    return status;
}

void hk_jobs_abandon(hk_jobs_t *jobs)
{
    for (size_t i = 0; i < HK_LANES; i++) {
        hk_worker_abandon(jobs->lanes[i].worker);
        jobs->lanes[i].worker = NULL;
    }
}
