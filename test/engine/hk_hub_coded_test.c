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
    reader_t told, late, steady;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &steady, &gzip_a);
    fixture_subscribe(&f, &told, &gzip_a);
    publish_many(&f, "/a", 10);
    HK_CHECK_OK(hk_hub_control(f.hub, told.subscriber, HK_SSE_HEARTBEAT));
    fixture_subscribe(&f, &late, &gzip_a);
    publish_many(&f, "/a", 22);
    HK_CHECK(is_in_step(&steady) && !is_in_step(&told) && !is_in_step(&late));
    publish_many(&f, "/a", 1);
    HK_CHECK(is_in_step(&steady) && is_in_step(&told) && is_in_step(&late));
    HK_CHECK_EQUAL_UINT(1, f.hub->coding->epoch_feeds);
    fixture_end(&f);
}

HK_TEST(who_may_read_private_updates_or_has_several_matchers_is_never_in_step)
{
    fixture_t f;
    reader_t reads, many, alone;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reads, &(wish_t){.matches = "/a", .reads = "/x", .coding = HK_STREAM_GZIP});
    fixture_subscribe(&f, &many, &(wish_t){.matches = "/a /b", .coding = HK_STREAM_GZIP});
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

HK_TEST(a_stream_that_is_changed_comes_into_step_with_its_new_feed)
{
    static const struct {
        const char *matches, *topic, *reads;
        bool is_in_step;
    } rows[] = {{"/a", "/a", NULL, true}, {"/b", "/b", NULL, true},  {"/b /c", "/c", NULL, false},
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
    HK_CHECK_EQUAL_UINT(1 + 4, readers[0].writes);
    HK_CHECK_EQUAL_UINT(100 * 2 - 1, data_of(&f, &readers[1], HK_STREAM_EVENTS, HK_STREAM_GZIP).length);
    fixture_end(&f);
}

HK_TEST(a_burst_brings_those_into_step_who_were_not)
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
    HK_CHECK(is_in_step(&steady) && is_in_step(&late));
    HK_CHECK_EQUAL_UINT(50 * 2 - 1, data_of(&f, &late, HK_STREAM_EVENTS, HK_STREAM_GZIP).length);
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
static void run_short_of_memory(hk_stream_form_t form, hk_stream_coding_t coding)
{
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        reader_t reader = {0};
        size_t published = 0, before = 0;
        bool more, subscribed = false;
        if (fixture_try(&f, NULL) == HK_OK) {
            wish_t wish = {.matches = "/a", .form = form, .coding = coding};
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
    run_short_of_memory(HK_STREAM_MESSAGE_PACK, HK_STREAM_IDENTITY);
    if (hk_gzip_available()) {
        run_short_of_memory(HK_STREAM_EVENTS, HK_STREAM_GZIP);
        run_short_of_memory(HK_STREAM_MESSAGE_PACK, HK_STREAM_GZIP);
    }
}
