#include "hk_wait.h"

#include "hk_sys.h"

#include <stdbool.h>
#include <time.h>

#define SECOND INT64_C(1000000000)

static bool make_conditions(pthread_cond_t *one, pthread_cond_t *other)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    bool made = pthread_cond_init(one, &attributes) == 0;
    if (made && pthread_cond_init(other, &attributes) != 0) {
        pthread_cond_destroy(one);
        made = false;
    }
    pthread_condattr_destroy(&attributes);
    return made;
}

hk_status_t hk_wait_init(pthread_mutex_t *mutex, pthread_cond_t *one, pthread_cond_t *other)
{
    if (pthread_mutex_init(mutex, NULL) != 0) {
        return HK_SYSTEM;
    }
    if (!make_conditions(one, other)) {
        pthread_mutex_destroy(mutex);
        return HK_SYSTEM;
    }
    return HK_OK;
}

void hk_wait_release(pthread_mutex_t *mutex, pthread_cond_t *one, pthread_cond_t *other)
{
    pthread_cond_destroy(one);
    pthread_cond_destroy(other);
    pthread_mutex_destroy(mutex);
}

int64_t hk_wait_now(void)
{
    return hk_sys_default()->monotonic(NULL);
}

int64_t hk_wait_end(int64_t timeout)
{
    return timeout < 0 ? HK_NEVER : hk_later(hk_wait_now(), timeout);
}

hk_status_t hk_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex, int64_t until)
{
    if (until == HK_NEVER) {
        pthread_cond_wait(condition, mutex);
        return HK_OK;
    }
    struct timespec time = {.tv_sec = (time_t)(until / SECOND), .tv_nsec = (long)(until % SECOND)};
    return pthread_cond_timedwait(condition, mutex, &time) == 0 ? HK_OK : HK_AGAIN;
}
