/* dialect.h: how one speaks to one kind of broker. A file dialect_NAME.c has each; what a message costs on the wire
 * is said there. */
#ifndef BENCH_DIALECT_H
#define BENCH_DIALECT_H

#include "clients.h"
#include "message.h"

#include <stddef.h>

struct dialect {
    const char *name;

    /* The first words of a connection; clients_ready is called when it has what it needs. */
    void (*greet)(struct client *client);

    /* Gathers one message to client->options->prefix and message->queue. */
    void (*send)(struct client *client, const struct message *message);

    /* Understands the first reply of what has come. Its length, or 0 while it is not all there. */
    size_t (*take)(struct client *client, char *bytes, size_t length);

    /* After all that one read has brought; may be NULL. */
    void (*settle)(struct client *client);
};

extern const struct dialect dialect_hikyaku, dialect_beanstalkd, dialect_redis, dialect_nats, dialect_amqp;

/* NULL: there is none. */
const struct dialect *dialect_named(const char *name);

#endif
