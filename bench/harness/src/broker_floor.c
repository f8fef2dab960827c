/* broker_floor: the least that a broker can do. The cost of a broker is given as a multiple of it.
 *
 *     broker_floor HOST:PORT                 memory only
 *     broker_floor HOST:PORT LOG             appends each message and each end of one to LOG, with one write() a turn
 *     broker_floor HOST:PORT LOG synced      and fdatasync() before any answer of the turn: group commit
 *
 * A turn of epoll handles all requests, then logs, then answers with one send() a connection. It knows no leases, priorities
 * or names but the number behind a dot, and checks nothing. It speaks beanstalkd's protocol, with one message in a receiver's
 * hand, or Hikyaku's, with as many as there is credit for. */
#include "wire.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { QUEUES = 1024, RECORD_BYTES = 16, FIRST_ROOM = 64 };

struct client {
    struct wire wire; /* first: the loop hands it back */
    void (*deliver)(struct client *client, uint64_t id, const char *bytes, size_t length);
    long credit;
    int queue; /* that it receives from or puts into; -1: none */
    /* With frames: the last delivery; up to which all are freed; the SENDs without an ACK; the first one's message. */
    uint64_t delivery, freed, sent_from, sent_to, sent_value, subscription;
};

struct kept {
    uint64_t id;
    char *bytes;
    size_t length;
};

struct queue {
    struct kept *ring;
    size_t head, tail, room; /* room is a power of two; head and tail only rise */
    struct client *receiver;
};

static struct queue queues[QUEUES];
static struct buffer log_buffer;
static int log_fd = -1;
static bool log_synced;
static uint64_t last_id;

/* --- queues: put ──► log ──► the receiver with credit, straight from the read buffer; else a copy ------------------ */

static int queue_of(const char *name, size_t length)
{
    const char *dot = memrchr(name, '.', length);
    int number = 0;
    for (const char *at = dot ? dot + 1 : name + length; at < name + length && *at >= '0' && *at <= '9'; at++)
        number = (number * 10 + *at - '0') % QUEUES;
    return number;
}

static void record(uint32_t kind, uint64_t id, const char *bytes, size_t length)
{
    if (log_fd < 0) return;
    size_t need = RECORD_BYTES + length;
    if (log_buffer.room - log_buffer.to < need) {
        log_buffer.room = (log_buffer.to + need) * 2;
        log_buffer.bytes = realloc(log_buffer.bytes, log_buffer.room);
        if (!log_buffer.bytes) fail("log");
    }
    char *at = log_buffer.bytes + log_buffer.to;
    uint32_t head[2] = {kind, (uint32_t)length};
    memcpy(at, head, 8);
    memcpy(at + 8, &id, 8);
    memcpy(at + RECORD_BYTES, bytes, length);
    log_buffer.to += need;
}

static void keep(struct queue *queue, const char *bytes, size_t length)
{
    if (queue->tail - queue->head == queue->room) {
        size_t room = queue->room ? queue->room * 2 : FIRST_ROOM;
        struct kept *ring = malloc(room * sizeof *ring);
        if (!ring) fail("queue");
        for (size_t i = queue->head; i != queue->tail; i++) ring[i & (room - 1)] = queue->ring[i & (queue->room - 1)];
        free(queue->ring);
        queue->ring = ring;
        queue->room = room;
    }
    struct kept *kept = &queue->ring[queue->tail++ & (queue->room - 1)];
    *kept = (struct kept){.id = last_id, .bytes = malloc(length + 1), .length = length};
    if (!kept->bytes) fail("message");
    memcpy(kept->bytes, bytes, length);
}

static uint64_t put(int number, const char *bytes, size_t length)
{
    struct queue *queue = &queues[number];
    struct client *receiver = queue->receiver;
    record('P', ++last_id, bytes, length);
    if (receiver && receiver->credit > 0 && queue->head == queue->tail) {
        receiver->credit--;
        receiver->deliver(receiver, last_id, bytes, length);
    } else {
        keep(queue, bytes, length);
    }
    return last_id;
}

/* The client receives so many messages more. */
static void receive(struct client *client, int number, long credit)
{
    struct queue *queue = &queues[number];
    queue->receiver = client;
    client->queue = number;
    client->credit += credit;
    while (client->credit > 0 && queue->head != queue->tail) {
        struct kept *kept = &queue->ring[queue->head++ & (queue->room - 1)];
        client->credit--;
        client->deliver(client, kept->id, kept->bytes, kept->length);
        free(kept->bytes);
    }
}

static void commit(void)
{
    if (log_buffer.to == 0) return;
    if (write(log_fd, log_buffer.bytes, log_buffer.to) != (ssize_t)log_buffer.to) fail("log");
    if (log_synced && fdatasync(log_fd)) fail("log");
    log_buffer.to = 0;
}

/* --- beanstalkd's protocol: use, put, watch, ignore, reserve, delete ------------------------------------------------ */

static void deliver_text(struct client *client, uint64_t id, const char *bytes, size_t length)
{
    wire_print(&client->wire, "RESERVED %llu %zu\r\n", (unsigned long long)id, length);
    wire_put(&client->wire, bytes, length);
    wire_put(&client->wire, "\r\n", 2);
}

static size_t take_text(struct client *client, char *bytes, size_t length)
{
    char *end = memmem(bytes, length, "\r\n", 2);
    if (!end) return 0;
    size_t head = (size_t)(end - bytes) + 2, size = 0;
    switch (*bytes) {
    case 'p':
        if (sscanf(bytes, "put %*d %*d %*d %zu", &size) != 1) wire_fail("floor", bytes, head);
        if (length < head + size + 2) return 0;
        wire_print(&client->wire, "INSERTED %llu\r\n", (unsigned long long)put(client->queue, bytes + head, size));
        return head + size + 2;
    case 'u':
    case 'w':
        client->queue = queue_of(bytes, head - 2);
        client->deliver = deliver_text;
        wire_print(&client->wire, "%s", *bytes == 'u' ? "USING q\r\n" : "WATCHING 2\r\n");
        break;
    case 'i': wire_put(&client->wire, "WATCHING 1\r\n", 12); break;
    case 'r': receive(client, client->queue, 1); break;
    case 'd':
        record('D', strtoull(bytes + 7, NULL, 10), "", 0);
        wire_put(&client->wire, "DELETED\r\n", 9);
        break;
    default: wire_fail("floor", bytes, head);
    }
    return head;
}

/* --- docs/protocol.md: HELLO, SUBSCRIBE, SEND, FREE. The SENDs of a read have one ACK. ------------------------------- */

static char *ack(struct client *client, size_t length, enum frame_type of, unsigned flags, uint64_t id)
{
    char *frame = frame_begin(&client->wire, length, FRAME_ACK, flags, id, length);
    frame[16] = (char)of;
    return frame;
}

static void deliver_frame(struct client *client, uint64_t id, const char *bytes, size_t length)
{
    char *frame = frame_begin(&client->wire, FRAME_PUSH_BYTES + length, FRAME_PUSH, 0, ++client->delivery, FRAME_PUSH_BYTES);
    frame_put(frame + 6, 2, client->subscription);
    frame_put(frame + 16, 8, id);
    frame_put(frame + 36, 2, 1);
    memcpy(frame + FRAME_PUSH_BYTES, bytes, length);
}

static void acknowledge_sends(struct client *client)
{
    if (!client->sent_from) return;
    bool range = client->sent_to > client->sent_from;
    char *answer = ack(client, FRAME_ACK_BYTES + (range ? 8 : 0), FRAME_SEND, range ? FRAME_RANGE : 0, client->sent_from);
    answer[17] = 2;
    frame_put(answer + 24, 8, client->sent_value);
    if (range) frame_put(answer + 32, 8, client->sent_to);
    client->sent_from = 0;
}

static void on_hello(struct client *client, const char *frame)
{
    client->deliver = deliver_frame;
    client->queue = queue_of(frame + FRAME_HELLO_BYTES, frame_get(frame + 50, 2));
    char *answer = ack(client, FRAME_HELLO_ACK_BYTES, FRAME_HELLO, 0, frame_get(frame + 8, 8));
    frame_put(answer + 32, 2, 1);
    answer[34] = 7;
    frame_put(answer + 40, 4, 1 << 24);
}

static void on_subscribe(struct client *client, const char *frame)
{
    size_t named = frame_get(frame + 30, 2);
    int queue = named ? queue_of(frame + FRAME_SUBSCRIBE_BYTES, named) : client->queue;
    client->subscription = frame_get(frame + 6, 2);
    ack(client, FRAME_ACK_BYTES, FRAME_SUBSCRIBE, 0, frame_get(frame + 8, 8));
    receive(client, queue, (long)frame_get(frame + 16, 4));
}

static void on_send(struct client *client, const char *frame, size_t length)
{
    uint64_t id = frame_get(frame + 8, 8);
    size_t named = frame_get(frame + 34, 2), before = FRAME_SEND_BYTES + named + frame_get(frame + 36, 2);
    if (length < before) wire_fail("floor: a short SEND", "", 0);
    uint64_t value = put(queue_of(frame + FRAME_SEND_BYTES, named), frame + before, length - before);
    if (client->sent_from && id != client->sent_to + 1) acknowledge_sends(client);
    if (!client->sent_from) {
        client->sent_from = id;
        client->sent_value = value;
    }
    client->sent_to = id;
}

/* Frees one message, or all up to one that were not freed before. */
static void on_free(struct client *client, const char *frame)
{
    uint64_t first = frame_get(frame + 16, 8), last = frame_get(frame + 24, 8);
    uint64_t count = first ? last - first + 1 : last - client->freed;
    client->freed = last;
    record('D', last, "", 0);
    frame_put(ack(client, FRAME_ACK_BYTES, FRAME_FREE, 0, frame_get(frame + 8, 8)) + 20, 4, count);
    receive(client, client->queue, (long)count);
}

static size_t take_frame(struct client *client, char *bytes, size_t available)
{
    size_t length = available < FRAME_HEAD ? 0 : frame_get(bytes, 4);
    if (available < FRAME_HEAD || available < length) return 0;
    switch (bytes[4]) {
    case FRAME_SEND: on_send(client, bytes, length); break;
    case FRAME_FREE: on_free(client, bytes); break;
    case FRAME_ACK: break;
    case FRAME_HELLO: on_hello(client, bytes); break;
    case FRAME_SUBSCRIBE: on_subscribe(client, bytes); break;
    default: wire_fail("floor: an unexpected frame", bytes + 4, 1);
    }
    return length;
}

/* --- connections -------------------------------------------------------------------------------------------------- */

/* A frame is shorter than 2^29 bytes: its fourth byte is below a space. */
static size_t take(struct wire *wire, char *bytes, size_t length)
{
    bool text = *bytes >= 'a' && *bytes <= 'z' && length > 4 && bytes[3] >= ' ';
    return text ? take_text((struct client *)wire, bytes, length) : take_frame((struct client *)wire, bytes, length);
}

static void serve(struct connection *connection, uint32_t events)
{
    struct client *client = (struct client *)connection;
    if (wire_serve(&client->wire, events, take)) {
        acknowledge_sends(client);
        return;
    }
    if (client->queue >= 0 && queues[client->queue].receiver == client) queues[client->queue].receiver = NULL;
    wire_close(&client->wire);
    free(client);
}

static void accept_all(struct connection *listener, uint32_t events)
{
    int fd;
    while (events && (fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct client *client = calloc(1, sizeof *client);
        if (!client) fail("client");
        net_no_delay(fd);
        wire_open(&client->wire, fd, serve);
        client->queue = -1;
    }
}

int main(int argc, char **argv)
{
    char host[64];
    int port;
    if (argc < 2 || argc > 4 || sscanf(argv[1], "%63[^:]:%d", host, &port) != 2) {
        fprintf(stderr, "usage: broker_floor HOST:PORT [LOG [synced]]\n");
        return 2;
    }
    log_synced = argc > 3 && strcmp(argv[3], "synced") == 0;
    if (argc > 2 && (log_fd = open(argv[2], O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600)) < 0) fail(argv[2]);
    net_raise_file_limit();
    loop_open();
    struct connection listener = {.fd = net_listen(host, port), .on_ready = accept_all};
    loop_watch(&listener, EPOLLIN);
    for (;;) {
        loop_run_once(-1);
        commit();
        wires_flush();
    }
}
