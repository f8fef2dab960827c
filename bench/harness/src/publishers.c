#include "publishers.h"

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

enum { READ_BYTES = 65536, TEXT_BYTES = 2048, REQUEST_BYTES = 80000, FIRST_INDEX = 50000 };

struct publisher {
    struct connection connection; /* first: the loop hands it back */
    bool busy;
    int64_t sent_ns;
    struct response response;
};

struct publishers_tally publishers_tally;

static const struct options *options;
static struct publisher *all;

static void on_ready(struct connection *connection, uint32_t events);

static void dial(struct publisher *p)
{
    /* From an address of their own: they do not count with the subscribers. */
    int fd = net_dial(options->port, FIRST_INDEX + (int)(p - all));
    p->connection = (struct connection){.fd = fd, .on_ready = on_ready};
    loop_watch(&p->connection, EPOLLIN);
}

static void dial_again(struct publisher *p)
{
    close(p->connection.fd);
    dial(p);
}

static void on_answer(struct publisher *p)
{
    int status = response_status(&p->response);
    if (status >= 200 && status < 300) {
        publishers_tally.accepted++;
    } else {
        if (publishers_tally.refused == 0) fprintf(stderr, "publisher refused: %.500s\n", p->response.bytes);
        publishers_tally.refused++;
    }
    p->busy = false;
    publishers_tally.last_ns = clock_ns();
    samples_add(&publishers_tally.answer, publishers_tally.last_ns - p->sent_ns);
    if (response_closes(&p->response)) dial_again(p); /* servers do so after some hundred requests */
}

static void on_ready(struct connection *connection, uint32_t events)
{
    (void)events;
    struct publisher *p = (struct publisher *)connection;
    static char bytes[READ_BYTES];
    ssize_t length = read(connection->fd, bytes, sizeof bytes);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0 && !p->busy) {
        dial_again(p);
        return;
    }
    if (length <= 0) {
        fprintf(stderr, "the server closed the connection of a publisher\n");
        exit(3);
    }
    response_feed(&p->response, bytes, (size_t)length);
    if (response_complete(&p->response)) on_answer(p);
}

void publishers_open(const struct options *given)
{
    options = given;
    all = calloc((size_t)options->publishers, sizeof *all);
    if (!all) exit(2);
    for (int i = 0; i < options->publishers; i++) dial(&all[i]);
}

static int write_body(char *out, size_t size, int message, int64_t sent_ns)
{
    options_expand(options, options->publish_prefix, message, out, size);
    size_t prefix = strlen(out);
    marker_write(out + prefix, sent_ns, (uint32_t)message);
    memset(out + prefix + MARKER_BYTES, 'x', (size_t)options->size - MARKER_BYTES);
    return (int)prefix + options->size;
}

static size_t write_request(char *out, int message, int64_t sent_ns)
{
    char path[TEXT_BYTES], body[REQUEST_BYTES / 2 + TEXT_BYTES + OPTIONS_TEXT];
    options_expand(options, options->publish_path, message, path, sizeof path);
    bool has_body = strcmp(options->method, "GET") != 0;
    int length = has_body ? write_body(body, TEXT_BYTES, message, sent_ns) : 0;
    int head = snprintf(out, REQUEST_BYTES - (size_t)length,
                        "%s %s HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n%sContent-Length: %d\r\n%s\r\n", options->method,
                        path, options->port,
                        has_body ? "Content-Type: application/x-www-form-urlencoded\r\n" : "", length,
                        options->publish_headers);
    memcpy(out + head, body, (size_t)length);
    return (size_t)(head + length);
}

bool publishers_send(int message)
{
    for (int i = 0; i < options->publishers; i++) {
        struct publisher *p = &all[i];
        if (p->busy) continue;
        static char request[REQUEST_BYTES];
        p->busy = true;
        p->sent_ns = clock_ns();
        response_clear(&p->response);
        size_t length = write_request(request, message, p->sent_ns);
        publishers_tally.sent++;
        if (net_send_all(p->connection.fd, request, length)) {
            fprintf(stderr, "a publisher lost its connection\n");
            exit(3);
        }
        return true;
    }
    return false;
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
