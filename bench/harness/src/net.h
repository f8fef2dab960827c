/* net.h: TCP sockets, for the load generators and for the floors. */
#ifndef BENCH_NET_H
#define BENCH_NET_H

#include <stddef.h>
#include <stdint.h>

/* Lets this process open as many files as its hard limit allows. */
void net_raise_file_limit(void);

/* A non-blocking listening socket on 127.0.0.1; exits with a message when the port is taken. */
int net_listen(int port);

/* The same on any IPv4 address in dots. */
int net_listen_on(const char *host, int port);

/* Where net_dial dials: an IPv4 address in dots, 127.0.0.1 unless said; exits with a message when it is none. */
void net_set_host(const char *host);

/* A non-blocking connection under way to that host's `port`; exits with a message when refused outright.
 *
 * On the loopback the source is 127.0.x.y, a new address for each 500 indices: one address has only 28,000 ports, and a hub
 * limits the connections of an address. `receive_buffer` is its SO_RCVBUF in bytes; 0 leaves that to the kernel. */
int net_dial(int port, int index, int receive_buffer);

/* From this index on they are publishers: their source is an address of their own, so that they do not count with the
 * subscribers. */
enum { NET_PUBLISHERS = 50000 };

/* The source of net_dial, as an IPv4 address in host order; it rises with the index. */
uint32_t net_source(int index);

/* Lets no small request wait for the acknowledgement of the last (TCP_NODELAY). */
void net_send_at_once(int fd);

/* A non-blocking connection that stands, to an IPv4 address in dots; exits with a message when there is none. */
int net_connect(const char *host, int port);

/* 0 once the connection of net_dial stands, else its errno. */
int net_dial_error(int fd);

/* Sends all of it, waiting for room: for requests, which are short. 0, or -1 when the peer is gone. */
int net_send_all(int fd, const char *bytes, size_t length);

#endif
