#include "hk_index.h"
#include "hk_index_private.h"
#include "hk_test.h"

#include <stdio.h>

#include "patterns.h"

static const uint64_t secret[2] = {3, 4};

static hk_index_t *new_index(void)
{
    hk_index_t *index;
    HK_CHECK_OK(hk_index_new(hk_test_alloc(), secret, &index));
    return index;
}

/* The index keeps the matcher as long as it needs it. */
static void add(hk_index_t *index, hk_index_entry_t *entry, hk_matcher_t *matcher)
{
    HK_CHECK_OK(hk_index_add(index, entry, matcher));
    HK_CHECK(entry->matcher == matcher);
    hk_matcher_release(matcher);
}

enum { MANY = 1200 };

/* Which of the entries were found, and how often. */
typedef struct found {
    hk_index_entry_t *entries;
    size_t times[MANY], count;
} found_t;

static void note_found(void *context, hk_index_entry_t *entry)
{
    found_t *found = context;
    found->times[entry - found->entries]++;
    found->count++;
}

static size_t count_found(hk_index_t *index, hk_topic_t *topic, hk_index_entry_t *entries)
{
    static found_t found;
    memset(&found, 0, sizeof(found));
    found.entries = entries;
    hk_index_each(index, topic, note_found, &found);
    return found.count;
}

/* Every entry that matches is found once, and no other. */
static void check_found(hk_index_t *index, hk_topic_t *topic, hk_index_entry_t *entries, size_t count)
{
    static found_t found;
    memset(&found, 0, sizeof(found));
    found.entries = entries;
    hk_index_each(index, topic, note_found, &found);
    hk_program_space_t space;
    hk_program_space_init(&space, hk_test_alloc());
    size_t expected = 0;
    for (size_t i = 0; i < count; i++) {
        const hk_matcher_t *matcher = entries[i].matcher;
        bool matches = matcher != NULL && hk_program_space_reserve(&space, matcher->instructions) == HK_OK &&
                       hk_matcher_match(matcher, &space, topic);
        hk_bytes_t value = hk_topic_value(topic), pattern = matcher != NULL ? matcher->pattern : HK_BYTES("none");
        hk_test_note("%.*s about %.*s", (int)pattern.length, pattern.at, (int)value.length, value.at);
        HK_CHECK_EQUAL_UINT(matches, found.times[i]);
        expected += matches;
    }
    HK_CHECK_EQUAL_UINT(expected, found.count);
    hk_program_space_release(&space);
}

static hk_matcher_t *wildcard(const char *type)
{
    return made_matcher(
        &(hk_matcher_options_t){.type = hk_test_text(type), .pattern = HK_BYTES("*"), .kind = HK_MATCHER_ALL});
}

static const char *const topics_of_many_kinds[] = {
    "https://hub.example.com/a", "https://hub.example.com/a/b", "/a", "/a/b", "/",     "/b",   "/b/x/y",
    "https://other.com/a",       "http://other.com:81/a/b?c",   "a",  "",     "urn:x", "/a?q", "/a#f",
    "https://hub.example.com/"};
enum { TOPICS = sizeof(topics_of_many_kinds) / sizeof(topics_of_many_kinds[0]) };

static size_t add_many_kinds(hk_index_t *index, hk_index_entry_t *entries)
{
    static const char *const origins[] = {"https://hub.example.com", "https://other.com", "http://other.com:81", NULL};
    static const char *const paths[] = {"/a", "/:", "/a/:", "/*", "/a/*", "/b/:/y", "*", "", "/a/b"};
    static const char *const texts[] = {"/a", "/:", "*", ":", "https://hub.example.com/:", "https://*", "", "/a*"};
    size_t count = 0;
    add(index, &entries[count++], wildcard("exact"));
    add(index, &entries[count++], wildcard("urlpattern"));
    for (size_t i = 0; i < TOPICS; i++) {
        add(index, &entries[count++], exact_matcher(topics_of_many_kinds[i]));
        /* Of the same pattern: an old matcher without variables. */
        add(index, &entries[count++],
            made_matcher(&(hk_matcher_options_t){.type = HK_BYTES("uri_template"),
                                                 .pattern = hk_test_text(topics_of_many_kinds[i]),
                                                 .kind = HK_MATCHER_EXACT}));
    }
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        for (size_t j = 0; j < 4; j++) {
            add(index, &entries[count++], url_matcher(origins[j], paths[i]));
        }
    }
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        add(index, &entries[count++], text_matcher(texts[i], texts[i]));
    }
    return count;
}

HK_TEST(a_topic_finds_the_entries_whose_matcher_selects_it_each_once_and_no_others)
{
    static hk_index_entry_t entries[MANY];
    hk_index_t *index = new_index();
    size_t count = add_many_kinds(index, entries);
    for (size_t i = 0; i < TOPICS; i++) {
        hk_topic_t *topic = topic_of(topics_of_many_kinds[i]);
        check_found(index, topic, entries, count);
        check_found(index, topic, entries, count);
        hk_topic_release(topic);
    }
    hk_index_free(index);
    hk_index_free(NULL);
}

HK_TEST(what_is_removed_is_not_found_and_the_others_still_are)
{
    static hk_index_entry_t entries[MANY];
    hk_topic_t *topics[TOPICS];
    for (size_t i = 0; i < TOPICS; i++) {
        topics[i] = topic_of(topics_of_many_kinds[i]);
    }
    hk_index_t *index = new_index();
    size_t blocks = hk_test_blocks();
    size_t count = add_many_kinds(index, entries);
    for (size_t left = count; left > 0; left--) {
        size_t i = hk_test_below(count);
        while (entries[i].matcher == NULL) {
            i = (i + 1) % count;
        }
        hk_index_remove(index, &entries[i]);
        HK_CHECK(entries[i].matcher == NULL);
        for (size_t j = left % 5; j < TOPICS; j += 5) {
            check_found(index, topics[j], entries, count);
        }
    }
    for (size_t i = 0; i < TOPICS; i++) {
        hk_topic_release(topics[i]);
    }
    /* Tables stay: of exact places, origins and two groups, two lists of lengths, slots, two of the space. */
    HK_CHECK(hk_test_blocks() <= blocks - TOPICS + 9);
    hk_index_free(index);
}

/* -- What topics remember ------------------------------------------------------------------------------------------ */

/* Each run of a general program takes a stamp for each offset. */
static uint32_t runs_of_program(const hk_index_t *index)
{
    return index->space.stamp;
}

HK_TEST(a_topic_that_is_known_runs_no_program_and_takes_no_memory)
{
    static hk_index_entry_t entries[3];
    hk_index_t *index = new_index();
    hk_topic_t *topic = topic_of("/a/1/x");
    add(index, &entries[0], url_matcher("https://hub.example.com", "/a/:/x"));
    add(index, &entries[1], url_matcher("https://hub.example.com", "/a/:/y"));
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    HK_CHECK_EQUAL_UINT(14, runs_of_program(index));
    size_t requests = hk_test_requests();
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    HK_CHECK_EQUAL_UINT(14, runs_of_program(index));
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    /* A new pattern is the only one that is run. */
    add(index, &entries[2], url_matcher(NULL, "/a/:/x"));
    HK_CHECK_EQUAL_UINT(2, count_found(index, topic, entries));
    HK_CHECK_EQUAL_UINT(21, runs_of_program(index));
    hk_index_remove(index, &entries[0]);
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    HK_CHECK_EQUAL_UINT(21, runs_of_program(index));
    hk_topic_release(topic);
    hk_index_free(index);
}

HK_TEST(a_pattern_in_the_place_of_a_removed_one_is_not_taken_for_it)
{
    static hk_index_entry_t entries[2];
    hk_index_t *index = new_index();
    hk_topic_t *topic = topic_of("/a/1");
    add(index, &entries[0], url_matcher("https://hub.example.com", "/a/:"));
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    hk_index_remove(index, &entries[0]);
    add(index, &entries[0], url_matcher("https://hub.example.com", "/b/:"));
    HK_CHECK_EQUAL_UINT(0, count_found(index, topic, entries));
    hk_index_remove(index, &entries[0]);
    HK_CHECK_EQUAL_UINT(0, count_found(index, topic, entries));
    add(index, &entries[1], url_matcher("https://hub.example.com", "/a/:"));
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    hk_topic_release(topic);
    hk_index_free(index);
}

HK_TEST(patterns_that_come_and_go_take_no_more_room_than_those_that_are_there)
{
    static hk_index_entry_t entries[16];
    hk_index_t *index = new_index();
    for (size_t i = 0; i < 16; i++) {
        add(index, &entries[i], url_matcher("https://hub.example.com", "/a/:"));
    }
    for (size_t i = 0; i < 1000; i++) {
        hk_index_remove(index, &entries[i * 5 % 16]);
        add(index, &entries[i * 5 % 16], url_matcher("https://other.com", "/a/:"));
    }
    HK_CHECK_EQUAL_UINT(16, index->slot_count);
    HK_CHECK_EQUAL_UINT(16, index->slot_capacity);
    HK_CHECK_EQUAL_UINT(16, index->pattern_count);
    HK_CHECK_EQUAL_UINT(1, index->origins.count);
    hk_index_free(index);
}

HK_TEST(a_topic_that_was_not_asked_for_while_many_patterns_came_and_went_finds_them)
{
    static hk_index_entry_t entries[200];
    for (size_t missed = HK_INDEX_RECENT - 3; missed < HK_INDEX_RECENT + 4; missed++) {
        hk_index_t *index = new_index();
        hk_topic_t *topic = topic_of("/a/1");
        add(index, &entries[0], url_matcher("https://hub.example.com", "/a/:"));
        check_found(index, topic, entries, 1);
        for (size_t i = 1; i <= missed; i++) {
            add(index, &entries[i], url_matcher(i % 3 ? "https://hub.example.com" : NULL, i % 20 ? "/b/:" : "/a/:"));
        }
        hk_index_remove(index, &entries[20]);
        hk_index_remove(index, &entries[1]);
        check_found(index, topic, entries, missed + 1);
        check_found(index, topic, entries, missed + 1);
        hk_topic_release(topic);
        hk_index_free(index);
    }
}

HK_TEST(a_topic_that_more_patterns_select_than_it_remembers_finds_them_all_every_time)
{
    static hk_index_entry_t entries[MANY];
    hk_index_t *index = new_index();
    hk_topic_t *topic = topic_of("/a/1");
    for (size_t i = 0; i < 200; i++) {
        add(index, &entries[i], url_matcher("https://hub.example.com", "/a/:"));
        HK_CHECK_EQUAL_UINT(i + 1, count_found(index, topic, entries));
        HK_CHECK_EQUAL_UINT(i + 1, count_found(index, topic, entries));
        HK_CHECK(topic->match_capacity <= HK_TOPIC_MATCHES);
    }
    /* And remembers again when they are fewer. */
    for (size_t i = 0; i < 200 - HK_TOPIC_MATCHES; i++) {
        hk_index_remove(index, &entries[i]);
        HK_CHECK_EQUAL_UINT(199 - i, count_found(index, topic, entries));
    }
    HK_CHECK_EQUAL_UINT(index->generation, topic->matched_until);
    HK_CHECK_EQUAL_UINT(HK_TOPIC_MATCHES, topic->match_count);
    hk_topic_release(topic);
    hk_index_free(index);
}

/* Steps that a pattern costs in these tests, for each byte. */
enum { COST = 10 };

static hk_matcher_t *costly(size_t number)
{
    char path[40];
    snprintf(path, sizeof(path), "/*%zu*", number);
    hk_matcher_t *matcher = url_matcher("https://hub.example.com", path);
    matcher->cost = COST;
    return matcher;
}

HK_TEST(a_topic_is_matched_in_pieces_while_patterns_come_and_go)
{
    static hk_index_entry_t entries[MANY];
    hk_index_t *index = new_index();
    for (size_t i = 0; i < 300; i++) {
        add(index, &entries[i], costly(i));
    }
    HK_CHECK_EQUAL_UINT(300 * COST, hk_index_cost(index));
    hk_topic_t *topic = topic_of("/1-22-133");
    HK_CHECK_EQUAL_UINT(300 * COST * 10, hk_index_steps(index, topic));
    hk_index_survey_t survey;
    HK_CHECK_OK(hk_index_survey_begin(index, topic, &survey));
    size_t pieces = 1;
    while (!hk_index_survey_step(index, &survey, &(uint64_t){1000})) {
        if (++pieces == 3) {
            hk_index_remove(index, &entries[1]);
            hk_index_remove(index, &entries[299]);
            add(index, &entries[300], costly(33));
            add(index, &entries[301], costly(77));
        }
    }
    hk_index_survey_end(&survey);
    HK_CHECK_EQUAL_UINT(34, pieces);
    HK_CHECK_EQUAL_UINT(0, hk_index_steps(index, topic));
    check_found(index, topic, entries, 302);
    HK_CHECK_EQUAL_UINT(0, hk_index_steps(index, topic));
    check_found(index, topic, entries, 302);
    /* Somebody else was faster. */
    hk_topic_t *other = topic_of("/133");
    HK_CHECK_OK(hk_index_survey_begin(index, other, &survey));
    check_found(index, other, entries, 302);
    HK_CHECK(hk_index_survey_step(index, &survey, &(uint64_t){UINT64_MAX}));
    hk_index_survey_end(&survey);
    check_found(index, other, entries, 302);
    hk_topic_release(topic);
    hk_topic_release(other);
    hk_index_free(index);
}

HK_TEST(a_survey_remembers_more_than_a_topic_does_by_itself_and_ends_early_or_without_memory)
{
    static hk_index_entry_t entries[MANY];
    hk_index_t *index = new_index();
    for (size_t i = 0; i < 200; i++) {
        hk_matcher_t *matcher = url_matcher("https://hub.example.com", "/a*");
        matcher->cost = COST;
        add(index, &entries[i], matcher);
    }
    hk_topic_t *topic = topic_of("/a1");
    hk_index_survey_t survey;
    HK_CHECK_OK(hk_index_survey_begin(index, topic, &survey));
    HK_CHECK(!hk_index_survey_step(index, &survey, &(uint64_t){1}));
    hk_index_survey_end(&survey);
    HK_CHECK_OK(hk_index_survey_begin(index, topic, &survey));
    HK_CHECK(hk_index_survey_step(index, &survey, &(uint64_t){UINT64_MAX}));
    hk_index_survey_end(&survey);
    HK_CHECK_EQUAL_UINT(0, hk_index_steps(index, topic));
    check_found(index, topic, entries, 200);
    hk_index_remove(index, &entries[7]);
    check_found(index, topic, entries, 200);
    hk_topic_release(topic);
    hk_index_free(index);
}

HK_TEST(patterns_with_other_leading_paths_cost_a_new_topic_nothing)
{
    static hk_index_entry_t entries[1000];
    hk_index_t *index = new_index();
    for (size_t i = 0; i < 1000; i++) {
        char path[40];
        snprintf(path, sizeof(path), "/books/%zu/:/x", i);
        add(index, &entries[i], url_matcher("https://hub.example.com", path));
    }
    hk_topic_t *topic = topic_of("/books/77/1/x"), *other = topic_of("https://other.com/books/77/1/x");
    HK_CHECK_EQUAL_UINT(1, count_found(index, topic, entries));
    HK_CHECK_EQUAL_UINT(14, runs_of_program(index));
    HK_CHECK_EQUAL_UINT(0, count_found(index, other, entries));
    HK_CHECK_EQUAL_UINT(14, runs_of_program(index));
    const hk_index_group_t *group = hk_index_group_of(index, HK_BYTES("https://hub.example.com"));
    HK_CHECK_EQUAL_UINT(3, group->length_count);
    hk_topic_release(topic);
    hk_topic_release(other);
    hk_index_free(index);
}

/* -- A model ------------------------------------------------------------------------------------------------------- */

static hk_matcher_t *random_matcher(void)
{
    static const char *const origins[] = {"https://hub.example.com", "https://other.com", NULL};
    static const char *const pieces[] = {"/", "/a", "/b", "/:", "/*", "a", ":", "*"};
    char pattern[64] = "/";
    for (size_t left = hk_test_below(5); left > 0; left--) {
        strcat(pattern, pieces[hk_test_below(8)]);
    }
    switch (hk_test_below(8)) {
    case 0:
        return wildcard("exact");
    case 1:
        return exact_matcher(pattern);
    case 2:
    case 3:
        return text_matcher(pattern, pattern);
    default:
        return url_matcher(origins[hk_test_below(3)], pattern);
    }
}

static hk_topic_t *random_topic(void)
{
    static const char *const pieces[] = {"/", "/a", "/b", "a", "b", "/aa"};
    char value[64];
    strcpy(value, hk_test_below(3) == 0 ? "https://other.com/" : hk_test_below(20) == 0 ? "" : "/");
    for (size_t left = hk_test_below(6); left > 0; left--) {
        strcat(value, pieces[hk_test_below(6)]);
    }
    return topic_of(value);
}

HK_TEST(random_additions_removals_and_topics_find_what_a_scan_finds)
{
    enum { ENTRIES = 150, SEEN = 40 };
    static hk_index_entry_t entries[ENTRIES];
    memset(entries, 0, sizeof(entries));
    hk_topic_t *topics[SEEN];
    for (size_t i = 0; i < SEEN; i++) {
        topics[i] = random_topic();
    }
    hk_index_t *index = new_index();
    for (size_t step = 0; step < 4000; step++) {
        size_t changes = hk_test_below(40) == 0 ? 100 : hk_test_below(4);
        for (; changes > 0; changes--) {
            hk_index_entry_t *entry = &entries[hk_test_below(ENTRIES)];
            if (entry->matcher != NULL) {
                hk_index_remove(index, entry);
            } else if (hk_test_below(3) > 0) {
                add(index, entry, random_matcher());
            }
        }
        size_t seen = hk_test_below(SEEN);
        if (hk_test_below(10) == 0) {
            hk_topic_release(topics[seen]);
            topics[seen] = random_topic();
        }
        check_found(index, topics[seen], entries, ENTRIES);
    }
    for (size_t i = 0; i < SEEN; i++) {
        hk_topic_release(topics[i]);
    }
    hk_index_free(index);
}

HK_TEST(prefixes_of_many_lengths_are_counted)
{
    enum { LENGTHS = 300 };
    static hk_index_entry_t entries[MANY];
    char path[LENGTHS + 10];
    hk_index_t *index = new_index();
    hk_topic_t *topic;
    memset(path, '/', sizeof(path));
    for (size_t i = 0; i < 2 * LENGTHS; i++) {
        size_t length = 1 + i * 7 % LENGTHS;
        memcpy(path + length, "*", 2);
        add(index, &entries[i], url_matcher(NULL, path));
        path[length] = path[length + 1] = '/';
    }
    HK_CHECK_EQUAL_UINT(LENGTHS, index->anywhere.length_count);
    for (size_t i = 1; i < LENGTHS; i++) {
        HK_CHECK(index->anywhere.lengths[i - 1].length < index->anywhere.lengths[i].length);
    }
    path[LENGTHS / 2] = '\0';
    char value[LENGTHS + 30] = "https://a.com";
    strcat(value, path);
    topic = topic_of(value);
    check_found(index, topic, entries, 2 * LENGTHS);
    for (size_t i = 0; i < 2 * LENGTHS; i++) {
        hk_index_remove(index, &entries[i]);
    }
    HK_CHECK_EQUAL_UINT(0, index->anywhere.length_count);
    HK_CHECK_EQUAL_UINT(0, count_found(index, topic, entries));
    hk_topic_release(topic);
    hk_index_free(index);
}

/* -- Without memory ------------------------------------------------------------------------------------------------ */

HK_TEST(without_memory_nothing_is_added_and_nothing_is_lost)
{
    enum { ENTRIES = 24 };
    static hk_matcher_t *matchers[ENTRIES];
    for (size_t i = 0; i < ENTRIES; i++) {
        char path[40];
        snprintf(path, sizeof(path), "/%zu/:/x", i / 2);
        const char *origins[] = {"https://hub.example.com", "https://other.com", NULL};
        matchers[i] = i % 4 == 0   ? exact_matcher(path)
                      : i % 4 == 1 ? text_matcher(path, path)
                                   : url_matcher(origins[i % 3], path);
    }
    HK_EACH_FAILING_ALLOCATION {
        hk_index_entry_t entries[ENTRIES] = {{.matcher = NULL}};
        hk_index_t *index = NULL;
        hk_status_t status = hk_index_new(hk_test_alloc(), secret, &index);
        HK_CHECK_STATUS(index == NULL ? HK_NO_MEMORY : HK_OK, status);
        for (size_t i = 0; index != NULL && i < ENTRIES; i++) {
            uint64_t generation = index->generation;
            size_t origins = index->origins.count, exact = index->exact.count;
            status = hk_index_add(index, &entries[i], matchers[i]);
            HK_CHECK(status == HK_OK || (status == HK_NO_MEMORY && hk_test_failed() && entries[i].matcher == NULL));
            HK_CHECK(status == HK_OK || (index->generation == generation && index->origins.count == origins &&
                                         index->exact.count == exact));
        }
        for (size_t i = 0; i < ENTRIES; i += 3) {
            if (entries[i].matcher != NULL) {
                hk_index_remove(index, &entries[i]);
            }
        }
        hk_index_free(index);
    }
    for (size_t i = 0; i < ENTRIES; i++) {
        HK_CHECK_EQUAL_UINT(1, matchers[i]->references);
        hk_matcher_release(matchers[i]);
    }
}

HK_TEST(without_memory_to_remember_a_topic_finds_all_the_same)
{
    static hk_index_entry_t entries[30];
    hk_index_t *index = new_index();
    for (size_t i = 0; i < 10; i++) {
        add(index, &entries[i], url_matcher("https://hub.example.com", "/a/:"));
    }
    HK_EACH_FAILING_ALLOCATION {
        hk_topic_t *topic = NULL;
        hk_url_t hub = test_hub(), url;
        HK_CHECK_OK(hk_topic_split(HK_BYTES("/a/1"), &hub, &url));
        if (hk_topic_new(hk_test_alloc(), HK_BYTES("/a/1"), &url, false, &topic) == HK_OK) {
            HK_CHECK_EQUAL_UINT(10, count_found(index, topic, entries));
            HK_CHECK_EQUAL_UINT(10, count_found(index, topic, entries));
        }
        hk_topic_release(topic);
    }
    hk_topic_t *topic = topic_of("/a/1");
    for (size_t i = 10; i < 30; i++) {
        add(index, &entries[i], url_matcher("https://hub.example.com", "/a/:"));
        hk_test_failing(0);
        HK_CHECK_EQUAL_UINT(i + 1, count_found(index, topic, entries));
        hk_test_not_failing();
        HK_CHECK_EQUAL_UINT(i + 1, count_found(index, topic, entries));
    }
    hk_topic_release(topic);
    hk_index_free(index);
}
