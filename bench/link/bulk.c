/* bulk: what a link leaves of its rate to one large transfer over TCP, one way.
 *
 *     bulk receive HOST:PORT           accepts one, reads to its end; prints {"seconds", "bytes"} of the last quarter
 *     bulk send HOST:PORT BYTES */
#include "clock.h"
#include "net.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HOST_BYTES = 64, PIECE = 1 << 16, FIRST_MS = 20000, SILENCE_MS = 20000, QUARTERS = 4 };

static char piece[PIECE];

static void await(int fd, int milliseconds)
{
    if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, milliseconds) == 1) return;
    fprintf(stderr, "bulk: nothing came\n");
    exit(1);
}

/* The first eight bytes say how many follow. By the last quarter TCP has found its pace. */
static int receive(const char *host, int port)
{
    int listener = net_listen_on(host, port);
    fprintf(stderr, "ready\n");
    await(listener, FIRST_MS);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    long long total = 0, came = 0, before = 0;
    if (fd < 0 || recv(fd, &total, sizeof total, MSG_WAITALL) != sizeof total) {
        fprintf(stderr, "bulk: nobody sends\n");
        return 1;
    }
    int64_t began = 0;
    while (came < total) {
        await(fd, SILENCE_MS);
        ssize_t length = recv(fd, piece, sizeof piece, 0);
        if (length <= 0) {
            fprintf(stderr, "bulk: it ended early\n");
            return 1;
        }
        came += length;
        if (began || came < total - total / QUARTERS) continue;
        began = clock_ns();
        before = came;
    }
    printf("{\"seconds\": %.6f, \"bytes\": %lld}\n", (double)(clock_ns() - began) / 1e9, came - before);
    return 0;
}

static int send_all(const char *host, int port, long long total)
{
    int fd = net_connect(host, port);
    /* CUBIC's slow start ends early where times grow (RFC 9406), and then takes a minute to fill a long way. What is measured is the link. */
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    if (net_send_all(fd, (const char *)&total, sizeof total)) return 1;
    for (long long left = total; left > 0;) {
        size_t length = left < PIECE ? (size_t)left : PIECE;
        if (net_send_all(fd, piece, length)) return 1;
        left -= (long long)length;
    }
    shutdown(fd, SHUT_WR);
    fcntl(fd, F_SETFL, 0);
    return recv(fd, piece, 1, 0) < 0; /* until the other side has all, and goes */
}

int main(int argc, char **argv)
{
    char host[HOST_BYTES];
    int port;
    bool sends = argc == 4 && strcmp(argv[1], "send") == 0, receives = argc == 3 && strcmp(argv[1], "receive") == 0;
    if (!(sends || receives) || sscanf(argv[2], "%63[^:]:%d", host, &port) != 2) {
        fprintf(stderr, "usage: bulk receive HOST:PORT\n       bulk send HOST:PORT BYTES\n");
        return 2;
    }
    return sends ? send_all(host, port, atoll(argv[3])) : receive(host, port);
}
