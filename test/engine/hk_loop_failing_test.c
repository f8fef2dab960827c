/* Everything that a loop does, with the n-th system call failing, or the n-th request for memory: nothing crashes, leaks
 * or spins, and the loop goes on. */
#include "hk_loop_fixture.h"

/* More than any of this takes. */
enum { MOST_TURNS = 3000 };

/* As rig_run, but whoever is told of a failure may be told of nothing else. False: the loop gave up. */
static bool run(rig_t *rig)
{
    hk_ask_t *ask;
    bool asked = true;
    for (int turns = 0; asked && !rig->ended;) {
        do {
            HK_CHECK(turns++ < MOST_TURNS);
            rig->calls.quiet = false;
            hk_status_t status = hk_loop_turn(rig->loop);
            rig->ended = status == HK_OK;
            if (status == HK_SYSTEM) {
                return false;
            }
        } while (!rig->calls.quiet && !rig->ended);
        asked = false;
        while (!rig->ended && hk_loop_next(rig->loop, 0, &ask) == HK_OK) {
            rig_answer(rig, ask);
            asked = true;
        }
    }
    return true;
}

static void pass(rig_t *rig, int64_t ns)
{
    atomic_fetch_add(&rig->calls.now, ns);
    (void)run(rig);
}

static void say(rig_t *rig, int client, const char *text)
{
    rig_write(client, hk_test_text(text));
    (void)run(rig);
    (void)rig_receive(rig, client, NULL);
}

static int local(rig_t *rig, const char *first)
{
    int client = rig_client_with(rig, hk_test_text(first));
    (void)run(rig);
    return client;
}

static void attach(rig_t *rig)
{
    int client, server;
    hk_grant_t *grant = grant_of("/a", "", "", HK_NEVER);
    if (grant == NULL) {
        return;
    }
    hk_subscribe_t subscribe = {.grant = grant, .expires_in = HK_NEVER, .now = atomic_load(&rig->calls.now)};
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    if (hk_hub_subscribe(rig->hub, &subscribe, &subscriber, &answer) == HK_OK) {
        uint64_t serial = hk_subscriber_serial(subscriber);
        rig_pair(rig, &client, &server);
        if (hk_loop_attach(rig->loop, server, serial) != HK_OK) {
            close(server);
            hk_hub_unsubscribe(rig->hub, subscriber, 0);
        }
    }
    hk_grant_release(grant);
    (void)run(rig);
}

static void publish(rig_t *rig, const char *data)
{
    (void)rig_try_publish(rig, "/a", hk_test_text(data));
    (void)run(rig);
}

/* Whatever there is. */
static void live(rig_t *rig)
{
    static char large[40000];
    memset(large, 'x', sizeof(large) - 1);
    rig_listen(rig);
    (void)run(rig);
    int over_tcp;
    (void)rig_try_connect(rig, &over_tcp);
    say(rig, over_tcp, "GET /echo HTTP/1.1" HELLO);
    int stream = local(rig, "GET " HUB "?match=/a HTTP/1.1" HELLO);
    int slow = local(rig, "GET " HUB "?match=/a HTTP/1.1" HELLO);
    attach(rig);
    (void)rig_receive(rig, stream, NULL);
    publish(rig, "one");
    int client = local(rig, "");
    say(rig, client, "GET /echo HTTP/1.1" HELLO "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\na");
    say(rig, client, "bc");
    say(rig, client,
        "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1");
    say(rig, client,
        "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=2");
    say(rig, local(rig, ""), "PUT /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n");
    say(rig, local(rig, "nonsense\r\n\r\n"), "more");
    int large_one = local(rig, "GET /large?300000 HTTP/1.1" HELLO);
    (void)local(rig, "GET /mine HTTP/1.1" HELLO);
    int held = local(rig, "GET /hold HTTP/1.1" HELLO);
    for (int i = 0; i < 3; i++) {
        publish(rig, large);
        (void)rig_receive(rig, stream, NULL);
    }
    (void)rig_receive(rig, slow, NULL);
    (void)run(rig);
    (void)rig_receive(rig, large_one, NULL);
    (void)run(rig);
    rig_close(rig, held);
    (void)run(rig);
    rig_release(rig);
    (void)run(rig);
    pass(rig, HK_SECOND);
    pass(rig, 40 * HK_SECOND);
    rig_close(rig, stream);
    (void)run(rig);
}

/* Somebody new is served as if nothing had been. */
static void check_that_it_goes_on(rig_t *rig)
{
    pass(rig, HK_SECOND);
    int client = rig_client(rig);
    rig_write(client, hk_test_text("PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nok"));
    (void)run(rig);
    HK_CHECK_BYTES("HTTP/1.1 200 X\r\ncontent-length: 6\r\n\r\nPUT ok", rig_receive(rig, client, NULL));
    int stream = rig_client(rig);
    rig_write(stream, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
    (void)run(rig);
    HK_CHECK_BYTES(OPENING, rig_receive(rig, stream, NULL));
    publish(rig, "still here");
    HK_CHECK_BYTES(EVENT("still here"), rig_receive(rig, stream, NULL));
}

static void stop(rig_t *rig)
{
    hk_loop_stop(rig->loop);
    for (int i = 0; i < 20 && !rig->ended; i++) {
        pass(rig, HK_SECOND);
    }
    HK_CHECK(rig->ended);
    HK_CHECK_EQUAL_INT(0, rig_stats(rig).connections);
    HK_CHECK_EQUAL_INT(0, rig_stats(rig).streams);
    HK_CHECK_EQUAL_UINT(0, rig_hub_stats(rig).subscribers);
}

/* A reader is slow soon. */
static hk_loop_options_t narrow(void)
{
    hk_loop_options_t options = rig_options();
    options.send_buffer = 8192;
    return options;
}

static const int errors[] = {EINTR, EAGAIN, ENOMEM, EMFILE, ECONNRESET, EPIPE, ENOBUFS};

HK_TEST(the_nth_system_call_fails_in_whatever_way_and_the_loop_goes_on)
{
    int files = hk_open_files();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            rig_t rig;
            hk_loop_options_t options = narrow();
            rig_clear(&rig);
            rig.calls.fail_at = n;
            rig.calls.error = errors[i];
            hk_test_note("call %ld fails with %s", n, strerror(errors[i]));
            hk_status_t status = rig_try(&rig, &options, NULL);
            if (status != HK_OK) {
                HK_CHECK_STATUS(HK_SYSTEM, status);
                HK_CHECK(rig.calls.failed);
                HK_CHECK_EQUAL_INT(files, hk_open_files());
                continue;
            }
            live(&rig);
            failed = rig.calls.failed;
            hk_test_note("call %ld, %s, fails with %s", n, hk_call_name(rig.calls.failed_call), strerror(errors[i]));
            rig.calls.fail_at = 0;
            check_that_it_goes_on(&rig);
            stop(&rig);
            rig_end(&rig);
            HK_CHECK_EQUAL_INT(files, hk_open_files());
        }
    }
}

HK_TEST(while_it_stops_the_nth_system_call_fails)
{
    int files = hk_open_files();
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i += 2) {
        bool failed = true;
        for (long n = 1; failed; n++) {
            rig_t rig;
            hk_loop_options_t options = narrow();
            rig_begin(&rig, &options);
            live(&rig);
            (void)local(&rig, "GET " HUB "?match=/a HTTP/1.1" HELLO);
            (void)local(&rig, "GET /hold HTTP/1.1" HELLO);
            (void)local(&rig, "GET /large?900000 HTTP/1.1" HELLO);
            rig.calls.fail_at = n;
            rig.calls.error = errors[i];
            stop(&rig);
            failed = rig.calls.failed;
            hk_test_note("call %ld, %s, fails with %s", n, hk_call_name(rig.calls.failed_call), strerror(errors[i]));
            rig_release(&rig);
            rig_end(&rig);
            HK_CHECK_EQUAL_INT(files, hk_open_files());
        }
    }
}

HK_TEST(a_kind_of_system_call_that_always_fails_makes_nothing_spin)
{
    int files = hk_open_files();
    for (size_t call = 0; call < HK_CALLS; call++) {
        for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
            /* What cannot be so: a socket that is not full and always says that it is, or always is disturbed. */
            bool never = (call == HK_CALL_SEND || call == HK_CALL_RECEIVE || call == HK_CALL_ACCEPT ||
                          call == HK_CALL_EPOLL_WAIT) &&
                         (errors[i] == EINTR || errors[i] == EAGAIN || errors[i] == ECONNRESET);
            if (never || call == HK_CALL_EPOLL_CREATE || call == HK_CALL_EVENT_CREATE) {
                continue;
            }
            rig_t rig;
            hk_test_note("%s fails with %s", hk_call_name((hk_call_t)call), strerror(errors[i]));
            hk_loop_options_t options = narrow();
            rig_begin(&rig, &options);
            rig.calls.always[call] = true;
            rig.calls.errors[call] = errors[i];
            if (call == HK_CALL_EPOLL_WAIT) {
                HK_CHECK_STATUS(HK_SYSTEM, hk_loop_run(rig.loop));
            } else {
                live(&rig);
            }
            rig.calls.always[call] = false;
            check_that_it_goes_on(&rig);
            stop(&rig);
            rig_end(&rig);
            HK_CHECK_EQUAL_INT(files, hk_open_files());
        }
    }
}

HK_TEST(each_request_for_memory_fails_and_the_loop_goes_on)
{
    int files = hk_open_files();
    HK_EACH_FAILING_ALLOCATION {
        rig_t rig;
        hk_loop_options_t options = narrow();
        rig_clear(&rig);
        hk_status_t status = rig_try(&rig, &options, NULL);
        if (status != HK_OK) {
            HK_CHECK_STATUS(HK_NO_MEMORY, status);
        } else {
            live(&rig);
            stop(&rig);
            rig_end(&rig);
        }
        HK_CHECK_EQUAL_INT(files, hk_open_files());
    }
}
