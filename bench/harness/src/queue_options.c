#include "queue_options.h"

#include "dialect.h"
#include "flags.h"
#include "message.h"

#include <stdlib.h>
#include <string.h>

static void set_pid(void *options, const char *pid);
static void set_level(void *options, const char *level);

#define AT(member) offsetof(struct queue_options, member)

static const struct flag table[] = {
    {"dialect", FLAG_TEXT, AT(dialect), "NAME", "hikyaku, beanstalkd, redis, nats, amqp (hikyaku)", NULL},
    {"host", FLAG_TEXT, AT(host), "ADDRESS", "of the broker (127.0.0.1)", NULL},
    {"port", FLAG_NUMBER, AT(port), "PORT", "of the broker", NULL},
    {"senders", FLAG_NUMBER, AT(senders), "N", "connections that send (10)", NULL},
    {"receivers", FLAG_NUMBER, AT(receivers), "N", "connections that receive, each from one queue (10)", NULL},
    {"queues", FLAG_NUMBER, AT(queues), "N", "that are sent to in turn (as many as receivers)", NULL},
    {"messages", FLAG_NUMBER, AT(messages), "N", "to send and measure; with no senders: to receive (1000)", NULL},
    {"seconds", FLAG_REAL, AT(seconds), "S", "to send for, at most --messages (until all are sent)", NULL},
    {"sample", FLAG_NUMBER, AT(sample), "N", "keep one of N durations (1: all)", NULL},
    {"warmup", FLAG_NUMBER, AT(warmup), "N", "messages before those, not measured (0)", NULL},
    {"size", FLAG_NUMBER, AT(size), "BYTES", "of a message (100)", NULL},
    {"window", FLAG_NUMBER, AT(window), "N", "messages that a sender has under way (1)", NULL},
    {"credit", FLAG_NUMBER, AT(credit), "N", "messages that a receiver may have in hand (10 windows)", NULL},
    {"level", FLAG_OWN, 0, "LEVEL", "memory, written, synced (memory)", set_level},
    {"rate", FLAG_REAL, AT(rate), "N", "messages a second (as fast as they are acknowledged)", NULL},
    {"per-client", FLAG_SWITCH, AT(per_client), NULL, "hikyaku: to the receivers' own queues", NULL},
    {"ack-pushes", FLAG_SWITCH, AT(ack_pushes), NULL, "hikyaku: receivers answer each PUSH with an ACK", NULL},
    {"free-each", FLAG_SWITCH, AT(free_each), NULL, "hikyaku: one FREE for each message", NULL},
    {"prefix", FLAG_TEXT, AT(prefix), "TEXT", "of the names of queues (bench)", NULL},
    {"secret", FLAG_TEXT, AT(secret), "TEXT", "hikyaku: that clients are to know", NULL},
    {"storage", FLAG_TEXT, AT(storage), "KIND", "nats: of the stream, memory or file (file)", NULL},
    {"settle", FLAG_NUMBER, AT(settle_ms), "MS", "rest before and after (100)", NULL},
    {"timeout", FLAG_NUMBER, AT(timeout_s), "SECONDS", "for connecting, and again for the messages (60)", NULL},
    {"pid", FLAG_OWN, 0, "PID", "a process of the broker, for its CPU and memory; repeatable", set_pid},
};

static const struct flags flags = {
    .program = "queue_load",
    .usage = "--port PORT [options]",
    .more = "Prints one JSON object on standard output, and the figures in words on standard error.\n",
    .all = table,
    .count = sizeof table / sizeof *table,
};

static void refuse(const char *why)
{
    flags_refuse(&flags, why);
}

static void set_pid(void *options, const char *pid)
{
    struct queue_options *o = options;
    if (o->pid_count == QUEUE_PIDS) refuse("too many --pid");
    o->pids[o->pid_count++] = (pid_t)atol(pid);
}

static void set_level(void *options, const char *level)
{
    static const char *const names[] = {"memory", "written", "synced"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(level, names[i])) continue;
        ((struct queue_options *)options)->level = i;
        return;
    }
    refuse("--level is memory, written or synced");
}

static void check(const struct queue_options *o)
{
    if (o->port < 1 || o->port > 65535) refuse("--port must be 1 to 65535");
    if (!dialect_named(o->dialect)) refuse("there is no such --dialect");
    if (o->senders < 0 || o->receivers < 0 || o->senders + o->receivers < 1)
        refuse("nobody sends, and nobody receives");
    if (o->seconds < 0 || o->seconds > QUEUE_SECONDS) refuse("--seconds is 0 to 3600");
    if (o->seconds > 0 && !o->senders) refuse("--seconds needs senders");
    if (o->sample < 1) refuse("--sample starts at 1");
    if (o->messages < 1 || o->warmup < 0) refuse("--messages starts at 1, --warmup at 0");
    if (o->queues < 1 || o->queues < o->receivers) refuse("--queues starts at 1, and at --receivers");
    if (o->window < 1 || o->window > 65536 || o->credit < 1) refuse("--window is 1 to 65536, --credit starts at 1");
    if (o->size < (int)MESSAGE_BYTES || o->size > 1000000) refuse("--size must be 24 (the stamp) to 1000000");
    if (strlen(o->prefix) > QUEUE_TEXT / 2) refuse("--prefix is too long");
    if (o->senders == 0 && o->warmup > 0) refuse("--warmup needs senders");
}

void queue_options_parse(struct queue_options *options, int argc, char **argv)
{
    *options = (struct queue_options){.dialect = "hikyaku",
                                      .host = "127.0.0.1",
                                      .senders = 10,
                                      .receivers = 10,
                                      .messages = 1000,
                                      .size = 100,
                                      .window = 1,
                                      .sample = 1,
                                      .prefix = "bench",
                                      .storage = "file",
                                      .settle_ms = 100,
                                      .timeout_s = 60};
    flags_parse(&flags, options, argc, argv);
    if (!options->queues) options->queues = options->receivers ? options->receivers : 10;
    if (!options->credit) options->credit = 10 * options->window;
    check(options);
}
