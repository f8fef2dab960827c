#include "hk_matcher.h"
#include "hk_test.h"

#include "patterns.h"

static hk_matcher_t *matcher_of(const hk_matcher_options_t *options)
{
    hk_matcher_t *matcher;
    HK_CHECK_OK(hk_matcher_new(hk_test_alloc(), options, &matcher));
    return matcher;
}

static bool selects(const hk_matcher_t *matcher, const char *value)
{
    hk_program_space_t space;
    hk_program_space_init(&space, hk_test_alloc());
    HK_CHECK_OK(hk_program_space_reserve(&space, matcher->instructions));
    hk_topic_t *topic = topic_of(value);
    bool matches = hk_matcher_match(matcher, &space, topic);
    hk_topic_release(topic);
    hk_program_space_release(&space);
    return matches;
}

HK_TEST(the_matcher_of_all_selects_what_is_no_url_too)
{
    hk_matcher_t *matcher = matcher_of(
        &(hk_matcher_options_t){.type = HK_BYTES("exact"), .pattern = HK_BYTES("*"), .kind = HK_MATCHER_ALL});
    HK_CHECK(selects(matcher, "/a") && selects(matcher, "") && selects(matcher, "a b"));
    hk_matcher_release(matcher);
}

HK_TEST(an_exact_matcher_selects_the_topic_that_equals_it)
{
    hk_matcher_t *matcher = exact_matcher("/a");
    HK_CHECK(selects(matcher, "/a"));
    HK_CHECK(!selects(matcher, "/a/") && !selects(matcher, "/") && !selects(matcher, "https://hub.example.com/a"));
    hk_matcher_release(matcher);
    matcher = exact_matcher("");
    HK_CHECK(selects(matcher, "") && !selects(matcher, "/"));
    hk_matcher_release(matcher);
}

HK_TEST(a_url_pattern_asks_its_origin_and_all_its_programs)
{
    hk_matcher_t *matcher = url_matcher("https://hub.example.com", "/books/:");
    HK_CHECK(selects(matcher, "/books/1") && selects(matcher, "https://hub.example.com/books/1"));
    HK_CHECK(!selects(matcher, "/books/1/2") && !selects(matcher, "/books/") && !selects(matcher, "/book"));
    HK_CHECK(!selects(matcher, "https://example.com/books/1") && !selects(matcher, "http://hub.example.com/books/1"));
    HK_CHECK(!selects(matcher, "https://hub.example.com:8443/books/1") && !selects(matcher, "Books"));
    HK_CHECK(!selects(matcher, "/books/1?a") && !selects(matcher, "/books/1#a") && selects(matcher, "/books/1?"));
    HK_CHECK_EQUAL_UINT(0, matcher->instructions);
    hk_matcher_release(matcher);
    matcher = url_matcher(NULL, "/books/:/x");
    HK_CHECK(selects(matcher, "/books/1/x") && selects(matcher, "http://example.com:81/books/1/x"));
    HK_CHECK(!selects(matcher, "/books/1/y") && selects(matcher, "/books/1/x#a"));
    HK_CHECK_EQUAL_UINT(12, matcher->instructions);
    hk_matcher_release(matcher);
}

HK_TEST(every_program_of_a_matcher_has_a_text_of_its_own)
{
    char bytes[600];
    hk_matcher_t *matcher = matcher_of(&(hk_matcher_options_t){.type = HK_BYTES("urlpattern"),
                                                               .pattern = HK_BYTES("/ab#cd"),
                                                               .kind = HK_MATCHER_URL,
                                                               .program = eight_programs(bytes, "", "/ab", "cd"),
                                                               .has_origin = true,
                                                               .origin = HK_BYTES("https://hub.example.com")});
    HK_CHECK(selects(matcher, "/ab#cd") && !selects(matcher, "/cd#cd") && !selects(matcher, "/ab#ab"));
    hk_matcher_release(matcher);
}

/* Whatever its programs say: they say something about URLs. */
HK_TEST(what_is_no_url_is_selected_by_no_url_pattern)
{
    char programs[400];
    hk_matcher_t *matcher = matcher_of(&(hk_matcher_options_t){.type = HK_BYTES("urlpattern"),
                                                               .pattern = HK_BYTES("*://*"),
                                                               .kind = HK_MATCHER_URL,
                                                               .program = eight_programs(programs, "*", "*", "*")});
    HK_CHECK(selects(matcher, "/a") && selects(matcher, "https://a:1/b?c#d"));
    HK_CHECK(!selects(matcher, "Books") && !selects(matcher, ""));
    HK_CHECK_EQUAL_UINT(0, matcher->test_count);
    hk_matcher_release(matcher);
}

HK_TEST(a_template_selects_what_its_program_does_and_its_own_text)
{
    hk_matcher_t *matcher = text_matcher("/a/{x}", "/a/:");
    HK_CHECK(selects(matcher, "/a/b") && selects(matcher, "/a/{x}"));
    HK_CHECK(!selects(matcher, "/a/b/c") && !selects(matcher, "/a/") && !selects(matcher, "/b/c"));
    hk_matcher_release(matcher);
    matcher = text_matcher("/a/{x}", "/a/:/");
    HK_CHECK(selects(matcher, "/a/b/") && selects(matcher, "/a/{x}") && !selects(matcher, "/a/b"));
    HK_CHECK(matcher->instructions > 0);
    hk_matcher_release(matcher);
}

HK_TEST(a_matcher_owns_its_bytes_and_lies_in_one_block)
{
    char type[] = "urlpattern", pattern[] = "/books/:id", origin[] = "https://hub.example.com", prefix[] = "/books/";
    char bytes[600];
    hk_bytes_t program = eight_programs(bytes, "", "/books/:/x/:", "*");
    hk_matcher_t *matcher = matcher_of(&(hk_matcher_options_t){.type = hk_test_text(type),
                                                               .pattern = hk_test_text(pattern),
                                                               .kind = HK_MATCHER_URL,
                                                               .program = hk_test_guarded(program),
                                                               .has_origin = true,
                                                               .origin = hk_test_text(origin),
                                                               .prefix = hk_test_text(prefix),
                                                               .close_on_gap = true});
    HK_CHECK_EQUAL_UINT(1, hk_test_blocks());
    memset(type, 'x', 10);
    memset(pattern, 'x', 10);
    memset(origin, 'x', 20);
    memset(prefix, 'x', 7);
    memset(bytes, 'x', sizeof(bytes));
    HK_CHECK_BYTES("urlpattern", matcher->type);
    HK_CHECK_BYTES("/books/:id", matcher->pattern);
    HK_CHECK_BYTES("urlpattern\0/books/:id", matcher->key);
    HK_CHECK_BYTES("https://hub.example.com", matcher->origin);
    HK_CHECK_BYTES("/books/", matcher->prefix);
    HK_CHECK(matcher->close_on_gap && matcher->has_origin);
    HK_CHECK_EQUAL_UINT(8, matcher->program_count);
    HK_CHECK(hk_matcher_retain(matcher) == matcher);
    hk_matcher_release(matcher);
    HK_CHECK(selects(matcher, "/books/1/x/2") && !selects(matcher, "/books/1/x/"));
    hk_matcher_release(matcher);
    hk_matcher_release(NULL);
}

HK_TEST(the_largest_program_says_how_much_space_is_needed)
{
    char bytes[2000];
    hk_bytes_t program = eight_programs(bytes, "a:b", "/books/:/x/:", ":z");
    hk_matcher_t *matcher = matcher_of(&(hk_matcher_options_t){
        .type = HK_BYTES("urlpattern"), .pattern = HK_BYTES("x"), .kind = HK_MATCHER_URL, .program = program});
    HK_CHECK_EQUAL_UINT(15, matcher->instructions);
    hk_matcher_release(matcher);
}

HK_TEST(what_is_no_matcher_is_refused)
{
    static char large[65536];
    char bytes[600], one[100];
    memset(large, 'a', sizeof(large));
    hk_bytes_t eight = eight_programs(bytes, "", "/a", "*"), single = one_program(one, "/a");
    hk_matcher_options_t good = {
        .type = HK_BYTES("urlpattern"), .pattern = HK_BYTES("/a"), .kind = HK_MATCHER_URL, .program = eight};
    hk_matcher_t *matcher = NULL;
    hk_matcher_options_t options = good;
    options.pattern = hk_bytes(large, sizeof(large));
    HK_CHECK_STATUS(HK_TOO_LARGE, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    options.pattern.length--;
    HK_CHECK_OK(hk_matcher_new(hk_test_alloc(), &options, &matcher));
    hk_matcher_release(matcher);
    matcher = NULL;
    options = good;
    options.type = HK_BYTES("url\0pattern");
    HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    for (size_t length = 0; length < eight.length; length++) {
        hk_test_note("%zu of %zu bytes", length, eight.length);
        options = good;
        options.program = hk_test_guarded(hk_bytes(eight.at, length));
        HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
        hk_test_unguard(options.program.at);
    }
    static const hk_matcher_kind_t kinds[] = {HK_MATCHER_ALL, HK_MATCHER_EXACT, HK_MATCHER_TEXT};
    for (size_t i = 0; i < 3; i++) {
        options = good;
        options.kind = kinds[i];
        HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    }
    options = good;
    options.program = single;
    HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    options.kind = HK_MATCHER_TEXT;
    options.program.length--;
    HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    char more[601];
    memcpy(more, eight.at, eight.length);
    more[eight.length] = 0;
    options = good;
    options.program = hk_bytes(more, eight.length + 1);
    HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    memcpy(more, "\xFF\xFF\xFF\xFF", 4);
    options.program.length--;
    HK_CHECK_STATUS(HK_INVALID, hk_matcher_new(hk_test_alloc(), &options, &matcher));
    HK_CHECK(matcher == NULL);
}

HK_TEST(without_memory_there_is_no_matcher)
{
    char bytes[600];
    hk_bytes_t program = eight_programs(bytes, "", "/a", "*");
    HK_EACH_FAILING_ALLOCATION {
        hk_matcher_t *matcher = NULL;
        hk_matcher_options_t options = {
            .type = HK_BYTES("urlpattern"), .pattern = HK_BYTES("/a"), .kind = HK_MATCHER_URL, .program = program};
        hk_status_t status = hk_matcher_new(hk_test_alloc(), &options, &matcher);
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        HK_CHECK((matcher == NULL) == hk_test_failed());
        hk_matcher_release(matcher);
    }
}
