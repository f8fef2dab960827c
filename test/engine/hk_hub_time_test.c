#include "hk_hub_fixture.h"

#define MILLISECOND (SECOND / 1000)

static void begin(fixture_t *f, int64_t heartbeat, int64_t max_lifetime)
{
    hk_hub_options_t options = fixture_options();
    options.heartbeat = heartbeat;
    options.max_lifetime = max_lifetime;
    fixture_begin(f, &options);
}

static void tick_at(fixture_t *f, int64_t now)
{
    f->now = now;
    HK_CHECK_OK(hk_hub_tick(f->hub, now));
    fixture_drain(f);
}

HK_TEST(a_silent_stream_gets_a_comment_a_busy_one_does_not)
{
    fixture_t f;
    reader_t quiet, busy, several;
    begin(&f, 10 * SECOND, 0);
    fixture_subscribe(&f, &quiet, &(wish_t){.matches = "/quiet"});
    fixture_subscribe(&f, &busy, &(wish_t){.matches = "/busy"});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "/busy /quiet"});
    for (size_t i = 0; i < 24; i++) {
        fixture_publish(&f, "/busy", "x");
        tick_at(&f, f.now + SECOND / 2);
    }
    HK_CHECK_BYTES(":\n\n", hk_buf_bytes(&quiet.received));
    HK_CHECK(memmem(busy.received.memory, busy.received.length, ":\n\n", 3) == NULL);
    HK_CHECK(memmem(several.received.memory, several.received.length, ":\n\n", 3) == NULL);
    fixture_end(&f);
}

HK_TEST(comments_come_when_there_was_silence_for_so_long_and_at_most_half_a_second_later)
{
    fixture_t f;
    reader_t reader;
    begin(&f, 10 * SECOND, 0);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    int64_t last = f.now;
    for (size_t round = 0; round < 50; round++) {
        size_t before = reader.received.length;
        bool publishes = hk_test_below(2) == 0;
        int64_t pause = publishes ? (int64_t)hk_test_below(9500) * MILLISECOND : 0;
        while (f.now < last + pause) {
            tick_at(&f, f.now + 100 * MILLISECOND);
        }
        HK_CHECK_EQUAL_UINT(before, reader.received.length);
        if (publishes) {
            fixture_publish(&f, "/a", "x");
            fixture_drain(&f);
            last = f.now;
            continue;
        }
        while (reader.received.length == before) {
            HK_CHECK(f.now <= last + 10 * SECOND + 600 * MILLISECOND);
            tick_at(&f, f.now + 100 * MILLISECOND);
        }
        HK_CHECK(f.now >= last + 10 * SECOND);
        HK_CHECK_EQUAL_UINT(before + 3, reader.received.length);
        last = f.now;
    }
    fixture_end(&f);
}

HK_TEST(a_hub_that_ticks_when_it_says_so_ticks_seldom)
{
    fixture_t f;
    static reader_t readers[50];
    reader_t blocked;
    begin(&f, 10 * SECOND, 0);
    fixture_subscribe(&f, &blocked, &(wish_t){.matches = "/a", .shut = true});
    fixture_publish(&f, "/a", "one");
    for (size_t i = 0; i < 50; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
        f.now += 3 * MILLISECOND;
    }
    fixture_drain(&f);
    size_t ticks = 0;
    int64_t end = f.now + 60 * SECOND;
    for (int64_t next; (next = hk_hub_next_tick(f.hub)) < end; ticks++) {
        HK_CHECK(next > f.now);
        tick_at(&f, next);
    }
    HK_CHECK(ticks <= 24);
    for (size_t i = 0; i < 50; i++) {
        HK_CHECK_EQUAL_UINT(5 * 3, readers[i].received.length);
    }
    fixture_end(&f);
}

HK_TEST(a_comment_is_not_added_to_what_is_pending_nor_said_to_a_full_socket)
{
    fixture_t f;
    reader_t blocked, told;
    begin(&f, 10 * SECOND, 0);
    fixture_subscribe(&f, &blocked, &(wish_t){.matches = "/a", .shut = true});
    fixture_subscribe(&f, &told, &(wish_t){.matches = "/b"});
    fixture_publish(&f, "/a", "one");
    fixture_drain(&f);
    HK_CHECK_OK(hk_hub_control(f.hub, told.subscriber, HK_BYTES("retry: 5\n\n")));
    f.now += 11 * SECOND;
    HK_CHECK_OK(hk_hub_tick(f.hub, f.now));
    fixture_drain(&f);
    HK_CHECK_BYTES("retry: 5\n\n", hk_buf_bytes(&told.received));
    fixture_give_room(&f, &blocked, ANY_ROOM);
    fixture_drain(&f);
    HK_CHECK(blocked.received.memory[0] != ':');
    fixture_end(&f);
}

HK_TEST(a_comment_of_which_a_part_was_sent_goes_on)
{
    fixture_t f;
    reader_t reader;
    begin(&f, 10 * SECOND, 0);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .room = 1});
    tick_at(&f, f.now + 11 * SECOND);
    HK_CHECK_BYTES("\n\n", hk_subscriber_control(reader.subscriber));
    fixture_publish(&f, "/a", "one");
    fixture_give_room(&f, &reader, ANY_ROOM);
    HK_CHECK_BYTES("one", fixture_data(&f, &reader));
    HK_CHECK(hk_bytes_start_with(hk_buf_bytes(&reader.received), HK_BYTES(":\n\nid: ")));
    fixture_end(&f);
}

HK_TEST(a_stream_ends_before_its_grant_does)
{
    fixture_t f;
    reader_t reader;
    begin(&f, 0, 0);
    HK_CHECK_EQUAL_INT(HK_NEVER, hk_hub_next_tick(f.hub));
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .expires_in = 5 * SECOND});
    tick_at(&f, 1004 * SECOND + SECOND / 2);
    HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, reader.closing);
    HK_CHECK(hk_hub_next_tick(f.hub) <= 1005 * SECOND);
    tick_at(&f, hk_hub_next_tick(f.hub));
    HK_CHECK_EQUAL_INT(HK_CLOSING_EXPIRED, reader.closing);
    HK_CHECK(f.now < 1005 * SECOND);
    HK_CHECK_EQUAL_INT(HK_NEVER, hk_hub_next_tick(f.hub));
    fixture_end(&f);
}

HK_TEST(a_grant_that_ended_long_ago_ends_its_stream_at_once)
{
    fixture_t f;
    reader_t reader;
    begin(&f, 0, 0);
    f.now = 0;
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .expires_in = INT64_MIN});
    tick_at(&f, 0);
    HK_CHECK_EQUAL_INT(HK_CLOSING_EXPIRED, reader.closing);
    fixture_end(&f);
}

HK_TEST(a_stream_ends_after_the_longest_lifetime_some_a_little_earlier)
{
    fixture_t f;
    static reader_t readers[100];
    reader_t expiring;
    begin(&f, 0, 100 * SECOND);
    for (size_t i = 0; i < 100; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a", .expires_in = 1000 * SECOND});
    }
    fixture_subscribe(&f, &expiring, &(wish_t){.matches = "/a", .expires_in = 80 * SECOND});
    tick_at(&f, 1089 * SECOND);
    HK_CHECK_EQUAL_INT(HK_CLOSING_EXPIRED, expiring.closing);
    HK_CHECK_EQUAL_UINT(100, fixture_stats(&f).subscribers);
    tick_at(&f, 1095 * SECOND);
    size_t left = fixture_stats(&f).subscribers;
    HK_CHECK(left > 20 && left < 80);
    tick_at(&f, 1100 * SECOND);
    for (size_t i = 0; i < 100; i++) {
        HK_CHECK_EQUAL_INT(HK_CLOSING_LIFETIME, readers[i].closing);
    }
    fixture_end(&f);
}

HK_TEST(streams_that_end_together_end_in_the_order_in_which_they_began)
{
    fixture_t f;
    static reader_t readers[40];
    begin(&f, 0, 0);
    for (size_t i = 0; i < 40; i++) {
        int64_t a_little = (int64_t)hk_test_below(1000);
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a", .expires_in = 5 * SECOND + a_little});
    }
    fixture_drain(&f);
    f.now = 1005 * SECOND;
    HK_CHECK_OK(hk_hub_tick(f.hub, f.now));
    bool more;
    HK_CHECK_OK(fixture_serve(&f, 100, &more));
    HK_CHECK_EQUAL_UINT(40, f.closed_count);
    for (size_t i = 0; i < 40; i++) {
        HK_CHECK(f.closed[i] == &readers[i]);
    }
    fixture_end(&f);
}

HK_TEST(who_left_is_not_waited_for)
{
    fixture_t f;
    reader_t reader;
    begin(&f, 10 * SECOND, 100 * SECOND);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .expires_in = 5 * SECOND});
    HK_CHECK(hk_hub_next_tick(f.hub) < HK_NEVER);
    fixture_unsubscribe(&f, &reader);
    HK_CHECK_EQUAL_INT(HK_NEVER, hk_hub_next_tick(f.hub));
    fixture_end(&f);
}

HK_TEST(times_that_are_far_apart_overflow_nothing)
{
    fixture_t f;
    reader_t reader;
    begin(&f, INT64_MAX, INT64_MAX);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .expires_in = INT64_MAX - 1});
    tick_at(&f, f.now + 1000000 * SECOND);
    HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, reader.closing);
    HK_CHECK_EQUAL_UINT(0, reader.received.length);
    fixture_end(&f);
}
