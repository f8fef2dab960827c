/* Which queues are told of: how much is compared for it. */
#include "hk_broker_report_private.h"
#include "hk_test.h"

#include <stdio.h>
#include <stdlib.h>

enum { QUEUES = 20000, KEY_MOST = 8 };

/* In disorder, by a number that has no common divisor with theirs. */
static hk_queue_t **make_queues(void)
{
    hk_queue_t **queues = hk_alloc_zeroed(hk_test_alloc(), QUEUES, sizeof(*queues));
    for (uint32_t i = 0; i < QUEUES; i++) {
        queues[i] = hk_alloc_zeroed(hk_test_alloc(), 1, sizeof(*queues[i]) + KEY_MOST);
        queues[i]->number = i * 7919 % QUEUES;
        queues[i]->key_length = (uint16_t)(1 + snprintf(queues[i]->key + 1, KEY_MOST - 1, "%05u", queues[i]->number));
    }
    return queues;
}

static void free_queues(hk_queue_t **queues)
{
    for (size_t i = 0; i < QUEUES; i++) {
        hk_alloc_free(hk_test_alloc(), queues[i]);
    }
    hk_alloc_free(hk_test_alloc(), queues);
}

HK_TEST(the_first_by_name_are_picked_in_order_with_few_comparisons)
{
    static const struct {
        size_t most, depth;
    } picks[] = {{0, 0}, {1, 0}, {2, 1}, {100, 7}, {10000, 14}, {QUEUES, 15}};
    hk_queue_t **queues = make_queues();
    for (size_t i = 0; i < sizeof(picks) / sizeof(picks[0]); i++) {
        hk_pick_t pick = {.most = picks[i].most};
        pick.queues = hk_alloc_zeroed(hk_test_alloc(), picks[i].most + 1, sizeof(*pick.queues));
        for (size_t j = 0; j < QUEUES; j++) {
            hk_pick_add(&pick, queues[j]);
        }
        hk_pick_sort(&pick);
        HK_CHECK_EQUAL_UINT(picks[i].most, pick.count);
        for (size_t j = 0; j < pick.count; j++) {
            HK_CHECK_EQUAL_UINT(j, pick.queues[j]->number);
        }
        /* One to see whether it is among the first, two on each step down: for each that came, and for each in order. */
        HK_CHECK(pick.compared <= QUEUES * (1 + 2 * picks[i].depth) + 2 * picks[i].most * picks[i].depth);
        hk_alloc_free(hk_test_alloc(), pick.queues);
    }
    free_queues(queues);
}
