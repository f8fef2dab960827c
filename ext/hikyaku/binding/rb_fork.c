#include "rb_hk.h"

#include <pthread.h>

/* A fork must not happen while somebody has a hub or a broker half changed: the
 * forking thread holds every lock meanwhile. Nobody who has such a lock waits
 * for the GVL, or for another one, so this ends. */
static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static hk_list_t list = {.next = &list, .previous = &list};
static unsigned long generation = 1;

static rb_hk_watched_t *watched_of(hk_list_t *link)
{
    return HK_OWNER(link, rb_hk_watched_t, link);
}

static void before_fork(void)
{
    pthread_mutex_lock(&list_lock);
    for (hk_list_t *link = list.next; link != &list; link = link->next) {
        hk_lock_take(watched_of(link)->lock);
    }
}

static void after_fork_in_parent(void)
{
    for (hk_list_t *link = list.next; link != &list; link = link->next) {
        hk_lock_give(watched_of(link)->lock);
    }
    pthread_mutex_unlock(&list_lock);
}

/* Who else waited for the locks is not in this process: they begin anew. */
static void after_fork_in_child(void)
{
    generation++;
    for (hk_list_t *link = list.next; link != &list; link = link->next) {
        rb_hk_watched_t *watched = watched_of(link);
        hk_lock_init(watched->lock);
        watched->abandon(watched);
    }
    pthread_mutex_init(&list_lock, NULL);
}

unsigned long rb_hk_generation(void)
{
    return generation;
}

void rb_hk_fork_watch(rb_hk_watched_t *watched, hk_lock_t *lock, void (*abandon)(rb_hk_watched_t *watched))
{
    watched->lock = lock;
    watched->abandon = abandon;
    pthread_mutex_lock(&list_lock);
    hk_list_append(&list, &watched->link);
    pthread_mutex_unlock(&list_lock);
}

void rb_hk_fork_forget(rb_hk_watched_t *watched)
{
    pthread_mutex_lock(&list_lock);
    hk_list_remove(&watched->link);
    pthread_mutex_unlock(&list_lock);
}

/* Who has a connection got it in the parent, whose it is. */
static bool note_if_connected(void *context, hk_subscriber_t *subscriber)
{
    uint64_t serial = hk_subscriber_serial(subscriber);
    return hk_subscriber_connection(subscriber) == NULL ||
           hk_buf_append(context, hk_bytes((const char *)&serial, sizeof(serial))) == HK_OK;
}

static void let_go(rb_hk_core_t *core, hk_bytes_t serials)
{
    int64_t now = hk_sys_default()->monotonic(NULL);
    for (size_t at = 0; at < serials.length; at += sizeof(uint64_t)) {
        uint64_t serial;
        memcpy(&serial, serials.at + at, sizeof(serial));
        hk_subscriber_t *subscriber = hk_hub_find(core->hub, serial);
        if (subscriber != NULL) {
            hk_hub_unsubscribe(core->hub, subscriber, now);
        }
    }
}

void rb_hk_fork_enter(rb_hk_core_t *core)
{
    if (core->generation == generation) {
        return;
    }
    core->generation = generation;
    hk_buf_t serials;
    hk_buf_init(&serials, hk_alloc_default());
    hk_hub_each(core->hub, note_if_connected, &serials);
    let_go(core, hk_buf_bytes(&serials));
    hk_buf_release(&serials);
}

void rb_hk_init_fork(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}
