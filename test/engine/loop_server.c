/* loop_server: a hub that permits everything, without Ruby; to measure the engine by itself, and to look at it with a
 * profiler or a sanitizer.
 *
 *     loop_server PORT [unix:PATH ...]
 *
 * In ext/hikyaku/engine:
 *
 *     make lib && cc -std=c11 -D_GNU_SOURCE -O2 -g -pthread $(printf -- "-I%s " */) -o /somewhere/loop_server \
 *       ../../../test/engine/loop_server.c ../../../tmp/engine/cc/plain/libhikyaku.a -lz
 *
 * It listens on 127.0.0.1 and serves /.well-known/mercure: whoever asks for topics gets them, whoever publishes may. What
 * Ruby would decide is decided by a thread here, once for each set of deciding values, as there. TERM and INT stop it.
 */
#include "hikyaku.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/un.h>
#include <unistd.h>

#define HUB "/.well-known/mercure"
#define SECOND INT64_C(1000000000)

enum { MOST_MATCHERS = 64, BACKLOG = 4096 };

#define STREAM_HEAD                                                                                                    \
    HK_BYTES("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache, no-store\r\n"             \
             "x-accel-buffering: no\r\nlink: <" HUB ">; rel=\"mercure\"\r\nconnection: close\r\n")
#define PUBLISH_HEAD HK_BYTES("HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\n")
#define REFUSAL HK_BYTES("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")

static hk_lock_t lock;
static hk_hub_t *hub;
static hk_gate_t *gate;
static hk_loop_t *loop;

static void must(hk_status_t status, const char *what)
{
    if (status != HK_OK) {
        fprintf(stderr, "loop_server: %s: %s (%s)\n", what, hk_status_text(status), strerror(errno));
        exit(1);
    }
}

/* --- deciding ----------------------------------------------------------------------------------------------------- */

static hk_matcher_t *matcher_of(hk_bytes_t pattern)
{
    hk_matcher_options_t options = {.type = HK_BYTES("exact"), .pattern = pattern, .kind = HK_MATCHER_EXACT};
    if (hk_bytes_equal(pattern, HK_BYTES("*"))) {
        options.kind = HK_MATCHER_ALL;
    }
    hk_matcher_t *matcher;
    must(hk_matcher_new(hk_alloc_default(), &options, &matcher), "a matcher");
    return matcher;
}

static bool names_matcher(hk_bytes_t name)
{
    return hk_bytes_equal(name, HK_BYTES("match")) || hk_bytes_equal(name, HK_BYTES("topic"));
}

/* Everything may be published, and what the query names is received. */
static hk_grant_t *decide(const hk_http1_request_t *head)
{
    hk_grant_subscription_t subscriptions[MOST_MATCHERS];
    char decoded[1024];
    size_t count = 0;
    hk_matcher_t *all = matcher_of(HK_BYTES("*"));
    hk_bytes_t rest = head->query, name, value;
    while (count < MOST_MATCHERS && hk_form_next(&rest, &name, &value)) {
        if (names_matcher(name) && value.length <= sizeof(decoded)) {
            hk_matcher_t *matcher = matcher_of(hk_bytes(decoded, hk_form_decode(value, decoded)));
            subscriptions[count++] = (hk_grant_subscription_t){.matcher = matcher};
        }
    }
    hk_grant_options_t options = {.subscriptions = subscriptions,
                                  .subscription_count = count,
                                  .reads = &all,
                                  .read_count = 1,
                                  .publishes = &all,
                                  .publish_count = 1,
                                  .expires_at = HK_NEVER};
    hk_grant_t *grant;
    must(hk_grant_new(hk_alloc_default(), &options, &grant), "a grant");
    for (size_t i = 0; i < count; i++) {
        hk_matcher_release(subscriptions[i].matcher);
    }
    hk_matcher_release(all);
    return grant;
}

/* Topics that the engine does not split by itself are said to be no URLs. */
static void add_topics(hk_bytes_t body)
{
    hk_bytes_t name, value;
    char decoded[1024];
    while (hk_form_next(&body, &name, &value)) {
        if (hk_bytes_equal(name, HK_BYTES("topic")) && value.length <= sizeof(decoded)) {
            hk_topic_t *topic;
            must(hk_topics_add(hk_hub_topics(hub), hk_bytes(decoded, hk_form_decode(value, decoded)), NULL, false,
                               &topic),
                 "a topic");
        }
    }
}

static bool serve(const hk_ask_t *ask, hk_gate_answer_t *answer)
{
    bool publishes = hk_bytes_equal(hk_ask_head(ask)->method, HK_BYTES("POST"));
    hk_decision_t decision = {.key = hk_ask_key(ask),
                              .epoch = hk_ask_epoch(ask),
                              .grant = decide(hk_ask_head(ask)),
                              .head = publishes ? PUBLISH_HEAD : STREAM_HEAD};
    hk_gate_request_t request = {.head = hk_ask_head(ask),
                                 .body = hk_ask_body(ask),
                                 .body_is_whole = !hk_ask_body_too_large(ask),
                                 .peer = hk_ask_peer(ask),
                                 .now = hk_sys_default()->monotonic(NULL),
                                 .wall = hk_sys_default()->wall(NULL)};
    must(hk_gate_remember(gate, &decision), "a decision");
    hk_grant_release(decision.grant);
    hk_status_t status = hk_gate_serve(gate, &request, answer);
    if (status == HK_UNKNOWN && publishes) {
        add_topics(request.body);
        status = hk_gate_serve(gate, &request, answer);
    }
    return status == HK_OK;
}

static void answer_one(hk_ask_t *ask)
{
    hk_gate_answer_t answer;
    hk_lock_take(&lock);
    bool served = serve(ask, &answer);
    uint64_t subscriber = served && answer.kind == HK_GATE_SUBSCRIBED ? hk_subscriber_serial(answer.subscriber) : 0;
    hk_buf_t head;
    hk_buf_init(&head, hk_alloc_default());
    must(hk_buf_append(&head, served ? answer.head : REFUSAL), "an answer");
    if (served && answer.body.length > 0) {
        must(hk_buf_append(&head, answer.body), "an answer");
    }
    hk_lock_give(&lock);
    if (subscriber != 0) {
        (void)hk_loop_answer_stream(loop, ask, hk_buf_bytes(&head), subscriber);
    } else {
        (void)hk_loop_answer(loop, ask, hk_buf_bytes(&head), HK_BYTES(""), false);
    }
    hk_buf_release(&head);
    hk_loop_wake(loop);
}

static void *decide_all(void *unused)
{
    hk_ask_t *ask;
    while (hk_loop_next(loop, -1, &ask) == HK_OK) {
        answer_one(ask);
    }
    return unused;
}

/* --- setting up --------------------------------------------------------------------------------------------------- */

static void make_hub(void)
{
    hk_hub_options_t options = {.history_bytes = 64 << 20,
                                .heartbeat = 20 * SECOND,
                                .hub_url = {.parts = {[HK_URL_PROTOCOL] = HK_BYTES("http"),
                                                      [HK_URL_HOSTNAME] = HK_BYTES("localhost"),
                                                      [HK_URL_PATHNAME] = HK_BYTES(HUB)},
                                            .origin = HK_BYTES("http://localhost")},
                                .comparable_path = HK_BYTES(HUB),
                                .topic_table_bytes = 16 << 20,
                                .log_key = "not a secret....",
                                .secret = {1, 2}};
    static const hk_bytes_t cookie = {"mercureAuthorization", 20};
    hk_gate_options_t gate_options = {.path = HK_BYTES(HUB),
                                      .cookie_names = &cookie,
                                      .cookie_name_count = 1,
                                      .max_table_bytes = 64 << 20,
                                      .max_topics = 1000,
                                      .max_topic_bytes = 1000,
                                      .max_id_bytes = 255,
                                      .max_type_bytes = 255,
                                      .max_body_bytes = 1 << 20,
                                      .secret = {3, 4}};
    must(hk_lock_init(&lock), "the lock");
    must(hk_hub_new(hk_alloc_default(), &options, &hub), "the hub");
    must(hk_gate_new(hk_alloc_default(), &gate_options, hub, &gate), "the gate");
}

static void make_loop(void)
{
    hk_loop_options_t options = {.hub = hub,
                                 .gate = gate,
                                 .lock = &lock,
                                 .max_body_bytes = 1 << 20,
                                 .send_buffer = 64 * 1024,
                                 .head_timeout = 10 * SECOND,
                                 .idle_timeout = 20 * SECOND,
                                 .write_timeout = 30 * SECOND,
                                 .drain_timeout = 2 * SECOND};
    must(hk_loop_new(hk_alloc_default(), &options, &loop), "the loop");
}

static void listen_on(int family, const void *address, socklen_t length)
{
    static const int one = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (fd < 0 || bind(fd, address, length) < 0 || listen(fd, BACKLOG) < 0) {
        must(HK_SYSTEM, "listening");
    }
    must(hk_loop_listen(loop, fd, family == AF_INET), "listening");
}

static void listen_to(const char *where)
{
    if (strncmp(where, "unix:", 5) == 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        snprintf(address.sun_path, sizeof(address.sun_path), "%s", where + 5);
        listen_on(AF_UNIX, &address, sizeof(address));
    } else {
        struct sockaddr_in address = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(where)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        listen_on(AF_INET, &address, sizeof(address));
    }
}

static void stop(int signal)
{
    (void)signal;
    hk_loop_stop(loop);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: loop_server PORT [unix:PATH ...]\n");
        return 2;
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    make_hub();
    make_loop();
    signal(SIGTERM, stop);
    signal(SIGINT, stop);
    for (int i = 1; i < argc; i++) {
        listen_to(argv[i]);
    }
    pthread_t decider;
    if (pthread_create(&decider, NULL, decide_all, NULL) != 0) {
        must(HK_SYSTEM, "a thread");
    }
    hk_status_t status;
    while ((status = hk_loop_run(loop)) == HK_AGAIN) {
    }
    pthread_join(decider, NULL);
    hk_loop_free(loop);
    hk_gate_free(gate);
    hk_hub_free(hub);
    hk_lock_release(&lock);
    return status == HK_OK ? 0 : 1;
}
