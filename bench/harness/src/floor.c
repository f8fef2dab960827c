/* floor: the least that a fan-out server can do. What a hub costs is said as a multiple of it.
 *
 *     floor PORT [wait]
 *
 * GET /   answers the head of an event stream and keeps the connection.
 * POST /  send()s what follows "data=" as an event with an id, once to each connection kept, then answers 200.
 *
 * With a number behind the slash, a topic's, a POST concerns those alone whose GET had the same.
 *
 * It parses no more than that, queues nothing and forgets what a full socket will not take. With "wait" it waits for
 * room instead: under a flood it must not gain by losing. */
#include "net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUBSCRIBERS = 20000, DESCRIPTORS = SUBSCRIBERS + 1024, BATCH = 512, REQUEST_BYTES = 65536 };

/* What has come of a publisher's next request. */
struct input {
    size_t length;
    char bytes[REQUEST_BYTES + 1];
};

static const char stream_head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static struct input *inputs[DESCRIPTORS];
/* Those without a topic are in an array. Those with one are chained: 0 ends a chain. */
static int subscribers[SUBSCRIBERS], count, poller;
static int first_of[SUBSCRIBERS], next_of[DESCRIPTORS];
static bool chained[DESCRIPTORS];
static unsigned long long published;
static bool waits;

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void unchain(int fd)
{
    if (!chained[fd]) return;
    chained[fd] = false;
    for (int topic = 0; topic < SUBSCRIBERS; topic++) {
        for (int *link = &first_of[topic]; *link != 0; link = &next_of[*link]) {
            if (*link != fd) continue;
            *link = next_of[fd];
            return;
        }
    }
}

static void forget(int fd)
{
    unchain(fd);
    for (int i = 0; i < count; i++) {
        if (subscribers[i] != fd) continue;
        subscribers[i] = subscribers[--count];
        break;
    }
    free(inputs[fd]);
    inputs[fd] = NULL;
    close(fd);
}

static void accept_all(int listener)
{
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= DESCRIPTORS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        watch(fd);
    }
}

/* The number in a request's target, or -1. */
static int topic_of(const char *request)
{
    const char *slash = strchr(request, '/');
    if (!slash || slash[1] < '0' || slash[1] > '9') return -1;
    return atoi(slash + 1) % SUBSCRIBERS;
}

static void subscribe(int fd, int topic)
{
    if (count == SUBSCRIBERS) {
        forget(fd);
        return;
    }
    send(fd, stream_head, sizeof stream_head - 1, MSG_NOSIGNAL);
    if (topic < 0) {
        subscribers[count++] = fd;
    } else {
        next_of[fd] = first_of[topic];
        first_of[topic] = fd;
        chained[fd] = true;
    }
}

static void deliver(int fd, const char *event, size_t length)
{
    if (waits) net_send_all(fd, event, length);
    else send(fd, event, length, MSG_NOSIGNAL);
}

static void publish(int fd, int topic, const char *body, const char *end)
{
    static char event[REQUEST_BYTES + 64];
    const char *data = memmem(body, (size_t)(end - body), "data=", 5);
    data = data ? data + 5 : body;
    size_t length = (size_t)snprintf(event, sizeof event, "id: #%011llx\ndata: %.*s\n\n", ++published,
                                     (int)(end - data), data);
    if (topic < 0) {
        for (int i = 0; i < count; i++) deliver(subscribers[i], event, length);
    } else {
        for (int to = first_of[topic]; to != 0; to = next_of[to]) deliver(to, event, length);
    }
    deliver(fd, answer, sizeof answer - 1);
}

/* Where the request ends that begins here, or NULL while it is not all there; where its body begins. */
static char *end_of_request(char *at, char *end, char **body)
{
    char *head_end = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
    if (!head_end) return NULL;
    char *field = memmem(at, (size_t)(head_end - at), "Content-Length: ", 16);
    size_t length = field ? strtoul(field + 16, NULL, 10) : 0;
    *body = head_end + 4;
    return length <= (size_t)(end - *body) ? *body + length : NULL;
}

/* Serves the requests that are there, and says how many bytes of them that were. */
static size_t serve_requests(int fd, char *bytes, size_t length)
{
    char *at = bytes, *end = bytes + length, *body, *next;
    for (; at < end && (next = end_of_request(at, end, &body)); at = next) {
        if (*at == 'G') subscribe(fd, topic_of(at));
        else publish(fd, topic_of(at), body, next);
    }
    return (size_t)(at - bytes);
}

static void serve(int fd)
{
    static struct input fresh;
    struct input *input = inputs[fd] ? inputs[fd] : &fresh;
    ssize_t got = read(fd, input->bytes + input->length, REQUEST_BYTES - input->length);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        forget(fd);
        return;
    }
    size_t length = input->length + (size_t)got, used = serve_requests(fd, input->bytes, length);
    if (used < length && input == &fresh) {
        input = inputs[fd] = malloc(sizeof *input);
        if (!input) exit(2);
        memcpy(input->bytes, fresh.bytes, length);
    }
    if (input == &fresh) return;
    input->length = length - used;
    memmove(input->bytes, input->bytes + used, input->length);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: floor PORT [wait]\n");
        return 2;
    }
    waits = argc == 3 && strcmp(argv[2], "wait") == 0;
    net_raise_file_limit();
    int listener = net_listen(atoi(argv[1]));
    poller = epoll_create1(EPOLL_CLOEXEC);
    watch(listener);
    for (;;) {
        struct epoll_event ready[BATCH];
        int n = epoll_wait(poller, ready, BATCH, -1);
        for (int i = 0; i < n; i++) {
            if (ready[i].data.fd == listener) accept_all(listener);
            else serve(ready[i].data.fd);
        }
    }
}
