#include "subscribers.h"

#include "clock.h"
#include "loop.h"
#include "marker.h"
#include "net.h"
#include "response.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { READ_BYTES = 65536, REQUEST_BYTES = 16384, PATH_BYTES = 2048 };

/*  CONNECTING ── writable ─► WAITING ── head with 200 ─► READY
 *       └────────── error, end, other status ──────────────┴──► DEAD  */
enum state { CONNECTING, WAITING, READY, DEAD };

struct subscriber {
    struct connection connection; /* first: the loop hands it back */
    enum state state;
    int topic;
    struct response response;
    struct marker_tail tail;
};

struct subscribers_tally subscribers_tally;

static const struct options *options;
static struct subscriber *all;
static long *on_topic; /* live streams on each topic */
static uint32_t first_counted;
static int64_t read_ns;

static void die(struct subscriber *s)
{
    if (s->state == READY) {
        subscribers_tally.ready--;
        on_topic[s->topic]--;
    }
    s->state = DEAD;
    subscribers_tally.dead++;
    close(s->connection.fd);
}

static void request_stream(struct subscriber *s)
{
    char path[PATH_BYTES], request[REQUEST_BYTES];
    options_expand(options, options->subscribe_path, s->topic, path, sizeof path);
    int length = snprintf(request, sizeof request,
                          "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nAccept: text/event-stream\r\n%s\r\n", path,
                          options->port, options->subscribe_headers);
    s->state = WAITING;
    loop_change(&s->connection, EPOLLIN);
    if (net_send_all(s->connection.fd, request, (size_t)length)) die(s);
}

static void on_head(struct subscriber *s)
{
    int status = response_status(&s->response);
    if (status == 200) {
        s->state = READY;
        subscribers_tally.ready++;
        on_topic[s->topic]++;
    } else if (status) {
        if (subscribers_tally.dead == 0) fprintf(stderr, "subscriber refused: %.300s\n", s->response.bytes);
        die(s);
    }
}

static void on_message(void *context, int64_t sent_ns, uint32_t message)
{
    const struct subscriber *s = context;
    if (message < first_counted) return;
    subscribers_tally.delivered++;
    subscribers_tally.last_ns = read_ns;
    if ((int)message % options->topics != s->topic) subscribers_tally.misdirected++;
    samples_add(&subscribers_tally.latency, read_ns - sent_ns);
}

static void on_readable(struct subscriber *s)
{
    static char bytes[READ_BYTES];
    ssize_t length = read(s->connection.fd, bytes, sizeof bytes);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        die(s);
        return;
    }
    read_ns = clock_ns();
    subscribers_tally.bytes += length;
    if (s->state == WAITING) {
        response_feed(&s->response, bytes, (size_t)length);
        on_head(s);
    }
    if (s->state == READY) marker_scan(&s->tail, bytes, (size_t)length, on_message, s);
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct subscriber *s = (struct subscriber *)connection;
    if (s->state == CONNECTING) {
        if (net_dial_error(connection->fd)) die(s);
        else request_stream(s);
    } else if (s->state != DEAD && events) {
        on_readable(s);
    }
}

static void open_one(int index)
{
    struct subscriber *s = &all[index];
    s->topic = index % options->topics;
    s->connection = (struct connection){.fd = net_dial(options->port, index), .on_ready = on_ready};
    loop_watch(&s->connection, EPOLLOUT);
}

bool subscribers_open(const struct options *given)
{
    options = given;
    all = calloc((size_t)options->subscribers + 1, sizeof *all);
    on_topic = calloc((size_t)options->topics, sizeof *on_topic);
    if (!all || !on_topic) return false;

    const struct subscribers_tally *tally = &subscribers_tally;
    int64_t deadline = clock_ns() + options->timeout_s * 1000000000LL;
    int opened = 0;
    while (tally->ready + tally->dead < options->subscribers) {
        if (clock_ns() > deadline) return false;
        while (opened < options->subscribers && opened - tally->ready - tally->dead < options->window)
            open_one(opened++);
        loop_run_once(100);
    }
    return true;
}

long subscribers_of_message(int message)
{
    return on_topic[message % options->topics];
}

void subscribers_reset(int first_message)
{
    subscribers_tally.delivered = 0;
    subscribers_tally.misdirected = 0;
    subscribers_tally.bytes = 0;
    subscribers_tally.last_ns = clock_ns();
    samples_clear(&subscribers_tally.latency);
    first_counted = (uint32_t)first_message;
}
