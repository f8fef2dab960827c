/* queue_options.h: which broker, what is sent through it, whom to measure. */
#ifndef BENCH_QUEUE_OPTIONS_H
#define BENCH_QUEUE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { QUEUE_PIDS = 64, QUEUE_TEXT = 255, QUEUE_SECONDS = 3600 };

struct queue_options {
    const char *dialect, *host;
    int port;
    int senders, receivers;
    int queues;           /* as many as receivers unless said; sender and message decide which, in turn */
    int messages, warmup; /* measured; before those */
    int size;             /* bytes of a message */
    int window;           /* unacknowledged messages of a sender */
    int credit;           /* messages that a receiver may have in hand */
    int level;            /* 0 memory, 1 written, 2 synced */
    double seconds;       /* to send for; then `messages` is what it sends at most. 0: until all are sent */
    double rate;          /* messages a second, of all senders; 0: as fast as they are acknowledged */
    int sample;           /* one of so many durations is kept */
    bool per_client;      /* messages are addressed to the receivers, not to queues with names */
    bool ack_pushes;      /* a receiver says ACK for each PUSH */
    bool free_each;       /* and FREE for each alone, instead of one for all that a read brought */
    const char *prefix;   /* of the names of queues */
    const char *secret;   /* that the broker wants to know; NULL: none */
    const char *storage;  /* of a NATS stream: "memory" or "file" */
    int settle_ms, timeout_s;
    pid_t pids[QUEUE_PIDS]; /* the broker's processes */
    int pid_count;
};

/* Reads the command line; on a mistake says which, and exits 2. */
void queue_options_parse(struct queue_options *options, int argc, char **argv);

#endif
