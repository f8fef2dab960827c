#include "subscribers.h"

#include "cable.h"
#include "clock.h"
#include "inflated.h"
#include "loop.h"
#include "marker.h"
#include "net.h"
#include "response.h"
#include "subscribe_request.h"
#include "template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 65536, HEAD_BYTES = 4095, UPGRADED = 101 };

/*  CONNECTING ── request sent ─► WAITING ── head with 200 ──────────────────► READY, or STALLED
 *       │                           └── 101, welcome ─► ASKED ── confirmed ─► READY
 *       └────────── error, end, other status, refused ────────────────────────┴──► DEAD  */
enum state { CONNECTING, WAITING, ASKED, READY, STALLED, DEAD };

/* How many messages and, so that one twice does not make up for another lost, the sum of their fingerprints. */
struct received {
    long count;
    uint64_t sum;
};

struct topic {
    long live; /* streams that are read */
    struct received expected;
};

struct subscriber {
    struct connection connection; /* first: the loop hands it back */
    enum state state;
    int index, topic;
    struct received received;
    struct inflated *inflated; /* with --gzip, once READY */
    char *head; /* until READY: what has come, the answer's head first */
    struct marker_tail tail;
};

struct subscribers_tally subscribers_tally;

static const struct options *options;
static struct subscriber *all;
static struct template command; /* of Action Cable */
static struct topic *topics;
static uint32_t first_counted;
static int64_t read_ns;

static void add(struct received *received, uint32_t message)
{
    uint64_t print = (message + 1ULL) * 0x9e3779b97f4a7c15ULL;
    received->sum += print ^ print >> 29;
    received->count++;
}

static void forget_head(struct subscriber *s)
{
    free(s->head);
    s->head = NULL;
}

static void die(struct subscriber *s)
{
    if (s->state == READY || s->state == STALLED) subscribers_tally.ready--;
    if (s->state == READY) topics[s->topic].live--;
    if (s->state == STALLED) subscribers_tally.stalled--;
    s->state = DEAD;
    subscribers_tally.dead++;
    forget_head(s);
    inflated_free(s->inflated);
    s->inflated = NULL;
    close(s->connection.fd);
}

/* One of each `subscribers / stalled`, so that they are spread over whatever order the server has. */
static bool is_to_stall(int index)
{
    long long i = index, stalled = options->stalled, among = options->subscribers;
    return (i + 1) * stalled / among > i * stalled / among;
}

/* False when the connection does not stand yet. */
static bool request_stream(struct subscriber *s)
{
    char request[SUBSCRIBE_REQUEST_BYTES];
    size_t length = subscribe_request_write(request, s->index, s->topic, is_to_stall(s->index));
    ssize_t sent = send(s->connection.fd, request, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) return false;
    s->state = WAITING;
    subscribers_tally.bytes_out += (int64_t)length;
    if (sent < 0 || net_send_all(s->connection.fd, request + sent, length - (size_t)sent)) die(s);
    return true;
}

static void stand(struct subscriber *s)
{
    forget_head(s);
    subscribers_tally.ready++;
    if (is_to_stall(s->index)) {
        s->state = STALLED;
        subscribers_tally.stalled++;
        loop_change(&s->connection, 0);
    } else {
        s->state = READY;
        topics[s->topic].live++;
    }
}

static void refuse(struct subscriber *s)
{
    if (subscribers_tally.dead == 0) fprintf(stderr, "subscriber refused: %.300s\n", s->head);
    die(s);
}

static void send_frame(struct subscriber *s, const char *text, size_t length)
{
    char *frame = malloc(length + CABLE_FRAME_BYTES);
    if (!frame) exit(2);
    size_t bytes = cable_frame(frame, text, length);
    subscribers_tally.bytes_out += (int64_t)bytes;
    if (net_send_all(s->connection.fd, frame, bytes)) die(s);
    free(frame);
}

static void on_words(struct subscriber *s)
{
    char text[OPTIONS_TEXT];
    enum cable_word word = cable_last_word(s->head);
    if (word == CABLE_REFUSED) {
        refuse(s);
    } else if (word == CABLE_CONFIRMED) {
        stand(s);
    } else if (word == CABLE_WELCOME && s->state == WAITING) {
        s->state = ASKED;
        send_frame(s, text, (size_t)(template_fill(&command, s->topic, s->index, text) - text));
    }
}

/* A frame of a WebSocket has bytes of 0 in its head: they would end the text too early. */
static void keep(struct subscriber *s, const char *bytes, size_t length)
{
    if (!s->head && !(s->head = calloc(1, HEAD_BYTES + 1))) exit(2);
    size_t used = strlen(s->head);
    for (size_t i = 0; i < length && used < HEAD_BYTES; i++) s->head[used++] = bytes[i] ? bytes[i] : ' ';
}

static bool is_coded_as_asked(const char *head)
{
    const char *field = strcasestr(head, "\r\ncontent-encoding: gzip\r\n"), *end = strstr(head, "\r\n\r\n");
    return !options->gzip || (field && field < end);
}

/* How many of these bytes belong to the head. */
static size_t on_head(struct subscriber *s, const char *bytes, size_t length)
{
    size_t before = s->head ? strlen(s->head) : 0;
    keep(s, bytes, length);
    int status = response_status(s->head);
    const char *end = strstr(s->head, "\r\n\r\n");
    size_t whole = end ? (size_t)(end + 4 - s->head) : before + length;
    size_t taken = whole > before ? whole - before : 0; /* what a WebSocket says before it stands comes later */
    if (options->cable && status == UPGRADED) on_words(s);
    else if (!options->cable && status == 200 && is_coded_as_asked(s->head)) stand(s);
    else if (status) refuse(s);
    return taken;
}

static void on_message(void *context, int64_t sent_ns, uint32_t message)
{
    struct subscriber *s = context;
    if (message < first_counted) return;
    add(&s->received, message);
    subscribers_tally.delivered++;
    subscribers_tally.last_ns = read_ns;
    if ((int)message % options->message_topics != s->topic) subscribers_tally.misdirected++;
    samples_add(&subscribers_tally.latency, read_ns - sent_ns);
}

static void scan(void *context, const char *bytes, size_t length)
{
    struct subscriber *s = context;
    marker_scan(&s->tail, bytes, length, on_message, s);
}

static void on_stream(struct subscriber *s, const char *bytes, size_t length)
{
    if (!options->gzip) {
        scan(s, bytes, length);
        return;
    }
    if (!s->inflated && !(s->inflated = inflated_new())) exit(2);
    if (length > 0 && !inflated_read(s->inflated, bytes, length, scan, s)) die(s);
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
    size_t head = s->state == WAITING || s->state == ASKED ? on_head(s, bytes, (size_t)length) : 0;
    if (s->state == READY) on_stream(s, bytes + head, (size_t)length - head);
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct subscriber *s = (struct subscriber *)connection;
    switch (s->state) {
    case CONNECTING:
        if (net_dial_error(connection->fd)) die(s);
        else if (request_stream(s) && s->state == WAITING) loop_change(connection, EPOLLIN);
        break;
    case STALLED: die(s); break; /* only errors are told of it */
    case DEAD: break;
    default:
        if (events) on_readable(s);
    }
}

/* On loopback a connection mostly stands as soon as it is asked for. */
static void open_one(int index)
{
    struct subscriber *s = &all[index];
    s->index = index;
    s->topic = index % options->topics;
    int fd = net_dial(options->port, index, is_to_stall(index) ? options->receive_buffer : 0);
    s->connection = (struct connection){.fd = fd, .on_ready = on_ready};
    bool asked = request_stream(s);
    if (s->state != DEAD) loop_watch(&s->connection, asked ? EPOLLIN : EPOLLOUT);
}

static bool prepare(const struct options *given)
{
    options = given;
    subscribe_request_prepare(options);
    template_compile(&command, options->cable ? options->cable : "");
    if (command.most >= OPTIONS_TEXT) {
        fprintf(stderr, "load: the command is too long\n");
        exit(2);
    }
    all = calloc((size_t)options->subscribers + 1, sizeof *all);
    topics = calloc((size_t)options->topics, sizeof *topics);
    return all && topics;
}

bool subscribers_open(const struct options *given)
{
    if (!prepare(given)) return false;
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

long subscribers_expect(int message)
{
    struct topic *topic = &topics[message % options->message_topics];
    add(&topic->expected, (uint32_t)message);
    return topic->live;
}

bool subscribers_speak(int message, const char *text, size_t length)
{
    for (int i = 0; i < options->subscribers; i++) {
        struct subscriber *s = &all[(message + i) % options->subscribers];
        if (s->state != READY) continue;
        send_frame(s, text, length);
        return true;
    }
    return false;
}

long subscribers_wrong(void)
{
    long wrong = 0;
    for (int i = 0; i < options->subscribers; i++) {
        const struct received *got = &all[i].received, *due = &topics[all[i].topic].expected;
        if (all[i].state == READY && (got->count != due->count || got->sum != due->sum)) wrong++;
    }
    return wrong;
}

void subscribers_reset(int first_message)
{
    subscribers_tally.delivered = 0;
    subscribers_tally.misdirected = 0;
    subscribers_tally.bytes = subscribers_tally.bytes_out = 0;
    subscribers_tally.last_ns = clock_ns();
    samples_clear(&subscribers_tally.latency);
    first_counted = (uint32_t)first_message;
    for (int i = 0; i < options->subscribers; i++) all[i].received = (struct received){0};
    for (int i = 0; i < options->topics; i++) topics[i].expected = (struct received){0};
}
