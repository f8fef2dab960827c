#include "options.h"

#include "flags.h"
#include "inflated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void set_path(void *options, const char *path);
static void set_pid(void *options, const char *pid);
static void set_subscribe_header(void *options, const char *line);
static void set_publish_header(void *options, const char *line);

#define AT(member) offsetof(struct options, member)

static const struct flag table[] = {
    {"host", FLAG_TEXT, AT(host), "ADDRESS", "of the server, IPv4 in dots (127.0.0.1)", NULL},
    {"port", FLAG_NUMBER, AT(port), "PORT", "of the server", NULL},
    {"publish-port", FLAG_NUMBER, AT(publish_port), "PORT", "where messages are published (--port)", NULL},
    {"subscribers", FLAG_NUMBER, AT(subscribers), "N", "event streams to open (100)", NULL},
    {"messages", FLAG_NUMBER, AT(messages), "N", "messages to publish and measure (10)", NULL},
    {"seconds", FLAG_REAL, AT(seconds), "N", "publish for so long instead, and measure all of that", NULL},
    {"warmup", FLAG_NUMBER, AT(warmup), "N", "messages before those, not measured (0)", NULL},
    {"publishers", FLAG_NUMBER, AT(publishers), "N", "connections that publish (1)", NULL},
    {"topics", FLAG_NUMBER, AT(topics), "N", "topics of the subscribers, shared out in turn (1)", NULL},
    {"message-topics", FLAG_NUMBER, AT(message_topics), "N",
     "the first N of them are published to, in turn (all)", NULL},
    {"size", FLAG_NUMBER, AT(size), "BYTES", "of a message (200)", NULL},
    {"warmup-size", FLAG_NUMBER, AT(warmup_size), "BYTES",
     "of a message before those that are measured (--size)", NULL},
    {"sync", FLAG_SWITCH, AT(sync), NULL, "publish the next only when all subscribers have the last", NULL},
    {"together", FLAG_NUMBER, AT(together), "N", "with --sync: N leave before all must have them (1)", NULL},
    {"pipeline", FLAG_SWITCH, AT(pipeline), NULL, "publish without waiting for answers", NULL},
    {"rate", FLAG_REAL, AT(rate), "N", "messages a second (as fast as they are answered)", NULL},
    {"stalled", FLAG_NUMBER, AT(stalled), "N", "subscribers, evenly among all, that never read (0)", NULL},
    {"receive-buffer", FLAG_NUMBER, AT(receive_buffer), "BYTES", "SO_RCVBUF of those (16384)", NULL},
    {"subscribe-path", FLAG_OWN, 0, "PATH", "repeatable: shared out in turn (/)", set_path},
    {"stalled-path", FLAG_TEXT, AT(stalled_path), "PATH", "of those that never read (--subscribe-path)", NULL},
    {"subscribe-body", FLAG_TEXT, AT(subscribe_body), "TEXT", "subscribe with a POST of this form", NULL},
    {"gzip", FLAG_SWITCH, AT(gzip), NULL, "subscribe to streams in gzip, and to no others", NULL},
    {"cable", FLAG_TEXT, AT(cable), "COMMAND", "subscribe with this command of Action Cable, over its WebSocket", NULL},
    {"speak", FLAG_SWITCH, AT(speak), NULL,
     "with --cable: the subscribers publish, in turn; a message is a command, --publish-prefix to --publish-suffix", NULL},
    {"publish-path", FLAG_TEXT, AT(publish_path), "PATH", "(/)", NULL},
    {"publish-prefix", FLAG_TEXT, AT(publish_prefix), "TEXT", "before the message, in the body", NULL},
    {"publish-suffix", FLAG_TEXT, AT(publish_suffix), "TEXT", "after the message, in the body", NULL},
    {"text-file", FLAG_TEXT, AT(text_file), "FILE",
     "line n is the text of message n, in turn, with {m} for its marker (filler)", NULL},
    {"warmup-prefix", FLAG_TEXT, AT(warmup_prefix), "TEXT",
     "of the warmup, which no reader is to get then (--publish-prefix)", NULL},
    {"method", FLAG_TEXT, AT(method), "NAME", "of the publishing request; GET measures any other route (POST)", NULL},
    {"subscribe-header", FLAG_OWN, 0, "LINE", "repeatable", set_subscribe_header},
    {"subscribe-header-file", FLAG_TEXT, AT(subscribe_header_file), "FILE",
     "line i is one more header of subscriber i", NULL},
    {"publish-header", FLAG_OWN, 0, "LINE", "repeatable", set_publish_header},
    {"pid", FLAG_OWN, 0, "PID", "a process of the server, for its CPU and memory; repeatable", set_pid},
    {"window", FLAG_NUMBER, AT(window), "N", "connections under way at once (256)", NULL},
    {"settle", FLAG_NUMBER, AT(settle_ms), "MS", "rest between connecting and publishing (300)", NULL},
    {"linger", FLAG_NUMBER, AT(linger_ms), "MS", "rest after publishing, before connections are closed (0)", NULL},
    {"timeout", FLAG_NUMBER, AT(timeout_s), "SECONDS", "for connecting, and again for publishing (60)", NULL},
};

static const struct flags flags = {
    .program = "load",
    .usage = "--port PORT [options]",
    .more = "In a path, body, command, prefix and suffix {t} is the number of the topic, {n} that of the subscriber or\n"
            "message. Prints one JSON object on standard output; on standard error \"connected\", \"publishing\" and\n"
            "\"published\" when it gets there, then the figures in words.\n",
    .all = table,
    .count = sizeof table / sizeof *table,
};

static void refuse(const char *why)
{
    flags_refuse(&flags, why);
}

static void add_line(char *lines, const char *line)
{
    size_t used = strlen(lines);
    int length = snprintf(lines + used, OPTIONS_TEXT - used, "%s\r\n", line);
    if (length < 0 || (size_t)length >= OPTIONS_TEXT - used) refuse("headers are too long");
}

static void set_subscribe_header(void *options, const char *line)
{
    add_line(((struct options *)options)->subscribe_headers, line);
}

static void set_publish_header(void *options, const char *line)
{
    add_line(((struct options *)options)->publish_headers, line);
}

static void set_path(void *options, const char *path)
{
    struct options *o = options;
    if (o->subscribe_path_count == OPTIONS_PATHS) refuse("too many --subscribe-path");
    o->subscribe_paths[o->subscribe_path_count++] = path;
}

static void set_pid(void *options, const char *pid)
{
    struct options *o = options;
    if (o->pid_count == OPTIONS_PIDS) refuse("too many --pid");
    o->pids[o->pid_count++] = (pid_t)atol(pid);
}

static void check(const struct options *o)
{
    if (o->port < 1 || o->port > 65535) refuse("--port must be 1 to 65535");
    if (o->subscribers < 0 || o->messages < 0 || o->warmup < 0) refuse("numbers cannot be negative");
    if (o->publishers < 1 || o->topics < 1 || o->window < 1) refuse("--publishers, --topics and --window start at 1");
    if (o->message_topics < 1 || o->message_topics > o->topics) refuse("--message-topics is 1 to --topics");
    if (o->size < 27 || o->size > 60000) refuse("--size must be 27 (the marker) to 60000");
    if (o->warmup_size < 27 || o->warmup_size > 60000) refuse("--warmup-size must be 27 (the marker) to 60000");
    if (o->stalled < 0 || o->stalled > o->subscribers) refuse("--stalled is 0 to --subscribers");
    if (o->pipeline && (o->sync || o->rate > 0)) refuse("--pipeline does not go with --sync or --rate");
    if (o->together < 1) refuse("--together starts at 1");
    if (o->speak && (!o->cable || o->pipeline)) refuse("--speak goes with --cable, and not with --pipeline");
    if (o->speak && o->subscribers < 1) refuse("--speak takes a subscriber");
    if (o->gzip && !inflated_available()) refuse("--gzip takes zlib, which this was compiled without: install zlib1g-dev");
    if (o->gzip && (o->cable || o->stalled)) refuse("--gzip does not go with --cable or --stalled");
    if (o->cable && (o->subscribe_body || o->stalled)) refuse("--cable does not go with --subscribe-body or --stalled");
    if (o->seconds > 0 && o->seconds > o->timeout_s / 2) refuse("--seconds is at most half of --timeout");
}

static void settle(struct options *o)
{
    if (!o->message_topics) o->message_topics = o->topics;
    if (!o->publish_port) o->publish_port = o->port;
    if (!o->warmup_size) o->warmup_size = o->size;
    if (!o->subscribe_path_count) set_path(o, "/");
}

void options_parse(struct options *options, int argc, char **argv)
{
    *options = (struct options){.host = "127.0.0.1",
                                .subscribers = 100,
                                .messages = 10,
                                .publishers = 1,
                                .topics = 1,
                                .size = 200,
                                .receive_buffer = 16384,
                                .window = 256,
                                .timeout_s = 60,
                                .settle_ms = 300,
                                .together = 1,
                                .method = "POST",
                                .publish_path = "/",
                                .publish_prefix = "",
                                .publish_suffix = ""};
    flags_parse(&flags, options, argc, argv);
    settle(options);
    check(options);
}
