/* AMQP 0-9-1 (RabbitMQ): basic.publish, persistent, with confirms; basic.deliver with a prefetch of the credit;
 * basic.ack, for all that a read has brought; durable queues. Numbers are big-endian. */
#include "dialect.h"

#include <stdio.h>

enum { METHOD = 1, HEADER = 2, BODY = 3, END = 0xCE, FRAME_MAX = 131072, CHANNEL_MAX = 10, PERSISTENT = 2 };

/* class * 1000 + method */
enum {
    CONNECTION_START = 10010,
    CONNECTION_TUNE = 10030,
    CONNECTION_OPEN_OK = 10041,
    CONNECTION_CLOSE = 10050,
    CHANNEL_OPEN_OK = 20011,
    CHANNEL_CLOSE = 20040,
    QUEUE_DECLARE_OK = 50011,
    CONSUME_OK = 60021,
    DELIVER = 60060,
    CONFIRM = 60080,
    NOT_CONFIRMED = 60120,
    CONFIRM_SELECT_OK = 85011
};

static void put(struct client *client, uint64_t value, int bytes)
{
    char *at = wire_extend(&client->wire, (size_t)bytes);
    for (int i = bytes - 1; i >= 0; i--, value >>= 8) at[i] = (char)value;
}

static void put_text(struct client *client, const char *text)
{
    put(client, strlen(text), 1);
    wire_put(&client->wire, text, strlen(text));
}

static uint64_t get(const char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | (unsigned char)at[i];
    return value;
}

/* A frame's length is filled in at its end. */
static size_t begin(struct client *client, int type, int channel)
{
    put(client, (uint64_t)type, 1);
    put(client, (uint64_t)channel, 2);
    put(client, 0, 4);
    return client->wire.out.to - client->wire.out.from;
}

static void end(struct client *client, size_t began)
{
    struct buffer *out = &client->wire.out;
    size_t at = out->from + began;
    uint64_t length = out->to - at;
    for (int i = 1; i <= 4; i++, length >>= 8) out->bytes[at - (size_t)i] = (char)length;
    put(client, END, 1);
}

static size_t method(struct client *client, int channel, int class, int number)
{
    size_t began = begin(client, METHOD, channel);
    put(client, (uint64_t) class, 2);
    put(client, (uint64_t)number, 2);
    return began;
}

static void greet(struct client *client)
{
    wire_put(&client->wire, "AMQP\0\0\x09\x01", 8);
}

static void send_message(struct client *client, const struct message *message)
{
    char name[QUEUE_TEXT];
    size_t size = (size_t)client->options->size;
    snprintf(name, sizeof name, "%s.%u", client->options->prefix, message->queue);
    size_t began = method(client, 1, 60, 40);
    put(client, 0, 2);
    put_text(client, "");
    put_text(client, name);
    put(client, 0, 1);
    end(client, began);
    began = begin(client, HEADER, 1);
    put(client, 60, 2);
    put(client, 0, 2);
    put(client, size, 8);
    put(client, 0x1000, 2); /* the property that follows is the delivery mode */
    put(client, PERSISTENT, 1);
    end(client, began);
    began = begin(client, BODY, 1);
    message_write(wire_extend(&client->wire, size), message, size);
    end(client, began);
}

static void log_in(struct client *client)
{
    size_t began = method(client, 0, 10, 11);
    put(client, 0, 4);
    put_text(client, "PLAIN");
    put(client, 12, 4);
    wire_put(&client->wire, "\0guest\0guest", 12);
    put_text(client, "en_US");
    end(client, began);
}

static void open_connection(struct client *client)
{
    size_t began = method(client, 0, 10, 31);
    put(client, CHANNEL_MAX, 2);
    put(client, FRAME_MAX, 4);
    put(client, 0, 2);
    end(client, began);
    began = method(client, 0, 10, 40);
    put_text(client, "/");
    put_text(client, "");
    put(client, 0, 1);
    end(client, began);
}

static void open_channel(struct client *client)
{
    size_t began = method(client, 1, 20, 10);
    put_text(client, "");
    end(client, began);
}

static void declare(struct client *client, int queue)
{
    char name[QUEUE_TEXT];
    snprintf(name, sizeof name, "%s.%d", client->options->prefix, queue);
    size_t began = method(client, 1, 50, 10);
    put(client, 0, 2);
    put_text(client, name);
    put(client, 2, 1); /* durable */
    put(client, 0, 4);
    end(client, began);
}

/* A sender without receivers declares the queues itself. */
static void declare_queues(struct client *client)
{
    client->count = 1;
    if (client->receives) {
        declare(client, client->index);
        return;
    }
    client->count = client->options->queues;
    for (int i = 0; i < client->options->queues; i++) declare(client, i);
}

static void consume(struct client *client)
{
    char name[QUEUE_TEXT];
    snprintf(name, sizeof name, "%s.%d", client->options->prefix, client->index);
    size_t began = method(client, 1, 60, 10);
    put(client, 0, 4);
    put(client, (uint64_t)(client->options->credit < 65535 ? client->options->credit : 65535), 2);
    put(client, 0, 1);
    end(client, began);
    began = method(client, 1, 60, 20);
    put(client, 0, 2);
    put_text(client, name);
    put_text(client, "");
    put(client, 0, 1);
    put(client, 0, 4);
    end(client, began);
}

static void on_declared(struct client *client)
{
    if (--client->count > 0) return;
    if (client->receives) {
        consume(client);
        return;
    }
    size_t began = method(client, 1, 85, 10);
    put(client, 0, 1);
    end(client, began);
}

static void on_confirm(struct client *client, const char *arguments)
{
    long tag = (long)get(arguments, 8);
    if (arguments[8] & 1) clients_answered_up_to(client, tag - 1);
    else clients_answered(client, tag - 1, 1);
}

static void on_method(struct client *client, const char *bytes, size_t length)
{
    switch (get(bytes, 2) * 1000 + get(bytes + 2, 2)) {
    case CONNECTION_START: log_in(client); break;
    case CONNECTION_TUNE: open_connection(client); break;
    case CONNECTION_OPEN_OK: open_channel(client); break;
    case CHANNEL_OPEN_OK: declare_queues(client); break;
    case QUEUE_DECLARE_OK: on_declared(client); break;
    case CONSUME_OK:
    case CONFIRM_SELECT_OK: clients_ready(client); break;
    case DELIVER: client->serial = get(bytes + 5 + (unsigned char)bytes[4], 8); break;
    case CONFIRM: on_confirm(client, bytes + 4); break;
    case CONNECTION_CLOSE:
    case CHANNEL_CLOSE:
    case NOT_CONFIRMED: wire_fail("amqp", bytes, length);
    default: break;
    }
}

static size_t take(struct client *client, char *bytes, size_t available)
{
    if (available < 7) return 0;
    size_t length = get(bytes + 3, 4);
    if (available < length + 8) return 0;
    if (*bytes == METHOD) on_method(client, bytes + 7, length);
    if (*bytes == BODY) {
        clients_received(client, bytes + 7, length);
        client->count = (long)client->serial; /* whole: the delivery after it may be cut */
        client->state++;
    }
    return length + 8;
}

static void settle(struct client *client)
{
    if (!client->state) return;
    size_t began = method(client, 1, 60, 80);
    put(client, (uint64_t)client->count, 8);
    put(client, 1, 1); /* and all before it */
    end(client, began);
    clients_freed(client->state);
    client->state = 0;
}

const struct dialect dialect_amqp = {
    .name = "amqp", .greet = greet, .send = send_message, .take = take, .settle = settle};
