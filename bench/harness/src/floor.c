/* floor: the least that a fan-out server can do. What a hub costs is said as a multiple of it.
 *
 *     floor PORT
 *
 * GET anything   answers the head of an event stream and keeps the connection.
 * POST anything  send()s "data: BODY" once to each connection kept, then answers 200.
 *
 * It parses nothing, queues nothing and forgets what a full socket will not take. */
#include "net.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUBSCRIBERS = 20000, BATCH = 512, REQUEST_BYTES = 65536 };

static const char stream_head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static int subscribers[SUBSCRIBERS], count, poller;

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void accept_all(int listener)
{
    int fd, one = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        watch(fd);
    }
}

static void forget(int fd)
{
    for (int i = 0; i < count; i++) {
        if (subscribers[i] != fd) continue;
        subscribers[i] = subscribers[--count];
        break;
    }
    close(fd);
}

static void subscribe(int fd)
{
    if (count == SUBSCRIBERS) {
        close(fd);
        return;
    }
    send(fd, stream_head, sizeof stream_head - 1, MSG_NOSIGNAL);
    subscribers[count++] = fd;
}

static void publish(int fd, const char *body)
{
    static char event[REQUEST_BYTES + 16];
    size_t length = (size_t)snprintf(event, sizeof event, "data: %s\n\n", body);
    for (int i = 0; i < count; i++) send(subscribers[i], event, length, MSG_NOSIGNAL);
    send(fd, answer, sizeof answer - 1, MSG_NOSIGNAL);
}

/* A request comes in one piece: the load generator writes it so. */
static void serve(int fd)
{
    static char request[REQUEST_BYTES + 1];
    ssize_t length = read(fd, request, REQUEST_BYTES);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        forget(fd);
        return;
    }
    request[length] = '\0';
    const char *end = strstr(request, "\r\n\r\n");
    if (!end) return;
    if (request[0] == 'G') subscribe(fd);
    else publish(fd, end + 4);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: floor PORT\n");
        return 2;
    }
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
