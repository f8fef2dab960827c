/* clients.h: those who send to a broker and those who receive from it, whatever its dialect.
 *
 *     sender    fills its window, with the queues in turn, whenever answers have made room
 *     receiver  takes what it gets, sees that it is right, and frees it */
#ifndef BENCH_CLIENTS_H
#define BENCH_CLIENTS_H

#include "queue_options.h"
#include "samples.h"
#include "wire.h"

#include <stdbool.h>
#include <stdint.h>

struct client {
    struct wire wire; /* first: the loop hands it back */
    const struct queue_options *options;
    int index; /* among the senders, or among the receivers: of its queue */
    bool receives, ready;

    /* A sender's. */
    long sent, answered, quota; /* messages of this connection */
    long oldest;                /* the first that is not answered */
    int64_t *stamps;            /* when those under way were sent: message n at n modulo the ring */

    /* Free for the dialect: a number of a delivery, how many are not settled, what comes next. */
    uint64_t serial;
    long count;
    int state;
};

struct clients_tally {
    int ready;
    long sent, answered, received, freed;
    long misdirected, wrong;   /* messages of another queue; that came before, or are none of this run */
    int64_t ready_ns;          /* when the first client was ready */
    int64_t first_ns, last_ns; /* when the first and the last message were received */
    struct samples answer, latency;
};

extern struct clients_tally clients_tally;

/* Connects them all, receivers first. False when time is up. */
bool clients_open(const struct queue_options *options);

/* From now on `count` messages, numbered from `first`, are to be sent, and each is expected once; the count begins
 * anew. */
void clients_begin(long first, long count);

/* Sends what windows and, with a rate, the time allow. */
void clients_send(void);

/* Sends no more: what was sent is what is expected. */
void clients_stop(void);

/* Messages that were expected and did not come. */
long clients_lost(void);

/* --- what a dialect says ------------------------------------------------------------------------------------------ */

/* Nothing more is needed before messages can come and go. */
void clients_ready(struct client *client);

/* So many of a sender's messages are acknowledged, beginning with its `first` (from 0). */
void clients_answered(struct client *client, long first, long count);

/* The oldest is: for brokers that answer in order. */
void clients_answered_next(struct client *client);

/* All up to this one are that were not yet. */
void clients_answered_up_to(struct client *client, long last);

/* A receiver has got a message. */
void clients_received(struct client *client, const char *bytes, size_t length);

/* So many messages are done with. */
void clients_freed(long count);

#endif
