#include "hk_loop_fixture.h"

/* --- slow readers ------------------------------------------------------------------------------------------------- */

/* Until its socket is full. How many were published. */
static int fill(rig_t *rig, const char *topic, hk_bytes_t data)
{
    int count = 0;
    while (hk_list_empty(&rig->loop->phases[HK_PHASE_BLOCKED])) {
        HK_CHECK(count++ < 10000);
        HK_CHECK_OK(rig_try_publish(rig, topic, data));
        rig_run(rig);
    }
    return count;
}

static char thousand[1000];

static hk_bytes_t thousand_bytes(void)
{
    memset(thousand, 'x', sizeof(thousand));
    return hk_bytes(thousand, sizeof(thousand));
}

enum { EVENT_BYTES = 6 + 6 + 1000 + 2 };

HK_TEST(a_reader_that_is_slow_gets_everything_in_order_and_stops_nobody_else)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int slow = rig_subscribe(&rig, "match=/a"), other = rig_subscribe(&rig, "match=/b");
    int count = fill(&rig, "/a", thousand_bytes());
    for (int i = 0; i < 5; i++) {
        HK_CHECK_OK(rig_try_publish(&rig, "/a", thousand_bytes()));
    }
    rig_publish(&rig, "/b", "one");
    HK_CHECK_BYTES(EVENT("one"), rig_heard(&rig, other));
    size_t expected = (size_t)(count + 5) * EVENT_BYTES;
    hk_bytes_t heard = rig_await(&rig, slow, expected);
    HK_CHECK_EQUAL_UINT(expected, heard.length);
    for (size_t at = 0; at < heard.length; at += EVENT_BYTES) {
        HK_CHECK(hk_bytes_start_with(hk_bytes(heard.at + at, EVENT_BYTES), HK_BYTES("id: x\ndata: xx")));
    }
    rig_run(&rig);
    HK_CHECK(hk_list_empty(&rig.loop->phases[HK_PHASE_BLOCKED]));
    HK_CHECK_EQUAL_INT(2, rig_stats(&rig).streams);
    rig_end(&rig);
}

HK_TEST(a_stream_arrives_whole_however_little_the_socket_takes_at_a_time)
{
    for (long limit = 1; limit < 20; limit += 3) {
        rig_t rig;
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig.calls.send_limit = limit;
        rig_say(&rig, client, "GET " HUB "?match=/a HTTP/1.1" HELLO);
        HK_CHECK_BYTES(OPENING, rig_await(&rig, client, strlen(OPENING)));
        rig_publish(&rig, "/a", "one");
        rig_publish(&rig, "/a", "two");
        HK_CHECK_BYTES(EVENT("one") EVENT("two"), rig_await(&rig, client, strlen(EVENT("one") EVENT("two"))));
        rig_end(&rig);
    }
}

HK_TEST(a_reader_that_reads_nothing_for_too_long_is_closed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int slow = rig_subscribe(&rig, "match=/a");
    (void)fill(&rig, "/a", thousand_bytes());
    rig_pass(&rig, 30 * HK_SECOND - 1);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).streams);
    rig_pass(&rig, 1);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).streams);
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).timed_out_writes);
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    HK_CHECK(rig_is_closed(&rig, slow));
    rig_end(&rig);
}

HK_TEST(when_there_is_no_memory_to_tell_a_reader_of_a_gap_it_is_told_later)
{
    rig_t rig;
    hk_hub_options_t hub = hub_options();
    hub.history_bytes = 100000;
    rig_begin_with_hub(&rig, NULL, &hub);
    int slow = rig_subscribe(&rig, "match=/a");
    (void)fill(&rig, "/a", thousand_bytes());
    for (int i = 0; i < 200; i++) {
        HK_CHECK_OK(rig_try_publish(&rig, "/a", thousand_bytes()));
    }
    rig_run(&rig);
    (void)rig_receive(&rig, slow, NULL);
    hk_test_failing(0);
    rig_run(&rig);
    HK_CHECK(hk_test_failed());
    HK_CHECK_EQUAL_INT(10, rig.calls.timeout_ms);
    rig_pass(&rig, 10 * HK_MILLISECOND);
    hk_bytes_t heard = rig_heard(&rig, slow);
    HK_CHECK(memmem(heard.at, heard.length, "event: mercure\n", 15) != NULL);
    rig_end(&rig);
}

HK_TEST(a_reader_that_gets_on_is_not_closed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int slow = rig_subscribe(&rig, "match=/a");
    for (int i = 0; i < 5; i++) {
        (void)fill(&rig, "/a", thousand_bytes());
        rig_pass(&rig, 29 * HK_SECOND);
        (void)rig_receive(&rig, slow, NULL);
        rig_run(&rig);
    }
    HK_CHECK_EQUAL_INT(1, rig_stats(&rig).streams);
    rig_end(&rig);
}
