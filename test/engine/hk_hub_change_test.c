#include "hk_hub_fixture.h"

/* Streams that get another grant while they last. What every engine does is in test/contracts/engine/changing.rb. */

static hk_bytes_t received(fixture_t *f, reader_t *reader)
{
    fixture_drain(f);
    return hk_buf_bytes(&reader->received);
}

static bool holds(hk_bytes_t text, const char *part)
{
    return text.length > 0 && memmem(text.at, text.length, part, strlen(part)) != NULL;
}

HK_TEST(a_matcher_that_is_added_begins_now_and_those_that_stay_go_on)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/b", "before");
    fixture_publish(&f, "/a", "1");
    fixture_change(&f, &reader, &(wish_t){.matches = "/b /a"});
    HK_CHECK_BYTES(hk_test_text(f.id), hk_test_text(reader.answer));
    fixture_publish(&f, "/b", "2");
    fixture_publish(&f, "/a /b", "3");
    HK_CHECK_BYTES("1 2 3", fixture_data(&f, &reader));
    fixture_change(&f, &reader, &(wish_t){.matches = "/b"});
    fixture_publish(&f, "/a", "for nobody");
    fixture_publish(&f, "/b", "4");
    HK_CHECK_BYTES("1 2 3 4", fixture_data(&f, &reader));
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).feeds);
    HK_CHECK_EQUAL_UINT(1, fixture_stats(&f).subscriptions);
    fixture_end(&f);
}

HK_TEST(what_is_added_is_caught_up_without_what_came_already)
{
    fixture_t f;
    reader_t reader;
    char seen[80];
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/b", "seen");
    strcpy(seen, f.id);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/b", "missed");
    fixture_publish(&f, "/a /b", "of both");
    fixture_publish(&f, "/a", "1");
    HK_CHECK_BYTES("of both 1", fixture_data(&f, &reader));
    fixture_change(&f, &reader, &(wish_t){.matches = "/a /b*", .cursor = seen});
    HK_CHECK_BYTES("of both 1 missed", fixture_data(&f, &reader));
    fixture_publish(&f, "/b", "2");
    HK_CHECK_BYTES("of both 1 missed 2", fixture_data(&f, &reader));
    HK_CHECK(holds(received(&f, &reader), "data: missed\n\n: caught up\n\n"));
    fixture_end(&f);
}

/* Whether a stream is served the short way again shows in nothing but its flags: one write to all who are alike. */
HK_TEST(a_stream_that_has_caught_up_goes_the_short_way_again)
{
    enum { MANY = 50 };
    fixture_t f;
    static reader_t readers[MANY];
    hk_grant_t *grant;
    fixture_begin(&f, NULL);
    HK_CHECK_OK(fixture_grant(&(wish_t){.matches = "/b"}, &grant));
    for (size_t i = 0; i < MANY; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
    }
    fixture_publish(&f, "/b", "before");
    for (size_t i = 0; i < MANY; i++) {
        fixture_change(&f, &readers[i], &(wish_t){.grant = grant, .cursor = i % 2 == 0 ? "earliest" : NULL});
    }
    hk_grant_release(grant);
    fixture_drain(&f);
    for (size_t i = 0; i < MANY; i++) {
        readers[i].writes = 0;
    }
    fixture_publish(&f, "/b", "after");
    bool more;
    HK_CHECK_OK(fixture_serve(&f, MANY, &more));
    for (size_t i = 0; i < MANY; i++) {
        HK_CHECK_EQUAL_UINT(1, readers[i].writes);
        HK_CHECK_BYTES(hk_test_text(i % 2 == 0 ? "before after" : "after"), fixture_data(&f, &readers[i]));
    }
    fixture_end(&f);
}

HK_TEST(a_new_token_for_the_same_matchers_takes_no_memory)
{
    fixture_t f;
    reader_t reader;
    hk_grant_t *grants[2];
    hk_hub_options_t options = fixture_options();
    options.max_lifetime = 100000 * SECOND;
    options.announces = true;
    fixture_begin(&f, &options);
    for (size_t i = 0; i < 2; i++) {
        HK_CHECK_OK(fixture_grant(&(wish_t){.matches = "/a /b", .reads = "/a", .announced = true}, &grants[i]));
    }
    fixture_subscribe(&f, &reader, &(wish_t){.grant = grants[0], .expires_in = 10 * SECOND});
    hk_subscriber_t *subscriber = reader.subscriber;
    fixture_change(&f, &reader, &(wish_t){.grant = grants[1], .expires_in = 10 * SECOND});
    size_t before = hk_test_bytes_in_use();
    hk_position_t head = hk_log_head(hk_hub_log(f.hub));
    for (size_t i = 0; i < 100; i++) {
        f.now += 5 * SECOND;
        hk_test_failing(0);
        fixture_change(&f, &reader, &(wish_t){.grant = grants[i % 2], .expires_in = 10 * SECOND});
        hk_test_not_failing();
        HK_CHECK_OK(hk_hub_tick(f.hub, f.now));
    }
    HK_CHECK(reader.subscriber == subscriber);
    HK_CHECK_EQUAL_UINT(before, hk_test_bytes_in_use());
    HK_CHECK_EQUAL_UINT(head, hk_log_head(hk_hub_log(f.hub)));
    HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, hk_subscriber_closing(reader.subscriber));
    f.now += 10 * SECOND;
    HK_CHECK_OK(hk_hub_tick(f.hub, f.now));
    HK_CHECK_EQUAL_INT(HK_CLOSING_EXPIRED, hk_subscriber_closing(reader.subscriber));
    HK_CHECK_STATUS(HK_CLOSED, fixture_try_change(&f, &reader, &(wish_t){.grant = grants[0]}));
    hk_grant_release(grants[0]);
    hk_grant_release(grants[1]);
    fixture_end(&f);
}

/* Grants come and go, until one stands where that stood for which something private was gathered. */
HK_TEST(what_was_gathered_for_a_grant_that_is_gone_is_not_for_the_next_at_its_address)
{
    for (size_t round = 0; round < 50; round++) {
        fixture_t f;
        reader_t readers[2];
        fixture_begin(&f, NULL);
        for (size_t i = 0; i < 2; i++) {
            fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a", .reads = "/a"});
        }
        fixture_drain(&f);
        fixture_publish_privately(&f, "/a", "secret");
        bool more;
        HK_CHECK_OK(fixture_serve(&f, 1, &more));
        size_t first = readers[0].received.length > 0 ? 0 : 1;
        fixture_change(&f, &readers[first], &(wish_t){.matches = "/a", .reads = "/b"});
        for (size_t i = 0; i < round % 5; i++) {
            fixture_change(&f, &readers[1 - first], &(wish_t){.matches = "/a", .reads = "/c"});
        }
        hk_bytes_t bytes;
        HK_CHECK_OK(hk_hub_take(f.hub, readers[1 - first].subscriber, 1000, &bytes));
        HK_CHECK_EQUAL_INT(round % 5 == 0, holds(bytes, "secret"));
        fixture_end(&f);
    }
}

HK_TEST(only_so_many_layers_lie_on_each_other)
{
    fixture_t f;
    reader_t reader;
    char ids[10][80], matches[100] = "/x";
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 10; i++) {
        char topic[] = {'/', (char)('0' + i), '\0'};
        fixture_publish(&f, topic, topic + 1);
        strcpy(ids[i], f.id);
    }
    fixture_subscribe(&f, &reader, &(wish_t){.matches = matches});
    for (size_t i = 9; i > 1; i--) {
        sprintf(matches + strlen(matches), " /%zu", i);
        fixture_change(&f, &reader, &(wish_t){.matches = matches, .cursor = ids[i - 1]});
    }
    size_t before = hk_test_bytes_in_use();
    strcat(matches, " /1");
    HK_CHECK_STATUS(HK_TOO_MANY, fixture_try_change(&f, &reader, &(wish_t){.matches = matches, .cursor = ids[0]}));
    HK_CHECK_EQUAL_UINT(before, hk_test_bytes_in_use());
    HK_CHECK(!hk_hub_watched(f.hub, HK_BYTES("/1")));
    HK_CHECK_BYTES("2 3 4 5 6 7 8 9", fixture_data(&f, &reader));
    fixture_change(&f, &reader, &(wish_t){.matches = matches, .cursor = ids[0]});
    HK_CHECK_BYTES("2 3 4 5 6 7 8 9 1", fixture_data(&f, &reader));
    fixture_end(&f);
}

HK_TEST(only_a_stream_that_asked_for_it_has_a_capability)
{
    fixture_t f;
    reader_t readers[3], later;
    char capabilities[2][HK_STREAM_CAPABILITY_BYTES];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 3; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a", .changeable = i < 2});
    }
    for (size_t i = 0; i < 2; i++) {
        HK_CHECK_OK(hk_hub_capability(f.hub, readers[i].subscriber, capabilities[i]));
        fixture_change(&f, &readers[i], &(wish_t){.matches = "/b /c"});
        hk_bytes_t bytes = hk_bytes(capabilities[i], sizeof(capabilities[i]));
        HK_CHECK(hk_hub_find_changeable(f.hub, bytes) == readers[i].subscriber);
    }
    char none[HK_STREAM_CAPABILITY_BYTES];
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_hub_capability(f.hub, readers[2].subscriber, none));
    hk_bytes_t first = hk_bytes(capabilities[0], sizeof(capabilities[0]));
    fixture_unsubscribe(&f, &readers[0]);
    HK_CHECK(hk_hub_find_changeable(f.hub, first) == NULL);
    fixture_subscribe(&f, &later, &(wish_t){.matches = "/a", .changeable = true});
    HK_CHECK(hk_hub_find_changeable(f.hub, first) == NULL);
    static const uint8_t key[HK_LOG_KEY_BYTES] = "another key, too";
    hk_hub_rekey(f.hub, key);
    HK_CHECK(hk_hub_find_changeable(f.hub, hk_bytes(capabilities[1], sizeof(capabilities[1]))) == NULL);
    fixture_end(&f);
}

HK_TEST(a_change_between_taking_and_writing_of_what_was_taken_leaves_the_hub_whole)
{
    fixture_t f;
    reader_t reader;
    hk_bytes_t bytes;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_drain(&f);
    fixture_publish(&f, "/a", "1");
    HK_CHECK(hk_hub_next_ready(f.hub) == reader.subscriber);
    HK_CHECK_OK(hk_hub_take(f.hub, reader.subscriber, 100, &bytes));
    size_t length = bytes.length;
    fixture_change(&f, &reader, &(wish_t){.matches = "/b /a"});
    HK_CHECK_OK(hk_hub_wrote(f.hub, reader.subscriber, length, f.now));
    fixture_publish(&f, "/b", "2");
    HK_CHECK_BYTES("1 2", fixture_data(&f, &reader)); /* nothing was reported: it is handed out again, not lost */
    fixture_end(&f);
}

HK_TEST(many_matchers_are_exchanged_for_many)
{
    enum { MANY = 64 };
    fixture_t f;
    reader_t reader;
    char old[600] = "", new[600] = "", topic[20];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < MANY; i++) {
        sprintf(old + strlen(old), " /%zu" + (i == 0), i);
        sprintf(new + strlen(new), " /%zu" + (i == 0), MANY / 2 + MANY - 1 - i);
    }
    fixture_subscribe(&f, &reader, &(wish_t){.matches = old});
    for (size_t round = 0; round < 20; round++) {
        fixture_change(&f, &reader, &(wish_t){.matches = round % 2 == 0 ? new : old});
        HK_CHECK_EQUAL_UINT(MANY, fixture_stats(&f).feeds);
        HK_CHECK_EQUAL_UINT(MANY, fixture_stats(&f).subscriptions);
    }
    for (size_t i = 0; i < MANY + MANY / 2; i++) {
        sprintf(topic, "/%zu", i);
        fixture_publish(&f, topic, "x");
    }
    HK_CHECK_EQUAL_UINT(2 * MANY - 1, fixture_data(&f, &reader).length);
    fixture_end(&f);
}

/* -- Without memory ------------------------------------------------------------------------------------------------ */

/* Its subscriptions, its private topics, its end and its announcements are others. */
HK_TEST(a_change_for_which_there_is_no_memory_changes_nothing)
{
    bool failed = true;
    for (size_t n = 0; failed; n++) {
        fixture_t f;
        reader_t reader;
        hk_grant_t *grant;
        hk_hub_options_t options = fixture_options();
        options.announces = true;
        fixture_begin(&f, &options);
        fixture_publish(&f, "/b", "1");
        fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /x", .subject = "bob", .announced = true});
        fixture_publish(&f, "/a", "2");
        fixture_drain(&f);
        HK_CHECK_OK(fixture_grant(
            &(wish_t){.matches = "/b /c* /a * /d", .reads = "/e*", .subject = "eve", .announced = true}, &grant));
        hk_hub_stats_t before = fixture_stats(&f);
        wish_t wish = {.grant = grant, .cursor = "urn:unknown", .expires_in = SECOND};
        hk_test_note("request %zu", n);
        hk_test_failing(n);
        hk_status_t status = fixture_try_change(&f, &reader, &wish);
        failed = hk_test_failed();
        hk_test_not_failing();
        HK_CHECK(status == HK_OK || (failed && status == HK_NO_MEMORY));
        bool changed = status == HK_OK;
        hk_hub_stats_t after = fixture_stats(&f);
        HK_CHECK_EQUAL_UINT(changed ? 5 : 2, after.subscriptions);
        HK_CHECK_EQUAL_UINT(changed ? 5 : 2, after.feeds);
        HK_CHECK(changed || after.publishes == before.publishes);
        HK_CHECK_EQUAL_INT(!changed, hk_hub_next_tick(f.hub) == HK_NEVER);
        fixture_publish(&f, "/a", "3");
        hk_bytes_t text = received(&f, &reader);
        HK_CHECK(holds(text, "data: 3\n"));
        HK_CHECK_EQUAL_INT(changed, holds(text, "data: 1\n"));
        HK_CHECK_EQUAL_INT(changed, holds(text, "\"reason\":\"unknown\""));
        HK_CHECK_EQUAL_INT(changed, holds(text, ": caught up\n\n"));
        HK_CHECK_EQUAL_UINT(!changed, hk_hub_disconnect(f.hub, HK_BYTES("bob")));
        hk_grant_release(grant);
        fixture_end(&f);
    }
}
