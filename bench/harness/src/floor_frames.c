/* The little of docs/protocol.md that the load uses: HELLO, SUBSCRIBE, SEND, FREE. The SENDs of a read have one ACK. */
#include "floor_queues.h"
#include "frames.h"

#include <stdlib.h>

static char *ack(struct floor_client *client, size_t length, enum frame_type of, unsigned flags, uint64_t id)
{
    char *frame = wire_extend(&client->wire, length);
    frame_begin(frame, length, FRAME_ACK, flags, id, length);
    frame[16] = (char)of;
    return frame;
}

static void deliver(struct floor_client *client, uint64_t id, const char *bytes, size_t length)
{
    char *frame = wire_extend(&client->wire, FRAME_PUSH_BYTES + length);
    frame_begin(frame, FRAME_PUSH_BYTES + length, FRAME_PUSH, 0, ++client->delivery, FRAME_PUSH_BYTES);
    put16(frame + 6, (unsigned)client->subscription);
    put64(frame + 16, id);
    put16(frame + 36, 1);
    memcpy(frame + FRAME_PUSH_BYTES, bytes, length);
}

static void on_hello(struct floor_client *client, const char *frame)
{
    client->deliver = deliver;
    client->queue = floor_queue(frame + FRAME_HELLO_BYTES, get16(frame + 50));
    char *answer = ack(client, FRAME_HELLO_ACK_BYTES, FRAME_HELLO, 0, get64(frame + 8));
    put16(answer + 32, 1);
    answer[34] = 7;
    put32(answer + 40, 1 << 24);
}

static void on_subscribe(struct floor_client *client, const char *frame)
{
    size_t named = get16(frame + 30);
    int queue = named ? floor_queue(frame + FRAME_SUBSCRIBE_BYTES, named) : client->queue;
    client->subscription = get16(frame + 6);
    ack(client, FRAME_ACK_BYTES, FRAME_SUBSCRIBE, 0, get64(frame + 8));
    floor_receive(client, queue, get32(frame + 16));
}

/* Those that follow each other are answered together. */
static void on_send(struct floor_client *client, const char *frame, size_t length)
{
    uint64_t id = get64(frame + 8);
    size_t before = FRAME_SEND_BYTES + (size_t)get16(frame + 34) + get16(frame + 36);
    if (length < before) wire_fail("floor: a short SEND", "", 0);
    int queue = floor_queue(frame + FRAME_SEND_BYTES, get16(frame + 34));
    uint64_t value = floor_put(queue, frame + before, length - before);
    if (client->sent_from && id != client->sent_to + 1) floor_answer_frames(client);
    if (!client->sent_from) {
        client->sent_from = id;
        client->sent_value = value;
    }
    client->sent_to = id;
}

void floor_answer_frames(struct floor_client *client)
{
    if (!client->sent_from) return;
    bool range = client->sent_to > client->sent_from;
    char *answer =
        ack(client, FRAME_ACK_BYTES + (range ? 8 : 0), FRAME_SEND, range ? FRAME_RANGE : 0, client->sent_from);
    answer[17] = 2;
    put64(answer + 24, client->sent_value);
    if (range) put64(answer + 32, client->sent_to);
    client->sent_from = 0;
}

/* Of all up to one: those that were not freed before. */
static void on_free(struct floor_client *client, const char *frame)
{
    uint64_t first = get64(frame + 16), last = get64(frame + 24),
             count = first ? last - first + 1 : last - client->freed;
    client->freed = last;
    floor_free(last);
    put32(ack(client, FRAME_ACK_BYTES, FRAME_FREE, 0, get64(frame + 8)) + 20, (uint32_t)count);
    floor_receive(client, client->queue, (long)count);
}

size_t floor_take_frame(struct floor_client *client, char *bytes, size_t available)
{
    if (available < FRAME_HEAD) return 0;
    size_t length = get32(bytes);
    if (available < length) return 0;
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
