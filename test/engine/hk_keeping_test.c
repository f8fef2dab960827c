#include "hk_keeping.h"
#include "hk_log.h"
#include "hk_test.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS = 4, UPDATES = 200, SEGMENT_BYTES = 64 * 1024 };

/* Real files, and real threads. */
typedef struct scene {
    char folder[64];
    hk_lock_t lock;
    hk_keeper_t *keeper;
    hk_keeping_t *keeping;
    hk_position_t position;
    hk_topic_t *topic;
    size_t restored;
} scene_t;

static hk_status_t restore(void *context, const hk_keeper_t *keeper, const hk_kept_t *kept)
{
    scene_t *scene = context;
    (void)keeper;
    HK_CHECK_EQUAL_UINT(++scene->restored, kept->position);
    return HK_OK;
}

static void begin(scene_t *scene, bool synced)
{
    hk_keeper_options_t options = {.path = scene->folder,
                                   .files = hk_files_default(),
                                   .segment_bytes = SEGMENT_BYTES,
                                   .synced = synced,
                                   .wall = 1700000000000,
                                   .restore = restore,
                                   .context = scene};
    scene->restored = 0;
    HK_CHECK_OK(hk_keeper_open(hk_test_alloc(), &options, &scene->keeper, NULL));
    scene->position = hk_keeper_next(scene->keeper);
    HK_CHECK_OK(hk_lock_init(&scene->lock));
    HK_CHECK_OK(hk_keeping_start(hk_test_alloc(), hk_sys_default(), scene->keeper, &scene->lock, &scene->keeping));
}

static void end(scene_t *scene)
{
    hk_keeping_stop(scene->keeping);
    HK_CHECK_OK(hk_keeper_close(scene->keeper));
}

static void make_folder(scene_t *scene)
{
    snprintf(scene->folder, sizeof(scene->folder), "/tmp/hk_keeping.XXXXXX");
    HK_CHECK(mkdtemp(scene->folder) != NULL);
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), HK_BYTES("/a"), NULL, false, &scene->topic));
}

static void remove_folder(scene_t *scene)
{
    DIR *folder = opendir(scene->folder);
    HK_CHECK(folder != NULL);
    char path[512];
    for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", scene->folder, entry->d_name);
        (void)unlink(path);
    }
    closedir(folder);
    HK_CHECK(rmdir(scene->folder) == 0);
    hk_topic_release(scene->topic);
}

/* As fast as the disk makes segments. */
static uint64_t publish(scene_t *scene)
{
    static const char data[700];
    hk_log_update_t update = {
        .topics = &scene->topic, .topic_count = 1, .data = hk_bytes(data, sizeof(data)), .retry_ms = -1};
    hk_status_t status = HK_AGAIN;
    uint64_t ticket = 0;
    while (status == HK_AGAIN) {
        hk_lock_take(&scene->lock);
        status = hk_keeper_append(scene->keeper, scene->position, &update, 0);
        scene->position += status == HK_OK;
        ticket = hk_keeper_ticket(scene->keeper);
        hk_lock_give(&scene->lock);
        if (status == HK_AGAIN) {
            usleep(100);
        }
    }
    return status == HK_OK ? ticket : 0;
}

static void *publish_and_wait(void *argument)
{
    scene_t *scene = argument;
    for (int i = 0; i < UPDATES; i++) {
        uint64_t ticket = publish(scene);
        if (ticket == 0 || hk_keeping_await(scene->keeping, ticket, -1) != HK_OK) {
            return NULL;
        }
    }
    return scene;
}

HK_TEST(many_threads_wait_until_what_they_published_is_on_the_disk)
{
    scene_t scene = {.restored = 0};
    pthread_t threads[THREADS];
    make_folder(&scene);
    begin(&scene, true);
    for (int i = 0; i < THREADS; i++) {
        HK_CHECK(pthread_create(&threads[i], NULL, publish_and_wait, &scene) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *done;
        pthread_join(threads[i], &done);
        HK_CHECK(done != NULL);
    }
    hk_keeping_stop(scene.keeping);
    hk_keeper_drop_dead(scene.keeper);
    begin(&scene, true);
    HK_CHECK_EQUAL_UINT(THREADS * UPDATES, scene.restored);
    end(&scene);
    remove_folder(&scene);
}

HK_TEST(segments_follow_each_other_while_nobody_waits_for_the_disk)
{
    scene_t scene = {.restored = 0};
    make_folder(&scene);
    begin(&scene, false);
    for (int i = 0; i < 1000; i++) {
        uint64_t ticket = publish(&scene);
        HK_CHECK(ticket > 0);
        hk_lock_take(&scene.lock);
        bool safe = hk_keeper_safe(scene.keeper, ticket);
        hk_lock_give(&scene.lock);
        HK_CHECK(safe || hk_keeping_await(scene.keeping, ticket, -1) == HK_OK);
    }
    end(&scene);
    begin(&scene, false);
    HK_CHECK_EQUAL_UINT(1000, scene.restored);
    end(&scene);
    remove_folder(&scene);
}

HK_TEST(who_waits_in_vain_may_give_up_or_be_interrupted)
{
    scene_t scene = {.restored = 0};
    make_folder(&scene);
    begin(&scene, true);
    HK_CHECK_EQUAL_UINT(HK_AGAIN, hk_keeping_await(scene.keeping, 1000, 1000000));
    end(&scene);
    remove_folder(&scene);
}
