#include "hk_test.h"

#include "hk_heap.h"

/* Every node knows its place, and none is due before its parent. */
static void check(const hk_heap_t *heap)
{
    for (size_t i = 0; i < heap->count; i++) {
        HK_CHECK_EQUAL_UINT(i + 1, heap->nodes[i]->place);
        HK_CHECK(i == 0 || heap->nodes[(i - 1) / 2]->at <= heap->nodes[i]->at);
    }
}

HK_TEST(an_empty_heap_has_no_first_and_no_memory)
{
    hk_heap_t heap;
    hk_heap_node_t node = {0};
    hk_heap_init(&heap, hk_test_alloc());
    HK_CHECK(hk_heap_first(&heap) == NULL);
    HK_CHECK(!hk_heap_holds(&node));
    hk_heap_remove(&heap, &node);
    HK_CHECK_EQUAL_UINT(0, heap.count);
    HK_CHECK_EQUAL_UINT(0, hk_test_requests());
    hk_heap_release(&heap);
}

HK_TEST(the_first_is_what_is_due_first)
{
    static const int64_t times[] = {5, -3, INT64_MAX, 0, INT64_MIN, 5, 7};
    static const int64_t sorted[] = {INT64_MIN, -3, 0, 5, 5, 7, INT64_MAX};
    enum { COUNT = sizeof(times) / sizeof(*times) };
    hk_heap_node_t nodes[COUNT] = {{0}};
    hk_heap_t heap;
    hk_heap_init(&heap, hk_test_alloc());
    for (size_t i = 0; i < COUNT; i++) {
        HK_CHECK_OK(hk_heap_add(&heap, &nodes[i], times[i]));
        HK_CHECK(hk_heap_holds(&nodes[i]));
    }
    for (size_t i = 0; i < COUNT; i++) {
        hk_heap_node_t *first = hk_heap_first(&heap);
        HK_CHECK_EQUAL_INT(sorted[i], first->at);
        hk_heap_remove(&heap, first);
        HK_CHECK(!hk_heap_holds(first));
        check(&heap);
    }
    HK_CHECK(hk_heap_first(&heap) == NULL);
    hk_heap_release(&heap);
}

HK_TEST(what_takes_the_place_of_a_removed_node_may_have_to_rise)
{
    /*        0
     *     10    1
     *   11 12  2  3      without 11, the 3 moves below the 10 and belongs above it */
    static const int64_t times[] = {0, 10, 1, 11, 12, 2, 3};
    hk_heap_node_t nodes[7] = {{0}};
    hk_heap_t heap;
    hk_heap_init(&heap, hk_test_alloc());
    for (size_t i = 0; i < 7; i++) {
        HK_CHECK_OK(hk_heap_add(&heap, &nodes[i], times[i]));
    }
    hk_heap_remove(&heap, &nodes[3]);
    check(&heap);
    HK_CHECK_EQUAL_UINT(2, nodes[6].place);
    hk_heap_release(&heap);
}

HK_TEST(a_node_that_was_removed_can_be_added_again_and_is_removed_once)
{
    hk_heap_node_t nodes[2] = {{0}};
    hk_heap_t heap;
    hk_heap_init(&heap, hk_test_alloc());
    HK_CHECK_OK(hk_heap_add(&heap, &nodes[0], 1));
    HK_CHECK_OK(hk_heap_add(&heap, &nodes[1], 2));
    hk_heap_remove(&heap, &nodes[0]);
    hk_heap_remove(&heap, &nodes[0]);
    HK_CHECK_EQUAL_UINT(1, heap.count);
    HK_CHECK_OK(hk_heap_add(&heap, &nodes[0], 3));
    HK_CHECK(hk_heap_first(&heap) == &nodes[1]);
    hk_heap_release(&heap);
}

HK_TEST(random_operations_do_as_a_search_of_all_nodes_does)
{
    enum { COUNT = 200 };
    static hk_heap_node_t nodes[COUNT];
    memset(nodes, 0, sizeof(nodes));
    hk_heap_t heap;
    hk_heap_init(&heap, hk_test_alloc());
    for (int i = 0; i < 20000; i++) {
        hk_heap_node_t *node = &nodes[hk_test_below(COUNT)];
        if (hk_heap_holds(node)) {
            hk_heap_remove(&heap, node);
        } else {
            HK_CHECK_OK(hk_heap_add(&heap, node, (int64_t)hk_test_below(100) - 50));
        }
        size_t count = 0;
        int64_t least = INT64_MAX;
        for (size_t j = 0; j < COUNT; j++) {
            if (hk_heap_holds(&nodes[j])) {
                count++;
                least = nodes[j].at < least ? nodes[j].at : least;
            }
        }
        HK_CHECK_EQUAL_UINT(count, heap.count);
        HK_CHECK(count == 0 ? hk_heap_first(&heap) == NULL : hk_heap_first(&heap)->at == least);
        check(&heap);
    }
    hk_heap_release(&heap);
}

HK_TEST(without_memory_a_node_is_not_added_and_the_heap_is_as_it_was)
{
    enum { COUNT = 100 };
    HK_EACH_FAILING_ALLOCATION {
        hk_heap_node_t nodes[COUNT] = {{0}};
        hk_heap_t heap;
        hk_heap_init(&heap, hk_test_alloc());
        size_t added = 0;
        for (size_t i = 0; i < COUNT; i++) {
            hk_status_t status = hk_heap_add(&heap, &nodes[i], (int64_t)(i * 37 % COUNT));
            HK_CHECK(status == HK_OK || (status == HK_NO_MEMORY && hk_test_failed()));
            HK_CHECK_EQUAL_INT(status == HK_OK, hk_heap_holds(&nodes[i]));
            added += status == HK_OK;
            HK_CHECK_EQUAL_UINT(added, heap.count);
        }
        check(&heap);
        hk_heap_release(&heap);
    }
}
