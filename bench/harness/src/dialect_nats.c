/* NATS JetStream 2.9: PUB with a reply subject -> PubAck; a push consumer for each queue, explicit +ACK, which is
 * not itself confirmed; one work-queue stream for all. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIELDS = 6, LINE = 512, PENDING = 1000 };

/* The first receiver makes the stream and all consumers; without receivers the first sender the stream. */
static bool makes_stream(const struct client *client)
{
    return client->index == 0 && client->receives == (client->options->receivers > 0);
}

static void make_stream(struct client *client)
{
    char text[LINE];
    const char *prefix = client->options->prefix;
    int length =
        snprintf(text, sizeof text,
                 "{\"name\":\"%s\",\"subjects\":[\"%s.*\"],\"retention\":\"workqueue\",\"storage\":\"%s\","
                 "\"discard\":\"old\",\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"num_replicas\":1}",
                 prefix, prefix, client->options->storage);
    wire_print(&client->wire, "SUB _s 2\r\nPUB $JS.API.STREAM.CREATE.%s _s %d\r\n%s\r\n", prefix, length, text);
}

static void make_consumers(struct client *client)
{
    const char *prefix = client->options->prefix;
    for (int i = 0; i < client->options->receivers; i++) {
        char text[LINE];
        int length =
            snprintf(text, sizeof text,
                     "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"c%d\",\"deliver_subject\":\"_d.%d\","
                     "\"filter_subject\":\"%s.%d\",\"ack_policy\":\"explicit\",\"deliver_policy\":\"all\","
                     "\"replay_policy\":\"instant\",\"max_ack_pending\":%d,\"ack_wait\":60000000000}}",
                     prefix, i, i, prefix, i, PENDING);
        wire_print(&client->wire, "PUB $JS.API.CONSUMER.DURABLE.CREATE.%s.c%d _s %d\r\n%s\r\n", prefix, i, length,
                   text);
    }
}

static void greet(struct client *client)
{
    wire_print(&client->wire,
               "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\n");
    wire_print(&client->wire, client->receives ? "SUB _d.%d 1\r\n" : "SUB _a.%d 1\r\n", client->index);
    if (makes_stream(client)) make_stream(client);
    else wire_print(&client->wire, "PING\r\n");
}

static void send_message(struct client *client, const struct message *message)
{
    size_t size = (size_t)client->options->size;
    wire_print(&client->wire, "PUB %s.%u _a.%d %zu\r\n", client->options->prefix, message->queue, client->index, size);
    char *body = wire_extend(&client->wire, size + 2);
    message_write(body, message, size);
    memcpy(body + size, "\r\n", 2);
}

/* An answer of JetStream's interface: to the stream, then to each consumer. */
static void on_made(struct client *client, const char *body, size_t length)
{
    if (memmem(body, length, "\"error\"", 7)) wire_fail("nats", body, length);
    bool stream = memmem(body, length, "stream_create", 13);
    if (stream && client->receives) make_consumers(client);
    else if (stream || ++client->count == client->options->receivers) wire_print(&client->wire, "PING\r\n");
}

static void on_answer(struct client *client, const char *body, size_t length)
{
    if (memmem(body, length, "\"error\"", 7)) wire_fail("nats", body, length);
    clients_answered_next(client);
}

/* MSG subject subscription reply length */
static size_t take_message(struct client *client, const char *bytes, size_t head, size_t length)
{
    char line[LINE], *fields[FIELDS], *rest = NULL;
    int count = 0;
    if (head > LINE) wire_fail("nats", bytes, head);
    memcpy(line, bytes, head - 2);
    line[head - 2] = '\0';
    for (char *field = strtok_r(line, " ", &rest); field && count < FIELDS; field = strtok_r(NULL, " ", &rest))
        fields[count++] = field;
    if (count < 4) wire_fail("nats", bytes, head);
    size_t size = strtoul(fields[count - 1], NULL, 10);
    if (length < head + size + 2) return 0;
    if (strcmp(fields[2], "2") == 0) {
        on_made(client, bytes + head, size);
    } else if (client->receives) {
        clients_received(client, bytes + head, size);
        wire_print(&client->wire, "PUB %s 4\r\n+ACK\r\n", fields[3]);
        clients_freed(1);
    } else {
        on_answer(client, bytes + head, size);
    }
    return head + size + 2;
}

static size_t take(struct client *client, char *bytes, size_t length)
{
    char *end = memmem(bytes, length, "\r\n", 2);
    if (!end) return 0;
    size_t head = (size_t)(end - bytes) + 2;
    switch (*bytes) {
    case 'M': return take_message(client, bytes, head, length);
    case 'H':
    case '-': wire_fail("nats", bytes, head);
    case 'P':
        if (bytes[1] == 'I') wire_print(&client->wire, "PONG\r\n");
        else clients_ready(client);
        break;
    default: break; /* INFO, +OK */
    }
    return head;
}

const struct dialect dialect_nats = {
    .name = "nats", .greet = greet, .send = send_message, .take = take, .settle = NULL};
