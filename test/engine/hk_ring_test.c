#include "hk_ring.h"
#include "hk_test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The lowest descriptor that is not open. */
static int next_descriptor(void)
{
    int fd = dup(STDERR_FILENO);
    close(fd);
    return fd;
}

static hk_ring_t *ring_or_skip(void)
{
    hk_ring_t *ring = NULL;
    if (hk_ring_open(hk_test_alloc(), &ring) == HK_SYSTEM) {
        HK_CHECK(ring == NULL);
        hk_test_skip(strerror(errno));
    }
    HK_CHECK(ring != NULL);
    return ring;
}

typedef struct pairs {
    int near[HK_RING_SENDS], far[HK_RING_SENDS];
} pairs_t;

static void open_pairs(pairs_t *pairs)
{
    for (size_t i = 0; i < HK_RING_SENDS; i++) {
        int pair[2];
        HK_CHECK_EQUAL_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair));
        pairs->near[i] = pair[0];
        pairs->far[i] = pair[1];
    }
}

static void close_pairs(const pairs_t *pairs)
{
    for (size_t i = 0; i < HK_RING_SENDS; i++) {
        close(pairs->near[i]);
        close(pairs->far[i]);
    }
}

static void check_received(int fd, hk_bytes_t bytes)
{
    char room[64];
    ssize_t got = recv(fd, room, sizeof(room), MSG_DONTWAIT);
    HK_CHECK_EQUAL_INT((long long)bytes.length, got);
    HK_CHECK(memcmp(room, bytes.at, bytes.length) == 0);
    HK_CHECK_EQUAL_INT(-1, recv(fd, room, sizeof(room), MSG_DONTWAIT));
}

HK_TEST(a_ring_sends_the_same_bytes_to_each_socket_once_however_often_it_is_used)
{
    hk_ring_t *ring = ring_or_skip();
    pairs_t pairs;
    open_pairs(&pairs);
    for (size_t round = 0; round < 200; round++) {
        char text[16];
        int length = snprintf(text, sizeof(text), "event %zu", round);
        size_t count = 1 + round % HK_RING_SENDS;
        ssize_t sent[HK_RING_SENDS];
        HK_CHECK_EQUAL_INT((long long)count,
                           (long long)hk_ring_send(ring, pairs.near, count, hk_bytes(text, (size_t)length), sent));
        for (size_t i = 0; i < count; i++) {
            HK_CHECK_EQUAL_INT(length, sent[i]);
            check_received(pairs.far[i], hk_bytes(text, (size_t)length));
        }
    }
    close_pairs(&pairs);
    hk_ring_close(ring);
}

HK_TEST(a_ring_reports_for_each_socket_what_send_would)
{
    enum { FULL, GONE, NONE, HEALTHY, SOCKETS };
    hk_ring_t *ring = ring_or_skip();
    pairs_t pairs;
    ssize_t sent[HK_RING_SENDS];
    static char filler[1 << 20];
    open_pairs(&pairs);
    while (send(pairs.near[FULL], filler, sizeof(filler), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    close(pairs.far[GONE]);
    int fds[SOCKETS] = {
        [FULL] = pairs.near[FULL], [GONE] = pairs.near[GONE], [NONE] = -1, [HEALTHY] = pairs.near[HEALTHY]};
    HK_CHECK_EQUAL_INT(SOCKETS, (long long)hk_ring_send(ring, fds, SOCKETS, HK_BYTES("event"), sent));
    HK_CHECK_EQUAL_INT(-EAGAIN, sent[FULL]);
    HK_CHECK_EQUAL_INT(-EPIPE, sent[GONE]);
    HK_CHECK_EQUAL_INT(-EBADF, sent[NONE]);
    HK_CHECK_EQUAL_INT(5, sent[HEALTHY]);
    check_received(pairs.far[HEALTHY], HK_BYTES("event"));

    HK_CHECK_EQUAL_INT(SOCKETS, (long long)hk_ring_send(ring, fds, SOCKETS, hk_bytes(filler, sizeof(filler)), sent));
    HK_CHECK(sent[HEALTHY] > 0 && sent[HEALTHY] < (ssize_t)sizeof(filler));

    pairs.far[GONE] = dup(pairs.far[HEALTHY]);
    close_pairs(&pairs);
    hk_ring_close(ring);
}

HK_TEST(a_ring_leaves_no_descriptor_behind_and_a_forked_child_leaves_the_parents_alone)
{
    int before = next_descriptor();
    hk_ring_t *ring = ring_or_skip();
    pairs_t pairs;
    ssize_t sent[HK_RING_SENDS];
    open_pairs(&pairs);
    pid_t child = fork();
    if (child == 0) {
        hk_ring_abandon(ring);
        _exit(0);
    }
    HK_CHECK_EQUAL_INT(child, waitpid(child, NULL, 0));
    HK_CHECK_EQUAL_INT(HK_RING_SENDS,
                       (long long)hk_ring_send(ring, pairs.near, HK_RING_SENDS, HK_BYTES("event"), sent));
    check_received(pairs.far[HK_RING_SENDS - 1], HK_BYTES("event"));
    close_pairs(&pairs);
    hk_ring_close(ring);
    hk_ring_close(NULL);
    hk_ring_abandon(NULL);
    HK_CHECK_EQUAL_INT(before, next_descriptor());
}
