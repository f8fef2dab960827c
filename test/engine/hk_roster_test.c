#include "hk_test.h"

#include "hk_roster.h"
#include "hk_subscriber.h"

enum { MOST = 200 };

HK_TEST(a_number_names_one_subscriber_and_then_nobody)
{
    hk_roster_t roster;
    hk_subscriber_t *subscribers[MOST] = {NULL};
    uint64_t gone[MOST] = {0};
    hk_roster_init(&roster, hk_test_alloc());
    size_t count = 0;
    for (size_t round = 0; round < 5000; round++) {
        size_t i = hk_test_below(MOST);
        if (subscribers[i] == NULL) {
            HK_CHECK_OK(hk_subscriber_new(hk_test_alloc(), 1, false, &subscribers[i]));
            HK_CHECK_OK(hk_roster_add(&roster, subscribers[i]));
            HK_CHECK(subscribers[i]->serial != 0);
            count++;
        } else {
            gone[i] = subscribers[i]->serial;
            hk_roster_remove(&roster, subscribers[i]);
            hk_subscriber_free(hk_test_alloc(), subscribers[i]);
            subscribers[i] = NULL;
            count--;
        }
        size_t j = hk_test_below(MOST);
        HK_CHECK(subscribers[j] == NULL || hk_roster_find(&roster, subscribers[j]->serial) == subscribers[j]);
        HK_CHECK(hk_roster_find(&roster, gone[j]) == NULL);
        HK_CHECK_EQUAL_UINT(count, roster.count);
    }
    size_t seen = 0;
    uint64_t before = 0;
    for (hk_subscriber_t *next = NULL; (next = hk_roster_next(&roster, next)) != NULL; seen++) {
        HK_CHECK(hk_roster_find(&roster, next->serial) == next);
        HK_CHECK(next->serial > before); /* in the order in which they came */
        before = next->serial;
    }
    HK_CHECK_EQUAL_UINT(count, seen);
    for (size_t i = 0; i < MOST; i++) {
        if (subscribers[i] != NULL) {
            hk_subscriber_free(hk_test_alloc(), subscribers[i]);
        }
    }
    hk_roster_release(&roster);
}

HK_TEST(places_are_used_again)
{
    hk_roster_t roster;
    hk_subscriber_t *subscriber;
    hk_roster_init(&roster, hk_test_alloc());
    HK_CHECK_OK(hk_subscriber_new(hk_test_alloc(), 1, false, &subscriber));
    for (size_t i = 0; i < 1000; i++) {
        HK_CHECK_OK(hk_roster_add(&roster, subscriber));
        hk_roster_remove(&roster, subscriber);
    }
    HK_CHECK_EQUAL_UINT(1, roster.seat_count);
    hk_subscriber_free(hk_test_alloc(), subscriber);
    hk_roster_release(&roster);
}

HK_TEST(another_object_takes_the_number_and_the_place_of_one)
{
    hk_roster_t roster;
    hk_subscriber_t *subscribers[4];
    hk_roster_init(&roster, hk_test_alloc());
    for (size_t i = 0; i < 4; i++) {
        HK_CHECK_OK(hk_subscriber_new(hk_test_alloc(), 1, false, &subscribers[i]));
        if (i < 3) {
            HK_CHECK_OK(hk_roster_add(&roster, subscribers[i]));
        }
    }
    subscribers[3]->serial = subscribers[1]->serial;
    hk_roster_replace(&roster, subscribers[1], subscribers[3]);
    HK_CHECK(hk_roster_find(&roster, subscribers[3]->serial) == subscribers[3]);
    HK_CHECK(hk_roster_next(&roster, subscribers[0]) == subscribers[3]);
    HK_CHECK(hk_roster_next(&roster, subscribers[3]) == subscribers[2]);
    HK_CHECK_EQUAL_UINT(3, roster.count);
    hk_roster_remove(&roster, subscribers[3]);
    HK_CHECK(hk_roster_next(&roster, subscribers[0]) == subscribers[2]);
    for (size_t i = 0; i < 4; i++) {
        hk_subscriber_free(hk_test_alloc(), subscribers[i]);
    }
    hk_roster_release(&roster);
}

HK_TEST(what_a_delivery_looks_at_lies_within_one_cache_line)
{
    hk_subscriber_t *subscribers[MOST];
    for (size_t i = 0; i < MOST; i++) {
        HK_CHECK_OK(hk_subscriber_new(hk_alloc_default(), i % 4, i % 2 == 1, &subscribers[i]));
        HK_CHECK((uintptr_t)subscribers[i] % 64 <= 32);
    }
    for (size_t i = 0; i < MOST; i++) {
        hk_subscriber_free(hk_alloc_default(), subscribers[i]);
    }
}
