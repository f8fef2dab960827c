#include "hk_loop_private.h"

#include <arpa/inet.h>
#include <stdio.h>

static size_t text_of(int family, const void *bytes, char text[INET6_ADDRSTRLEN])
{
    return inet_ntop(family, bytes, text, INET6_ADDRSTRLEN) != NULL ? strlen(text) : 0;
}

/* As Puma has it: who reaches an IPv6 socket by IPv4 has an IPv4 address. */
size_t hk_peer_text(const struct sockaddr_storage *address, socklen_t length, char text[INET6_ADDRSTRLEN])
{
    if (length >= sizeof(struct sockaddr_in) && address->ss_family == AF_INET) {
        return text_of(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, text);
    }
    if (length >= sizeof(struct sockaddr_in6) && address->ss_family == AF_INET6) {
        const struct in6_addr *bytes = &((const struct sockaddr_in6 *)address)->sin6_addr;
        return IN6_IS_ADDR_V4MAPPED(bytes) ? text_of(AF_INET, bytes->s6_addr + 12, text)
                                           : text_of(AF_INET6, bytes, text);
    }
    return 0;
}

size_t hk_process_text(const hk_sys_t *sys, int fd, char text[INET6_ADDRSTRLEN])
{
    pid_t process = sys->process(sys->context, fd);
    int length = process < 0 ? snprintf(text, INET6_ADDRSTRLEN, "unknown")
                             : snprintf(text, INET6_ADDRSTRLEN, "unix, process %d", (int)process);
    return length > 0 ? (size_t)length : 0;
}
