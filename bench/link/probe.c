/* probe: what a link does to packets: UDP, each with when it was sent, one way. Both ends are on one machine, so that they
 * have one clock; when a packet came is the kernel's word, however late the receiver is woken.
 *
 *     probe receive HOST:PORT                        until nothing comes for a second; prints one JSON object
 *     probe send HOST:PORT COUNT BYTES GAP_US        IP packets of so many bytes, one each so many microseconds */
#include "clock.h"
#include "samples.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { HOST_BYTES = 64, HEADERS = 28, MOST = 1500, SILENCE_MS = 1000, FIRST_MS = 20000, BUFFER = 1 << 23 };

static struct sockaddr_in address_of(const char *text)
{
    char host[HOST_BYTES];
    int port;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (sscanf(text, "%63[^:]:%d", host, &port) != 2 || inet_pton(AF_INET, host, &address.sin_addr) != 1) {
        fprintf(stderr, "probe: %s is not HOST:PORT\n", text);
        exit(2);
    }
    address.sin_port = htons((uint16_t)port);
    return address;
}

static int open_socket(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), size = BUFFER;
    if (fd < 0) {
        perror("socket");
        exit(2);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof size);
    setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
    return fd;
}

/* The clock by which the kernel stamps packets. */
static int64_t wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* One packet, and when it came. */
static ssize_t receive_stamped(int fd, char *packet, int64_t *came)
{
    _Alignas(struct cmsghdr) char control[256];
    struct iovec part = {.iov_base = packet, .iov_len = MOST};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t length = recvmsg(fd, &message, 0);
    *came = wall_ns();
    for (struct cmsghdr *at = CMSG_FIRSTHDR(&message); length >= 0 && at; at = CMSG_NXTHDR(&message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec stamp;
        memcpy(&stamp, CMSG_DATA(at), sizeof stamp);
        *came = stamp.tv_sec * 1000000000LL + stamp.tv_nsec;
    }
    return length;
}

static int receive(const char *where)
{
    int fd = open_socket(), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes);
    struct sockaddr_in address = address_of(where);
    if (bind(fd, (void *)&address, sizeof address)) {
        perror(where);
        return 2;
    }
    fprintf(stderr, "ready\n");
    struct samples delay = {0}, gap = {0};
    long bytes = 0;
    int64_t first = 0, last = 0, newest = 0;
    long overtaken = 0;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    while (poll(&ready, 1, last ? SILENCE_MS : FIRST_MS) == 1) {
        char packet[MOST];
        int64_t now, sent;
        ssize_t length = receive_stamped(fd, packet, &now);
        if (length < (ssize_t)sizeof sent) continue;
        memcpy(&sent, packet, sizeof sent);
        samples_add(&delay, now - sent);
        if (sent < newest) overtaken++;
        else newest = sent;
        if (last) samples_add(&gap, now - last);
        else first = now;
        if (last) bytes += length + HEADERS; /* what came since the first */
        last = now;
    }
    printf("{\"seconds\": %.6f, \"bytes\": %ld, \"overtaken\": %ld, \"delay_ms\": ", (double)(last - first) / 1e9, bytes, overtaken);
    samples_print_json(&delay, stdout);
    printf(", \"gap_ms\": ");
    samples_print_json(&gap, stdout);
    printf("}\n");
    return 0;
}

static void wait_until(int64_t at)
{
    struct timespec time = {.tv_sec = at / 1000000000, .tv_nsec = at % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
}

static int send_all(const char *where, long count, long size, long gap_us)
{
    if (count < 1 || size < HEADERS + 8 || size > MOST || gap_us < 0) {
        fprintf(stderr, "probe: COUNT from 1, BYTES 36 to 1500, GAP_US from 0\n");
        return 2;
    }
    int fd = open_socket();
    struct sockaddr_in address = address_of(where);
    char packet[MOST] = {0};
    int64_t start = clock_ns();
    for (long i = 0; i < count; i++) {
        if (gap_us) wait_until(start + i * gap_us * 1000);
        int64_t now = wall_ns();
        memcpy(packet, &now, sizeof now);
        sendto(fd, packet, (size_t)(size - HEADERS), 0, (void *)&address, sizeof address);
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "receive") == 0) return receive(argv[2]);
    if (argc == 6 && strcmp(argv[1], "send") == 0) return send_all(argv[2], atol(argv[3]), atol(argv[4]), atol(argv[5]));
    fprintf(stderr, "usage: probe receive HOST:PORT\n       probe send HOST:PORT COUNT BYTES GAP_US\n");
    return 2;
}
