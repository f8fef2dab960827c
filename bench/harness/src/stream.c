/* stream: what a link takes: so many bytes each way at once, over one connection.
 *
 *     stream HOST:PORT               accepts, and answers with as many as it gets
 *     stream HOST:PORT MEGABYTES     sends, receives, and prints {"seconds", "bytes"}: of each way */
#include "bench.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_BYTES = 64, PIECE = 1 << 18, MEGABYTE = 1000000 };

static char bytes[PIECE];

/* Moves one piece: the bytes that went, 0 when none could, -1 at the end. */
static ssize_t moved(ssize_t length)
{
    if (length < 0) return errno == EAGAIN || errno == EINTR ? 0 : -1;
    return length == 0 ? -1 : length;
}

/* Both ways at once, until both have so many bytes. */
static void pump(int fd, long long total)
{
    long long sent = 0, received = 0;
    while (sent < total || received < total) {
        struct pollfd ready = {.fd = fd, .events = POLLIN};
        if (sent < total) ready.events |= POLLOUT;
        poll(&ready, 1, -1);
        size_t left = total - sent < PIECE ? (size_t)(total - sent) : PIECE;
        ssize_t out = ready.revents & POLLOUT ? moved(send(fd, bytes, left, MSG_NOSIGNAL)) : 0;
        ssize_t in = ready.revents & (POLLIN | POLLHUP) ? moved(recv(fd, bytes, PIECE, 0)) : 0;
        if (out < 0 || in < 0) {
            fprintf(stderr, "stream: the other side is gone\n");
            exit(1);
        }
        sent += out;
        received += in;
    }
}

/* The first eight bytes say how many follow. */
static void serve(const char *host, int port)
{
    int listener = net_listen(host, port);
    for (;;) {
        poll(&(struct pollfd){.fd = listener, .events = POLLIN}, 1, -1);
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        long long total;
        if (fd < 0) continue;
        if (recv(fd, &total, sizeof total, MSG_WAITALL) == sizeof total) {
            fcntl(fd, F_SETFL, O_NONBLOCK);
            pump(fd, total);
        }
        close(fd);
    }
}

int main(int argc, char **argv)
{
    char host[HOST_BYTES];
    int port;
    if (argc < 2 || argc > 3 || sscanf(argv[1], "%63[^:]:%d", host, &port) != 2) {
        fprintf(stderr, "usage: stream HOST:PORT [MEGABYTES]\n");
        return 2;
    }
    if (argc == 2) serve(host, port);
    long long total = atoll(argv[2]) * MEGABYTE;
    int fd = net_connect(host, port);
    if (net_send_all(fd, &total, sizeof total)) return 1;
    int64_t start = clock_ns();
    pump(fd, total);
    printf("{\"seconds\": %.6f, \"bytes\": %lld}\n", (double)(clock_ns() - start) / 1e9, total);
    return 0;
}
