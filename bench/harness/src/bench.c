#include "bench.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef IP_BIND_ADDRESS_NO_PORT
#define IP_BIND_ADDRESS_NO_PORT 24
#endif

enum { BATCH = 1024, BACKLOG = 4096, INDICES_PER_ADDRESS = 500, MAX_FLAGS = 63 };

void fail(const char *what)
{
    perror(what);
    exit(2);
}

/* --- samples ------------------------------------------------------------------------------------------------------ */

void samples_add(struct samples *samples, int64_t ns)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 4096;
        samples->ns = realloc(samples->ns, samples->capacity * sizeof *samples->ns);
        if (!samples->ns) fail("samples");
    }
    samples->ns[samples->count++] = ns;
}

void samples_clear(struct samples *samples)
{
    samples->count = 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

void samples_print_json(struct samples *samples, FILE *out)
{
    static int64_t none[1];
    size_t n = samples->count, last = n ? n - 1 : 0;
    int64_t *ns = n ? samples->ns : none;
    if (n) qsort(ns, n, sizeof *ns, compare);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)ns[i];
    fprintf(out, "{\"count\": %zu, \"mean\": %.4f, \"median\": %.4f, \"min\": %.4f, \"max\": %.4f, \"p90\": %.4f, \"p99\": %.4f}",
            n, per(sum, (double)n) / 1e6, (double)(ns[last / 2] + ns[n / 2 < n ? n / 2 : 0]) / 2e6, (double)ns[0] / 1e6,
            (double)ns[last] / 1e6, (double)ns[last * 90 / 100] / 1e6, (double)ns[last * 99 / 100] / 1e6);
}

void json_number(FILE *out, const char *name, double value)
{
    fprintf(out, "\"%s\": %.4f, ", name, value);
}

void json_count(FILE *out, const char *name, long value)
{
    fprintf(out, "\"%s\": %ld, ", name, value);
}

double per(double amount, double count)
{
    return count > 0 ? amount / count : 0;
}

/* --- loop --------------------------------------------------------------------------------------------------------- */

static int poller;

void loop_open(void)
{
    poller = epoll_create1(EPOLL_CLOEXEC);
}

static void control(int operation, struct connection *connection, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = connection};
    if (epoll_ctl(poller, operation, connection->fd, &event)) fail("epoll_ctl");
}

void loop_watch(struct connection *connection, uint32_t events)
{
    control(EPOLL_CTL_ADD, connection, events);
}

void loop_change(struct connection *connection, uint32_t events)
{
    control(EPOLL_CTL_MOD, connection, events);
}

void loop_run_once(int timeout_ms)
{
    struct epoll_event ready[BATCH];
    int count = epoll_wait(poller, ready, BATCH, timeout_ms);
    for (int i = 0; i < count; i++) {
        struct connection *connection = ready[i].data.ptr;
        connection->on_ready(connection, ready[i].events);
    }
}

/* --- sockets ------------------------------------------------------------------------------------------------------ */

static struct in_addr destination;
static bool is_remote;

void net_raise_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit)) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_socket(int flags)
{
    int fd = socket(AF_INET, SOCK_STREAM | flags, 0);
    if (fd < 0) fail("socket");
    return fd;
}

static void set_option(int fd, int level, int name, int value)
{
    setsockopt(fd, level, name, &value, sizeof value);
}

static struct sockaddr_in address_of(uint32_t address, int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(address)};
}

static struct sockaddr_in parse_address(const char *host, int port)
{
    struct sockaddr_in address = address_of(INADDR_LOOPBACK, port);
    if (inet_pton(AF_INET, host, &address.sin_addr) == 1) return address;
    fprintf(stderr, "%s is no IPv4 address\n", host);
    exit(2);
}

int net_listen(const char *host, int port)
{
    int fd = open_socket(SOCK_NONBLOCK);
    set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    struct sockaddr_in address = parse_address(host, port);
    if (bind(fd, (void *)&address, sizeof address) || listen(fd, BACKLOG)) fail("listen");
    return fd;
}

void net_set_host(const char *host)
{
    destination = parse_address(host, 0).sin_addr;
    is_remote = destination.s_addr != htonl(INADDR_LOOPBACK);
}

int net_dial(int port, int index, int receive_buffer)
{
    int fd = open_socket(SOCK_NONBLOCK);
    if (!is_remote) {
        uint32_t group = (uint32_t)(index / INDICES_PER_ADDRESS); /* 127.0.1.1, 127.0.1.2, … */
        struct sockaddr_in source = address_of((127u << 24) | ((1 + group / 250) << 8) | (1 + group % 250), 0);
        set_option(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1); /* connect() chooses a port that other addresses may share */
        if (bind(fd, (void *)&source, sizeof source)) fail("bind");
    }
    if (receive_buffer > 0) set_option(fd, SOL_SOCKET, SO_RCVBUF, receive_buffer);
    struct sockaddr_in address = address_of(INADDR_LOOPBACK, port);
    if (is_remote) address.sin_addr = destination;
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

void net_no_delay(int fd)
{
    set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);
}

int net_connect(const char *host, int port)
{
    int fd = open_socket(0);
    struct sockaddr_in address = parse_address(host, port);
    if (connect(fd, (void *)&address, sizeof address)) fail("connect");
    net_no_delay(fd);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

int net_send_all(int fd, const void *bytes, size_t length)
{
    for (const char *at = bytes, *end = at + length; at < end;) {
        ssize_t sent = send(fd, at, (size_t)(end - at), MSG_NOSIGNAL);
        if (sent >= 0) at += sent;
        else if (errno != EAGAIN && errno != EINTR) return -1;
        else poll(&(struct pollfd){.fd = fd, .events = POLLOUT}, 1, 1000);
    }
    return 0;
}

/* --- options ------------------------------------------------------------------------------------------------------ */

static const char *program_name;

static void print_help(const struct flag *all, int count)
{
    printf("usage: %s [options]\n\n", program_name);
    for (int i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof name, "--%s %s", all[i].name, all[i].value ? all[i].value : "");
        printf("  %-30s%s\n", name, all[i].help);
    }
}

void flags_refuse(const char *why)
{
    fprintf(stderr, "%s: %s (see %s --help)\n", program_name, why, program_name);
    exit(2);
}

static void add_process(struct processes *processes, const char *pid)
{
    if (processes->count == MAX_PIDS) flags_refuse("too many --pid");
    processes->pids[processes->count++] = (pid_t)atol(pid);
}

static void set_flag(const struct flag *flag, void *options, const char *value)
{
    void *at = (char *)options + flag->at;
    switch (flag->kind) {
    case FLAG_NUMBER: *(int *)at = atoi(value); break;
    case FLAG_REAL: *(double *)at = atof(value); break;
    case FLAG_SWITCH: *(bool *)at = true; break;
    case FLAG_TEXT: *(const char **)at = value; break;
    case FLAG_PID: add_process(at, value); break;
    case FLAG_OWN: flag->set(options, value); break;
    }
}

void flags_parse(const char *program, const struct flag *all, int count, void *options, int argc, char **argv)
{
    struct option names[MAX_FLAGS + 2] = {0};
    program_name = program;
    if (count > MAX_FLAGS) flags_refuse("the table of options is too long");
    for (int i = 0; i < count; i++)
        names[i] = (struct option){all[i].name, all[i].value ? required_argument : no_argument, NULL, i + 1};
    int help = count + 1, number;
    names[count] = (struct option){"help", no_argument, NULL, help};
    while ((number = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (number == help) print_help(all, count);
        if (number < 1 || number >= help) exit(number == help ? 0 : 2); /* getopt has printed what is wrong */
        set_flag(&all[number - 1], options, optarg);
    }
    if (optind < argc) flags_refuse("every option starts with --");
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

_Noreturn static void gone(pid_t pid)
{
    fprintf(stderr, "process %d is gone: its figures cannot be read\n", (int)pid);
    exit(3);
}

static int64_t running_ns(clockid_t clock)
{
    struct timespec t;
    return clock_gettime(clock, &t) ? -1 : t.tv_sec * 1000000000LL + t.tv_nsec;
}

/* The scheduler's count for the thread group: finer than the ticks of /proc/PID/stat, and unlike the sum of
 * /proc/PID/task/N/schedstat it keeps the time of threads that have ended. */
static int64_t cpu_ns(pid_t pid)
{
    clockid_t clock;
    int64_t ns = clock_getcpuclockid(pid, &clock) ? -1 : running_ns(clock);
    if (ns < 0) gone(pid);
    return ns;
}

static int64_t rss_bytes(pid_t pid)
{
    char path[64];
    long total, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) gone(pid);
    fclose(file);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

static int64_t tcp_bytes(void)
{
    char line[256];
    long pages = 0;
    FILE *file = fopen("/proc/net/sockstat", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "TCP: %*s %*d %*s %*d %*s %*d %*s %*d %*s %ld", &pages) == 1) break;
    if (file) fclose(file);
    return (int64_t)pages * sysconf(_SC_PAGESIZE);
}

struct usage usage_of(const struct processes *processes)
{
    struct usage usage = {.own_ns = running_ns(CLOCK_PROCESS_CPUTIME_ID), .tcp_bytes = tcp_bytes()};
    for (int i = 0; i < processes->count; i++) {
        usage.cpu_ns += cpu_ns(processes->pids[i]);
        usage.rss_bytes += rss_bytes(processes->pids[i]);
    }
    return usage;
}
