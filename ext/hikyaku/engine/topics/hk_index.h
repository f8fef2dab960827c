/* hk_index.h: finds the matchers that select a topic without looking at the others.
 *
 * Exact matchers are found by hash; URL patterns by their fixed origin and leading path, URI Templates by their
 * literal beginning, one hash look-up for each length of prefix in use. Adding or removing one touches no other.
 *
 * Which patterns select a topic is remembered in the topic (hk_topic_t.matches), with the generation until which that
 * is known. A new pattern raises the generation: the next look-up of a topic tests only the patterns that are newer
 * than what it knows. A removed one is recognised by its slot's serial. So neither flushes anything.
 *
 *     generation      ... 17        18        19
 *     patterns added      /a/:id    /b/:id    /a/1
 *     topic /a/1: known until 17 ──► tests /b/:id and /a/1 only (those whose anchor could select it)
 */
#ifndef HK_INDEX_H
#define HK_INDEX_H

#include "hk_alloc.h"
#include "hk_map.h"
#include "hk_matcher.h"
#include "hk_program.h"
#include "hk_status.h"
#include "hk_topic.h"

/* Part of what is indexed (a feed). Its members are the index's. */
typedef struct hk_index_entry {
    hk_matcher_t *matcher; /* kept while it is indexed */
    struct hk_index_entry *next, *previous;
    void *place;
    uint32_t slot, serial;
    uint64_t added; /* generation */
} hk_index_entry_t;

typedef struct hk_index hk_index_t;

/* secret  random, for the hashes. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_index_new(const hk_alloc_t *alloc, const uint64_t secret[2], hk_index_t **index);

/* Frees the index, not the entries; those that are still in it must be there, for it lets go of their matchers. NULL is
 * allowed. */
void hk_index_free(hk_index_t *index);

/* Adds an entry for a matcher, which it keeps; entries with equal matchers may be there. Amortised O(1), beside the
 * different lengths of prefixes that are in use. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_index_add(hk_index_t *index, hk_index_entry_t *entry, hk_matcher_t *matcher);

/* Removes an entry that is in the index, and lets go of its matcher. O(1), likewise. */
void hk_index_remove(hk_index_t *index, hk_index_entry_t *entry);

/* What matching costs: see hk_matcher_options_t. Of all entries. */
uint64_t hk_index_cost(const hk_index_t *index);

/* Of those entries that the most costly topic is compared with that one with this matcher is compared with: whose
 * beginnings begin its own, and, one way, those that its own begins. O(its beginning). */
uint64_t hk_index_cost_beside(const hk_index_t *index, const hk_matcher_t *matcher);

/* How many steps of programs hk_index_each takes now for a topic, about, at most. O(1) hash look-ups. */
uint64_t hk_index_steps(const hk_index_t *index, const hk_topic_t *topic);

/* What hk_index_each would find out about a topic that it has not seen, in pieces: between them others may use and
 * change the index. The topic knows when the last piece is done. */
typedef struct hk_index_survey {
    const hk_alloc_t *alloc;
    hk_topic_t *topic;
    uint64_t generation;
    hk_topic_match_t *list; /* the first `found` match, those from `done` on are to be tested */
    size_t found, done, count, capacity;
} hk_index_survey_t;

/* HK_OK, or HK_NO_MEMORY (nothing is to be ended). O(patterns that are found by the topic's beginning). */
hk_status_t hk_index_survey_begin(const hk_index_t *index, hk_topic_t *topic, hk_index_survey_t *survey);

/* Tests patterns until about so many steps were taken, and one more than fits, and takes them off. true: all are
 * tested, those that came meanwhile, too; the topic knows them until it was looked up once, unless there is no
 * memory. */
bool hk_index_survey_step(hk_index_t *index, hk_index_survey_t *survey, uint64_t *steps);

/* Also one that was not finished. */
void hk_index_survey_end(hk_index_survey_t *survey);

/* Calls `found` once for each entry whose matcher selects the topic; it must not change the index.
 *
 * When there is no memory to remember in the topic what was found, or more patterns than HK_TOPIC_MATCHES were, they
 * are found again the next time: nothing is lost.
 *
 * O(entries that match + patterns that are newer than what the topic knows). For a topic never seen, or not for long:
 * a hash look-up for each length of prefix in use, and the patterns that these lead to. */
void hk_index_each(hk_index_t *index, hk_topic_t *topic, void (*found)(void *context, hk_index_entry_t *entry),
                   void *context);

#endif
