#include "hk_hub_fixture.h"

/* What a hub does where memory is missing: nothing by halves. */

static bool fine(hk_status_t status)
{
    HK_CHECK(status == HK_OK || (hk_test_failed() && status == HK_NO_MEMORY));
    return status == HK_OK;
}

static void serve_what_can_be(fixture_t *f)
{
    bool more = true;
    for (size_t i = 0; i < 20 && more; i++) {
        fine(fixture_serve(f, 100, &more));
    }
}

static bool publish(fixture_t *f, const char *topics, const char *data, bool is_private)
{
    hk_log_update_t update = {.data = hk_test_text(data), .retry_ms = -1, .is_private = is_private};
    return fine(fixture_try_publish(f, topics, update));
}

static void check_counts(const fixture_t *f, size_t subscribers, size_t subscriptions)
{
    HK_CHECK_EQUAL_UINT(subscribers, fixture_stats(f).subscribers);
    HK_CHECK_EQUAL_UINT(subscriptions, fixture_stats(f).subscriptions);
}

HK_TEST(a_subscriber_takes_less_than_250_bytes)
{
    enum { MANY = 2000 };
    fixture_t f;
    static reader_t readers[MANY];
    hk_hub_options_t options = fixture_options();
    options.heartbeat = options.max_lifetime = SECOND;
    hk_grant_t *grant;
    fixture_begin(&f, &options);
    HK_CHECK_OK(fixture_grant(&(wish_t){.matches = "/a"}, &grant));
    size_t before = hk_test_bytes_in_use();
    for (size_t i = 0; i < MANY; i++) {
        fixture_subscribe(&f, &readers[i], &(wish_t){.grant = grant, .address = "192.0.2.1"});
    }
    HK_CHECK((hk_test_bytes_in_use() - before) / MANY < 250);
    for (size_t i = 0; i < MANY; i++) {
        fixture_unsubscribe(&f, &readers[i]);
    }
    HK_CHECK(hk_test_bytes_in_use() - before < 100000); /* tables that shrink not, or later */
    hk_grant_release(grant);
    fixture_end(&f);
}

HK_TEST(a_subscriber_for_whom_there_is_no_memory_leaves_nothing_behind)
{
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        reader_t reader;
        hk_hub_options_t options = fixture_options();
        options.heartbeat = options.max_lifetime = SECOND;
        wish_t wish = {
            .matches = "/a /b/* *", .reads = "/a", .cursor = "urn:\xFF", .address = "192.0.2.1", .subject = "bob"};
        if (fine(fixture_try(&f, &options))) {
            hk_status_t status = fixture_try_subscribe(&f, &reader, &wish);
            if (fine(status)) {
                check_counts(&f, 1, 3);
                fixture_unsubscribe(&f, &reader);
            } else {
                reader_release(&reader);
            }
            check_counts(&f, 0, 0);
            HK_CHECK_EQUAL_UINT(0, fixture_stats(&f).feeds);
            HK_CHECK_EQUAL_INT(HK_NEVER, hk_hub_next_tick(f.hub));
            HK_CHECK(!hk_hub_ready(f.hub));
            fixture_end(&f);
        }
    }
}

HK_TEST(a_gap_that_there_is_no_memory_to_tell_is_told_later)
{
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        reader_t reader;
        bool more;
        hk_hub_options_t options = fixture_options();
        options.history_bytes = 2000;
        if (fine(fixture_try(&f, &options))) {
            if (fine(fixture_try_subscribe(&f, &reader, &(wish_t){.matches = "/a", .shut = true}))) {
                for (size_t i = 0; i < 20; i++) {
                    publish(&f, "/a", "one", false);
                    serve_what_can_be(&f);
                }
                fixture_give_room(&f, &reader, ANY_ROOM);
                if (!fine(fixture_serve(&f, 100, &more))) {
                    HK_CHECK_EQUAL_UINT(0, reader.received.length);
                    HK_CHECK(hk_hub_ready(f.hub));
                }
                hk_test_not_failing();
                hk_bytes_t data = fixture_data(&f, &reader);
                bool passed = hk_log_first(hk_hub_log(f.hub)) > 1;
                HK_CHECK_EQUAL_UINT(passed, fixture_stats(&f).gaps);
                HK_CHECK_EQUAL_INT(passed,
                                   hk_bytes_start_with(data, HK_BYTES("{\"type\":\"gap\",\"reason\":\"overrun\"")));
            } else {
                reader_release(&reader);
            }
            fixture_end(&f);
        }
    }
}

/* Everything that a hub can do, each step whether or not the one before it could be done. */
static void live(fixture_t *f, reader_t readers[4])
{
    static const wish_t wishes[4] = {
        {.matches = "/a", .reads = "/a", .address = "192.0.2.1", .announced = true},
        {.matches = "/a /b/*", .address = "192.0.2.1", .room = 20, .announced = true},
        {.matches = "* /a /b/1", .cursor = "earliest", .expires_in = SECOND, .naming = true},
        {.matches = "/a", .cursor = "urn:unknown", .subject = "bob", .shut = true}};
    bool here[4] = {false};
    size_t count = 0, subscriptions = 0;
    static const size_t each[4] = {1, 2, 3, 1};
    publish(f, "/a /b/1", "before", false);
    for (size_t i = 0; i < 4; i++) {
        here[i] = fine(fixture_try_subscribe(f, &readers[i], &wishes[i]));
        count += here[i];
        subscriptions += here[i] ? each[i] : 0;
        check_counts(f, count, subscriptions);
        publish(f, "/a", "public", false);
        publish(f, "/a /b/1", "private", true);
        publish(f, "/b/1", "other", false);
        serve_what_can_be(f);
    }
    size_t told;
    fine(hk_hub_notify(f->hub, HK_BYTES("/a"), HK_BYTES("data: told\n\n"), &told));
    for (size_t i = 0; i < 4; i++) {
        if (here[i]) {
            fine(hk_hub_control(f->hub, readers[i].subscriber, HK_BYTES("retry: 1\n\n")));
        }
    }
    serve_what_can_be(f);
    f->now += 20 * SECOND;
    HK_CHECK_OK(hk_hub_tick(f->hub, f->now));
    serve_what_can_be(f);
    for (size_t i = 0; i < 30; i++) {
        publish(f, "/a /b/1", "more than the ring holds, so that somebody is passed by it", i % 5 == 0);
    }
    for (size_t i = 0; i < 4; i++) {
        if (here[i]) {
            fixture_give_room(f, &readers[i], ANY_ROOM);
        }
    }
    serve_what_can_be(f);
    if (readers[0].subscriber != NULL) {
        fixture_unsubscribe(f, &readers[0]);
    }
    hk_hub_disconnect(f->hub, HK_BYTES("bob"));
    serve_what_can_be(f);
    for (size_t i = 0; i < 4; i++) {
        if (!here[i]) {
            reader_release(&readers[i]);
        }
    }
}

HK_TEST(a_hub_goes_on_whatever_it_had_no_memory_for)
{
    HK_EACH_FAILING_ALLOCATION {
        fixture_t f;
        reader_t readers[4], later;
        hk_hub_options_t options = fixture_options();
        options.heartbeat = 10 * SECOND;
        options.history_bytes = 10000;
        options.announces = true;
        if (fine(fixture_try(&f, &options))) {
            live(&f, readers);
            hk_test_not_failing();
            fixture_drain(&f);
            fixture_subscribe(&f, &later, &(wish_t){.matches = "/a /b/*"});
            fixture_publish(&f, "/b/2", "later");
            HK_CHECK_BYTES("later", fixture_data(&f, &later));
            fixture_end(&f);
        }
    }
}
