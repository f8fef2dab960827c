#include "hk_hub_fixture.h"

/* Readers that are slower than what is published: sockets that are full, events in pieces, a ring that passes them. */

static void begin_with_history(fixture_t *f, size_t bytes)
{
    hk_hub_options_t options = fixture_options();
    options.history_bytes = bytes;
    fixture_begin(f, &options);
}

static void publish_many(fixture_t *f, const char *topics, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char data[32];
        snprintf(data, sizeof(data), "%010zu", i);
        fixture_publish(f, topics, data);
    }
}

static bool holds(hk_bytes_t bytes, const char *text)
{
    return bytes.length > 0 && memmem(bytes.at, bytes.length, text, strlen(text)) != NULL;
}

HK_TEST(what_a_socket_does_not_take_goes_out_later_from_the_byte_where_it_stopped)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .room = 5});
    fixture_publish(&f, "/a", "one");
    fixture_publish(&f, "/a", "two");
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(5, reader.received.length);
    HK_CHECK(hk_subscriber_blocked(reader.subscriber));
    HK_CHECK(hk_subscriber_within_event(reader.subscriber));
    fixture_give_room(&f, &reader, 31);
    fixture_drain(&f);
    fixture_give_room(&f, &reader, ANY_ROOM);
    fixture_publish(&f, "/a", "three");
    HK_CHECK_BYTES("one two three", fixture_data(&f, &reader));
    HK_CHECK(!hk_subscriber_within_event(reader.subscriber));
    HK_CHECK(!hk_subscriber_blocked(reader.subscriber));
    HK_CHECK_EQUAL_UINT(3, fixture_stats(&f).deliveries);
    fixture_end(&f);
}

HK_TEST(a_reader_may_stop_at_any_byte_and_loses_or_repeats_nothing)
{
    static const char *matches[] = {"/*", "/a /b/*", "/a /b/1"};
    for (size_t kind = 0; kind < 3; kind++) {
        fixture_t f;
        reader_t whole;
        static reader_t cuts[200];
        fixture_begin(&f, NULL);
        fixture_subscribe(&f, &whole, &(wish_t){.matches = matches[kind], .reads = "/b/*"});
        fixture_publish(&f, "/a", "first");
        fixture_publish_privately(&f, "/b/1", "two\nlines");
        fixture_publish_privately(&f, "/a", "hidden");
        fixture_publish(&f, "/a", "last");
        fixture_drain(&f);
        HK_CHECK(whole.received.length < 200);
        for (size_t cut = 1; cut < whole.received.length; cut++) {
            hk_test_note("%s, stopped after %zu bytes", matches[kind], cut);
            reader_t *reader = &cuts[cut];
            fixture_subscribe(&f, reader,
                              &(wish_t){.matches = matches[kind], .reads = "/b/*", .cursor = "earliest", .room = cut});
            fixture_drain(&f);
            HK_CHECK_EQUAL_UINT(cut, reader->received.length);
            fixture_give_room(&f, reader, 3);
            fixture_drain(&f);
            fixture_give_room(&f, reader, ANY_ROOM);
            fixture_drain(&f);
            HK_CHECK_BYTES(hk_buf_bytes(&whole.received), hk_buf_bytes(&reader->received));
            fixture_unsubscribe(&f, reader);
        }
        fixture_end(&f);
    }
}

HK_TEST(a_blocked_reader_harms_nobody)
{
    fixture_t f;
    reader_t slow, fast;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &slow, &(wish_t){.matches = "/a", .shut = true});
    fixture_subscribe(&f, &fast, &(wish_t){.matches = "/a"});
    publish_many(&f, "/a", 50);
    HK_CHECK_EQUAL_UINT(50 * 11 - 1, fixture_data(&f, &fast).length);
    publish_many(&f, "/a", 50);
    fixture_drain(&f);
    fixture_give_room(&f, &slow, ANY_ROOM);
    HK_CHECK_BYTES(fixture_data(&f, &fast), fixture_data(&f, &slow));
    fixture_end(&f);
}

HK_TEST(a_reader_that_the_history_has_passed_is_told_and_moved_on)
{
    fixture_t f;
    reader_t reader;
    begin_with_history(&f, 10000);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /b/*", .shut = true});
    publish_many(&f, "/a", 100);
    fixture_drain(&f);
    fixture_give_room(&f, &reader, ANY_ROOM);
    hk_bytes_t data = fixture_data(&f, &reader);
    char id[HK_EVENT_ID_BYTES], expected[200];
    hk_log_seal(hk_hub_log(f.hub), 0, id);
    int length = snprintf(expected, sizeof(expected),
                          "{\"type\":\"gap\",\"reason\":\"overrun\",\"last_event_id\":\"%.*s\",\"matches\":[{\"match\":"
                          "\"/a\",\"match_type\":\"exact\"}]} ",
                          (int)sizeof(id), id);
    HK_CHECK_BYTES(hk_test_text(expected), hk_bytes(data.at, (size_t)length));
    HK_CHECK_EQUAL_UINT(11 * hk_log_count(hk_hub_log(f.hub)) - 1, data.length - (size_t)length);
    hk_log_seal(hk_hub_log(f.hub), hk_log_first(hk_hub_log(f.hub)) - 1, id);
    HK_CHECK_BYTES(hk_bytes(id, sizeof(id)), hk_bytes(reader.received.memory + 19, sizeof(id)));
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).gaps);
    fixture_end(&f);
}

HK_TEST(a_reader_that_asked_for_all_that_is_retained_begins_where_the_history_begins_when_it_is_served)
{
    fixture_t f;
    reader_t everything, lost;
    begin_with_history(&f, 10000);
    publish_many(&f, "/a", 20);
    fixture_subscribe(&f, &everything, &(wish_t){.matches = "/a", .cursor = "earliest", .shut = true});
    fixture_subscribe(&f, &lost, &(wish_t){.matches = "/a", .cursor = "urn:unknown"});
    for (size_t i = 0; i < 3; i++) {
        publish_many(&f, "/a", 5);
        fixture_give_room(&f, &everything, i < 2 ? 0 : ANY_ROOM);
        fixture_drain(&f);
    }
    hk_bytes_t data = fixture_data(&f, &everything);
    HK_CHECK_EQUAL_UINT(11 * hk_log_count(hk_hub_log(f.hub)) - 1, data.length);
    HK_CHECK(!holds(data, "gap"));
    hk_bytes_t other = fixture_data(&f, &lost);
    HK_CHECK(holds(other, "unknown"));
    HK_CHECK(!holds(other, "overrun"));
    HK_CHECK(other.length > data.length);
    HK_CHECK_BYTES(data, hk_bytes(other.at + other.length - data.length, data.length));
    fixture_end(&f);
}

HK_TEST(a_gap_is_told_behind_what_is_already_on_its_way)
{
    fixture_t f;
    reader_t reader;
    begin_with_history(&f, 10000);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .shut = true});
    fixture_publish(&f, "/a", "first");
    fixture_drain(&f);
    for (size_t round = 0; round < 2; round++) {
        publish_many(&f, "/a", 100);
        fixture_give_room(&f, &reader, round == 0 ? 25 : ANY_ROOM);
        fixture_drain(&f);
        HK_CHECK_EQUAL_INT(round == 0, hk_subscriber_control(reader.subscriber).length > 0);
        HK_CHECK(!hk_subscriber_within_event(reader.subscriber));
    }
    hk_bytes_t received = hk_buf_bytes(&reader.received);
    HK_CHECK(hk_bytes_start_with(received, HK_BYTES("event: mercure\nid: #")));
    const char *second = memmem(received.at + 14, received.length - 14, "\n\nevent: mercure\nid: #", 22);
    HK_CHECK(second != NULL);
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).gaps);
    fixture_end(&f);
}

HK_TEST(a_reader_that_the_history_has_passed_is_closed_where_the_matcher_says_so)
{
    fixture_t f;
    reader_t closed, moved, both;
    begin_with_history(&f, 10000);
    fixture_subscribe(&f, &closed, &(wish_t){.matches = "!/a", .shut = true});
    fixture_subscribe(&f, &moved, &(wish_t){.matches = "/b", .shut = true});
    fixture_subscribe(&f, &both, &(wish_t){.matches = "!/quiet /b", .shut = true});
    publish_many(&f, "/a /b", 100);
    fixture_drain(&f);
    fixture_give_room(&f, &closed, ANY_ROOM);
    fixture_give_room(&f, &moved, ANY_ROOM);
    fixture_give_room(&f, &both, ANY_ROOM);
    HK_CHECK_BYTES("", fixture_data(&f, &closed));
    HK_CHECK_EQUAL_INT(HK_CLOSING_OVERRUN, closed.closing);
    HK_CHECK(holds(fixture_data(&f, &moved), "overrun"));
    HK_CHECK(holds(fixture_data(&f, &both), "overrun"));
    HK_CHECK(!holds(fixture_data(&f, &both), "/quiet"));
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).overruns);
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).gaps);
    fixture_end(&f);
}

HK_TEST(a_reader_that_the_history_passes_in_the_middle_of_an_event_gets_the_rest_of_it_and_is_then_told)
{
    for (size_t room = 1; room < 30; room += 4) {
        fixture_t f;
        reader_t reader;
        begin_with_history(&f, 10000);
        fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .room = room});
        fixture_publish(&f, "/a", "0123456789");
        fixture_drain(&f);
        publish_many(&f, "/a", 100);
        fixture_give_room(&f, &reader, 2);
        fixture_drain(&f);
        fixture_give_room(&f, &reader, ANY_ROOM);
        hk_bytes_t data = fixture_data(&f, &reader);
        HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, reader.closing);
        HK_CHECK(hk_bytes_start_with(data, HK_BYTES("0123456789 {\"type\":\"gap\",\"reason\":\"overrun\"")));
        HK_CHECK_BYTES(" 0000000099", hk_bytes(data.at + data.length - 11, 11));
        fixture_end(&f);
    }
}

HK_TEST(of_an_event_larger_than_what_is_kept_for_a_slow_reader_the_rest_is_lost)
{
    fixture_t f;
    reader_t reader;
    static char large[200000];
    memset(large, 'L', sizeof(large));
    hk_log_update_t update = {.data = hk_bytes(large, sizeof(large)), .retry_ms = -1};
    begin_with_history(&f, 300000);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .room = 7});
    HK_CHECK_OK(fixture_try_publish(&f, "/a", update));
    fixture_drain(&f);
    HK_CHECK_OK(fixture_try_publish(&f, "/a", update));
    fixture_give_room(&f, &reader, ANY_ROOM);
    fixture_drain(&f);
    HK_CHECK_EQUAL_INT(HK_CLOSING_OVERRUN, reader.closing);
    HK_CHECK_EQUAL_UINT(7, reader.received.length);
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).overruns);
    fixture_end(&f);
}

HK_TEST(a_large_event_of_which_a_part_was_sent_goes_on_while_it_is_retained)
{
    fixture_t f;
    reader_t reader;
    static char large[200000];
    memset(large, 'L', sizeof(large));
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .room = 7});
    HK_CHECK_OK(
        fixture_try_publish(&f, "/a", (hk_log_update_t){.data = hk_bytes(large, sizeof(large)), .retry_ms = -1}));
    for (size_t i = 0; i < 10; i++) {
        fixture_drain(&f);
        fixture_give_room(&f, &reader, 1000 * i);
    }
    fixture_give_room(&f, &reader, ANY_ROOM);
    HK_CHECK_BYTES(hk_bytes(large, sizeof(large)), fixture_data(&f, &reader));
    fixture_end(&f);
}

HK_TEST(a_reader_that_missed_nothing_of_its_own_is_not_told_of_a_gap)
{
    fixture_t f;
    reader_t reader, several;
    begin_with_history(&f, 10000);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/quiet"});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "/quiet /silent"});
    publish_many(&f, "/loud", 200);
    fixture_publish(&f, "/quiet", "hello");
    HK_CHECK_BYTES("hello", fixture_data(&f, &reader));
    HK_CHECK_BYTES("hello", fixture_data(&f, &several));
    fixture_end(&f);
}

/* Its next is the oldest that is retained: nothing of its own was dropped. */
HK_TEST(a_reader_that_the_ring_has_almost_passed_is_not_told_of_a_gap)
{
    fixture_t f;
    reader_t reader, several;
    begin_with_history(&f, 10000);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/quiet", .shut = true});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "/quiet /silent", .shut = true});
    publish_many(&f, "/loud", 50);
    fixture_publish(&f, "/quiet", "hello");
    hk_position_t position = hk_log_head(hk_hub_log(f.hub));
    fixture_drain(&f);
    while (hk_log_first(hk_hub_log(f.hub)) < position) {
        publish_many(&f, "/loud", 1);
    }
    fixture_give_room(&f, &reader, ANY_ROOM);
    fixture_give_room(&f, &several, ANY_ROOM);
    HK_CHECK_BYTES("hello", fixture_data(&f, &reader));
    HK_CHECK_BYTES("hello", fixture_data(&f, &several));
    fixture_end(&f);
}

HK_TEST(what_was_gathered_for_others_is_not_handed_out_when_the_ring_has_dropped_it)
{
    fixture_t f;
    reader_t slow, fast;
    begin_with_history(&f, 10000);
    fixture_subscribe(&f, &slow, &(wish_t){.matches = "/quiet", .shut = true});
    fixture_subscribe(&f, &fast, &(wish_t){.matches = "/quiet"});
    fixture_publish(&f, "/quiet", "hello");
    HK_CHECK_BYTES("hello", fixture_data(&f, &fast));
    publish_many(&f, "/loud", 100);
    fixture_give_room(&f, &slow, ANY_ROOM);
    HK_CHECK(hk_bytes_start_with(fixture_data(&f, &slow), HK_BYTES("{\"type\":\"gap\",\"reason\":\"overrun\"")));
    fixture_end(&f);
}

HK_TEST(who_is_behind_gets_what_was_gathered_for_others_and_what_came_since_in_one_write)
{
    fixture_t f;
    reader_t slow, fast;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &slow, &(wish_t){.matches = "/a", .shut = true});
    fixture_subscribe(&f, &fast, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/a", "one");
    fixture_drain(&f);
    slow.writes = 0;
    fixture_publish(&f, "/a", "two");
    fixture_give_room(&f, &slow, ANY_ROOM);
    HK_CHECK_BYTES("one two", fixture_data(&f, &slow));
    HK_CHECK_EQUAL_UINT(1, slow.writes);
    fixture_end(&f);
}

HK_TEST(memory_does_not_grow_with_readers_times_messages)
{
    fixture_t f;
    reader_t readers[20];
    begin_with_history(&f, 20000);
    for (size_t i = 0; i < 20; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a", .room = 7});
    }
    publish_many(&f, "/a", 200);
    fixture_drain(&f);
    size_t before = hk_test_bytes_in_use();
    publish_many(&f, "/a", 2000);
    fixture_drain(&f);
    HK_CHECK(hk_test_bytes_in_use() < before + 1000);
    HK_CHECK(fixture_stats(&f).history_bytes <= 20000);
    fixture_end(&f);
}

/* A turn's allowance is enough for four of the records. */
HK_TEST(who_scans_with_costly_patterns_does_so_in_pieces_and_the_others_are_served_meanwhile)
{
    fixture_t f;
    reader_t scans[3], coded, live, closed, gone;
    wish_t wish = {.matches = "$/b* $/c*", .cursor = "earliest"};
    bool more = false;
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 20; i++) {
        fixture_publish(&f, "/a", "x");
    }
    fixture_publish(&f, "/b", "last");
    for (size_t i = 0; i < 3; i++) {
        fixture_subscribe(&f, &scans[i], &wish);
    }
    fixture_subscribe(&f, &closed, &wish);
    fixture_subscribe(&f, &gone, &wish);
    fixture_subscribe(&f, &live, &(wish_t){.matches = "/live"});
    wish.form = HK_STREAM_MESSAGE_PACK;
    fixture_subscribe(&f, &coded, &wish);
    HK_CHECK_OK(fixture_serve(&f, 64, &more));
    HK_CHECK(more && hk_hub_ready(f.hub));
    fixture_publish(&f, "/live", "now");
    HK_CHECK_OK(fixture_serve(&f, 64, &more));
    HK_CHECK(more && live.received.length > 0);
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK_EQUAL_UINT(0, scans[i].received.length);
    }
    HK_CHECK_EQUAL_UINT(0, coded.received.length);
    fixture_unsubscribe(&f, &gone);
    hk_hub_close(f.hub, closed.subscriber, HK_CLOSING_SHUTDOWN);
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK_BYTES("last", fixture_data(&f, &scans[i]));
    }
    HK_CHECK(coded.received.length > 0);
    HK_CHECK_EQUAL_INT(HK_CLOSING_SHUTDOWN, closed.closing);
    fixture_end(&f);
}
