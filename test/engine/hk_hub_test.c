#include "hk_hub_fixture.h"

HK_TEST(an_update_reaches_whoever_subscribes_to_its_topic_and_nobody_else)
{
    fixture_t f;
    reader_t reader, other, all, below;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/b"});
    fixture_subscribe(&f, &all, &(wish_t){.matches = "*"});
    fixture_subscribe(&f, &below, &(wish_t){.matches = "/a/*"});
    fixture_publish(&f, "/a", "one");
    fixture_publish(&f, "/a/1", "two");
    HK_CHECK_BYTES("one", fixture_data(&f, &reader));
    HK_CHECK_BYTES("", fixture_data(&f, &other));
    HK_CHECK_BYTES("one two", fixture_data(&f, &all));
    HK_CHECK_BYTES("two", fixture_data(&f, &below));
    fixture_end(&f);
}

HK_TEST(an_update_with_alternates_reaches_their_subscribers_each_once)
{
    fixture_t f;
    reader_t both, alternate;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &both, &(wish_t){.matches = "/a /b *"});
    fixture_subscribe(&f, &alternate, &(wish_t){.matches = "/b"});
    fixture_publish(&f, "/a /b /c", "one");
    HK_CHECK_BYTES("one", fixture_data(&f, &both));
    HK_CHECK_BYTES("one", fixture_data(&f, &alternate));
    HK_CHECK_EQUAL_UINT(1, both.writes);
    fixture_end(&f);
}

HK_TEST(updates_of_several_matchers_arrive_in_the_order_of_publishing)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /b /c /*"});
    const char *topics[] = {"/c", "/a", "/b", "/x", "/a", "/c", "/c", "/b"};
    for (size_t i = 0; i < 8; i++) {
        fixture_publish(&f, topics[i], (char[]){(char)('0' + i), '\0'});
    }
    HK_CHECK_BYTES("0 1 2 3 4 5 6 7", fixture_data(&f, &reader));
    HK_CHECK_EQUAL_UINT(1, reader.writes);
    fixture_end(&f);
}

HK_TEST(the_bytes_are_those_of_the_event)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    hk_log_update_t update = {
        .data = HK_BYTES("two\nlines"), .id = HK_BYTES("urn:1"), .type = HK_BYTES("note"), .retry_ms = 5};
    HK_CHECK_OK(fixture_try_publish(&f, "/a", update));
    HK_CHECK_BYTES("urn:1", hk_test_text(f.id));
    fixture_drain(&f);
    HK_CHECK_BYTES("event: note\nretry: 5\nid: urn:1\ndata: two\ndata: lines\n\n", hk_buf_bytes(&reader.received));
    HK_CHECK_BYTES("urn:1", hk_hub_last_event_id(f.hub));
    fixture_end(&f);
}

HK_TEST(private_updates_reach_only_those_whose_grant_covers_one_of_the_topics)
{
    fixture_t f;
    reader_t granted, alternate, stranger, wide;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &granted, &(wish_t){.matches = "/a", .reads = "/a"});
    fixture_subscribe(&f, &alternate, &(wish_t){.matches = "/a", .reads = "/users/1"});
    fixture_subscribe(&f, &stranger, &(wish_t){.matches = "/a", .reads = "/b"});
    fixture_subscribe(&f, &wide, &(wish_t){.matches = "/a /b", .reads = "/users/*"});
    fixture_publish(&f, "/a", "public");
    fixture_publish_privately(&f, "/a /users/1", "secret");
    fixture_publish(&f, "/a", "later");
    HK_CHECK_BYTES("public secret later", fixture_data(&f, &granted));
    HK_CHECK_BYTES("public secret later", fixture_data(&f, &alternate));
    HK_CHECK_BYTES("public later", fixture_data(&f, &stranger));
    HK_CHECK_BYTES("public secret later", fixture_data(&f, &wide));
    fixture_publish_privately(&f, "/a", "alone");
    HK_CHECK_BYTES("public secret later alone", fixture_data(&f, &granted));
    HK_CHECK_BYTES("public later", fixture_data(&f, &stranger));
    HK_CHECK_EQUAL_UINT(hk_log_head(hk_hub_log(f.hub)), hk_subscriber_cursor(stranger.subscriber));
    fixture_end(&f);
}

/* Another grant may get the memory of one that was let go of: where the allocator gives it the same place at once. */
HK_TEST(what_was_gathered_for_a_grant_ends_with_it)
{
    fixture_t f;
    reader_t granted, stranger, other;
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/a", "before");
    char before[80];
    strcpy(before, f.id);
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a", .shut = true});
    fixture_subscribe(&f, &granted, &(wish_t){.matches = "/a", .reads = "/a"});
    fixture_publish_privately(&f, "/a", "secret");
    fixture_drain(&f);
    const hk_grant_t *old = hk_subscriber_grant(granted.subscriber);
    fixture_unsubscribe(&f, &granted);
    for (size_t i = 0; i < 10; i++) {
        fixture_subscribe(&f, &stranger, &(wish_t){.matches = "/a", .reads = "/b", .cursor = before});
        bool same = hk_subscriber_grant(stranger.subscriber) == old;
        HK_CHECK_BYTES("", fixture_data(&f, &stranger));
        fixture_unsubscribe(&f, &stranger);
        f.readers = f.readers->next;
        reader_release(&stranger);
        if (same) {
            break;
        }
    }
    fixture_end(&f);
}

HK_TEST(many_publishes_between_two_turns_become_one_write_each)
{
    fixture_t f;
    reader_t readers[3];
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &readers[0], &(wish_t){.matches = "/a"});
    fixture_subscribe(&f, &readers[1], &(wish_t){.matches = "/a"});
    fixture_subscribe(&f, &readers[2], &(wish_t){.matches = "/a /b"});
    fixture_drain(&f);
    for (size_t i = 0; i < 10; i++) {
        fixture_publish(&f, "/a", "x");
    }
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK_BYTES("x x x x x x x x x x", fixture_data(&f, &readers[i]));
        HK_CHECK_EQUAL_UINT(1, readers[i].writes);
    }
    HK_CHECK_EQUAL_UINT(30, fixture_stats(&f).deliveries);
    fixture_end(&f);
}

HK_TEST(a_fan_out_allocates_nothing)
{
    fixture_t f;
    reader_t readers[50];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 50; i++) {
        fixture_subscribe(&f, &readers[i],
                          &(wish_t){.matches = i % 5 == 0 ? "/a /b" : "/a", .reads = i % 3 ? "/a" : NULL});
    }
    for (size_t round = 0; round < 2; round++) {
        fixture_publish(&f, "/a", "one");
        fixture_publish_privately(&f, "/a", "two");
        size_t requests = hk_test_requests();
        fixture_drain(&f);
        HK_CHECK(round == 0 || hk_test_requests() == requests);
    }
    fixture_end(&f);
}

HK_TEST(more_than_is_gathered_at_once_comes_in_several_writes_whoever_is_served)
{
    fixture_t f;
    reader_t readers[20];
    fixture_begin(&f, NULL);
    f.max_bytes = 100;
    for (size_t i = 0; i < 20; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
    }
    fixture_drain(&f);
    for (size_t i = 0; i < 9; i++) {
        fixture_publish(&f, "/a", "twenty bytes of data");
    }
    for (size_t i = 0; i < 20; i++) {
        fixture_drain(&f);
        HK_CHECK_EQUAL_UINT(9 * 45, readers[i].received.length);
        HK_CHECK_EQUAL_UINT(5, readers[i].writes);
    }
    fixture_end(&f);
}

HK_TEST(an_event_that_is_larger_than_what_is_gathered_arrives_whole)
{
    fixture_t f;
    reader_t reader;
    static char large[200000];
    memset(large, 'L', sizeof(large));
    fixture_begin(&f, NULL);
    f.max_bytes = 1000;
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/a", "small");
    HK_CHECK_OK(
        fixture_try_publish(&f, "/a", (hk_log_update_t){.data = hk_bytes(large, sizeof(large)), .retry_ms = -1}));
    fixture_publish(&f, "/a", "again");
    hk_bytes_t data = fixture_data(&f, &reader);
    HK_CHECK_EQUAL_UINT(5 + 1 + sizeof(large) + 1 + 5, data.length);
    HK_CHECK_EQUAL_UINT(3, reader.writes);
    fixture_end(&f);
}

HK_TEST(who_has_left_receives_nothing_and_is_not_found)
{
    fixture_t f;
    reader_t reader, other;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    uint64_t serial = hk_subscriber_serial(reader.subscriber);
    HK_CHECK(serial != 0);
    HK_CHECK(hk_hub_find(f.hub, serial) == reader.subscriber);
    fixture_unsubscribe(&f, &reader);
    HK_CHECK(hk_hub_find(f.hub, serial) == NULL);
    fixture_publish(&f, "/a", "one");
    HK_CHECK_BYTES("", fixture_data(&f, &reader));
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).subscribers);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).subscriptions);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).feeds);
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a"});
    HK_CHECK(hk_subscriber_serial(other.subscriber) != serial);
    HK_CHECK(hk_hub_find(f.hub, serial) == NULL);
    HK_CHECK(hk_hub_find(f.hub, 0) == NULL);
    HK_CHECK(hk_hub_find(f.hub, UINT64_MAX) == NULL);
    fixture_end(&f);
}

/* One third leaves while a fan-out goes on, from where it was, from where it will come, and the feed's only member. */
HK_TEST(leaving_in_the_middle_of_a_fan_out_leaves_nobody_out)
{
    for (size_t seed = 0; seed < 20; seed++) {
        fixture_t f;
        reader_t readers[50];
        fixture_begin(&f, NULL);
        for (size_t i = 0; i < 50; i++) {
            fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
        }
        fixture_drain(&f);
        fixture_publish(&f, "/a", "one");
        bool more = true;
        while (more) {
            HK_CHECK_OK(fixture_serve(&f, 1 + hk_test_below(4), &more));
            reader_t *reader = &readers[hk_test_below(50)];
            if (reader->subscriber != NULL) {
                fixture_unsubscribe(&f, reader);
            }
        }
        for (size_t i = 0; i < 50; i++) {
            HK_CHECK(readers[i].writes <= 1);
            HK_CHECK(readers[i].subscriber == NULL || readers[i].writes == 1);
        }
        fixture_end(&f);
    }
}

HK_TEST(who_left_before_its_turn_in_a_fan_out_is_not_looked_for)
{
    for (size_t by_steps = 0; by_steps < 2; by_steps++) {
        fixture_t f;
        reader_t readers[10];
        fixture_begin(&f, NULL);
        for (size_t i = 0; i < 10; i++) {
            fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
        }
        fixture_drain(&f);
        fixture_publish(&f, "/a", "one");
        bool more;
        HK_CHECK_OK(fixture_serve(&f, 1, &more));
        for (size_t i = 9; i > 6; i--) {
            fixture_unsubscribe(&f, &readers[i]);
        }
        if (by_steps) {
            HK_CHECK(hk_hub_next_ready(f.hub) == readers[6].subscriber);
        } else {
            HK_CHECK_BYTES("one", fixture_data(&f, &readers[6]));
            HK_CHECK_EQUAL_UINT(0, readers[7].writes + readers[8].writes);
        }
        fixture_end(&f);
    }
}

HK_TEST(a_feed_that_goes_while_its_members_are_served_is_left_alone)
{
    fixture_t f;
    reader_t readers[3];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 3; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
    }
    fixture_drain(&f);
    fixture_publish(&f, "/a", "one");
    bool more;
    HK_CHECK_OK(fixture_serve(&f, 1, &more));
    HK_CHECK(more);
    fixture_publish(&f, "/a", "two");
    for (size_t i = 0; i < 3; i++) {
        fixture_unsubscribe(&f, &readers[i]);
    }
    HK_CHECK(!hk_hub_ready(f.hub));
    HK_CHECK(hk_hub_next_ready(f.hub) == NULL);
    fixture_end(&f);
}

HK_TEST(who_subscribes_during_a_fan_out_gets_only_what_is_published_afterwards)
{
    fixture_t f;
    reader_t readers[10], late;
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 10; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
    }
    fixture_publish(&f, "/a", "one");
    bool more;
    HK_CHECK_OK(fixture_serve(&f, 1, &more));
    fixture_subscribe(&f, &late, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/a", "two");
    HK_CHECK_BYTES("two", fixture_data(&f, &late));
    HK_CHECK_BYTES("one two", fixture_data(&f, &readers[9]));
    fixture_end(&f);
}

HK_TEST(a_publish_looks_only_at_the_subscribers_that_it_concerns)
{
    fixture_t f;
    static reader_t readers[200];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 200; i++) {
        char topic[16];
        snprintf(topic, sizeof(topic), "/topic/%zu", i);
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = topic});
    }
    fixture_drain(&f);
    fixture_publish(&f, "/topic/7", "one");
    HK_CHECK(hk_hub_next_ready(f.hub) == readers[7].subscriber);
    HK_CHECK(hk_hub_next_ready(f.hub) == NULL);
    fixture_end(&f);
}

HK_TEST(a_step_at_a_time_is_the_same)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/a", "one");
    fixture_publish(&f, "/a", "two");
    HK_CHECK(hk_hub_ready(f.hub));
    hk_subscriber_t *subscriber = hk_hub_next_ready(f.hub);
    hk_bytes_t bytes;
    HK_CHECK(subscriber == reader.subscriber);
    HK_CHECK_OK(hk_hub_take(f.hub, subscriber, 65536, &bytes));
    HK_CHECK_EQUAL_UINT(2 * 28, bytes.length);
    HK_CHECK_OK(hk_hub_wrote(f.hub, subscriber, bytes.length, f.now));
    HK_CHECK_OK(hk_hub_wrote(f.hub, subscriber, bytes.length, f.now)); /* nothing is taken: nothing happens */
    HK_CHECK(hk_hub_next_ready(f.hub) == NULL);
    HK_CHECK_EQUAL_UINT(2, hk_subscriber_cursor(subscriber));
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).deliveries);
    HK_CHECK_EQUAL_UINT(2 * 28, fixture_stats(&f).delivered_bytes);
    fixture_end(&f);
}

HK_TEST(whose_connection_is_broken_is_closed)
{
    fixture_t f;
    reader_t broken, several, fine;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &broken, &(wish_t){.matches = "/a"});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "/a /b"});
    fixture_subscribe(&f, &fine, &(wish_t){.matches = "/a"});
    fixture_drain(&f);
    broken.broken = several.broken = true;
    fixture_publish(&f, "/a", "one");
    HK_CHECK_BYTES("one", fixture_data(&f, &fine));
    HK_CHECK_EQUAL_INT(HK_CLOSING_HUNG_UP, broken.closing);
    HK_CHECK_EQUAL_INT(HK_CLOSING_HUNG_UP, several.closing);
    HK_CHECK(broken.subscriber == NULL);
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).subscribers);
    fixture_end(&f);
}

HK_TEST(a_hub_that_could_not_be_made_leaves_nothing)
{
    hk_hub_options_t options = fixture_options();
    options.heartbeat = SECOND;
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        hk_status_t status = fixture_try(&f, &options);
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        hk_hub_free(f.hub);
    }
    hk_hub_free(NULL);
}
