/* The loop on a thread of its own, others beside it; also what ThreadSanitizer looks at. */
#include "hk_loop_fixture.h"

#include <pthread.h>

#define ANSWER(length, body) "HTTP/1.1 200 X\r\ncontent-length: " #length "\r\n\r\n" body

typedef struct crew {
    rig_t rig;
    pthread_t loop, ruby[2];
    atomic_int interruptions;
} crew_t;

static void *run_loop(void *argument)
{
    crew_t *crew = argument;
    hk_status_t status;
    while ((status = hk_loop_run(crew->rig.loop)) == HK_AGAIN) {
        atomic_fetch_add(&crew->interruptions, 1);
    }
    HK_CHECK_OK(status);
    return NULL;
}

static void *answer_asks(void *argument)
{
    rig_t *rig = argument;
    hk_ask_t *ask;
    hk_status_t status;
    while ((status = hk_loop_next(rig->loop, -1, &ask)) != HK_CLOSED) {
        if (status != HK_OK) {
            continue;
        }
        if (hk_bytes_equal(hk_ask_head(ask)->path, HK_BYTES(HUB))) {
            rig_answer_hub(rig, ask);
        } else if (hk_bytes_equal(hk_ask_head(ask)->path, HK_BYTES("/mine"))) {
            rig_answer_mine(rig, ask);
        } else {
            rig_echo(rig, ask, false);
        }
    }
    return NULL;
}

static void crew_begin(crew_t *crew)
{
    hk_sys_failing_t *calls = &crew->rig.calls;
    *crew = (crew_t){.rig = {.port = 0}};
    rig_begin(&crew->rig, NULL);
    calls->never_waits = false;
    rig_listen(&crew->rig);
    HK_CHECK(pthread_create(&crew->loop, NULL, run_loop, crew) == 0);
    for (int i = 0; i < 2; i++) {
        HK_CHECK(pthread_create(&crew->ruby[i], NULL, answer_asks, &crew->rig) == 0);
    }
}

static void crew_end(crew_t *crew)
{
    hk_loop_stop(crew->rig.loop);
    HK_CHECK(pthread_join(crew->loop, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        HK_CHECK(pthread_join(crew->ruby[i], NULL) == 0);
    }
    rig_end(&crew->rig);
}

/* Exactly these bytes, waited for. */
static void check_receives(int client, const char *expected)
{
    char heard[4096];
    size_t length = 0, wanted = strlen(expected);
    HK_CHECK(wanted <= sizeof(heard));
    while (length < wanted) {
        struct pollfd one = {.fd = client, .events = POLLIN};
        HK_CHECK(poll(&one, 1, PATIENCE_MS) == 1);
        ssize_t got = recv(client, heard + length, wanted - length, 0);
        HK_CHECK(got > 0);
        length += (size_t)got;
    }
    HK_CHECK_BYTES(expected, hk_bytes(heard, length));
}

static int subscribe(crew_t *crew)
{
    int client = rig_connect(&crew->rig);
    rig_write(client, hk_test_text("GET " HUB "?match=/a HTTP/1.1" HELLO));
    check_receives(client, OPENING);
    return client;
}

HK_TEST(requests_streams_and_publishes_work_across_threads)
{
    crew_t crew;
    crew_begin(&crew);
    int stream = subscribe(&crew), other = subscribe(&crew), client = rig_connect(&crew.rig);
    rig_write(client, hk_test_text("GET /echo HTTP/1.1" HELLO "PUT /echo HTTP/1.1" HELLO));
    check_receives(client, ANSWER(4, "GET ") ANSWER(4, "PUT "));
    rig_publish(&crew.rig, "/a", "one");
    check_receives(stream, EVENT("one"));
    check_receives(other, EVENT("one"));
    rig_write(client, hk_test_text("GET /mine HTTP/1.1" HELLO));
    check_receives(client, "mine");
    crew_end(&crew);
}

HK_TEST(no_wake_up_is_lost)
{
    crew_t crew;
    crew_begin(&crew);
    int stream = subscribe(&crew);
    for (int i = 0; i < 2000; i++) {
        rig_publish(&crew.rig, "/a", "one");
        check_receives(stream, EVENT("one"));
    }
    crew_end(&crew);
}

typedef struct publisher {
    crew_t *crew;
    int count;
} publisher_t;

static void *publish_many(void *argument)
{
    publisher_t *publisher = argument;
    for (int i = 0; i < publisher->count; i++) {
        rig_publish(&publisher->crew->rig, "/a", "one");
    }
    return NULL;
}

static void *request_many(void *argument)
{
    publisher_t *publisher = argument;
    rig_t *rig = &publisher->crew->rig;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)rig->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < publisher->count / 10; i++) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        HK_CHECK(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
        rig_write(fd, hk_test_text("GET /echo HTTP/1.1" HELLO));
        if (i % 3 > 0) {
            check_receives(fd, ANSWER(4, "GET "));
        }
        close(fd);
    }
    return NULL;
}

static void *look_in(void *argument)
{
    publisher_t *publisher = argument;
    hk_loop_t *loop = publisher->crew->rig.loop;
    for (int i = 0; i < publisher->count; i++) {
        hk_loop_stats_t stats;
        hk_loop_read_stats(loop, &stats);
        hk_loop_interrupt(loop);
        hk_loop_interrupt_asks(loop);
    }
    return NULL;
}

HK_TEST(many_threads_at_once_lose_nothing)
{
    enum { COUNT = 300 };
    crew_t crew;
    crew_begin(&crew);
    int streams[3];
    for (int i = 0; i < 3; i++) {
        streams[i] = subscribe(&crew);
    }
    publisher_t publisher = {&crew, COUNT};
    pthread_t threads[5];
    void *(*const work[5])(void *) = {publish_many, publish_many, request_many, request_many, look_in};
    for (int i = 0; i < 5; i++) {
        HK_CHECK(pthread_create(&threads[i], NULL, work[i], &publisher) == 0);
    }
    for (int i = 0; i < 3; i++) {
        for (int event = 0; event < 2 * COUNT; event++) {
            check_receives(streams[i], EVENT("one"));
        }
    }
    for (int i = 0; i < 5; i++) {
        HK_CHECK(pthread_join(threads[i], NULL) == 0);
    }
    HK_CHECK(crew.interruptions > 0);
    crew_end(&crew);
}

HK_TEST(connections_and_streams_are_handed_over_from_other_threads)
{
    crew_t crew;
    crew_begin(&crew);
    rig_t *rig = &crew.rig;
    for (int i = 0; i < 50; i++) {
        int client, server, ends[2];
        HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
        client = ends[0];
        server = ends[1];
        if (i % 2 == 0) {
            HK_CHECK_OK(hk_loop_adopt(rig->loop, server, HK_BYTES("GET /echo HTTP/1.1" HELLO)));
            check_receives(client, ANSWER(4, "GET "));
        } else {
            hk_grant_t *grant = grant_of("/a", "", "", HK_NEVER);
            hk_subscribe_t subscribe = {.grant = grant, .expires_in = HK_NEVER};
            hk_subscriber_t *subscriber;
            hk_bytes_t answer;
            hk_lock_take(&rig->lock);
            HK_CHECK_OK(hk_hub_subscribe(rig->hub, &subscribe, &subscriber, &answer));
            uint64_t serial = hk_subscriber_serial(subscriber);
            hk_grant_release(grant);
            hk_lock_give(&rig->lock);
            HK_CHECK_OK(hk_loop_attach(rig->loop, server, serial));
            check_receives(client, ":\n\n");
        }
        close(client);
    }
    crew_end(&crew);
}

HK_TEST(a_stop_from_another_thread_ends_everything)
{
    crew_t crew;
    crew_begin(&crew);
    int stream = subscribe(&crew);
    hk_loop_stop(crew.rig.loop);
    HK_CHECK(pthread_join(crew.loop, NULL) == 0);
    char heard[64];
    struct pollfd one = {.fd = stream, .events = POLLIN};
    HK_CHECK(poll(&one, 1, PATIENCE_MS) == 1);
    ssize_t got = recv(stream, heard, sizeof(heard), 0);
    HK_CHECK(got > 7);
    HK_CHECK(hk_bytes_start_with(hk_bytes(heard, (size_t)got), HK_BYTES("retry: ")));
    for (int i = 0; i < 2; i++) {
        HK_CHECK(pthread_join(crew.ruby[i], NULL) == 0);
    }
    rig_end(&crew.rig);
}
