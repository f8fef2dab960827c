#include "clients.h"

#include "clock.h"
#include "dialect.h"
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

enum { ANSWERED = 0 }; /* instead of a stamp */
enum { TICK_NS = 100000 }; /* of a rate: what is due then leaves in one piece, from the senders in turn */

struct clients_tally clients_tally;

static const struct queue_options *options;
static const struct dialect *dialect;
static struct client *senders, *receivers;
static unsigned ring; /* of a sender's stamps: a power of two, above the window */
static int64_t read_ns;

static struct {
    long first, count, next; /* numbers; the next that is to be sent */
    int64_t started_ns;
    int turn;            /* the sender whose turn it is, with a rate */
    unsigned char *seen; /* how often each was received */
} run;

void clients_ready(struct client *client)
{
    if (!client->ready && clients_tally.ready++ == 0) clients_tally.ready_ns = clock_ns();
    client->ready = true;
}

static int64_t *stamp_of(struct client *client, long number)
{
    return &client->stamps[(unsigned long)number & (ring - 1)];
}

static void answer(struct client *client, long number)
{
    int64_t *stamp = stamp_of(client, number);
    if (number < client->oldest || number >= client->sent || *stamp == ANSWERED)
        wire_fail(dialect->name, "an answer to what was not sent", 30);
    if (clients_tally.answered % options->sample == 0) samples_add(&clients_tally.answer, read_ns - *stamp);
    *stamp = ANSWERED;
    client->answered++;
    clients_tally.answered++;
    while (client->oldest < client->sent && *stamp_of(client, client->oldest) == ANSWERED) client->oldest++;
}

void clients_answered(struct client *client, long first, long count)
{
    for (long number = first; number < first + count; number++) answer(client, number);
}

void clients_answered_next(struct client *client)
{
    answer(client, client->oldest);
}

void clients_answered_up_to(struct client *client, long last)
{
    for (long number = client->oldest; number <= last; number++) {
        if (*stamp_of(client, number) != ANSWERED) answer(client, number);
    }
}

void clients_freed(long count)
{
    clients_tally.freed += count;
}

void clients_received(struct client *client, const char *bytes, size_t length)
{
    struct message message;
    memcpy(&message, bytes, length < MESSAGE_BYTES ? 0 : MESSAGE_BYTES);
    if (length != (size_t)options->size || message.magic != MESSAGE_MAGIC)
        wire_fail("no message of this run", bytes, length);
    long at = (long)message.number - run.first;
    if (at < 0 || at >= run.count || run.seen[at]++) {
        clients_tally.wrong++;
        return;
    }
    if (message.queue != (uint32_t)client->index) clients_tally.misdirected++;
    if (clients_tally.received % options->sample == 0)
        samples_add(&clients_tally.latency, read_ns - message.sent_ns);
    if (clients_tally.received++ == 0) clients_tally.first_ns = read_ns;
    clients_tally.last_ns = read_ns;
}

/* Answers may come in any order: the oldest that is missing must not leave the ring. */
static bool has_room(const struct client *sender)
{
    return sender->sent - sender->answered < options->window && sender->sent - sender->oldest < (long)ring;
}

static void send_some(struct client *sender, long most, int64_t stamp)
{
    while (most-- > 0 && has_room(sender) && sender->sent < sender->quota) {
        struct message message = {.magic = MESSAGE_MAGIC, .sent_ns = stamp, .number = (uint32_t)run.next++};
        message.queue = (uint32_t)((sender->index + sender->sent) % options->queues);
        *stamp_of(sender, sender->sent++) = stamp;
        clients_tally.sent++;
        dialect->send(sender, &message);
    }
}

/* What was due at a tick has that as its stamp, however late it leaves: waiting for the load is latency, too. */
static void send_due(int64_t now)
{
    int64_t tick = now - (now - run.started_ns) % TICK_NS;
    long due = (long)((double)(tick - run.started_ns) / 1e9 * options->rate);
    if (due > run.count) due = run.count;
    for (int tried = 0; tried < options->senders && clients_tally.sent < due; tried++) {
        send_some(&senders[run.turn], due - clients_tally.sent, tick);
        run.turn = (run.turn + 1) % options->senders;
    }
}

void clients_send(void)
{
    int64_t now = clock_ns();
    if (options->rate > 0) send_due(now);
    for (int i = 0; options->rate <= 0 && i < options->senders; i++) send_some(&senders[i], options->window, now);
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct client *client = (struct client *)connection;
    struct wire *wire = &client->wire;
    if (events & EPOLLOUT) wire_extend(wire, 0);
    if (!(events & ~(uint32_t)EPOLLOUT)) return;
    if (!wire_read(wire)) wire_fail(dialect->name, "the broker has closed a connection", 34);
    read_ns = clock_ns();
    size_t length;
    while (wire->in.from < wire->in.to &&
           (length = dialect->take(client, wire->in.bytes + wire->in.from, wire->in.to - wire->in.from)))
        wire_took(wire, length);
    if (dialect->settle) dialect->settle(client);
}

static bool open_all(struct client *all, int count, bool receives, int64_t deadline)
{
    int before = clients_tally.ready;
    for (int i = 0; i < count; i++) {
        all[i] = (struct client){.options = options, .index = i, .receives = receives};
        if (!receives && !(all[i].stamps = calloc(ring, sizeof *all[i].stamps))) exit(2);
        wire_open(&all[i].wire, net_connect(options->host, options->port), on_ready);
        dialect->greet(&all[i]);
    }
    wires_flush();
    while (clients_tally.ready < before + count) {
        if (clock_ns() > deadline) return false;
        loop_run_once(100);
        wires_flush();
    }
    return true;
}

bool clients_open(const struct queue_options *given)
{
    options = given;
    dialect = dialect_named(options->dialect);
    for (ring = 2; ring < 2 * (unsigned)options->window;) ring *= 2;
    senders = calloc((size_t)options->senders + 1, sizeof *senders);
    receivers = calloc((size_t)options->receivers + 1, sizeof *receivers);
    if (!senders || !receivers) exit(2);
    int64_t deadline = clock_ns() + options->timeout_s * 1000000000LL;
    clients_begin(0, options->senders ? 0 : options->messages); /* without senders, what is waiting comes at once */
    return open_all(receivers, options->receivers, true, deadline) &&
           open_all(senders, options->senders, false, deadline);
}

void clients_begin(long first, long count)
{
    struct clients_tally *tally = &clients_tally;
    samples_clear(&tally->answer);
    samples_clear(&tally->latency);
    tally->sent = tally->answered = tally->received = tally->freed = tally->misdirected = tally->wrong = 0;
    run.first = run.next = first;
    run.count = count;
    run.started_ns = tally->last_ns = clock_ns();
    free(run.seen);
    run.seen = calloc((size_t)count + 1, 1);
    if (!run.seen) exit(2);
    for (int i = 0; i < options->senders; i++)
        senders[i].quota = senders[i].sent + count / options->senders + (i < count % options->senders);
}

void clients_stop(void)
{
    run.count = clients_tally.sent;
    for (int i = 0; i < options->senders; i++) senders[i].quota = senders[i].sent;
}

long clients_lost(void)
{
    return run.count - clients_tally.received;
}
