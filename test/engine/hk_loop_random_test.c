/* Clients that do whatever they like, sockets that take what they like, calls that fail: at the end everything is as it
 * was at the beginning. HK_TEST_SEED gives others. */
#include "hk_loop_fixture.h"

enum { CLIENTS = 24, STEPS = 4000, ROUNDS = 6 };

typedef struct crowd {
    rig_t rig;
    int sockets[CLIENTS]; /* -1: none */
} crowd_t;

static const char *const sayings[] = {
    "GET /echo HTTP/1.1" HELLO,
    "HEAD /echo HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nabcde",
    "PUT /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "PUT /echo HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n",
    "PUT /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 5000\r\n\r\n",
    "GET " HUB "?match=/a HTTP/1.1" HELLO,
    "GET " HUB "?match=/a&match=/b HTTP/1.1" HELLO,
    "GET " HUB "?match=/b HTTP/1.1\r\nHost: example.com\r\nLast-Event-ID: earliest\r\n\r\n",
    "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/a&id=x&data=1",
    "POST " HUB " HTTP/1.1\r\nHost: example.com\r\n" FORM "\r\nContent-Length: 20\r\n\r\ntopic=/b&id=x&data=1",
    "GET /large?200000 HTTP/1.1" HELLO,
    "GET /hold HTTP/1.1" HELLO,
    "GET /mine HTTP/1.1" HELLO,
    "GET /bye HTTP/1.1" HELLO,
    "x",
    "nonsense\r\n\r\n",
    "\r\n",
};

enum { SAYINGS = sizeof(sayings) / sizeof(sayings[0]) };

static void leave(crowd_t *crowd, int i)
{
    close(crowd->sockets[i]);
    crowd->sockets[i] = -1;
}

static void come(crowd_t *crowd, int i)
{
    int ends[2];
    if (hk_test_below(2) == 0) {
        HK_CHECK(rig_try_connect(&crowd->rig, &crowd->sockets[i]));
        crowd->rig.client_count = 0;
        return;
    }
    HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    crowd->sockets[i] = ends[0];
    if (hk_loop_adopt(crowd->rig.loop, ends[1], HK_BYTES("")) != HK_OK) {
        close(ends[1]);
    }
}

static void talk(crowd_t *crowd, int i)
{
    hk_bytes_t saying = hk_test_text(sayings[hk_test_below(SAYINGS)]);
    size_t from = hk_test_below(6) == 0 ? hk_test_below(saying.length) : 0;
    size_t length = hk_test_below(6) == 0 ? hk_test_below(saying.length - from) : saying.length - from;
    (void)send(crowd->sockets[i], saying.at + from, length, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void reset(crowd_t *crowd, int i)
{
    struct linger linger = {.l_onoff = 1};
    (void)setsockopt(crowd->sockets[i], SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
    leave(crowd, i);
}

static void read_some(crowd_t *crowd, int i)
{
    static char bytes[50000];
    (void)recv(crowd->sockets[i], bytes, 1 + hk_test_below(sizeof(bytes) - 1), MSG_DONTWAIT);
}

static void act(crowd_t *crowd, int i)
{
    if (crowd->sockets[i] < 0) {
        come(crowd, i);
        return;
    }
    switch (hk_test_below(12)) {
    case 0:
        leave(crowd, i);
        break;
    case 1:
        reset(crowd, i);
        break;
    case 2:
        (void)shutdown(crowd->sockets[i], SHUT_WR);
        break;
    case 3:
    case 4:
    case 5:
    case 6:
        read_some(crowd, i);
        break;
    default:
        talk(crowd, i);
    }
}

static void attach(rig_t *rig)
{
    int ends[2];
    hk_grant_t *grant = grant_of("/a", "", "", HK_NEVER);
    hk_subscribe_t subscribe = {.grant = grant, .expires_in = 30 * HK_SECOND, .now = atomic_load(&rig->calls.now)};
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    HK_CHECK_OK(hk_hub_subscribe(rig->hub, &subscribe, &subscriber, &answer));
    uint64_t serial = hk_subscriber_serial(subscriber);
    hk_grant_release(grant);
    HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    HK_CHECK_OK(hk_loop_attach(rig->loop, ends[0], serial));
    rig_turn(rig);
    close(ends[1]);
}

/* What happens around the clients. */
static void happen(rig_t *rig)
{
    static char data[20000];
    memset(data, 'd', sizeof(data));
    switch (hk_test_below(10)) {
    case 0:
        atomic_fetch_add(&rig->calls.now, (int64_t)hk_test_below(4000) * HK_MILLISECOND);
        break;
    case 1:
        rig_release(rig);
        break;
    case 2:
        rig->calls.send_limit = hk_test_below(2) == 0 ? 0 : 1 + (long)hk_test_below(3000);
        break;
    case 3:
        atomic_store(&rig->calls.fail_at, 1 + (long)hk_test_below(30));
        rig->calls.error = (int[]){EINTR, EAGAIN, ENOMEM, EMFILE, ECONNRESET, EPIPE, ENOBUFS}[hk_test_below(7)];
        break;
    case 4:
        if (hk_test_below(20) == 0) {
            attach(rig);
        }
        break;
    default:
        HK_CHECK_OK(rig_try_publish(rig, hk_test_below(2) == 0 ? "/a" : "/b", hk_bytes(data, hk_test_below(20000))));
    }
}

static void turn(rig_t *rig)
{
    hk_ask_t *ask;
    rig_turn(rig);
    while (hk_loop_next(rig->loop, 0, &ask) == HK_OK) {
        if (rig->held_count == MOST_HELD) {
            rig_release(rig);
        }
        rig_answer(rig, ask);
    }
}

static void finish(crowd_t *crowd)
{
    rig_t *rig = &crowd->rig;
    atomic_store(&rig->calls.fail_at, 0);
    rig->calls.send_limit = 0;
    rig_release(rig);
    hk_loop_stop(rig->loop);
    for (int i = 0; i < CLIENTS; i++) {
        if (crowd->sockets[i] >= 0) {
            leave(crowd, i);
        }
    }
    for (int i = 0; i < 20 && !rig->ended; i++) {
        atomic_fetch_add(&rig->calls.now, HK_SECOND);
        rig_run(rig);
        rig_release(rig);
    }
    HK_CHECK(rig->ended);
    HK_CHECK_EQUAL_UINT(0, rig_stats(rig).connections);
    HK_CHECK_EQUAL_UINT(0, rig_stats(rig).streams);
    HK_CHECK_EQUAL_UINT(0, rig_hub_stats(rig).subscribers);
}

HK_TEST(whatever_clients_do_nothing_is_left_of_them)
{
    int files = hk_open_files();
    for (int round = 0; round < ROUNDS; round++) {
        static crowd_t crowd;
        hk_loop_options_t options = rig_options();
        hk_hub_options_t hub = hub_options();
        options.max_connections = 20;
        options.max_asks = 8;
        options.send_buffer = 4096;
        hub.heartbeat = 5 * HK_SECOND;
        hub.max_lifetime = 60 * HK_SECOND;
        hub.history_bytes = 200000;
        rig_begin_with_hub(&crowd.rig, &options, &hub);
        rig_listen(&crowd.rig);
        for (int i = 0; i < CLIENTS; i++) {
            crowd.sockets[i] = -1;
        }
        for (int step = 0; step < STEPS; step++) {
            act(&crowd, (int)hk_test_below(CLIENTS));
            if (hk_test_below(3) == 0) {
                happen(&crowd.rig);
            }
            if (hk_test_below(2) == 0) {
                turn(&crowd.rig);
            }
        }
        finish(&crowd);
        rig_end(&crowd.rig);
        HK_CHECK_EQUAL_INT(files, hk_open_files());
    }
}
