#include "hk_index_costs.h"
#include "hk_test.h"

#include <string.h>

/* What patterns cost that a topic can lead to. */

HK_TEST(the_heaviest_way_through_a_beginning_is_found_whatever_came_first)
{
    hk_index_costs_t costs = {.alloc = hk_test_alloc()};
    HK_CHECK_EQUAL_UINT(0, hk_index_costs_through(&costs, HK_BYTES("/a")));
    HK_CHECK_OK(hk_index_costs_add(&costs, HK_BYTES("/books/1/"), 7));
    HK_CHECK_OK(hk_index_costs_add(&costs, HK_BYTES("/books/2/"), 2));
    HK_CHECK_OK(hk_index_costs_add(&costs, HK_BYTES("/cars/"), 3));
    HK_CHECK_EQUAL_UINT(7, hk_index_costs_through(&costs, HK_BYTES("")));
    HK_CHECK_EQUAL_UINT(7, hk_index_costs_through(&costs, HK_BYTES("/boo")));
    HK_CHECK_EQUAL_UINT(2, hk_index_costs_through(&costs, HK_BYTES("/books/2")));
    HK_CHECK_EQUAL_UINT(0, hk_index_costs_through(&costs, HK_BYTES("/bo/")));
    HK_CHECK_OK(hk_index_costs_add(&costs, HK_BYTES("/books/"), 10));
    HK_CHECK_OK(hk_index_costs_add(&costs, HK_BYTES(""), 5));
    HK_CHECK_EQUAL_UINT(22, hk_index_costs_through(&costs, HK_BYTES("/")));
    HK_CHECK_EQUAL_UINT(17, hk_index_costs_through(&costs, HK_BYTES("/books/2/3")));
    HK_CHECK_EQUAL_UINT(8, hk_index_costs_through(&costs, HK_BYTES("/c")));
    hk_index_costs_remove(&costs, HK_BYTES("/books/1/"), 7);
    HK_CHECK_EQUAL_UINT(17, hk_index_costs_through(&costs, HK_BYTES("/")));
    hk_index_costs_release(&costs);
}

enum { ROUNDS = 4000, LIVE = 24, MOST = 6 };

typedef struct one {
    char text[MOST + 1];
    uint64_t cost; /* 0: nothing */
} one_t;

static void write_random(char text[MOST + 1])
{
    size_t length = hk_test_below(MOST + 1);
    for (size_t i = 0; i < length; i++) {
        text[i] = (char)('a' + hk_test_below(2));
    }
    text[length] = '\0';
}

/* Tries each text that is long enough. */
static uint64_t expected(const one_t ones[LIVE], const char *beginning)
{
    uint64_t most = 0;
    for (unsigned bits = 0; bits < 1 << MOST; bits++) {
        char text[MOST + 1] = "";
        for (size_t i = 0; i < MOST; i++) {
            text[i] = (char)('a' + (bits >> i & 1));
        }
        uint64_t cost = 0;
        for (size_t i = 0; i < LIVE; i++) {
            cost += strncmp(text, ones[i].text, strlen(ones[i].text)) == 0 ? ones[i].cost : 0;
        }
        most = cost > most && strncmp(text, beginning, strlen(beginning)) == 0 ? cost : most;
    }
    return most;
}

HK_TEST(it_agrees_with_trying_each_text_and_leaves_no_memory)
{
    hk_index_costs_t costs = {.alloc = hk_test_alloc()};
    one_t ones[LIVE] = {{"", 0}};
    for (size_t round = 0; round < ROUNDS; round++) {
        one_t *one = &ones[hk_test_below(LIVE)];
        if (one->cost > 0) {
            hk_index_costs_remove(&costs, hk_test_text(one->text), one->cost);
            one->cost = 0;
        } else {
            write_random(one->text);
            uint64_t cost = 1 + hk_test_below(9);
            one->cost = hk_index_costs_add(&costs, hk_test_text(one->text), cost) == HK_OK ? cost : 0;
        }
        char beginning[MOST + 1];
        write_random(beginning);
        HK_CHECK_EQUAL_UINT(expected(ones, beginning), hk_index_costs_through(&costs, hk_test_text(beginning)));
    }
    for (size_t i = 0; i < LIVE; i++) {
        if (ones[i].cost > 0) {
            hk_index_costs_remove(&costs, hk_test_text(ones[i].text), ones[i].cost);
        }
    }
    HK_CHECK(costs.root == NULL);
}
