#include "hk_test.h"
#include "hk_topic.h"

#include <stdio.h>

static hk_url_t url_of(const char *const parts[HK_URL_PARTS], const char *origin)
{
    hk_url_t url = {.origin = hk_test_text(origin)};
    for (size_t part = 0; part < HK_URL_PARTS; part++) {
        url.parts[part] = hk_test_text(parts[part]);
    }
    return url;
}

static const char *const hub_parts[HK_URL_PARTS] = {"https", "u", "p", "hub.example.com", "8443", "/hub", "q", ""};

static hk_url_t hub_url(void)
{
    return url_of(hub_parts, "https://hub.example.com:8443");
}

static hk_topics_t *topics_of(size_t max_bytes)
{
    hk_topics_options_t options = {
        .hub = hub_url(), .comparable_path = HK_BYTES("/hub"), .max_bytes = max_bytes, .secret = {1, 2}};
    hk_topics_t *topics;
    HK_CHECK_OK(hk_topics_new(hk_test_alloc(), &options, &topics));
    return topics;
}

static hk_topic_t *find(hk_topics_t *topics, const char *value)
{
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topics_find(topics, hk_test_text(value), &topic));
    return topic;
}

static void check_url(const char *const parts[HK_URL_PARTS], const char *origin, const hk_url_t *url)
{
    for (size_t part = 0; part < HK_URL_PARTS; part++) {
        HK_CHECK_BYTES(parts[part], url->parts[part]);
    }
    HK_CHECK_BYTES(origin, url->origin);
}

/* -- Splitting ----------------------------------------------------------------------------------------------------- */

HK_TEST(canonical_topics_are_split_and_no_byte_beyond_them_is_read)
{
    static const struct {
        const char *value, *parts[HK_URL_PARTS], *origin;
    } rows[] = {
        {"https://example.com", {"https", "", "", "example.com", "", "/", "", ""}, "https://example.com"},
        {"http://a-b.c1:8080/x/y?z=/?#h?/",
         {"http", "", "", "a-b.c1", "8080", "/x/y", "z=/?", "h?/"},
         "http://a-b.c1:8080"},
        {"https://a?", {"https", "", "", "a", "", "/", "", ""}, "https://a"},
        {"https://a#x", {"https", "", "", "a", "", "/", "", "x"}, "https://a"},
        {"https://a:65535", {"https", "", "", "a", "65535", "/", "", ""}, "https://a:65535"},
        {"/", {"https", "u", "p", "hub.example.com", "8443", "/", "", ""}, "https://hub.example.com:8443"},
        {"/a/...?b#c",
         {"https", "u", "p", "hub.example.com", "8443", "/a/...", "b", "c"},
         "https://hub.example.com:8443"},
    };
    hk_url_t hub = hub_url();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("%s", rows[i].value);
        hk_url_t url;
        HK_CHECK_OK(hk_topic_split(hk_test_guarded(hk_test_text(rows[i].value)), &hub, &url));
        check_url(rows[i].parts, rows[i].origin, &url);
    }
}

HK_TEST(what_may_not_be_canonical_is_left_to_whoever_can_parse_it)
{
    static const char *const rows[] = {"",
                                       "books",
                                       "urn:x",
                                       "//a",
                                       "/\\a",
                                       "/a b",
                                       "/\xC3\xA9",
                                       "/%41",
                                       "/a'",
                                       "/a|",
                                       "/a^",
                                       "/a\n",
                                       "/.",
                                       "/a/..",
                                       "/./",
                                       "/a/../b",
                                       "/.?",
                                       "/..#",
                                       "HTTPS://a",
                                       "https://A",
                                       "https://",
                                       "https:",
                                       "http",
                                       "h",
                                       "https://.",
                                       "https://a.",
                                       "https://a..b",
                                       "https://-a",
                                       "https://a-",
                                       "https://a--b",
                                       "https://xn--a",
                                       "https://1",
                                       "https://a.1",
                                       "https://a.0x1",
                                       "https://a:",
                                       "https://a:0",
                                       "https://a:08",
                                       "https://a:443",
                                       "http://a:80",
                                       "https://a:65536",
                                       "https://a:4294967297",
                                       "https://a:18446744073709551617",
                                       "https://u@a",
                                       "https://a_b",
                                       "https://[::1]",
                                       "https://a:1a",
                                       "https://a\\",
                                       "ftp://a",
                                       "httpsx://a",
                                       "/a#b#c"};
    hk_url_t hub = hub_url();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("%s", rows[i]);
        hk_url_t url = {.origin = HK_BYTES("unchanged")};
        HK_CHECK_STATUS(HK_UNKNOWN, hk_topic_split(hk_test_guarded(hk_test_text(rows[i])), &hub, &url));
        HK_CHECK_BYTES("unchanged", url.origin);
    }
    hk_url_t url;
    HK_CHECK_STATUS(HK_UNKNOWN, hk_topic_split(hk_bytes(NULL, 0), &hub, &url));
    HK_CHECK_STATUS(HK_UNKNOWN, hk_topic_split(HK_BYTES("/a\0"), &hub, &url));
}

HK_TEST(every_byte_is_either_certainly_safe_or_left_alone)
{
    static const char safe[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$&()*+,;=:@/";
    hk_url_t hub = hub_url(), url;
    for (int byte = 0; byte < 256; byte++) {
        hk_test_note("byte %d", byte);
        bool is_safe = byte != 0 && strchr(safe, byte) != NULL;
        char path[] = {'/', 'a', (char)byte}, query[] = {'/', '?', (char)byte}, hash[] = {'/', '#', (char)byte};
        HK_CHECK(is_safe == (hk_topic_split(hk_bytes(path, 3), &hub, &url) == HK_OK) || byte == '?' || byte == '#');
        HK_CHECK((is_safe || byte == '?' || byte == '#') == (hk_topic_split(hk_bytes(query, 3), &hub, &url) == HK_OK));
        HK_CHECK((is_safe || byte == '?') == (hk_topic_split(hk_bytes(hash, 3), &hub, &url) == HK_OK));
    }
}

HK_TEST(hosts_are_no_longer_than_what_dns_allows)
{
    static const struct {
        size_t labels, length;
        bool canonical;
    } rows[] = {{1, 63, true}, {1, 64, false}, {4, 62, true}, {5, 50, false}, {127, 1, true}, {128, 1, false}};
    hk_url_t hub = hub_url(), url;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        char value[600] = "https://";
        for (size_t label = 0; label < rows[i].labels; label++) {
            char *at = value + strlen(value);
            memset(at, 'a', rows[i].length);
            strcpy(at + rows[i].length, label + 1 < rows[i].labels ? "." : "/");
        }
        HK_CHECK_STATUS(rows[i].canonical ? HK_OK : HK_UNKNOWN, hk_topic_split(hk_test_text(value), &hub, &url));
    }
}

HK_TEST(what_is_relative_needs_a_hub_that_is_reached_by_http)
{
    static const char *const parts[HK_URL_PARTS] = {"foo", "", "", "hub", "", "/hub", "", ""};
    hk_url_t hub = url_of(parts, "foo://hub"), url;
    HK_CHECK_STATUS(HK_UNKNOWN, hk_topic_split(HK_BYTES("/a"), &hub, &url));
    HK_CHECK_OK(hk_topic_split(HK_BYTES("http://a"), &hub, &url));
    hub.parts[HK_URL_PROTOCOL] = HK_BYTES("http");
    HK_CHECK_OK(hk_topic_split(HK_BYTES("/a"), &hub, &url));
}

/* -- Topics -------------------------------------------------------------------------------------------------------- */

HK_TEST(a_topic_owns_what_it_says_of_itself)
{
    char value[] = "https://example.com/a?b#c";
    hk_url_t hub = hub_url(), url;
    HK_CHECK_OK(hk_topic_split(hk_test_text(value), &hub, &url));
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), hk_test_text(value), &url, true, &topic));
    HK_CHECK_EQUAL_UINT(1, hk_test_blocks());
    memset(value, 'x', sizeof(value) - 1);
    static const char *const parts[] = {"https", "", "", "example.com", "", "/a", "b", "c"};
    check_url(parts, "https://example.com", &topic->url);
    HK_CHECK_BYTES("https://example.com/a?b#c", hk_topic_value(topic));
    HK_CHECK(topic->is_url && topic->reserved);
    HK_CHECK(hk_topic_retain(topic) == topic);
    hk_topic_release(topic);
    HK_CHECK_BYTES("c", topic->url.parts[HK_URL_HASH]);
    hk_topic_release(topic);
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), HK_BYTES(""), NULL, false, &topic));
    HK_CHECK(!topic->is_url && !topic->reserved && hk_topic_value(topic).length == 0);
    hk_topic_release(topic);
    hk_topic_release(NULL);
}

HK_TEST(a_topic_that_is_asked_for_again_is_the_same)
{
    hk_topics_t *topics = topics_of(100000);
    hk_topic_t *topic = find(topics, "/a");
    HK_CHECK(find(topics, "/a") == topic);
    HK_CHECK(find(topics, "/b") != topic);
    HK_CHECK_EQUAL_UINT(2, hk_topics_count(topics));
    size_t requests = hk_test_requests();
    find(topics, "/a");
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    static const char *const parts[] = {"https", "u", "p", "hub.example.com", "8443", "/a", "", ""};
    check_url(parts, "https://hub.example.com:8443", &topic->url);
    hk_topics_free(topics);
    hk_topics_free(NULL);
}

HK_TEST(a_topic_that_needs_a_parser_is_unknown_until_it_is_handed_in)
{
    hk_topics_t *topics = topics_of(100000);
    hk_topic_t *topic = NULL, *same = NULL;
    HK_CHECK_STATUS(HK_UNKNOWN, hk_topics_find(topics, HK_BYTES("Books"), &topic));
    HK_CHECK(topic == NULL);
    HK_CHECK_EQUAL_UINT(0, hk_topics_count(topics));
    static const char *const parts[] = {"https", "", "", "hub.example.com", "8443", "/Books", "", ""};
    hk_url_t url = url_of(parts, "https://hub.example.com:8443");
    HK_CHECK_OK(hk_topics_add(topics, HK_BYTES("Books"), &url, false, &topic));
    check_url(parts, "https://hub.example.com:8443", &topic->url);
    HK_CHECK_OK(hk_topics_find(topics, HK_BYTES("Books"), &same));
    HK_CHECK(same == topic && topic->is_url && !topic->reserved);
    HK_CHECK_OK(hk_topics_add(topics, HK_BYTES("Books"), NULL, true, &same));
    HK_CHECK(same == topic && topic->is_url && !topic->reserved);
    HK_CHECK_OK(hk_topics_add(topics, HK_BYTES("http://["), NULL, false, &topic));
    HK_CHECK(!topic->is_url);
    HK_CHECK_OK(hk_topics_add(topics, HK_BYTES("/h%75b"), &url, true, &topic));
    HK_CHECK(topic->reserved);
    HK_CHECK_EQUAL_UINT(3, hk_topics_count(topics));
    hk_topics_free(topics);
}

HK_TEST(the_hubs_path_and_what_is_below_it_is_reserved_on_every_host)
{
    static const struct {
        const char *value;
        bool reserved;
    } rows[] = {{"/hub", true},
                {"/hub/", true},
                {"/hub/a", true},
                {"/hub?a", true},
                {"https://a/hub#b", true},
                {"http://a/hub/x", true},
                {"/hubs", false},
                {"/hu", false},
                {"/", false},
                {"/a/hub", false},
                {"/Hub", false},
                {"https://a/hub2", false},
                {"https://a//hub", true},
                {"https://a///hub//x", true},
                {"/hub//", true},
                {"https://a//hubs", false},
                {"https://a//b//hub", false},
                {"https://a//", false},
                {"//hub", false}};
    hk_topics_t *topics = topics_of(100000);
    for (size_t i = 0; i + 1 < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("%s", rows[i].value);
        HK_CHECK(find(topics, rows[i].value)->reserved == rows[i].reserved);
    }
    hk_topics_free(topics);
    hk_topics_options_t options = {
        .hub = hub_url(), .comparable_path = HK_BYTES("/"), .max_bytes = 100000, .secret = {1, 2}};
    HK_CHECK_OK(hk_topics_new(hk_test_alloc(), &options, &topics));
    HK_CHECK(find(topics, "/")->reserved && !find(topics, "/a")->reserved);
    hk_topics_free(topics);
}

/* -- The table ----------------------------------------------------------------------------------------------------- */

HK_TEST(ever_new_topics_do_not_make_it_grow)
{
    hk_topics_t *topics = topics_of(100000);
    for (size_t i = 0; i < 5000; i++) {
        char value[32];
        snprintf(value, sizeof(value), "/flood/%zu", i);
        find(topics, value);
        HK_CHECK(hk_topics_bytes(topics) <= 100000);
        /* What lies outside the topics themselves: the table, its buckets. */
        HK_CHECK(hk_test_bytes_in_use() < 104000);
    }
    HK_CHECK(hk_topics_count(topics) > 30 && hk_topics_count(topics) < 150);
    char long_value[50000] = "/";
    memset(long_value + 1, 'a', sizeof(long_value) - 2);
    for (size_t i = 0; i < 10; i++) {
        long_value[1] = (char)('a' + i);
        find(topics, long_value);
        HK_CHECK(hk_topics_count(topics) <= 120 && (i == 0 || hk_topics_count(topics) <= 60));
    }
    HK_CHECK_EQUAL_UINT(2, hk_topics_count(topics));
    hk_topics_free(topics);
}

HK_TEST(a_topic_in_use_outlives_a_flood)
{
    hk_topics_t *topics = topics_of(100000);
    hk_topic_t *kept = find(topics, "/kept");
    for (size_t i = 0; i < 5000; i++) {
        char value[32];
        snprintf(value, sizeof(value), "/flood/%zu", i);
        find(topics, value);
        if (i % 20 == 0) {
            HK_CHECK(find(topics, "/kept") == kept);
        }
    }
    hk_topics_free(topics);
}

HK_TEST(a_topic_that_somebody_keeps_outlives_the_table)
{
    hk_topics_t *topics = topics_of(2000);
    hk_topic_t *kept = hk_topic_retain(find(topics, "/kept"));
    for (size_t i = 0; i < 10; i++) {
        char value[32];
        snprintf(value, sizeof(value), "/flood/%zu", i);
        find(topics, value);
    }
    hk_topic_t *again = find(topics, "/kept");
    HK_CHECK(again != kept);
    hk_topics_free(topics);
    HK_CHECK_BYTES("/kept", hk_topic_value(kept));
    HK_CHECK_BYTES("https://hub.example.com:8443", kept->url.origin);
    hk_topic_release(kept);
}

/* A model with the same rule: what was asked for while half of the bytes were filled anew is there. */
HK_TEST(random_topics_are_remembered_as_a_simple_model_says)
{
    enum { TOPICS = 60, BYTES = 40000 };
    hk_topics_t *topics = topics_of(BYTES);
    struct {
        size_t bytes;
        int generation; /* 0: neither */
    } model[TOPICS] = {{0, 0}};
    int generation = 1;
    size_t young_bytes = 0;
    for (size_t step = 0; step < 20000; step++) {
        size_t i = hk_test_below(hk_test_below(4) == 0 ? TOPICS : 10);
        char value[400] = "";
        size_t length = 1 + i * 6;
        memset(value, 'a', length);
        value[0] = '/';
        hk_topic_t *topic = find(topics, value);
        HK_CHECK_EQUAL_UINT(length, hk_topic_value(topic).length);
        model[i].bytes = topic->bytes;
        if (model[i].generation != generation) {
            if (young_bytes + topic->bytes > BYTES / 2) {
                generation++;
                young_bytes = 0;
            }
            model[i].generation = generation;
            young_bytes += topic->bytes;
        }
        size_t count = 0, bytes = 0;
        for (size_t j = 0; j < TOPICS; j++) {
            bool there = model[j].generation > 0 && model[j].generation >= generation - 1;
            count += there;
            bytes += there ? model[j].bytes : 0;
        }
        HK_CHECK_EQUAL_UINT(count, hk_topics_count(topics));
        HK_CHECK_EQUAL_UINT(bytes, hk_topics_bytes(topics));
    }
    HK_CHECK(generation > 100);
    hk_topics_free(topics);
}

HK_TEST(without_memory_no_topic_is_made_and_none_is_lost)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_topics_options_t options = {
            .hub = hub_url(), .comparable_path = HK_BYTES("/hub"), .max_bytes = 4000, .secret = {1, 2}};
        hk_topics_t *topics = NULL;
        hk_status_t status = hk_topics_new(hk_test_alloc(), &options, &topics);
        HK_CHECK_STATUS(topics == NULL ? HK_NO_MEMORY : HK_OK, status);
        for (size_t i = 0; topics != NULL && i < 20; i++) {
            char value[32];
            snprintf(value, sizeof(value), i % 2 ? "/%zu" : "%zu", i / 3);
            hk_topic_t *topic = NULL;
            size_t count = hk_topics_count(topics);
            status = i % 2 ? hk_topics_find(topics, hk_test_text(value), &topic)
                           : hk_topics_add(topics, hk_test_text(value), NULL, false, &topic);
            HK_CHECK((status == HK_OK) == (topic != NULL) && (status == HK_OK || status == HK_NO_MEMORY));
            HK_CHECK(status == HK_OK || (hk_test_failed() && hk_topics_count(topics) == count));
            if (topic != NULL) {
                HK_CHECK_BYTES(hk_test_text(value), hk_topic_value(topic));
            }
        }
        hk_topics_free(topics);
    }
}
