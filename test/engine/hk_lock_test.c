#include "hk_lock.h"
#include "hk_test.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, TURNS = 20000 };

typedef struct shared {
    hk_lock_t lock;
    uint64_t count; /* under the lock */
    atomic_int began;
    atomic_bool done;
    int order[64], order_count; /* under the lock */
} shared_t;

static void begin(shared_t *shared)
{
    *shared = (shared_t){.count = 0};
    HK_CHECK_OK(hk_lock_init(&shared->lock));
}

static void *count_up(void *argument)
{
    shared_t *shared = argument;
    for (int i = 0; i < TURNS; i++) {
        hk_lock_take(&shared->lock);
        shared->count++;
        hk_lock_give(&shared->lock);
    }
    return NULL;
}

static void count_with_all(shared_t *shared)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        HK_CHECK(pthread_create(&threads[i], NULL, count_up, shared) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        HK_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    HK_CHECK_EQUAL_UINT((uint64_t)THREADS * TURNS, shared->count);
}

HK_TEST(one_at_a_time_has_the_lock)
{
    shared_t shared;
    begin(&shared);
    count_with_all(&shared);
    HK_CHECK(hk_lock_try(&shared.lock));
    hk_lock_give(&shared.lock);
    hk_lock_release(&shared.lock);
}

HK_TEST(tickets_may_run_over)
{
    shared_t shared;
    begin(&shared);
    atomic_store(&shared.lock.next, UINT32_MAX - 100);
    atomic_store(&shared.lock.serving, UINT32_MAX - 100);
    count_with_all(&shared);
    hk_lock_release(&shared.lock);
}

HK_TEST(trying_takes_the_lock_only_when_it_is_free)
{
    shared_t shared;
    begin(&shared);
    HK_CHECK(hk_lock_try(&shared.lock));
    HK_CHECK(!hk_lock_try(&shared.lock));
    HK_CHECK(!hk_lock_wanted(&shared.lock));
    hk_lock_give(&shared.lock);
    hk_lock_take(&shared.lock);
    HK_CHECK(!hk_lock_try(&shared.lock));
    hk_lock_give(&shared.lock);
    HK_CHECK(hk_lock_try(&shared.lock));
    hk_lock_give(&shared.lock);
}

static void *try_and_count(void *argument)
{
    shared_t *shared = argument;
    for (int i = 0; i < TURNS;) {
        if (hk_lock_try(&shared->lock)) {
            shared->count++;
            hk_lock_give(&shared->lock);
            i++;
        } else {
            sched_yield();
        }
    }
    return NULL;
}

HK_TEST(who_tries_and_who_waits_keep_out_of_each_others_way)
{
    shared_t shared;
    pthread_t tries, waits;
    begin(&shared);
    HK_CHECK(pthread_create(&tries, NULL, try_and_count, &shared) == 0);
    HK_CHECK(pthread_create(&waits, NULL, count_up, &shared) == 0);
    HK_CHECK(pthread_join(waits, NULL) == 0);
    HK_CHECK(pthread_join(tries, NULL) == 0);
    HK_CHECK_EQUAL_UINT(UINT64_C(2) * TURNS, shared.count);
}

static void *take_once(void *argument)
{
    shared_t *shared = argument;
    hk_lock_take(&shared->lock);
    atomic_store(&shared->done, true);
    hk_lock_give(&shared->lock);
    return NULL;
}

HK_TEST(who_waits_comes_before_who_takes_the_lock_again)
{
    for (int i = 0; i < 100; i++) {
        shared_t shared;
        pthread_t waiter;
        begin(&shared);
        hk_lock_take(&shared.lock);
        HK_CHECK(pthread_create(&waiter, NULL, take_once, &shared) == 0);
        while (!hk_lock_wanted(&shared.lock)) {
            sched_yield();
        }
        HK_CHECK(!atomic_load(&shared.done));
        hk_lock_give(&shared.lock);
        hk_lock_take(&shared.lock);
        HK_CHECK(atomic_load(&shared.done));
        hk_lock_give(&shared.lock);
        HK_CHECK(pthread_join(waiter, NULL) == 0);
    }
}

typedef struct place {
    shared_t *shared;
    int number;
} place_t;

static void *take_place(void *argument)
{
    place_t *place = argument;
    shared_t *shared = place->shared;
    hk_lock_take(&shared->lock);
    shared->order[shared->order_count++] = place->number;
    hk_lock_give(&shared->lock);
    return NULL;
}

/* More than bits that tell waiters apart. */
HK_TEST(who_came_first_is_served_first_however_many_wait)
{
    enum { WAITERS = 40 };
    shared_t shared;
    pthread_t threads[WAITERS];
    place_t places[WAITERS];
    begin(&shared);
    hk_lock_take(&shared.lock);
    for (int i = 0; i < WAITERS; i++) {
        places[i] = (place_t){&shared, i};
        HK_CHECK(pthread_create(&threads[i], NULL, take_place, &places[i]) == 0);
        while (atomic_load(&shared.lock.next) != (uint32_t)i + 2) {
            sched_yield();
        }
    }
    hk_lock_give(&shared.lock);
    for (int i = 0; i < WAITERS; i++) {
        HK_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    for (int i = 0; i < WAITERS; i++) {
        HK_CHECK_EQUAL_INT(i, shared.order[i]);
    }
}

HK_TEST(a_lock_can_begin_anew_whoever_held_it)
{
    shared_t shared;
    begin(&shared);
    hk_lock_take(&shared.lock);
    HK_CHECK_OK(hk_lock_init(&shared.lock));
    HK_CHECK(hk_lock_try(&shared.lock));
    hk_lock_give(&shared.lock);
}
