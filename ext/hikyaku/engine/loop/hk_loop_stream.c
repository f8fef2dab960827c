#include "hk_loop_private.h"

#include "hk_sse.h"
#include "hk_subscriber.h"

#include <errno.h>
#include <limits.h>
#include <netinet/tcp.h>
#include <stdio.h>

/* Before it is tried again, when there was no memory to hand out what is pending. */
#define MEMORY_PAUSE (10 * HK_MILLISECOND)

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* A client that vanished without a word confirms nothing of what the kernel has taken for it: that counts as no
 * progress, too. */
void hk_stream_tune(hk_loop_t *loop, int fd, bool tcp)
{
    int size = loop->options.send_buffer > INT_MAX ? INT_MAX : (int)loop->options.send_buffer;
    int64_t timeout = (loop->options.write_timeout + HK_MILLISECOND - 1) / HK_MILLISECOND;
    unsigned ms = timeout > INT_MAX ? INT_MAX : (unsigned)timeout;
    if (size > 0) {
        (void)loop->sys->set_option(loop->sys->context, fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }
    if (tcp && loop->options.write_timeout > 0) {
        (void)loop->sys->set_option(loop->sys->context, fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof(ms));
    }
}

/* The subscriber, or NULL when it is gone; with the lock from now on. */
static hk_subscriber_t *subscriber_of(hk_loop_t *loop, const hk_connection_t *connection)
{
    hk_loop_lock(loop);
    return hk_hub_find(loop->options.hub, connection->subscriber);
}

/* A socket that is not TCP does not know the option, and is told in vain. */
static void tune(hk_loop_t *loop, hk_connection_t *connection)
{
    if (!connection->tuned) {
        connection->tuned = true;
        hk_stream_tune(loop, connection->watch.fd, true);
    }
}

/* A proxy in between passes a head on when a byte follows it. */
void hk_stream_promise(hk_loop_t *loop, hk_connection_t *connection, hk_subscriber_t *subscriber, hk_bytes_t head)
{
    connection->subscriber = hk_subscriber_serial(subscriber);
    connection->http->then = HK_THEN_STREAM;
    hk_subscriber_connect(subscriber, connection);
    hk_http_say(loop, connection, head);
    if (!hk_hub_silent(subscriber)) {
        return;
    }
    if (hk_subscriber_is(subscriber, HK_SUBSCRIBER_CODED)) {
        (void)hk_hub_control(loop->options.hub, subscriber, HK_SSE_HEARTBEAT);
    } else {
        hk_http_say(loop, connection, HK_SSE_HEARTBEAT);
    }
}

void hk_stream_begin(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_subscriber_t *subscriber = subscriber_of(loop, connection);
    hk_connection_drop_http(loop, connection);
    hk_connection_enter(loop, connection, HK_PHASE_STREAM);
    tune(loop, connection);
    if (subscriber == NULL || !hk_watch_arm(loop, &connection->watch, EPOLLIN)) {
        hk_connection_close(loop, connection);
        return;
    }
    hk_hub_writable(loop->options.hub, subscriber);
}

/* --- the end ------------------------------------------------------------------------------------------------------ */

static size_t write_farewell(hk_loop_t *loop, char *room, size_t size)
{
    unsigned delay = hk_hub_reconnection_delay(loop->options.hub);
    return (size_t)snprintf(room, size, "retry: %u\n\n", delay);
}

/* Between two events a client is told when to come back, behind what is on its way to it alone; within one nothing can
 * be said. */
static void bid_farewell(hk_loop_t *loop, const hk_connection_t *connection, hk_subscriber_t *subscriber)
{
    if (hk_subscriber_within_event(subscriber) || hk_subscriber_blocked(subscriber) ||
        hk_subscriber_closing(subscriber) == HK_CLOSING_HUNG_UP) {
        return;
    }
    char room[32];
    hk_buf_t *out = &loop->out;
    hk_buf_clear(out);
    hk_bytes_t farewell = hk_bytes(room, write_farewell(loop, room, sizeof(room)));
    if (hk_hub_farewell(loop->options.hub, subscriber, farewell, out) == HK_OK) {
        (void)loop->sys->send(loop->sys->context, connection->watch.fd, hk_buf_bytes(out).at, out->length);
    }
    hk_buf_clear(out);
}

/* Appends what a stream says of which nothing was sent, and whose subscriber has gone meanwhile. */
static void bid_farewell_to_gone(hk_loop_t *loop, uint64_t serial)
{
    char room[32];
    hk_bytes_t farewell = hk_bytes(room, write_farewell(loop, room, sizeof(room)));
    (void)hk_hub_farewell_to_gone(loop->options.hub, serial, farewell, &loop->out);
}

void hk_stream_decline(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t head, uint64_t serial)
{
    hk_http_say(loop, connection, head);
    bid_farewell_to_gone(loop, serial);
    if (connection->http->then == HK_THEN_GO_ON) {
        connection->http->then = HK_THEN_CLOSE;
    }
}

/* Its end came before its connection. */
static void turn_away(hk_loop_t *loop, int fd, uint64_t serial)
{
    hk_buf_clear(&loop->out);
    bid_farewell_to_gone(loop, serial);
    (void)loop->sys->send(loop->sys->context, fd, hk_buf_bytes(&loop->out).at, loop->out.length);
    hk_buf_clear(&loop->out);
    hk_loop_hang_up(loop, fd);
}

void hk_stream_attach(hk_loop_t *loop, int fd, uint64_t serial)
{
    hk_loop_lock(loop);
    hk_subscriber_t *subscriber = hk_hub_find(loop->options.hub, serial);
    if (subscriber == NULL) {
        turn_away(loop, fd, serial);
        return;
    }
    hk_connection_t *connection = hk_connection_open(loop, fd, HK_PHASE_STREAM);
    if (connection == NULL) {
        hk_hub_unsubscribe(loop->options.hub, subscriber, loop->now);
        return;
    }
    connection->subscriber = serial;
    tune(loop, connection);
    hk_subscriber_connect(subscriber, connection);
    if (hk_hub_silent(subscriber) && hk_hub_control(loop->options.hub, subscriber, HK_SSE_HEARTBEAT) != HK_OK) {
        hk_connection_close(loop, connection);
        return;
    }
    hk_hub_writable(loop->options.hub, subscriber);
}

/* --- delivering --------------------------------------------------------------------------------------------------- */

/* The socket is full, or broken. `sent` may be a negative errno. */
static ptrdiff_t stall(hk_loop_t *loop, hk_connection_t *connection, ssize_t sent)
{
    if (sent < 0 && hk_loop_broken(loop, (int)-sent)) {
        return -1;
    }
    hk_connection_enter(loop, connection, HK_PHASE_BLOCKED);
    if (!hk_watch_arm(loop, &connection->watch, EPOLLIN | EPOLLOUT)) {
        return -1;
    }
    return sent < 0 ? 0 : sent;
}

_Static_assert((int)HK_MAX_RECIPIENTS <= (int)HK_RING_SENDS, "one call of the ring takes all that the hub gathers");

/* What send() returns for each, or the negative errno. Two sockets are not worth the ring: see bin/bench sends. */
static void send_each(hk_loop_t *loop, const int *fds, size_t count, hk_bytes_t bytes, ssize_t *sent)
{
    size_t done = 0;
    if (loop->ring != NULL && count > 2) {
        done = hk_ring_send(loop->ring, fds, count, bytes, sent);
        if (done < count) {
            loop->stats.ring_error = (uint64_t)errno;
            hk_ring_close(loop->ring);
            loop->ring = NULL;
        }
    }
    ssize_t (*send)(void *, int, const void *, size_t) = loop->sys->send;
    void *context = loop->sys->context;
    for (; done < count; done++) {
        sent[done] = send(context, fds[done], bytes.at, bytes.length);
        if (sent[done] < 0) {
            sent[done] = -errno;
        }
    }
}

/* The hot path. A subscriber may have no connection yet: its descriptor is -1, and it is blocked until it has one. */
static void deliver(void *context, hk_subscriber_t *const *recipients, size_t count, hk_bytes_t bytes,
                    ptrdiff_t *accepted)
{
    hk_loop_t *loop = context;
    int fds[HK_MAX_RECIPIENTS];
    ssize_t sent[HK_MAX_RECIPIENTS] = {0};
    if (bytes.at == NULL) {
        loop->closing[loop->closing_count++] = recipients[0];
        return;
    }
    for (size_t i = 0; i < count; i++) {
        const hk_connection_t *connection = recipients[i]->connection;
        fds[i] = connection != NULL ? connection->watch.fd : -1;
    }
    send_each(loop, fds, count, bytes, sent);
    for (size_t i = 0; i < count; i++) {
        accepted[i] = sent[i];
        if (sent[i] != (ssize_t)bytes.length) {
            accepted[i] = fds[i] >= 0 ? stall(loop, recipients[i]->connection, sent[i]) : 0;
        }
        loop->stats.bytes_out += accepted[i] > 0 ? (uint64_t)accepted[i] : 0;
    }
}

static void close_closing(hk_loop_t *loop)
{
    for (size_t i = 0; i < loop->closing_count; i++) {
        hk_subscriber_t *subscriber = loop->closing[i];
        hk_connection_t *connection = hk_subscriber_connection(subscriber);
        if (connection == NULL) {
            hk_hub_unsubscribe(loop->options.hub, subscriber, loop->now);
        } else {
            bid_farewell(loop, connection, subscriber);
            hk_connection_close(loop, connection);
        }
    }
    loop->closing_count = 0;
}

void hk_streams_serve(hk_loop_t *loop)
{
    bool more;
    if (hk_hub_serve(loop->options.hub, HK_SLICE, HK_WRITE_BYTES, loop->now, deliver, loop, &more) != HK_OK) {
        loop->serve_at = hk_later(loop->now, MEMORY_PAUSE);
    }
    close_closing(loop);
}

/* --- the client's side -------------------------------------------------------------------------------------------- */

void hk_stream_readable(hk_loop_t *loop, hk_connection_t *connection)
{
    if (hk_connection_waste(loop, connection, HK_CHATTER_BYTES) != HK_OK) {
        hk_connection_close(loop, connection);
    }
}

void hk_stream_writable(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_subscriber_t *subscriber = subscriber_of(loop, connection);
    hk_connection_enter(loop, connection, HK_PHASE_STREAM);
    if (subscriber == NULL || !hk_watch_arm(loop, &connection->watch, EPOLLIN)) {
        hk_connection_close(loop, connection);
        return;
    }
    hk_hub_writable(loop->options.hub, subscriber);
}
