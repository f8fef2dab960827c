/* Many messages are brought into the order of their ids, with memory and without. */
#include "hk_broker_private.h"
#include "hk_test.h"

#include <stdlib.h>

static int by_id(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* What comes out has the same ids, in order; `requests`: for memory, at most. */
static void check(const uint64_t *ids, size_t count, size_t requests)
{
    hk_message_t *messages = hk_alloc_zeroed(hk_test_alloc(), count + 1, sizeof(*messages));
    uint64_t *expected = hk_alloc_zeroed(hk_test_alloc(), count + 1, sizeof(*expected));
    for (size_t i = 0; i < count; i++) {
        messages[i].id = expected[i] = ids[i];
        messages[i].next = i + 1 < count ? &messages[i + 1] : NULL;
    }
    qsort(expected, count, sizeof(*expected), by_id);
    size_t before = hk_test_requests();
    hk_message_t *sorted = hk_messages_sorted(hk_test_alloc(), count == 0 ? NULL : messages);
    HK_CHECK(hk_test_requests() - before <= requests);
    for (size_t i = 0; i < count; i++) {
        HK_CHECK(sorted != NULL);
        HK_CHECK_EQUAL_UINT(expected[i], sorted->id);
        sorted = sorted->next;
    }
    HK_CHECK(sorted == NULL);
    hk_alloc_free(hk_test_alloc(), expected);
    hk_alloc_free(hk_test_alloc(), messages);
}

enum { MOST = 5000 };

static uint64_t ids[MOST];

/* Each id once: those of a hash table that is gone through, say. */
static void shuffle(size_t count, uint64_t first, uint64_t step)
{
    for (size_t i = 0; i < count; i++) {
        ids[i] = first + i * step;
    }
    for (size_t i = count; i > 1; i--) {
        size_t other = hk_test_below(i);
        uint64_t id = ids[i - 1];
        ids[i - 1] = ids[other];
        ids[other] = id;
    }
}

HK_TEST(ids_that_follow_each_other_and_those_far_apart_come_into_order)
{
    static const size_t counts[] = {0, 1, 2, 3, 255, 256, 257, 2048, MOST};
    static const uint64_t steps[] = {1, 2, 2047, 2048, UINT64_C(1) << 33, UINT64_MAX / MOST};
    static const uint64_t firsts[] = {0, 1, 2047, UINT64_C(0xFFFFFFFF)};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        for (size_t j = 0; j < sizeof(steps) / sizeof(steps[0]); j++) {
            for (size_t k = 0; k < sizeof(firsts) / sizeof(firsts[0]); k++) {
                shuffle(counts[i], firsts[k], steps[j]);
                check(ids, counts[i], 1);
            }
        }
    }
    for (size_t i = 0; i < MOST; i++) {
        ids[i] = hk_test_random();
    }
    ids[7] = UINT64_MAX;
    ids[4000] = 0;
    check(ids, MOST, 1);
}

HK_TEST(few_and_those_that_are_in_order_need_no_memory)
{
    for (size_t i = 0; i < MOST; i++) {
        ids[i] = i * i;
    }
    check(ids, MOST, 0);
    shuffle(255, 9, 3);
    check(ids, 255, 0);
}

HK_TEST(without_memory_they_come_into_order_too)
{
    shuffle(MOST, 12, 5);
    HK_EACH_FAILING_ALLOCATION {
        hk_message_t *messages = calloc(MOST, sizeof(*messages));
        for (size_t i = 0; i < MOST; i++) {
            messages[i].id = ids[i];
            messages[i].next = i + 1 < MOST ? &messages[i + 1] : NULL;
        }
        uint64_t expected = 12;
        for (hk_message_t *each = hk_messages_sorted(hk_test_alloc(), messages); each != NULL; each = each->next) {
            HK_CHECK_EQUAL_UINT(expected, each->id);
            expected += 5;
        }
        HK_CHECK_EQUAL_UINT(12 + 5 * MOST, expected);
        free(messages);
    }
}
