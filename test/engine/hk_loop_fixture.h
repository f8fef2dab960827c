/* hk_loop_fixture.h: a loop with its hub and gate, clients, and what stands for Ruby; for the tests of the loop.
 *
 *     rig_t rig;
 *     rig_begin(&rig, NULL);
 *     int client = rig_client(&rig);
 *     rig_say(&rig, client, "GET /echo HTTP/1.1\r\nHost: a\r\n\r\n");
 *     HK_CHECK_BYTES("…", rig_heard(&rig, client));
 *     rig_end(&rig);
 *
 * One thread does everything: rig_run turns the loop, and answers what it asks, until nothing is left to be done. The
 * clock stands still unless a test moves it.
 *
 * What stands for Ruby permits everything. GET HUB?match=/a subscribes, POST HUB publishes; both are remembered if the
 * gate has a key for them. Of other paths:
 *
 *     /echo        method and body, and " too large" if it was
 *     /bye         as /echo, and the connection ends
 *     /large?N     N bytes
 *     /mine        somebody else answers on the socket
 *     /hold        not answered until rig_release
 *
 * Nothing fails for want of memory or of a system call but what a test makes fail.
 */
#ifndef HK_LOOP_FIXTURE_H
#define HK_LOOP_FIXTURE_H

#include "hk_form.h"
#include "hk_gate_support.h"
#include "hk_loop_private.h"
#include "hk_sys_failing.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/un.h>
#include <unistd.h>

#define HELLO "\r\nHost: example.com\r\n\r\n"
#define STREAM_HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n"
#define OPENING STREAM_HEAD "\r\n:\n\n"
#define PUBLISH_HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n"

#define ANSWER(length, body) "HTTP/1.1 200 X\r\ncontent-length: " #length "\r\n\r\n" body
#define PROBLEM(status, title, length, detail)                                                                         \
    "HTTP/1.1 " #status " " title "\r\ncontent-type: application/problem+json\r\ncontent-length: " #length             \
    "\r\ncache-control: no-store\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n"                      \
    "{\"type\":\"about:blank\",\"title\":\"" title "\",\"status\":" #status ",\"detail\":\"" detail "\"}"

enum { MOST_HELD = 64, MOST_CLIENTS = 64, HEARD_BYTES = 1 << 20, PATIENCE_MS = 10000 };

typedef struct rig {
    hk_lock_t lock;
    hk_hub_t *hub;
    hk_gate_t *gate;
    hk_loop_t *loop;
    hk_sys_failing_t calls;
    hk_loop_options_t options;
    hk_ask_t *held[MOST_HELD];
    size_t held_count, asked;
    int clients[MOST_CLIENTS];
    size_t client_count;
    bool ended; /* the loop has */
    int port;
    char *heard;
} rig_t;

/* --- what stands for Ruby ----------------------------------------------------------------------------------------- */

/* "/a /b" of "match=/a&match=/b" */
static inline void rig_matches(hk_bytes_t query, char list[256])
{
    hk_bytes_t name, value;
    *list = '\0';
    while (hk_form_next(&query, &name, &value)) {
        if (hk_bytes_equal(name, HK_BYTES("match"))) {
            snprintf(list + strlen(list), 256 - strlen(list), "%s%.*s", *list != '\0' ? " " : "", (int)value.length,
                     value.at);
        }
    }
}

static inline hk_status_t rig_decide(rig_t *rig, hk_ask_t *ask, hk_gate_answer_t *answer)
{
    char list[256];
    rig_matches(hk_ask_head(ask)->query, list);
    bool publishes = hk_bytes_equal(hk_ask_head(ask)->method, HK_BYTES("POST"));
    hk_grant_t *grant = grant_of(list, "*", "", HK_NEVER);
    if (grant == NULL) {
        return HK_NO_MEMORY;
    }
    hk_decision_t decision = {.key = hk_ask_key(ask),
                              .epoch = hk_ask_epoch(ask),
                              .grant = grant,
                              .head = publishes ? HK_BYTES(PUBLISH_HEAD) : HK_BYTES(STREAM_HEAD)};
    hk_gate_request_t request = {.head = hk_ask_head(ask),
                                 .body = hk_ask_body(ask),
                                 .body_is_whole = !hk_ask_body_too_large(ask),
                                 .peer = hk_ask_peer(ask),
                                 .now = atomic_load(&rig->calls.now),
                                 .wall = atomic_load(&rig->calls.wall)};
    hk_status_t status = hk_gate_remember(rig->gate, &decision);
    hk_grant_release(grant);
    return status == HK_OK ? hk_gate_serve(rig->gate, &request, answer) : status;
}

static inline void rig_answer_text(rig_t *rig, hk_ask_t *ask, int status, hk_bytes_t body, bool close)
{
    char head[128];
    int length = snprintf(head, sizeof(head), "HTTP/1.1 %d X\r\ncontent-length: %zu\r\n\r\n", status, body.length);
    if (hk_bytes_equal(hk_ask_head(ask)->method, HK_BYTES("HEAD"))) {
        body.length = 0;
    }
    (void)hk_loop_answer(rig->loop, ask, hk_bytes(head, (size_t)length), body, close);
}

static inline void rig_answer_hub(rig_t *rig, hk_ask_t *ask)
{
    hk_gate_answer_t answer;
    hk_lock_take(&rig->lock);
    hk_status_t status = rig_decide(rig, ask, &answer);
    bool subscribed = status == HK_OK && answer.kind == HK_GATE_SUBSCRIBED;
    uint64_t serial = subscribed ? hk_subscriber_serial(answer.subscriber) : 0;
    char head[4096];
    hk_bytes_t kept = hk_bytes(head, 0), body = hk_bytes(head, 0);
    if (status == HK_OK) {
        HK_CHECK(answer.head.length + answer.body.length < sizeof(head));
        memcpy(head, answer.head.at, kept.length = answer.head.length);
        if (answer.body.length > 0) {
            memcpy(head + kept.length, answer.body.at, body.length = answer.body.length);
        }
        body.at = head + kept.length;
    }
    hk_lock_give(&rig->lock);
    if (subscribed) {
        (void)hk_loop_answer_stream(rig->loop, ask, kept, serial);
    } else if (status == HK_OK) {
        (void)hk_loop_answer(rig->loop, ask, kept, body, false);
    } else {
        rig_answer_text(rig, ask, 400, hk_test_text(hk_status_name(status)), false);
    }
}

static inline void rig_echo(rig_t *rig, hk_ask_t *ask, bool close)
{
    hk_bytes_t method = hk_ask_head(ask)->method, body = hk_ask_body(ask);
    size_t room = method.length + body.length + 16;
    char *text = malloc(room);
    HK_CHECK(text != NULL);
    int length = snprintf(text, room, "%.*s %.*s%s", (int)method.length, method.at, (int)body.length,
                          body.at != NULL ? body.at : "", hk_ask_body_too_large(ask) ? " too large" : "");
    rig_answer_text(rig, ask, 200, hk_bytes(text, (size_t)length), close);
    free(text);
}

static inline void rig_answer_mine(rig_t *rig, hk_ask_t *ask)
{
    int fd;
    if (hk_loop_answer_yourself(rig->loop, ask, &fd) == HK_OK) {
        ssize_t sent = send(fd, "mine", 4, MSG_NOSIGNAL | MSG_DONTWAIT);
        HK_CHECK(sent == 4 || errno == EPIPE || errno == ECONNRESET || errno == EAGAIN);
        close(fd);
    }
}

static inline void rig_answer(rig_t *rig, hk_ask_t *ask)
{
    hk_bytes_t path = hk_ask_head(ask)->path;
    rig->asked++;
    if (hk_bytes_equal(path, HK_BYTES(HUB))) {
        rig_answer_hub(rig, ask);
    } else if (hk_bytes_equal(path, HK_BYTES("/mine"))) {
        rig_answer_mine(rig, ask);
    } else if (hk_bytes_equal(path, HK_BYTES("/hold"))) {
        HK_CHECK(rig->held_count < MOST_HELD);
        rig->held[rig->held_count++] = ask;
    } else if (hk_bytes_equal(path, HK_BYTES("/large"))) {
        size_t size = (size_t)atol(hk_ask_head(ask)->query.at);
        char *bytes = malloc(size);
        HK_CHECK(bytes != NULL);
        memset(bytes, 'x', size);
        rig_answer_text(rig, ask, 200, hk_bytes(bytes, size), false);
        free(bytes);
    } else {
        rig_echo(rig, ask, hk_bytes_equal(path, HK_BYTES("/bye")));
    }
}

/* Answers what was held, as /echo. */
static inline void rig_release(rig_t *rig)
{
    for (size_t i = 0; i < rig->held_count; i++) {
        rig_echo(rig, rig->held[i], false);
    }
    rig->held_count = 0;
}

/* --- beginning, turning, ending ----------------------------------------------------------------------------------- */

static inline hk_loop_options_t rig_options(void)
{
    return (hk_loop_options_t){.max_body_bytes = 1000,
                               .head_timeout = 10 * HK_SECOND,
                               .idle_timeout = 20 * HK_SECOND,
                               .write_timeout = 30 * HK_SECOND,
                               .drain_timeout = 5 * HK_SECOND};
}

static inline hk_gate_options_t rig_gate_options(void)
{
    hk_gate_options_t options = gate_options();
    options.max_topics = 1000;
    options.max_body_bytes = 100000;
    return options;
}

/* HK_OK, or why not, with nothing to be given back. options: NULL: rig_options(). */
static inline hk_status_t rig_try(rig_t *rig, const hk_loop_options_t *options, const hk_hub_options_t *hub)
{
    hk_hub_options_t usual = hub_options();
    hk_gate_options_t gate = rig_gate_options();
    HK_CHECK_OK(hk_lock_init(&rig->lock));
    hk_status_t status = hk_hub_new(hk_test_alloc(), hub != NULL ? hub : &usual, &rig->hub);
    if (status != HK_OK) {
        return status;
    }
    status = hk_gate_new(hk_test_alloc(), &gate, rig->hub, &rig->gate);
    if (status == HK_OK) {
        rig->options = options != NULL ? *options : rig_options();
        rig->options.hub = rig->hub;
        rig->options.gate = rig->gate;
        rig->options.lock = &rig->lock;
        rig->options.sys = &rig->calls.sys;
        status = hk_loop_new(hk_test_alloc(), &rig->options, &rig->loop);
        if (status != HK_OK) {
            hk_gate_free(rig->gate);
        }
    }
    if (status != HK_OK) {
        hk_hub_free(rig->hub);
    }
    return status;
}

static inline void rig_clear(rig_t *rig)
{
    *rig = (rig_t){.port = 0};
    hk_sys_failing_init(&rig->calls);
    rig->calls.never_waits = true;
}

static inline void rig_begin(rig_t *rig, const hk_loop_options_t *options)
{
    rig_clear(rig);
    HK_CHECK_OK(rig_try(rig, options, NULL));
}

static inline void rig_begin_with_hub(rig_t *rig, const hk_loop_options_t *options, const hk_hub_options_t *hub)
{
    rig_clear(rig);
    HK_CHECK_OK(rig_try(rig, options, hub));
}

/* Whatever clients are still open are closed. */
static inline void rig_end(rig_t *rig)
{
    hk_loop_free(rig->loop);
    hk_gate_free(rig->gate);
    hk_hub_free(rig->hub);
    hk_lock_release(&rig->lock);
    for (size_t i = 0; i < rig->client_count; i++) {
        if (rig->clients[i] >= 0) {
            close(rig->clients[i]);
        }
    }
    free(rig->heard);
}

/* One turn. */
static inline void rig_turn(rig_t *rig)
{
    hk_status_t status = hk_loop_turn(rig->loop);
    rig->ended = status == HK_OK;
    HK_CHECK(status != HK_SYSTEM);
}

/* Turns, and answers, until there is nothing more to do. */
static inline void rig_run(rig_t *rig)
{
    bool asked = true;
    for (int turns = 0; asked && !rig->ended; turns++) {
        hk_ask_t *ask;
        do {
            HK_CHECK(turns++ < 10000);
            rig_turn(rig);
        } while (!rig->calls.quiet && !rig->ended);
        asked = false;
        while (!rig->ended && hk_loop_next(rig->loop, 0, &ask) == HK_OK) {
            rig_answer(rig, ask);
            asked = true;
        }
    }
}

static inline void rig_pass(rig_t *rig, int64_t ns)
{
    atomic_fetch_add(&rig->calls.now, ns);
    atomic_fetch_add(&rig->calls.wall, ns);
    rig_run(rig);
}

static inline hk_loop_stats_t rig_stats(rig_t *rig)
{
    hk_loop_stats_t stats;
    hk_loop_read_stats(rig->loop, &stats);
    return stats;
}

static inline hk_hub_stats_t rig_hub_stats(rig_t *rig)
{
    hk_hub_stats_t stats;
    hk_hub_read_stats(rig->hub, &stats);
    return stats;
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

static inline int rig_keep(rig_t *rig, int fd)
{
    HK_CHECK(fd >= 0);
    HK_CHECK(rig->client_count < MOST_CLIENTS);
    rig->clients[rig->client_count++] = fd;
    return fd;
}

static inline void rig_close(rig_t *rig, int client)
{
    for (size_t i = 0; i < rig->client_count; i++) {
        if (rig->clients[i] == client) {
            rig->clients[i] = -1;
        }
    }
    close(client);
}

/* Two ends of a Unix socket: the client's, which does not wait, and the loop's. */
static inline void rig_pair(rig_t *rig, int *client, int *server)
{
    int ends[2];
    HK_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
    *client = rig_keep(rig, ends[0]);
    *server = ends[1];
}

static inline int rig_client_with(rig_t *rig, hk_bytes_t bytes)
{
    int client, server;
    rig_pair(rig, &client, &server);
    hk_status_t status = hk_loop_adopt(rig->loop, server, bytes);
    if (status != HK_OK) {
        HK_CHECK(status == HK_NO_MEMORY && hk_test_failed());
        close(server);
    }
    return client;
}

static inline int rig_client(rig_t *rig)
{
    return rig_client_with(rig, HK_BYTES(""));
}

/* Listens on a port of the loopback; rig->port is which. */
static inline void rig_listen(rig_t *rig)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HK_CHECK(fd >= 0);
    HK_CHECK(bind(fd, (struct sockaddr *)&address, length) == 0);
    HK_CHECK(listen(fd, 128) == 0);
    HK_CHECK(getsockname(fd, (struct sockaddr *)&address, &length) == 0);
    rig->port = ntohs(address.sin_port);
    hk_status_t status = hk_loop_listen(rig->loop, fd, true);
    if (status != HK_OK) {
        HK_CHECK(status == HK_NO_MEMORY && hk_test_failed());
        close(fd);
    }
}

/* A client; false: nobody listens. */
static inline bool rig_try_connect(rig_t *rig, int *client)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)rig->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *client = rig_keep(rig, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    return connect(*client, (struct sockaddr *)&address, sizeof(address)) == 0;
}

static inline int rig_connect(rig_t *rig)
{
    int client;
    HK_CHECK(rig_try_connect(rig, &client));
    return client;
}

static inline void rig_write(int client, hk_bytes_t bytes)
{
    ssize_t sent = send(client, bytes.at, bytes.length, MSG_NOSIGNAL | MSG_DONTWAIT);
    HK_CHECK(sent == (ssize_t)bytes.length || (sent < 0 && (errno == EPIPE || errno == ECONNRESET)));
}

static inline void rig_say_bytes(rig_t *rig, int client, hk_bytes_t bytes)
{
    rig_write(client, bytes);
    rig_run(rig);
}

static inline void rig_say(rig_t *rig, int client, const char *text)
{
    rig_say_bytes(rig, client, hk_test_text(text));
}

/* What can be received at once. `ended`: whether the loop has closed it; may be NULL. */
static inline hk_bytes_t rig_receive(rig_t *rig, int client, bool *ended)
{
    size_t length = 0;
    ssize_t got = 0;
    if (rig->heard == NULL) {
        rig->heard = malloc(HEARD_BYTES);
        HK_CHECK(rig->heard != NULL);
    }
    while (length < HEARD_BYTES && (got = recv(client, rig->heard + length, HEARD_BYTES - length, MSG_DONTWAIT)) > 0) {
        length += (size_t)got;
    }
    if (ended != NULL) {
        *ended = got == 0 || (got < 0 && errno != EAGAIN);
    }
    return hk_bytes(rig->heard, length);
}

/* What the client has received, after everything was done that can be done. */
static inline hk_bytes_t rig_heard(rig_t *rig, int client)
{
    rig_run(rig);
    return rig_receive(rig, client, NULL);
}

static inline bool rig_is_closed(rig_t *rig, int client)
{
    bool ended;
    rig_run(rig);
    (void)rig_receive(rig, client, &ended);
    return ended;
}

/* TCP takes its time, even here: until so many bytes have come, or the end. */
static inline hk_bytes_t rig_await(rig_t *rig, int client, size_t count)
{
    char *all = malloc(HEARD_BYTES);
    size_t length = 0;
    bool ended = false;
    HK_CHECK(all != NULL);
    for (int waited = 0; length < count && !ended; waited++) {
        HK_CHECK(waited < PATIENCE_MS);
        rig_run(rig);
        hk_bytes_t got = rig_receive(rig, client, &ended);
        memcpy(all + length, got.at, got.length);
        length += got.length;
        if (got.length == 0 && !ended) {
            poll(NULL, 0, 1);
        }
    }
    memcpy(rig->heard, all, length);
    free(all);
    return hk_bytes(rig->heard, length);
}

/* Until a condition holds, which it may not do at once where TCP is in between. */
#define RIG_UNTIL(rig, condition)                                                                                      \
    for (int waited_ = 0; rig_run(rig), !(condition); waited_++, poll(NULL, 0, 1))                                     \
    HK_CHECK(waited_ < PATIENCE_MS)

/* --- subscribing and publishing ----------------------------------------------------------------------------------- */

/* A client that is a stream of "/a" (or what the query says) already, and has heard how it begins. */
static inline int rig_subscribe(rig_t *rig, const char *query)
{
    char text[512];
    int client = rig_client(rig);
    snprintf(text, sizeof(text), "GET " HUB "?%s HTTP/1.1" HELLO, query);
    rig_say(rig, client, text);
    HK_CHECK_BYTES(OPENING, rig_heard(rig, client));
    return client;
}

/* As Ruby would, elsewhere. */
static inline hk_status_t rig_try_publish(rig_t *rig, const char *topic, hk_bytes_t data)
{
    hk_topic_t *found;
    hk_lock_take(&rig->lock);
    hk_status_t status = hk_topics_find(hk_hub_topics(rig->hub), hk_test_text(topic), &found);
    if (status == HK_OK) {
        hk_log_update_t update = {
            .topics = &found, .topic_count = 1, .data = data, .retry_ms = -1, .id = HK_BYTES("x")};
        status = hk_hub_publish(rig->hub, &update, atomic_load(&rig->calls.now), NULL);
    }
    hk_lock_give(&rig->lock);
    hk_loop_wake(rig->loop);
    return status;
}

static inline void rig_publish(rig_t *rig, const char *topic, const char *data)
{
    HK_CHECK_OK(rig_try_publish(rig, topic, hk_test_text(data)));
}

#define EVENT(data) "id: x\ndata: " data "\n\n"

#endif
