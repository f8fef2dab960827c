/* patterns.h: matchers for tests, from patterns of a few letters.
 *
 *     a    the byte, for any a but these two
 *     :    one or more bytes but "/"
 *     *    anything
 */
#ifndef PATTERNS_H
#define PATTERNS_H

#include "hk_matcher.h"
#include "hk_test.h"

static const char *const test_hub_parts[HK_URL_PARTS] = {"https", "", "", "hub.example.com", "", "/hub", "", ""};

static inline hk_url_t test_hub(void)
{
    hk_url_t hub = {.origin = HK_BYTES("https://hub.example.com")};
    for (size_t part = 0; part < HK_URL_PARTS; part++) {
        hub.parts[part] = hk_test_text(test_hub_parts[part]);
    }
    return hub;
}

/* A topic of no table; what cannot be split is no URL. */
static inline hk_topic_t *topic_of(const char *value)
{
    hk_url_t hub = test_hub(), url;
    bool is_url = hk_topic_split(hk_test_text(value), &hub, &url) == HK_OK;
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), hk_test_text(value), is_url ? &url : NULL, false, &topic));
    return topic;
}

static inline size_t put_instruction(char *at, unsigned op, unsigned argument, size_t target)
{
    at[0] = (char)op;
    at[1] = (char)argument;
    at[2] = (char)(target >> 8);
    at[3] = (char)target;
    return 4;
}

/* Writes the program of a pattern. */
static inline hk_bytes_t one_program(char *out, const char *pattern)
{
    bool has_set = strchr(pattern, ':') != NULL;
    size_t length = 4, count = 0;
    if (has_set) {
        memset(out + length, 0xFF, 32);
        out[length + ('/' >> 3)] = (char)(0xFF & ~(1 << ('/' & 7)));
        length += 32;
    }
    for (const char *letter = pattern; *letter != '\0'; letter++) {
        if (*letter == ':') {
            length += put_instruction(out + length, 2, 0, 0);
            length += put_instruction(out + length, 5, 0, count);
            count += 2;
        } else if (*letter == '*') {
            length += put_instruction(out + length, 5, 0, count + 3);
            length += put_instruction(out + length, 3, 0, 0);
            length += put_instruction(out + length, 4, 0, count);
            count += 3;
        } else {
            length += put_instruction(out + length, 1, (unsigned char)*letter, 0);
            count++;
        }
    }
    length += put_instruction(out + length, 0, 0, 0);
    out[0] = 1;
    out[1] = has_set;
    out[2] = (char)((count + 1) >> 8);
    out[3] = (char)(count + 1);
    return hk_bytes(out, length);
}

/* Writes the programs of a URL pattern: of the path, of the hash, and of everything else. */
static inline hk_bytes_t eight_programs(char *out, const char *others, const char *path, const char *hash)
{
    size_t length = 0;
    for (size_t part = 0; part < HK_URL_PARTS; part++) {
        const char *pattern = part == HK_URL_PATHNAME ? path : part == HK_URL_HASH ? hash : others;
        size_t size = one_program(out + length + 4, pattern).length;
        put_instruction(out + length, 0, 0, size);
        length += 4 + size;
    }
    return hk_bytes(out, length);
}

static inline hk_matcher_t *made_matcher(const hk_matcher_options_t *options)
{
    hk_matcher_t *matcher;
    HK_CHECK_OK(hk_matcher_new(hk_test_alloc(), options, &matcher));
    return matcher;
}

static inline hk_matcher_t *exact_matcher(const char *pattern)
{
    return made_matcher(
        &(hk_matcher_options_t){.type = HK_BYTES("exact"), .pattern = hk_test_text(pattern), .kind = HK_MATCHER_EXACT});
}

/* What the paths of a pattern begin with, up to the last slash. */
static inline hk_bytes_t leading_path(const char *path)
{
    size_t plain = strcspn(path, ":*");
    while (plain > 0 && path[plain - 1] != '/') {
        plain--;
    }
    return hk_bytes(path, plain);
}

/* origin  NULL: any, with any protocol, host and port. Query and fragment must be empty where the origin is fixed. */
static inline hk_matcher_t *url_matcher(const char *origin, const char *path)
{
    char programs[4096];
    return made_matcher(&(hk_matcher_options_t){
        .type = HK_BYTES("urlpattern"),
        .pattern = hk_test_text(path),
        .kind = HK_MATCHER_URL,
        .program = eight_programs(programs, origin != NULL ? "" : "*", path, origin != NULL ? "" : "*"),
        .has_origin = origin != NULL,
        .origin = hk_test_text(origin != NULL ? origin : ""),
        .prefix = leading_path(path),
    });
}

static inline hk_matcher_t *text_matcher(const char *pattern, const char *text)
{
    char program[1024];
    return made_matcher(&(hk_matcher_options_t){
        .type = HK_BYTES("uri_template"),
        .pattern = hk_test_text(pattern),
        .kind = HK_MATCHER_TEXT,
        .program = one_program(program, text),
        .prefix = hk_bytes(text, strcspn(text, ":*")),
    });
}

#endif
