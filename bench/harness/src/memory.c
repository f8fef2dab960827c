#include "memory.h"

#include "net.h"

#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 65536 };

int64_t memory_of_tcp(void)
{
    char line[256];
    long pages = 0;
    FILE *file = fopen("/proc/net/sockstat", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "TCP: %*s %*d %*s %*d %*s %*d %*s %*d %*s %ld", &pages) == 1) break;
    if (file) fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

static bool ask(int fd)
{
    struct {
        struct nlmsghdr head;
        struct inet_diag_req_v2 body;
    } request = {
        .head = {.nlmsg_len = sizeof request,
                 .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                 .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
        .body = {.sdiag_family = AF_INET,
                 .sdiag_protocol = IPPROTO_TCP,
                 .idiag_ext = 1 << (INET_DIAG_SKMEMINFO - 1),
                 .idiag_states = 1 << TCP_ESTABLISHED},
    };
    return send(fd, &request, sizeof request, 0) == (ssize_t)sizeof request;
}

static uint32_t send_buffer_of(const struct nlmsghdr *message)
{
    size_t at = NLMSG_ALIGN(NLMSG_LENGTH(sizeof(struct inet_diag_msg)));
    while (at + sizeof(struct rtattr) <= message->nlmsg_len) {
        const struct rtattr *attribute = (const void *)((const char *)message + at);
        if (attribute->rta_len < sizeof *attribute) break;
        if (attribute->rta_type == INET_DIAG_SKMEMINFO) return ((const uint32_t *)(attribute + 1))[SK_MEMINFO_SNDBUF];
        at += RTA_ALIGN(attribute->rta_len);
    }
    return 0;
}

/* Whether it is the server's end of a subscriber's connection. */
static bool is_stream(const struct inet_diag_msg *socket, int port)
{
    return ntohs(socket->id.idiag_sport) == port && ntohl(socket->id.idiag_dst[0]) < net_source(NET_PUBLISHERS);
}

int64_t memory_send_buffer(int port)
{
    static _Alignas(struct nlmsghdr) char answer[ANSWER_BYTES];
    uint32_t largest = 0;
    int fd = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
    bool more = fd >= 0 && ask(fd);
    while (more) {
        ssize_t got = recv(fd, answer, sizeof answer, 0);
        if (got <= 0) break;
        unsigned length = (unsigned)got;
        for (struct nlmsghdr *at = (void *)answer; more && NLMSG_OK(at, length); at = NLMSG_NEXT(at, length)) {
            more = at->nlmsg_type != NLMSG_DONE && at->nlmsg_type != NLMSG_ERROR;
            const struct inet_diag_msg *socket = NLMSG_DATA(at);
            if (!more || !is_stream(socket, port)) continue;
            uint32_t size = send_buffer_of(at);
            if (size > largest) largest = size;
        }
    }
    if (fd >= 0) close(fd);
    return largest;
}
