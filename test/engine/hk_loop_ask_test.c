#include "hk_loop_fixture.h"

#include <pthread.h>
#include <sys/wait.h>

#define ANSWER(length, body) "HTTP/1.1 200 X\r\ncontent-length: " #length "\r\n\r\n" body
#define BUSY(length, body)                                                                                             \
    "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\ncontent-length: " #length           \
    "\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\nretry-after: 1\r\nconnection: "                 \
    "close\r\n\r\n" body

static hk_ask_t *held(rig_t *rig, size_t index)
{
    HK_CHECK(index < rig->held_count);
    return rig->held[index];
}

/* --- what is asked ------------------------------------------------------------------------------------------------ */

HK_TEST(an_ask_says_everything_about_its_request)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client,
            "POST /hold?a=b HTTP/1.1\r\nHost: example.com\r\nX-One: 1\r\nX-Two:  2 \r\n"
            "Content-Length: 3\r\n\r\nabc");
    rig_say(&rig, rig_client(&rig), "GET /echo?overwritten=everything HTTP/1.1" HELLO);
    const hk_ask_t *ask = held(&rig, 0);
    const hk_http1_request_t *head = hk_ask_head(ask);
    HK_CHECK_BYTES("POST", head->method);
    HK_CHECK_BYTES("/hold?a=b", head->target);
    HK_CHECK_BYTES("/hold", head->path);
    HK_CHECK_BYTES("a=b", head->query);
    HK_CHECK_BYTES("example.com", head->authority);
    HK_CHECK_EQUAL_INT(1, head->minor);
    HK_CHECK_EQUAL_UINT(4, head->header_count);
    HK_CHECK_BYTES("X-Two", head->headers[2].name);
    HK_CHECK_BYTES("2", head->headers[2].value);
    HK_CHECK_BYTES("abc", hk_ask_body(ask));
    HK_CHECK(!hk_ask_body_too_large(ask));
    HK_CHECK_BYTES("", hk_ask_peer(ask));
    HK_CHECK_BYTES("", hk_ask_address(ask));
    HK_CHECK_BYTES("", hk_ask_key(ask));
    rig_release(&rig);
    rig_end(&rig);
}

HK_TEST(an_ask_about_the_hub_has_the_key_and_the_epoch_of_the_gate)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    hk_gate_forget(rig.gate, HK_BYTES(""));
    rig_write(client, hk_test_text("GET " HUB "?match=/a&x=y HTTP/1.1" HELLO));
    hk_ask_t *ask;
    while (hk_loop_next(rig.loop, 0, &ask) != HK_OK) {
        rig_turn(&rig);
    }
    hk_buf_t key;
    uint64_t epoch;
    hk_buf_init(&key, hk_test_alloc());
    key_of(rig.gate, "GET " HUB "?match=/a", &key, &epoch);
    HK_CHECK_BYTES(hk_buf_bytes(&key), hk_ask_key(ask));
    HK_CHECK_EQUAL_UINT(epoch, hk_ask_epoch(ask));
    HK_CHECK_EQUAL_UINT(1, epoch);
    hk_buf_release(&key);
    rig_answer(&rig, ask);
    HK_CHECK_BYTES(OPENING, rig_heard(&rig, client));
    rig_end(&rig);
}

/* --- answers ------------------------------------------------------------------------------------------------------ */

HK_TEST(asks_may_be_answered_in_any_order)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int clients[3];
    for (int i = 0; i < 3; i++) {
        char text[128];
        clients[i] = rig_client(&rig);
        sprintf(text, "PUT /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n%d", i);
        rig_say(&rig, clients[i], text);
    }
    for (int i = 2; i >= 0; i--) {
        rig_echo(&rig, held(&rig, (size_t)i), false);
        rig_run(&rig);
    }
    HK_CHECK_BYTES(ANSWER(5, "PUT 0"), rig_heard(&rig, clients[0]));
    HK_CHECK_BYTES(ANSWER(5, "PUT 1"), rig_heard(&rig, clients[1]));
    HK_CHECK_BYTES(ANSWER(5, "PUT 2"), rig_heard(&rig, clients[2]));
    rig_end(&rig);
}

HK_TEST(an_ask_outlives_its_client)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "PUT /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
    rig_close(&rig, client);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    HK_CHECK_BYTES("abc", hk_ask_body(held(&rig, 0)));
    rig_release(&rig);
    rig_run(&rig);
    rig_end(&rig);
}

HK_TEST(a_stream_whose_client_is_gone_is_unsubscribed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_write(client, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
    hk_ask_t *ask;
    while (hk_loop_next(rig.loop, 0, &ask) != HK_OK) {
        rig_turn(&rig);
    }
    rig_close(&rig, client);
    rig_turn(&rig);
    rig_answer_hub(&rig, ask);
    HK_CHECK_EQUAL_INT(1, rig_hub_stats(&rig).subscribers);
    rig_run(&rig);
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    rig_end(&rig);
}

HK_TEST(a_stream_whose_subscriber_is_gone_begins_and_ends_with_a_time_to_come_back)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    HK_CHECK_OK(hk_loop_answer_stream(rig.loop, held(&rig, 0), HK_BYTES(STREAM_HEAD "\r\n"), 12345));
    HK_CHECK(hk_bytes_start_with(rig_heard(&rig, client), HK_BYTES(STREAM_HEAD "\r\nretry: ")));
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_connection_can_be_given_away)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /mine HTTP/1.1" HELLO);
    HK_CHECK_BYTES("mine", rig_heard(&rig, client));
    HK_CHECK(rig_is_closed(&rig, client));
    HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
    rig_end(&rig);
}

HK_TEST(what_was_answered_before_a_connection_is_given_away_leaves_first)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO "GET /mine HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET ") "mine", rig_heard(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_connection_that_is_given_away_stays_open_as_long_as_its_new_owner_wants)
{
    rig_t rig;
    int fd;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    HK_CHECK_OK(hk_loop_answer_yourself(rig.loop, held(&rig, 0), &fd));
    rig_run(&rig);
    HK_CHECK(!rig_is_closed(&rig, client));
    rig_write(client, HK_BYTES("more"));
    rig_run(&rig);
    char heard[8];
    HK_CHECK_EQUAL_INT(4, read(fd, heard, sizeof(heard)));
    close(fd);
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_connection_cannot_be_given_away_when_its_client_is_gone_or_no_descriptor_is_left)
{
    for (int gone = 0; gone < 2; gone++) {
        rig_t rig;
        int fd = -1;
        rig_begin(&rig, NULL);
        int client = rig_client(&rig);
        rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
        if (gone) {
            rig_close(&rig, client);
            rig_run(&rig);
        } else {
            rig.calls.always[HK_CALL_DUPLICATE] = true;
            rig.calls.errors[HK_CALL_DUPLICATE] = EMFILE;
        }
        HK_CHECK_STATUS(HK_CLOSED, hk_loop_answer_yourself(rig.loop, held(&rig, 0), &fd));
        HK_CHECK_EQUAL_INT(-1, fd);
        rig_run(&rig);
        HK_CHECK_EQUAL_INT(0, rig_stats(&rig).connections);
        rig_end(&rig);
    }
}

HK_TEST(a_descriptor_that_means_another_connection_now_is_not_given_away)
{
    rig_t rig;
    int fd, others[20];
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    rig_close(&rig, client);
    rig_run(&rig);
    for (int i = 0; i < 20; i++) {
        others[i] = dup(0);
    }
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_answer_yourself(rig.loop, held(&rig, 0), &fd));
    HK_CHECK_EQUAL_INT(0, rig.calls.counts[HK_CALL_DUPLICATE]);
    for (int i = 0; i < 20; i++) {
        close(others[i]);
    }
    rig_end(&rig);
}

HK_TEST(a_connection_that_was_given_away_is_not_watched_any_more)
{
    rig_t rig;
    int fd;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    HK_CHECK_OK(hk_loop_answer_yourself(rig.loop, held(&rig, 0), &fd));
    rig.calls.fail_at = rig.calls.counts[HK_CALL_EPOLL_WAIT] > 0 ? 2 : 0;
    rig.calls.error = ENOMEM;
    rig_run(&rig);
    HK_CHECK(rig.calls.failed && rig.calls.failed_call == HK_CALL_EPOLL_CONTROL);
    rig_write(client, HK_BYTES("x"));
    rig_turn(&rig);
    HK_CHECK(rig.calls.quiet);
    close(fd);
    rig_end(&rig);
}

HK_TEST(an_answer_for_which_there_is_no_memory_closes_the_connection)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    hk_test_failing(0);
    HK_CHECK_STATUS(HK_NO_MEMORY, hk_loop_answer(rig.loop, held(&rig, 0), HK_BYTES("x"), HK_BYTES("y"), false));
    hk_test_not_failing();
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

HK_TEST(a_stream_for_whose_head_there_is_no_memory_is_unsubscribed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_write(client, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
    hk_ask_t *ask;
    hk_gate_answer_t answer;
    while (hk_loop_next(rig.loop, 0, &ask) != HK_OK) {
        rig_turn(&rig);
    }
    HK_CHECK_OK(rig_decide(&rig, ask, &answer));
    uint64_t serial = hk_subscriber_serial(answer.subscriber);
    hk_test_failing(0);
    HK_CHECK_STATUS(HK_NO_MEMORY, hk_loop_answer_stream(rig.loop, ask, answer.head, serial));
    hk_test_not_failing();
    HK_CHECK(rig_is_closed(&rig, client));
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    rig_end(&rig);
}

/* --- too many ----------------------------------------------------------------------------------------------------- */

HK_TEST(more_requests_than_may_wait_are_told_to_come_back)
{
    rig_t rig;
    hk_loop_options_t options = rig_options();
    options.max_asks = 2;
    rig_begin(&rig, &options);
    for (int i = 0; i < 2; i++) {
        rig_say(&rig, rig_client(&rig), "GET /hold HTTP/1.1" HELLO);
    }
    int client = rig_client(&rig), head = rig_client(&rig);
    bool ended;
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(BUSY(113, "{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,"
                             "\"detail\":\"too many requests wait for an answer\"}"),
                   rig_receive(&rig, client, &ended));
    HK_CHECK(ended);
    rig_say(&rig, head, "HEAD /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(BUSY(113, ""), rig_heard(&rig, head));
    HK_CHECK_EQUAL_INT(2, rig_stats(&rig).refused_asks);
    rig_release(&rig);
    client = rig_client(&rig);
    rig_say(&rig, client, "GET /echo HTTP/1.1" HELLO);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, client));
    rig_end(&rig);
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

HK_TEST(who_waits_for_asks_is_told_when_there_is_none_in_time)
{
    rig_t rig;
    hk_ask_t *ask;
    rig_begin(&rig, NULL);
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_next(rig.loop, 0, &ask));
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_next(rig.loop, 1000000, &ask));
    rig_end(&rig);
}

static void *wait_for_ask(void *loop)
{
    static hk_ask_t *ask;
    return hk_loop_next(loop, -1, &ask) == HK_AGAIN ? loop : NULL;
}

HK_TEST(an_interrupt_ends_the_waiting_of_everybody_once_also_of_who_is_about_to_wait)
{
    rig_t rig;
    pthread_t threads[3];
    void *result;
    rig_begin(&rig, NULL);
    for (int i = 0; i < 3; i++) {
        HK_CHECK(pthread_create(&threads[i], NULL, wait_for_ask, rig.loop) == 0);
    }
    hk_loop_interrupt_asks(rig.loop);
    for (int i = 0; i < 3; i++) {
        HK_CHECK(pthread_join(threads[i], &result) == 0);
        HK_CHECK(result != NULL);
    }
    rig_end(&rig);
}

/* Whoever waits already is not helped by what is for those who are about to wait. */
HK_TEST(an_interrupt_ends_a_waiting_that_has_begun)
{
    rig_t rig;
    pthread_t thread;
    void *result;
    rig_begin(&rig, NULL);
    HK_CHECK(pthread_create(&thread, NULL, wait_for_ask, rig.loop) == 0);
    poll(NULL, 0, 30);
    hk_loop_interrupt_asks(rig.loop);
    HK_CHECK(pthread_join(thread, &result) == 0);
    HK_CHECK(result != NULL);
    rig_end(&rig);
}

HK_TEST(who_waits_for_asks_is_told_when_none_will_come)
{
    rig_t rig;
    hk_ask_t *ask;
    rig_begin(&rig, NULL);
    hk_loop_stop(rig.loop);
    rig_run(&rig);
    HK_CHECK(rig.ended);
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_next(rig.loop, -1, &ask));
    rig_end(&rig);
}

/* --- the loop has ended ------------------------------------------------------------------------------------------- */

HK_TEST(asks_can_be_answered_after_the_loop_has_ended)
{
    rig_t rig;
    int fd;
    rig_begin(&rig, NULL);
    for (int i = 0; i < 3; i++) {
        rig_say(&rig, rig_client(&rig), "GET /hold HTTP/1.1" HELLO);
    }
    hk_loop_stop(rig.loop);
    rig_run(&rig);
    rig_pass(&rig, 10 * HK_SECOND);
    HK_CHECK(rig.ended);
    HK_CHECK_OK(hk_loop_answer(rig.loop, held(&rig, 0), HK_BYTES("x"), HK_BYTES(""), false));
    HK_CHECK_STATUS(HK_CLOSED, hk_loop_answer_yourself(rig.loop, held(&rig, 1), &fd));
    hk_grant_t *grant = grant_of("/a", "", "", HK_NEVER);
    hk_subscribe_t subscribe = {.grant = grant, .expires_in = HK_NEVER};
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    HK_CHECK_OK(hk_hub_subscribe(rig.hub, &subscribe, &subscriber, &answer));
    hk_grant_release(grant);
    HK_CHECK_OK(hk_loop_answer_stream(rig.loop, held(&rig, 2), HK_BYTES("x"), hk_subscriber_serial(subscriber)));
    HK_CHECK_EQUAL_INT(0, rig_hub_stats(&rig).subscribers);
    rig_end(&rig);
}

HK_TEST(what_nobody_has_answered_is_freed_with_the_loop)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO);
    rig_write(rig_client(&rig), hk_test_text("GET /echo HTTP/1.1" HELLO));
    rig_turn(&rig);
    rig_turn(&rig);
    rig_end(&rig);
}

/* --- fork --------------------------------------------------------------------------------------------------------- */

/* 0: all is well. */
static int abandon(rig_t *rig, int client)
{
    size_t blocks = hk_test_blocks();
    int files = hk_open_files();
    hk_loop_abandon(rig->loop);
    if (hk_test_blocks() >= blocks || hk_open_files() != files) {
        return 1;
    }
    /* The parent's connection is as it was. */
    return send(client, "x", 1, MSG_NOSIGNAL) == 1 ? 0 : 2;
}

HK_TEST(a_forked_child_abandons_the_loop_and_touches_no_descriptor)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    int stream = rig_subscribe(&rig, "match=/a"), client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1" HELLO "GET /half HT");
    rig_write(rig_client(&rig), hk_test_text("GET /echo HTTP/1.1" HELLO));
    rig_turn(&rig);
    rig_listen(&rig);
    hk_loop_interrupt(rig.loop);
    HK_CHECK_STATUS(HK_AGAIN, hk_loop_run(rig.loop));
    int status;
    pid_t child = fork();
    HK_CHECK(child >= 0);
    if (child == 0) {
        if (abandon(&rig, stream) == 0) {
            /* Nobody looks for what the child has not given back of the rest. */
            execlp("true", "true", (char *)NULL);
        }
        _exit(1);
    }
    HK_CHECK(waitpid(child, &status, 0) == child);
    HK_CHECK(WIFEXITED(status));
    HK_CHECK_EQUAL_INT(0, WEXITSTATUS(status));
    rig_publish(&rig, "/a", "still here");
    HK_CHECK_BYTES(EVENT("still here"), rig_heard(&rig, stream));
    rig_release(&rig);
    HK_CHECK_BYTES(ANSWER(4, "GET "), rig_heard(&rig, client));
    rig_end(&rig);
}

HK_TEST(abandoning_frees_nothing_that_was_being_changed)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    (void)rig_subscribe(&rig, "match=/a");
    size_t blocks = hk_test_blocks();
    atomic_store(&rig.loop->at_rest, false);
    hk_loop_abandon(rig.loop);
    HK_CHECK_EQUAL_UINT(blocks, hk_test_blocks());
    atomic_store(&rig.loop->at_rest, true);
    pthread_mutex_lock(&rig.loop->mutex);
    hk_loop_abandon(rig.loop);
    HK_CHECK_EQUAL_UINT(blocks, hk_test_blocks());
    pthread_mutex_unlock(&rig.loop->mutex);
    hk_loop_abandon(NULL);
    rig_end(&rig);
}
