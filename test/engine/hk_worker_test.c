#include "hk_sys_failing.h"
#include "hk_test.h"
#include "hk_worker.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ERRANDS = 1000 };

typedef struct crew {
    hk_worker_t *worker;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    int wakes; /* under the mutex */
} crew_t;

typedef struct errand {
    hk_errand_t errand;
    int *counter;
    int number;
    bool signals_blocked;
    pthread_t thread;
} errand_t;

static void wake(void *context)
{
    crew_t *crew = context;
    pthread_mutex_lock(&crew->mutex);
    crew->wakes++;
    pthread_cond_signal(&crew->woken);
    pthread_mutex_unlock(&crew->mutex);
}

static void crew_begin(crew_t *crew)
{
    *crew = (crew_t){.wakes = 0};
    HK_CHECK(pthread_mutex_init(&crew->mutex, NULL) == 0);
    HK_CHECK(pthread_cond_init(&crew->woken, NULL) == 0);
    HK_CHECK_OK(hk_worker_start(hk_test_alloc(), hk_sys_default(), wake, crew, &crew->worker));
}

static void crew_end(crew_t *crew)
{
    hk_worker_free(crew->worker);
    pthread_cond_destroy(&crew->woken);
    pthread_mutex_destroy(&crew->mutex);
}

static void await_wakes(crew_t *crew, int wakes)
{
    pthread_mutex_lock(&crew->mutex);
    while (crew->wakes < wakes) {
        pthread_cond_wait(&crew->woken, &crew->mutex);
    }
    pthread_mutex_unlock(&crew->mutex);
}

/* Not atomic: one errand after the other, and what was written before submitting is seen. */
static void count(hk_errand_t *errand)
{
    errand_t *counted = HK_OWNER(errand, errand_t, errand);
    counted->number = ++*counted->counter;
    counted->thread = pthread_self();
}

HK_TEST(errands_run_one_after_the_other_in_order_and_each_wakes_its_owner)
{
    static errand_t errands[ERRANDS];
    crew_t crew;
    int counter = 0;
    crew_begin(&crew);
    for (int i = 0; i < ERRANDS; i++) {
        errands[i] = (errand_t){.errand.run = count, .counter = &counter};
        hk_worker_submit(crew.worker, &errands[i].errand);
    }
    await_wakes(&crew, ERRANDS);
    for (int i = 0; i < ERRANDS; i++) {
        hk_errand_t *errand = hk_worker_collect(crew.worker);
        HK_CHECK(errand == &errands[i].errand);
        HK_CHECK_EQUAL_INT(i + 1, errands[i].number);
        HK_CHECK(!pthread_equal(errands[i].thread, pthread_self()));
    }
    HK_CHECK(!hk_worker_has_finished(crew.worker));
    HK_CHECK(hk_worker_collect(crew.worker) == NULL);
    hk_worker_stop(crew.worker);
    crew_end(&crew);
}

HK_TEST(an_errand_can_be_submitted_again_when_it_was_collected)
{
    crew_t crew;
    int counter = 0;
    errand_t errand = {.errand.run = count, .counter = &counter};
    crew_begin(&crew);
    for (int i = 1; i <= 100; i++) {
        hk_worker_submit(crew.worker, &errand.errand);
        await_wakes(&crew, i);
        HK_CHECK(hk_worker_has_finished(crew.worker));
        HK_CHECK(hk_worker_collect(crew.worker) == &errand.errand);
        HK_CHECK_EQUAL_INT(i, counter);
    }
    hk_worker_stop(crew.worker);
    crew_end(&crew);
}

HK_TEST(to_stop_waits_for_everything_that_was_submitted)
{
    static errand_t errands[ERRANDS];
    crew_t crew;
    int counter = 0;
    crew_begin(&crew);
    for (int i = 0; i < ERRANDS; i++) {
        errands[i] = (errand_t){.errand.run = count, .counter = &counter};
        hk_worker_submit(crew.worker, &errands[i].errand);
    }
    hk_worker_stop(crew.worker);
    HK_CHECK_EQUAL_INT(ERRANDS, counter);
    for (int i = 0; i < ERRANDS; i++) {
        HK_CHECK(hk_worker_collect(crew.worker) == &errands[i].errand);
    }
    HK_CHECK(hk_worker_collect(crew.worker) == NULL);
    crew_end(&crew);
}

static void look_at_signals(hk_errand_t *errand)
{
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    HK_OWNER(errand, errand_t, errand)->signals_blocked =
        sigismember(&mask, SIGTERM) == 1 && sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGVTALRM) == 1;
}

HK_TEST(signals_are_for_other_threads)
{
    crew_t crew;
    sigset_t mask;
    errand_t errand = {.errand.run = look_at_signals};
    crew_begin(&crew);
    hk_worker_submit(crew.worker, &errand.errand);
    hk_worker_stop(crew.worker);
    HK_CHECK(errand.signals_blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    HK_CHECK_EQUAL_INT(0, sigismember(&mask, SIGTERM));
    crew_end(&crew);
}

HK_TEST(where_there_is_no_thread_or_no_memory_there_is_no_worker)
{
    hk_sys_failing_t calls;
    hk_worker_t *worker;
    hk_sys_failing_init(&calls);
    calls.fail_at = 1;
    calls.error = EAGAIN;
    HK_CHECK_STATUS(HK_SYSTEM, hk_worker_start(hk_test_alloc(), &calls.sys, wake, NULL, &worker));
    HK_CHECK_EQUAL_INT(EAGAIN, errno);
    hk_test_failing(0);
    HK_CHECK_STATUS(HK_NO_MEMORY, hk_worker_start(hk_test_alloc(), &calls.sys, wake, NULL, &worker));
    hk_test_not_failing();
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
}

HK_TEST(a_forked_child_frees_what_is_the_parents)
{
    crew_t crew;
    crew_begin(&crew);
    pid_t child = fork();
    HK_CHECK(child >= 0);
    if (child == 0) {
        hk_worker_abandon(crew.worker);
        hk_worker_abandon(NULL);
        _exit(hk_test_blocks() == 0 ? 0 : 1);
    }
    int status;
    HK_CHECK(waitpid(child, &status, 0) == child);
    HK_CHECK(WIFEXITED(status));
    HK_CHECK_EQUAL_INT(0, WEXITSTATUS(status));
    hk_worker_stop(crew.worker);
    crew_end(&crew);
}
