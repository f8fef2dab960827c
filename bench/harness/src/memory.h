/* memory.h: what the kernel holds for TCP: what waits in a server's sockets is not in the server's own memory. */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stdint.h>

/* Of all sockets of this machine, in bytes: "mem" in /proc/net/sockstat; 0 when it cannot be read. */
int64_t memory_of_tcp(void);

/* The largest send buffer of the subscribers' connections that a local port has, in bytes as the kernel counts them:
 * twice what the server set with SO_SNDBUF, or what the kernel grew it to. 0 when the kernel does not say. */
int64_t memory_send_buffer(int port);

#endif
