/* http1_outcome.h: what parsing some bytes comes to, as text.
 *
 * Tests, the differential tests and the fuzz targets compare such texts: with those of test/vectors/http1_*.txt, with
 * those of the same bytes cut otherwise, with those of lib/hikyaku/http/parser.rb.
 */
#ifndef HTTP1_OUTCOME_H
#define HTTP1_OUTCOME_H

#include "hk_form.h"
#include "hk_http1.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { OUTCOME_HEADERS = 200 };

typedef struct outcome_task {
    bool responses;
    hk_bytes_t method; /* of the requests that responses answer */
    hk_http1_limits_t limits;
    size_t headers;     /* how many there may be, at most OUTCOME_HEADERS */
    size_t first, step; /* how many bytes arrive at first, and then each time; 0 is all */
    /* Where what has arrived is put for every call, up to the end: right before a page that must not be touched, say.
     * NULL: nothing is moved. */
    char *room;
    size_t room_size;
} outcome_task_t;

static inline outcome_task_t outcome_task(bool responses)
{
    return (outcome_task_t){.responses = responses,
                            .method = HK_BYTES("GET"),
                            .limits = hk_http1_default_limits,
                            .headers = HK_HTTP1_HEADERS};
}

/* Reads "head_bytes=100". False when there is no such limit. */
static inline bool outcome_set_limit(outcome_task_t *task, hk_bytes_t setting)
{
    const struct {
        hk_bytes_t name;
        size_t *value;
    } known[] = {{HK_BYTES("leading_lines="), &task->limits.leading_lines},
                 {HK_BYTES("method_bytes="), &task->limits.method_bytes},
                 {HK_BYTES("target_bytes="), &task->limits.target_bytes},
                 {HK_BYTES("line_bytes="), &task->limits.line_bytes},
                 {HK_BYTES("head_bytes="), &task->limits.head_bytes},
                 {HK_BYTES("chunk_line_bytes="), &task->limits.chunk_line_bytes},
                 {HK_BYTES("trailer_bytes="), &task->limits.trailer_bytes},
                 {HK_BYTES("headers="), &task->headers}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (hk_bytes_start_with(setting, known[i].name)) {
            *known[i].value = 0;
            for (size_t at = known[i].name.length; at < setting.length; at++) {
                *known[i].value = *known[i].value * 10 + (size_t)(setting.at[at] - '0');
            }
            return true;
        }
    }
    return false;
}

static inline void outcome_put(FILE *out, hk_bytes_t bytes)
{
    for (size_t i = 0; i < bytes.length; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];
        bool edge = i == 0 || i + 1 == bytes.length;
        if (byte < 0x20 || byte > 0x7E || byte == '\\' || (byte == ' ' && edge)) {
            fprintf(out, "\\x%02X", byte);
        } else {
            fputc(byte, out);
        }
    }
}

static inline void outcome_line(FILE *out, const char *word, hk_bytes_t bytes)
{
    fprintf(out, bytes.length > 0 ? "%s " : "%s", word);
    outcome_put(out, bytes);
    fputc('\n', out);
}

static inline void outcome_error(FILE *out, hk_http1_error_t error)
{
    fputs("error ", out);
    for (const char *at = hk_http1_error_name(error); *at != '\0'; at++) {
        fputc(tolower(*at), out);
    }
    fprintf(out, " %d\n", hk_http1_error_status(error));
}

/* As the caller of a parser reads it, who has the bytes to himself. */
static inline void outcome_value(FILE *out, hk_bytes_t value)
{
    if (!hk_http1_is_folded(value)) {
        outcome_put(out, value);
        return;
    }
    char *own = malloc(value.length);
    if (own == NULL) {
        abort();
    }
    memcpy(own, value.at, value.length);
    outcome_put(out, hk_bytes(own, hk_http1_unfold(own, value.length)));
    free(own);
}

static inline void outcome_headers(FILE *out, const hk_http1_header_t *headers, size_t count,
                                   hk_http1_framing_t framing)
{
    static const char *const kinds[] = {"none", "length", "chunked", "until-close"};
    for (size_t i = 0; i < count; i++) {
        fputs("header ", out);
        outcome_put(out, headers[i].name);
        fputs(headers[i].value.length > 0 ? ": " : ":", out);
        outcome_value(out, headers[i].value);
        fputc('\n', out);
    }
    fprintf(out, "body %s", kinds[framing.kind]);
    if (framing.kind == HK_HTTP1_LENGTH) {
        fprintf(out, " %llu", (unsigned long long)framing.length);
    }
    fputc('\n', out);
}

static inline void outcome_flags(FILE *out, bool keep_alive, bool expect_continue, bool upgrade)
{
    fputs(keep_alive ? "keep-alive\n" : "", out);
    fputs(expect_continue ? "expect-continue\n" : "", out);
    fputs(upgrade ? "upgrade\n" : "", out);
}

static inline void outcome_request(FILE *out, const hk_http1_request_t *request)
{
    static const char *const forms[] = {"origin", "absolute", "authority", "asterisk"};
    fprintf(out, "request %s 1.%d\n", forms[request->form], request->minor);
    outcome_line(out, "method", request->method);
    outcome_line(out, "target", request->target);
    outcome_line(out, "path", request->path);
    if (request->query.at != NULL) {
        outcome_line(out, "query", request->query);
    }
    outcome_line(out, "authority", request->authority);
    outcome_flags(out, request->keep_alive, request->expect_continue, request->upgrade);
    outcome_headers(out, request->headers, request->header_count, request->framing);
}

static inline void outcome_response(FILE *out, const hk_http1_response_t *response)
{
    fprintf(out, "response %d 1.%d\n", response->status, response->minor);
    outcome_line(out, "reason", response->reason);
    fputs(response->interim ? "interim\n" : "", out);
    outcome_flags(out, response->keep_alive, false, response->upgrade);
    outcome_headers(out, response->headers, response->header_count, response->framing);
}

/* What has arrived and was not consumed, where the task wants it. */
static inline hk_bytes_t outcome_window(const outcome_task_t *task, hk_bytes_t input, size_t consumed, size_t arrived)
{
    size_t length = arrived - consumed;
    if (task->room == NULL || length == 0) {
        return hk_bytes(length > 0 ? input.at + consumed : NULL, length);
    }
    char *at = task->room + task->room_size - length;
    memcpy(at, input.at + consumed, length);
    return hk_bytes(at, length);
}

/* The head at the beginning of `window`; on HK_OK it is written down. */
static inline hk_status_t outcome_head(FILE *out, const outcome_task_t *task, hk_bytes_t window, hk_http1_scan_t *scan,
                                       hk_http1_body_t *body, bool *raw, size_t *consumed)
{
    hk_http1_header_t headers[OUTCOME_HEADERS];
    hk_status_t status;
    if (task->responses) {
        hk_http1_response_t response = {.headers = headers, .header_capacity = task->headers};
        status = hk_http1_parse_response(window, &task->limits, task->method, scan, &response, consumed);
        if (status == HK_OK) {
            outcome_response(out, &response);
            hk_http1_body_init(body, response.framing);
            *raw = response.upgrade;
        }
    } else {
        hk_http1_request_t request = {.headers = headers, .header_capacity = task->headers};
        status = hk_http1_parse_request(window, &task->limits, scan, &request, consumed);
        if (status == HK_OK) {
            outcome_request(out, &request);
            hk_http1_body_init(body, request.framing);
            *raw = request.form == HK_HTTP1_AUTHORITY;
        }
    }
    return status;
}

/* Writes down what the messages in `input` are, as a connection would parse them that gets them piece by piece, and
 * what it means when the connection is closed after them. */
static inline void outcome_of(FILE *out, const outcome_task_t *task, hk_bytes_t input)
{
    hk_http1_scan_t scan = {0};
    hk_http1_body_t body;
    bool in_body = false, raw = false;
    size_t consumed = 0, arrived = task->first > 0 && task->first < input.length ? task->first : input.length;
    char *data = malloc(input.length + 1);
    size_t data_length = 0;
    if (data == NULL) {
        abort();
    }
    while (!raw || in_body) {
        size_t used = 0;
        hk_bytes_t window = outcome_window(task, input, consumed, arrived), piece = hk_bytes(NULL, 0);
        hk_status_t status = in_body ? hk_http1_body_next(&body, window, &task->limits, &piece, &used)
                                     : outcome_head(out, task, window, &scan, &body, &raw, &used);
        if (status == HK_AGAIN && arrived < input.length) {
            size_t left = input.length - arrived;
            arrived += task->step > 0 && task->step < left ? task->step : left;
            continue;
        }
        if (status == HK_AGAIN) {
            break;
        }
        if (status != HK_OK) {
            if (data_length > 0) {
                outcome_line(out, "data", hk_bytes(data, data_length));
            }
            outcome_error(out, in_body ? body.error : scan.error);
            free(data);
            return;
        }
        consumed += used;
        if (piece.length > 0) {
            memcpy(data + data_length, piece.at, piece.length);
            data_length += piece.length;
        }
        in_body = !hk_http1_body_ended(&body);
        if (!in_body) {
            if (data_length > 0) {
                outcome_line(out, "data", hk_bytes(data, data_length));
            }
            fputs("end\n", out);
            data_length = 0;
        }
    }
    if (data_length > 0) {
        outcome_line(out, "data", hk_bytes(data, data_length));
    }
    if (raw) {
        outcome_line(out, "raw", hk_bytes(input.at + consumed, input.length - consumed));
    } else if (in_body ? hk_http1_body_close(&body) != HK_OK : consumed < input.length) {
        outcome_error(out, HK_HTTP1_TRUNCATED);
    } else {
        fputs(in_body ? "end\nidle\n" : "idle\n", out);
    }
    free(data);
}

/* The pairs of a form, decoded. */
static inline void outcome_of_form(FILE *out, hk_bytes_t form)
{
    hk_bytes_t name, value;
    char *room = malloc(form.length + 1);
    if (room == NULL) {
        abort();
    }
    while (hk_form_next(&form, &name, &value)) {
        outcome_line(out, "name", hk_bytes(room, hk_form_decode(name, room)));
        outcome_line(out, "value", hk_bytes(room, hk_form_decode(value, room)));
    }
    free(room);
}

#endif
