/* queue_load: S senders and R receivers at one broker, from one thread.
 *
 *     sender ── SEND ──► broker ── PUSH ──► receiver       queues in turn; each receiver has a queue
 *            ◄── ACK ──         ◄── FREE ──
 *
 * Without receivers the messages stay in the broker; without senders the waiting messages are received. */
#include "queue_load.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWERED = 0 };     /* in place of a stamp */
enum { TICK_NS = 100000 }; /* with a rate: the messages of a tick leave together, from the senders in turn */
#define MESSAGE_MAGIC UINT64_C(0x6d6573736167655f)

struct options options = {.dialect = "hikyaku", .host = "127.0.0.1", .senders = 10, .receivers = 10, .messages = 1000, .size = 100,
                          .window = 1, .sample = 1, .prefix = "bench", .storage = "file", .settle_ms = 100, .timeout_s = 60};

/* --- options ------------------------------------------------------------------------------------------------------ */

static const struct dialect *dialect;

static void set_level(void *given, const char *level)
{
    static const char *const names[] = {"memory", "written", "synced"};
    int found = -1;
    for (int i = 0; i < 3; i++)
        if (strcmp(level, names[i]) == 0) found = i;
    if (found < 0) flags_refuse("--level is memory, written or synced");
    ((struct options *)given)->level = found;
}

static const struct flag table[] = {
    TEXT("dialect", dialect, "NAME", "hikyaku, beanstalkd, redis, nats, amqp (hikyaku)"),
    TEXT("host", host, "ADDRESS", "of the broker (127.0.0.1)"),
    NUMBER("port", port, "PORT", "of the broker"),
    NUMBER("senders", senders, "N", "connections that send (10)"),
    NUMBER("receivers", receivers, "N", "connections that receive, each from one queue (10)"),
    NUMBER("queues", queues, "N", "queues, used in turn (as many as receivers)"),
    NUMBER("messages", messages, "N", "measured messages; without senders: to receive (1000)"),
    REAL("seconds", seconds, "S", "send for so long, at most --messages"),
    NUMBER("sample", sample, "N", "keep one of N durations (1)"),
    NUMBER("warmup", warmup, "N", "messages before those, not measured (0)"),
    NUMBER("size", size, "BYTES", "of a message (100)"),
    NUMBER("window", window, "N", "unacknowledged messages of a sender (1)"),
    NUMBER("credit", credit, "N", "messages that a receiver may hold (10 windows)"),
    {"level", FLAG_OWN, 0, "LEVEL", "memory, written, synced (memory)", set_level},
    REAL("rate", rate, "N", "messages a second (as fast as they are acknowledged)"),
    SWITCH("per-client", per_client, "hikyaku: to the receivers' own queues"),
    SWITCH("ack-pushes", ack_pushes, "hikyaku: receivers send an ACK for each PUSH"),
    SWITCH("free-each", free_each, "hikyaku: one FREE for each message"),
    TEXT("prefix", prefix, "TEXT", "of the names of queues (bench)"),
    TEXT("secret", secret, "TEXT", "hikyaku: of the clients"),
    TEXT("storage", storage, "KIND", "nats: of the stream, memory or file (file)"),
    NUMBER("settle", settle_ms, "MS", "rest before the messages (100)"),
    NUMBER("timeout", timeout_s, "SECONDS", "for connecting, and again for the messages (60)"),
    PIDS(server),
};

static void read_options(int argc, char **argv)
{
    struct options *o = &options;
    flags_parse("queue_load", table, sizeof table / sizeof *table, o, argc, argv);
    if (!o->queues) o->queues = o->receivers ? o->receivers : 10;
    if (!o->credit) o->credit = 10 * o->window;
    for (int i = 0; i < dialect_count; i++)
        if (strcmp(dialects[i].name, o->dialect) == 0) dialect = &dialects[i];
    if (o->port < 1 || o->port > 65535) flags_refuse("--port must be 1 to 65535");
    if (!dialect) flags_refuse("there is no such --dialect");
    if (o->senders < 0 || o->receivers < 0 || o->senders + o->receivers < 1) flags_refuse("there is neither a sender nor a receiver");
    if (o->seconds < 0 || o->seconds > QUEUE_SECONDS) flags_refuse("--seconds is 0 to 3600");
    if (!o->senders && (o->seconds > 0 || o->warmup > 0)) flags_refuse("--seconds and --warmup need senders");
    if (o->messages < 1 || o->warmup < 0 || o->sample < 1) flags_refuse("--messages and --sample start at 1, --warmup at 0");
    if (o->queues < 1 || o->queues < o->receivers) flags_refuse("--queues starts at 1, and at --receivers");
    if (o->window < 1 || o->window > 65536 || o->credit < 1) flags_refuse("--window is 1 to 65536, --credit starts at 1");
    if (o->size < (int)sizeof(struct message) || o->size > 1000000) flags_refuse("--size must be 24 (the stamp) to 1000000");
    if (strlen(o->prefix) > QUEUE_TEXT / 2) flags_refuse("--prefix is too long");
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

static struct {
    int ready;
    long sent, answered, received, freed, misdirected, wrong;
    int64_t ready_ns, first_ns, last_ns; /* the first client was ready; the first and last message were received */
    struct samples answer, latency;
} tally;

static struct {
    long first, count, next; /* numbers of messages */
    int64_t started_ns;
    int turn;            /* the sender whose turn it is, with a rate */
    unsigned char *seen; /* how often each was received */
} run;

static struct client *senders, *receivers;
static unsigned ring; /* of a sender's stamps: a power of two, at least twice the window */

void client_ready(struct client *client)
{
    if (!client->ready && tally.ready++ == 0) tally.ready_ns = clock_ns();
    client->ready = true;
}

static int64_t *stamp_of(struct client *client, long number)
{
    return &client->stamps[(unsigned long)number & (ring - 1)];
}

void client_answered(struct client *client, long first, long count)
{
    for (long number = first; number < first + count; number++) {
        int64_t *stamp = stamp_of(client, number);
        if (number < client->oldest || number >= client->sent || *stamp == ANSWERED)
            wire_fail(dialect->name, "an answer to what was not sent", 30);
        if (tally.answered++ % options.sample == 0) samples_add(&tally.answer, wire_read_ns - *stamp);
        *stamp = ANSWERED;
        client->answered++;
        while (client->oldest < client->sent && *stamp_of(client, client->oldest) == ANSWERED) client->oldest++;
    }
}

void client_answered_next(struct client *client)
{
    client_answered(client, client->oldest, 1);
}

void client_answered_up_to(struct client *client, long last)
{
    for (long number = client->oldest; number <= last; number++)
        if (*stamp_of(client, number) != ANSWERED) client_answered(client, number, 1);
}

void client_freed(long count)
{
    tally.freed += count;
}

void client_received(struct client *client, const char *bytes, size_t length)
{
    struct message message = {0};
    if (length >= sizeof message) memcpy(&message, bytes, sizeof message);
    if (length != (size_t)options.size || message.magic != MESSAGE_MAGIC) wire_fail("not a message of this run", bytes, length);
    long at = (long)message.number - run.first;
    if (at < 0 || at >= run.count || run.seen[at]++) {
        tally.wrong++;
        return;
    }
    if (message.queue != (uint32_t)client->index) tally.misdirected++;
    if (tally.received % options.sample == 0) samples_add(&tally.latency, wire_read_ns - message.sent_ns);
    if (tally.received++ == 0) tally.first_ns = wire_read_ns;
    tally.last_ns = wire_read_ns;
}

/* Answers may arrive in any order: the oldest missing one must stay in the ring. */
static bool has_room(const struct client *sender)
{
    return sender->sent - sender->answered < options.window && sender->sent - sender->oldest < (long)ring;
}

static void send_some(struct client *sender, long most, int64_t stamp)
{
    while (most-- > 0 && has_room(sender) && sender->sent < sender->quota) {
        struct message message = {.magic = MESSAGE_MAGIC, .sent_ns = stamp, .number = (uint32_t)run.next++};
        message.queue = (uint32_t)((sender->index + sender->sent) % options.queues);
        *stamp_of(sender, sender->sent++) = stamp;
        tally.sent++;
        dialect->send(sender, &message);
    }
}

/* With a rate a message is stamped with the tick at which it was due: waiting for the load is latency, too. */
static void send_allowed(void)
{
    int64_t now = clock_ns(), tick = now - (now - run.started_ns) % TICK_NS;
    long due = options.rate > 0 ? (long)((double)(tick - run.started_ns) / 1e9 * options.rate) : 0;
    if (due > run.count) due = run.count;
    for (int i = 0; i < options.senders && (options.rate <= 0 || tally.sent < due); i++) {
        if (options.rate <= 0) send_some(&senders[i], options.window, now);
        else send_some(&senders[run.turn], due - tally.sent, tick);
        if (options.rate > 0) run.turn = (run.turn + 1) % options.senders;
    }
    wires_flush();
}

static size_t take(struct wire *wire, char *bytes, size_t length)
{
    return dialect->take((struct client *)wire, bytes, length);
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct client *client = (struct client *)connection;
    if (!wire_serve(&client->wire, events, take)) wire_fail(dialect->name, "the broker has closed a connection", 34);
    if (dialect->settle) dialect->settle(client);
}

static void turn(int timeout_ms)
{
    loop_run_once(timeout_ms);
    wires_flush();
}

static bool open_clients(struct client *all, int count, bool receives, int64_t deadline)
{
    int before = tally.ready;
    for (int i = 0; i < count; i++) {
        all[i] = (struct client){.index = i, .receives = receives};
        if (!receives && !(all[i].stamps = calloc(ring, sizeof *all[i].stamps))) fail("stamps");
        wire_open(&all[i].wire, net_connect(options.host, options.port), on_ready);
        dialect->greet(&all[i]);
    }
    wires_flush();
    while (tally.ready < before + count) {
        if (clock_ns() > deadline) return false;
        turn(100);
    }
    return true;
}

/* --- phases ------------------------------------------------------------------------------------------------------- */

static struct usage idle, before, after;
static long done_each_second[QUEUE_SECONDS];
static int whole_seconds;

/* Begins a new count of `count` messages, numbered from `first`. */
static void begin(long first, long count)
{
    samples_clear(&tally.answer);
    samples_clear(&tally.latency);
    tally.sent = tally.answered = tally.received = tally.freed = tally.misdirected = tally.wrong = 0;
    free(run.seen);
    run.first = run.next = first;
    run.count = count;
    run.started_ns = tally.last_ns = clock_ns();
    if (!(run.seen = calloc((size_t)count + 1, 1))) fail("messages");
    for (int i = 0; i < options.senders; i++)
        senders[i].quota = senders[i].sent + count / options.senders + (i < count % options.senders);
}

static bool open_all(void)
{
    for (ring = 2; ring < 2 * (unsigned)options.window;) ring *= 2;
    senders = calloc((size_t)options.senders + 1, sizeof *senders);
    receivers = calloc((size_t)options.receivers + 1, sizeof *receivers);
    if (!senders || !receivers) fail("clients");
    int64_t deadline = clock_ns() + options.timeout_s * 1000000000LL;
    begin(0, options.senders ? 0 : options.messages); /* without senders the waiting messages arrive at once */
    return open_clients(receivers, options.receivers, true, deadline) && open_clients(senders, options.senders, false, deadline);
}

static long done(void)
{
    return options.receivers ? tally.freed : tally.answered;
}

static bool all_done(long count)
{
    return (options.senders == 0 || tally.answered == count) && (options.receivers == 0 || tally.freed >= count);
}

/* Sends what is to be sent, and waits until it is acknowledged and freed. */
static void exchange(long count)
{
    int64_t deadline = clock_ns() + options.timeout_s * 1000000000LL;
    while (!all_done(count)) {
        if (clock_ns() > deadline) {
            fprintf(stderr, "time is up: not all messages are there\n");
            return;
        }
        send_allowed();
        turn(options.rate > 0 ? 0 : 100); /* with a rate it polls: a timer would be later than a tick */
    }
}

/* Sends for --seconds, and counts what is done in each whole second. */
static void sustain(void)
{
    int64_t start = clock_ns(), end = start + (int64_t)(options.seconds * 1e9);
    long counted = 0;
    for (int64_t now = start; now < end && tally.sent < options.messages; now = clock_ns()) {
        while (now >= start + (whole_seconds + 1) * 1000000000LL && whole_seconds < QUEUE_SECONDS) {
            done_each_second[whole_seconds++] = done() - counted;
            counted = done();
        }
        send_allowed();
        turn(100);
    }
    run.count = tally.sent;
    options.messages = (int)tally.sent;
    for (int i = 0; i < options.senders; i++) senders[i].quota = senders[i].sent;
}

static void print_json(double connect_seconds, int64_t opened_ns, int64_t start, double seconds)
{
    double count = (double)done(), broker_us = (double)(after.cpu_ns - before.cpu_ns) / 1e3,
           load_us = (double)(after.own_ns - before.own_ns) / 1e3;
    FILE *out = stdout;
    printf("{");
    json_count(out, "messages", options.messages);
    json_count(out, "senders", options.senders);
    json_count(out, "receivers", options.receivers);
    json_count(out, "window", options.window);
    json_count(out, "message_bytes", options.size);
    json_count(out, "unanswered", options.senders ? options.messages - tally.answered : 0);
    json_count(out, "lost", options.receivers ? run.count - tally.received : 0);
    json_count(out, "wrong", tally.wrong);
    json_count(out, "misdirected", tally.misdirected);
    if (options.seconds > 0) {
        printf("\"done_each_second\": [");
        for (int i = 0; i < whole_seconds; i++) printf("%s%ld", i ? ", " : "", done_each_second[i]);
        printf("], ");
    }
    json_number(out, "connect_seconds", connect_seconds);
    json_number(out, "ready_seconds", (double)(tally.ready_ns - opened_ns) / 1e9);
    json_number(out, "first_seconds", tally.received ? (double)(tally.first_ns - opened_ns) / 1e9 : 0);
    printf("\"memory\": {");
    json_number(out, "rss_kb", (double)after.rss_bytes / 1024);
    printf("\"rss_growth_kb\": %.4f}, \"run\": {", (double)(after.rss_bytes - idle.rss_bytes) / 1024);
    json_number(out, "seconds", seconds);
    json_number(out, "delivery_seconds", tally.received ? (double)(tally.last_ns - start) / 1e9 : 0);
    json_number(out, "per_second", per(count, seconds));
    json_number(out, "cpu_us_each", per(broker_us, count));
    json_number(out, "load_us_each", per(load_us, count));
    json_number(out, "server_busy", per(broker_us / 1e6, seconds));
    printf("\"load_busy\": %.4f}, \"answer_ms\": ", per(load_us / 1e6, seconds));
    samples_print_json(&tally.answer, out);
    printf(", \"latency_ms\": ");
    samples_print_json(&tally.latency, out);
    printf("}\n");
}

int main(int argc, char **argv)
{
    read_options(argc, argv);
    /* A broker that hangs must not block the benchmark for ever. */
    alarm((unsigned)(4 * options.timeout_s + (int)options.seconds + 2 * options.settle_ms / 1000 + 60));
    net_raise_file_limit();
    loop_open();
    idle = before = usage_of(&options.server);
    int64_t opened = clock_ns();
    if (!open_all()) wire_fail("queue_load", "time is up: not all clients are ready", 37);
    double connect_seconds = (double)(clock_ns() - opened) / 1e9;
    for (int64_t end = clock_ns() + options.settle_ms * 1000000LL; options.senders && clock_ns() < end;) turn(10);
    if (options.warmup) {
        begin(0, options.warmup);
        exchange(options.warmup);
    }
    if (options.senders) begin(options.warmup, options.messages);
    before = usage_of(&options.server);
    int64_t start = clock_ns();
    if (options.seconds > 0) sustain();
    exchange(options.messages);
    double seconds = (double)(clock_ns() - start) / 1e9;
    after = usage_of(&options.server);
    print_json(connect_seconds, opened, start, seconds);
    bool received = options.receivers == 0 || (run.count == tally.received && tally.freed == options.messages);
    return all_done(options.messages) && received && tally.misdirected == 0 && tally.wrong == 0 ? 0 : 1;
}
