#include "hk_loop_broker_private.h"

#include <errno.h>

enum { MOST_ASKS = 4096, HELD_BODIES = 4, HELD_BYTES = 64 * 1024 * 1024 };

/* What a client that was refused may take to read why. */
#define LINGER_TIME HK_SECOND

/* Until a session has had its first answer. */
#define HELLO_TIME (10 * HK_SECOND)

/* --- making ------------------------------------------------------------------------------------------------------- */

static int64_t patience_of(int64_t timeout)
{
    return timeout > 0 ? timeout : HK_NEVER;
}

static void set_patience(hk_loop_t *loop)
{
    const hk_loop_options_t *options = &loop->options;
    loop->patience[HK_PHASE_HEAD] = loop->patience[HK_PHASE_BODY] = patience_of(options->head_timeout);
    loop->patience[HK_PHASE_IDLE] = patience_of(options->idle_timeout);
    loop->patience[HK_PHASE_FLUSH] = loop->patience[HK_PHASE_BLOCKED] = loop->patience[HK_PHASE_STALLED] =
        patience_of(options->write_timeout);
    loop->patience[HK_PHASE_HELLO] = options->hello_timeout > 0 ? options->hello_timeout : HELLO_TIME;
    loop->patience[HK_PHASE_LINGER] = loop->patience[HK_PHASE_REFUSED] = LINGER_TIME;
    loop->patience[HK_PHASE_ASKED] = loop->patience[HK_PHASE_STREAM] = HK_NEVER;
    loop->patience[HK_PHASE_SESSION] = loop->patience[HK_PHASE_FULL] = HK_NEVER;
}

static void set_options(hk_loop_t *loop, const hk_loop_options_t *options)
{
    loop->options = *options;
    if (loop->options.max_asks == 0) {
        loop->options.max_asks = MOST_ASKS;
    }
    if (loop->options.max_held_bytes == 0) {
        size_t bodies =
            options->max_body_bytes > SIZE_MAX / HELD_BODIES ? SIZE_MAX : HELD_BODIES * options->max_body_bytes;
        loop->options.max_held_bytes = bodies > HELD_BYTES ? bodies : HELD_BYTES;
    }
    loop->sys = options->sys != NULL ? options->sys : hk_sys_default();
    loop->limits = hk_http1_default_limits;
    if (options->max_head_bytes > 0) {
        loop->limits.head_bytes = options->max_head_bytes;
    }
    set_patience(loop);
}

static void set_up(hk_loop_t *loop)
{
    for (size_t phase = 0; phase < HK_PHASES; phase++) {
        hk_list_init(&loop->phases[phase]);
    }
    hk_list_init(&loop->listeners);
    hk_list_init(&loop->closed);
    hk_list_init(&loop->closed_listeners);
    hk_list_init(&loop->inbox);
    hk_list_init(&loop->queue);
    hk_list_init(&loop->taken);
    hk_list_init(&loop->hellos);
    hk_list_init(&loop->taken_hellos);
    hk_buf_init(&loop->out, loop->alloc);
    hk_buf_init(&loop->key, loop->alloc);
    hk_map_init(&loop->addresses, loop->alloc, loop->options.secret);
    loop->accept_at = loop->next_tick = HK_NEVER;
    loop->stop_at = HK_NEVER;
    atomic_init(&loop->sleeping, false);
    atomic_init(&loop->roused, false);
    atomic_init(&loop->interrupted, false);
    atomic_init(&loop->stop_wanted, false);
    atomic_init(&loop->at_rest, true);
}

static void free_memory(hk_loop_t *loop)
{
    hk_alloc_free(loop->alloc, loop->brokerage);
    hk_map_release(&loop->addresses);
    hk_buf_release(&loop->key);
    hk_buf_release(&loop->out);
    hk_alloc_free(loop->alloc, loop->room);
    hk_alloc_free(loop->alloc, loop);
}

/* A hub delivers without it, too. */
static void open_ring(hk_loop_t *loop)
{
    if (!loop->options.io_uring || loop->options.hub == NULL) {
        return;
    }
    hk_status_t status = hk_ring_open(loop->alloc, &loop->ring);
    if (status != HK_OK) {
        loop->ring = NULL;
        loop->ring_error = status == HK_NO_MEMORY ? ENOMEM : errno;
    }
}

int hk_loop_ring_error(const hk_loop_t *loop)
{
    return loop->ring_error;
}

hk_status_t hk_loop_new(const hk_alloc_t *alloc, const hk_loop_options_t *options, hk_loop_t **loop)
{
    hk_loop_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    set_options(made, options);
    set_up(made);
    made->room = hk_alloc_new(alloc, HK_READ_BYTES);
    hk_status_t status = made->room != NULL ? hk_buf_reserve(&made->out, HK_OUT_BYTES) : HK_NO_MEMORY;
    if (status == HK_OK) {
        status = hk_brokerage_open(made);
    }
    if (status == HK_OK) {
        status = hk_wait_init(&made->mutex, &made->asked, &made->greeted);
    }
    if (status != HK_OK) {
        free_memory(made);
        return status;
    }
    status = hk_loop_open_epoll(made);
    if (status != HK_OK) {
        int error = errno;
        hk_wait_release(&made->mutex, &made->asked, &made->greeted);
        free_memory(made);
        errno = error;
        return status;
    }
    open_ring(made);
    *loop = made;
    return HK_OK;
}

/* --- freeing ------------------------------------------------------------------------------------------------------ */

static void free_asks(hk_loop_t *loop, hk_list_t *asks)
{
    for (hk_list_t *first; (first = hk_list_shift(asks)) != NULL;) {
        hk_ask_free(loop, HK_OWNER(first, hk_ask_t, wish.link));
    }
}

static void free_hellos(hk_loop_t *loop, hk_list_t *hellos)
{
    for (hk_list_t *first; (first = hk_list_shift(hellos)) != NULL;) {
        hk_hello_free(loop, HK_OWNER(first, hk_hello_ask_t, wish.link));
    }
}

void hk_loop_free(hk_loop_t *loop)
{
    if (loop == NULL) {
        return;
    }
    if (!loop->ended) {
        hk_loop_close_all(loop);
        hk_wishes_end(loop);
    }
    hk_brokerage_close(loop);
    hk_loop_unlock(loop);
    loop->event_at = loop->event_count = 0;
    hk_connections_bury(loop);
    free_asks(loop, &loop->taken);
    free_hellos(loop, &loop->taken_hellos);
    hk_ring_close(loop->ring);
    loop->sys->close(loop->sys->context, loop->waker.fd);
    loop->sys->close(loop->sys->context, loop->epoll);
    hk_wait_release(&loop->mutex, &loop->asked, &loop->greeted);
    free_memory(loop);
}

static void abandon_connections(hk_loop_t *loop, hk_list_t *connections)
{
    for (hk_list_t *first; (first = hk_list_shift(connections)) != NULL;) {
        hk_connection_t *connection = HK_OWNER(first, hk_connection_t, link);
        hk_connection_drop_http(loop, connection);
        hk_alloc_free(loop->alloc, connection);
    }
}

static void abandon_inbox(hk_loop_t *loop)
{
    for (hk_list_t *first; (first = hk_list_shift(&loop->inbox)) != NULL;) {
        hk_wish_t *wish = HK_OWNER(first, hk_wish_t, link);
        if (wish->kind <= HK_WISH_ATTACH) {
            hk_alloc_free(loop->alloc, wish);
        } else if (wish->kind == HK_WISH_HELLO) {
            hk_hello_free(loop, HK_OWNER(wish, hk_hello_ask_t, wish));
        } else {
            hk_ask_free(loop, HK_OWNER(wish, hk_ask_t, wish));
        }
    }
}

/* Threads that were changing something when the process forked are not in the child: what they have left half done
 * cannot be freed. The condition variable may have waiters that never leave; destroying it would wait for them. */
void hk_loop_abandon(hk_loop_t *loop)
{
    if (loop == NULL || !atomic_load(&loop->at_rest) || pthread_mutex_trylock(&loop->mutex) != 0) {
        return;
    }
    for (size_t phase = 0; phase < HK_PHASES; phase++) {
        abandon_connections(loop, &loop->phases[phase]);
    }
    abandon_connections(loop, &loop->closed);
    hk_list_move(&loop->listeners, &loop->closed_listeners);
    for (hk_list_t *first; (first = hk_list_shift(&loop->closed_listeners)) != NULL;) {
        hk_alloc_free(loop->alloc, HK_OWNER(first, hk_listener_t, link));
    }
    abandon_inbox(loop);
    free_asks(loop, &loop->queue);
    free_asks(loop, &loop->taken);
    free_hellos(loop, &loop->hellos);
    free_hellos(loop, &loop->taken_hellos);
    hk_brokerage_abandon(loop);
    hk_ring_abandon(loop->ring);
    pthread_mutex_unlock(&loop->mutex);
    free_memory(loop);
}

/* --- running ------------------------------------------------------------------------------------------------------ */

hk_status_t hk_loop_run(hk_loop_t *loop)
{
    hk_status_t status = HK_AGAIN;
    atomic_store(&loop->at_rest, false);
    if (loop->ended) {
        status = HK_OK;
    }
    while (status == HK_AGAIN && !atomic_exchange(&loop->interrupted, false)) {
        status = hk_loop_turn(loop);
    }
    atomic_store(&loop->at_rest, true);
    return status;
}

void hk_loop_lock(hk_loop_t *loop)
{
    if (!loop->locked) {
        hk_loop_unlock_broker(loop);
        hk_lock_take(loop->options.lock);
        loop->locked = true;
    }
}

void hk_loop_unlock(hk_loop_t *loop)
{
    if (loop->locked) {
        loop->locked = false;
        hk_lock_give(loop->options.lock);
    }
}

int64_t hk_loop_wall(hk_loop_t *loop)
{
    if (loop->wall == 0) {
        loop->wall = loop->sys->wall(loop->sys->context);
    }
    return loop->wall;
}

void hk_loop_read_stats(hk_loop_t *loop, hk_loop_stats_t *stats)
{
    pthread_mutex_lock(&loop->mutex);
    *stats = loop->shown;
    loop->shown.longest_turn_ns = 0;
    pthread_mutex_unlock(&loop->mutex);
}
