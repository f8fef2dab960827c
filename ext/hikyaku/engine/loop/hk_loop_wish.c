#include "hk_loop_broker_private.h"

/* Messages that are taken in a turn; what is beyond waits for the next. */
enum { MESSAGES = 256 };

/* --- any thread --------------------------------------------------------------------------------------------------- */

/* A wish of bytes that stand behind it; NULL: there is no memory. */
static hk_wish_t *write_wish(hk_loop_t *loop, hk_wish_kind_t kind, int fd, hk_bytes_t bytes)
{
    hk_wish_t *wish = hk_alloc_new(loop->alloc, sizeof(*wish) + bytes.length);
    if (wish != NULL) {
        char *copy = (char *)(wish + 1);
        *wish = (hk_wish_t){.kind = kind, .fd = fd, .bytes = hk_bytes(copy, bytes.length)};
        if (bytes.length > 0) {
            memcpy(copy, bytes.at, bytes.length);
        }
    }
    return wish;
}

static hk_status_t send_wish(hk_loop_t *loop, hk_wish_t *wish)
{
    if (wish == NULL) {
        return HK_NO_MEMORY;
    }
    pthread_mutex_lock(&loop->mutex);
    bool heard = !loop->closed_to_wishes;
    if (heard) {
        hk_list_append(&loop->inbox, &wish->link);
    }
    pthread_mutex_unlock(&loop->mutex);
    if (!heard) {
        hk_alloc_free(loop->alloc, wish);
        return HK_CLOSED;
    }
    hk_loop_wake(loop);
    return HK_OK;
}

hk_status_t hk_loop_listen(hk_loop_t *loop, int fd, bool tcp)
{
    if (loop->options.gate == NULL) {
        return HK_CLOSED;
    }
    hk_wish_t *wish = write_wish(loop, HK_WISH_LISTEN, fd, HK_BYTES(""));
    if (wish != NULL) {
        wish->tcp = tcp;
    }
    return send_wish(loop, wish);
}

hk_status_t hk_loop_listen_broker(hk_loop_t *loop, int fd, bool tcp)
{
    if (loop->options.broker == NULL) {
        return HK_CLOSED;
    }
    hk_wish_t *wish = write_wish(loop, HK_WISH_LISTEN, fd, HK_BYTES(""));
    if (wish != NULL) {
        wish->tcp = tcp;
        wish->broker = true;
    }
    return send_wish(loop, wish);
}

hk_status_t hk_loop_adopt(hk_loop_t *loop, int fd, hk_bytes_t bytes)
{
    if (loop->options.gate == NULL) {
        return HK_CLOSED;
    }
    return send_wish(loop, write_wish(loop, HK_WISH_ADOPT, fd, bytes));
}

hk_status_t hk_loop_attach(hk_loop_t *loop, int fd, uint64_t subscriber)
{
    if (loop->options.hub == NULL) {
        return HK_CLOSED;
    }
    hk_wish_t *wish = write_wish(loop, HK_WISH_ATTACH, fd, HK_BYTES(""));
    if (wish != NULL) {
        wish->subscriber = subscriber;
    }
    return send_wish(loop, wish);
}

void hk_loop_stop(hk_loop_t *loop)
{
    atomic_store(&loop->stop_wanted, true);
    hk_loop_wake(loop);
}

/* --- the loop's thread -------------------------------------------------------------------------------------------- */

static void take(hk_loop_t *loop, hk_wish_t *wish)
{
    switch (wish->kind) {
    case HK_WISH_LISTEN:
        hk_listener_open(loop, wish);
        break;
    case HK_WISH_ADOPT:
        hk_connection_adopt(loop, wish->fd, wish->bytes);
        break;
    case HK_WISH_ATTACH:
        hk_stream_attach(loop, wish->fd, wish->subscriber);
        break;
    case HK_WISH_HELLO:
        hk_hello_decided(loop, HK_OWNER(wish, hk_hello_ask_t, wish));
        return;
    default:
        hk_ask_answered(loop, HK_OWNER(wish, hk_ask_t, wish));
        return;
    }
    hk_alloc_free(loop->alloc, wish);
}

static bool is_ask(const hk_wish_t *wish)
{
    return wish->kind > HK_WISH_ATTACH && wish->kind < HK_WISH_HELLO;
}

/* NULL: there is none. `more`: there are others. */
static hk_wish_t *next_wish(hk_loop_t *loop, bool *more)
{
    pthread_mutex_lock(&loop->mutex);
    hk_list_t *first = hk_list_shift(&loop->inbox);
    hk_wish_t *wish = first != NULL ? HK_OWNER(first, hk_wish_t, link) : NULL;
    if (wish != NULL && is_ask(wish)) {
        loop->ask_count--;
        loop->ask_bytes -= HK_OWNER(wish, hk_ask_t, wish)->bytes;
    }
    *more = !hk_list_empty(&loop->inbox);
    pthread_mutex_unlock(&loop->mutex);
    return wish;
}

void hk_wishes_take(hk_loop_t *loop)
{
    bool more = true;
    for (int i = 0; i < MESSAGES && more; i++) {
        hk_wish_t *wish = next_wish(loop, &more);
        if (wish != NULL) {
            take(loop, wish);
        }
    }
    if (more) {
        atomic_store(&loop->roused, true);
    }
}

static void undo(hk_loop_t *loop, hk_wish_t *wish)
{
    if (wish->subscriber != 0) {
        hk_loop_lock(loop);
        hk_subscriber_t *subscriber = hk_hub_find(loop->options.hub, wish->subscriber);
        if (subscriber != NULL) {
            hk_hub_unsubscribe(loop->options.hub, subscriber, loop->now);
        }
    }
    if (is_ask(wish)) {
        hk_ask_free(loop, HK_OWNER(wish, hk_ask_t, wish));
    } else if (wish->kind == HK_WISH_HELLO) {
        hk_hello_free(loop, HK_OWNER(wish, hk_hello_ask_t, wish));
    } else {
        hk_loop_hang_up(loop, wish->fd);
        hk_alloc_free(loop->alloc, wish);
    }
}

void hk_wishes_end(hk_loop_t *loop)
{
    hk_list_t rest;
    hk_list_init(&rest);
    pthread_mutex_lock(&loop->mutex);
    loop->closed_to_wishes = true;
    hk_list_move(&loop->inbox, &rest);
    hk_list_t *ask;
    while ((ask = hk_list_shift(&loop->queue)) != NULL) {
        hk_ask_free(loop, HK_OWNER(ask, hk_ask_t, wish.link));
    }
    while ((ask = hk_list_shift(&loop->hellos)) != NULL) {
        hk_hello_free(loop, HK_OWNER(ask, hk_hello_ask_t, wish.link));
    }
    pthread_cond_broadcast(&loop->asked);
    pthread_cond_broadcast(&loop->greeted);
    pthread_mutex_unlock(&loop->mutex);
    for (hk_list_t *first; (first = hk_list_shift(&rest)) != NULL;) {
        undo(loop, HK_OWNER(first, hk_wish_t, link));
    }
}
