#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { BACKLOG = 4096, INDICES_PER_ADDRESS = 500 };

static struct in_addr destination; /* of net_dial */
static bool is_remote;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void set_option(int fd, int level, int name)
{
    int one = 1;
    setsockopt(fd, level, name, &one, sizeof one);
}

static struct sockaddr_in loopback(uint32_t address, int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(address)};
}

void net_raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static struct sockaddr_in address_of(const char *host, int port)
{
    struct sockaddr_in address = loopback(INADDR_LOOPBACK, port);
    if (inet_pton(AF_INET, host, &address.sin_addr) == 1) return address;
    fprintf(stderr, "%s is no IPv4 address\n", host);
    exit(2);
}

int net_listen(int port)
{
    return net_listen_on("127.0.0.1", port);
}

int net_listen_on(const char *host, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) fail("socket");
    set_option(fd, SOL_SOCKET, SO_REUSEADDR);
    struct sockaddr_in address = address_of(host, port);
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, BACKLOG)) fail("listen");
    return fd;
}

uint32_t net_source(int index)
{
    uint32_t group = (uint32_t)(index / INDICES_PER_ADDRESS);
    return (127u << 24) | ((1 + group / 250) << 8) | (1 + group % 250);
}

/* Leaves the port to connect(), which may then share one between addresses. */
static void bind_source(int fd, int index)
{
    struct sockaddr_in address = loopback(net_source(index), 0);
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
    if (bind(fd, (void *)&address, sizeof address)) fail("bind");
}

void net_send_at_once(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY);
}

void net_set_host(const char *host)
{
    destination = address_of(host, 0).sin_addr;
    is_remote = destination.s_addr != htonl(INADDR_LOOPBACK);
}

int net_dial(int port, int index, int receive_buffer)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) fail("socket");
    if (!is_remote) bind_source(fd, index);
    if (receive_buffer > 0) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    struct sockaddr_in address = loopback(INADDR_LOOPBACK, port);
    if (is_remote) address.sin_addr = destination;
    if (connect(fd, (void *)&address, sizeof address) && errno != EINPROGRESS) fail("connect");
    return fd;
}

int net_connect(const char *host, int port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) fail("socket");
    struct sockaddr_in address = address_of(host, port);
    if (connect(fd, (void *)&address, sizeof address)) fail("connect");
    net_send_at_once(fd);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

int net_dial_error(int fd)
{
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length);
    return error;
}

int net_send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return -1;
        if (n < 0) {
            poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000);
            continue;
        }
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}
