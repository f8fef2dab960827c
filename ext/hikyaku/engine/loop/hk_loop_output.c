#include "hk_loop_private.h"

#include <errno.h>

/* Larger ones are not copied. */
enum { COPIED_BYTES = 16 * 1024 };

/* How many the socket took; 0 also when the connection is broken, which is noted. */
static size_t send_some(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes)
{
    ssize_t sent = loop->sys->send(loop->sys->context, connection->watch.fd, bytes.at, bytes.length);
    if (sent >= 0) {
        loop->stats.bytes_out += (uint64_t)sent;
        return (size_t)sent;
    }
    if (hk_loop_broken(loop, errno)) {
        connection->http->then = HK_THEN_DROP;
    }
    return 0;
}

static void keep(hk_connection_t *connection, hk_bytes_t bytes)
{
    hk_http_t *http = connection->http;
    if (http->then != HK_THEN_DROP && bytes.length > 0 && hk_buf_append(&http->out, bytes) != HK_OK) {
        http->then = HK_THEN_DROP;
    }
}

static void send_now(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes)
{
    size_t sent = connection->http->out.length == 0 ? send_some(loop, connection, bytes) : 0;
    keep(connection, hk_bytes(bytes.at + sent, bytes.length - sent));
}

bool hk_http_flush(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    if (loop->out.length > 0) {
        if (http->then != HK_THEN_DROP) {
            send_now(loop, connection, hk_buf_bytes(&loop->out));
        }
        hk_buf_clear(&loop->out);
    }
    return http->out.length == 0 && http->then != HK_THEN_DROP;
}

void hk_http_say(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes)
{
    if (bytes.length <= COPIED_BYTES && loop->out.length + bytes.length <= HK_OUT_BYTES &&
        hk_buf_append(&loop->out, bytes) == HK_OK) {
        return;
    }
    (void)hk_http_flush(loop, connection);
    if (connection->http->then != HK_THEN_DROP) {
        send_now(loop, connection, bytes);
    }
}

/* --- what comes behind an answer ---------------------------------------------------------------------------------- */

/* A body that comes too slowly has no more time than one that has stopped. */
static bool keeps_pace(const hk_loop_t *loop, const hk_http_t *http)
{
    return (loop->now - http->body_since) / HK_SECOND * HK_BODY_RATE <= (int64_t)http->body_bytes;
}

/* Where it waits for more, unless it waits there already: a head that dribbles in has no more time than another. */
static void wait_for_input(hk_loop_t *loop, hk_connection_t *connection)
{
    const hk_http_t *http = connection->http;
    hk_phase_t phase = http->head_bytes > 0 ? HK_PHASE_BODY : HK_PHASE_HEAD;
    if (http->in.length == 0) {
        phase = HK_PHASE_IDLE;
    }
    if (connection->phase != phase || (phase == HK_PHASE_BODY && keeps_pace(loop, http))) {
        hk_connection_enter(loop, connection, phase);
    }
    if (!hk_watch_arm(loop, &connection->watch, EPOLLIN)) {
        hk_connection_close(loop, connection);
    }
}

static void wait_for_answer(hk_loop_t *loop, hk_connection_t *connection)
{
    const hk_http_t *http = connection->http;
    bool reads = !http->ended && !http->too_large && http->in.length < HK_AHEAD_BYTES;
    if (connection->phase != HK_PHASE_ASKED) {
        hk_connection_enter(loop, connection, HK_PHASE_ASKED);
    }
    if (!hk_watch_arm(loop, &connection->watch, reads ? EPOLLIN : 0)) {
        hk_connection_close(loop, connection);
    }
}

static void go_on(hk_loop_t *loop, hk_connection_t *connection)
{
    const hk_http_t *http = connection->http;
    if (http->ask != NULL) {
        wait_for_answer(loop, connection);
    } else if (http->in.length == 0 && (http->ended || loop->stopping)) {
        hk_connection_close(loop, connection);
    } else if (http->ended) {
        hk_http_refuse(loop, connection,
                       &(hk_refusal_t){.status = hk_http1_error_status(HK_HTTP1_TRUNCATED),
                                       .detail = hk_http1_error_text(HK_HTTP1_TRUNCATED)});
        hk_http_settle(loop, connection);
    } else {
        wait_for_input(loop, connection);
    }
}

static void wait_for_room(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_connection_enter(loop, connection, HK_PHASE_FLUSH);
    if (!hk_watch_arm(loop, &connection->watch, EPOLLOUT)) {
        hk_connection_close(loop, connection);
    }
}

void hk_http_settle(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    if (!hk_http_flush(loop, connection) && http->then != HK_THEN_DROP) {
        wait_for_room(loop, connection);
        return;
    }
    switch ((hk_then_t)http->then) {
    case HK_THEN_GO_ON:
        go_on(loop, connection);
        break;
    case HK_THEN_STREAM:
        hk_stream_begin(loop, connection);
        break;
    case HK_THEN_LINGER:
        hk_connection_linger(loop, connection);
        break;
    case HK_THEN_CLOSE:
    case HK_THEN_DROP:
        hk_connection_close(loop, connection);
        break;
    }
}

void hk_http_writable(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    size_t sent = send_some(loop, connection, hk_buf_bytes(&http->out));
    hk_buf_consume(&http->out, sent);
    if (http->then == HK_THEN_DROP) {
        hk_connection_close(loop, connection);
    } else if (http->out.length == 0) {
        hk_buf_release(&http->out);
        hk_http_go_on(loop, connection);
    } else if (sent > 0) {
        hk_connection_enter(loop, connection, HK_PHASE_FLUSH);
    }
}
