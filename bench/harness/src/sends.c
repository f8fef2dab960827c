/* sends: what one send() costs a server, one system call each or many of a turn in one io_uring_enter().
 *
 *     sends SOCKETS BYTES TURN ROUNDS
 *
 * TCP connections over the loopback: this process sends BYTES to each of SOCKETS, in turns of TURN, and another process reads
 * them. Each round measures every way once, each round in another order, and begins when all was read. Prints an array with one
 * object for each way: nanoseconds of CPU per send, one for each round. They include those of the core's ksoftirqd: a long stay
 * in the kernel leaves more of the loopback's work to it. */
#include "net.h"

#include <dirent.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 1000, READ_BYTES = 64 * 1024, SERVER_CORE = 0, READER_CORE = 1 };

struct ring {
    int fd;
    unsigned entries, enter_flags;
    bool registered_ring;
    _Atomic unsigned *sq_tail, *cq_head, *cq_tail;
    unsigned sq_mask, cq_mask, *sq_array;
    struct io_uring_sqe *sqes;
    struct io_uring_cqe *cqes;
};

struct way {
    const char *name;
    unsigned setup_flags;
    unsigned char sqe_flags;
    bool uses_ring;
    struct ring ring;
    double ns[MAX_ROUNDS];
};

static struct way ways[] = {
    {.name = "send()"},
    {.name = "io_uring", .uses_ring = true},
    {.name = "io_uring, registered files",
     .uses_ring = true,
     .setup_flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
     .sqe_flags = IOSQE_FIXED_FILE},
    {.name = "io_uring, registered files, no completions",
     .uses_ring = true,
     .setup_flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN,
     .sqe_flags = IOSQE_FIXED_FILE | IOSQE_CQE_SKIP_SUCCESS},
};
enum { WAYS = sizeof ways / sizeof *ways };

static int socket_count, turn_size;
static int *sockets;
static char *message;
static size_t message_bytes;
static _Atomic uint64_t *received; /* by the reader, in all */

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

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

static int ring_register(int fd, unsigned what, const void *argument, unsigned count)
{
    return (int)syscall(SYS_io_uring_register, fd, what, argument, count);
}

static void *ring_map(const struct ring *ring, size_t size, off_t offset)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, offset);
    if (at == MAP_FAILED) fail("mmap");
    return at;
}

/* One mapping holds both queues: every kernel that has IORING_SETUP_DEFER_TASKRUN does that. */
static void ring_open(struct way *way)
{
    struct ring *ring = &way->ring;
    struct io_uring_params p = {.flags = way->setup_flags};
    ring->entries = 1;
    while (ring->entries < (unsigned)turn_size) ring->entries *= 2;
    ring->fd = (int)syscall(SYS_io_uring_setup, ring->entries, &p);
    if (ring->fd < 0) fail("io_uring_setup");
    size_t bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
    size_t submissions = p.sq_off.array + p.sq_entries * sizeof(unsigned);
    char *at = ring_map(ring, bytes > submissions ? bytes : submissions, IORING_OFF_SQ_RING);
    ring->sqes = ring_map(ring, p.sq_entries * sizeof(struct io_uring_sqe), IORING_OFF_SQES);
    ring->sq_tail = (void *)(at + p.sq_off.tail);
    ring->sq_mask = p.sq_entries - 1;
    ring->sq_array = (void *)(at + p.sq_off.array);
    ring->cq_head = (void *)(at + p.cq_off.head);
    ring->cq_tail = (void *)(at + p.cq_off.tail);
    ring->cq_mask = p.cq_entries - 1;
    ring->cqes = (void *)(at + p.cq_off.cqes);
    if (!(way->sqe_flags & IOSQE_FIXED_FILE)) return;
    if (ring_register(ring->fd, IORING_REGISTER_FILES, sockets, (unsigned)socket_count)) fail("register files");
    struct io_uring_rsrc_update own = {.offset = (unsigned)-1, .data = (unsigned)ring->fd};
    if (ring_register(ring->fd, IORING_REGISTER_RING_FDS, &own, 1) == 1) {
        ring->fd = (int)own.offset;
        ring->enter_flags = IORING_ENTER_REGISTERED_RING;
    }
}

static void ring_check(struct ring *ring)
{
    unsigned head = atomic_load_explicit(ring->cq_head, memory_order_relaxed);
    unsigned tail = atomic_load_explicit(ring->cq_tail, memory_order_acquire);
    for (; head != tail; head++) {
        int result = ring->cqes[head & ring->cq_mask].res;
        if (result != (int)message_bytes) {
            fprintf(stderr, "sends: a send took %d of %zu bytes\n", result, message_bytes);
            exit(2);
        }
    }
    atomic_store_explicit(ring->cq_head, head, memory_order_release);
}

static void ring_turn(struct way *way, int first, int count)
{
    struct ring *ring = &way->ring;
    unsigned tail = atomic_load_explicit(ring->sq_tail, memory_order_relaxed);
    bool fixed = way->sqe_flags & IOSQE_FIXED_FILE;
    for (int i = first; i < first + count; i++, tail++) {
        unsigned at = tail & ring->sq_mask;
        struct io_uring_sqe *sqe = &ring->sqes[at];
        memset(sqe, 0, sizeof *sqe);
        sqe->opcode = IORING_OP_SEND;
        sqe->flags = way->sqe_flags;
        sqe->fd = fixed ? i : sockets[i];
        sqe->addr = (uint64_t)(uintptr_t)message;
        sqe->len = (unsigned)message_bytes;
        sqe->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        sqe->user_data = (unsigned)i;
        ring->sq_array[at] = at;
    }
    atomic_store_explicit(ring->sq_tail, tail, memory_order_release);
    long sent = syscall(SYS_io_uring_enter, ring->fd, count, 0, ring->enter_flags | IORING_ENTER_GETEVENTS, NULL, 0);
    if (sent != count) fail("io_uring_enter");
    ring_check(ring);
}

/* --- the ways in turn --------------------------------------------------------------------------------------------- */

static void send_turn(int first, int count)
{
    for (int i = first; i < first + count; i++) {
        long sent = syscall(SYS_sendto, sockets[i], message, message_bytes, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
        if (sent != (long)message_bytes) fail("send");
    }
}

static void wait_for_reader(uint64_t total)
{
    while (atomic_load(received) < total) usleep(100);
}

static double measure(struct way *way, uint64_t total)
{
    int64_t softirq = softirq_ns(), start = cpu_ns();
    for (int first = 0; first < socket_count; first += turn_size) {
        int count = socket_count - first < turn_size ? socket_count - first : turn_size;
        if (way->uses_ring) {
            ring_turn(way, first, count);
        } else {
            send_turn(first, count);
        }
    }
    int64_t ns = cpu_ns() - start;
    wait_for_reader(total);
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
        net_send_at_once(sockets[i]);
    }
}

static void print(int rounds)
{
    printf("[");
    for (int way = 0; way < WAYS; way++) {
        printf("%s{\"way\": \"%s\", \"ns\": [", way ? ", " : "", ways[way].name);
        for (int round = 0; round < rounds; round++) printf("%s%.1f", round ? ", " : "", ways[way].ns[round]);
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
    int listener = net_listen(0);
    struct sockaddr_in own;
    socklen_t length = sizeof own;
    if (pipe(ready) || getsockname(listener, (struct sockaddr *)&own, &length)) fail("pipe");
    pid_t reader = fork();
    if (reader < 0) fail("fork");
    if (reader == 0) read_all(ntohs(own.sin_port), ready[1]);
    accept_all(listener, ready[0]);
    pin(SERVER_CORE);
    for (int way = 0; way < WAYS; way++)
        if (ways[way].uses_ring) ring_open(&ways[way]);

    uint64_t total = 0;
    for (int round = -1; round < rounds; round++) {
        for (int i = 0; i < WAYS; i++) {
            struct way *way = &ways[(i + round + 1) % WAYS];
            total += message_bytes * (uint64_t)socket_count;
            double ns = measure(way, total);
            if (round >= 0) way->ns[round] = ns;
        }
    }
    print(rounds);
    kill(reader, SIGTERM);
    return 0;
}
