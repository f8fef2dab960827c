#include "hk_gate_support.h"

#include "hk_gate_table.h"

static const uint64_t SECRET[2] = {5, 6};

static hk_gate_table_t table_of(size_t max_bytes)
{
    hk_gate_table_t table;
    hk_gate_table_init(&table, hk_test_alloc(), max_bytes, SECRET);
    return table;
}

static void add(hk_gate_table_t *table, const char *key, const char *head, const char *subject)
{
    hk_grant_t *grant = grant_of("/a", "", subject, HK_NEVER);
    HK_CHECK(grant != NULL);
    HK_CHECK_OK(hk_gate_table_add(table, hk_test_text(key), hk_test_text(head), grant));
    hk_grant_release(grant);
}

static bool has(hk_gate_table_t *table, const char *key)
{
    return hk_gate_table_find(table, hk_test_text(key)) != NULL;
}

HK_TEST(a_decision_is_found_by_its_whole_key)
{
    hk_gate_table_t table = table_of(1 << 16);
    HK_CHECK(!has(&table, "one"));
    add(&table, "one", "head 1", "alice");
    add(&table, "ones", "head 2", "bob");
    add(&table, "", "head 3", "");
    hk_gate_entry_t *entry = hk_gate_table_find(&table, HK_BYTES("one"));
    HK_CHECK(entry != NULL);
    HK_CHECK_BYTES("head 1", entry->head);
    HK_CHECK_BYTES("alice", entry->grant->subject);
    HK_CHECK_BYTES("head 2", hk_gate_table_find(&table, HK_BYTES("ones"))->head);
    HK_CHECK_BYTES("head 3", hk_gate_table_find(&table, HK_BYTES(""))->head);
    HK_CHECK(!has(&table, "on") && !has(&table, "onet") && !has(&table, "One"));
    HK_CHECK_EQUAL_UINT(3, hk_gate_table_count(&table));
    hk_gate_table_release(&table);
}

HK_TEST(a_new_decision_takes_the_place_of_the_former)
{
    hk_gate_table_t table = table_of(1 << 16);
    add(&table, "one", "head 1", "alice");
    size_t bytes = hk_gate_table_bytes(&table);
    add(&table, "one", "head 2", "alice");
    HK_CHECK_EQUAL_UINT(1, hk_gate_table_count(&table));
    HK_CHECK_EQUAL_UINT(bytes, hk_gate_table_bytes(&table));
    HK_CHECK_BYTES("head 2", hk_gate_table_find(&table, HK_BYTES("one"))->head);
    hk_gate_table_remove(&table, hk_gate_table_find(&table, HK_BYTES("one")));
    HK_CHECK(!has(&table, "one"));
    HK_CHECK_EQUAL_UINT(0, hk_gate_table_count(&table));
    HK_CHECK_EQUAL_UINT(0, hk_gate_table_bytes(&table));
    hk_gate_table_release(&table);
}

HK_TEST(the_decisions_about_a_subject_are_forgotten_in_both_generations)
{
    hk_gate_table_t table = table_of(1 << 16);
    add(&table, "probe", "", "alice");
    size_t one = hk_gate_table_bytes(&table);
    hk_gate_table_release(&table);

    table = table_of(8 * one);
    char key[] = "key 0";
    for (key[4] = '0'; key[4] < '6'; key[4]++) {
        add(&table, key, "", key[4] % 2 == 0 ? "alice" : "bobby");
    }
    HK_CHECK(table.old.first != NULL && table.young.first != NULL);
    hk_gate_table_forget(&table, HK_BYTES("alice"));
    for (key[4] = '0'; key[4] < '6'; key[4]++) {
        HK_CHECK_EQUAL_INT(key[4] % 2 == 1, has(&table, key));
    }
    hk_gate_table_forget(&table, HK_BYTES("bob"));
    HK_CHECK_EQUAL_UINT(3, hk_gate_table_count(&table));
    hk_gate_table_forget(&table, HK_BYTES(""));
    HK_CHECK_EQUAL_UINT(0, hk_gate_table_count(&table));
    HK_CHECK_EQUAL_UINT(0, hk_gate_table_bytes(&table));
    hk_gate_table_release(&table);
}

enum { MAX_BYTES = 20000 };

HK_TEST(the_table_stays_within_its_bytes_and_keeps_what_is_asked_for)
{
    hk_gate_table_t table = table_of(MAX_BYTES);
    add(&table, "favourite", "head", "alice");
    for (size_t i = 0; i < 2000; i++) {
        char key[200];
        sprintf(key, "%zu%*s", i, (int)hk_test_below(150), "");
        add(&table, key, "head", "bob");
        HK_CHECK(hk_gate_table_bytes(&table) <= MAX_BYTES);
        HK_CHECK(has(&table, key));
        if (i % 5 == 0) {
            HK_CHECK(has(&table, "favourite"));
        }
    }
    HK_CHECK(hk_gate_table_count(&table) > 10);
    HK_CHECK(!has(&table, "0"));
    /* What the allocator itself adds to each block is counted too. */
    HK_CHECK(hk_test_bytes_in_use() <= MAX_BYTES + 2048);
    hk_gate_table_release(&table);
}

HK_TEST(a_decision_too_large_for_a_generation_is_not_kept_and_drives_nobody_out)
{
    static char large[MAX_BYTES];
    memset(large, 'x', sizeof(large) - 1);
    hk_gate_table_t table = table_of(MAX_BYTES);
    add(&table, "small", "", "alice");
    add(&table, "one", "", "alice");
    add(&table, large, "", "alice");
    HK_CHECK(has(&table, "small") && !has(&table, large));
    add(&table, "one", large, "alice");
    HK_CHECK(has(&table, "small") && !has(&table, "one"));
    HK_CHECK_EQUAL_UINT(1, hk_gate_table_count(&table));
    hk_gate_table_release(&table);

    table = table_of(0);
    add(&table, "one", "", "alice");
    HK_CHECK_EQUAL_UINT(0, hk_gate_table_count(&table));
    hk_gate_table_release(&table);
}

HK_TEST(a_decision_that_fills_a_generation_is_kept)
{
    hk_gate_table_t table = table_of(1 << 16);
    add(&table, "one", "head", "alice");
    size_t bytes = hk_gate_table_bytes(&table);
    hk_gate_table_release(&table);
    for (size_t less = 0; less < 3; less++) {
        table = table_of(2 * bytes - less);
        add(&table, "one", "head", "alice");
        HK_CHECK_EQUAL_INT(less == 0, has(&table, "one"));
        hk_gate_table_release(&table);
    }
}

HK_TEST(decisions_share_what_a_large_matcher_takes)
{
    static char pattern[3000];
    memset(pattern, 'x', sizeof(pattern) - 1);
    hk_gate_table_t table = table_of(1 << 16);
    add(&table, "small", "", "alice");
    size_t small = hk_gate_table_bytes(&table);
    hk_matcher_options_t exact = {
        .type = HK_BYTES("exact"), .pattern = hk_test_text(pattern), .kind = HK_MATCHER_EXACT};
    hk_matcher_t *matcher;
    HK_CHECK_OK(hk_matcher_new(hk_test_alloc(), &exact, &matcher));
    hk_grant_subscription_t subscription = {.matcher = matcher};
    const hk_grant_options_t granted[] = {
        {.subscriptions = &subscription, .subscription_count = 1},
        {.reads = &matcher, .read_count = 1},
        {.publishes = &matcher, .publish_count = 1},
    };
    for (size_t i = 0; i < 3; i++) {
        hk_grant_t *grant;
        HK_CHECK_OK(hk_grant_new(hk_test_alloc(), &granted[i], &grant));
        size_t before = hk_gate_table_bytes(&table);
        HK_CHECK_OK(hk_gate_table_add(&table, hk_bytes(&"abc"[i], 1), HK_BYTES(""), grant));
        size_t share = hk_gate_table_bytes(&table) - before;
        HK_CHECK(share > small + (sizeof(pattern) - 100) / (i + 1));
        HK_CHECK(i < 2 || share < small + sizeof(pattern));
        hk_grant_release(grant);
    }
    hk_matcher_release(matcher);
    hk_gate_table_release(&table);
}

HK_TEST(without_memory_the_former_decision_stays)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_gate_table_t table = table_of(1 << 16);
        hk_grant_t *grant = grant_of("/a", "", "alice", HK_NEVER);
        if (grant != NULL) {
            hk_status_t first = hk_gate_table_add(&table, HK_BYTES("key"), HK_BYTES("first"), grant);
            hk_status_t second = hk_gate_table_add(&table, HK_BYTES("key"), HK_BYTES("second"), grant);
            HK_CHECK(first == HK_OK || first == HK_NO_MEMORY);
            HK_CHECK(second == HK_OK || second == HK_NO_MEMORY);
            hk_gate_entry_t *entry = hk_gate_table_find(&table, HK_BYTES("key"));
            HK_CHECK_EQUAL_INT(first == HK_OK || second == HK_OK, entry != NULL);
            HK_CHECK_EQUAL_UINT(1 + (entry != NULL), grant->references);
            if (entry != NULL) {
                HK_CHECK_BYTES(second == HK_OK ? "second" : "first", entry->head);
            }
        }
        hk_grant_release(grant);
        hk_gate_table_release(&table);
    }
}
