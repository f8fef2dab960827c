#include "hk_hub_fixture.h"

/* Where a stream begins: cursors, what is answered to them, what is replayed. */

static hk_bytes_t answer(const reader_t *reader)
{
    return hk_test_text(reader->answer);
}

static void publish_as(fixture_t *f, const char *topics, const char *data, const char *id)
{
    HK_CHECK_OK(fixture_try_publish(
        f, topics, (hk_log_update_t){.data = hk_test_text(data), .id = hk_test_text(id), .retry_ms = -1}));
}

HK_TEST(a_reader_that_comes_back_gets_what_it_missed_once_in_order)
{
    fixture_t f;
    reader_t reader, several;
    char seen[80];
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/a", "before");
    fixture_publish(&f, "/a", "seen");
    strcpy(seen, f.id);
    fixture_publish(&f, "/b", "other");
    fixture_publish(&f, "/a", "1");
    fixture_publish(&f, "/a", "2");
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .cursor = seen});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "/a /b", .cursor = seen});
    fixture_publish(&f, "/a", "live");
    HK_CHECK_BYTES(hk_test_text(seen), answer(&reader));
    HK_CHECK_BYTES("1 2 live", fixture_data(&f, &reader));
    HK_CHECK_BYTES("other 1 2 live", fixture_data(&f, &several));
    fixture_end(&f);
}

HK_TEST(earliest_gives_everything_that_is_retained)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/a", "1");
    fixture_publish(&f, "/b", "2");
    fixture_publish(&f, "/a", "3");
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .cursor = "earliest"});
    HK_CHECK_BYTES("earliest", answer(&reader));
    HK_CHECK_BYTES("1 3", fixture_data(&f, &reader));
    reader_t again;
    publish_as(&f, "/a", "4", "earliest");
    fixture_subscribe(&f, &again, &(wish_t){.matches = "/a", .cursor = "earliest"});
    HK_CHECK_BYTES("1 3 4", fixture_data(&f, &again));
    fixture_end(&f);
}

HK_TEST(an_unknown_id_is_told_and_everything_retained_follows)
{
    fixture_t f;
    reader_t reader, again;
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/a", "1");
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .cursor = "urn:\"never\""});
    HK_CHECK_BYTES("earliest", answer(&reader));
    HK_CHECK_BYTES("{\"type\":\"gap\",\"reason\":\"unknown\",\"last_event_id\":\"urn:\\\"never\\\"\"} 1",
                   fixture_data(&f, &reader));
    hk_bytes_t rest = hk_buf_bytes(&reader.received), line;
    hk_test_line(&rest, &line);
    HK_CHECK_BYTES("event: mercure", line);
    hk_test_line(&rest, &line);
    char id[HK_EVENT_ID_BYTES + 1] = {0};
    memcpy(id, line.at + 4, HK_EVENT_ID_BYTES);
    fixture_publish(&f, "/a", "2");
    fixture_subscribe(&f, &again, &(wish_t){.matches = "/a", .cursor = id});
    HK_CHECK_BYTES(id, answer(&again));
    HK_CHECK_BYTES("1 2", fixture_data(&f, &again));
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).gaps);
    fixture_end(&f);
}

HK_TEST(a_reused_id_stands_for_its_first_event)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    publish_as(&f, "/a", "1", "same");
    fixture_publish(&f, "/a", "2");
    publish_as(&f, "/a", "3", "same");
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .cursor = "same"});
    HK_CHECK_BYTES("2 3", fixture_data(&f, &reader));
    fixture_end(&f);
}

HK_TEST(without_a_cursor_a_reader_gets_only_what_comes_after_it)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_publish(&f, "/a", "before");
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    HK_CHECK_BYTES("", answer(&reader));
    fixture_publish(&f, "/a", "after");
    HK_CHECK_BYTES("after", fixture_data(&f, &reader));
    fixture_end(&f);
}

HK_TEST(an_empty_cursor_is_answered_without_telling_of_private_events)
{
    fixture_t f;
    reader_t none, open, hidden, granted, again;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &none, &(wish_t){.matches = "/a", .cursor = ""});
    HK_CHECK_BYTES("earliest", answer(&none));
    publish_as(&f, "/a", "public", "urn:public");
    fixture_subscribe(&f, &open, &(wish_t){.matches = "/a", .cursor = ""});
    HK_CHECK_BYTES("urn:public", answer(&open));
    HK_CHECK_OK(fixture_try_publish(
        &f, "/a",
        (hk_log_update_t){.data = HK_BYTES("x"), .id = HK_BYTES("urn:secret"), .retry_ms = -1, .is_private = true}));
    fixture_subscribe(&f, &granted, &(wish_t){.matches = "/a", .reads = "/a", .cursor = ""});
    HK_CHECK_BYTES("urn:secret", answer(&granted));
    fixture_subscribe(&f, &hidden, &(wish_t){.matches = "/a", .cursor = ""});
    char alias[HK_EVENT_ID_BYTES];
    hk_log_seal(hk_hub_log(f.hub), 2, alias);
    HK_CHECK_BYTES(hk_bytes(alias, sizeof(alias)), answer(&hidden));
    fixture_publish(&f, "/a", "next");
    fixture_subscribe(&f, &again, &(wish_t){.matches = "/a", .cursor = hidden.answer});
    HK_CHECK_BYTES("next", fixture_data(&f, &again));
    HK_CHECK_BYTES("public next", fixture_data(&f, &none));
    fixture_end(&f);
}

HK_TEST(what_a_cursor_would_be_answered_is_told_without_subscribing)
{
    fixture_t f;
    hk_grant_t *grant;
    hk_bytes_t told;
    fixture_begin(&f, NULL);
    HK_CHECK_OK(fixture_grant(&(wish_t){.matches = "/a", .reads = "/a/*"}, &grant));
    hk_hub_resolve(f.hub, grant, HK_BYTES(""), &told);
    HK_CHECK_BYTES("earliest", told);
    publish_as(&f, "/a", "1", "urn:1");
    hk_hub_resolve(f.hub, grant, HK_BYTES(""), &told);
    HK_CHECK_BYTES("urn:1", told);
    hk_hub_resolve(f.hub, grant, HK_BYTES("urn:1"), &told);
    HK_CHECK_BYTES("urn:1", told);
    hk_hub_resolve(f.hub, grant, HK_BYTES("urn:2"), &told);
    HK_CHECK_BYTES("earliest", told);
    hk_hub_resolve(f.hub, grant, HK_BYTES("earliest"), &told);
    HK_CHECK_BYTES("earliest", told);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).subscribers);
    hk_grant_release(grant);
    fixture_end(&f);
}

HK_TEST(the_cursor_of_a_log_without_events_is_known_until_something_is_lost)
{
    fixture_t f;
    hk_grant_t *grant;
    hk_bytes_t told;
    char cursor[HK_EVENT_ID_BYTES], beginning[HK_EVENT_ID_BYTES];
    hk_hub_options_t options = fixture_options();
    options.history_bytes = 1000;
    fixture_begin(&f, &options);
    HK_CHECK_OK(fixture_grant(&(wish_t){.matches = "/a", .reads = "/a"}, &grant));
    hk_log_seal(hk_hub_log(f.hub), 0, beginning);
    told = hk_hub_cursor(f.hub, grant);
    HK_CHECK_BYTES(hk_bytes(beginning, sizeof(beginning)), told);
    memcpy(cursor, told.at, sizeof(cursor));
    hk_hub_resolve(f.hub, grant, hk_bytes(cursor, sizeof(cursor)), &told);
    HK_CHECK_BYTES(hk_bytes(beginning, sizeof(beginning)), told);
    publish_as(&f, "/a", "1", "urn:1");
    HK_CHECK_BYTES("urn:1", hk_hub_cursor(f.hub, grant));
    hk_hub_resolve(f.hub, grant, hk_bytes(cursor, sizeof(cursor)), &told);
    HK_CHECK_BYTES(hk_bytes(beginning, sizeof(beginning)), told);
    for (size_t i = 0; i < 50; i++) {
        fixture_publish(&f, "/a", "and so on");
    }
    HK_CHECK(hk_log_first(hk_hub_log(f.hub)) > 1);
    hk_hub_resolve(f.hub, grant, hk_bytes(cursor, sizeof(cursor)), &told);
    HK_CHECK_BYTES("earliest", told);
    hk_grant_release(grant);
    fixture_end(&f);
}

HK_TEST(replay_is_authorised_by_the_grant_of_now)
{
    fixture_t f;
    reader_t stranger, granted;
    fixture_begin(&f, NULL);
    fixture_publish_privately(&f, "/a", "secret");
    fixture_publish(&f, "/a", "public");
    fixture_subscribe(&f, &stranger, &(wish_t){.matches = "/a", .cursor = "earliest"});
    fixture_subscribe(&f, &granted, &(wish_t){.matches = "/a", .reads = "/a", .cursor = "earliest"});
    HK_CHECK_BYTES("public", fixture_data(&f, &stranger));
    HK_CHECK_BYTES("secret public", fixture_data(&f, &granted));
    fixture_end(&f);
}

HK_TEST(a_long_history_comes_in_portions_and_live_updates_behind_it)
{
    fixture_t f;
    reader_t reader, several;
    fixture_begin(&f, NULL);
    f.max_bytes = 2000;
    for (size_t i = 0; i < 2000; i++) {
        fixture_publish(&f, i % 4 == 0 ? "/a" : "/b", "x");
    }
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .cursor = "earliest"});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "/a /c/*", .cursor = "earliest"});
    fixture_publish(&f, "/a", "x");
    HK_CHECK_EQUAL_UINT(2 * 501 - 1, fixture_data(&f, &reader).length);
    HK_CHECK_EQUAL_UINT(2 * 501 - 1, fixture_data(&f, &several).length);
    fixture_end(&f);
}

/* Nobody waits for a scan of the whole history. */
HK_TEST(a_scan_gives_others_their_turn)
{
    fixture_t f;
    reader_t scanning, other;
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 1500; i++) {
        fixture_publish(&f, "/b", "x");
    }
    fixture_publish(&f, "/a", "found");
    fixture_subscribe(&f, &scanning, &(wish_t){.matches = "/a", .cursor = "earliest"});
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/c"});
    fixture_publish(&f, "/c", "live");
    bool more;
    HK_CHECK_OK(fixture_serve(&f, 2, &more));
    HK_CHECK_EQUAL_UINT(0, scanning.writes);
    HK_CHECK_EQUAL_UINT(1, other.writes);
    HK_CHECK(more);
    HK_CHECK_BYTES("found", fixture_data(&f, &scanning));
    fixture_end(&f);
}

HK_TEST(a_feed_forgets_its_oldest_positions_and_whoever_is_behind_still_gets_everything)
{
    fixture_t f;
    reader_t reader, several;
    hk_hub_options_t options = fixture_options();
    options.history_bytes = 8 << 20;
    fixture_begin(&f, &options);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "*", .shut = true});
    fixture_subscribe(&f, &several, &(wish_t){.matches = "* /a", .shut = true});
    fixture_publish(&f, "/a", "0");
    fixture_drain(&f);
    for (size_t i = 1; i < 2500; i++) {
        fixture_publish(&f, "/a", "x");
    }
    fixture_give_room(&f, &reader, ANY_ROOM);
    fixture_give_room(&f, &several, ANY_ROOM);
    HK_CHECK_EQUAL_UINT(2 * 2500 - 1, fixture_data(&f, &reader).length);
    HK_CHECK_EQUAL_UINT(2 * 2500 - 1, fixture_data(&f, &several).length);
    HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).gaps);
    fixture_end(&f);
}

HK_TEST(the_answer_outlives_the_record_that_an_announcement_evicts)
{
    fixture_t f;
    reader_t reader;
    hk_hub_options_t options = fixture_options();
    options.announces = true;
    options.history_bytes = 500;
    fixture_begin(&f, &options);
    publish_as(&f, "/a", "1", "urn:a-rather-long-id-that-somebody-chose");
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .cursor = "", .announced = true});
    HK_CHECK(hk_log_first(hk_hub_log(f.hub)) == 2);
    HK_CHECK_BYTES("urn:a-rather-long-id-that-somebody-chose", answer(&reader));
    fixture_end(&f);
}
