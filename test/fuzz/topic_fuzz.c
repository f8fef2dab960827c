/* topic_fuzz.c: topics. What is split can be put together again, and a table that is always full stays whole. */
#include "hk_topic.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool so)
{
    if (!so) {
        abort();
    }
}

static const hk_url_t hub = {
    .parts = {[HK_URL_PROTOCOL] = {"https", 5}, [HK_URL_HOSTNAME] = {"h", 1}, [HK_URL_PATHNAME] = {"/hub", 4}},
    .origin = {"https://h", 9}};

static void expect(hk_bytes_t *rest, hk_bytes_t text)
{
    check(hk_bytes_start_with(*rest, text));
    if (text.length > 0) {
        *rest = hk_bytes(rest->at + text.length, rest->length - text.length);
    }
}

/* A part and the mark before it, which may be there although the part is empty. */
static void expect_behind(hk_bytes_t *rest, hk_bytes_t mark, hk_bytes_t part)
{
    if (part.length > 0 || hk_bytes_start_with(*rest, mark)) {
        expect(rest, mark);
        expect(rest, part);
    }
}

static void check_parts(hk_bytes_t value, const hk_url_t *url)
{
    const hk_bytes_t *parts = url->parts;
    if (value.at[0] != '/') {
        hk_bytes_t origin = url->origin;
        expect(&value, origin);
        expect(&origin, parts[HK_URL_PROTOCOL]);
        expect(&origin, HK_BYTES("://"));
        expect(&origin, parts[HK_URL_HOSTNAME]);
        expect_behind(&origin, HK_BYTES(":"), parts[HK_URL_PORT]);
        check(origin.length == 0 && parts[HK_URL_HOSTNAME].length > 0);
    }
    check(parts[HK_URL_PATHNAME].at[0] == '/');
    if (value.length > 0 && value.at[0] == '/') {
        expect(&value, parts[HK_URL_PATHNAME]);
    }
    expect_behind(&value, HK_BYTES("?"), parts[HK_URL_SEARCH]);
    expect_behind(&value, HK_BYTES("#"), parts[HK_URL_HASH]);
    check(value.length == 0);
}

/* The input's beginnings, up to each line feed, are topics of one table. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_topics_options_t options = {
        .hub = hub, .comparable_path = HK_BYTES("/hub"), .max_bytes = 4000, .secret = {1, 2}};
    hk_topics_t *topics;
    check(hk_topics_new(hk_alloc_default(), &options, &topics) == HK_OK);
    hk_bytes_t rest = hk_bytes((const char *)data, size);
    while (rest.length > 0) {
        const char *feed = memchr(rest.at, '\n', rest.length);
        hk_bytes_t value = hk_bytes(rest.at, feed != NULL ? (size_t)(feed - rest.at) : rest.length);
        hk_url_t url;
        hk_topic_t *topic;
        hk_status_t status = hk_topic_split(value, &hub, &url);
        if (status == HK_OK) {
            check_parts(value, &url);
            check(hk_topics_find(topics, value, &topic) == HK_OK);
            check(hk_bytes_equal(topic->url.parts[HK_URL_PATHNAME], url.parts[HK_URL_PATHNAME]));
        } else {
            check(status == HK_UNKNOWN);
            check(hk_topics_add(topics, value, NULL, false, &topic) == HK_OK);
        }
        check(hk_bytes_equal(hk_topic_value(topic), value));
        rest = hk_bytes(value.at + value.length, rest.length - value.length);
        expect(&rest, feed != NULL ? HK_BYTES("\n") : HK_BYTES(""));
    }
    hk_topics_free(topics);
    return 0;
}
