#include "publishers.h"

#include "clock.h"
#include "loop.h"
#include "net.h"
#include "request.h"
#include "response.h"
#include "subscribers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 16384, BATCH_BYTES = 32768 };

struct publisher {
    struct connection connection; /* first: the loop hands it back */
    bool blocked;                 /* pipelining: the socket takes no more */
    long waiting;                 /* answers that are to come */
    int64_t sent_ns;
    char *out; /* requests that are not sent yet: out_at to out_length */
    size_t out_at, out_length;
    size_t skip; /* bytes of a long body that are to come and are not looked at */
    size_t in_length;
    char in[ANSWER_BYTES + 1];
};

struct publishers_tally publishers_tally;

static const struct options *options;
static struct publisher *all;
static int turn; /* whose turn it is to publish */

static void on_ready(struct connection *connection, uint32_t events);

static void give_up(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(3);
}

static void dial(struct publisher *p)
{
    int fd = net_dial(options->publish_port, NET_PUBLISHERS + (int)(p - all), 0);
    net_send_at_once(fd);
    p->connection = (struct connection){.fd = fd, .on_ready = on_ready};
    p->in_length = p->skip = 0;
    loop_watch(&p->connection, EPOLLIN);
}

static void dial_again(struct publisher *p)
{
    if (p->waiting) give_up("the server closed the connection of a publisher");
    close(p->connection.fd);
    dial(p);
}

static void count_answer(struct publisher *p, const struct response *response)
{
    if (response->status >= 200 && response->status < 300) {
        publishers_tally.accepted++;
    } else {
        if (publishers_tally.refused == 0) fprintf(stderr, "publisher refused: %.500s\n", p->in);
        publishers_tally.refused++;
    }
    p->waiting--;
    publishers_tally.last_ns = clock_ns();
    if (!options->pipeline) samples_add(&publishers_tally.answer, publishers_tally.last_ns - p->sent_ns);
}

static void drop(struct publisher *p, size_t count)
{
    p->skip = count > p->in_length ? count - p->in_length : 0;
    p->in_length -= count - p->skip;
    memmove(p->in, p->in + count - p->skip, p->in_length + 1);
}

/* Whether the server will go on with this connection. */
static bool read_answers(struct publisher *p)
{
    struct response response;
    while (p->waiting && p->in_length && response_read(p->in, p->in_length, &response)) {
        if (response.bytes > p->in_length && response.bytes <= ANSWER_BYTES) return true; /* the rest follows */
        count_answer(p, &response);
        drop(p, response.bytes);
        if (response.closes) return false; /* servers do so after some hundred requests */
    }
    if (p->in_length == ANSWER_BYTES) give_up("an answer is too long");
    return true;
}

static void on_readable(struct publisher *p)
{
    ssize_t length = read(p->connection.fd, p->in + p->in_length, ANSWER_BYTES - p->in_length);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        dial_again(p);
        return;
    }
    p->in_length += (size_t)length;
    p->in[p->in_length] = '\0';
    drop(p, p->skip);
    if (!read_answers(p)) dial_again(p);
}

static void send_waiting(struct publisher *p)
{
    while (p->out_at < p->out_length) {
        ssize_t sent = send(p->connection.fd, p->out + p->out_at, p->out_length - p->out_at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            if (!p->blocked) loop_change(&p->connection, EPOLLIN | EPOLLOUT);
            p->blocked = true;
            return;
        }
        if (sent < 0) give_up("a publisher lost its connection");
        p->out_at += (size_t)sent;
    }
    p->out_at = p->out_length = 0;
    if (p->blocked) loop_change(&p->connection, EPOLLIN);
    p->blocked = false;
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct publisher *p = (struct publisher *)connection;
    if (events & EPOLLOUT) send_waiting(p);
    if (events & ~(uint32_t)EPOLLOUT) on_readable(p);
}

void publishers_open(const struct options *given)
{
    options = given;
    request_prepare(options);
    if (options->speak) return;
    all = calloc((size_t)options->publishers, sizeof *all);
    if (!all) exit(2);
    for (int i = 0; i < options->publishers; i++) {
        all[i].out = malloc(BATCH_BYTES + request_most());
        if (!all[i].out) exit(2);
        dial(&all[i]);
    }
}

/* The next that is free, from the one whose turn it is. */
static struct publisher *find_free(void)
{
    for (int i = 0; i < options->publishers; i++) {
        struct publisher *p = &all[(turn + i) % options->publishers];
        if (options->pipeline ? p->blocked : p->waiting > 0) continue;
        turn = (int)(p - all);
        return p;
    }
    return NULL;
}

/* There is no answer to a command: it is accepted when it is sent. */
static bool speak(int message)
{
    static char *text;
    if (!text && !(text = malloc(request_most()))) exit(2);
    int64_t now = clock_ns();
    if (!subscribers_speak(message, text, request_write_body(text, message, now))) return false;
    publishers_tally.sent++;
    publishers_tally.accepted++;
    publishers_tally.last_ns = now;
    return true;
}

bool publishers_send(int message)
{
    if (options->speak) return speak(message);
    struct publisher *p = find_free();
    if (!p) return false;
    p->sent_ns = clock_ns();
    p->out_length += request_write(p->out + p->out_length, message, p->sent_ns);
    p->waiting++;
    publishers_tally.sent++;
    if (!options->pipeline || p->out_length >= BATCH_BYTES) {
        send_waiting(p);
        turn = (turn + 1) % options->publishers;
    }
    return true;
}

void publishers_flush(void)
{
    for (int i = 0; i < options->publishers; i++)
        if (all[i].out_length && !all[i].blocked) send_waiting(&all[i]);
}

long publishers_waiting(void)
{
    return publishers_tally.sent - publishers_tally.accepted - publishers_tally.refused;
}

void publishers_reset(void)
{
    publishers_tally.sent = publishers_tally.accepted = publishers_tally.refused = 0;
    publishers_tally.last_ns = clock_ns();
    samples_clear(&publishers_tally.answer);
}
