#include "hk_http1_private.h"

/*      init ──► DATA ─────────────────────────────────────────► ENDED      Content-Length, until close
 *
 *      init ──► SIZE ──► DATA ──► DATA_END ──► SIZE ...
 *                 └─ 0 ──► TRAILER ──► TRAILER ... ───────────► ENDED      chunked
 */
enum { SIZE, DATA, DATA_END, TRAILER, ENDED };

/* 16 hexadecimal digits make every number below 2^64. */
#define SIZE_DIGITS 16

void hk_http1_body_init(hk_http1_body_t *body, hk_http1_framing_t framing)
{
    *body = (hk_http1_body_t){.kind = framing.kind, .state = DATA, .left = framing.length};
    if (framing.kind == HK_HTTP1_CHUNKED) {
        body->state = SIZE;
    } else if (framing.kind == HK_HTTP1_NO_BODY || (framing.kind == HK_HTTP1_LENGTH && framing.length == 0)) {
        body->state = ENDED;
    }
}

bool hk_http1_body_ended(const hk_http1_body_t *body)
{
    return body->state == ENDED;
}

static hk_status_t refuse(hk_http1_body_t *body, hk_http1_error_t error)
{
    body->error = error;
    bool large = error == HK_HTTP1_CHUNK_LINE_TOO_LONG || error == HK_HTTP1_TRAILERS_TOO_LARGE ||
                 error == HK_HTTP1_LINE_TOO_LONG;
    return large ? HK_TOO_LARGE : HK_INVALID;
}

/* qdtext and quoted pairs of RFC 9110, section 5.6.4, after the opening quote. Returns what follows the closing quote,
 * or NULL. */
static const char *after_quoted(const char *at, const char *end)
{
    for (; at < end && *at != '"'; at++) {
        if (*at == '\\' && ++at == end) {
            return NULL;
        }
        if (hk_http1_skip_text(at, at + 1) == at) {
            return NULL;
        }
    }
    return at < end ? at + 1 : NULL;
}

/* *( ";" name [ "=" ( token / quoted-string ) ] ): without the white space that the grammar tolerates. */
static bool valid_extensions(const char *at, const char *end)
{
    while (at < end) {
        if (*at != ';') {
            return false;
        }
        const char *name = at + 1;
        at = hk_http1_skip(name, end, HK_HTTP1_IN_TOKEN);
        if (at == name) {
            return false;
        }
        if (at == end || *at != '=') {
            continue;
        }
        const char *value = at + 1;
        if (value < end && *value == '"') {
            at = after_quoted(value + 1, end);
        } else {
            at = hk_http1_skip(value, end, HK_HTTP1_IN_TOKEN);
        }
        if (at == NULL || at == value) {
            return false;
        }
    }
    return true;
}

static hk_http1_error_t parse_size(hk_bytes_t line, uint64_t *size)
{
    const char *end = line.at + line.length;
    const char *after = hk_http1_skip(line.at, end, HK_HTTP1_HEX);
    hk_bytes_t digits = hk_bytes(line.at, (size_t)(after - line.at));
    if (digits.length == 0 || digits.length > SIZE_DIGITS || (after < end && *after != ';')) {
        return HK_HTTP1_CHUNK_SIZE;
    }
    hk_http1_number(digits, 16, size);
    return valid_extensions(after, end) ? HK_HTTP1_NONE : HK_HTTP1_CHUNK_EXTENSION;
}

static hk_status_t take_size(hk_http1_body_t *body, hk_bytes_t input, const hk_http1_limits_t *limits, size_t *taken)
{
    size_t length = 0;
    switch (
        hk_http1_find_line(input, HK_HTTP1_CRLF, &body->looked, limits->chunk_line_bytes, SIZE_MAX, &length, taken)) {
    case HK_HTTP1_LINE_FOUND:
        break;
    case HK_HTTP1_LINE_UNFINISHED:
        return HK_AGAIN;
    case HK_HTTP1_LINE_MALFORMED:
        return refuse(body, HK_HTTP1_LINE_END);
    default:
        return refuse(body, HK_HTTP1_CHUNK_LINE_TOO_LONG);
    }
    hk_http1_error_t error = parse_size(hk_bytes(input.at, length), &body->left);
    if (error != HK_HTTP1_NONE) {
        return refuse(body, error);
    }
    body->state = body->left > 0 ? DATA : TRAILER;
    return HK_OK;
}

static hk_status_t take_data_end(hk_http1_body_t *body, hk_bytes_t input, size_t *taken)
{
    if (input.length < 2) {
        return HK_AGAIN;
    }
    if (input.at[0] != '\r' || input.at[1] != '\n') {
        return refuse(body, HK_HTTP1_CHUNK_END);
    }
    *taken = 2;
    body->state = SIZE;
    return HK_OK;
}

/* RFC 9110, section 6.5.1. */
static bool frames(hk_bytes_t name)
{
    return hk_http1_is_word(name, HK_BYTES("content-length")) || hk_http1_is_word(name, HK_BYTES("transfer-encoding"));
}

static hk_status_t take_trailer(hk_http1_body_t *body, hk_bytes_t input, const hk_http1_limits_t *limits, size_t *taken)
{
    size_t length = 0;
    size_t budget = limits->trailer_bytes > body->trailer_bytes ? limits->trailer_bytes - body->trailer_bytes : 0;
    switch (hk_http1_find_line(input, HK_HTTP1_CRLF, &body->looked, limits->line_bytes, budget, &length, taken)) {
    case HK_HTTP1_LINE_FOUND:
        break;
    case HK_HTTP1_LINE_UNFINISHED:
        return HK_AGAIN;
    case HK_HTTP1_LINE_MALFORMED:
        return refuse(body, HK_HTTP1_LINE_END);
    case HK_HTTP1_LINE_LONG:
        return refuse(body, HK_HTTP1_LINE_TOO_LONG);
    default:
        return refuse(body, HK_HTTP1_TRAILERS_TOO_LARGE);
    }
    if (length > 0) {
        hk_http1_header_t trailer;
        const char *next;
        hk_http1_error_t error = hk_http1_parse_field(input.at, input.at + *taken, &trailer, &next);
        if (error == HK_HTTP1_NONE && frames(trailer.name)) {
            error = HK_HTTP1_TRAILER_FORBIDDEN;
        }
        if (error != HK_HTTP1_NONE) {
            return refuse(body, error);
        }
    }
    body->trailer_bytes += *taken;
    body->state = length > 0 ? TRAILER : ENDED;
    return HK_OK;
}

static void take_data(hk_http1_body_t *body, hk_bytes_t input, hk_bytes_t *data)
{
    *data = input;
    if (body->kind == HK_HTTP1_UNTIL_CLOSE) {
        return;
    }
    if (data->length > body->left) {
        data->length = (size_t)body->left;
    }
    body->left -= data->length;
    if (body->left == 0) {
        body->state = body->kind == HK_HTTP1_CHUNKED ? DATA_END : ENDED;
    }
}

hk_status_t hk_http1_body_next(hk_http1_body_t *body, hk_bytes_t input, const hk_http1_limits_t *limits,
                               hk_bytes_t *data, size_t *consumed)
{
    if (input.length == 0) {
        return HK_AGAIN;
    }
    size_t at = 0;
    hk_bytes_t piece = hk_bytes(input.at, 0);
    while (body->state != ENDED && piece.length == 0) {
        hk_bytes_t rest = hk_bytes(input.at + at, input.length - at);
        size_t taken = 0;
        hk_status_t status = HK_OK;
        if (rest.length == 0) {
            status = HK_AGAIN;
        } else if (body->state == SIZE) {
            status = take_size(body, rest, limits, &taken);
        } else if (body->state == DATA_END) {
            status = take_data_end(body, rest, &taken);
        } else if (body->state == TRAILER) {
            status = take_trailer(body, rest, limits, &taken);
        } else {
            take_data(body, rest, &piece);
            taken = piece.length;
        }
        at += taken;
        if (status == HK_AGAIN && at > 0) {
            break;
        }
        if (status != HK_OK) {
            return status;
        }
    }
    *data = piece;
    *consumed = at;
    return HK_OK;
}

hk_status_t hk_http1_body_close(hk_http1_body_t *body)
{
    if (body->state == ENDED || body->kind == HK_HTTP1_UNTIL_CLOSE) {
        body->state = ENDED;
        return HK_OK;
    }
    return refuse(body, HK_HTTP1_TRUNCATED);
}
