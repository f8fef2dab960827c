/* bench.h: what the load generators, the floors and the link share. */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <time.h>

/* --- one monotonic clock for every figure ------------------------------------------------------------------------- */

static inline int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

_Noreturn void fail(const char *what); /* perror, exit status 2 */

/* --- measured durations: all are kept, so that percentiles are exact ---------------------------------------------- */

struct samples {
    int64_t *ns;
    size_t count, capacity;
};

void samples_add(struct samples *samples, int64_t ns);
void samples_clear(struct samples *samples);
/* Prints {"count", "mean", "median", "min", "max", "p90", "p99"}, in milliseconds. */
void samples_print_json(struct samples *samples, FILE *out);

/* JSON members, each with a comma and a space behind it. */
void json_number(FILE *out, const char *name, double value);
void json_count(FILE *out, const char *name, long value);
double per(double amount, double count); /* 0 when count is 0 */

/* --- an epoll set, whose connections handle their own events ------------------------------------------------------ */

/* The first member of each watched struct: the handler casts it back. */
struct connection {
    int fd;
    void (*on_ready)(struct connection *, uint32_t events);
};

void loop_open(void);
void loop_watch(struct connection *connection, uint32_t events);
void loop_change(struct connection *connection, uint32_t events);
void loop_run_once(int timeout_ms);

/* --- TCP sockets -------------------------------------------------------------------------------------------------- */

void net_raise_file_limit(void); /* to the hard limit */
int net_listen(const char *host, int port);
/* Where net_dial connects to: an IPv4 address, 127.0.0.1 unless set. */
void net_set_host(const char *host);
/* Begins a non-blocking connect. On the loopback each 500 indices have a source address of their own: one address has
 * only 28,000 ports, and a hub limits the connections of an address. `receive_buffer`: SO_RCVBUF; 0 leaves it alone. */
int net_dial(int port, int index, int receive_buffer);
int net_dial_error(int fd); /* 0 once net_dial has connected */
/* Publishers count from here, so that their source addresses differ from those of subscribers. */
enum { NET_PUBLISHERS = 50000 };
void net_no_delay(int fd);
int net_connect(const char *host, int port); /* blocks until connected; the socket is non-blocking then */
int net_send_all(int fd, const void *bytes, size_t length); /* waits for room; -1 when the peer is gone */

/* --- command-line options from a table; --help prints it ---------------------------------------------------------- */

enum flag_kind { FLAG_NUMBER, FLAG_REAL, FLAG_SWITCH, FLAG_TEXT, FLAG_PID, FLAG_OWN };

struct flag {
    const char *name;
    enum flag_kind kind;
    size_t at; /* offset of an int, a double, a bool, a const char * or a struct processes */
    const char *value, *help;                     /* `value` is NULL for a switch */
    void (*set)(void *options, const char *text); /* FLAG_OWN */
};

#define AT(member) offsetof(struct options, member)
#define NUMBER(name, member, value, help) {name, FLAG_NUMBER, AT(member), value, help, NULL}
#define REAL(name, member, value, help) {name, FLAG_REAL, AT(member), value, help, NULL}
#define TEXT(name, member, value, help) {name, FLAG_TEXT, AT(member), value, help, NULL}
#define SWITCH(name, member, help) {name, FLAG_SWITCH, AT(member), NULL, help, NULL}
#define PIDS(member) {"pid", FLAG_PID, AT(member), "PID", "a process of the server, for its CPU and memory; repeatable", NULL}

/* Sets the options named on the command line. Exits 2 on a mistake, with one line. */
void flags_parse(const char *program, const struct flag *all, int count, void *options, int argc, char **argv);
_Noreturn void flags_refuse(const char *why);

/* --- resource use of the server's processes ----------------------------------------------------------------------- */

enum { MAX_PIDS = 64 };

struct processes {
    pid_t pids[MAX_PIDS];
    int count;
};

struct usage {
    int64_t cpu_ns; /* of all threads, ended ones included */
    int64_t rss_bytes;
    int64_t own_ns;    /* of the load generator itself */
    int64_t tcp_bytes; /* kernel memory of all TCP sockets of this machine */
};

struct usage usage_of(const struct processes *processes);

#endif
