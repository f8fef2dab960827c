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

/* What a delivery looks at, side by side: the system call between two deliveries leaves little in the processor's
 * nearest cache. */
typedef struct slice {
    ssize_t (*send)(void *context, int fd, const void *bytes, size_t size);
    void *context;
    uint64_t bytes;
    hk_loop_t *loop;
} slice_t;

/* The socket is full, or broken. */
static ptrdiff_t stall(slice_t *slice, hk_connection_t *connection, ssize_t sent)
{
    if (sent < 0 && !hk_try_later(errno)) {
        return -1;
    }
    sent = sent < 0 ? 0 : sent;
    slice->bytes += (uint64_t)sent;
    hk_connection_enter(slice->loop, connection, HK_PHASE_BLOCKED);
    return hk_watch_arm(slice->loop, &connection->watch, EPOLLIN | EPOLLOUT) ? sent : -1;
}

/* The hot path. */
static ptrdiff_t deliver(void *context, hk_subscriber_t *subscriber, hk_bytes_t bytes)
{
    slice_t *slice = context;
    hk_connection_t *connection = subscriber->connection;
    if (bytes.at == NULL) {
        slice->loop->closing[slice->loop->closing_count++] = subscriber;
        return 0;
    }
    if (connection == NULL) {
        return 0;
    }
    ssize_t sent = slice->send(slice->context, connection->watch.fd, bytes.at, bytes.length);
    if (sent != (ssize_t)bytes.length) {
        return stall(slice, connection, sent);
    }
    slice->bytes += bytes.length;
    return sent;
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
    slice_t slice = {.send = loop->sys->send, .context = loop->sys->context, .loop = loop};
    bool more;
    if (hk_hub_serve(loop->options.hub, HK_SLICE, HK_WRITE_BYTES, loop->now, deliver, &slice, &more) != HK_OK) {
        loop->serve_at = hk_later(loop->now, MEMORY_PAUSE);
    }
    loop->stats.bytes_out += slice.bytes;
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
