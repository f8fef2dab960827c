/* hk_worker.h: a thread for what may take long, so that its owner never waits for it.
 *
 *     owner:   submit ──► waiting            finished ──► collect
 *                            │                  ▲
 *     thread:                └─────► run ───────┴───► wake(context)
 *
 * An errand is part of something that its owner keeps; it is the worker's from submit to collect. Errands are run one
 * after the other, in order. To submit and to collect costs no memory, a mutex, and a system call only if the thread
 * sleeps; to ask for what has not finished costs nothing.
 *
 * The thread takes no signals. All functions are for one thread, the owner's.
 */
#ifndef HK_WORKER_H
#define HK_WORKER_H

#include "hk_alloc.h"
#include "hk_list.h"
#include "hk_status.h"
#include "hk_sys.h"

typedef struct hk_worker hk_worker_t;

typedef struct hk_errand {
    hk_list_t link;
    void (*run)(struct hk_errand *errand); /* on the worker's thread */
} hk_errand_t;

/* Starts a thread.
 *
 * wake  called on the worker's thread after each errand: something can be collected.
 *
 * HK_OK, HK_NO_MEMORY or HK_SYSTEM. */
hk_status_t hk_worker_start(const hk_alloc_t *alloc, const hk_sys_t *sys, void (*wake)(void *context), void *context,
                            hk_worker_t **worker);

/* Lets an errand run, behind those that were submitted before. */
void hk_worker_submit(hk_worker_t *worker, hk_errand_t *errand);

/* Whether an errand can be collected. */
bool hk_worker_has_finished(const hk_worker_t *worker);

/* An errand that has run; NULL: none. */
hk_errand_t *hk_worker_collect(hk_worker_t *worker);

/* Waits until everything that was submitted has run, and ends the thread. What has run can still be collected. */
void hk_worker_stop(hk_worker_t *worker);

/* The thread was stopped. NULL is allowed. */
void hk_worker_free(hk_worker_t *worker);

/* Frees the memory in a forked child, where there is no thread. Errands remain their owner's. NULL is allowed. */
void hk_worker_abandon(hk_worker_t *worker);

#endif
