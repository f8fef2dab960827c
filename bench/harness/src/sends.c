/* sends: the CPU of one send() of a server: with a system call for each, or with the sends of a turn in one io_uring_enter().
 *
 *     sends SOCKETS BYTES TURN ROUNDS
 *
 * TCP connections over the loopback: this process sends BYTES to each of SOCKETS, in turns of TURN; another process reads them. Each
 * round measures both ways, in alternating order. Prints an array with an object for each way: nanoseconds of CPU per send, one for
 * each round. They include those of the core's ksoftirqd: a long stay in the kernel leaves more of the loopback's work to it. */
#include "bench.h"

#include <dirent.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_ROUNDS = 1000, READ_BYTES = 64 * 1024, SERVER_CORE = 0, READER_CORE = 1 };

struct ring {
    int fd;
    _Atomic unsigned *sq_tail, *cq_head, *cq_tail;
    unsigned sq_mask, cq_mask, *sq_array;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

enum { PLAIN, URING, WAYS };

static const char *const names[WAYS] = {"send()", "io_uring"};
static struct ring ring;
static double results[WAYS][MAX_ROUNDS];
static int socket_count, turn_size;
static int *sockets;
static char *message;
static size_t message_bytes;
static _Atomic uint64_t *received; /* by the reader, in all */

static void pin(int core)
{
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)core, &cores);
    if (sched_setaffinity(0, sizeof cores, &cores)) fail("sched_setaffinity");
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* Nanoseconds that the kernel's own thread for network work has run on the server's core. */
static int64_t softirq_ns(void)
{
    static char path[64];
    char name[32] = "", wanted[32];
    snprintf(wanted, sizeof wanted, "ksoftirqd/%d\n", SERVER_CORE);
    DIR *processes = path[0] ? NULL : opendir("/proc");
    for (struct dirent *entry; processes && strcmp(name, wanted) && (entry = readdir(processes));) {
        int pid = atoi(entry->d_name);
        if (pid < 1) continue;
        snprintf(path, sizeof path, "/proc/%d/comm", pid);
        FILE *comm = fopen(path, "r");
        if (comm && !fgets(name, sizeof name, comm)) name[0] = 0;
        if (comm) fclose(comm);
        snprintf(path, sizeof path, "/proc/%d/schedstat", pid);
    }
    if (processes) closedir(processes);
    long long ns = -1;
    FILE *schedstat = fopen(path, "r");
    if (!schedstat || fscanf(schedstat, "%lld", &ns) != 1) fail("the schedstat of ksoftirqd");
    fclose(schedstat);
    return ns;
}

/* --- io_uring ----------------------------------------------------------------------------------------------------- */

static void *ring_map(size_t size, off_t offset)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring.fd, offset);
    if (at == MAP_FAILED) fail("mmap");
    return at;
}

/* One mapping contains both queues (IORING_FEAT_SINGLE_MMAP, Linux 5.4). */
static void ring_open(void)
{
    struct io_uring_params p = {0};
    unsigned entries = 1;
    while (entries < (unsigned)turn_size) entries *= 2;
    ring.fd = (int)syscall(SYS_io_uring_setup, entries, &p);
    if (ring.fd < 0) fail("io_uring_setup");
    size_t bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    size_t submissions = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    char *at = ring_map(bytes > submissions ? bytes : submissions, IORING_OFF_SQ_RING);
    ring.sqes = ring_map(p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring.sq_tail = (void *)(at + p.sq_off.tail);
    ring.sq_mask = p.sq_entries - 1;
    ring.sq_array = (void *)(at + p.sq_off.array);
    ring.cq_head = (void *)(at + p.cq_off.head);
    ring.cq_tail = (void *)(at + p.cq_off.tail);
    ring.cq_mask = p.cq_entries - 1;
    ring.cqes = (void *)(at + p.cq_off.cqes);
}

static void ring_turn(int first, int count)
{
    unsigned tail = atomic_load_explicit(ring.sq_tail, memory_order_relaxed);
    for (int i = first; i < first + count; i++, tail++) {
        unsigned at = tail & ring.sq_mask;
        ring.sqes[at] = (struct io_uring_sqe){.opcode = IORING_OP_SEND, .fd = sockets[i], .addr = (uint64_t)(uintptr_t)message,
                                              .len = (unsigned)message_bytes, .msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL, .user_data = (unsigned)i};
        ring.sq_array[at] = at;
    }
    atomic_store_explicit(ring.sq_tail, tail, memory_order_release);
    if (syscall(SYS_io_uring_enter, ring.fd, count, 0, IORING_ENTER_GETEVENTS, NULL, 0) != count) fail("io_uring_enter");
    unsigned head = atomic_load_explicit(ring.cq_head, memory_order_relaxed);
    for (unsigned end = atomic_load_explicit(ring.cq_tail, memory_order_acquire); head != end; head++) {
        int result = ring.cqes[head & ring.cq_mask].res;
        if (result == (int)message_bytes) continue;
        fprintf(stderr, "sends: a send took %d of %zu bytes\n", result, message_bytes);
        exit(2);
    }
    atomic_store_explicit(ring.cq_head, head, memory_order_release);
}

/* --- the ways in turn --------------------------------------------------------------------------------------------- */

static void send_turn(int first, int count)
{
    for (int i = first; i < first + count; i++) {
        long sent = syscall(SYS_sendto, sockets[i], message, message_bytes, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
        if (sent != (long)message_bytes) fail("send");
    }
}

static double measure(int way, uint64_t total)
{
    int64_t softirq = softirq_ns(), start = cpu_ns();
    for (int first = 0; first < socket_count; first += turn_size) {
        int count = socket_count - first < turn_size ? socket_count - first : turn_size;
        if (way == URING) ring_turn(first, count);
        else send_turn(first, count);
    }
    int64_t ns = cpu_ns() - start;
    while (atomic_load(received) < total) usleep(100);
    return (double)(ns + softirq_ns() - softirq) / socket_count;
}

/* --- the other process -------------------------------------------------------------------------------------------- */

static _Noreturn void read_all(int port, int ready)
{
    static char bytes[READ_BYTES];
    struct epoll_event events[256];
    pin(READER_CORE);
    int poll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < socket_count; i++) {
        int fd = net_dial(port, i, 0);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event)) fail("epoll_ctl");
        if (write(ready, "", 1) != 1) fail("write");
    }
    for (;;) {
        int count = epoll_wait(poll, events, 256, -1);
        for (int i = 0; i < count; i++) {
            ssize_t got = read(events[i].data.fd, bytes, sizeof bytes);
            if (got == 0) exit(0);
            if (got > 0) atomic_fetch_add(received, (uint64_t)got);
        }
    }
}

static void accept_all(int listener, int ready)
{
    for (int i = 0; i < socket_count; i++) {
        char dialled;
        if (read(ready, &dialled, 1) != 1) fail("read");
        struct sockaddr_in peer;
        socklen_t length = sizeof peer;
        while ((sockets[i] = accept4(listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
            if (errno != EAGAIN) fail("accept");
        net_no_delay(sockets[i]);
    }
}

static void print(int rounds)
{
    printf("[");
    for (int way = 0; way < WAYS; way++) {
        printf("%s{\"way\": \"%s\", \"ns\": [", way ? ", " : "", names[way]);
        for (int round = 0; round < rounds; round++) printf("%s%.1f", round ? ", " : "", results[way][round]);
        printf("]}");
    }
    printf("]\n");
}

int main(int argc, char **argv)
{
    socket_count = argc == 5 ? atoi(argv[1]) : 0;
    message_bytes = argc == 5 ? (size_t)atol(argv[2]) : 0;
    turn_size = argc == 5 ? atoi(argv[3]) : 0;
    int rounds = argc == 5 ? atoi(argv[4]) : 0;
    if (socket_count < 1 || message_bytes < 1 || message_bytes > READ_BYTES || turn_size < 1 || turn_size > 4096 ||
        rounds < 1 || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: sends SOCKETS BYTES TURN ROUNDS\n");
        return 2;
    }
    net_raise_file_limit();
    sockets = calloc((size_t)socket_count, sizeof *sockets);
    message = malloc(message_bytes);
    received = mmap(NULL, sizeof *received, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!sockets || !message || received == MAP_FAILED) fail("memory");
    memset(message, 'x', message_bytes);

    int ready[2];
    int listener = net_listen("127.0.0.1", 0);
    struct sockaddr_in own;
    socklen_t length = sizeof own;
    if (pipe(ready) || getsockname(listener, (struct sockaddr *)&own, &length)) fail("pipe");
    pid_t reader = fork();
    if (reader < 0) fail("fork");
    if (reader == 0) read_all(ntohs(own.sin_port), ready[1]);
    accept_all(listener, ready[0]);
    pin(SERVER_CORE);
    ring_open();

    uint64_t total = 0;
    for (int round = -1; round < rounds; round++) {
        for (int i = 0; i < WAYS; i++) {
            int way = (i + round + 1) % WAYS;
            total += message_bytes * (uint64_t)socket_count;
            double ns = measure(way, total);
            if (round >= 0) results[way][round] = ns;
        }
    }
    print(rounds);
    kill(reader, SIGTERM);
    return 0;
}
