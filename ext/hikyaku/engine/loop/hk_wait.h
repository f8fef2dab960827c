/* hk_wait.h: waiting for another thread, no longer than until a time of the monotonic clock.
 *
 *     int64_t until = hk_wait_end(timeout);
 *     pthread_mutex_lock(&mutex);
 *     while (nothing has happened && hk_wait_until(&condition, &mutex, until) == HK_OK) {
 *     }
 *     pthread_mutex_unlock(&mutex);
 *
 * It goes by the system's clock, whatever the loop takes for its own: a test that sets that waits for nobody.
 */
#ifndef HK_WAIT_H
#define HK_WAIT_H

#include "hk_grant.h"
#include "hk_status.h"

#include <pthread.h>
#include <stdint.h>

/* A time so many ns later; HK_NEVER beyond what can be counted. */
static inline int64_t hk_later(int64_t at, int64_t by)
{
    int64_t sum;
    return __builtin_add_overflow(at, by, &sum) ? HK_NEVER : sum;
}

/* A mutex, and two conditions that go by the clock. HK_OK; HK_SYSTEM with nothing to be released. */
hk_status_t hk_wait_init(pthread_mutex_t *mutex, pthread_cond_t *one, pthread_cond_t *other);

/* Nobody waits any more. */
void hk_wait_release(pthread_mutex_t *mutex, pthread_cond_t *one, pthread_cond_t *other);

/* ns of the clock. */
int64_t hk_wait_now(void);

/* The end of a wait that begins now. timeout: ns; negative: for ever, HK_NEVER. */
int64_t hk_wait_end(int64_t timeout);

/* With the mutex. HK_OK: something may have happened; HK_AGAIN: it is `until`. */
hk_status_t hk_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until);

#endif
