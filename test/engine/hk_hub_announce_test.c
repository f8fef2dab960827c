#include "hk_hub_fixture.h"

/* Subscription events. */

static void check_announcements(const reader_t *reader, const char *id, const char *active)
{
    char expected[1000];
    size_t length = 0;
    for (const char *at = active; *at != '\0'; at++) {
        length += (size_t)snprintf(
            expected + length, sizeof(expected) - length,
            "data: "
            "{\"id\":\"/.well-known/mercure/subscriptions/exact/%%2Fa/urn%%3Auuid%%3A%.36s\",\"subscriber\":\"%.45s\","
            "\"active\":%s}\n\n",
            id + 9, id, *at == '+' ? "true" : "false");
    }
    hk_bytes_t rest = hk_buf_bytes(&reader->received), line;
    char actual[1000];
    size_t taken = 0;
    while (hk_test_line(&rest, &line)) {
        HK_CHECK(!hk_bytes_start_with(line, HK_BYTES("event")) || hk_bytes_equal(line, HK_BYTES("event: mercure")));
        if (hk_bytes_start_with(line, HK_BYTES("data: ")) || line.length == 0) {
            memcpy(actual + taken, line.at, line.length);
            taken += line.length;
            actual[taken++] = '\n';
        }
    }
    HK_CHECK_BYTES(hk_bytes(expected, length), hk_bytes(actual, taken));
}

#define ALL_SUBSCRIPTIONS "/.well-known/mercure/subscriptions/*"

HK_TEST(subscriptions_are_announced_to_whoever_may_read_that_oneself_included)
{
    fixture_t f;
    reader_t reader, other, stranger;
    char id[HK_SUBSCRIBER_ID_BYTES], own[HK_SUBSCRIBER_ID_BYTES];
    hk_hub_options_t options = fixture_options();
    options.announces = true;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &stranger, &(wish_t){.matches = ALL_SUBSCRIPTIONS});
    fixture_subscribe(&f, &reader,
                      &(wish_t){.matches = ALL_SUBSCRIPTIONS, .reads = ALL_SUBSCRIPTIONS, .announced = true});
    hk_subscriber_id(f.hub, reader.subscriber, own);
    fixture_drain(&f);
    check_announcements(&reader, own, "+");
    hk_buf_clear(&reader.received);
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a /b", .announced = true});
    hk_subscriber_id(f.hub, other.subscriber, id);
    fixture_unsubscribe(&f, &other);
    fixture_drain(&f);
    check_announcements(&reader, id, "++--");
    HK_CHECK_EQUAL_UINT(0, stranger.received.length);
    hk_record_t *record = hk_log_at(hk_hub_log(f.hub), hk_log_head(hk_hub_log(f.hub)));
    const hk_topic_t *topic = record->topics[0];
    HK_CHECK(record->is_private);
    HK_CHECK(topic->is_url && topic->reserved);
    HK_CHECK_BYTES(hk_topic_value(topic), topic->url.parts[HK_URL_PATHNAME]);
    HK_CHECK_BYTES("https://hub.example.com", topic->url.origin);
    HK_CHECK_BYTES("", topic->url.parts[HK_URL_SEARCH]);
    fixture_end(&f);
}

HK_TEST(a_hub_that_ends_announces_nothing)
{
    fixture_t f;
    reader_t reader, other;
    hk_hub_options_t options = fixture_options();
    options.announces = true;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .announced = true});
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).publishes);
    hk_hub_shutdown(f.hub);
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a", .announced = true});
    fixture_drain(&f);
    HK_CHECK_EQUAL_INT(HK_CLOSING_SHUTDOWN, reader.closing);
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).publishes);
    fixture_end(&f);
}

HK_TEST(a_hub_that_was_not_told_to_announces_nothing)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .announced = true});
    fixture_unsubscribe(&f, &reader);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).publishes);
    fixture_end(&f);
}

#define COSTLY "$/* $/.* $/.w*"

HK_TEST(what_takes_long_to_match_is_announced_later_in_order_and_in_pieces)
{
    fixture_t f;
    reader_t reader, hostile, other, late;
    char id[HK_SUBSCRIBER_ID_BYTES];
    hk_hub_options_t options = fixture_options();
    options.announces = true;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = ALL_SUBSCRIPTIONS, .reads = ALL_SUBSCRIPTIONS});
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a /b", .announced = true});
    hk_subscriber_id(f.hub, other.subscriber, id);
    fixture_drain(&f);
    check_announcements(&reader, id, "++");
    hk_buf_clear(&reader.received);
    fixture_subscribe(&f, &hostile, &(wish_t){.matches = COSTLY, .reads = ALL_SUBSCRIPTIONS});
    fixture_unsubscribe(&f, &other);
    HK_CHECK(hk_hub_ready(f.hub));
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).publishes);
    size_t turns = 0;
    for (bool more = true; fixture_stats(&f).publishes < 4; turns++) {
        HK_CHECK(more);
        HK_CHECK_OK(fixture_serve(&f, 7, &more));
        if (turns == 1) {
            fixture_subscribe(&f, &late, &(wish_t){.matches = "$/.we*", .reads = ALL_SUBSCRIPTIONS});
        }
    }
    HK_CHECK_EQUAL_UINT(9, turns);
    fixture_drain(&f);
    check_announcements(&reader, id, "--");
    HK_CHECK_EQUAL_UINT(reader.received.length, hostile.received.length);
    HK_CHECK_EQUAL_UINT(reader.received.length, late.received.length);
    fixture_end(&f);
}

HK_TEST(who_goes_before_its_coming_was_announced_is_not_announced)
{
    fixture_t f;
    reader_t hostile, others[3];
    hk_hub_options_t options = fixture_options();
    options.announces = true;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &hostile, &(wish_t){.matches = COSTLY});
    for (size_t i = 0; i < 3; i++) {
        fixture_subscribe(&f, &others[i], &(wish_t){.matches = "/a", .announced = true});
    }
    fixture_unsubscribe(&f, &others[1]);
    bool more;
    HK_CHECK_OK(fixture_serve(&f, 7, &more));
    fixture_unsubscribe(&f, &others[0]); /* whose coming is being announced */
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(3, fixture_stats(&f).publishes);
    fixture_unsubscribe(&f, &others[2]);
    HK_CHECK_EQUAL_UINT(3, fixture_stats(&f).publishes);
    hk_hub_shutdown(f.hub);
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(3, fixture_stats(&f).publishes);
    fixture_end(&f);
}

HK_TEST(streams_are_not_changed_while_much_waits_to_be_announced)
{
    enum { MOST = 4096 };
    fixture_t f;
    reader_t hostile, other;
    hk_hub_options_t options = fixture_options();
    options.announces = true;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &hostile, &(wish_t){.matches = COSTLY});
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a", .announced = true, .changeable = true});
    hk_status_t status = HK_OK;
    size_t changes = 0;
    for (; status == HK_OK && changes < MOST; changes++) {
        const char *matches = changes % 2 == 0 ? "/b" : "/a";
        status = fixture_try_change(&f, &other, &(wish_t){.matches = matches, .announced = true});
    }
    HK_CHECK_EQUAL_INT(HK_TOO_COSTLY, status);
    fixture_unsubscribe(&f, &other);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).publishes);
    fixture_end(&f);
}
