/* beanstalkd 1.12: use and put -> INSERTED; reserve -> RESERVED; delete -> DELETED. The next reserve leaves with
 * the delete. One message in hand: beanstalkd knows no more. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>

static void greet(struct client *client)
{
    if (!client->receives) {
        clients_ready(client);
        return;
    }
    wire_print(&client->wire, "watch %s.%d\r\nignore default\r\nreserve\r\n", client->options->prefix, client->index);
}

static void send_message(struct client *client, const struct message *message)
{
    size_t size = (size_t)client->options->size;
    wire_print(&client->wire, "use %s.%u\r\nput 1 0 600 %zu\r\n", client->options->prefix, message->queue, size);
    char *body = wire_extend(&client->wire, size + 2);
    message_write(body, message, size);
    memcpy(body + size, "\r\n", 2);
}

static bool is(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

static size_t take_reserved(struct client *client, const char *line, size_t head, size_t length)
{
    unsigned long long id;
    size_t size;
    if (sscanf(line, "RESERVED %llu %zu", &id, &size) != 2) wire_fail("beanstalkd", line, head);
    if (length < head + size + 2) return 0;
    clients_received(client, line + head, size);
    wire_print(&client->wire, "delete %llu\r\nreserve\r\n", id);
    return head + size + 2;
}

static size_t take(struct client *client, char *bytes, size_t length)
{
    char *end = memmem(bytes, length, "\r\n", 2);
    if (!end) return 0;
    size_t head = (size_t)(end - bytes) + 2;
    if (is(bytes, "RESERVED ")) return take_reserved(client, bytes, head, length);
    if (is(bytes, "INSERTED ")) clients_answered_next(client);
    else if (is(bytes, "DELETED")) clients_freed(1);
    else if (is(bytes, "WATCHING 1")) clients_ready(client);
    else if (!is(bytes, "USING ") && !is(bytes, "WATCHING ")) wire_fail("beanstalkd", bytes, head);
    return head;
}

const struct dialect dialect_beanstalkd = {
    .name = "beanstalkd", .greet = greet, .send = send_message, .take = take, .settle = NULL};
