#include "floor_queues.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { QUEUES = 1024, RECORD_BYTES = 16, FIRST_ROOM = 64 };

struct kept {
    uint64_t id;
    char *bytes;
    size_t length;
};

struct queue {
    struct kept *ring;
    size_t head, tail, room; /* a power of two; head and tail only rise */
    struct floor_client *receiver;
};

static struct queue queues[QUEUES];
static struct buffer log_buffer;
static int log_fd = -1;
static bool log_synced;
static uint64_t last_id;

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

void floor_open(const char *log, bool synced)
{
    log_synced = synced;
    if (log && (log_fd = open(log, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600)) < 0) fail(log);
}

int floor_queue(const char *name, size_t length)
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

static void grow(struct queue *queue)
{
    size_t room = queue->room ? queue->room * 2 : FIRST_ROOM;
    struct kept *ring = malloc(room * sizeof *ring);
    if (!ring) fail("queue");
    for (size_t i = queue->head; i != queue->tail; i++) ring[i & (room - 1)] = queue->ring[i & (queue->room - 1)];
    free(queue->ring);
    queue->ring = ring;
    queue->room = room;
}

static void keep(struct queue *queue, const char *bytes, size_t length)
{
    if (queue->tail - queue->head == queue->room) grow(queue);
    struct kept *kept = &queue->ring[queue->tail++ & (queue->room - 1)];
    *kept = (struct kept){.id = last_id, .bytes = malloc(length + 1), .length = length};
    if (!kept->bytes) fail("message");
    memcpy(kept->bytes, bytes, length);
}

uint64_t floor_put(int number, const char *bytes, size_t length)
{
    struct queue *queue = &queues[number];
    struct floor_client *receiver = queue->receiver;
    record('P', ++last_id, bytes, length);
    if (receiver && receiver->credit > 0 && queue->head == queue->tail) {
        receiver->credit--;
        receiver->deliver(receiver, last_id, bytes, length);
    } else {
        keep(queue, bytes, length);
    }
    return last_id;
}

void floor_receive(struct floor_client *client, int number, long credit)
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

void floor_free(uint64_t id)
{
    record('D', id, "", 0);
}

void floor_leave(struct floor_client *client)
{
    if (client->queue >= 0 && queues[client->queue].receiver == client) queues[client->queue].receiver = NULL;
}

void floor_commit(void)
{
    if (log_buffer.to == 0) return;
    if (write(log_fd, log_buffer.bytes, log_buffer.to) != (ssize_t)log_buffer.to) fail("log");
    if (log_synced && fdatasync(log_fd)) fail("log");
    log_buffer.to = 0;
}
