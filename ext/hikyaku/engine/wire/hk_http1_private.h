/* hk_http1_private.h: what the files of hk_http1 share. Nobody else includes it. */
#ifndef HK_HTTP1_PRIVATE_H
#define HK_HTTP1_PRIVATE_H

#include "hk_http1.h"

/* --- bytes -------------------------------------------------------------------------------------------------------- */

/* What a byte may be part of. */
enum {
    HK_HTTP1_IN_TOKEN = 1,  /* RFC 9110, section 5.6.2 */
    HK_HTTP1_IN_TARGET = 2, /* visible ASCII but '#', and what is beyond ASCII */
    HK_HTTP1_IN_NAME = 4,   /* of a host: unreserved and sub-delims of RFC 3986 */
    HK_HTTP1_DIGIT = 8,
    HK_HTTP1_HEX = 16,
    HK_HTTP1_ALPHA = 32
};

extern const uint8_t hk_http1_byte_kinds[256];

static inline bool hk_http1_is(char byte, unsigned kinds)
{
    return (hk_http1_byte_kinds[(unsigned char)byte] & kinds) != 0;
}

/* The first of these bytes that is none of `kinds`, or their end. */
static inline const char *hk_http1_skip(const char *at, const char *end, unsigned kinds)
{
    while (at < end && hk_http1_is(*at, kinds)) {
        at++;
    }
    return at;
}

/* The first byte that a field value or a reason phrase must not have (control bytes but the tab), or the end. */
const char *hk_http1_skip_text(const char *at, const char *end);

/* Compares with a word in lower case. */
static inline bool hk_http1_is_word(hk_bytes_t bytes, hk_bytes_t word)
{
    return bytes.length == word.length && hk_bytes_equal_ignoring_case(bytes, word);
}

/* Takes the next member of a list from the beginning of `list`, without the white space around it; false when none is
 * left. A list of no bytes has one member, which is empty. */
bool hk_http1_next_member(hk_bytes_t *list, hk_bytes_t *member);

/* The value of a number in decimal or hexadecimal digits (all of them are), or false when it is not below 2^64. */
bool hk_http1_number(hk_bytes_t digits, unsigned base, uint64_t *number);

/* --- lines -------------------------------------------------------------------------------------------------------- */

/* Limits may be as large as one likes. */
static inline size_t hk_http1_plus(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}

typedef enum hk_http1_line_result {
    HK_HTTP1_LINE_FOUND,
    HK_HTTP1_LINE_UNFINISHED,
    HK_HTTP1_LINE_LONG,     /* longer than `longest` */
    HK_HTTP1_LINE_OVER,     /* does not end within `budget` */
    HK_HTTP1_LINE_MALFORMED /* ends with LF alone, and may not */
} hk_http1_line_result_t;

typedef enum hk_http1_line_ends { HK_HTTP1_CRLF, HK_HTTP1_CRLF_OR_LF } hk_http1_line_ends_t;

/* Looks for the end of the line at the beginning of `input`.
 *
 * ends     whether LF alone ends it as well.
 * looked   how many bytes need not be looked at again; set to the bytes that were.
 * longest  how many bytes the line may have without its end.
 * budget   how many it may have with it.
 * length   of the line without its end.
 * next     where the next one begins.
 *
 * The result is that which the first byte decides that can decide it, however many bytes are there. */
hk_http1_line_result_t hk_http1_find_line(hk_bytes_t input, hk_http1_line_ends_t ends, size_t *looked, size_t longest,
                                          size_t budget, size_t *length, size_t *next);

/* Parses one header line, which ends before `end` as hk_http1_find_line lets it. Sets `next` to what follows it. */
hk_http1_error_t hk_http1_parse_field(const char *at, const char *end, hk_http1_header_t *header, const char **next);

/* Parses the lines at `*next` with which the field goes on that was parsed last, if there are any; unfolded it may be
 * `longest` bytes long. */
hk_http1_error_t hk_http1_parse_folds(const char *end, size_t longest, hk_http1_header_t *header, const char **next);

/* --- targets ------------------------------------------------------------------------------------------------------ */

/* Whether these are a host and perhaps a port; of `port_needed` with one. No user information, nothing empty. */
bool hk_http1_valid_authority(hk_bytes_t bytes, bool port_needed);

/* Sets form, path, query and authority of the request from its method and target, whose bytes were looked at. */
hk_http1_error_t hk_http1_parse_target(hk_http1_request_t *request);

/* --- framing ------------------------------------------------------------------------------------------------------ */

/* What the fields of one head say about its framing and its connection. All zero at first. */
typedef struct hk_http1_facts {
    hk_bytes_t host;
    hk_bytes_t content_length; /* the last such field */
    hk_bytes_t length;         /* the first member of the first */
    unsigned hosts, content_lengths;
    unsigned lengths; /* members of Content-Length, over all such fields */
    bool lengths_differ;
    unsigned codings, chunked; /* members of Transfer-Encoding; how many of them are chunked */
    unsigned identities;       /* how many of them are identity */
    bool coded;                /* there is a Transfer-Encoding */
    bool codings_malformed;
    bool chunked_last;
    bool close, keep_alive, upgrades; /* members of Connection */
    bool upgrade;                     /* there is an Upgrade */
    bool expect_continue;
} hk_http1_facts_t;

/* Notes what a field says. */
void hk_http1_note_field(hk_http1_facts_t *facts, const hk_http1_header_t *header);

/* What the facts say about a request whose start line was parsed. */
hk_http1_error_t hk_http1_conclude_request(const hk_http1_facts_t *facts, hk_http1_request_t *request);

/* What the facts say about a response, the answer to `method`, whose status line and fields were parsed. The facts are
 * used up. */
hk_http1_error_t hk_http1_conclude_response(hk_http1_facts_t *facts, hk_bytes_t method, hk_http1_response_t *response);

#endif
