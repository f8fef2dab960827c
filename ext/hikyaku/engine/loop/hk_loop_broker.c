#include "hk_loop_broker_private.h"

/* When clients are to come back that were told of a stop, at the earliest. */
enum { COME_BACK_MS = 1000 };

/* --- making ------------------------------------------------------------------------------------------------------- */

static hk_job_t *next_job(void *broker, hk_lane_t lane)
{
    return hk_broker_job(broker, lane);
}

static hk_status_t job_done(void *broker, hk_job_t *job)
{
    return hk_broker_done(broker, job);
}

hk_status_t hk_brokerage_open(hk_loop_t *loop)
{
    hk_broker_t *broker = loop->options.broker;
    if (broker == NULL) {
        return HK_OK;
    }
    loop->brokerage = hk_alloc_zeroed(loop->alloc, 1, sizeof(*loop->brokerage));
    if (loop->brokerage == NULL) {
        return HK_NO_MEMORY;
    }
    loop->brokerage->broker = broker;
    loop->brokerage->touched = true;
    loop->brokerage->next_tick = HK_NEVER;
    loop->brokerage->jobs = (hk_jobs_t){.journal = broker, .next = next_job, .done = job_done, .retry_at = HK_NEVER};
    return HK_OK;
}

void hk_brokerage_close(hk_loop_t *loop)
{
    if (loop->brokerage != NULL) {
        (void)hk_loop_broker(loop);
        (void)hk_jobs_end(&loop->brokerage->jobs);
        hk_loop_unlock_broker(loop);
        hk_alloc_free(loop->alloc, loop->brokerage);
        loop->brokerage = NULL;
    }
}

void hk_brokerage_abandon(hk_loop_t *loop)
{
    if (loop->brokerage != NULL) {
        hk_jobs_abandon(&loop->brokerage->jobs);
        hk_alloc_free(loop->alloc, loop->brokerage);
        loop->brokerage = NULL;
    }
}

/* --- its lock and its clock --------------------------------------------------------------------------------------- */

static void lock(hk_loop_t *loop)
{
    if (!loop->brokerage->locked) {
        hk_loop_unlock(loop);
        hk_lock_take(loop->options.broker_lock);
        loop->brokerage->locked = true;
    }
}

hk_broker_t *hk_loop_broker(hk_loop_t *loop)
{
    lock(loop);
    loop->brokerage->touched = true;
    return loop->brokerage->broker;
}

void hk_loop_unlock_broker(hk_loop_t *loop)
{
    if (loop->brokerage != NULL && loop->brokerage->locked) {
        loop->brokerage->locked = false;
        hk_lock_give(loop->options.broker_lock);
    }
}

uint64_t hk_loop_wall_ms(hk_loop_t *loop)
{
    return (uint64_t)(hk_loop_wall(loop) / HK_MILLISECOND);
}

/* --- a turn ------------------------------------------------------------------------------------------------------- */

/* Told once: to whoever asks, and to whoever runs the loop. */
static void note_failure(hk_loop_t *loop)
{
    hk_brokerage_t *brokerage = loop->brokerage;
    const hk_journal_trouble_t *trouble = hk_broker_trouble(brokerage->broker);
    if (brokerage->failed) {
        return;
    }
    brokerage->failed = true;
    pthread_mutex_lock(&loop->mutex);
    loop->storage_failed = true;
    if (trouble != NULL) {
        loop->trouble = *trouble;
    }
    pthread_mutex_unlock(&loop->mutex);
    atomic_store(&loop->interrupted, true);
}

bool hk_loop_storage_failed(hk_loop_t *loop, hk_journal_trouble_t *trouble)
{
    pthread_mutex_lock(&loop->mutex);
    bool failed = loop->storage_failed;
    if (failed && trouble != NULL) {
        *trouble = loop->trouble;
    }
    pthread_mutex_unlock(&loop->mutex);
    return failed;
}

static void check(hk_loop_t *loop, hk_status_t status)
{
    if (status == HK_SYSTEM) {
        note_failure(loop);
    }
}

/* What was appended is written, and jobs go out, before anybody hears of it. */
static void settle(hk_loop_t *loop)
{
    hk_brokerage_t *brokerage = loop->brokerage;
    hk_broker_t *broker = brokerage->broker;
    check(loop, hk_jobs_take_back(&brokerage->jobs));
    if (brokerage->next_tick <= loop->now) {
        hk_broker_tick(broker, loop->now, hk_loop_wall_ms(loop));
    }
    hk_hellos_ask(loop);
    check(loop, hk_broker_commit(broker, hk_loop_wall_ms(loop)));
    if (!brokerage->ending) {
        hk_jobs_hand_out(loop, &brokerage->jobs);
    }
    brokerage->touched = false;
}

/* A slice of those who are ready. */
static void serve(hk_loop_t *loop)
{
    hk_brokerage_t *brokerage = loop->brokerage;
    size_t bytes = 0;
    brokerage->more = false;
    for (int i = 1; !brokerage->more; i++) {
        hk_session_t *session = hk_broker_next_ready(brokerage->broker);
        if (session == NULL) {
            break;
        }
        bytes += hk_client_send(loop, session);
        brokerage->more = i == HK_SLICE || bytes > HK_SESSIONS_BYTES;
    }
}

static bool has_to_do(const hk_loop_t *loop)
{
    const hk_brokerage_t *brokerage = loop->brokerage;
    return brokerage->touched || brokerage->more || brokerage->next_tick <= loop->now ||
           brokerage->jobs.retry_at <= loop->now || hk_jobs_finished(&brokerage->jobs);
}

void hk_brokerage_turn(hk_loop_t *loop)
{
    hk_brokerage_t *brokerage = loop->brokerage;
    if (brokerage == NULL || !has_to_do(loop)) {
        return;
    }
    lock(loop);
    settle(loop);
    serve(loop);
    hk_clients_resume(loop);
    brokerage->next_tick = hk_broker_next_tick(brokerage->broker);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

void hk_brokerage_drain(hk_loop_t *loop)
{
    if (loop->brokerage != NULL) {
        hk_broker_drain(hk_loop_broker(loop), COME_BACK_MS);
    }
}

bool hk_brokerage_drained(hk_loop_t *loop)
{
    const hk_brokerage_t *brokerage = loop->brokerage;
    if (brokerage == NULL || brokerage->failed) {
        return true;
    }
    return !brokerage->touched && !brokerage->more && hk_list_empty(&loop->phases[HK_PHASE_STALLED]) &&
           hk_broker_drained(brokerage->broker);
}

bool hk_brokerage_end(hk_loop_t *loop)
{
    hk_brokerage_t *brokerage = loop->brokerage;
    if (brokerage == NULL) {
        return true;
    }
    brokerage->ending = true;
    lock(loop);
    settle(loop);
    brokerage->next_tick = HK_NEVER;
    if (hk_jobs_out(&brokerage->jobs)) {
        return false;
    }
    check(loop, hk_jobs_end(&brokerage->jobs));
    return true;
}
