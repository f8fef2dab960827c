#include "hk_hub_fixture.h"

/* What is told beside the log, limits, ends, and looking in. */

HK_TEST(what_is_told_without_being_kept_reaches_the_exact_subscribers_and_leaves_no_trace)
{
    fixture_t f;
    reader_t reader, other, all, blocked;
    size_t count = 99;
    fixture_begin(&f, NULL);
    HK_CHECK_OK(hk_hub_notify(f.hub, HK_BYTES("/figures"), HK_BYTES("data: 0\n\n"), &count));
    HK_CHECK_EQUAL_UINT(0, count);
    HK_CHECK(!hk_hub_watched(f.hub, HK_BYTES("/figures")));
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/figures"});
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/figures /x"});
    fixture_subscribe(&f, &all, &(wish_t){.matches = "*"});
    fixture_subscribe(&f, &blocked, &(wish_t){.matches = "/figures", .shut = true});
    fixture_publish(&f, "/figures", "kept");
    fixture_drain(&f);
    HK_CHECK(hk_hub_watched(f.hub, HK_BYTES("/figures")));
    HK_CHECK(!hk_hub_watched(f.hub, HK_BYTES("/figure")));
    HK_CHECK_OK(hk_hub_notify(f.hub, HK_BYTES("/figures"), HK_BYTES("data: 1\n\n"), &count));
    HK_CHECK_EQUAL_UINT(3, count);
    HK_CHECK_OK(hk_hub_notify(f.hub, HK_BYTES("/figures"), HK_BYTES("data: 2\n\n"), NULL));
    fixture_drain(&f);
    fixture_publish(&f, "/figures", "later");
    HK_CHECK_BYTES("kept 1 later", fixture_data(&f, &reader));
    HK_CHECK_BYTES("kept 1 later", fixture_data(&f, &other));
    HK_CHECK_BYTES("kept later", fixture_data(&f, &all));
    fixture_give_room(&f, &blocked, ANY_ROOM);
    HK_CHECK_BYTES("kept later", fixture_data(&f, &blocked));
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).history_updates);
    fixture_end(&f);
}

HK_TEST(what_one_is_told_goes_out_at_the_next_event_boundary)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a", .room = 10});
    fixture_publish(&f, "/a", "one");
    fixture_drain(&f);
    HK_CHECK_OK(hk_hub_control(f.hub, reader.subscriber, HK_BYTES("data: told\n\n")));
    HK_CHECK_OK(hk_hub_control(f.hub, reader.subscriber, HK_BYTES("")));
    HK_CHECK_OK(hk_hub_control(f.hub, reader.subscriber, HK_BYTES("data: more\n\n")));
    HK_CHECK_BYTES("data: told\n\ndata: more\n\n", hk_subscriber_control(reader.subscriber));
    fixture_publish(&f, "/a", "two");
    fixture_give_room(&f, &reader, 25);
    fixture_drain(&f);
    HK_CHECK_BYTES("old\n\ndata: more\n\n", hk_subscriber_control(reader.subscriber));
    HK_CHECK_OK(hk_hub_control(f.hub, reader.subscriber, HK_BYTES("data: end\n\n")));
    HK_CHECK_OK(hk_hub_control(f.hub, reader.subscriber, HK_SSE_HEARTBEAT));
    HK_CHECK_BYTES("old\n\ndata: more\n\ndata: end\n\n:\n\n", hk_subscriber_control(reader.subscriber));
    fixture_give_room(&f, &reader, ANY_ROOM);
    HK_CHECK_BYTES("one told more end two", fixture_data(&f, &reader));
    HK_CHECK_BYTES("", hk_subscriber_control(reader.subscriber));
    fixture_end(&f);
}

HK_TEST(there_are_no_more_subscribers_than_may_be)
{
    fixture_t f;
    reader_t readers[6];
    hk_hub_options_t options = fixture_options();
    options.max_subscribers = 4;
    options.max_of_address = 2;
    fixture_begin(&f, &options);
    wish_t one = {.matches = "/a", .address = "192.0.2.1"}, two = {.matches = "/a", .address = "192.0.2.2"},
           nowhere = {.matches = "/a"}, tentative = {.matches = "/a", .address = "192.0.2.1", .tentative = true};
    fixture_subscribe(&f, &readers[0], &one);
    fixture_subscribe(&f, &readers[1], &one);
    HK_CHECK_BYTES("192.0.2.1", hk_subscriber_address(readers[0].subscriber));
    HK_CHECK_STATUS(HK_TOO_MANY_OF_ADDRESS, fixture_try_subscribe(&f, &readers[2], &one));
    HK_CHECK_STATUS(HK_TOO_MANY_OF_ADDRESS, fixture_try_subscribe(&f, &readers[2], &tentative));
    fixture_subscribe(&f, &readers[2], &two);
    fixture_unsubscribe(&f, &readers[0]);
    fixture_subscribe(&f, &readers[3], &one);
    fixture_subscribe(&f, &readers[4], &nowhere);
    HK_CHECK_BYTES("", hk_subscriber_address(readers[4].subscriber));
    HK_CHECK_STATUS(HK_TOO_MANY, fixture_try_subscribe(&f, &readers[5], &nowhere));
    HK_CHECK_STATUS(HK_TOO_MANY, fixture_try_subscribe(&f, &readers[5], &one));
    HK_CHECK_STATUS(HK_TOO_MANY, fixture_try_subscribe(&f, &readers[5], &tentative));
    hk_hub_stats_t stats = fixture_stats(&f);
    HK_CHECK_EQUAL_UINT(4, stats.subscribers);
    HK_CHECK_EQUAL_UINT(2, stats.refused_total);
    HK_CHECK_EQUAL_UINT(1, stats.refused_address);
    HK_CHECK_EQUAL_UINT(4, stats.subscriptions);
    fixture_end(&f);
}

HK_TEST(all_streams_of_a_subject_are_closed_and_no_others)
{
    fixture_t f;
    reader_t alice, bob, anyone, blocked;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &alice, &(wish_t){.matches = "/a", .subject = "alice"});
    fixture_subscribe(&f, &blocked, &(wish_t){.matches = "/a", .subject = "alice", .shut = true});
    fixture_subscribe(&f, &bob, &(wish_t){.matches = "/a", .subject = "bob"});
    fixture_subscribe(&f, &anyone, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/a", "one");
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(0, hk_hub_disconnect(f.hub, HK_BYTES("")));
    HK_CHECK_EQUAL_UINT(2, hk_hub_disconnect(f.hub, HK_BYTES("alice")));
    HK_CHECK_EQUAL_UINT(0, hk_hub_disconnect(f.hub, HK_BYTES("alice")));
    fixture_drain(&f);
    HK_CHECK_EQUAL_INT(HK_CLOSING_DISCONNECTED, alice.closing);
    HK_CHECK_EQUAL_INT(HK_CLOSING_DISCONNECTED, blocked.closing);
    HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, bob.closing);
    HK_CHECK_EQUAL_UINT(2, fixture_stats(&f).subscribers);
    fixture_end(&f);
}

HK_TEST(the_first_reason_to_close_counts)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    hk_hub_close(f.hub, reader.subscriber, HK_CLOSING_NOT);
    HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, hk_subscriber_closing(reader.subscriber));
    hk_hub_close(f.hub, reader.subscriber, HK_CLOSING_HUNG_UP);
    hk_hub_close(f.hub, reader.subscriber, HK_CLOSING_EXPIRED);
    hk_hub_shutdown(f.hub);
    fixture_drain(&f);
    HK_CHECK_EQUAL_INT(HK_CLOSING_HUNG_UP, reader.closing);
    fixture_end(&f);
}

HK_TEST(somebody_who_has_to_be_closed_gets_nothing_any_more)
{
    fixture_t f;
    reader_t reader;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a"});
    fixture_publish(&f, "/a", "one");
    hk_hub_close(f.hub, reader.subscriber, HK_CLOSING_EXPIRED);
    fixture_drain(&f);
    HK_CHECK_EQUAL_UINT(0, reader.writes);
    HK_CHECK_EQUAL_INT(HK_CLOSING_EXPIRED, reader.closing);
    fixture_end(&f);
}

typedef struct seen {
    uint64_t serials[4];
    size_t count, most;
} seen_t;

static bool see(void *context, hk_subscriber_t *subscriber)
{
    seen_t *seen = context;
    seen->serials[seen->count++] = hk_subscriber_serial(subscriber);
    return seen->count < seen->most;
}

HK_TEST(subscribers_are_listed_while_they_last)
{
    fixture_t f;
    reader_t readers[3];
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &readers[0], &(wish_t){.matches = "/a /b"});
    fixture_subscribe(&f, &readers[1], &(wish_t){.matches = "/b/*"});
    fixture_subscribe(&f, &readers[2], &(wish_t){.matches = "/b"});
    seen_t all = {.most = 4}, first = {.most = 1}, of_b = {.most = 4}, of_none = {.most = 4};
    hk_hub_each(f.hub, see, &all);
    HK_CHECK_EQUAL_UINT(3, all.count);
    hk_hub_each(f.hub, see, &first);
    HK_CHECK_EQUAL_UINT(1, first.count);
    hk_hub_each_of_matcher(f.hub, HK_BYTES("exact"), HK_BYTES("/b"), see, &of_b);
    HK_CHECK_EQUAL_UINT(2, of_b.count);
    HK_CHECK_EQUAL_UINT(hk_subscriber_serial(readers[0].subscriber), of_b.serials[0]);
    of_b = (seen_t){.most = 1};
    hk_hub_each_of_matcher(f.hub, HK_BYTES("exact"), HK_BYTES("/b"), see, &of_b);
    HK_CHECK_EQUAL_UINT(1, of_b.count);
    hk_hub_each_of_matcher(f.hub, HK_BYTES("urlpattern"), HK_BYTES("/b"), see, &of_none);
    HK_CHECK_EQUAL_UINT(0, of_none.count);
    HK_CHECK_BYTES("/b/*", hk_hub_matcher(f.hub, HK_BYTES("uri_template"), HK_BYTES("/b/*"))->pattern);
    HK_CHECK(hk_hub_matcher(f.hub, HK_BYTES("exact"), HK_BYTES("/b/*")) == NULL);
    HK_CHECK_EQUAL_UINT(4, fixture_stats(&f).subscriptions);
    HK_CHECK_EQUAL_UINT(3, fixture_stats(&f).feeds);
    fixture_end(&f);
}

HK_TEST(everybody_has_a_random_id_of_its_own)
{
    fixture_t f;
    reader_t readers[50];
    char ids[50][HK_SUBSCRIBER_ID_BYTES];
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 50; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.matches = "/a"});
        hk_subscriber_id(f.hub, readers[i].subscriber, ids[i]);
        char again[HK_SUBSCRIBER_ID_BYTES];
        hk_subscriber_id(f.hub, readers[i].subscriber, again);
        HK_CHECK(memcmp(ids[i], again, sizeof(again)) == 0);
        HK_CHECK(memcmp(ids[i], "urn:uuid:", 9) == 0);
        for (size_t j = 9; j < HK_SUBSCRIBER_ID_BYTES; j++) {
            bool dash = j == 17 || j == 22 || j == 27 || j == 32;
            HK_CHECK(dash ? ids[i][j] == '-' : strchr("0123456789abcdef", ids[i][j]) != NULL);
        }
        HK_CHECK(ids[i][23] == '4' && strchr("89ab", ids[i][28]) != NULL);
        for (size_t j = 0; j < i; j++) {
            HK_CHECK(memcmp(ids[i], ids[j], HK_SUBSCRIBER_ID_BYTES) != 0);
        }
    }
    fixture_end(&f);
}

HK_TEST(lag_is_how_far_the_slowest_is_behind_what_there_is_for_it)
{
    fixture_t f;
    static reader_t readers[200];
    uint64_t slowest = 99, p99 = 99;
    fixture_begin(&f, NULL);
    hk_hub_read_lag(f.hub, &slowest, &p99);
    HK_CHECK_EQUAL_UINT(0, slowest + p99);
    reader_t quiet;
    fixture_subscribe(&f, &quiet, &(wish_t){.matches = "/quiet"});
    for (size_t i = 0; i < 199; i++) {
        fixture_publish(&f, "/a", "x");
    }
    for (size_t i = 0; i < 199; i++) {
        char cursor[HK_EVENT_ID_BYTES + 1] = {0};
        hk_log_seal(hk_hub_log(f.hub), i, cursor);
        fixture_subscribe(&f, &readers[i],
                          &(wish_t){.matches = i % 2 ? "/a" : "/a /b", .cursor = cursor, .shut = true});
    }
    hk_hub_read_lag(f.hub, &slowest, &p99); /* lags: 0 and 1 to 199 - behind what is not known to a new feed */
    HK_CHECK_EQUAL_UINT(0, slowest);
    fixture_publish(&f, "/a", "x");
    hk_hub_read_lag(f.hub, &slowest, &p99); /* 0 of the quiet one, then 2 to 200 */
    HK_CHECK_EQUAL_UINT(200, slowest);
    HK_CHECK_EQUAL_UINT(198, p99);
    for (size_t i = 0; i < 3000; i++) {
        fixture_publish(&f, "/a", "x");
    }
    hk_hub_read_lag(f.hub, &slowest, &p99);
    HK_CHECK_EQUAL_UINT(3200, slowest);
    HK_CHECK_EQUAL_UINT(3198, p99);
    fixture_drain(&f);
    fixture_end(&f);
}

HK_TEST(clients_come_back_at_different_times)
{
    fixture_t f;
    uint32_t least = UINT32_MAX, most = 0;
    fixture_begin(&f, NULL);
    for (size_t i = 0; i < 1000; i++) {
        uint32_t delay = hk_hub_reconnection_delay(f.hub);
        least = delay < least ? delay : least;
        most = delay > most ? delay : most;
    }
    HK_CHECK(least >= 500 && least < 550);
    HK_CHECK(most < 1500 && most > 1450);
    fixture_end(&f);
}
