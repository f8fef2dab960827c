#include "options.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: load --port PORT [options]\n"
    "\n"
    "  --subscribers N           event streams to open (100)\n"
    "  --messages N              messages to publish and measure (10)\n"
    "  --warmup N                messages before those, not measured (0)\n"
    "  --publishers N            connections that publish (1)\n"
    "  --topics N                topics, shared out in turn; {t} in a path or prefix is their number (1)\n"
    "  --size BYTES              of a message (200)\n"
    "  --sync                    publish the next only when all subscribers have the last\n"
    "  --rate N                  messages a second (as fast as they are answered)\n"
    "  --subscribe-path PATH     (/)\n"
    "  --publish-path PATH       (/)\n"
    "  --publish-prefix TEXT     before the message, in the body\n"
    "  --method NAME             of the publishing request; GET measures any other route (POST)\n"
    "  --subscribe-header LINE   repeatable\n"
    "  --publish-header LINE     repeatable\n"
    "  --pid PID                 a process of the server, for its CPU and memory; repeatable\n"
    "  --window N                connections under way at once (256)\n"
    "  --settle MS               rest between connecting and publishing (300)\n"
    "  --timeout SECONDS         for connecting, and again for publishing (60)\n"
    "\n"
    "Prints one JSON object on standard output; on standard error \"connected\" and \"publishing\" when it gets\n"
    "there, then the figures in words.\n";

enum {
    PORT = 1, SUBSCRIBERS, MESSAGES, WARMUP, PUBLISHERS, TOPICS, SIZE, SYNC, RATE, SUBSCRIBE_PATH, PUBLISH_PATH,
    PUBLISH_PREFIX, METHOD, SUBSCRIBE_HEADER, PUBLISH_HEADER, PID, WINDOW, SETTLE, TIMEOUT, HELP
};

static const struct option names[] = {
    {"port", required_argument, NULL, PORT},
    {"subscribers", required_argument, NULL, SUBSCRIBERS},
    {"messages", required_argument, NULL, MESSAGES},
    {"warmup", required_argument, NULL, WARMUP},
    {"publishers", required_argument, NULL, PUBLISHERS},
    {"topics", required_argument, NULL, TOPICS},
    {"size", required_argument, NULL, SIZE},
    {"sync", no_argument, NULL, SYNC},
    {"rate", required_argument, NULL, RATE},
    {"subscribe-path", required_argument, NULL, SUBSCRIBE_PATH},
    {"publish-path", required_argument, NULL, PUBLISH_PATH},
    {"publish-prefix", required_argument, NULL, PUBLISH_PREFIX},
    {"method", required_argument, NULL, METHOD},
    {"subscribe-header", required_argument, NULL, SUBSCRIBE_HEADER},
    {"publish-header", required_argument, NULL, PUBLISH_HEADER},
    {"pid", required_argument, NULL, PID},
    {"window", required_argument, NULL, WINDOW},
    {"settle", required_argument, NULL, SETTLE},
    {"timeout", required_argument, NULL, TIMEOUT},
    {"help", no_argument, NULL, HELP},
    {0},
};

static void refuse(const char *why)
{
    fprintf(stderr, "load: %s (see load --help)\n", why);
    exit(2);
}

static void add_header(char *headers, const char *line)
{
    size_t used = strlen(headers);
    int length = snprintf(headers + used, OPTIONS_TEXT - used, "%s\r\n", line);
    if (length < 0 || (size_t)length >= OPTIONS_TEXT - used) refuse("headers are too long");
}

static void add_pid(struct options *o, const char *pid)
{
    if (o->pid_count == OPTIONS_PIDS) refuse("too many --pid");
    o->pids[o->pid_count++] = (pid_t)atol(pid);
}

static void set(struct options *o, int name, const char *value)
{
    switch (name) {
    case PORT: o->port = atoi(value); break;
    case SUBSCRIBERS: o->subscribers = atoi(value); break;
    case MESSAGES: o->messages = atoi(value); break;
    case WARMUP: o->warmup = atoi(value); break;
    case PUBLISHERS: o->publishers = atoi(value); break;
    case TOPICS: o->topics = atoi(value); break;
    case SIZE: o->size = atoi(value); break;
    case SYNC: o->sync = true; break;
    case RATE: o->rate = atof(value); break;
    case SUBSCRIBE_PATH: o->subscribe_path = value; break;
    case PUBLISH_PATH: o->publish_path = value; break;
    case PUBLISH_PREFIX: o->publish_prefix = value; break;
    case METHOD: o->method = value; break;
    case SUBSCRIBE_HEADER: add_header(o->subscribe_headers, value); break;
    case PUBLISH_HEADER: add_header(o->publish_headers, value); break;
    case PID: add_pid(o, value); break;
    case WINDOW: o->window = atoi(value); break;
    case SETTLE: o->settle_ms = atoi(value); break;
    case TIMEOUT: o->timeout_s = atoi(value); break;
    case HELP: fputs(usage, stdout); exit(0);
    default: exit(2); /* getopt has said what is wrong */
    }
}

static void check(const struct options *o)
{
    if (o->port < 1 || o->port > 65535) refuse("--port must be 1 to 65535");
    if (o->subscribers < 0 || o->messages < 0 || o->warmup < 0) refuse("numbers cannot be negative");
    if (o->publishers < 1 || o->topics < 1 || o->window < 1) refuse("--publishers, --topics and --window start at 1");
    if (o->size < 27 || o->size > 60000) refuse("--size must be 27 (the marker) to 60000");
}

void options_parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.subscribers = 100,
                                .messages = 10,
                                .publishers = 1,
                                .topics = 1,
                                .size = 200,
                                .window = 256,
                                .timeout_s = 60,
                                .settle_ms = 300,
                                .method = "POST",
                                .subscribe_path = "/",
                                .publish_path = "/",
                                .publish_prefix = ""};
    int name;
    while ((name = getopt_long(argc, argv, "", names, NULL)) != -1) set(options, name, optarg);
    if (optind < argc) refuse("every option starts with --");
    check(options);
}

void options_expand(const struct options *options, const char *template, int index, char *out, size_t size)
{
    const char *at = strstr(template, "{t}");
    if (at)
        snprintf(out, size, "%.*s%d%s", (int)(at - template), template, index % options->topics, at + 3);
    else
        snprintf(out, size, "%s", template);
}
