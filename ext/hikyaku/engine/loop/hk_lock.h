/* hk_lock.h: the lock round a hub, fair to those who wait.
 *
 * The loop holds it for slices of a large fan-out, one after the other; a plain mutex would let it take the lock again
 * before whoever waits has woken up. Here who comes first is served first: everybody draws a ticket.
 *
 *     take      ticket = next++, then wait until serving == ticket
 *     give      serving++, and wake the one whose turn it is, if somebody waits
 *
 * As long as nobody waits, taking and giving are a few atomic operations and no system call. Not recursive. What was
 * written before giving is seen after taking.
 */
#ifndef HK_LOCK_H
#define HK_LOCK_H

#include "hk_status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct hk_lock {
    _Atomic uint32_t next, serving; /* tickets */
} hk_lock_t;

/* A lock that nobody holds; also over one that a forked child inherited, whoever held it. HK_OK. */
hk_status_t hk_lock_init(hk_lock_t *lock);

/* Nobody holds the lock or waits for it. */
void hk_lock_release(hk_lock_t *lock);

/* Waits for its turn. */
void hk_lock_take(hk_lock_t *lock);

/* Takes it if it is free at once and nobody waits. */
bool hk_lock_try(hk_lock_t *lock);

void hk_lock_give(hk_lock_t *lock);

/* Whether somebody waits; for who holds it. */
bool hk_lock_wanted(hk_lock_t *lock);

#endif
