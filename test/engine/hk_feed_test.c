#include "hk_test.h"

#include "hk_feed.h"

static hk_feed_t *feed_since(hk_position_t since)
{
    hk_feed_t *feed;
    HK_CHECK_OK(hk_feed_new(hk_test_alloc(), since, &feed));
    return feed;
}

/* -- Positions ----------------------------------------------------------------------------------------------------- */

HK_TEST(a_new_feed_knows_that_there_is_nothing)
{
    hk_feed_t *feed = feed_since(11);
    HK_CHECK(hk_feed_covers(feed, 10));
    HK_CHECK(!hk_feed_covers(feed, 9));
    HK_CHECK_EQUAL_UINT(HK_POSITION_NONE, hk_feed_after(feed, 10));
    HK_CHECK_EQUAL_UINT(10, hk_feed_until(feed, 10));
    HK_CHECK_EQUAL_UINT(10, hk_feed_until(feed, 99));
    hk_feed_free(feed);
    hk_feed_free(NULL);
}

HK_TEST(the_same_position_again_is_ignored)
{
    hk_feed_t *feed = feed_since(1);
    HK_CHECK(hk_feed_append(feed, 5, 1));
    HK_CHECK(!hk_feed_append(feed, 5, 1));
    HK_CHECK(hk_feed_append(feed, 6, 1));
    HK_CHECK_EQUAL_UINT(2, feed->position_count);
    hk_feed_free(feed);
}

HK_TEST(the_positions_about_a_cursor_are_found)
{
    hk_feed_t *feed = feed_since(40);
    for (hk_position_t at = 42; at < 60; at += 3) {
        hk_feed_append(feed, at, 1);
    }
    for (hk_position_t cursor = 39; cursor < 62; cursor++) {
        hk_test_note("cursor %d", (int)cursor);
        hk_position_t until = cursor < 42 ? 39 : cursor >= 57 ? 57 : 42 + (cursor - 42) / 3 * 3;
        hk_position_t after = cursor < 42 ? 42 : cursor >= 57 ? HK_POSITION_NONE : until + 3;
        HK_CHECK_EQUAL_UINT(until, hk_feed_until(feed, cursor));
        HK_CHECK_EQUAL_UINT(after, hk_feed_after(feed, cursor));
    }
    hk_feed_free(feed);
}

HK_TEST(a_feed_that_is_full_forgets_its_older_half)
{
    hk_feed_t *feed = feed_since(1);
    for (hk_position_t at = 1; at <= HK_FEED_LIMIT; at++) {
        hk_feed_append(feed, 2 * at, 1);
    }
    HK_CHECK_EQUAL_UINT(1, feed->since);
    hk_feed_append(feed, 5000, 1);
    HK_CHECK_EQUAL_UINT(HK_FEED_LIMIT + 1, feed->since);
    HK_CHECK_EQUAL_UINT(HK_FEED_LIMIT / 2 + 1, feed->position_count);
    HK_CHECK(!hk_feed_covers(feed, HK_FEED_LIMIT - 1));
    HK_CHECK_EQUAL_UINT(HK_FEED_LIMIT + 2, hk_feed_after(feed, HK_FEED_LIMIT));
    HK_CHECK_EQUAL_UINT(HK_FEED_LIMIT, hk_feed_until(feed, HK_FEED_LIMIT + 1));
    hk_feed_free(feed);
}

HK_TEST(a_feed_does_not_grow_for_what_the_log_has_dropped)
{
    hk_feed_t *feed = feed_since(1);
    for (hk_position_t at = 1; at <= 100000; at++) {
        hk_position_t oldest = at > 10 ? at - 10 : 1;
        hk_feed_append(feed, at, oldest);
        HK_CHECK(feed->since <= oldest);
    }
    HK_CHECK(feed->position_capacity <= 32);
    HK_CHECK_EQUAL_UINT(99991, hk_feed_after(feed, 99990));
    hk_feed_free(feed);
}

HK_TEST(without_memory_a_feed_knows_less_and_says_so)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_feed_t *feed;
        hk_status_t status = hk_feed_new(hk_test_alloc(), 1, &feed);
        if (status == HK_OK) {
            for (hk_position_t at = 1; at <= 200; at++) {
                HK_CHECK(hk_feed_append(feed, at, 1));
            }
            HK_CHECK_EQUAL_UINT(200, feed->newest);
            HK_CHECK_EQUAL_UINT(200 - feed->position_count + 1, feed->since);
            HK_CHECK_EQUAL_UINT(feed->since, hk_feed_after(feed, feed->since - 1));
            hk_feed_free(feed);
        }
    }
}

/* -- Members ------------------------------------------------------------------------------------------------------- */

HK_TEST(members_stay_dense_whoever_leaves)
{
    enum { MOST = 500 };
    static uint32_t places[MOST]; /* of member i, + 1; 0: it is not there */
    static char somebody[MOST];
    hk_feed_t *feed = feed_since(1);
    memset(places, 0, sizeof(places));
    size_t count = 0, most = 0;
    for (size_t round = 0; round < 20000; round++) {
        size_t i = hk_test_below(round < 15000 ? MOST : 20);
        if (places[i] == 0 && (round / 1000) % 2 == 0) {
            hk_member_t member = {(hk_subscriber_t *)(void *)&somebody[i], (uint32_t)i};
            HK_CHECK_OK(hk_feed_link(feed, member, &places[i]));
            places[i]++;
            count++;
        } else if (places[i] != 0 && (round / 1000) % 2 == 1) {
            hk_member_t moved = hk_feed_unlink(feed, places[i] - 1);
            if (moved.subscriber != NULL) {
                places[moved.subscription] = places[i];
            }
            places[i] = 0;
            count--;
        }
        most = count > most ? count : most;
        HK_CHECK_EQUAL_UINT(count, feed->member_count);
    }
    for (size_t i = 0; i < MOST; i++) {
        if (places[i] != 0) {
            HK_CHECK(feed->members[places[i] - 1].subscriber == (hk_subscriber_t *)(void *)&somebody[i]);
        }
    }
    HK_CHECK(most > 100);
    for (size_t i = 0; i < MOST; i++) {
        if (places[i] != 0) {
            hk_member_t moved = hk_feed_unlink(feed, places[i] - 1);
            if (moved.subscriber != NULL) {
                places[moved.subscription] = places[i];
            }
        }
    }
    HK_CHECK_EQUAL_UINT(0, feed->member_count);
    HK_CHECK(feed->member_capacity <= 16);
    hk_feed_free(feed);
}

HK_TEST(a_member_for_whom_there_is_no_memory_is_not_there)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_feed_t *feed;
        uint32_t place;
        size_t count = 0;
        if (hk_feed_new(hk_test_alloc(), 1, &feed) == HK_OK) {
            for (uint32_t i = 0; i < 30; i++) {
                if (hk_feed_link(feed, (hk_member_t){(hk_subscriber_t *)(void *)feed, i}, &place) == HK_OK) {
                    HK_CHECK_EQUAL_UINT(count, place);
                    count++;
                }
            }
            HK_CHECK(hk_test_failed() || count == 30);
            HK_CHECK_EQUAL_UINT(count, feed->member_count);
            while (feed->member_count > 0) {
                (void)hk_feed_unlink(feed, 0);
            }
            hk_feed_free(feed);
        }
    }
}
