/* getter: N clients that ask for one address again and again, each for the next as soon as it has the last, over
 * connections that are kept; and what that cost the server.
 *
 *     --warmup seconds, not measured ─► --seconds, measured ─► one JSON object
 *
 * Every answer must be like the first: its status 200, its coding the one that is expected, its body the same bytes. */
#include "answer.h"
#include "clock.h"
#include "flags.h"
#include "loop.h"
#include "net.h"
#include "process.h"
#include "samples.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIDS = 32, REQUEST_BYTES = 8192, READ_BYTES = 262144, PATIENCE_S = 60, P90 = 90 };

struct getter_options {
    int port, clients;
    double seconds, warmup;
    const char *path, *coding;
    char headers[REQUEST_BYTES / 2];
    pid_t pids[PIDS];
    int pid_count;
};

struct client {
    struct connection connection; /* first: the loop hands it back */
    int64_t asked_ns;             /* 0 before the connection stands */
    struct answer answer;
};

static struct {
    long responses, refused, wrong, connects;
    int64_t bytes;
    struct samples latency;
} tally;

static struct getter_options options = {
    .clients = 100, .seconds = 3, .warmup = 1, .path = "/", .coding = ""};
static struct client *all;
static char request[REQUEST_BYTES];
static size_t request_length;
static struct answer first; /* which all others must be like */

static void set_header(void *given, const char *line);
static void set_pid(void *given, const char *pid);

#define AT(member) offsetof(struct getter_options, member)

static const struct flag table[] = {
    {"port", FLAG_NUMBER, AT(port), "PORT", "of the server, on 127.0.0.1", NULL},
    {"path", FLAG_TEXT, AT(path), "PATH", "what is asked for (/)", NULL},
    {"header", FLAG_OWN, 0, "LINE", "of the request; repeatable", set_header},
    {"coding", FLAG_TEXT, AT(coding), "NAME", "that answers must have: gzip, br, zstd (none)", NULL},
    {"clients", FLAG_NUMBER, AT(clients), "N", "at the same time (100)", NULL},
    {"seconds", FLAG_REAL, AT(seconds), "N", "that are measured (3)", NULL},
    {"warmup", FLAG_REAL, AT(warmup), "N", "seconds before those (1)", NULL},
    {"pid", FLAG_OWN, 0, "PID", "a process of the server, for its CPU; repeatable", set_pid},
};

static const struct flags flags = {
    .program = "getter",
    .usage = "--port PORT [options]",
    .more = "Prints one JSON object on standard output, and on standard error what went wrong first.\n",
    .all = table,
    .count = sizeof table / sizeof *table,
};

static void set_header(void *given, const char *line)
{
    struct getter_options *o = given;
    size_t used = strlen(o->headers), room = sizeof o->headers - used;
    int length = snprintf(o->headers + used, room, "%s\r\n", line);
    if (length < 0 || (size_t)length >= room) flags_refuse(&flags, "headers are too long");
}

static void set_pid(void *given, const char *pid)
{
    struct getter_options *o = given;
    if (o->pid_count == PIDS) flags_refuse(&flags, "too many --pid");
    o->pids[o->pid_count++] = (pid_t)atol(pid);
}

static void prepare(int argc, char **argv)
{
    flags_parse(&flags, &options, argc, argv);
    if (options.port < 1 || options.port > 65535) flags_refuse(&flags, "--port must be 1 to 65535");
    if (options.clients < 1) flags_refuse(&flags, "--clients starts at 1");
    if (options.seconds <= 0 || options.warmup < 0) flags_refuse(&flags, "--seconds is above 0, --warmup not below");
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%s\r\n", options.path,
                          options.port, options.headers);
    if (length < 0 || (size_t)length >= sizeof request) flags_refuse(&flags, "the request is too long");
    request_length = (size_t)length;
    all = calloc((size_t)options.clients, sizeof *all);
    if (!all) exit(2);
}

static void on_ready(struct connection *connection, uint32_t events);

static void dial(struct client *c)
{
    int fd = net_dial(options.port, (int)(c - all), 0);
    net_send_at_once(fd);
    c->connection = (struct connection){.fd = fd, .on_ready = on_ready};
    c->asked_ns = 0;
    tally.connects++;
    answer_begin(&c->answer);
    loop_watch(&c->connection, EPOLLOUT);
}

static void dial_again(struct client *c)
{
    close(c->connection.fd);
    dial(c);
}

static void say_once(long before, const char *what, const struct answer *answer)
{
    if (before == 0)
        fprintf(stderr, "%s: status %d, coding \"%s\", %zu bytes of body\n", what, answer->status, answer->coding,
                answer->body_bytes);
}

/* Before anything was answered there is nothing that it could differ from. */
static bool is_like_first(const struct answer *answer)
{
    if (!first.status) first = *answer;
    return answer->body_bytes == first.body_bytes && answer->print == first.print;
}

static void count_answer(struct client *c)
{
    const struct answer *answer = &c->answer;
    tally.bytes += (int64_t)answer->bytes;
    samples_add(&tally.latency, clock_ns() - c->asked_ns);
    if (answer->status != 200) {
        say_once(tally.refused++, "refused", answer);
    } else if (strcmp(answer->coding, options.coding) != 0 || !is_like_first(answer)) {
        say_once(tally.wrong++, "not what was asked for", answer);
    } else {
        tally.responses++;
    }
}

static void ask(struct client *c)
{
    c->asked_ns = clock_ns();
    answer_begin(&c->answer);
    if (net_send_all(c->connection.fd, request, request_length)) dial_again(c);
}

/* A connection that ends before an answer has begun was closed by a server that had had enough of it: that happens. */
static void on_end(struct client *c)
{
    if (c->answer.bytes > 0) say_once(tally.refused++, "an answer is cut off", &c->answer);
    dial_again(c);
}

static void on_readable(struct client *c)
{
    static char bytes[READ_BYTES];
    ssize_t length = read(c->connection.fd, bytes, sizeof bytes);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        on_end(c);
        return;
    }
    size_t taken = answer_take(&c->answer, bytes, (size_t)length);
    if (c->answer.state == ANSWER_BROKEN || taken < (size_t)length) {
        say_once(tally.refused++, "this is no answer", &c->answer);
        dial_again(c);
    } else if (c->answer.state == ANSWER_DONE) {
        count_answer(c);
        if (c->answer.closes) dial_again(c);
        else ask(c);
    }
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct client *c = (struct client *)connection;
    (void)events;
    if (c->asked_ns) {
        on_readable(c);
    } else if (net_dial_error(connection->fd)) {
        fprintf(stderr, "the server does not accept connections\n");
        exit(3);
    } else {
        loop_change(connection, EPOLLIN);
        ask(c);
    }
}

/* What is under way in the end is not counted. Returns how long it was. */
static double run_for(double seconds)
{
    int64_t start = clock_ns(), end = start + (int64_t)(seconds * 1e9);
    while (clock_ns() < end) loop_run_once(10);
    return (double)(clock_ns() - start) / 1e9;
}

/* The first answer stays what the others must be like. */
static void forget_warmup(void)
{
    tally.responses = tally.connects = 0;
    tally.bytes = 0;
    samples_clear(&tally.latency);
}

static struct usage usage_now(void)
{
    return process_usage(options.pids, options.pid_count);
}

static double per(double amount, double count)
{
    return count > 0 ? amount / count : 0;
}

static void print(struct usage before, struct usage after, double seconds)
{
    double count = (double)tally.responses;
    double cpu = (double)(after.cpu_ns - before.cpu_ns), own = (double)(after.own_ns - before.own_ns);
    printf("{\"clients\": %d, \"responses\": %ld, \"refused\": %ld, \"wrong\": %ld, \"connects\": %ld, ",
           options.clients, tally.responses, tally.refused, tally.wrong, tally.connects);
    printf("\"seconds\": %.4f, \"per_second\": %.4f, \"kb_per_second\": %.4f, ", seconds, count / seconds,
           (double)tally.bytes / 1024 / seconds);
    printf("\"body_bytes\": %zu, \"bytes_each\": %.4f, \"cpu_us_each\": %.4f, ", first.body_bytes,
           per((double)tally.bytes, count), per(cpu / 1e3, count));
    printf("\"server_busy\": %.4f, \"load_busy\": %.4f, \"p90\": %.4f, \"latency_ms\": ", cpu / 1e9 / seconds,
           own / 1e9 / seconds, samples_percentile_ms(&tally.latency, P90));
    samples_print_json(&tally.latency, stdout);
    printf("}\n");
}

int main(int argc, char **argv)
{
    prepare(argc, argv);
    alarm((unsigned)(options.seconds + options.warmup) + PATIENCE_S);
    net_raise_file_limit();
    loop_open();
    for (int i = 0; i < options.clients; i++) dial(&all[i]);

    run_for(options.warmup);
    forget_warmup();
    struct usage before = usage_now();
    double seconds = run_for(options.seconds);
    struct usage after = usage_now();
    print(before, after, seconds);
    return tally.responses > 0 && tally.refused == 0 && tally.wrong == 0 ? 0 : 1;
}
