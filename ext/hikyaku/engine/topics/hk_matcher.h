/* hk_matcher.h: says which topics.
 *
 * A matcher is made from what Ruby has compiled: its type and pattern as clients know them, a kind that says how it is
 * found and tested, and its program. Immutable and shared: whoever holds one retains it.
 */
#ifndef HK_MATCHER_H
#define HK_MATCHER_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_program.h"
#include "hk_status.h"
#include "hk_topic.h"

typedef enum hk_matcher_kind {
    HK_MATCHER_ALL,   /* selects every topic */
    HK_MATCHER_EXACT, /* selects the topic that equals the pattern */
    HK_MATCHER_URL,   /* selects URLs: eight programs */
    HK_MATCHER_TEXT   /* selects texts: one program, and the text that equals the pattern */
} hk_matcher_kind_t;

/* All bytes are copied. */
typedef struct hk_matcher_options {
    hk_bytes_t type;    /* "exact", "urlpattern", "uri_template" */
    hk_bytes_t pattern; /* at most 65,535 bytes */
    hk_matcher_kind_t kind;
    hk_bytes_t program; /* HK_MATCHER_URL: as UrlPattern#program; HK_MATCHER_TEXT: one program; else empty */
    bool has_origin;    /* HK_MATCHER_URL: only URLs of `origin` can match */
    hk_bytes_t origin;
    hk_bytes_t prefix; /* HK_MATCHER_URL: what every path that matches begins with; HK_MATCHER_TEXT: every text */
    uint32_t cost;     /* steps that matching takes at most for each byte of a topic; 0: comparing texts decides */
    uint32_t held;     /* bytes that its maker keeps beside it, as long as it lives */
    bool close_on_gap; /* a reader that the ring passed is closed, not told */
} hk_matcher_options_t;

typedef struct hk_matcher {
    uint32_t references;
    hk_matcher_kind_t kind;
    hk_bytes_t type, pattern, origin, prefix;
    hk_bytes_t key; /* type, a zero byte, pattern: equal matchers have equal keys */
    bool has_origin, close_on_gap;
    uint32_t cost; /* see hk_matcher_options_t */
    size_t bytes;  /* that it takes, with what its maker keeps */
    uint8_t program_count;
    uint8_t test_count, tests[HK_URL_PARTS]; /* HK_MATCHER_URL: the parts whose programs are to be asked, in order */
    hk_program_t *programs;
    size_t instructions; /* of the largest program: what a space must be reserved for */
    const hk_alloc_t *alloc;
} hk_matcher_t;

/* Makes a matcher that the caller keeps: one block of memory. O(bytes).
 *
 * HK_OK; HK_INVALID: programs that do not load or are not as many as the kind needs, a type that holds a zero byte;
 * HK_TOO_LARGE: the pattern; HK_NO_MEMORY. */
hk_status_t hk_matcher_new(const hk_alloc_t *alloc, const hk_matcher_options_t *options, hk_matcher_t **matcher);

/* Keeps a matcher; returns it. */
hk_matcher_t *hk_matcher_retain(hk_matcher_t *matcher);

/* Lets go of a matcher, and frees it when nobody keeps it. NULL is allowed. */
void hk_matcher_release(hk_matcher_t *matcher);

/* Whether it selects the topic, decided as Hikyaku::Hub::Matcher#match? does. Comparisons, unless a program is general.
 *
 * space  reserved for matcher->instructions. */
bool hk_matcher_match(const hk_matcher_t *matcher, hk_program_space_t *space, const hk_topic_t *topic);

#endif
