#include "hk_index_private.h"

enum { FEW_MATCHES = 4 };

/* What a topic may remember of a survey for good: more than HK_TOPIC_MATCHES, for to find it again costs more. */
enum { MOST_MATCHES = 1024 };

typedef struct hk_search {
    hk_index_t *index;
    hk_topic_t *topic;
    hk_index_visit_t found;
    void *context;
    bool remembers;
} hk_search_t;

static bool reserve_match(hk_topic_t *topic)
{
    if (topic->match_count < topic->match_capacity) {
        return true;
    }
    uint32_t capacity = topic->match_capacity > 0 ? 2 * topic->match_capacity : FEW_MATCHES;
    if (capacity > HK_TOPIC_MATCHES) {
        return false;
    }
    hk_topic_match_t *matches = hk_alloc_resize(topic->alloc, topic->matches, capacity, sizeof(*matches));
    if (matches == NULL) {
        return false;
    }
    topic->matches = matches;
    topic->match_capacity = capacity;
    return true;
}

static void test(void *context, hk_index_entry_t *entry)
{
    hk_search_t *search = context;
    hk_topic_t *topic = search->topic;
    if (!hk_matcher_match(entry->matcher, &search->index->space, topic)) {
        return;
    }
    search->remembers = search->remembers && reserve_match(topic);
    if (search->remembers) {
        topic->matches[topic->match_count++] = (hk_topic_match_t){.slot = entry->slot, .serial = entry->serial};
    }
    search->found(search->context, entry);
}

/* Finds what the topic remembers, and forgets what was removed. */
static void recall(const hk_search_t *search)
{
    hk_topic_t *topic = search->topic;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < topic->match_count; i++) {
        hk_topic_match_t match = topic->matches[i];
        hk_index_entry_t *entry = hk_index_entry_of(search->index, match);
        if (entry != NULL) {
            topic->matches[kept++] = match;
            search->found(search->context, entry);
        }
    }
    topic->match_count = kept;
}

/* Tests the patterns that are newer than what the topic knows. */
static void catch_up(hk_search_t *search)
{
    const hk_index_t *index = search->index;
    for (uint64_t generation = search->topic->matched_until + 1; generation <= index->generation; generation++) {
        hk_index_entry_t *entry = hk_index_entry_of(index, index->recent[generation % HK_INDEX_RECENT]);
        if (entry != NULL) {
            test(search, entry);
        }
    }
}

void hk_index_each_candidate(const hk_index_t *index, const hk_topic_t *topic, hk_index_visit_t visit, void *context)
{
    hk_index_group_visit(&index->texts, hk_topic_value(topic), visit, context);
    if (!topic->is_url) {
        return;
    }
    hk_bytes_t path = topic->url.parts[HK_URL_PATHNAME];
    const hk_index_group_t *of_origin = hk_index_group_of(index, topic->url.origin);
    if (of_origin != NULL) {
        hk_index_group_visit(of_origin, path, visit, context);
    }
    hk_index_group_visit(&index->anywhere, path, visit, context);
}

static void find_patterns(hk_search_t *search)
{
    hk_topic_t *topic = search->topic;
    uint64_t newest = search->index->generation;
    uint32_t known = 0;
    uint64_t known_until = 0;
    if (topic->matched_until > 0 && newest - topic->matched_until <= HK_INDEX_RECENT) {
        recall(search);
        known = topic->match_count;
        known_until = topic->matched_until;
        catch_up(search);
    } else {
        topic->match_count = 0;
        hk_index_each_candidate(search->index, topic, test, search);
    }
    /* What could not be remembered whole is found again the next time. */
    topic->matched_until = search->remembers ? newest : known_until;
    topic->match_count = search->remembers ? topic->match_count : known;
}

static void forget_much(hk_topic_t *topic)
{
    if (topic->match_capacity > MOST_MATCHES) {
        hk_alloc_free(topic->alloc, topic->matches);
        topic->matches = NULL;
        topic->match_capacity = topic->match_count = 0;
        topic->matched_until = 0;
    }
}

void hk_index_each(hk_index_t *index, hk_topic_t *topic, void (*found)(void *context, hk_index_entry_t *entry),
                   void *context)
{
    hk_index_visit(&index->all, found, context);
    const hk_index_place_t *exact = (const hk_index_place_t *)hk_map_find(&index->exact, hk_topic_value(topic));
    if (exact != NULL) {
        hk_index_visit(exact, found, context);
    }
    if (index->pattern_count > 0) {
        hk_search_t search = {.index = index, .topic = topic, .found = found, .context = context, .remembers = true};
        find_patterns(&search);
        forget_much(topic);
    }
}
