#include "hk_coded_reader.h"
#include "hk_hub_fixture.h"
#include "hk_hub_state.h"

/* Streams of another form and compressed ones, where they differ from others. That they say the same is what
 * hk_hub_coded_model_test sees. */

/* The events that a reader has received, with what stands in arrays: its data, with blanks between them. */
static hk_bytes_t data_of(fixture_t *f, reader_t *reader, hk_stream_form_t form, hk_stream_coding_t coding)
{
    coded_stream_t stream;
    fixture_drain(f);
    coded_read(&stream, hk_buf_bytes(&reader->received), form, coding);
    hk_buf_clear(&reader->data);
    for (hk_bytes_t rest = hk_buf_bytes(&stream.events); rest.length > 0;) {
        HK_CHECK_EQUAL_UINT(0x93, coded_number(&rest, 1));
        (void)coded_string(&rest);
        (void)coded_string(&rest);
        HK_CHECK_OK(hk_buf_append(&reader->data, hk_bytes(" ", reader->data.length > 0)));
        HK_CHECK_OK(hk_buf_append(&reader->data, coded_string(&rest)));
    }
    coded_release(&stream);
    return hk_buf_bytes(&reader->data);
}

static void publish_many(fixture_t *f, const char *topic, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char data[400];
        snprintf(
            data, sizeof(data),
            "{\"type\":\"reading\",\"sensor\":\"urn:example:sensor:%zu\",\"values\":{\"temperature\":%zu,\"humidity\":"
            "%zu},\"location\":{\"building\":\"north\",\"floor\":%zu,\"room\":\"%zu\"},\"tags\":[\"measured\","
            "\"calibrated\",\"indoor\"],\"status\":\"ok\",\"unit\":\"celsius\",\"source\":\"gateway\"}",
            i % 40, i % 30, i * 7 % 100, i % 5, i * 31 % 500);
        fixture_publish(f, topic, data);
        fixture_drain(f);
    }
}

HK_TEST(a_stream_of_message_pack_is_arrays)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .form = HK_STREAM_MESSAGE_PACK});
    HK_CHECK_OK(fixture_try_publish(
        &f, "/a",
        (hk_log_update_t){
            .data = HK_BYTES("x\r\ny"), .retry_ms = 5, .id = HK_BYTES("urn:1"), .type = HK_BYTES("note")}));
    fixture_drain(&f);
    HK_CHECK_BYTES("\x05\x93\xA5urn:1\xA4note\xA3x\ny", hk_buf_bytes(&reader.received));
    fixture_end(&f);
}

HK_TEST(a_stream_that_is_changeable_is_told_in_its_form_that_it_has_caught_up)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/a", "1");
    fixture_subscribe(
        &f, &reader,
        &(wish_t){.matches = "/a", .cursor = "earliest", .changeable = true, .form = HK_STREAM_MESSAGE_PACK});
    fixture_drain(&f);
    hk_bytes_t received = hk_buf_bytes(&reader.received);
    HK_CHECK_BYTES("\xC3", hk_bytes(received.at + received.length - 1, 1));
    fixture_end(&f);
}

HK_TEST(of_a_form_that_the_hub_never_had_nothing_is_said_to_who_is_gone)
{
    fixture_t f;
    hk_buf_t out;
    fixture_begin(&f, NULL);
    hk_buf_init(&out, hk_alloc_default());
    HK_CHECK_OK(hk_buf_append(&out, HK_BYTES("head")));
    for (uint64_t form = 1; form < 4; form++) {
        HK_CHECK_STATUS(HK_NOT_FOUND,
                        hk_hub_farewell_to_gone(f.hub, 4711u << 26 | form << 24, HK_BYTES("retry: 5\n\n"), &out));
    }
    HK_CHECK_BYTES("head", hk_buf_bytes(&out));
    HK_CHECK_OK(hk_hub_farewell_to_gone(f.hub, 4711u << 26, HK_BYTES("retry: 5\n\n"), &out));
    HK_CHECK_BYTES("headretry: 5\n\n", hk_buf_bytes(&out));
    hk_buf_release(&out);
    fixture_end(&f);
}

HK_TEST(all_variants_of_a_topic_are_told_and_counted)
{
    fixture_t f;
    reader_t plain, packed;
    size_t count = 0;
    fixture_begin(&f, NULL);
    HK_CHECK_OK(hk_hub_notify(f.hub, HK_BYTES("/a"), HK_BYTES("event: told\ndata: x\n\n"), &count));
    HK_CHECK_EQUAL_UINT(0, count);
    fixture_subscribe(&f, &packed, &(wish_t){.matches = "/a", .form = HK_STREAM_MESSAGE_PACK});
    fixture_drain(&f);
    HK_CHECK(hk_hub_watched(f.hub, HK_BYTES("/a")));
    HK_CHECK(hk_hub_matcher(f.hub, HK_BYTES("exact"), HK_BYTES("/a")) != NULL);
    fixture_subscribe(&f, &plain, &(wish_t){.matches = "/a"});
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).feeds);
    HK_CHECK_OK(hk_hub_notify(f.hub, HK_BYTES("/a"), HK_BYTES("event: told\ndata: x\n\n"), &count));
    HK_CHECK_EQUAL_UINT(2, count);
    fixture_drain(&f);
    HK_CHECK_BYTES("event: told\ndata: x\n\n", hk_buf_bytes(&plain.received));
    HK_CHECK_BYTES("\x93\xC0\xA4told\xA1x", hk_buf_bytes(&packed.received));
    fixture_unsubscribe(&f, &packed);
    fixture_unsubscribe(&f, &plain);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).feeds);
    HK_CHECK(!hk_hub_watched(f.hub, HK_BYTES("/a")));
    fixture_end(&f);
}

HK_TEST(a_reader_that_the_ring_has_passed_is_told_of_the_gap_in_its_form)
{
    fixture_t f;
    reader_t reader;
    hk_hub_options_t options = fixture_options();
    options.history_bytes = 4000;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .form = HK_STREAM_MESSAGE_PACK, .room = 10});
    publish_many(&f, "/a", 30);
    fixture_give_room(&f, &reader, ANY_ROOM);
    hk_bytes_t data = data_of(&f, &reader, HK_STREAM_MESSAGE_PACK, HK_STREAM_IDENTITY);
    HK_CHECK(memmem(data.at, data.length, "\"reason\":\"overrun\"", 18) != NULL);
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).gaps);
    fixture_end(&f);
}

HK_TEST(of_large_events_one_is_kept_as_it_was_made)
{
    fixture_t f;
    reader_t reader;
    size_t large = 0, small = 0;
    static char data[100000];
    memset(data, 'x', sizeof(data) - 1);
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .form = HK_STREAM_MESSAGE_PACK});
    for (size_t i = 0; i < 12; i++) {
        fixture_publish(&f, "/a", i % 3 == 0 ? "x" : data);
        fixture_drain(&f);
    }
    for (size_t i = 0; i < HK_RENDERED_KEPT; i++) {
        const hk_rendered_t *rendered = &f.hub->coding->rendered[HK_VARIANT_FORM][i];
        large += rendered->bytes.capacity > 65536;
        small += rendered->position > 0 && rendered->bytes.capacity <= 65536;
    }
    HK_CHECK_EQUAL_UINT(1, large);
    HK_CHECK_EQUAL_UINT(4, small);
    fixture_end(&f);
}

#ifdef HK_HAVE_ZLIB

static bool is_in_step(reader_t *reader)
{
    return hk_subscriber_coded(reader->subscriber)->epoch != 0;
}

static const wish_t gzip_a = {.matches = "/a", .coding = HK_STREAM_GZIP};

HK_TEST(those_in_step_receive_the_same_bytes_and_no_more_than_a_quarter)
{
    fixture_t f;
    reader_t plain, readers[3];
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &plain, &(wish_t){.matches = "/a"});
    for (size_t i = 0; i < 3; i++) {
        fixture_subscribe(&f, &readers[i], &gzip_a);
    }
    publish_many(&f, "/a", 64);
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK(is_in_step(&readers[i]));
        HK_CHECK(hk_bytes_equal(hk_buf_bytes(&readers[0].received), hk_buf_bytes(&readers[i].received)));
    }
    hk_test_note("%zu of %zu bytes", readers[0].received.length, plain.received.length);
    HK_CHECK(readers[0].received.length * 4 <= plain.received.length);
    HK_CHECK_EQUAL_UINT(1 + 64, readers[0].writes);
    fixture_end(&f);
}

HK_TEST(who_is_told_something_alone_gets_blocks_until_the_next_epoch_begins)
{
    fixture_t f;
    reader_t told, late, steady[20];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 20; i++) {
        fixture_subscribe(&f, &steady[i], &gzip_a);
    }
    fixture_subscribe(&f, &told, &gzip_a);
    publish_many(&f, "/a", 10);
    HK_CHECK_OK(hk_hub_control(f.hub, told.subscriber, HK_SSE_HEARTBEAT));
    fixture_subscribe(&f, &late, &gzip_a);
    publish_many(&f, "/a", 40);
    HK_CHECK(is_in_step(&steady[0]) && is_in_step(&steady[19]) && !is_in_step(&told) && !is_in_step(&late));
    publish_many(&f, "/a", 1);
    HK_CHECK(is_in_step(&steady[0]) && is_in_step(&steady[19]) && is_in_step(&told) && is_in_step(&late));
    HK_CHECK_EQUAL_UINT(1, f.hub->coding->epoch_feeds);
    fixture_end(&f);
}

HK_TEST(one_that_waits_among_many_waits_for_64_events_at_most)
{
    fixture_t f;
    reader_t late, steady[30];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 30; i++) {
        fixture_subscribe(&f, &steady[i], &gzip_a);
    }
    publish_many(&f, "/a", 1);
    fixture_subscribe(&f, &late, &gzip_a);
    publish_many(&f, "/a", 63);
    HK_CHECK(!is_in_step(&late));
    publish_many(&f, "/a", 1);
    HK_CHECK(is_in_step(&late) && is_in_step(&steady[0]));
    fixture_end(&f);
}

HK_TEST(where_nobody_is_in_step_an_epoch_begins_with_each_event)
{
    fixture_t f;
    reader_t reader, plain;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &plain, &(wish_t){.matches = "/a"});
    fixture_subscribe(&f, &reader, &gzip_a);
    for (size_t i = 0; i < 3; i++) {
        publish_many(&f, "/a", 2);
        HK_CHECK(is_in_step(&reader));
        HK_CHECK_OK(hk_hub_control(f.hub, reader.subscriber, HK_SSE_HEARTBEAT));
        publish_many(&f, "/a", 1);
        HK_CHECK(!is_in_step(&reader));
    }
    fixture_end(&f);
}

HK_TEST(who_may_read_private_updates_is_never_in_step)
{
    fixture_t f;
    reader_t reads, many, alone;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reads, &(wish_t){.matches = "/a", .reads = "/x", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &many, &(wish_t){.matches = "/a /b", .reads = "/y", .coding = HK_STREAM_GZIP});
    HK_CHECK_EQUAL_UINT(0, f.hub->coding->epoch_feeds);
    fixture_subscribe(&f, &alone, &gzip_a);
    publish_many(&f, "/a", 40);
    fixture_publish_privately(&f, "/a /x", "secret");
    HK_CHECK(!is_in_step(&reads) && !is_in_step(&many) && is_in_step(&alone));
    hk_bytes_t data = data_of(&f, &reads, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK_BYTES("secret", hk_bytes(data.at + data.length - 6, 6));
    data = data_of(&f, &alone, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK(memmem(data.at, data.length, "secret", 6) == NULL);
    fixture_end(&f);
}

static void publish_in_turn(fixture_t *f, size_t count)
{
    static const char *const topics[] = {"/a", "/b", "/a /b", "/c"};
    for (size_t i = 0; i < count; i++) {
        publish_many(f, topics[i % 4], 1);
    }
}

static bool have_received_the_same(const reader_t *one, const reader_t *other)
{
    return hk_bytes_equal(hk_buf_bytes(&one->received), hk_buf_bytes(&other->received));
}

HK_TEST(those_with_the_same_several_matchers_share_in_whatever_order_they_have_them)
{
    fixture_t f;
    reader_t readers[2], more, reads, packed, one;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &readers[0], &(wish_t){.matches = "/a /b", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &readers[1], &(wish_t){.matches = "/b /a", .coding = HK_STREAM_GZIP});
    HK_CHECK_EQUAL_UINT(1, f.hub->coding->epoch_feeds);
    fixture_subscribe(&f, &more, &(wish_t){.matches = "/a /b /c", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &packed,
                      &(wish_t){.matches = "/a /b", .form = HK_STREAM_MESSAGE_PACK, .coding = HK_STREAM_GZIP});
    HK_CHECK_EQUAL_UINT(3, f.hub->coding->epoch_feeds);
    fixture_subscribe(&f, &reads, &(wish_t){.matches = "/a /b", .reads = "/x", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &one, &gzip_a);
    HK_CHECK_EQUAL_UINT(4, f.hub->coding->epoch_feeds);
    publish_in_turn(&f, 80);
    HK_CHECK(is_in_step(&readers[0]) && is_in_step(&readers[1]) && is_in_step(&more) && is_in_step(&packed));
    HK_CHECK(!is_in_step(&reads));
    HK_CHECK(have_received_the_same(&readers[0], &readers[1]));
    HK_CHECK_EQUAL_UINT(1 + 60, readers[0].writes);
    HK_CHECK(readers[0].received.length * 2 < reads.received.length);
    hk_bytes_t data = data_of(&f, &reads, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK(hk_bytes_equal(data, data_of(&f, &readers[0], HK_STREAM_EVENTS, HK_STREAM_GZIP)));
    HK_CHECK(hk_bytes_equal(data, data_of(&f, &packed, HK_STREAM_MESSAGE_PACK, HK_STREAM_GZIP)));
    fixture_end(&f);
}

HK_TEST(a_group_is_given_back_with_its_last_member)
{
    fixture_t f;
    reader_t readers[3];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 3; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = i == 1 ? "/b /a" : "/a /b", .coding = HK_STREAM_GZIP});
    }
    publish_in_turn(&f, 4);
    fixture_publish(&f, "/a", "x");
    fixture_unsubscribe(&f, &readers[0]);
    fixture_drain(&f);
    HK_CHECK(is_in_step(&readers[1]) && is_in_step(&readers[2]));
    HK_CHECK(have_received_the_same(&readers[1], &readers[2]));
    fixture_unsubscribe(&f, &readers[2]);
    HK_CHECK_EQUAL_UINT(1, f.hub->coding->groups.count);
    fixture_publish(&f, "/b", "y");
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(1 + 3 + 2, readers[1].writes);
    fixture_publish(&f, "/b", "z");
    fixture_unsubscribe(&f, &readers[1]);
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(0, f.hub->coding->groups.count);
    HK_CHECK_EQUAL_UINT(0, f.hub->coding->epoch_feeds);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).feeds);
    fixture_end(&f);
}

/* Between its epochs a stream is told what others in them are not, which they must not be taken to know. */
HK_TEST(a_stream_that_comes_back_to_an_epoch_has_not_got_what_it_skipped)
{
    fixture_t f;
    reader_t steady, reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &steady, &(wish_t){.matches = "/a /b", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/b /a", .changeable = true, .coding = HK_STREAM_GZIP});
    publish_in_turn(&f, 3);
    HK_CHECK(is_in_step(&reader));
    hk_bytes_t before = data_of(&f, &steady, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK(hk_bytes_equal(before, data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP)));
    fixture_change(&f, &reader, &(wish_t){.matches = "/a /c"});
    fixture_publish(&f, "/b", "said once, said again");
    fixture_drain(&f);
    fixture_drain(&f);
    fixture_change(&f, &reader, &(wish_t){.matches = "/a /b"});
    fixture_drain(&f);
    for (size_t i = 0; i < 20; i++) {
        fixture_publish(&f, "/b", "said again, said once");
        fixture_drain(&f);
    }
    hk_bytes_t data = data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK(memmem(data.at, data.length, "said once, said again", 21) == NULL);
    HK_CHECK_BYTES("said again, said once said again, said once", hk_bytes(data.at + data.length - 43, 43));
    HK_CHECK(is_in_step(&reader));
    HK_CHECK_EQUAL_UINT(1, f.hub->coding->epoch_feeds);
    fixture_end(&f);
}

HK_TEST(a_stream_that_is_changed_goes_on_with_those_who_have_its_matchers_now)
{
    static const struct {
        const char *matches, *reads;
        size_t groups, epochs;
        bool shares;
    } rows[] = {{"/a /b", NULL, 1, 2, true}, {"/a", NULL, 1, 2, true},     {"/a", "/x", 1, 2, false},
                {"/a", NULL, 1, 2, true},    {"/b /a", "/x", 1, 2, false}, {"/b /a", NULL, 1, 2, true},
                {"/a /b", NULL, 1, 2, true}, {"/a /c", NULL, 2, 3, true},  {"/a", NULL, 1, 2, true}};
    fixture_t f;
    reader_t one, two, reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &one, &gzip_a);
    fixture_subscribe(&f, &two, &(wish_t){.matches = "/a /b", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/x", .changeable = true, .coding = HK_STREAM_GZIP});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        fixture_change(&f, &reader, &(wish_t){.matches = rows[i].matches, .reads = rows[i].reads});
        publish_many(&f, "/a", 70);
        HK_CHECK_EQUAL_INT(rows[i].shares, is_in_step(&reader));
        HK_CHECK_EQUAL_UINT(rows[i].groups, f.hub->coding->groups.count);
        HK_CHECK_EQUAL_UINT(rows[i].epochs, f.hub->coding->epoch_feeds);
        HK_CHECK(is_in_step(&one) && is_in_step(&two));
    }
    hk_bytes_t data = data_of(&f, &one, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK(hk_bytes_equal(data, data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP)));
    HK_CHECK(hk_bytes_equal(data, data_of(&f, &two, HK_STREAM_EVENTS, HK_STREAM_GZIP)));
    fixture_end(&f);
}

HK_TEST(a_stream_gets_nothing_of_an_epoch_from_before_it_had_the_matcher)
{
    fixture_t f;
    reader_t steady, reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &steady, &(wish_t){.matches = "/a /b", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .changeable = true, .coding = HK_STREAM_GZIP});
    fixture_drain(&f);
    reader.room = 0;
    fixture_publish(&f, "/a", "1");
    fixture_publish(&f, "/b", "not");
    fixture_publish(&f, "/a", "2");
    fixture_drain(&f);
    fixture_change(&f, &reader, &(wish_t){.matches = "/a /b"});
    fixture_publish(&f, "/b", "3");
    fixture_give_room(&f, &reader, ANY_ROOM);
    HK_CHECK_BYTES("1 2 3", data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP));
    HK_CHECK_BYTES("1 not 2 3", data_of(&f, &steady, HK_STREAM_EVENTS, HK_STREAM_GZIP));
    fixture_end(&f);
}

HK_TEST(a_renewed_grant_leaves_a_stream_in_step)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /b", .changeable = true, .coding = HK_STREAM_GZIP});
    publish_in_turn(&f, 4);
    fixture_change(&f, &reader, &(wish_t){.matches = "/a /b"});
    HK_CHECK(is_in_step(&reader));
    publish_in_turn(&f, 4);
    HK_CHECK(is_in_step(&reader));
    (void)data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    fixture_end(&f);
}

HK_TEST(a_stream_that_is_changed_comes_into_step_with_its_new_feed)
{
    static const struct {
        const char *matches, *topic, *reads;
        bool is_in_step;
    } rows[] = {{"/a", "/a", NULL, true}, {"/b", "/b", NULL, true},  {"/b /c", "/c", NULL, true},
                {"/d", "/d", NULL, true}, {"/e", "/e", "/x", false}, {"/f", "/f", NULL, true}};
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/x", .changeable = true, .coding = HK_STREAM_GZIP});
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        fixture_change(&f, &reader, &(wish_t){.matches = rows[i].matches, .reads = rows[i].reads});
        fixture_publish(&f, rows[i].topic, "x");
        fixture_drain(&f);
        HK_CHECK_EQUAL_INT(rows[i].is_in_step, is_in_step(&reader));
    }
    HK_CHECK_BYTES("x x x x x x", data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP));
    fixture_end(&f);
}

/* Between what is taken for a stream and what is said of it the stream may get another grant. */
HK_TEST(what_was_taken_from_an_epoch_counts_as_said_alone_when_the_stream_leaves_it)
{
    for (unsigned in_step = 0; in_step < 2; in_step++) {
        fixture_t f;
        reader_t reader;
        hk_bytes_t taken;
        fixture_begin(&f, NULL);
        fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /b", .changeable = true, .coding = HK_STREAM_GZIP});
        fixture_drain(&f);
        publish_in_turn(&f, in_step * 3);
        fixture_publish(&f, "/a", "x");
        hk_subscriber_t *next = hk_hub_next_ready(f.hub);
        HK_CHECK(next == reader.subscriber);
        HK_CHECK_OK(hk_hub_take(f.hub, next, 1000, &taken));
        HK_CHECK_OK(hk_buf_append(&reader.received, taken));
        fixture_change(&f, &reader, &(wish_t){.matches = "/a /b", .reads = "/x"});
        HK_CHECK(hk_subscriber_membership(reader.subscriber)->group == NULL);
        HK_CHECK_OK(hk_hub_wrote(f.hub, next, taken.length - 2, f.now));
        reader.received.length -= 2;
        hk_hub_writable(f.hub, next);
        fixture_publish(&f, "/b", "y");
        fixture_drain(&f);
        HK_CHECK_OK(hk_hub_farewell(f.hub, reader.subscriber, HK_BYTES("retry: 5\n\n"), &reader.received));
        coded_stream_t stream;
        coded_read(&stream, hk_buf_bytes(&reader.received), HK_STREAM_EVENTS, HK_STREAM_GZIP);
        HK_CHECK(stream.ended);
        coded_release(&stream);
        fixture_end(&f);
    }
}

HK_TEST(a_burst_of_several_epochs_leaves_nobody_out_of_step)
{
    fixture_t f;
    reader_t readers[2];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 2; i++) {
        fixture_subscribe(&f, &readers[i], &gzip_a);
    }
    for (size_t i = 0; i < 100; i++) {
        fixture_publish(&f, "/a", "x");
    }
    fixture_drain(&f);
    HK_CHECK(is_in_step(&readers[0]) && is_in_step(&readers[1]));
    HK_CHECK_EQUAL_UINT(1 + 3, readers[0].writes);
    HK_CHECK_EQUAL_UINT(100 * 2 - 1, data_of(&f, &readers[1], HK_STREAM_EVENTS, HK_STREAM_GZIP).length);
    fixture_end(&f);
}

HK_TEST(after_a_burst_those_come_into_step_who_were_not)
{
    fixture_t f;
    reader_t steady, late;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &steady, &gzip_a);
    publish_many(&f, "/a", 10);
    fixture_subscribe(&f, &late, &gzip_a);
    for (size_t i = 0; i < 50; i++) {
        fixture_publish(&f, "/a", "x");
    }
    fixture_drain(&f);
    HK_CHECK(is_in_step(&steady) && !is_in_step(&late));
    fixture_publish(&f, "/a", "x");
    fixture_drain(&f);
    HK_CHECK(is_in_step(&steady) && is_in_step(&late));
    HK_CHECK_EQUAL_UINT(51 * 2 - 1, data_of(&f, &late, HK_STREAM_EVENTS, HK_STREAM_GZIP).length);
    fixture_end(&f);
}

HK_TEST(a_slow_reader_goes_on_with_what_is_left_and_stays_in_step)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &gzip_a);
    fixture_drain(&f);
    fixture_give_room(&f, &reader, 1);
    fixture_publish(&f, "/a", "one");
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(11, reader.received.length);
    fixture_publish(&f, "/a", "two");
    for (size_t i = 0; i < 400; i++) {
        fixture_give_room(&f, &reader, 1);
        fixture_drain(&f);
    }
    HK_CHECK(is_in_step(&reader));
    HK_CHECK_BYTES("one two", data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP));
    fixture_end(&f);
}

HK_TEST(what_is_kept_of_large_events_is_counted_and_limited)
{
    enum { READERS = 5, LARGE = 4 * 1024 * 1024 };
    fixture_t f;
    static reader_t readers[READERS];
    hk_hub_options_t options = fixture_options();
    options.history_bytes = (size_t)1 << 26;
    fixture_begin(&f, &options);
    for (size_t i = 0; i < READERS; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a", .form = HK_STREAM_MESSAGE_PACK, .room = 100});
    }
    char *data = malloc(LARGE);
    memset(data, 'x', LARGE);
    HK_CHECK_OK(fixture_try_publish(&f, "/a", (hk_log_update_t){.data = hk_bytes(data, LARGE), .retry_ms = -1}));
    free(data);
    fixture_drain(&f);
    size_t closed = 0;
    for (size_t i = 0; i < READERS; i++) {
        closed += readers[i].subscriber == NULL && readers[i].closing == HK_CLOSING_OVERRUN;
    }
    HK_CHECK_EQUAL_UINT(1, closed);
    HK_CHECK(f.hub->coding->held > 4 * (LARGE - 1000));
    for (size_t i = 0; i < READERS; i++) {
        if (readers[i].subscriber != NULL) {
            fixture_give_room(&f, &readers[i], ANY_ROOM);
            fixture_drain(&f);
            HK_CHECK(readers[i].received.length > LARGE);
        }
    }
    HK_CHECK_EQUAL_UINT(0, f.hub->coding->held);
    fixture_end(&f);
}

HK_TEST(there_are_64_epochs_and_whoever_comes_later_gets_blocks)
{
    fixture_t f;
    static reader_t readers[70];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 70; i++) {
        char topic[20];
        snprintf(topic, sizeof(topic), "/t/%zu", i);
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = topic, .coding = HK_STREAM_GZIP});
        publish_many(&f, topic, 1);
        HK_CHECK_EQUAL_INT(i < 64, is_in_step(&readers[i]));
    }
    HK_CHECK_EQUAL_UINT(64, f.hub->coding->epoch_feeds);
    fixture_unsubscribe(&f, &readers[3]);
    HK_CHECK_EQUAL_UINT(63, f.hub->coding->epoch_feeds);
    fixture_end(&f);
}

HK_TEST(a_feed_or_group_with_twice_as_many_members_gets_the_epoch_of_the_smallest)
{
    static const char *const rows[] = {"/many", "/many /more"};
    for (size_t row = 0; row < 2; row++) {
        fixture_t f;
        static reader_t readers[64], many[3];
        fixture_begin(&f, NULL);
        for (size_t i = 0; i < 64; i++) {
            char topic[20];
            snprintf(topic, sizeof(topic), "/t/%zu", i % 60);
            fixture_subscribe(&f, &readers[i], &(wish_t){.matches = i < 60 ? topic : "/t/*", .coding = HK_STREAM_GZIP});
        }
        HK_CHECK_EQUAL_UINT(61, f.hub->coding->epoch_feeds);
        reader_t more[5];
        for (size_t i = 0; i < 5; i++) {
            char topic[20];
            snprintf(topic, sizeof(topic), "/u/%zu", i);
            fixture_subscribe(&f, &more[i], &(wish_t){.matches = topic, .coding = HK_STREAM_GZIP});
        }
        HK_CHECK_EQUAL_UINT(64, f.hub->coding->epoch_feeds);
        publish_many(&f, "/t/0", 3);
        for (size_t i = 0; i < 3; i++) {
            fixture_subscribe(&f, &many[i], &(wish_t){.matches = rows[row], .coding = HK_STREAM_GZIP});
            publish_many(&f, "/many", 2);
            HK_CHECK_EQUAL_INT(i > 0, is_in_step(&many[0]));
        }
        HK_CHECK_EQUAL_UINT(64, f.hub->coding->epoch_feeds);
        size_t in_step = 0;
        for (size_t i = 0; i < 60; i++) {
            char topic[20];
            snprintf(topic, sizeof(topic), "/t/%zu", i);
            publish_many(&f, topic, 2);
            in_step += is_in_step(&readers[i]);
            coded_stream_t stream;
            coded_read(&stream, hk_buf_bytes(&readers[i].received), HK_STREAM_EVENTS, HK_STREAM_GZIP);
            coded_release(&stream);
        }
        HK_CHECK_EQUAL_UINT(59, in_step);
        for (size_t i = 0; i < 64; i++) {
            fixture_unsubscribe(&f, &readers[i]);
        }
        HK_CHECK_EQUAL_UINT(4, f.hub->coding->epoch_feeds);
        fixture_end(&f);
    }
}

HK_TEST(an_epoch_of_which_something_is_being_written_is_taken_from_nobody)
{
    fixture_t f;
    static reader_t readers[64], many[2];
    hk_bytes_t taken;
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 64; i++) {
        char topic[20];
        snprintf(topic, sizeof(topic), "/t/%zu", i);
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = topic, .coding = HK_STREAM_GZIP});
    }
    fixture_drain(&f);
    fixture_publish(&f, "/t/0", "x");
    HK_CHECK(hk_hub_next_ready(f.hub) == readers[0].subscriber);
    HK_CHECK_OK(hk_hub_take(f.hub, readers[0].subscriber, 1000, &taken));
    HK_CHECK_OK(hk_buf_append(&readers[0].received, hk_bytes(taken.at, 5)));
    for (size_t i = 0; i < 2; i++) {
        fixture_subscribe(&f, &many[i], &(wish_t){.matches = "/many", .coding = HK_STREAM_GZIP});
    }
    HK_CHECK_OK(hk_hub_wrote(f.hub, readers[0].subscriber, 5, f.now));
    hk_hub_writable(f.hub, readers[0].subscriber);
    HK_CHECK_BYTES("x", data_of(&f, &readers[0], HK_STREAM_EVENTS, HK_STREAM_GZIP));
    fixture_end(&f);
}

HK_TEST(heartbeats_are_blocks_that_cost_no_memory)
{
    fixture_t f;
    reader_t reader;
    hk_hub_options_t options = fixture_options();
    options.heartbeat = 15 * SECOND;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &reader, &gzip_a);
    publish_many(&f, "/a", 3);
    size_t requests = hk_test_requests();
    f.now += 20 * SECOND;
    HK_CHECK_OK(hk_hub_tick(f.hub, f.now));
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    fixture_drain(&f);
    coded_stream_t stream;
    coded_read(&stream, hk_buf_bytes(&reader.received), HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK_EQUAL_UINT(1, stream.heartbeats);
    coded_release(&stream);
    HK_CHECK(!is_in_step(&reader));
    fixture_end(&f);
}

HK_TEST(what_compressed_streams_begin_with_costs_no_memory_and_is_the_same)
{
    fixture_t f;
    reader_t first, second;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &first, &gzip_a);
    fixture_subscribe(&f, &second, &gzip_a);
    size_t requests = hk_test_requests();
    HK_CHECK_OK(hk_hub_control(f.hub, first.subscriber, HK_SSE_HEARTBEAT));
    HK_CHECK_OK(hk_hub_control(f.hub, second.subscriber, HK_SSE_HEARTBEAT));
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    HK_CHECK_OK(hk_hub_control(f.hub, second.subscriber, HK_SSE_HEARTBEAT));
    publish_many(&f, "/a", 2);
    reader_t *readers[] = {&first, &second};
    for (size_t i = 0; i < 2; i++) {
        coded_stream_t stream;
        HK_CHECK_OK(hk_hub_farewell(f.hub, readers[i]->subscriber, HK_BYTES("retry: 5\n\n"), &readers[i]->received));
        coded_read(&stream, hk_buf_bytes(&readers[i]->received), HK_STREAM_EVENTS, HK_STREAM_GZIP);
        HK_CHECK_EQUAL_UINT(1 + i, stream.heartbeats);
        HK_CHECK(stream.ended);
        coded_release(&stream);
    }
    fixture_end(&f);
}

HK_TEST(the_ring_may_pass_an_epoch)
{
    fixture_t f;
    reader_t reader;
    hk_hub_options_t options = fixture_options();
    options.history_bytes = 4000;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &reader, &gzip_a);
    fixture_drain(&f);
    for (size_t i = 0; i < 40; i++) {
        fixture_publish(&f, "/a", "x");
    }
    hk_bytes_t data = data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK(memmem(data.at, data.length, "\"reason\":\"overrun\"", 18) != NULL);
    for (size_t i = 0; i < 40; i++) {
        fixture_publish(&f, "/a", "y");
        fixture_drain(&f);
    }
    HK_CHECK(is_in_step(&reader));
    data = data_of(&f, &reader, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    HK_CHECK_BYTES("y y y y", hk_bytes(data.at + data.length - 7, 7));
    fixture_end(&f);
}

#else

HK_TEST(without_zlib_a_stream_cannot_be_compressed)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    HK_CHECK_STATUS(HK_NOT_FOUND,
                    fixture_try_subscribe(&f, &reader, &(wish_t){.matches = "/a", .coding = HK_STREAM_GZIP}));
    fixture_end(&f);
}

#endif

/* Subscribes, publishes, delivers; when there is memory again, the reader reads all that was published. */
static void run_short_of_memory(hk_stream_form_t form, hk_stream_coding_t coding, bool naming)
{
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        reader_t reader = {0};
        size_t published = 0, before = 0;
        bool more, subscribed = false;
        if (fixture_try(&f, NULL) == HK_OK) {
            wish_t wish = {.matches = naming ? "/a /b" : "/a", .form = form, .coding = coding, .naming = naming};
            subscribed = fixture_try_subscribe(&f, &reader, &wish) == HK_OK;
            for (size_t i = 0; i < 4; i++) {
                hk_log_update_t update = {.data = HK_BYTES("x"), .retry_ms = -1};
                before = fixture_try_publish(&f, "/a", update) == HK_OK ? published++ : before;
                reader.room = i == 1 ? 3 : ANY_ROOM;
                (void)fixture_serve(&f, 10, &more);
                if (reader.subscriber != NULL) {
                    (void)hk_hub_control(f.hub, reader.subscriber, HK_SSE_HEARTBEAT);
                    fixture_give_room(&f, &reader, ANY_ROOM);
                }
                (void)fixture_serve(&f, 10, &more);
            }
            hk_test_not_failing();
            if (reader.subscriber != NULL) {
                hk_bytes_t data = data_of(&f, &reader, form, coding);
                HK_CHECK_EQUAL_UINT(published * 2 - (published > 0), data.length);
            } else {
                HK_CHECK(!subscribed || reader.closing == HK_CLOSING_OVERRUN);
            }
            if (!subscribed) {
                reader_release(&reader);
            }
            fixture_end(&f);
        }
    }
}

HK_TEST(without_memory_nothing_is_lost_but_a_stream_of_which_a_part_was_sent)
{
    run_short_of_memory(HK_STREAM_MESSAGE_PACK, HK_STREAM_IDENTITY, false);
    run_short_of_memory(HK_STREAM_EVENTS, HK_STREAM_IDENTITY, true);
    if (hk_gzip_available()) {
        run_short_of_memory(HK_STREAM_EVENTS, HK_STREAM_GZIP, false);
        run_short_of_memory(HK_STREAM_EVENTS, HK_STREAM_GZIP, true);
        run_short_of_memory(HK_STREAM_MESSAGE_PACK, HK_STREAM_GZIP, false);
    }
}

HK_TEST(without_memory_a_whole_stream_is_said_to_who_is_gone_or_nothing)
{
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        reader_t reader = {0};
        char last[3000];
        wish_t wish = {.matches = "/a",
                       .form = hk_gzip_available() ? HK_STREAM_EVENTS : HK_STREAM_MESSAGE_PACK,
                       .coding = hk_gzip_available() ? HK_STREAM_GZIP : HK_STREAM_IDENTITY};
        if (fixture_try(&f, NULL) == HK_OK) {
            if (fixture_try_subscribe(&f, &reader, &wish) == HK_OK) {
                hk_buf_t out;
                uint64_t serial = hk_subscriber_serial(reader.subscriber);
                hk_buf_init(&out, hk_test_alloc());
                memset(last, ':', sizeof(last));
                fixture_unsubscribe(&f, &reader);
                hk_status_t status = hk_hub_farewell_to_gone(f.hub, serial, hk_bytes(last, sizeof(last)), &out);
                HK_CHECK(status == HK_OK ? out.length > 0 : out.length == 0 && status == HK_NO_MEMORY);
                hk_buf_release(&out);
            } else {
                reader_release(&reader);
            }
            fixture_end(&f);
        }
    }
}
