#include "hk_loop_fixture.h"

#define LATE                                                                                                           \
    "{\"type\":\"about:blank\",\"title\":\"Request Timeout\",\"status\":408,"                                          \
    "\"detail\":\"the request took too long to arrive\"}"

static bool ends_with(hk_bytes_t bytes, hk_bytes_t end)
{
    return bytes.length >= end.length &&
           hk_bytes_equal(hk_bytes(bytes.at + bytes.length - end.length, end.length), end);
}

/* The loop sleeps for so many ms, and not longer. */
static void check_sleeps(rig_t *rig, int ms)
{
    rig_run(rig);
    HK_CHECK_EQUAL_INT(ms, atomic_load(&rig->calls.timeout_ms));
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

HK_TEST(a_loop_with_nothing_to_do_sleeps_for_ever)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    check_sleeps(&rig, -1);
    rig_end(&rig);
}

HK_TEST(a_client_that_says_nothing_is_closed_without_a_word)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    check_sleeps(&rig, 10000);
    rig_pass(&rig, 10 * HK_SECOND - 1);
    check_sleeps(&rig, 1);
    HK_CHECK(!rig_is_closed(&rig, client));
    rig_pass(&rig, 1);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).timed_out_heads);
    HK_CHECK(rig_is_closed(&rig, client));
    check_sleeps(&rig, -1);
    rig_end(&rig);
}

HK_TEST(a_head_that_dribbles_in_has_no_more_time_than_another)
{
    rig_t rig;
    bool ended;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    for (int i = 0; i < 9; i++) {
        rig_say(&rig, client, i == 0 ? "GET /echo HTTP/1.1\r\n" : "X: y\r\n");
        rig_pass(&rig, HK_SECOND);
    }
    rig_say(&rig, client, "X: y\r\n");
    HK_CHECK_BYTES("", rig_heard(&rig, client));
    rig_pass(&rig, HK_SECOND);
    HK_CHECK(ends_with(rig_receive(&rig, client, &ended), HK_BYTES("\r\n\r\n" LATE)));
    HK_CHECK(ended);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).timed_out_heads);
    rig_end(&rig);
}

HK_TEST(the_second_head_of_a_connection_has_its_time_from_its_first_byte_on)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    (void)rig_heard(&rig, client);
    rig_pass(&rig, 15 * HK_SECOND);
    rig_say(&rig, client, "GET /ec");
    check_sleeps(&rig, 10000);
    rig_pass(&rig, 9 * HK_SECOND);
    rig_say(&rig, client, "ho HTTP/1.1" HELLO "G");
    HK_CHECK(rig_heard(&rig, client).length > 0);
    check_sleeps(&rig, 10000);
    rig_pass(&rig, 10 * HK_SECOND);
    HK_CHECK(ends_with(rig_heard(&rig, client), HK_BYTES(LATE)));
    rig_end(&rig);
}

HK_TEST(between_requests_a_client_has_its_time_and_is_closed_without_a_word)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    rig_pass(&rig, 19 * HK_SECOND);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    (void)rig_heard(&rig, client);
    check_sleeps(&rig, 20000);
    rig_pass(&rig, 20 * HK_SECOND - 1);
    HK_CHECK(!rig_is_closed(&rig, client));
    rig_pass(&rig, 1);
    HK_CHECK_BYTES("", rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).timed_out_idle);
    rig_end(&rig);
}

HK_TEST(a_client_whose_first_request_the_engine_answers_has_its_time_until_the_next)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    for (int i = 0; i < 2; i++) {
        int client = rig_client(&rig);
        rig_pass(&rig, 5 * HK_SECOND);
        rig_say(&rig, client,
                "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM
                "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1");
        HK_CHECK(rig_heard(&rig, client).length > 0);
        check_sleeps(&rig, 20000);
        rig_pass(&rig, 15 * HK_SECOND);
        rig_say(&rig, client,
                "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM
                "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1");
        HK_CHECK(rig_heard(&rig, client).length > 0);
        check_sleeps(&rig, 20000);
        rig_close(&rig, client);
        rig_run(&rig);
    }
    HK_CHECK_EQUAL_INT(1, rig.asked);
    rig_end(&rig);
}

HK_TEST(a_decision_ends_in_time)
{
    rig_t rig;
    static const char publish[] =
        "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1";
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    remember(rig.gate, "POST " HUB "|" FORM, HK_BYTES(PUBLISH_HEAD), grant_of("", "*", "", WALL + 5 * HK_SECOND));
    rig_say(&rig, client, publish);
    rig_pass(&rig, 5 * HK_SECOND - 1);
    rig_say(&rig, client, publish);
    HK_CHECK_EQUAL_INT(0, rig.asked);
    rig_pass(&rig, 1);
    rig_say(&rig, client, publish);
    HK_CHECK_EQUAL_INT(1, rig.asked);
    rig_end(&rig);
}

HK_TEST(ruby_may_take_all_the_time_that_it_needs)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    check_sleeps(&rig, -1);
    rig_pass(&rig, 3600 * HK_SECOND);
    rig_release(&rig);
    HK_CHECK(rig_heard(&rig, client).length > 0);
    rig_end(&rig);
}

HK_TEST(an_answer_that_nobody_reads_is_given_up)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /large?900000 HTTP/1.1" HELLO);
    rig_pass(&rig, 29 * HK_SECOND);
    (void)rig_receive(&rig, client, NULL);
    rig_run(&rig);
    rig_pass(&rig, 29 * HK_SECOND);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_pass(&rig, HK_SECOND);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).timed_out_writes);
    rig_end(&rig);
}

HK_TEST(room_that_is_told_of_and_is_not_there_is_no_progress)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /large?900000 HTTP/1.1" HELLO);
    (void)rig_receive(&rig, client, NULL);
    rig.calls.always[HK_CALL_SEND] = true;
    rig.calls.errors[HK_CALL_SEND] = EAGAIN;
    for (int i = 0; i < 30; i++) {
        HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
        rig_turn(&rig);
        atomic_fetch_add(&rig.calls.now, HK_SECOND);
    }
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}

HK_TEST(without_timeouts_nobody_is_given_up)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.head_timeout = options.idle_timeout = options.write_timeout = 0;
    rig_begin(&rig, &options);
    int fresh = rig_client(&rig), idle = rig_client(&rig), half = rig_client(&rig);
    rig_say(&rig, idle, "GET /echo HTTP/1.1" HELLO);
    rig_say(&rig, half, "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nab");
    check_sleeps(&rig, -1);
    rig_pass(&rig, 1000000 * HK_SECOND);
    HK_CHECK_EQUAL_INT(3, rig_stats(&rig).connections);
    HK_CHECK(!rig_is_closed(&rig, fresh));
    rig_end(&rig);
}

HK_TEST(many_that_are_late_at_once_are_given_up_over_several_turns)
{
    rig_t rig;
    int ends[2], others[HK_LATE + 10];
    rig_begin(&rig, NULL);
    for (int i = 0; i < HK_LATE + 10; i++) {
        HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        HK_CHECK_OK(hk_loop_adopt(rig.loop, ends[0], HK_BYTES("")));
        others[i] = ends[1];
        rig_run(&rig);
    }
    atomic_fetch_add(&rig.calls.now, 10 * HK_SECOND);
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(10, rig_stats(&rig).connections);
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    for (int i = 0; i < HK_LATE + 10; i++) {
        close(others[i]);
    }
    rig_end(&rig);
}

HK_TEST(events_of_a_connection_that_was_given_up_meanwhile_mean_nothing)
{
    rig_t rig;
    int clients[40];
    static char requests[HK_READ_BYTES];
    rig_begin(&rig, NULL);
    for (int i = 0; i < 40; i++) {
        clients[i] = rig_client(&rig);
    }
    rig_run(&rig);
    memset(requests, 'x', sizeof(requests));
    memcpy(requests, "GET /hold HTTP/1.1" HELLO, strlen("GET /hold HTTP/1.1" HELLO));
    for (int i = 0; i < 40; i++) {
        rig_write(clients[i], hk_bytes(requests, sizeof(requests)));
    }
    atomic_fetch_add(&rig.calls.now, 10 * HK_SECOND);
    rig_turn(&rig);
    uint64_t served = rig_stats(&rig).connections;
    HK_CHECK(served > 0 && served < 40);
    rig_run(&rig);
    HK_CHECK_EQUAL_UINT(served, rig_stats(&rig).connections);
    HK_CHECK_EQUAL_UINT(served, rig.held_count);
    rig_release(&rig);
    rig_end(&rig);
}

HK_TEST(a_wake_up_that_comes_before_the_sleep_ends_it)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_run(&rig);
    hk_loop_wake(rig.loop);
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(0, rig.calls.timeout_ms);
    HK_CHECK_EQUAL_INT(0, rig.calls.counts[HK_CALL_WRITE]);
    rig_turn(&rig);
    HK_CHECK_EQUAL_INT(-1, rig.calls.timeout_ms);
    rig_end(&rig);
}

HK_TEST(a_sleeper_is_woken_once_and_also_when_a_signal_comes_in_between)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    rig_run(&rig);
    atomic_store(&rig.loop->sleeping, true);
    rig.calls.fail_at = 1;
    rig.calls.error = EINTR;
    hk_loop_wake(rig.loop);
    hk_loop_wake(rig.loop);
    HK_CHECK_EQUAL_INT(2, rig.calls.counts[HK_CALL_WRITE]);
    rig.calls.quiet = true;
    rig_turn(&rig);
    HK_CHECK(!rig.calls.quiet);
    rig_turn(&rig);
    HK_CHECK(rig.calls.quiet);
    rig_end(&rig);
}

HK_TEST(when_there_is_no_memory_to_hand_something_out_it_is_tried_again_after_a_pause)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET " HUB "?match=/a HTTP/1.1" HELLO);
    (void)rig_heard(&rig, client);
    rig.loop->serve_at = atomic_load(&rig.calls.now) + 10 * HK_MILLISECOND;
    rig_publish(&rig, "/a", "one");
    check_sleeps(&rig, 10);
    HK_CHECK_BYTES("", rig_heard(&rig, client));
    rig_pass(&rig, 10 * HK_MILLISECOND);
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, client));
    rig_end(&rig);
}

/* --- limits ------------------------------------------------------------------------------------------------------- */

HK_TEST(connections_beyond_the_limit_are_told_to_come_back_and_the_others_served)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_connections = 2;
    rig_begin(&rig, &options);
    rig_listen(&rig);
    int first = rig_connect(&rig), second = rig_connect(&rig), third = rig_connect(&rig);
    rig_write(third, hk_test_text("GET /echo HTTP/1.1" HELLO));
    RIG_UNTIL(&rig, rig_stats(&rig).refused_connections == 1);
    hk_bytes_t heard = rig_await(&rig, third, 1000);
    HK_CHECK(hk_bytes_start_with(heard, HK_BYTES("HTTP/1.1 429 Too Many Requests\r\n")));
    HK_CHECK(memmem(heard.at, heard.length, "\r\nretry-after: ", 15) != NULL);
    HK_CHECK(ends_with(heard, HK_BYTES("\"detail\":\"the hub holds as many connections as it may\"}")));
    rig_write(first, hk_test_text("GET /echo HTTP/1.1" HELLO));
    HK_CHECK(rig_await(&rig, first, 10).length > 0);
    rig_close(&rig, second);
    RIG_UNTIL(&rig, rig.loop->connection_count == 1);
    int fourth = rig_connect(&rig);
    rig_write(fourth, hk_test_text("GET /echo HTTP/1.1" HELLO));
    HK_CHECK(hk_bytes_start_with(rig_await(&rig, fourth, 10), HK_BYTES("HTTP/1.1 200")));
    rig_end(&rig);
}

HK_TEST(connections_that_are_handed_over_are_limited_too)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_connections = 1;
    rig_begin(&rig, &options);
    (void)rig_client(&rig);
    int other = rig_client(&rig);
    HK_CHECK(hk_bytes_start_with(rig_heard(&rig, other), HK_BYTES("HTTP/1.1 429 ")));
    rig_end(&rig);
}

HK_TEST(of_those_beyond_the_limit_only_so_many_may_take_their_time)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_connections = 1;
    rig_begin(&rig, &options);
    int clients[HK_REFUSED + 3];
    (void)rig_client(&rig);
    for (int i = 0; i < HK_REFUSED + 3; i++) {
        clients[i] = rig_client(&rig);
        rig_run(&rig);
    }
    HK_CHECK_EQUAL_INT(1 + HK_REFUSED, rig_stats(&rig).connections);
    HK_CHECK_EQUAL_INT(HK_REFUSED + 3, rig_stats(&rig).refused_connections);
    for (int i = 0; i < HK_REFUSED + 3; i++) {
        HK_CHECK(hk_bytes_start_with(rig_heard(&rig, clients[i]), HK_BYTES("HTTP/1.1 429 ")));
    }
    rig_pass(&rig, HK_SECOND);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).connections);
    rig_end(&rig);
}

HK_TEST(when_no_descriptor_is_left_accepting_pauses_and_nothing_spins)
{
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        rig_t rig;
        rig_begin(&rig, NULL);
        rig_listen(&rig);
        rig_run(&rig);
        rig.calls.always[HK_CALL_ACCEPT] = true;
        rig.calls.errors[HK_CALL_ACCEPT] = errors[i];
        long before = rig.calls.counts[HK_CALL_ACCEPT];
        int client = rig_connect(&rig);
        RIG_UNTIL(&rig, rig.calls.counts[HK_CALL_ACCEPT] == before + 1);
        check_sleeps(&rig, 100);
        rig_run(&rig);
        HK_CHECK_EQUAL_INT(before + 1, rig.calls.counts[HK_CALL_ACCEPT]);
        rig_pass(&rig, 100 * HK_MILLISECOND);
        HK_CHECK_EQUAL_INT(before + 2, rig.calls.counts[HK_CALL_ACCEPT]);
        HK_CHECK_EQUAL_UINT(2, rig_stats(&rig).accept_pauses);
        rig.calls.always[HK_CALL_ACCEPT] = false;
        rig_pass(&rig, 100 * HK_MILLISECOND);
        rig_write(client, hk_test_text("GET /echo HTTP/1.1" HELLO));
        HK_CHECK(rig_await(&rig, client, 10).length > 0);
        rig_end(&rig);
    }
}

HK_TEST(a_connection_that_goes_before_it_is_accepted_stops_nobody)
{
    static const int errors[] = {ECONNABORTED, EINTR, EPROTO, ENETDOWN, EPERM};
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        rig_t rig;
        rig_begin(&rig, NULL);
        rig_listen(&rig);
        int client = rig_connect(&rig);
        rig_write(client, hk_test_text("GET /echo HTTP/1.1" HELLO));
        rig_turn(&rig);
        rig.calls.always[HK_CALL_ACCEPT] = true;
        rig.calls.errors[HK_CALL_ACCEPT] = errors[i];
        rig_turn(&rig);
        rig.calls.always[HK_CALL_ACCEPT] = false;
        HK_CHECK(rig_await(&rig, client, 10).length > 0);
        HK_CHECK_EQUAL_INT(HK_NEVER, rig.loop->accept_at);
        rig_end(&rig);
    }
}

HK_TEST(a_listener_that_is_none_is_closed)
{
    rig_t rig;
    int files = hk_open_files();
    rig_begin(&rig, NULL);
    HK_CHECK_OK(hk_loop_listen(rig.loop, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), true));
    rig_run(&rig);
    HK_CHECK(hk_list_empty(&rig.loop->listeners));
    HK_CHECK_OK(hk_loop_listen(rig.loop, 12345, true));
    rig_run(&rig);
    HK_CHECK(hk_list_empty(&rig.loop->listeners));
    rig_end(&rig);
    HK_CHECK_EQUAL_INT(files, hk_open_files());
}

HK_TEST(a_flood_of_requests_is_served_in_portions)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int clients[40];
    static char requests[HK_READ_BYTES];
    int length = 0;
    static const char publish[] =
        "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1";
    int first = rig_client(&rig);
    rig_say(&rig, first, publish);
    (void)rig_heard(&rig, first);
    while ((size_t)length + sizeof(publish) < sizeof(requests)) {
        length += sprintf(requests + length, "%s", publish);
    }
    int each = length / (int)(sizeof(publish) - 1);
    for (int i = 0; i < 40; i++) {
        clients[i] = rig_client(&rig);
    }
    rig_run(&rig);
    for (int i = 0; i < 40; i++) {
        rig_write(clients[i], hk_bytes(requests, (size_t)length));
    }
    uint64_t before = rig_hub_stats(&rig).publishes;
    rig_turn(&rig);
    uint64_t portion = rig_hub_stats(&rig).publishes - before;
    HK_CHECK(portion > 0 && portion < 20 * (uint64_t)each);
    rig_run(&rig);
    HK_CHECK_EQUAL_UINT(40 * (uint64_t)each, rig_hub_stats(&rig).publishes - before);
    HK_CHECK_EQUAL_INT(1, rig.asked);
    rig_end(&rig);
}
