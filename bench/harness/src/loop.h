/* loop.h: one epoll set, and what each of its connections does when it is ready. */
#ifndef BENCH_LOOP_H
#define BENCH_LOOP_H

#include <stdint.h>

/* The first member of whatever is watched: the handler gets it back. */
struct connection {
    int fd;
    void (*on_ready)(struct connection *, uint32_t events);
};

void loop_open(void);
void loop_watch(struct connection *connection, uint32_t events);
void loop_change(struct connection *connection, uint32_t events);

/* Serves what is ready, after waiting for at most so many milliseconds. */
void loop_run_once(int timeout_ms);

#endif
