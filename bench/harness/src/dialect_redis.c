/* Redis 7 streams: XADD -> id; XREADGROUP COUNT window BLOCK 0 -> entries; XACK and XDEL of them all, and the next
 * XREADGROUP with them. */
#include "dialect.h"

#include <stdio.h>
#include <stdlib.h>

enum { TEXTS = 65536 }; /* bulk strings of one reply */

static struct {
    char *at;
    size_t length;
} texts[TEXTS];
static int text_count;

static void greet(struct client *client)
{
    if (!client->receives) {
        clients_ready(client);
        return;
    }
    const char *prefix = client->options->prefix;
    wire_print(&client->wire,
               "XGROUP CREATE %s.%d g 0 MKSTREAM\r\nXREADGROUP GROUP g c COUNT %d BLOCK 0 STREAMS %s.%d >\r\n", prefix,
               client->index, client->options->window, prefix, client->index);
}

static void send_message(struct client *client, const struct message *message)
{
    char name[QUEUE_TEXT];
    size_t size = (size_t)client->options->size;
    int named = snprintf(name, sizeof name, "%s.%u", client->options->prefix, message->queue);
    wire_print(&client->wire, "*5\r\n$4\r\nXADD\r\n$%d\r\n%s\r\n$1\r\n*\r\n$1\r\nd\r\n$%zu\r\n", named, name, size);
    char *body = wire_extend(&client->wire, size + 2);
    message_write(body, message, size);
    memcpy(body + size, "\r\n", 2);
}

/* The length of one value, however deep, or 0 while it is not all there; its strings are gathered. */
static size_t walk(char *bytes, size_t length)
{
    char *end = memmem(bytes, length, "\r\n", 2);
    if (!end) return 0;
    size_t used = (size_t)(end - bytes) + 2;
    long count = atol(bytes + 1);
    if (*bytes == '$' && count >= 0) {
        size_t size = (size_t)count;
        if (length < used + size + 2) return 0;
        if (text_count == TEXTS) wire_fail("redis", "too many entries", 16);
        texts[text_count].at = end + 2;
        texts[text_count++].length = size;
        return used + size + 2;
    }
    for (long i = 0; *bytes == '*' && i < count; i++) {
        size_t inner = walk(bytes + used, length - used);
        if (!inner) return 0;
        used += inner;
    }
    return used;
}

static void put_text(struct client *client, int i)
{
    wire_print(&client->wire, "$%zu\r\n%.*s\r\n", texts[i].length, (int)texts[i].length, texts[i].at);
}

/* The stream's name, then of each entry: id, "d", payload. */
static void on_entries(struct client *client)
{
    int entries = (text_count - 1) / 3;
    for (int i = 0; i < entries; i++) clients_received(client, texts[3 + i * 3].at, texts[3 + i * 3].length);
    wire_print(&client->wire, "*%d\r\n$4\r\nXACK\r\n", 3 + entries);
    put_text(client, 0);
    wire_print(&client->wire, "$1\r\ng\r\n");
    for (int i = 0; i < entries; i++) put_text(client, 1 + i * 3);
    wire_print(&client->wire, "*%d\r\n$4\r\nXDEL\r\n", 2 + entries);
    put_text(client, 0);
    for (int i = 0; i < entries; i++) put_text(client, 1 + i * 3);
    wire_print(&client->wire, "XREADGROUP GROUP g c COUNT %d BLOCK 0 STREAMS %.*s >\r\n", client->options->window,
               (int)texts[0].length, texts[0].at);
}

static void on_number(struct client *client, long count)
{
    if (client->state) clients_freed(count); /* XACK's, then XDEL's */
    client->state = !client->state;
}

/* It listens before it has read its file, and refuses until then. A receiver asks again when both its words were
 * refused. */
static bool is_loading(struct client *client, const char *bytes)
{
    if (strncmp(bytes, "-LOADING", 8) || client->ready) return false;
    if (++client->count % 2 == 0) greet(client);
    return true;
}

static size_t take(struct client *client, char *bytes, size_t length)
{
    text_count = 0;
    size_t used = walk(bytes, length);
    if (!used) return 0;
    switch (*bytes) {
    case '+': clients_ready(client); break;
    case '$': clients_answered_next(client); break;
    case ':': on_number(client, atol(bytes + 1)); break;
    case '*':
        if (text_count) on_entries(client);
        break;
    default:
        if (!is_loading(client, bytes)) wire_fail("redis", bytes, used);
    }
    return used;
}

const struct dialect dialect_redis = {
    .name = "redis", .greet = greet, .send = send_message, .take = take, .settle = NULL};
