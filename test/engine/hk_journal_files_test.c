/* Real files, and jobs in other threads. */
#include "hk_journal_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static hk_replayed_t replayed;
static char folder[64];

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/hk_journal_XXXXXX");
    HK_CHECK(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
    DIR *dir = opendir(folder);
    HK_CHECK(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        unlinkat(dirfd(dir), entry->d_name, 0);
    }
    closedir(dir);
    rmdir(folder);
}

static hk_status_t open_real(hk_journal_t **journal, hk_journal_trouble_t *trouble)
{
    memset(&replayed, 0, sizeof(replayed));
    hk_journal_options_t options = options_on(hk_files_default(), &replayed);
    options.path = folder;
    return hk_journal_open(hk_test_alloc(), &options, journal, trouble);
}

HK_TEST(a_journal_in_a_real_folder_is_opened_again)
{
    make_folder();
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    uint32_t sums[100];
    HK_CHECK_OK(open_real(&journal, &trouble));
    for (uint64_t i = 0; i < 100; i++) {
        HK_CHECK_OK(append_seeded(journal, i, (size_t)(i * 40), false, &sums[i], NULL));
        HK_CHECK_OK(sync_journal(journal));
    }
    HK_CHECK(hk_journal_current(journal) > 3);
    HK_CHECK_OK(hk_journal_drop(journal, 2));
    HK_CHECK_OK(hk_journal_close(journal));
    HK_CHECK_OK(open_real(&journal, &trouble));
    HK_CHECK(replayed.count < 100 && replayed.last == 100);
    for (uint64_t i = 0; i < replayed.count; i++) {
        HK_CHECK_EQUAL_UINT(sums[replayed.positions[i] - 1], replayed.sums[i]);
    }
    hk_journal_drop_dead(journal);
    remove_folder();
}

HK_TEST(a_journal_that_is_open_is_not_opened_by_another)
{
    make_folder();
    hk_journal_t *journal, *other;
    hk_journal_trouble_t trouble;
    HK_CHECK_OK(open_real(&journal, NULL));
    HK_CHECK_STATUS(HK_TOO_MANY, open_real(&other, &trouble));
    HK_CHECK(strstr(trouble.text, "another process") != NULL);
    hk_journal_drop_dead(journal);
    HK_CHECK_OK(open_real(&journal, NULL));
    HK_CHECK_OK(hk_journal_close(journal));
    remove_folder();
}

HK_TEST(what_cannot_be_opened_is_said)
{
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    snprintf(folder, sizeof(folder), "/tmp/hk_journal_that_is_not_there");
    HK_CHECK_STATUS(HK_SYSTEM, open_real(&journal, &trouble));
    HK_CHECK_EQUAL_INT(ENOENT, trouble.error);
    HK_CHECK(strstr(trouble.text, "ENOENT") != NULL);
    hk_journal_options_t options = options_on(hk_files_default(), &replayed);
    static const uint32_t wrong[] = {4096, SEGMENT - 4096, SEGMENT + 1, HK_JOURNAL_SEGMENT_MOST + 4096u};
    for (size_t i = 0; i < 4; i++) {
        options.segment_bytes = wrong[i];
        HK_CHECK_STATUS(HK_INVALID, hk_journal_open(hk_test_alloc(), &options, &journal, &trouble));
        HK_CHECK(strstr(trouble.text, "64 KiB") != NULL);
    }
}

/* -- Threads --------------------------------------------------------------------------------------------------------- */

/* One for each lane. */
typedef struct worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    hk_job_t *given, *done;
    bool stops;
} worker_t;

static void *work(void *argument)
{
    worker_t *worker = argument;
    pthread_mutex_lock(&worker->mutex);
    while (!worker->stops) {
        if (worker->given == NULL) {
            pthread_cond_wait(&worker->changed, &worker->mutex);
            continue;
        }
        hk_job_t *job = worker->given;
        pthread_mutex_unlock(&worker->mutex);
        hk_job_run(job);
        pthread_mutex_lock(&worker->mutex);
        worker->given = NULL;
        worker->done = job;
        pthread_cond_signal(&worker->changed);
    }
    pthread_mutex_unlock(&worker->mutex);
    return NULL;
}

/* Brings back what is done and gives what is due. wait: until nothing is out and nothing due. */
static void turn(hk_journal_t *journal, worker_t workers[HK_LANES], bool wait)
{
    for (bool again = true; again;) {
        again = false;
        for (int lane = 0; lane < HK_LANES; lane++) {
            worker_t *worker = &workers[lane];
            pthread_mutex_lock(&worker->mutex);
            while (wait && worker->given != NULL) {
                pthread_cond_wait(&worker->changed, &worker->mutex);
            }
            if (worker->done != NULL) {
                HK_CHECK_OK(hk_journal_done(journal, worker->done));
                worker->done = NULL;
            }
            if (worker->given == NULL) {
                worker->given = hk_journal_job(journal, (hk_lane_t)lane);
                again = again || (wait && worker->given != NULL);
                pthread_cond_signal(&worker->changed);
            }
            pthread_mutex_unlock(&worker->mutex);
        }
    }
}

HK_TEST(jobs_run_in_other_threads_while_records_are_appended)
{
    make_folder();
    hk_journal_t *journal;
    HK_CHECK_OK(open_real(&journal, NULL));
    static worker_t workers[HK_LANES];
    for (int lane = 0; lane < HK_LANES; lane++) {
        workers[lane] = (worker_t){.stops = false};
        pthread_mutex_init(&workers[lane].mutex, NULL);
        pthread_cond_init(&workers[lane].changed, NULL);
        HK_CHECK(pthread_create(&workers[lane].thread, NULL, work, &workers[lane]) == 0);
    }
    static uint32_t sums[2000];
    uint64_t count = 0, refused = 0;
    while (count < 1000) {
        for (int i = 0; i < 5; i++) {
            hk_status_t status = append_seeded(journal, count, hk_test_below(900), false, &sums[count], NULL);
            HK_CHECK(status == HK_OK || status == HK_TOO_LARGE);
            refused += status != HK_OK;
            count += status == HK_OK;
        }
        HK_CHECK_OK(hk_journal_write(journal, count));
        hk_journal_want_sync(journal, hk_journal_appended(journal));
        if (hk_journal_current(journal) > hk_journal_oldest(journal) + 4) {
            HK_CHECK_OK(hk_journal_drop(journal, hk_journal_oldest(journal)));
        }
        turn(journal, workers, refused > 0);
        refused = 0;
    }
    HK_CHECK_OK(hk_journal_write(journal, count));
    turn(journal, workers, true);
    HK_CHECK_EQUAL_UINT(count, hk_journal_synced(journal));
    for (int lane = 0; lane < HK_LANES; lane++) {
        pthread_mutex_lock(&workers[lane].mutex);
        workers[lane].stops = true;
        pthread_cond_signal(&workers[lane].changed);
        pthread_mutex_unlock(&workers[lane].mutex);
        pthread_join(workers[lane].thread, NULL);
        pthread_cond_destroy(&workers[lane].changed);
        pthread_mutex_destroy(&workers[lane].mutex);
    }
    hk_journal_stats_t stats;
    hk_journal_read_stats(journal, &stats);
    HK_CHECK(stats.syncs > 0 && stats.sync_ns >= stats.longest_sync_ns && stats.longest_sync_ns > 0);
    HK_CHECK_EQUAL_UINT(count, stats.records);
    hk_journal_drop_dead(journal);
    HK_CHECK_OK(open_real(&journal, NULL));
    HK_CHECK_EQUAL_UINT(count, replayed.last);
    for (uint64_t i = 0; i < replayed.count; i++) {
        HK_CHECK_EQUAL_UINT(sums[replayed.positions[i] - 1], replayed.sums[i]);
    }
    HK_CHECK_OK(hk_journal_close(journal));
    remove_folder();
}
