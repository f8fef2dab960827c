#include "hk_loop_private.h"

#include <errno.h>

/* What was read and is not done with; in the connection's own buffer or in the loop's room. */
typedef struct input {
    char *at;
    size_t length;
} input_t;

/* --- one request -------------------------------------------------------------------------------------------------- */

/* HK_OK; HK_AGAIN: it is not whole; HK_INVALID or HK_TOO_LARGE: `error` says why. */
static hk_status_t take_head(hk_loop_t *loop, hk_http_t *http, const input_t *input, hk_http1_request_t *request,
                             hk_http1_error_t *error)
{
    size_t consumed;
    request->headers = loop->fields;
    request->header_capacity = HK_HTTP1_HEADERS;
    hk_status_t status =
        hk_http1_parse_request(hk_bytes(input->at, input->length), &loop->limits, &http->scan, request, &consumed);
    if (status != HK_OK) {
        *error = http->scan.error;
        return status;
    }
    if (http->head_bytes == 0) {
        http->head_bytes = consumed;
        http->body_bytes = 0;
        http->body_since = loop->now;
        hk_http1_body_init(&http->body, request->framing);
        http->too_large =
            request->framing.kind == HK_HTTP1_LENGTH && request->framing.length > loop->options.max_body_bytes;
    }
    return HK_OK;
}

/* Joins what is there of the body behind what was there of it. As take_head. */
static hk_status_t take_body(const hk_loop_t *loop, hk_http_t *http, input_t *input, hk_http1_error_t *error)
{
    char *end = input->at + http->head_bytes + http->body_bytes, *raw = end;
    size_t left = input->length - http->head_bytes - http->body_bytes;
    hk_status_t status = HK_OK;
    while (status == HK_OK && !http->too_large && !hk_http1_body_ended(&http->body)) {
        hk_bytes_t data;
        size_t consumed;
        status = hk_http1_body_next(&http->body, hk_bytes(raw, left), &loop->limits, &data, &consumed);
        if (status != HK_OK) {
            *error = http->body.error;
        } else if (data.length + http->body.left > loop->options.max_body_bytes - http->body_bytes) {
            http->too_large = true;
        } else {
            if (data.length > 0 && data.at != end) {
                memmove(end, data.at, data.length);
            }
            end += data.length;
            http->body_bytes += data.length;
            raw += consumed;
            left -= consumed;
        }
    }
    if (end != raw && left > 0) {
        memmove(end, raw, left);
    }
    input->length -= (size_t)(raw - end);
    return status;
}

/* RFC 9110, section 10.1.1: not when some of the body is there, and not when it is not wanted. */
static void encourage(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request,
                      const input_t *input)
{
    if (request->expect_continue && input->length == connection->http->head_bytes) {
        hk_http_say(loop, connection, HK_BYTES("HTTP/1.1 100 Continue\r\n\r\n"));
    }
}

/* As take_head. */
static hk_status_t take_request(hk_loop_t *loop, hk_connection_t *connection, input_t *input,
                                hk_http1_request_t *request, hk_http1_error_t *error)
{
    hk_http_t *http = connection->http;
    bool begins = http->head_bytes == 0;
    hk_status_t status = begins ? take_head(loop, http, input, request, error) : HK_OK;
    if (status == HK_OK) {
        status = take_body(loop, http, input, error);
        if (status == HK_AGAIN && begins) {
            encourage(loop, connection, request, input);
        }
    }
    /* The fields are everybody's: in the meantime they were another request's. */
    return status == HK_OK && !begins ? take_head(loop, http, input, request, error) : status;
}

static void finish_request(hk_loop_t *loop, hk_connection_t *connection, input_t *input)
{
    hk_http_t *http = connection->http;
    size_t length = http->head_bytes + http->body_bytes;
    loop->stats.requests++;
    input->at += length;
    input->length -= length;
    http->head_bytes = http->body_bytes = 0;
    hk_connection_enter(loop, connection, HK_PHASE_IDLE);
}

/* Behind a body that is too large there is only more of it. */
static bool is_over(const hk_http_t *http)
{
    return http->then != HK_THEN_GO_ON || (http->too_large && http->head_bytes == 0);
}

static bool takes_requests(const hk_http_t *http)
{
    return !is_over(http) && http->ask == NULL && http->out.length == 0;
}

/* Serves the requests that are whole, one after the other. */
static void serve(hk_loop_t *loop, hk_connection_t *connection, input_t *input)
{
    hk_http_t *http = connection->http;
    while (input->length > 0 && takes_requests(http)) {
        hk_http1_request_t request;
        hk_http1_error_t error;
        hk_status_t status = take_request(loop, connection, input, &request, &error);
        if (status == HK_AGAIN) {
            return;
        }
        if (status != HK_OK) {
            loop->stats.malformed++;
            hk_http_refuse(
                loop, connection,
                &(hk_refusal_t){.status = hk_http1_error_status(error), .detail = hk_http1_error_text(error)});
            return;
        }
        if (request.form == HK_HTTP1_AUTHORITY) {
            hk_http_refuse(loop, connection, &(hk_refusal_t){.status = 501, .detail = "the hub is no proxy"});
            return;
        }
        if (!hk_http_answer(loop, connection, &request, input->at)) {
            return;
        }
        finish_request(loop, connection, input);
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Behind the last request of a connection nothing is looked at; a client that sent more is not cut off. */
static bool keeps_rest(hk_http_t *http, const input_t *input)
{
    if (http->then == HK_THEN_CLOSE && input->length > 0) {
        http->then = HK_THEN_LINGER;
    }
    return !is_over(http) && input->length > 0;
}

/* Forgets a request that is not whole, says why, and ends the connection. */
static void refuse_for_room(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    hk_refusal_t refusal = {.status = 503, .detail = "the hub has no room for this request", .retry_after = 1};
    hk_http_drop_input(loop, http);
    http->head_bytes = http->body_bytes = 0;
    hk_http_refuse(loop, connection, &refusal);
    hk_http_settle(loop, connection);
}

/* A body that has not got on for the longest time makes room for others: who sends much and never all of it must not
 * keep those away who do. False: there is none. */
static bool make_room(hk_loop_t *loop, hk_connection_t *for_whom)
{
    hk_list_t *bodies = &loop->phases[HK_PHASE_BODY], *first = bodies->next;
    if (first == &for_whom->link) {
        first = first->next;
    }
    if (first == bodies) {
        return false;
    }
    hk_connection_t *oldest = HK_OWNER(first, hk_connection_t, link);
    /* What is about to be said is said by one connection at a time. */
    (void)hk_http_flush(loop, for_whom);
    loop->stats.refused_asks++;
    refuse_for_room(loop, oldest);
    return true;
}

/* Keeps what was read, if there is room for it. */
static hk_status_t keep_input(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes)
{
    hk_buf_t *in = &connection->http->in;
    size_t before = in->capacity;
    while (in->length + bytes.length > before && loop->held_bytes + bytes.length > loop->options.max_held_bytes) {
        if (!make_room(loop, connection)) {
            return HK_TOO_MANY;
        }
    }
    hk_status_t status = hk_buf_append(in, bytes);
    loop->held_bytes += in->capacity - before;
    return status;
}

/* What cannot be kept ends the connection. A client that waits for an answer is not told: this would be another's. */
static void give_up(hk_loop_t *loop, hk_connection_t *connection)
{
    loop->stats.refused_asks++;
    if (connection->http->ask != NULL) {
        hk_connection_close(loop, connection);
    } else {
        refuse_for_room(loop, connection);
    }
}

void hk_http_go_on(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    hk_buf_t *in = &http->in;
    if (in->length > 0) {
        input_t input = {in->memory + in->start, in->length};
        serve(loop, connection, &input);
        if (keeps_rest(http, &input)) {
            in->start = (size_t)(input.at - in->memory);
            in->length = input.length;
        } else {
            hk_http_drop_input(loop, http);
        }
    }
    hk_http_settle(loop, connection);
}

static void serve_elsewhere(hk_loop_t *loop, hk_connection_t *connection, char *at, size_t length)
{
    hk_http_t *http = connection->http;
    input_t input = {at, length};
    serve(loop, connection, &input);
    if (keeps_rest(http, &input) && keep_input(loop, connection, hk_bytes(input.at, input.length)) != HK_OK) {
        give_up(loop, connection);
    } else {
        hk_http_settle(loop, connection);
    }
}

static void end(hk_loop_t *loop, hk_connection_t *connection)
{
    connection->http->ended = true;
    hk_http_settle(loop, connection);
}

void hk_http_readable(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_http_t *http = connection->http;
    ssize_t got = loop->sys->receive(loop->sys->context, connection->watch.fd, loop->room, HK_READ_BYTES);
    if (got < 0) {
        if (hk_loop_broken(loop, errno)) {
            hk_connection_close(loop, connection);
        }
        return;
    }
    loop->stats.bytes_in += (uint64_t)got;
    loop->budget -= got;
    if (got == 0) {
        end(loop, connection);
    } else if (http->ask != NULL || http->in.length > 0) {
        hk_http_take(loop, connection, hk_bytes(loop->room, (size_t)got));
    } else {
        serve_elsewhere(loop, connection, loop->room, (size_t)got);
    }
}

void hk_http_take(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes)
{
    if (bytes.length == 0) {
        hk_http_readable(loop, connection);
    } else if (keep_input(loop, connection, bytes) != HK_OK) {
        give_up(loop, connection);
    } else {
        hk_http_go_on(loop, connection);
    }
}
