/* queue_load.h: the clients of the load generator for brokers, and the dialects that they speak.
 *
 *     sender    fills its window, with the queues in turn, whenever acknowledgements have made room
 *     receiver  takes messages, checks them, and acknowledges them */
#ifndef QUEUE_LOAD_H
#define QUEUE_LOAD_H

#include "wire.h"

enum { QUEUE_TEXT = 255, QUEUE_SECONDS = 3600 };

struct options {
    const char *dialect, *host;
    int port, senders, receivers;
    int queues; /* defaults to receivers; sender and message select one, in turn */
    int messages, warmup, size;
    int window; /* unacknowledged messages of a sender */
    int credit; /* messages that a receiver may hold */
    int level;  /* 0 memory, 1 written, 2 synced */
    double seconds, rate;
    int sample;                               /* one of so many durations is kept */
    bool per_client, ack_pushes, free_each;   /* hikyaku */
    const char *prefix, *secret, *storage;    /* of queue names; hikyaku; nats */
    int settle_ms, timeout_s;
    struct processes server;
};

extern struct options options;

/* The beginning of a message, whatever broker carries it. The rest is filler. */
struct message {
    uint64_t magic;
    int64_t sent_ns;
    uint32_t number; /* unique among all senders */
    uint32_t queue;
};

struct client {
    struct wire wire; /* first: the loop hands it back */
    int index;        /* among the senders, or among the receivers: the receiver's queue */
    bool receives, ready;
    long sent, answered, quota, oldest; /* of a sender: messages; the first that is not acknowledged */
    int64_t *stamps;                    /* send times of a sender's messages: message n at n modulo the ring */
    uint64_t serial;                    /* free for the dialect, as the next two */
    long count;
    int state;
};

struct dialect {
    const char *name;
    void (*greet)(struct client *client); /* calls client_ready when the connection has what it needs */
    void (*send)(struct client *client, const struct message *message);
    size_t (*take)(struct client *client, char *bytes, size_t length); /* length of the first reply; 0: incomplete */
    void (*settle)(struct client *client);                             /* after each read; may be NULL */
};

extern const struct dialect dialects[];
extern const int dialect_count;

void client_ready(struct client *client);
/* So many messages of the sender are acknowledged, from its `first` (from 0). */
void client_answered(struct client *client, long first, long count);
void client_answered_next(struct client *client); /* the oldest */
void client_answered_up_to(struct client *client, long last);
void client_received(struct client *client, const char *bytes, size_t length);
void client_freed(long count); /* so many messages are done */

#endif
