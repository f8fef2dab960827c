#include "hk_keeping.h"

#include "hk_wait.h"

#include <pthread.h>

/* ns between two looks for a job that nobody told of: a spare that found no room, say. */
#define PAUSE INT64_C(1000000000)

typedef struct lane {
    hk_keeping_t *keeping;
    hk_lane_t lane;
    pthread_t thread;
    bool started;
} lane_t;

struct hk_keeping {
    const hk_alloc_t *alloc;
    hk_keeper_t *keeper;
    hk_lock_t *lock; /* round the keeper */
    lane_t lanes[HK_LANES];
    pthread_mutex_t mutex; /* taken behind the lock, if with it */
    pthread_cond_t due, safer;
    /* Under the mutex. */
    uint64_t safe; /* tickets up to this one are */
    uint64_t rouses, interruptions;
    bool failed, stopping;
};

/* --- the threads -------------------------------------------------------------------------------------------------- */

/* Whoever publishes has met the failure first: those who wait are told. */
static void fail(hk_keeping_t *keeping)
{
    pthread_mutex_lock(&keeping->mutex);
    keeping->failed = true;
    pthread_cond_broadcast(&keeping->safer);
    pthread_mutex_unlock(&keeping->mutex);
}

static hk_job_t *take_job(const lane_t *lane)
{
    hk_keeping_t *keeping = lane->keeping;
    hk_lock_take(keeping->lock);
    bool failed = hk_keeper_trouble(keeping->keeper) != NULL;
    hk_job_t *job = failed ? NULL : hk_keeper_job(keeping->keeper, lane->lane);
    hk_lock_give(keeping->lock);
    if (failed) {
        fail(keeping);
    }
    return job;
}

/* One lane's work may make work for the other. */
static void bring_back(const lane_t *lane, hk_job_t *job)
{
    hk_keeping_t *keeping = lane->keeping;
    hk_lock_take(keeping->lock);
    bool failed = hk_keeper_done(keeping->keeper, job) != HK_OK;
    uint64_t safe = hk_keeper_safe_up_to(keeping->keeper);
    hk_lock_give(keeping->lock);
    pthread_mutex_lock(&keeping->mutex);
    keeping->safe = safe;
    keeping->failed = keeping->failed || failed;
    keeping->rouses++;
    pthread_cond_broadcast(&keeping->safer);
    pthread_cond_broadcast(&keeping->due);
    pthread_mutex_unlock(&keeping->mutex);
}

/* False: there will be nothing more to do. */
static bool wait_for_rouse(hk_keeping_t *keeping, uint64_t *seen)
{
    int64_t until = hk_wait_end(PAUSE);
    pthread_mutex_lock(&keeping->mutex);
    while (keeping->rouses == *seen && !keeping->stopping &&
           hk_wait_until(&keeping->due, &keeping->mutex, until) == HK_OK) {
    }
    *seen = keeping->rouses;
    bool go_on = !keeping->stopping;
    pthread_mutex_unlock(&keeping->mutex);
    return go_on;
}

static void *work(void *argument)
{
    const lane_t *lane = argument;
    uint64_t seen = 0;
    do {
        for (hk_job_t *job; (job = take_job(lane)) != NULL;) {
            hk_job_run(job);
            bring_back(lane, job);
        }
    } while (wait_for_rouse(lane->keeping, &seen));
    return NULL;
}

/* --- starting and stopping ---------------------------------------------------------------------------------------- */

hk_status_t hk_keeping_start(const hk_alloc_t *alloc, const hk_sys_t *sys, hk_keeper_t *keeper, hk_lock_t *lock,
                             hk_keeping_t **keeping)
{
    hk_keeping_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->keeper = keeper;
    made->lock = lock;
    if (hk_wait_init(&made->mutex, &made->due, &made->safer) != HK_OK) {
        hk_alloc_free(alloc, made);
        return HK_SYSTEM;
    }
    for (size_t i = 0; i < HK_LANES; i++) {
        lane_t *lane = &made->lanes[i];
        *lane = (lane_t){.keeping = made, .lane = (hk_lane_t)i};
        lane->started = sys->thread_create(sys->context, &lane->thread, work, lane) == 0;
        if (!lane->started) {
            hk_keeping_stop(made);
            return HK_SYSTEM;
        }
    }
    hk_keeper_rouse_with(keeper, hk_keeping_rouse, made);
    *keeping = made;
    return HK_OK;
}

void hk_keeping_stop(hk_keeping_t *keeping)
{
    if (keeping == NULL) {
        return;
    }
    pthread_mutex_lock(&keeping->mutex);
    keeping->stopping = true;
    pthread_cond_broadcast(&keeping->due);
    pthread_mutex_unlock(&keeping->mutex);
    for (size_t i = 0; i < HK_LANES; i++) {
        if (keeping->lanes[i].started) {
            pthread_join(keeping->lanes[i].thread, NULL);
        }
    }
    hk_keeper_rouse_with(keeping->keeper, NULL, NULL);
    hk_wait_release(&keeping->mutex, &keeping->due, &keeping->safer);
    hk_alloc_free(keeping->alloc, keeping);
}

/* The threads may have held the mutex, or waited, when the process forked: nothing can be destroyed. */
void hk_keeping_abandon(hk_keeping_t *keeping)
{
    if (keeping != NULL) {
        hk_alloc_free(keeping->alloc, keeping);
    }
}

/* --- whoever publishes, and whoever waits ------------------------------------------------------------------------- */

void hk_keeping_rouse(void *context)
{
    hk_keeping_t *keeping = context;
    pthread_mutex_lock(&keeping->mutex);
    keeping->rouses++;
    pthread_cond_broadcast(&keeping->due);
    pthread_mutex_unlock(&keeping->mutex);
}

hk_status_t hk_keeping_await(hk_keeping_t *keeping, uint64_t ticket, int64_t timeout)
{
    int64_t until = hk_wait_end(timeout);
    hk_status_t wait = HK_OK;
    pthread_mutex_lock(&keeping->mutex);
    uint64_t interruptions = keeping->interruptions;
    while (keeping->safe < ticket && !keeping->failed && keeping->interruptions == interruptions && wait == HK_OK) {
        wait = hk_wait_until(&keeping->safer, &keeping->mutex, until);
    }
    hk_status_t status = keeping->safe >= ticket ? HK_OK : keeping->failed ? HK_SYSTEM : HK_AGAIN;
    pthread_mutex_unlock(&keeping->mutex);
    return status;
}

void hk_keeping_interrupt(hk_keeping_t *keeping)
{
    pthread_mutex_lock(&keeping->mutex);
    keeping->interruptions++;
    pthread_cond_broadcast(&keeping->safer);
    pthread_mutex_unlock(&keeping->mutex);
}
