#include "hk_loop_private.h"

/* --- any thread --------------------------------------------------------------------------------------------------- */

/* Head and body one behind the other. HK_OK or HK_NO_MEMORY. */
static hk_status_t keep_answer(hk_loop_t *loop, hk_ask_t *ask, hk_bytes_t head, hk_bytes_t body)
{
    ask->answer_bytes = head.length + body.length;
    ask->answer = hk_alloc_new(loop->alloc, ask->answer_bytes);
    if (ask->answer == NULL) {
        return HK_NO_MEMORY;
    }
    if (head.length > 0) {
        memcpy(ask->answer, head.at, head.length);
    }
    if (body.length > 0) {
        memcpy(ask->answer + head.length, body.at, body.length);
    }
    return HK_OK;
}

/* Lets the loop's thread do the rest. False: it has ended. */
static bool send_back(hk_loop_t *loop, hk_ask_t *ask, hk_wish_kind_t kind)
{
    pthread_mutex_lock(&loop->mutex);
    hk_list_remove(&ask->wish.link);
    ask->wish.kind = kind;
    bool heard = !loop->closed_to_wishes;
    if (heard) {
        hk_list_append(&loop->inbox, &ask->wish.link);
    }
    pthread_mutex_unlock(&loop->mutex);
    if (heard) {
        hk_loop_wake(loop);
    } else {
        hk_ask_free(loop, ask);
    }
    return heard;
}

hk_status_t hk_loop_answer(hk_loop_t *loop, hk_ask_t *ask, hk_bytes_t head, hk_bytes_t body, bool close)
{
    hk_status_t status = keep_answer(loop, ask, head, body);
    ask->close = close;
    (void)send_back(loop, ask, status == HK_OK ? HK_WISH_ANSWER : HK_WISH_NO_MEMORY);
    return status;
}

static void unsubscribe(hk_loop_t *loop, uint64_t serial)
{
    hk_lock_take(loop->options.lock);
    hk_subscriber_t *subscriber = hk_hub_find(loop->options.hub, serial);
    if (subscriber != NULL) {
        hk_hub_unsubscribe(loop->options.hub, subscriber, loop->sys->monotonic(loop->sys->context));
    }
    hk_lock_give(loop->options.lock);
}

hk_status_t hk_loop_answer_stream(hk_loop_t *loop, hk_ask_t *ask, hk_bytes_t head, uint64_t subscriber)
{
    hk_status_t status = keep_answer(loop, ask, head, HK_BYTES(""));
    ask->wish.subscriber = subscriber;
    if (!send_back(loop, ask, status == HK_OK ? HK_WISH_STREAM : HK_WISH_NO_MEMORY)) {
        unsubscribe(loop, subscriber);
    }
    return status;
}

/* The loop closes its own descriptor; it may have gone from one to another before, so the copy is made under the
 * mutex. */
hk_status_t hk_loop_answer_yourself(hk_loop_t *loop, hk_ask_t *ask, int *fd)
{
    pthread_mutex_lock(&loop->mutex);
    int copy = ask->fd >= 0 ? loop->sys->duplicate(loop->sys->context, ask->fd) : -1;
    pthread_mutex_unlock(&loop->mutex);
    (void)send_back(loop, ask, copy >= 0 ? HK_WISH_GIVEN_AWAY : HK_WISH_NO_MEMORY);
    if (copy < 0) {
        return HK_CLOSED;
    }
    *fd = copy;
    return HK_OK;
}

/* --- the loop's thread -------------------------------------------------------------------------------------------- */

/* With the lock from now on. */
static hk_subscriber_t *find(hk_loop_t *loop, uint64_t serial)
{
    hk_loop_lock(loop);
    return serial != 0 ? hk_hub_find(loop->options.hub, serial) : NULL;
}

static void forget_subscriber(hk_loop_t *loop, uint64_t serial)
{
    hk_subscriber_t *subscriber = find(loop, serial);
    if (subscriber != NULL) {
        hk_hub_unsubscribe(loop->options.hub, subscriber, loop->now);
    }
}

/* What was sent behind a body that is too large is the rest of it. */
static void answer(hk_loop_t *loop, hk_connection_t *connection, const hk_ask_t *ask)
{
    hk_http_t *http = connection->http;
    hk_http_say(loop, connection, hk_bytes(ask->answer, ask->answer_bytes));
    if (http->then == HK_THEN_GO_ON && ask->too_large) {
        http->then = HK_THEN_LINGER;
    } else if (http->then == HK_THEN_GO_ON && (ask->close || !ask->head.keep_alive)) {
        http->then = HK_THEN_CLOSE;
    }
    hk_http_go_on(loop, connection);
}

static void begin_stream(hk_loop_t *loop, hk_connection_t *connection, const hk_ask_t *ask)
{
    hk_subscriber_t *subscriber = find(loop, ask->wish.subscriber);
    hk_bytes_t head = hk_bytes(ask->answer, ask->answer_bytes);
    if (subscriber != NULL) {
        hk_stream_promise(loop, connection, subscriber, head);
    } else {
        hk_stream_decline(loop, connection, head, ask->wish.subscriber);
    }
    hk_http_go_on(loop, connection);
}

static void answer_on(hk_loop_t *loop, hk_connection_t *connection, const hk_ask_t *ask)
{
    connection->http->ask = NULL;
    switch (ask->wish.kind) {
    case HK_WISH_ANSWER:
        answer(loop, connection, ask);
        break;
    case HK_WISH_STREAM:
        begin_stream(loop, connection, ask);
        break;
    case HK_WISH_GIVEN_AWAY:
        hk_connection_give_away(loop, connection);
        break;
    default:
        hk_connection_close(loop, connection);
        forget_subscriber(loop, ask->wish.subscriber);
    }
}

void hk_ask_answered(hk_loop_t *loop, hk_ask_t *ask)
{
    if (ask->connection != NULL) {
        answer_on(loop, ask->connection, ask);
    } else {
        forget_subscriber(loop, ask->wish.subscriber);
    }
    hk_ask_free(loop, ask);
}
