#include "hk_loop_private.h"

static hk_gate_request_t gate_request(hk_loop_t *loop, const hk_http_t *http, const hk_http1_request_t *request,
                                      const char *from)
{
    return (hk_gate_request_t){
        .head = request,
        .body = hk_bytes(from + http->head_bytes, http->too_large ? 0 : http->body_bytes),
        .body_is_whole = !http->too_large,
        .peer = hk_bytes(http->peer, http->peer_length),
        .stopping = loop->stopping,
        .now = loop->now,
        .wall = hk_loop_wall(loop),
    };
}

static void refuse(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request, const char *detail)
{
    hk_refusal_t refusal = {.status = 503,
                            .detail = detail,
                            .retry_after = 1,
                            .head_only = hk_bytes_equal(request->method, HK_BYTES("HEAD"))};
    hk_http_refuse(loop, connection, &refusal);
}

static void answered(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request,
                     const hk_gate_answer_t *answer)
{
    if (answer->kind == HK_GATE_SUBSCRIBED) {
        hk_stream_promise(loop, connection, answer->subscriber, answer->head);
        return;
    }
    hk_http_say(loop, connection, answer->head);
    if (answer->body.length > 0) {
        hk_http_say(loop, connection, answer->body);
    }
    if (!request->keep_alive && connection->http->then == HK_THEN_GO_ON) {
        connection->http->then = HK_THEN_CLOSE;
    }
}

/* What was answered before has left first: Ruby may answer on the socket itself. */
static bool ask(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request, const char *from)
{
    if (!hk_http_flush(loop, connection)) {
        return false;
    }
    hk_loop_lock(loop);
    hk_status_t status = hk_ask_make(loop, connection, request, from);
    if (status == HK_TOO_MANY) {
        loop->stats.refused_asks++;
        refuse(loop, connection, request, "too many requests wait for an answer");
    } else if (status != HK_OK) {
        refuse(loop, connection, request, "the hub is short of memory");
    }
    return true;
}

bool hk_http_answer(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request, const char *from)
{
    hk_gate_answer_t answer;
    hk_gate_request_t whole = gate_request(loop, connection->http, request, from);
    hk_loop_lock(loop);
    hk_status_t status = hk_gate_serve(loop->options.gate, &whole, &answer);
    if (status == HK_UNKNOWN) {
        return ask(loop, connection, request, from);
    }
    if (status == HK_OK) {
        answered(loop, connection, request, &answer);
    } else {
        refuse(loop, connection, request, "the hub is short of memory");
    }
    return true;
}
