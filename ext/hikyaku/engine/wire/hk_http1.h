/* hk_http1.h: HTTP/1.0 and HTTP/1.1 messages, both ways, as RFC 9110 and RFC 9112 have them.
 *
 * No memory, no input, no output: slices point into the caller's buffer. A message is parsed in two steps, its head and
 * then its body, from the beginning of the same buffer, so that pipelined messages need nothing more:
 *
 *     [ head │ body │ head │ body │ head ... ]        one hk_buf_t of one connection
 *       ▲ hk_http1_parse_request(hk_buf_bytes(&in), …, &consumed), hk_buf_consume(&in, consumed)
 *              ▲ hk_http1_body_init(&body, request.framing), then hk_http1_body_next until hk_http1_body_ended
 *                     ▲ and so on, as long as request.keep_alive
 *
 * Only the scan (a few words) and the body decoder belong to the connection; the array for the headers can be shared by
 * all, as a head is only ever parsed when it is whole.
 *
 * Strict: what two readers could understand differently is refused. Lines end with CRLF and nothing else; no line is
 * folded; no byte below 0x20 but the tab, and no 0x7F, stands anywhere in a head; Content-Length stands once, in at
 * most 20 digits; Transfer-Encoding is exactly one "chunked", never beside Content-Length, never in HTTP/1.0; a request
 * has at most one Host, of good syntax, and in HTTP/1.1 one. What is refused is the same however the bytes were cut.
 *
 * Five things that servers send are taken, in responses alone: a line of a head that ends with LF (RFC 9112, section
 * 2.2; not of a chunk or a trailer, for which no reader is allowed that); a field of a head that goes on in lines which
 * begin with white space (section 5.2; not the first line of the fields, nor Content-Length or Transfer-Encoding: see
 * hk_http1_unfold); a Content-Length that is said several times and always the same is told as one (RFC 9110, section
 * 8.6); a Transfer-Encoding of nothing but "identity", without Content-Length, in HTTP/1.1, not of a 1xx, says nothing,
 * so that the body lasts until the connection is closed; a 204 with such a Transfer-Encoding, or a good one, has no
 * body (RFC 9112, section 6.3) and is the last of its connection.
 */
#ifndef HK_HTTP1_H
#define HK_HTTP1_H

#include "hk_bytes.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* --- why a message is refused ---------------------------------------------------------------------------------- */

/* Name, the status that suits as an answer to a request (a proxy answers 502 to a response that is wrong), words. */
#define HK_HTTP1_ERROR_LIST(X)                                                                                         \
    X(NONE, 200, "nothing is wrong")                                                                                   \
    X(LINE_END, 400, "a line does not end with CRLF")                                                                  \
    X(START_LINE, 400, "the start line does not have its three parts, with one space between them")                    \
    X(METHOD, 400, "the method is not a token")                                                                        \
    X(METHOD_TOO_LONG, 501, "the method is longer than any that is known")                                             \
    X(TARGET, 400, "the request target is malformed, or has not the form that its method asks for")                    \
    X(TARGET_TOO_LONG, 414, "the request target is too long")                                                          \
    X(VERSION, 505, "the version is neither HTTP/1.0 nor HTTP/1.1")                                                    \
    X(STATUS_CODE, 400, "the status code does not have three digits from 100 to 999")                                  \
    X(REASON, 400, "the reason phrase has a byte that is not allowed")                                                 \
    X(LINE_TOO_LONG, 431, "a line of the head is too long")                                                            \
    X(HEAD_TOO_LARGE, 431, "the head is too large")                                                                    \
    X(TOO_MANY_HEADERS, 431, "there are too many header fields")                                                       \
    X(FOLDED, 400, "a header line begins with white space")                                                            \
    X(HEADER_NAME, 400, "the name of a header field is not a token with a colon right after it")                       \
    X(HEADER_VALUE, 400, "the value of a header field has a byte that is not allowed")                                 \
    X(HOST_MISSING, 400, "the Host field is missing")                                                                  \
    X(HOST_REPEATED, 400, "there is more than one Host field")                                                         \
    X(HOST, 400, "the value of the Host field is malformed")                                                           \
    X(CONTENT_LENGTH, 400, "the value of the Content-Length field is not a number below 2^64")                         \
    X(CONTENT_LENGTH_REPEATED, 400, "there is more than one Content-Length field")                                     \
    X(FRAMING_CONFLICT, 400, "there are both Content-Length and Transfer-Encoding")                                    \
    X(TRANSFER_ENCODING, 400,                                                                                          \
      "the transfer coding is malformed, does not end with one chunked, or is not of this version")                    \
    X(TRANSFER_ENCODING_UNKNOWN, 501, "there are transfer codings other than chunked")                                 \
    X(BODY_FORBIDDEN, 400, "the message may have no body, but says that it has one")                                   \
    X(UPGRADE_MISSING, 400, "the response switches protocols, but does not say to which")                              \
    X(CHUNK_SIZE, 400, "the size of a chunk is not a hexadecimal number below 2^64")                                   \
    X(CHUNK_EXTENSION, 400, "the extension of a chunk is malformed")                                                   \
    X(CHUNK_LINE_TOO_LONG, 400, "the line with the size of a chunk is too long")                                       \
    X(CHUNK_END, 400, "the data of a chunk does not end with CRLF")                                                    \
    X(TRAILER_FORBIDDEN, 400, "a trailer field would change the framing")                                              \
    X(TRAILERS_TOO_LARGE, 431, "the trailer fields are too large")                                                     \
    X(TRUNCATED, 400, "the connection was closed in the middle of a message")

typedef enum hk_http1_error {
#define HK_HTTP1_ENUM(name, status, text) HK_HTTP1_##name,
    HK_HTTP1_ERROR_LIST(HK_HTTP1_ENUM)
#undef HK_HTTP1_ENUM
} hk_http1_error_t;

/* "HEADER_NAME" for HK_HTTP1_HEADER_NAME. */
const char *hk_http1_error_name(hk_http1_error_t error);

/* What is wrong, in words. */
const char *hk_http1_error_text(hk_http1_error_t error);

/* 400, 414, 431, 501 or 505. */
int hk_http1_error_status(hk_http1_error_t error);

/* --- limits ---------------------------------------------------------------------------------------------------- */

/* How much is read before it is refused. The number of header fields is limited by the array that is given. */
typedef struct hk_http1_limits {
    size_t leading_lines; /* empty lines before a request, left over by sloppy clients */
    size_t method_bytes;
    size_t target_bytes;     /* a response's status line may be as long as a request line with such a target */
    size_t line_bytes;       /* one header or trailer line, without its end; a field of several lines, unfolded */
    size_t head_bytes;       /* the whole head, from the start line on, with every line's end */
    size_t chunk_line_bytes; /* the size of one chunk with its extensions, without CRLF */
    size_t trailer_bytes;    /* all trailer lines together, with every CRLF */
} hk_http1_limits_t;

extern const hk_http1_limits_t hk_http1_default_limits;

/* How many header fields there may be, unless there is a reason for another number. */
#define HK_HTTP1_HEADERS 100

/* --- heads ------------------------------------------------------------------------------------------------------ */

/* One field; the name as it was sent, the value without white space around it. In a response a value may be folded, and
 * then has the ends of its lines within, and nothing else has: hk_http1_unfold. */
typedef struct hk_http1_header {
    hk_bytes_t name, value;
} hk_http1_header_t;

typedef enum hk_http1_framing_kind {
    HK_HTTP1_NO_BODY,
    HK_HTTP1_LENGTH, /* Content-Length, 0 included */
    HK_HTTP1_CHUNKED,
    HK_HTTP1_UNTIL_CLOSE /* responses alone: the body ends when the connection does */
} hk_http1_framing_kind_t;

typedef struct hk_http1_framing {
    hk_http1_framing_kind_t kind;
    uint64_t length; /* of HK_HTTP1_LENGTH, else 0 */
} hk_http1_framing_t;

/* RFC 9112, section 3.2. */
typedef enum hk_http1_target_form {
    HK_HTTP1_ORIGIN,    /* /path?query */
    HK_HTTP1_ABSOLUTE,  /* http://authority/path?query */
    HK_HTTP1_AUTHORITY, /* host:port, of CONNECT and of nothing else */
    HK_HTTP1_ASTERISK   /* *, of OPTIONS and of nothing else */
} hk_http1_target_form_t;

/* How far a head was looked through that is not whole yet, so that one which dribbles in is not looked through again:
 * O(bytes) over all calls. All zero before the first call; a call that returns HK_OK clears it for the next message. */
typedef struct hk_http1_scan {
    size_t start;           /* where the start line begins, after empty lines */
    size_t start_line;      /* how long it is, or 0 while it is not there */
    size_t fields;          /* where the line after it begins */
    size_t line;            /* where the line begins whose end is not there yet */
    size_t looked;          /* the first byte that was not looked at */
    hk_http1_error_t error; /* why, after HK_INVALID or HK_TOO_LARGE */
} hk_http1_scan_t;

typedef struct hk_http1_request {
    hk_http1_header_t *headers; /* the caller's array … */
    size_t header_capacity;     /* … and how many it holds: both are set before the call */
    size_t header_count;
    hk_bytes_t method;    /* in any case, as it was sent: methods are case-sensitive */
    hk_bytes_t target;    /* whole, as it was sent: no space, no control, no '#' */
    hk_bytes_t path;      /* of the target, not decoded; empty for authority form and for "http://a" */
    hk_bytes_t query;     /* after the first '?', not decoded; `at` is NULL when there is no '?' */
    hk_bytes_t authority; /* host and port of the target if it has them, else of Host; empty when there is neither */
    hk_http1_target_form_t form;
    uint8_t minor; /* 0 or 1, of HTTP/1.x */
    bool keep_alive;
    bool expect_continue; /* the client waits for 100 (Continue) before it sends the body */
    bool upgrade;         /* the client offers to upgrade: Connection: upgrade, and an Upgrade field */
    hk_http1_framing_t framing;
} hk_http1_request_t;

/* Parses the head of a request at the beginning of `input`.
 *
 * input     what has arrived and was not consumed yet; on the next call for the same head it must begin with the same
 *           bytes, though they may lie elsewhere.
 * scan      see there.
 * request   `headers` and `header_capacity` are read; everything else is written on HK_OK alone, but the array may be
 *           overwritten in any case. All slices point into `input`.
 * consumed  the length of the head with leading empty lines: where the body begins.
 *
 * HK_OK; HK_AGAIN: the head is not whole, nothing is wrong with it so far; HK_INVALID or HK_TOO_LARGE: scan->error says
 * why, the connection cannot be used any more. A malformed start line is told when its line is there, a malformed
 * header when the head is whole. O(bytes that are new) while HK_AGAIN, then O(head). */
hk_status_t hk_http1_parse_request(hk_bytes_t input, const hk_http1_limits_t *limits, hk_http1_scan_t *scan,
                                   hk_http1_request_t *request, size_t *consumed);

typedef struct hk_http1_response {
    hk_http1_header_t *headers; /* as in a request */
    size_t header_capacity;
    size_t header_count;
    hk_bytes_t reason; /* may be empty */
    uint16_t status;   /* 100 to 999 */
    uint8_t minor;     /* 0 or 1, of HTTP/1.x */
    bool interim;      /* 1xx but for 101: the response itself is still to come */
    bool keep_alive;
    bool upgrade; /* 101 (with Connection: upgrade, and Upgrade), or 2xx to CONNECT: no HTTP follows the head */
    hk_http1_framing_t framing;
} hk_http1_response_t;

/* Parses the head of a response at the beginning of `input`. As hk_http1_parse_request, but no empty line may precede.
 *
 * method  of the request that it answers: it decides whether there is a body (HEAD, CONNECT). After an interim response
 *         the same request is answered once more. */
hk_status_t hk_http1_parse_response(hk_bytes_t input, const hk_http1_limits_t *limits, hk_bytes_t method,
                                    hk_http1_scan_t *scan, hk_http1_response_t *response, size_t *consumed);

/* The bytes of the head lie elsewhere now: lets every slice point there.
 *
 * from, to  where the `input` of the call that parsed the head began, and where the same bytes begin now. */
void hk_http1_request_moved(hk_http1_request_t *request, const char *from, const char *to);
void hk_http1_response_moved(hk_http1_response_t *response, const char *from, const char *to);

/* Whether the value of a response's field is folded. O(bytes). */
bool hk_http1_is_folded(hk_bytes_t value);

/* Puts one space in the place of each line end in a folded value, with the white space around it (RFC 9112, section
 * 5.2), and returns how many bytes are left, which are fewer. */
size_t hk_http1_unfold(char *value, size_t length);

/* The first field of a name, in any case, or NULL. O(fields). */
const hk_http1_header_t *hk_http1_header_find(const hk_http1_header_t *headers, size_t count, hk_bytes_t name);

/* How many fields have the name, in any case. O(fields). */
size_t hk_http1_header_count(const hk_http1_header_t *headers, size_t count, hk_bytes_t name);

/* --- bodies ------------------------------------------------------------------------------------------------------ */

/* Takes a body out of the bytes that arrive. About 40 bytes; nothing to release. */
typedef struct hk_http1_body {
    hk_http1_framing_kind_t kind;
    uint8_t state;
    hk_http1_error_t error; /* why, after HK_INVALID or HK_TOO_LARGE */
    uint64_t left;          /* bytes of data that are still to come, of the body or of its chunk */
    size_t looked;          /* how far the unfinished line was looked through */
    size_t trailer_bytes;
} hk_http1_body_t;

/* A body that begins; one of no bytes has ended already. */
void hk_http1_body_init(hk_http1_body_t *body, hk_http1_framing_t framing);

/* Whether the last byte of the message was consumed. */
bool hk_http1_body_ended(const hk_http1_body_t *body);

/* The next piece of the body.
 *
 *     while (!hk_http1_body_ended(&body)) {
 *         status = hk_http1_body_next(&body, hk_buf_bytes(&in), limits, &data, &consumed);
 *         if (status != HK_OK) break;            HK_AGAIN: read more; else refuse
 *         take(data);
 *         hk_buf_consume(&in, consumed);
 *     }
 *
 * input     what has arrived and was not consumed yet.
 * data      a slice of `input`, as long as can be; empty where only framing was consumed.
 * consumed  greater than 0.
 *
 * HK_OK; HK_AGAIN: more bytes are needed (those that are there may be the beginning of a line, of bounded length);
 * HK_INVALID or HK_TOO_LARGE: body->error says why, the connection cannot be used any more. Trailer fields are
 * validated and dropped. Must not be called once the body has ended. O(bytes of framing), not of data. */
hk_status_t hk_http1_body_next(hk_http1_body_t *body, hk_bytes_t input, const hk_http1_limits_t *limits,
                               hk_bytes_t *data, size_t *consumed);

/* The other side sends no more. HK_OK: the body has ended with that, or before; HK_INVALID: it is cut off. */
hk_status_t hk_http1_body_close(hk_http1_body_t *body);

#endif
