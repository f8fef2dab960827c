/* load: opens N event streams to one server, publishes M messages to it over HTTP, and measures the server's CPU and
 * the latency of the messages. With --subscribers 0 it measures any route by its responses. */
#include "load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BURST = 64 }; /* requests between two looks at the sockets */

struct options options = {.host = "127.0.0.1", .subscribers = 100, .messages = 10, .publishers = 1, .topics = 1, .size = 200,
                          .receive_buffer = 16384, .window = 256, .timeout_s = 60, .settle_ms = 300, .together = 1, .method = "POST",
                          .coding = "", .publish_path = "/", .publish_prefix = "", .publish_suffix = ""};

/* --- options ------------------------------------------------------------------------------------------------------ */

static void add_line(char *lines, const char *line)
{
    size_t used = strlen(lines);
    int length = snprintf(lines + used, LOAD_TEXT - used, "%s\r\n", line);
    if (length < 0 || (size_t)length >= LOAD_TEXT - used) flags_refuse("headers are too long");
}

static void set_subscribe_header(void *given, const char *line)
{
    add_line(((struct options *)given)->subscribe_headers, line);
}

static void set_publish_header(void *given, const char *line)
{
    add_line(((struct options *)given)->publish_headers, line);
}

static void set_path(void *given, const char *path)
{
    struct options *o = given;
    if (o->subscribe_path_count == LOAD_PATHS) flags_refuse("too many --subscribe-path");
    o->subscribe_paths[o->subscribe_path_count++] = path;
}

/* In texts {t} is the topic's number, {n} that of the subscriber or message. */
static const struct flag table[] = {
    TEXT("host", host, "ADDRESS", "IPv4 address of the server (127.0.0.1)"),
    NUMBER("port", port, "PORT", "of the server"),
    NUMBER("publish-port", publish_port, "PORT", "for publishing (--port)"),
    NUMBER("subscribers", subscribers, "N", "event streams to open (100)"),
    NUMBER("messages", messages, "N", "measured messages (10)"),
    REAL("seconds", seconds, "N", "publish for so long instead"),
    NUMBER("warmup", warmup, "N", "messages before those, not measured (0)"),
    REAL("warmup-seconds", warmup_seconds, "N", "publish for so long before, not measured"),
    NUMBER("publishers", publishers, "N", "connections that publish (1)"),
    NUMBER("topics", topics, "N", "topics, which the subscribers share in turn (1)"),
    NUMBER("message-topics", message_topics, "N", "publish to the first N of them, in turn (all)"),
    NUMBER("size", size, "BYTES", "of a message (200)"),
    NUMBER("warmup-size", warmup_size, "BYTES", "of a warm-up message (--size)"),
    SWITCH("sync", sync, "publish the next only when all subscribers have the last"),
    NUMBER("together", together, "N", "with --sync: publish N before all must have them (1)"),
    SWITCH("pipeline", pipeline, "publish without waiting for responses"),
    REAL("rate", rate, "N", "messages a second (as fast as they are answered)"),
    NUMBER("stalled", stalled, "N", "subscribers that never read, spread among all (0)"),
    NUMBER("receive-buffer", receive_buffer, "BYTES", "SO_RCVBUF of those (16384)"),
    {"subscribe-path", FLAG_OWN, 0, "PATH", "repeatable: subscribers take them in turn (/)", set_path},
    TEXT("stalled-path", stalled_path, "PATH", "of those that never read (--subscribe-path)"),
    TEXT("subscribe-body", subscribe_body, "TEXT", "subscribe with a POST of this form"),
    SWITCH("gzip", gzip, "accept event streams in gzip only"),
    TEXT("cable", cable, "COMMAND", "subscribe with this command of Action Cable, over its WebSocket"),
    SWITCH("speak", speak, "with --cable: the subscribers publish in turn; prefix, message and suffix are a command"),
    TEXT("publish-path", publish_path, "PATH", "(/)"),
    TEXT("publish-prefix", publish_prefix, "TEXT", "before the message, in the body"),
    TEXT("publish-suffix", publish_suffix, "TEXT", "after the message, in the body"),
    TEXT("text-file", text_file, "FILE", "line n is the text of message n, in turn, with {m} for its marker (filler)"),
    TEXT("warmup-prefix", warmup_prefix, "TEXT", "instead of --publish-prefix; no reader receives the warm-up then"),
    TEXT("method", method, "NAME", "of the publishing request; GET measures any route (POST)"),
    SWITCH("same", same, "each response must be 200 and have the body of the first, and --coding"),
    TEXT("coding", coding, "NAME", "with --same: the Content-Encoding (none)"),
    {"subscribe-header", FLAG_OWN, 0, "LINE", "repeatable", set_subscribe_header},
    TEXT("subscribe-header-file", subscribe_header_file, "FILE", "line i is one more header of subscriber i"),
    {"publish-header", FLAG_OWN, 0, "LINE", "repeatable", set_publish_header},
    PIDS(server),
    NUMBER("window", window, "N", "connections being opened at once (256)"),
    NUMBER("settle", settle_ms, "MS", "rest between connecting and publishing (300)"),
    NUMBER("linger", linger_ms, "MS", "rest after publishing, before connections are closed (0)"),
    NUMBER("timeout", timeout_s, "SECONDS", "for connecting, and again for publishing (60)"),
};

static void read_options(int argc, char **argv)
{
    struct options *o = &options;
    flags_parse("load", table, sizeof table / sizeof *table, o, argc, argv);
    if (!o->message_topics) o->message_topics = o->topics;
    if (!o->publish_port) o->publish_port = o->port;
    if (!o->warmup_size) o->warmup_size = o->size;
    if (!o->subscribe_path_count) set_path(o, "/");
    if (o->port < 1 || o->port > 65535) flags_refuse("--port must be 1 to 65535");
    if (o->subscribers < 0 || o->messages < 0 || o->warmup < 0) flags_refuse("numbers cannot be negative");
    if (o->publishers < 1 || o->topics < 1 || o->window < 1) flags_refuse("--publishers, --topics and --window start at 1");
    if (o->message_topics < 1 || o->message_topics > o->topics) flags_refuse("--message-topics is 1 to --topics");
    if (o->size < MARKER_BYTES || o->size > 60000) flags_refuse("--size must be 27 (the marker) to 60000");
    if (o->warmup_size < MARKER_BYTES || o->warmup_size > 60000) flags_refuse("--warmup-size must be 27 (the marker) to 60000");
    if (o->stalled < 0 || o->stalled > o->subscribers) flags_refuse("--stalled is 0 to --subscribers");
    if (o->pipeline && (o->sync || o->rate > 0 || o->same)) flags_refuse("--pipeline does not go with --sync, --rate or --same");
    if (o->together < 1) flags_refuse("--together starts at 1");
    if (o->speak && (!o->cable || o->pipeline)) flags_refuse("--speak goes with --cable, and not with --pipeline");
    if (o->speak && o->subscribers < 1) flags_refuse("--speak takes a subscriber");
    if (o->gzip && (o->cable || o->stalled)) flags_refuse("--gzip does not go with --cable or --stalled");
    if (o->cable && (o->subscribe_body || o->stalled)) flags_refuse("--cable does not go with --subscribe-body or --stalled");
    if (o->seconds > 0 && o->seconds > o->timeout_s / 2) flags_refuse("--seconds is at most half of --timeout");
}

/* --- phases ------------------------------------------------------------------------------------------------------- */

struct phase {
    struct usage before, after;
    double seconds;                          /* connecting */
    int64_t bytes_in, bytes_out;             /* connecting, without headers of the network */
    int messages;                            /* published */
    long expected;                           /* deliveries */
    double delivery_seconds, answer_seconds; /* from the first publish to the last delivery, the last response */
};

/* Another program reads the phases to know when each begins. */
static void say(const char *phase)
{
    fprintf(stderr, "%s\n", phase);
    fflush(stderr);
}

static void rest(int milliseconds)
{
    for (int64_t end = clock_ns() + milliseconds * 1000000LL; clock_ns() < end;) loop_run_once(10);
}

static struct phase connect_phase(void)
{
    struct phase phase = {.before = usage_of(&options.server)};
    int64_t start = clock_ns();
    if (!subscribers_open()) fprintf(stderr, "time is up: not all subscribers are connected\n");
    phase.seconds = (double)(clock_ns() - start) / 1e9;
    phase.bytes_in = subscribers_tally.bytes;
    phase.bytes_out = subscribers_tally.bytes_out;
    say("connected");
    rest(options.settle_ms);
    phase.after = usage_of(&options.server);
    return phase;
}

static bool all_received(const struct phase *phase)
{
    return subscribers_tally.delivered >= phase->expected && publishers_waiting() == 0;
}

static bool may_send(const struct phase *phase, int sent, int64_t start)
{
    bool due = options.rate == 0 || (double)(clock_ns() - start) / 1e9 * options.rate >= sent;
    return due && (!options.sync || sent % options.together != 0 || all_received(phase));
}

/* Sends what may be sent now, and returns how many messages. */
static int publish_some(struct phase *phase, int first, int count, int sent_before, int64_t start)
{
    int sent = 0;
    while (sent < count && sent < BURST && may_send(phase, sent_before + sent, start) && publishers_send(first + sent)) {
        if (!options.warmup_prefix || first + sent >= options.warmup) phase->expected += subscribers_expect(first + sent);
        sent++;
    }
    if (options.pipeline) publishers_flush();
    return sent;
}

/* Publishes `count` messages, numbered from `first`, or for so many seconds, until all are delivered and answered. */
static struct phase publish_phase(int first, int count, double seconds)
{
    subscribers_reset(first);
    publishers_reset();
    struct phase phase = {.before = usage_of(&options.server)};
    int64_t start = clock_ns(), deadline = start + options.timeout_s * 1000000000LL, stop = start + (int64_t)(seconds * 1e9);
    long dead = subscribers_tally.dead;
    int sent = 0;
    if (seconds > 0) count = INT32_MAX - first;
    while (sent < count || !all_received(&phase)) {
        if (clock_ns() > deadline || subscribers_tally.dead > dead) {
            fprintf(stderr, "%s: not all messages are delivered\n", subscribers_tally.dead > dead ? "a stream ended" : "time is up");
            break;
        }
        if (seconds > 0 && clock_ns() > stop) count = sent;
        int now = publish_some(&phase, first + sent, count - sent, sent, start);
        sent += now;
        loop_run_once(now == BURST ? 0 : options.rate > 0 && sent < count ? 1 : 100);
    }
    phase.messages = sent;
    phase.delivery_seconds = (double)(subscribers_tally.last_ns - start) / 1e9;
    phase.answer_seconds = (double)(publishers_tally.last_ns - start) / 1e9;
    phase.after = usage_of(&options.server);
    return phase;
}

/* --- figures ------------------------------------------------------------------------------------------------------ */

static double cpu_us(const struct phase *phase)
{
    return (double)(phase->after.cpu_ns - phase->before.cpu_ns) / 1e3;
}

/* The shares of a core that the server and the load used. */
static void print_busy(const struct phase *phase, double seconds)
{
    json_number(stdout, "server_busy", per(cpu_us(phase) / 1e6, seconds));
    printf("\"load_busy\": %.4f", per((double)(phase->after.own_ns - phase->before.own_ns) / 1e9, seconds));
}

static void print_json(const struct phase *connect, const struct phase *publish, struct usage warm, long wrong)
{
    const struct subscribers_tally *got = &subscribers_tally;
    const struct publishers_tally *put = &publishers_tally;
    FILE *out = stdout;
    double ready = (double)got->ready, accepted = (double)put->accepted, delivered = (double)got->delivered;
    printf("{");
    json_count(out, "subscribers", got->ready);
    json_count(out, "dead", got->dead);
    json_count(out, "stalled", got->stalled);
    json_count(out, "messages", publish->messages);
    json_count(out, "publishers", options.publishers);
    json_count(out, "topics", options.topics);
    json_count(out, "message_bytes", options.size);
    printf("\"sync\": %s, \"memory\": {", options.sync ? "true" : "false");
    json_number(out, "rss_kb", (double)publish->after.rss_bytes / 1024);
    json_number(out, "rss_growth_kb", (double)(publish->after.rss_bytes - warm.rss_bytes) / 1024);
    printf("\"tcp_growth_kb\": %.4f}, \"connect\": {", (double)(publish->after.tcp_bytes - warm.tcp_bytes) / 1024);
    json_number(out, "seconds", connect->seconds);
    json_number(out, "per_second", per(ready, connect->seconds));
    json_number(out, "cpu_us_each", per(cpu_us(connect), ready));
    json_number(out, "rss_kb_each", per((double)(connect->after.rss_bytes - connect->before.rss_bytes) / 1024, ready));
    json_number(out, "bytes_in_each", per((double)connect->bytes_in, ready));
    json_number(out, "bytes_out_each", per((double)connect->bytes_out, ready));
    print_busy(connect, connect->seconds);
    printf("}, \"publish\": {");
    json_count(out, "accepted", put->accepted);
    json_count(out, "refused", put->refused);
    json_count(out, "unanswered", publishers_waiting());
    if (options.same) {
        json_count(out, "wrong", put->wrong);
        json_count(out, "connects", put->connects);
        json_count(out, "body_bytes", (long)put->body_bytes);
        json_number(out, "bytes_each", per((double)put->bytes, accepted));
        json_number(out, "seconds", publish->answer_seconds);
    }
    json_number(out, "per_second", per(accepted, publish->answer_seconds));
    json_number(out, "cpu_us_each", per(cpu_us(publish), accepted));
    print_busy(publish, publish->answer_seconds > publish->delivery_seconds ? publish->answer_seconds : publish->delivery_seconds);
    printf(", \"answer_ms\": ");
    samples_print_json(&publishers_tally.answer, out);
    printf("}, \"delivery\": {");
    json_count(out, "expected", publish->expected);
    json_count(out, "delivered", got->delivered);
    json_count(out, "lost", publish->expected - got->delivered);
    json_count(out, "misdirected", got->misdirected);
    json_count(out, "wrong", wrong);
    json_number(out, "seconds", publish->delivery_seconds);
    json_number(out, "per_second", per(delivered, publish->delivery_seconds));
    json_number(out, "bytes_each", per((double)got->bytes, delivered));
    json_number(out, "cpu_us_each", per(cpu_us(publish), delivered));
    printf("\"latency_ms\": ");
    samples_print_json(&subscribers_tally.latency, out);
    printf("}}\n");
}

static bool is_whole(const struct phase *publish, long wrong)
{
    const struct subscribers_tally *got = &subscribers_tally;
    return got->ready == options.subscribers && got->dead == 0 && got->delivered == publish->expected && got->misdirected == 0 &&
           wrong == 0 && publishers_tally.refused == 0 && publishers_tally.wrong == 0 && publishers_waiting() == 0 &&
           (!options.same || publishers_tally.accepted > 0);
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    net_set_host(options.host);
    /* A server that neither answers nor closes must not block the benchmark for ever. */
    alarm((unsigned)(4 * options.timeout_s + (2 * options.settle_ms + options.linger_ms) / 1000 + 60));
    net_raise_file_limit();
    loop_open();

    struct phase connect = connect_phase();
    publishers_open();
    rest(options.settle_ms);
    struct phase warmup = publish_phase(0, options.warmup, options.warmup_seconds);
    say("publishing");
    struct phase publish = publish_phase(warmup.messages, options.messages, options.seconds);
    say("published");
    long wrong = subscribers_wrong();
    rest(options.linger_ms);
    print_json(&connect, &publish, warmup.before, wrong);
    return is_whole(&publish, wrong) ? 0 : 1;
}
