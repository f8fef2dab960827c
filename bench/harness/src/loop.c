#include "loop.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

enum { BATCH = 1024 };

static int set;

static void control(int operation, struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(set, operation, connection->fd, &event)) {
        perror("epoll_ctl");
        exit(2);
    }
}

void loop_open(void)
{
    set = epoll_create1(EPOLL_CLOEXEC);
}

void loop_watch(struct connection *connection, uint32_t events)
{
    control(EPOLL_CTL_ADD, connection, events);
}

void loop_change(struct connection *connection, uint32_t events)
{
    control(EPOLL_CTL_MOD, connection, events);
}

void loop_run_once(int timeout_ms)
{
    struct epoll_event ready[BATCH];
    int count = epoll_wait(set, ready, BATCH, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct connection *connection = ready[i].data.ptr;
        connection->on_ready(connection, ready[i].events);
    }
}
