#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { BACKLOG = 4096, INDICES_PER_ADDRESS = 500 };

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

int net_listen(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) fail("socket");
    set_option(fd, SOL_SOCKET, SO_REUSEADDR);
    struct sockaddr_in address = loopback(INADDR_LOOPBACK, port);
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, BACKLOG)) fail("listen");
    return fd;
}

/* Leaves the port to connect(), which may then share one between addresses. */
static void bind_source(int fd, int index)
{
    uint32_t group = (uint32_t)(index / INDICES_PER_ADDRESS);
    uint32_t source = (127u << 24) | ((1 + group / 250) << 8) | (1 + group % 250);
    struct sockaddr_in address = loopback(source, 0);
    set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT);
    if (bind(fd, (void *)&address, sizeof address)) fail("bind");
}

int net_dial(int port, int index)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (fd < 0) fail("socket");
    bind_source(fd, index);
    set_option(fd, IPPROTO_TCP, TCP_NODELAY);
    struct sockaddr_in address = loopback(INADDR_LOOPBACK, port);
    if (connect(fd, (void *)&address, sizeof address) && errno != EINPROGRESS) fail("connect");
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
