/* net.h: loopback TCP sockets, for the load generator and for the floor. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <stddef.h>

/* Lets this process open as many files as its hard limit allows. */
void net_raise_file_limit(void);

/* A non-blocking listening socket on 127.0.0.1; exits with a message when the port is taken. */
int net_listen(int port);

/* A non-blocking connection under way to 127.0.0.1:`port`; exits with a message when refused outright.
 *
 * The source is 127.0.x.y, a new address for each 500 indices: one address has only 28,000 ports, and a hub
 * limits the connections of an address. */
int net_dial(int port, int index);

/* 0 once the connection of net_dial stands, else its errno. */
int net_dial_error(int fd);

/* Sends all of it, waiting for room: for requests, which are short. 0, or -1 when the peer is gone. */
int net_send_all(int fd, const char *bytes, size_t length);

#endif
