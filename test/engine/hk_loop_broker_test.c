#include "hk_loop_broker_fixture.h"

HK_TEST(a_message_goes_from_one_client_to_another)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, "sender"), receiver = desk_client(&desk, "receiver");
    desk_subscribe(&desk, receiver, "a", 10);
    desk_send(&desk, sender, 5, "a", "hello");
    hk_frame_t ack = desk_expect(&desk, sender, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(5, ack.id);
    hk_frame_t push = desk_expect(&desk, receiver, HK_FRAME_PUSH);
    HK_CHECK_BYTES("hello", desk_payload(&push));
    desk_free(&desk, receiver, push.id);
    HK_CHECK_EQUAL_UINT(1, desk_stats(&desk).freed);
    HK_CHECK_EQUAL_UINT(2, rig_stats(&desk.rig).sessions);
    HK_CHECK_EQUAL_UINT(2, rig_stats(&desk.rig).connections);
    desk_end(&desk);
}

HK_TEST(frames_may_come_byte_by_byte)
{
    desk_t desk;
    char frames[FRAME_ROOM];
    desk_begin(&desk, NULL);
    int client = desk_connect(&desk);
    size_t length = desk_hello_frame(frames, "me", 1, "");
    length += desk_send_frame(frames + length, 2, HK_LEVEL_MEMORY, "a", HK_BYTES("x"));
    for (size_t i = 0; i < length; i++) {
        desk_say(&desk, client, frames + i, 1);
    }
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(2, desk_expect(&desk, client, HK_FRAME_ACK).id);
    desk_end(&desk);
}

HK_TEST(sockets_may_take_byte_by_byte)
{
    for (long limit = 1; limit <= 50; limit += 7) {
        desk_t desk;
        desk_begin(&desk, NULL);
        int sender = desk_client(&desk, "sender"), receiver = desk_client(&desk, "receiver");
        desk_subscribe(&desk, receiver, "a", 10);
        desk.rig.calls.send_limit = limit;
        desk_send(&desk, sender, 2, "a", "one");
        desk_send(&desk, sender, 3, "a", "two");
        (void)desk_expect(&desk, sender, HK_FRAME_ACK);
        hk_frame_t one = desk_expect(&desk, receiver, HK_FRAME_PUSH);
        HK_CHECK_BYTES("one", desk_payload(&one));
        hk_frame_t two = desk_expect(&desk, receiver, HK_FRAME_PUSH);
        HK_CHECK_BYTES("two", desk_payload(&two));
        desk_end(&desk);
    }
}

/* Calls of one kind since the last look. */
static long calls(desk_t *desk, hk_call_t call, long *before)
{
    long count = atomic_load(&desk->rig.calls.counts[call]), since = count - *before;
    *before = count;
    return since;
}

HK_TEST(a_turn_costs_a_call_for_each_who_speaks_and_one_for_each_who_hears)
{
    enum { SENDERS = 40 };
    desk_t desk;
    int senders[SENDERS];
    char frame[FRAME_ROOM];
    desk_begin_stored(&desk, NULL);
    for (int i = 0; i < SENDERS; i++) {
        senders[i] = desk_client(&desk, "");
    }
    long received = 0, sent = 0, controlled = 0, waited = 0;
    (void)calls(&desk, HK_CALL_RECEIVE, &received);
    (void)calls(&desk, HK_CALL_SEND, &sent);
    (void)calls(&desk, HK_CALL_SEND_PARTS, &sent);
    sent = atomic_load(&desk.rig.calls.counts[HK_CALL_SEND]);
    (void)calls(&desk, HK_CALL_EPOLL_CONTROL, &controlled);
    (void)calls(&desk, HK_CALL_EPOLL_WAIT, &waited);
    int writes = desk.writes;
    for (int i = 0; i < SENDERS; i++) {
        rig_write(senders[i], hk_bytes(frame, desk_send_frame(frame, 2, HK_LEVEL_WRITTEN, "a", HK_BYTES("x"))));
    }
    rig_turn(&desk.rig);
    HK_CHECK_EQUAL_INT(1, calls(&desk, HK_CALL_EPOLL_WAIT, &waited));
    HK_CHECK_EQUAL_INT(SENDERS, calls(&desk, HK_CALL_RECEIVE, &received));
    HK_CHECK_EQUAL_INT(SENDERS, calls(&desk, HK_CALL_SEND, &sent));
    HK_CHECK_EQUAL_INT(0, calls(&desk, HK_CALL_EPOLL_CONTROL, &controlled));
    HK_CHECK_EQUAL_INT(1, desk.writes - writes);
    desk_end(&desk);
}

HK_TEST(who_sends_without_waiting_costs_no_call_for_a_message)
{
    enum { MESSAGES = 500 };
    desk_t desk;
    char *frames = malloc(MESSAGES * 100);
    size_t length = 0;
    HK_CHECK(frames != NULL);
    desk_begin(&desk, NULL);
    int client = desk_client(&desk, "");
    for (uint64_t i = 0; i < MESSAGES; i++) {
        length += desk_send_frame(frames + length, 100 + i, HK_LEVEL_MEMORY, "a", HK_BYTES("payload"));
    }
    long received = 0, sent = 0;
    (void)calls(&desk, HK_CALL_RECEIVE, &received);
    (void)calls(&desk, HK_CALL_SEND, &sent);
    rig_write(client, hk_bytes(frames, length));
    rig_turn(&desk.rig);
    HK_CHECK_EQUAL_INT(1, calls(&desk, HK_CALL_RECEIVE, &received));
    HK_CHECK_EQUAL_INT(1, calls(&desk, HK_CALL_SEND, &sent));
    hk_frame_t ack = desk_expect(&desk, client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_ACK_RANGE, ack.flags);
    HK_CHECK_EQUAL_UINT(100, ack.id);
    HK_CHECK_EQUAL_UINT(100 + MESSAGES - 1, hk_frame_u64(ack.bytes.at + 32));
    free(frames);
    desk_end(&desk);
}

enum { LARGE = 3000, MANY = 400 };

static void number(char *payload, int i)
{
    memset(payload, 'x', LARGE);
    snprintf(payload, 16, "%d", i);
}

static void send_many(desk_t *desk, int sender, int from, int to)
{
    char frame[FRAME_ROOM], payload[LARGE];
    for (int i = from; i < to; i++) {
        number(payload, i);
        desk_say(desk, sender, frame, desk_send_frame(frame, 0, HK_LEVEL_MEMORY, "a", hk_bytes(payload, LARGE)));
    }
}

/* All that is delivered from now on, in order, and freed. */
static int receive_all(desk_t *desk, int receiver, int next)
{
    char payload[LARGE];
    hk_frame_t push;
    for (rig_run(&desk->rig); desk_next(desk, receiver, &push); rig_run(&desk->rig)) {
        HK_CHECK_EQUAL_INT(HK_FRAME_PUSH, push.type);
        number(payload, next++);
        HK_CHECK_BYTES(hk_bytes(payload, LARGE), desk_payload(&push));
        desk_free(desk, receiver, push.id);
    }
    return next;
}

HK_TEST(who_does_not_read_holds_up_nobody_and_gets_everything_in_order)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), slow = desk_client(&desk, ""), other = desk_client(&desk, "");
    desk_subscribe(&desk, slow, "a", MANY);
    send_many(&desk, sender, 0, MANY);
    HK_CHECK(!hk_list_empty(&desk.rig.loop->phases[HK_PHASE_STALLED]));
    desk_subscribe(&desk, other, "b", 1);
    desk_send(&desk, sender, 9, "b", "quick");
    hk_frame_t push = desk_expect(&desk, other, HK_FRAME_PUSH);
    HK_CHECK_BYTES("quick", desk_payload(&push));
    HK_CHECK_EQUAL_INT(MANY, receive_all(&desk, slow, 0));
    HK_CHECK(hk_list_empty(&desk.rig.loop->phases[HK_PHASE_STALLED]));
    HK_CHECK_EQUAL_UINT(MANY, desk_stats(&desk).freed);
    desk_end(&desk);
}

HK_TEST(who_does_not_read_for_too_long_is_closed_and_its_messages_go_to_others)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), slow = desk_client(&desk, "");
    desk_subscribe(&desk, slow, "a", MANY);
    send_many(&desk, sender, 0, MANY);
    rig_pass(&desk.rig, 29 * HK_SECOND);
    HK_CHECK_EQUAL_UINT(2, rig_stats(&desk.rig).sessions);
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk.rig).sessions);
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk.rig).timed_out_writes);
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).out);
    HK_CHECK_EQUAL_UINT(MANY, desk_stats(&desk).messages);
    desk_end(&desk);
}

HK_TEST(who_reads_a_little_now_and_then_is_not_closed)
{
    desk_t desk;
    char some[16 * 1024];
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), slow = desk_client(&desk, "");
    desk_subscribe(&desk, slow, "a", 4 * MANY);
    send_many(&desk, sender, 0, 4 * MANY);
    for (int i = 0; i < 4; i++) {
        HK_CHECK(!hk_list_empty(&desk.rig.loop->phases[HK_PHASE_STALLED]));
        rig_pass(&desk.rig, 25 * HK_SECOND);
        while (recv(slow, some, sizeof(some), MSG_DONTWAIT) > 0) {
        }
        rig_run(&desk.rig);
    }
    HK_CHECK_EQUAL_UINT(2, rig_stats(&desk.rig).sessions);
    desk_end(&desk);
}

HK_TEST(what_a_client_had_that_vanishes_in_the_middle_of_a_frame_goes_to_another)
{
    desk_t desk;
    char frame[FRAME_ROOM];
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), first = desk_client(&desk, "");
    desk_subscribe(&desk, first, "a", 10);
    desk_send(&desk, sender, 2, "a", "one");
    desk_send(&desk, sender, 3, "a", "two");
    (void)desk_expect(&desk, first, HK_FRAME_PUSH);
    size_t length = desk_free_frame(frame, 0, 0, UINT64_MAX);
    desk_say(&desk, first, frame, length - 3);
    rig_close(&desk.rig, first);
    rig_run(&desk.rig);
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).freed);
    int second = desk_client(&desk, "");
    desk_subscribe(&desk, second, "a", 10);
    hk_frame_t push = desk_expect(&desk, second, HK_FRAME_PUSH);
    HK_CHECK(push.flags & HK_PUSH_AGAIN);
    desk_end(&desk);
}

HK_TEST(what_is_no_frame_is_answered_and_the_connection_ends)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_say(&desk, client, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", 27);
    hk_frame_t error = desk_expect(&desk, client, HK_FRAME_ERROR);
    HK_CHECK(desk_code(&error) == HK_CODE_MALFORMED || desk_code(&error) == HK_CODE_TOO_BIG);
    HK_CHECK(desk_is_closed(&desk, client));
    HK_CHECK_EQUAL_UINT(0, desk_stats(&desk).sessions);
    desk_end(&desk);
}

HK_TEST(who_was_told_of_the_end_has_time_to_read_it_but_not_for_ever)
{
    desk_t desk;
    char junk[1000] = {0};
    desk_begin(&desk, NULL);
    int client = desk_client(&desk, "");
    desk_say(&desk, client, junk, sizeof(junk));
    desk_say(&desk, client, junk, sizeof(junk));
    (void)desk_expect(&desk, client, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk.rig).connections);
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK_EQUAL_UINT(0, rig_stats(&desk.rig).connections);
    desk_end(&desk);
}

HK_TEST(who_says_nothing_is_closed_after_a_while)
{
    desk_t desk;
    hk_loop_options_t options = rig_options();
    options.hello_timeout = 3 * HK_SECOND;
    desk_begin(&desk, &options);
    int silent = desk_connect(&desk), halting = desk_connect(&desk), known = desk_client(&desk, "");
    desk_say(&desk, halting, "\x48\0\0", 3);
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK(!desk_is_closed(&desk, silent));
    rig_pass(&desk.rig, 2 * HK_SECOND);
    HK_CHECK(desk_is_closed(&desk, silent));
    HK_CHECK(desk_is_closed(&desk, halting));
    rig_pass(&desk.rig, 1000 * HK_SECOND);
    HK_CHECK(!desk_is_closed(&desk, known));
    HK_CHECK_EQUAL_UINT(2, rig_stats(&desk.rig).timed_out_hellos);
    desk_end(&desk);
}

static void check_limit(desk_t *desk)
{
    int one = desk_client(desk, ""), two = desk_client(desk, ""), three = desk_connect(desk);
    hk_frame_t error = desk_expect(desk, three, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_LIMIT, desk_code(&error));
    HK_CHECK_EQUAL_INT(HK_SCOPE_CONNECTION, error.bytes.at[18]);
    HK_CHECK_EQUAL_INT(1, error.bytes.at[19]);
    HK_CHECK(desk_is_closed(desk, three));
    rig_close(&desk->rig, three);
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk->rig).refused_connections);
    rig_close(&desk->rig, one);
    rig_run(&desk->rig);
    (void)desk_client(desk, "");
    HK_CHECK(!desk_is_closed(desk, two));
}

HK_TEST(who_does_not_say_who_it_is_gives_its_place_to_another_after_a_second)
{
    desk_t desk;
    desk_clear(&desk);
    desk.wanted.max_sessions = 3;
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    int known = desk_client(&desk, ""), first = desk_connect(&desk), second = desk_connect(&desk);
    rig_run(&desk.rig);
    int early = desk_connect(&desk);
    hk_frame_t error = desk_expect(&desk, early, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_LIMIT, desk_code(&error));
    rig_pass(&desk.rig, HK_SECOND);
    int welcome = desk_client(&desk, "");
    HK_CHECK(desk_is_closed(&desk, first));
    HK_CHECK(!desk_is_closed(&desk, known) && !desk_is_closed(&desk, second) && !desk_is_closed(&desk, welcome));
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk.rig).timed_out_hellos);
    desk_end(&desk);
}

HK_TEST(those_that_have_left_and_are_still_there_count_too)
{
    desk_t desk;
    desk_clear(&desk);
    hk_loop_options_t options = rig_options();
    options.max_connections = 1;
    options.max_sessions = 2;
    HK_CHECK_OK(desk_try(&desk, &options));
    desk_listen(&desk);
    int bad[3];
    for (size_t i = 0; i < 3; i++) {
        bad[i] = desk_connect(&desk);
        rig_say(&desk.rig, bad[i], "GET / HTTP/1.1\r\n\r\n");
        rig_run(&desk.rig);
    }
    int late = desk_connect(&desk);
    hk_frame_t error = desk_expect(&desk, late, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(HK_CODE_LIMIT, desk_code(&error));
    rig_pass(&desk.rig, 2 * HK_SECOND);
    (void)desk_client(&desk, "");
    desk_end(&desk);
}

HK_TEST(beyond_its_limit_of_sessions_a_broker_says_so)
{
    desk_t desk;
    desk_clear(&desk);
    desk.wanted.max_sessions = 2;
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    check_limit(&desk);
    desk_end(&desk);
}

HK_TEST(beyond_its_limit_of_connections_a_loop_says_so)
{
    desk_t desk;
    hk_loop_options_t options = rig_options();
    options.max_connections = 1;
    options.max_sessions = 1;
    desk_begin(&desk, &options);
    check_limit(&desk);
    desk_end(&desk);
}

HK_TEST(a_loop_may_have_a_hub_and_a_broker)
{
    desk_t desk;
    desk_clear(&desk);
    desk.with_hub = true;
    HK_CHECK_OK(desk_try(&desk, NULL));
    desk_listen(&desk);
    int stream = rig_subscribe(&desk.rig, "match=/a");
    int sender = desk_client(&desk, ""), receiver = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 10);
    for (int i = 0; i < 3; i++) {
        rig_publish(&desk.rig, "/a", "one");
        desk_send(&desk, sender, 2, "a", "two");
        HK_CHECK_BYTES(EVENT("one"), rig_heard(&desk.rig, stream));
        hk_frame_t push = desk_expect(&desk, receiver, HK_FRAME_PUSH);
        HK_CHECK_BYTES("two", desk_payload(&push));
    }
    HK_CHECK_EQUAL_UINT(1, rig_stats(&desk.rig).streams);
    HK_CHECK_EQUAL_UINT(2, rig_stats(&desk.rig).sessions);
    desk_end(&desk);
}

HK_TEST(without_a_hub_there_are_no_requests_and_without_a_broker_no_sessions)
{
    desk_t desk;
    rig_t rig;
    int client, server;
    desk_begin(&desk, NULL);
    rig_pair(&desk.rig, &client, &server);
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_adopt(desk.rig.loop, server, HK_BYTES("x")));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_attach(desk.rig.loop, server, 1));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_listen(desk.rig.loop, server, false));
    desk_end(&desk);
    rig_begin(&rig, NULL);
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_listen_broker(rig.loop, server, false));
    close(server);
    rig_end(&rig);
}

HK_TEST(the_loop_sleeps_until_the_broker_wants_time)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), receiver = desk_client(&desk, "");
    char frame[FRAME_ROOM];
    desk_subscribe(&desk, receiver, "a", 10);
    size_t length = desk_send_frame(frame, 2, HK_LEVEL_MEMORY, "a", HK_BYTES("later"));
    hk_frame_put32(frame + 24, 5000);
    desk_say(&desk, sender, frame, length);
    (void)desk_expect(&desk, sender, HK_FRAME_ACK);
    HK_CHECK(desk_hears_nothing(&desk, receiver));
    int timeout = atomic_load(&desk.rig.calls.timeout_ms);
    HK_CHECK(timeout > 0 && timeout <= 5000);
    rig_pass(&desk.rig, 5 * HK_SECOND + HK_MILLISECOND);
    (void)desk_expect(&desk, receiver, HK_FRAME_PUSH);
    desk_end(&desk);
}

HK_TEST(over_tcp_it_is_the_same)
{
    desk_t desk;
    char frame[FRAME_ROOM];
    desk_begin(&desk, NULL);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HK_CHECK(bind(fd, (struct sockaddr *)&address, length) == 0 && listen(fd, 8) == 0);
    HK_CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    HK_CHECK_OK(hk_loop_listen_broker(desk.rig.loop, fd, true));
    rig_run(&desk.rig);
    int client = rig_keep(&desk.rig, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    HK_CHECK(connect(client, (struct sockaddr *)&address, length) == 0);
    desk_say(&desk, client, frame, desk_hello_frame(frame, "me", 1, ""));
    (void)desk_expect(&desk, client, HK_FRAME_ACK);
    rig_close(&desk.rig, client);
    RIG_UNTIL(&desk.rig, rig_stats(&desk.rig).sessions == 0);
    desk_end(&desk);
}

static size_t allocated(desk_t *desk, int sender, int receiver, int messages)
{
    size_t before = hk_test_requests();
    for (int i = 0; i < messages; i++) {
        desk_send(desk, sender, 2, "a", "x");
        hk_frame_t push = desk_expect(desk, receiver, HK_FRAME_PUSH);
        desk_free(desk, receiver, push.id);
        (void)desk_expect(desk, sender, HK_FRAME_ACK);
    }
    return hk_test_requests() - before;
}

HK_TEST(a_message_that_comes_and_goes_needs_no_memory_of_its_own)
{
    desk_t desk;
    desk_begin(&desk, NULL);
    int sender = desk_client(&desk, ""), receiver = desk_client(&desk, "");
    desk_subscribe(&desk, receiver, "a", 10);
    (void)allocated(&desk, sender, receiver, 50);
    HK_CHECK(allocated(&desk, sender, receiver, 200) < 20);
    desk_end(&desk);
}
