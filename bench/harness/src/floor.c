/* floor: the least that a fan-out server can do. The cost of a hub is given as a multiple of it.
 *
 *     floor PORT [wait]
 *
 * GET /   answers the head of an event stream and keeps the connection.
 * POST /  send()s what follows "data=" as an event with an id, once to each connection kept, then answers 200.
 *
 * With a topic's number behind the slash, a POST reaches the connections whose GET had the same number.
 *
 * It parses no more than that, queues nothing and drops what a full socket does not take. With "wait" it waits for room:
 * losses must not make it faster under a flood. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SUBSCRIBERS = 20000, DESCRIPTORS = SUBSCRIBERS + 1024, BATCH = 512, REQUEST_BYTES = 65536 };

/* The incomplete request of a publisher. */
struct input {
    size_t length;
    char bytes[REQUEST_BYTES + 1];
};

static const char stream_head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
static const char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

static struct input *inputs[DESCRIPTORS];
/* The subscribers of a topic. The last list is that of subscribers without a topic. */
static struct list {
    int *fds, count, room;
} lists[SUBSCRIBERS + 1];
static struct list *list_of[DESCRIPTORS];
static int poller;
static unsigned long long published;
static bool waits;

static void watch(int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
}

static void forget(int fd)
{
    struct list *list = list_of[fd];
    for (int i = 0; list && i < list->count; i++)
        if (list->fds[i] == fd) list->fds[i] = list->fds[--list->count];
    list_of[fd] = NULL;
    free(inputs[fd]);
    inputs[fd] = NULL;
    close(fd);
}

static void accept_all(int listener)
{
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        if (fd >= DESCRIPTORS) {
            close(fd);
            continue;
        }
        net_no_delay(fd);
        watch(fd);
    }
}

/* The list of the number in a request's target. */
static struct list *list_in(const char *request)
{
    const char *slash = strchr(request, '/');
    return &lists[!slash || slash[1] < '0' || slash[1] > '9' ? SUBSCRIBERS : atoi(slash + 1) % SUBSCRIBERS];
}

static void subscribe(int fd, struct list *list)
{
    if (list->count == list->room) {
        list->room = list->room ? list->room * 2 : 4;
        list->fds = realloc(list->fds, (size_t)list->room * sizeof *list->fds);
        if (!list->fds) fail("subscribers");
    }
    list->fds[list->count++] = fd;
    list_of[fd] = list;
    send(fd, stream_head, sizeof stream_head - 1, MSG_NOSIGNAL);
}

static void deliver(int fd, const char *event, size_t length)
{
    if (waits) net_send_all(fd, event, length);
    else send(fd, event, length, MSG_NOSIGNAL);
}

static void publish(int fd, const struct list *list, const char *body, const char *end)
{
    static char event[REQUEST_BYTES + 64];
    const char *data = memmem(body, (size_t)(end - body), "data=", 5);
    data = data ? data + 5 : body;
    size_t length = (size_t)snprintf(event, sizeof event, "id: #%011llx\ndata: %.*s\n\n", ++published,
                                     (int)(end - data), data);
    for (int i = 0; i < list->count; i++) deliver(list->fds[i], event, length);
    deliver(fd, answer, sizeof answer - 1);
}

/* The end of the request that begins here, and its body; NULL while it is incomplete. */
static char *end_of_request(char *at, char *end, char **body)
{
    char *head_end = memmem(at, (size_t)(end - at), "\r\n\r\n", 4);
    if (!head_end) return NULL;
    char *field = memmem(at, (size_t)(head_end - at), "Content-Length: ", 16);
    size_t length = field ? strtoul(field + 16, NULL, 10) : 0;
    *body = head_end + 4;
    return length <= (size_t)(end - *body) ? *body + length : NULL;
}

/* Serves the complete requests, and returns the number of their bytes. */
static size_t serve_requests(int fd, char *bytes, size_t length)
{
    char *at = bytes, *end = bytes + length, *body, *next;
    for (; at < end && (next = end_of_request(at, end, &body)); at = next) {
        if (*at == 'G') subscribe(fd, list_in(at));
        else publish(fd, list_in(at), body, next);
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
    int listener = net_listen("127.0.0.1", atoi(argv[1]));
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
