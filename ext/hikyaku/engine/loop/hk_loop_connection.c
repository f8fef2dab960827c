#include "hk_loop_broker_private.h"

#include <errno.h>

/* --- making ------------------------------------------------------------------------------------------------------- */

static void count(hk_loop_t *loop, hk_phase_t phase, int by)
{
    uint32_t *count = phase == HK_PHASE_REFUSED ? &loop->refused_count : &loop->connection_count;
    *count += (uint32_t)by;
    if (phase == HK_PHASE_STREAM || phase == HK_PHASE_BLOCKED) {
        loop->stats.streams += (uint64_t)by;
    }
    if (phase >= HK_PHASE_HELLO && phase <= HK_PHASE_STALLED) {
        loop->stats.sessions += (uint64_t)by;
    }
}

/* Somebody else may have the socket too: the client must see an end all the same. */
void hk_loop_hang_up(hk_loop_t *loop, int fd)
{
    (void)loop->sys->shutdown(loop->sys->context, fd, SHUT_RDWR);
    loop->sys->close(loop->sys->context, fd);
}

hk_connection_t *hk_connection_open(hk_loop_t *loop, int fd, hk_phase_t phase)
{
    hk_connection_t *connection = hk_alloc_zeroed(loop->alloc, 1, sizeof(*connection));
    if (connection == NULL) {
        hk_loop_hang_up(loop, fd);
        return NULL;
    }
    connection->watch = (hk_watch_t){.fd = fd, .kind = HK_WATCH_CONNECTION};
    if (!hk_watch_add(loop, &connection->watch)) {
        hk_loop_hang_up(loop, fd);
        hk_alloc_free(loop->alloc, connection);
        return NULL;
    }
    connection->phase = (uint8_t)phase;
    connection->since = loop->now;
    hk_list_append(&loop->phases[phase], &connection->link);
    count(loop, phase, 1);
    return connection;
}

bool hk_connection_serve(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = hk_alloc_zeroed(loop->alloc, 1, sizeof(*http));
    if (http == NULL) {
        hk_connection_close(loop, connection);
        return false;
    }
    hk_buf_init(&http->in, loop->alloc);
    hk_buf_init(&http->out, loop->alloc);
    connection->http = http;
    return true;
}

void hk_connection_enter(hk_loop_t *loop, hk_connection_t *connection, hk_phase_t phase)
{
    count(loop, (hk_phase_t)connection->phase, -1);
    count(loop, phase, 1);
    hk_list_remove(&connection->link);
    hk_list_append(&loop->phases[phase], &connection->link);
    connection->phase = (uint8_t)phase;
    connection->since = loop->now;
}

/* --- closing ------------------------------------------------------------------------------------------------------ */

void hk_http_drop_input(hk_loop_t *loop, hk_http_t *http)
{
    loop->held_bytes -= http->in.capacity;
    hk_buf_release(&http->in);
}

void hk_connection_drop_http(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    if (http != NULL) {
        connection->http = NULL;
        hk_http_drop_input(loop, http);
        hk_buf_release(&http->out);
        if (http->address != NULL) {
            hk_address_leave(&loop->addresses, http->address);
        }
        hk_alloc_free(loop->alloc, http);
    }
}

/* Nothing finds it any more but events that were told of already. */
static void forget(hk_loop_t *loop, hk_connection_t *connection)
{
    if (connection->http != NULL && connection->http->ask != NULL) {
        hk_ask_leave(loop, connection->http->ask);
    }
    hk_connection_drop_http(loop, connection);
    count(loop, (hk_phase_t)connection->phase, -1);
    connection->phase = HK_PHASE_CLOSED;
    hk_list_remove(&connection->link);
    hk_list_append(&loop->closed, &connection->link);
}

void hk_connection_close(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_buf_clear(&loop->out);
    forget(loop, connection);
    hk_client_leave(loop, connection);
    if (connection->subscriber != 0) {
        hk_loop_lock(loop);
        hk_subscriber_t *subscriber = hk_hub_find(loop->options.hub, connection->subscriber);
        if (subscriber != NULL) {
            hk_hub_unsubscribe(loop->options.hub, subscriber, loop->now);
        }
    }
    hk_watch_end(loop, &connection->watch);
    hk_loop_hang_up(loop, connection->watch.fd);
}

static void wait_for_end(hk_loop_t *loop, hk_connection_t *connection, hk_phase_t phase)
{
    hk_connection_drop_http(loop, connection);
    hk_connection_enter(loop, connection, phase);
    if (loop->sys->shutdown(loop->sys->context, connection->watch.fd, SHUT_WR) < 0 ||
        !hk_watch_arm(loop, &connection->watch, EPOLLIN)) {
        hk_connection_close(loop, connection);
    }
}

/* RFC 9112, section 9.6. */
void hk_connection_linger(hk_loop_t *loop, hk_connection_t *connection)
{
    wait_for_end(loop, connection, HK_PHASE_LINGER);
}

void hk_connection_refuse(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_loop_make_room_for_refusal(loop);
    wait_for_end(loop, connection, HK_PHASE_REFUSED);
}

void hk_connection_give_away(hk_loop_t *loop, hk_connection_t *connection)
{
    forget(loop, connection);
    hk_watch_end(loop, &connection->watch);
    loop->sys->close(loop->sys->context, connection->watch.fd);
}

void hk_connections_bury(hk_loop_t *loop)
{
    for (hk_list_t *first; (first = hk_list_shift(&loop->closed)) != NULL;) {
        hk_alloc_free(loop->alloc, HK_OWNER(first, hk_connection_t, link));
    }
    for (hk_list_t *first; (first = hk_list_shift(&loop->closed_listeners)) != NULL;) {
        hk_alloc_free(loop->alloc, HK_OWNER(first, hk_listener_t, link));
    }
}

/* --- reading and writing ------------------------------------------------------------------------------------------ */

bool hk_loop_broken(hk_loop_t *loop, int error)
{
    /* The kernel can give up a client that takes nothing (TCP_USER_TIMEOUT) before the loop does. */
    loop->stats.timed_out_writes += error == ETIMEDOUT;
    return error != EAGAIN && error != EWOULDBLOCK && error != EINTR;
}

hk_status_t hk_connection_waste(hk_loop_t *loop, hk_connection_t *connection, uint32_t limit)
{
    ssize_t got = loop->sys->receive(loop->sys->context, connection->watch.fd, loop->room, HK_READ_BYTES);
    if (got < 0) {
        return hk_loop_broken(loop, errno) ? HK_CLOSED : HK_OK;
    }
    loop->stats.bytes_in += (uint64_t)got;
    loop->budget -= got;
    connection->heard += (uint32_t)got;
    return got > 0 && connection->heard <= limit ? HK_OK : HK_CLOSED;
}

static void readable(hk_loop_t *loop, hk_connection_t *connection)
{
    switch ((hk_phase_t)connection->phase) {
    case HK_PHASE_HEAD:
    case HK_PHASE_BODY:
    case HK_PHASE_IDLE:
    case HK_PHASE_ASKED:
        hk_http_readable(loop, connection);
        break;
    case HK_PHASE_LINGER:
    case HK_PHASE_REFUSED:
        if (hk_connection_waste(loop, connection, HK_LINGER_BYTES) != HK_OK) {
            hk_connection_close(loop, connection);
        }
        break;
    case HK_PHASE_STREAM:
    case HK_PHASE_BLOCKED:
        hk_stream_readable(loop, connection);
        break;
    case HK_PHASE_HELLO:
    case HK_PHASE_SESSION:
    case HK_PHASE_STALLED:
        hk_client_readable(loop, connection);
        break;
    case HK_PHASE_FULL:
    case HK_PHASE_FLUSH:
    case HK_PHASE_CLOSED:
        break;
    }
}

static void writable(hk_loop_t *loop, hk_connection_t *connection)
{
    if (connection->phase == HK_PHASE_FLUSH) {
        hk_http_writable(loop, connection);
    } else if (connection->phase == HK_PHASE_BLOCKED) {
        hk_stream_writable(loop, connection);
    } else if (connection->phase == HK_PHASE_STALLED) {
        hk_client_writable(loop, connection);
    }
}

/* What was sent before a connection broke is still read. */
void hk_connection_attend(hk_loop_t *loop, hk_connection_t *connection, uint32_t events)
{
    const uint32_t wanted = events & connection->watch.armed;
    if (connection->phase != HK_PHASE_CLOSED && (wanted & EPOLLOUT) != 0) {
        writable(loop, connection);
    }
    if (connection->phase != HK_PHASE_CLOSED && (wanted & EPOLLIN) != 0) {
        readable(loop, connection);
    } else if (connection->phase != HK_PHASE_CLOSED && (events & (EPOLLERR | EPOLLHUP)) != 0) {
        hk_connection_close(loop, connection);
    }
}
