/* Hikyaku's own protocol: SEND -> ACK; PUSH -> FREE -> ACK. A read's PUSHes are freed by one FREE of all up to the
 * last, at the level of the messages; as in the paper, if it is to be so, each PUSH has its ACK, and its FREE. */
#include "dialect.h"
#include "frames.h"

#include <stdio.h>
#include <sys/time.h>

enum { HELLO_ID = 1, SUBSCRIBE_ID, FREE_ID, FIRST_SEND_ID = 16 };
enum { SUBSCRIPTION = 1, PRIORITY = 4, OF_CLIENT = 1, SECRET = 1, LARGEST_FRAME = 16777216 };

static int name_of(const struct client *client, unsigned queue, char *out)
{
    return snprintf(out, QUEUE_TEXT, "%s.%u", client->options->prefix, queue);
}

static uint64_t epoch(void)
{
    struct timeval t;
    gettimeofday(&t, NULL);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_usec / 1000;
}

static void greet(struct client *client)
{
    char identity[QUEUE_TEXT];
    const char *secret = client->options->secret ? client->options->secret : "";
    size_t known = client->receives && client->options->per_client
                       ? (size_t)name_of(client, (unsigned)client->index, identity)
                       : 0;
    size_t length = FRAME_HELLO_BYTES + known + strlen(secret);
    char *frame = wire_extend(&client->wire, length);
    frame_begin(frame, length, FRAME_HELLO, 0, HELLO_ID, FRAME_HELLO_BYTES);
    memcpy(frame + 16, FRAME_MAGIC, 8);
    put16(frame + 24, 1);
    put16(frame + 26, 1);
    put32(frame + 32, LARGEST_FRAME);
    put64(frame + 40, known ? epoch() : 0);
    frame[48] = *secret ? SECRET : 0;
    put16(frame + 50, (unsigned)known);
    put16(frame + 52, (unsigned)strlen(secret));
    memcpy(frame + FRAME_HELLO_BYTES, identity, known);
    memcpy(frame + FRAME_HELLO_BYTES + known, secret, strlen(secret));
}

static void subscribe(struct client *client)
{
    char name[QUEUE_TEXT];
    bool own = client->options->per_client;
    size_t named = own ? 0 : (size_t)name_of(client, (unsigned)client->index, name),
           length = FRAME_SUBSCRIBE_BYTES + named;
    char *frame = wire_extend(&client->wire, length);
    frame_begin(frame, length, FRAME_SUBSCRIBE, 0, SUBSCRIBE_ID, FRAME_SUBSCRIBE_BYTES);
    put16(frame + 6, SUBSCRIPTION);
    put32(frame + 16, (uint32_t)client->options->credit);
    frame[28] = own ? OF_CLIENT : 0;
    put16(frame + 30, (unsigned)named);
    memcpy(frame + FRAME_SUBSCRIBE_BYTES, name, named);
}

static void send_message(struct client *client, const struct message *message)
{
    char name[QUEUE_TEXT];
    size_t named = (size_t)name_of(client, message->queue, name), size = (size_t)client->options->size;
    size_t length = FRAME_SEND_BYTES + named + size;
    char *frame = wire_extend(&client->wire, length);
    frame_begin(frame, length, FRAME_SEND, 0, FIRST_SEND_ID + (uint64_t)client->sent - 1, FRAME_SEND_BYTES);
    frame[32] = PRIORITY;
    frame[33] = (char)client->options->level;
    put16(frame + 34, (unsigned)named);
    frame[38] = client->options->per_client ? OF_CLIENT : 0;
    memcpy(frame + FRAME_SEND_BYTES, name, named);
    message_write(frame + FRAME_SEND_BYTES + named, message, size);
}

static void free_up_to(struct client *client, uint64_t first, uint64_t last)
{
    char *frame = wire_extend(&client->wire, FRAME_FREE_BYTES);
    unsigned level = (unsigned)client->options->level + 1;
    frame_begin(frame, FRAME_FREE_BYTES, FRAME_FREE, level, FREE_ID, FRAME_FREE_BYTES);
    put64(frame + 16, first);
    put64(frame + 24, last);
}

static void say_ack(struct client *client, uint64_t id)
{
    frame_begin(wire_extend(&client->wire, FRAME_HEAD), FRAME_HEAD, FRAME_ACK, 0, id, FRAME_HEAD);
}

static void on_ack(struct client *client, const char *frame, size_t length)
{
    if (length < FRAME_ACK_BYTES) wire_fail("hikyaku: a short ACK", "", 0);
    uint64_t id = get64(frame + 8);
    switch (frame[16]) {
    case FRAME_HELLO:
        if (!(frame[34] >> client->options->level & 1)) wire_fail("hikyaku", "this broker has not that level", 30);
        if (client->receives) subscribe(client);
        else clients_ready(client);
        break;
    case FRAME_SUBSCRIBE: clients_ready(client); break;
    case FRAME_SEND: {
        uint64_t last = frame[5] & FRAME_RANGE ? get64(frame + 32) : id;
        if (frame[17] < client->options->level) wire_fail("hikyaku", "acknowledged at a lower level", 29);
        clients_answered(client, (long)(id - FIRST_SEND_ID), (long)(last - id + 1));
        break;
    }
    case FRAME_FREE: clients_freed(get32(frame + 20)); break;
    default: break;
    }
}

static void on_push(struct client *client, const char *frame, size_t length)
{
    size_t before = FRAME_PUSH_BYTES + (size_t)get16(frame + 44);
    if (length < before) wire_fail("hikyaku: a short PUSH", "", 0);
    uint64_t delivery = get64(frame + 8);
    clients_received(client, frame + before, length - before);
    if (client->options->ack_pushes) say_ack(client, delivery);
    if (client->options->free_each) free_up_to(client, delivery, delivery);
    else client->serial = delivery;
}

static void on_error(const char *frame, size_t length)
{
    char what[64];
    snprintf(what, sizeof what, "hikyaku: ERROR %u", get16(frame + 16));
    wire_fail(what, frame + FRAME_ERROR_BYTES, length - FRAME_ERROR_BYTES);
}

static size_t take(struct client *client, char *bytes, size_t available)
{
    if (available < FRAME_HEAD) return 0;
    size_t length = get32(bytes);
    if (length < FRAME_HEAD || length > LARGEST_FRAME) wire_fail("hikyaku: a wrong length", bytes, FRAME_HEAD);
    if (available < length) return 0;
    switch (bytes[4]) {
    case FRAME_PUSH: on_push(client, bytes, length); break;
    case FRAME_ACK: on_ack(client, bytes, length); break;
    case FRAME_PING: say_ack(client, get64(bytes + 8)); break;
    case FRAME_ERROR: on_error(bytes, length); break;
    default: wire_fail("hikyaku: an unexpected frame", bytes + 4, 1);
    }
    return length;
}

static void settle(struct client *client)
{
    if (client->serial == 0) return;
    free_up_to(client, 0, client->serial);
    client->serial = 0;
}

const struct dialect dialect_hikyaku = {
    .name = "hikyaku", .greet = greet, .send = send_message, .take = take, .settle = settle};
