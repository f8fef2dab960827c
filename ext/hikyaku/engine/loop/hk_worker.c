#include "hk_worker.h"

#include <pthread.h>
#include <stdatomic.h>

struct hk_worker {
    const hk_alloc_t *alloc;
    void (*wake)(void *context);
    void *context;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t submitted;
    atomic_bool has_finished; /* an errand: it need not be asked for under the mutex */
    /* Under the mutex. */
    hk_list_t waiting, finished;
    bool stopping;
};

/* --- the thread --------------------------------------------------------------------------------------------------- */

/* NULL: there will be none. With the mutex. */
static hk_errand_t *next(hk_worker_t *worker)
{
    hk_list_t *first;
    while ((first = hk_list_shift(&worker->waiting)) == NULL) {
        if (worker->stopping) {
            return NULL;
        }
        pthread_cond_wait(&worker->submitted, &worker->mutex);
    }
    return HK_OWNER(first, hk_errand_t, link);
}

static void *work(void *argument)
{
    hk_worker_t *worker = argument;
    hk_errand_t *errand;
    pthread_mutex_lock(&worker->mutex);
    while ((errand = next(worker)) != NULL) {
        pthread_mutex_unlock(&worker->mutex);
        errand->run(errand);
        pthread_mutex_lock(&worker->mutex);
        hk_list_append(&worker->finished, &errand->link);
        atomic_store(&worker->has_finished, true);
        pthread_mutex_unlock(&worker->mutex);
        worker->wake(worker->context);
        pthread_mutex_lock(&worker->mutex);
    }
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

/* --- its owner ---------------------------------------------------------------------------------------------------- */

static hk_status_t start(hk_worker_t *worker, const hk_sys_t *sys)
{
    if (pthread_mutex_init(&worker->mutex, NULL) != 0) {
        return HK_SYSTEM;
    }
    if (pthread_cond_init(&worker->submitted, NULL) != 0) {
        pthread_mutex_destroy(&worker->mutex);
        return HK_SYSTEM;
    }
    if (sys->thread_create(sys->context, &worker->thread, work, worker) < 0) {
        pthread_cond_destroy(&worker->submitted);
        pthread_mutex_destroy(&worker->mutex);
        return HK_SYSTEM;
    }
    return HK_OK;
}

hk_status_t hk_worker_start(const hk_alloc_t *alloc, const hk_sys_t *sys, void (*wake)(void *context), void *context,
                            hk_worker_t **worker)
{
    hk_worker_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->wake = wake;
    made->context = context;
    hk_list_init(&made->waiting);
    hk_list_init(&made->finished);
    atomic_init(&made->has_finished, false);
    hk_status_t status = start(made, sys);
    if (status != HK_OK) {
        hk_alloc_free(alloc, made);
        return status;
    }
    *worker = made;
    return HK_OK;
}

void hk_worker_submit(hk_worker_t *worker, hk_errand_t *errand)
{
    pthread_mutex_lock(&worker->mutex);
    hk_list_append(&worker->waiting, &errand->link);
    pthread_mutex_unlock(&worker->mutex);
    /* Whom this wakes finds the mutex free: else it would go to sleep again at once. */
    pthread_cond_signal(&worker->submitted);
}

bool hk_worker_has_finished(const hk_worker_t *worker)
{
    return atomic_load(&worker->has_finished);
}

hk_errand_t *hk_worker_collect(hk_worker_t *worker)
{
    if (!hk_worker_has_finished(worker)) {
        return NULL;
    }
    pthread_mutex_lock(&worker->mutex);
    hk_list_t *first = hk_list_shift(&worker->finished);
    atomic_store(&worker->has_finished, !hk_list_empty(&worker->finished));
    pthread_mutex_unlock(&worker->mutex);
    return first != NULL ? HK_OWNER(first, hk_errand_t, link) : NULL;
}

void hk_worker_stop(hk_worker_t *worker)
{
    pthread_mutex_lock(&worker->mutex);
    worker->stopping = true;
    pthread_cond_signal(&worker->submitted);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
}

void hk_worker_free(hk_worker_t *worker)
{
    if (worker != NULL) {
        pthread_cond_destroy(&worker->submitted);
        pthread_mutex_destroy(&worker->mutex);
        hk_alloc_free(worker->alloc, worker);
    }
}

/* The thread may have held the mutex, or waited, when the process forked: neither can be destroyed. */
void hk_worker_abandon(hk_worker_t *worker)
{
    if (worker != NULL) {
        hk_alloc_free(worker->alloc, worker);
    }
}
