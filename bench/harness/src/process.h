/* process.h: what the server under load has used so far, over all its threads. */
#ifndef BENCH_PROCESS_H
#define BENCH_PROCESS_H

#include <stdint.h>
#include <sys/types.h>

struct usage {
    int64_t cpu_ns; /* running time of all its threads, those that have ended included */
    int64_t rss_bytes;
    int64_t own_ns;    /* running time of the load generator itself */
    int64_t tcp_bytes; /* what the kernel holds for all sockets of this machine */
};

/* The sum over `count` processes. Exits with a message when one of them is gone. */
struct usage process_usage(const pid_t *pids, int count);

#endif
