/* hk_keeping.h: the threads of what keeps a hub's log (hk_keeper.h), and those who wait for it.
 *
 *     publish, with the hub's lock ──► hk_keeper_append ──► rouse
 *                                                             ▼
 *     two threads, one for each lane:  with the lock, take a job ── run it ── with the lock, bring it back
 *                                                             │
 *     hk_keeping_await, in any thread ◄───────────────────────┘
 *
 * A sync runs while others publish: what they append gathers for the next. The threads hold the hub's lock for moments,
 * and take no signals.
 */
#ifndef HK_KEEPING_H
#define HK_KEEPING_H

#include "hk_alloc.h"
#include "hk_keeper.h"
#include "hk_lock.h"
#include "hk_status.h"
#include "hk_sys.h"

typedef struct hk_keeping hk_keeping_t;

/* Starts the threads. Keeper and lock must outlive them. HK_OK, HK_NO_MEMORY or HK_SYSTEM. */
hk_status_t hk_keeping_start(const hk_alloc_t *alloc, const hk_sys_t *sys, hk_keeper_t *keeper, hk_lock_t *lock,
                             hk_keeping_t **keeping);

/* There may be a job: for hk_keeper_options_t. Any thread, with the hub's lock. */
void hk_keeping_rouse(void *keeping);

/* Waits until an update is as safe as was asked for. Any thread, without the lock.
 *
 * timeout  ns; negative: for ever.
 *
 * HK_OK; HK_AGAIN: not in that time, or hk_keeping_interrupt; HK_SYSTEM: never, for the storage has failed. */
hk_status_t hk_keeping_await(hk_keeping_t *keeping, uint64_t ticket, int64_t timeout);

/* Ends the waiting of everybody in hk_keeping_await once. */
void hk_keeping_interrupt(hk_keeping_t *keeping);

/* Ends the threads when the jobs in hand are done and brought back, and frees. Without the lock. Nobody waits any more.
 * NULL is allowed. */
void hk_keeping_stop(hk_keeping_t *keeping);

/* Frees the memory in a forked child, where there are no threads. NULL is allowed. */
void hk_keeping_abandon(hk_keeping_t *keeping);

#endif
