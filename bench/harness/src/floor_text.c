/* The little of beanstalkd's protocol that the load uses: use, put, watch, ignore, reserve, delete. */
#include "floor_queues.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void deliver(struct floor_client *client, uint64_t id, const char *bytes, size_t length)
{
    wire_print(&client->wire, "RESERVED %llu %zu\r\n", (unsigned long long)id, length);
    wire_put(&client->wire, bytes, length);
    wire_put(&client->wire, "\r\n", 2);
}

static size_t take_put(struct floor_client *client, char *bytes, size_t head, size_t length)
{
    size_t size = 0;
    if (sscanf(bytes, "put %*d %*d %*d %zu", &size) != 1) wire_fail("floor", bytes, head);
    if (length < head + size + 2) return 0;
    uint64_t id = floor_put(client->queue, bytes + head, size);
    wire_print(&client->wire, "INSERTED %llu\r\n", (unsigned long long)id);
    return head + size + 2;
}

size_t floor_take_text(struct floor_client *client, char *bytes, size_t length)
{
    char *end = memmem(bytes, length, "\r\n", 2);
    if (!end) return 0;
    size_t head = (size_t)(end - bytes) + 2;
    switch (*bytes) {
    case 'p': return take_put(client, bytes, head, length);
    case 'u':
        client->queue = floor_queue(bytes, head - 2);
        wire_put(&client->wire, "USING q\r\n", 9);
        break;
    case 'w':
        client->queue = floor_queue(bytes, head - 2);
        client->deliver = deliver;
        wire_put(&client->wire, "WATCHING 2\r\n", 12);
        break;
    case 'i': wire_put(&client->wire, "WATCHING 1\r\n", 12); break;
    case 'r': floor_receive(client, client->queue, 1); break;
    case 'd':
        floor_free(strtoull(bytes + 7, NULL, 10));
        wire_put(&client->wire, "DELETED\r\n", 9);
        break;
    default: wire_fail("floor", bytes, head);
    }
    return head;
}
