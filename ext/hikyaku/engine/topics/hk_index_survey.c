#include "hk_index_private.h"

/* What a pattern costs besides its steps: to find it, and to compare texts. */
enum { STEPS_A_PATTERN = 16 };

static uint64_t steps_of(const hk_topic_t *topic, uint64_t cost)
{
    return cost * (hk_topic_value(topic).length + 1);
}

static bool is_recent(const hk_index_t *index, const hk_topic_t *topic)
{
    return topic->matched_until > 0 && index->generation - topic->matched_until <= HK_INDEX_RECENT;
}

uint64_t hk_index_steps(const hk_index_t *index, const hk_topic_t *topic)
{
    uint64_t cost = 0;
    if (index->cost == 0) {
        return 0;
    }
    if (is_recent(index, topic)) {
        for (uint64_t generation = topic->matched_until + 1; generation <= index->generation; generation++) {
            const hk_index_entry_t *entry = hk_index_entry_of(index, index->recent[generation % HK_INDEX_RECENT]);
            cost += entry != NULL ? entry->matcher->cost : 0;
        }
        return steps_of(topic, cost);
    }
    cost = hk_index_group_cost(&index->texts, hk_topic_value(topic));
    if (topic->is_url) {
        hk_bytes_t path = topic->url.parts[HK_URL_PATHNAME];
        const hk_index_group_t *of_origin = hk_index_group_of(index, topic->url.origin);
        cost += of_origin != NULL ? hk_index_group_cost(of_origin, path) : 0;
        cost += hk_index_group_cost(&index->anywhere, path);
    }
    return steps_of(topic, cost);
}

/* --- surveys ------------------------------------------------------------------------------------------------------ */

typedef struct collection {
    hk_index_survey_t *survey;
    uint64_t newer_than; /* generation */
    hk_status_t status;
} collection_t;

static void collect(void *context, hk_index_entry_t *entry)
{
    collection_t *collection = context;
    hk_index_survey_t *survey = collection->survey;
    if (entry->added <= collection->newer_than) {
        return;
    }
    if (collection->status == HK_OK && survey->count == survey->capacity) {
        size_t capacity = survey->capacity > 0 ? 2 * survey->capacity : 64;
        hk_topic_match_t *list = hk_alloc_resize(survey->alloc, survey->list, capacity, sizeof(*list));
        if (list == NULL) {
            collection->status = HK_NO_MEMORY;
            return;
        }
        survey->list = list;
        survey->capacity = capacity;
    }
    if (collection->status == HK_OK) {
        survey->list[survey->count++] = (hk_topic_match_t){.slot = entry->slot, .serial = entry->serial};
    }
}

hk_status_t hk_index_survey_begin(const hk_index_t *index, hk_topic_t *topic, hk_index_survey_t *survey)
{
    hk_index_survey_t begun = {.alloc = index->alloc, .topic = hk_topic_retain(topic), .generation = index->generation};
    collection_t collection = {&begun, 0, HK_OK};
    hk_index_each_candidate(index, topic, collect, &collection);
    if (collection.status != HK_OK) {
        hk_index_survey_end(&begun);
        return collection.status;
    }
    *survey = begun;
    return HK_OK;
}

static void record(const hk_index_survey_t *survey)
{
    hk_topic_t *topic = survey->topic;
    if (topic->matched_until >= survey->generation) {
        return;
    }
    if (survey->found > topic->match_capacity) {
        hk_topic_match_t *matches = hk_alloc_resize(topic->alloc, topic->matches, survey->found, sizeof(*matches));
        if (matches == NULL) {
            return;
        }
        topic->matches = matches;
        topic->match_capacity = (uint32_t)survey->found;
    }
    for (size_t i = 0; i < survey->found; i++) {
        topic->matches[i] = survey->list[i];
    }
    topic->match_count = (uint32_t)survey->found;
    topic->matched_until = survey->generation;
}

static void test_some(hk_index_t *index, hk_index_survey_t *survey, uint64_t *steps)
{
    for (; *steps > 0 && survey->done < survey->count; survey->done++) {
        hk_topic_match_t candidate = survey->list[survey->done];
        const hk_index_entry_t *entry = hk_index_entry_of(index, candidate);
        if (entry == NULL) {
            continue;
        }
        uint64_t taken = steps_of(survey->topic, entry->matcher->cost) + STEPS_A_PATTERN;
        *steps -= taken < *steps ? taken : *steps;
        if (hk_matcher_match(entry->matcher, &index->space, survey->topic)) {
            survey->list[survey->found++] = candidate;
        }
    }
}

bool hk_index_survey_step(hk_index_t *index, hk_index_survey_t *survey, uint64_t *steps)
{
    for (;;) {
        test_some(index, survey, steps);
        if (survey->done < survey->count) {
            return false;
        }
        if (survey->generation == index->generation) {
            record(survey);
            return true;
        }
        collection_t collection = {survey, survey->generation, HK_OK};
        survey->generation = index->generation;
        hk_index_each_candidate(index, survey->topic, collect, &collection);
        if (collection.status != HK_OK) {
            return true;
        }
    }
}

void hk_index_survey_end(hk_index_survey_t *survey)
{
    hk_topic_release(survey->topic);
    hk_alloc_free(survey->alloc, survey->list);
    *survey = (hk_index_survey_t){0};
}
