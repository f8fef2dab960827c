#include "wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 262144, PRINT_BYTES = 4096, SHOWN = 300 };

static struct wire *dirty;

void wire_fail(const char *what, const char *bytes, size_t length)
{
    fprintf(stderr, "%s: %.*s\n", what, (int)(length < SHOWN ? length : SHOWN), bytes);
    exit(1);
}

static void make_room(struct buffer *buffer, size_t length)
{
    if (buffer->room - buffer->to >= length) return;
    if (buffer->from > 0) {
        memmove(buffer->bytes, buffer->bytes + buffer->from, buffer->to - buffer->from);
        buffer->to -= buffer->from;
        buffer->from = 0;
    }
    if (buffer->room - buffer->to >= length) return;
    buffer->room = (buffer->to + length) * 2;
    buffer->bytes = realloc(buffer->bytes, buffer->room);
    if (!buffer->bytes) exit(2);
}

static void drop(struct buffer *buffer, size_t length)
{
    buffer->from += length;
    if (buffer->from == buffer->to) buffer->from = buffer->to = 0;
}

void wire_open(struct wire *wire, int fd, void (*on_ready)(struct connection *, uint32_t events))
{
    *wire = (struct wire){.connection = {.fd = fd, .on_ready = on_ready}};
    loop_watch(&wire->connection, EPOLLIN);
}

void wire_close(struct wire *wire)
{
    for (struct wire **link = &dirty; *link; link = &(*link)->next_dirty) {
        if (*link != wire) continue;
        *link = wire->next_dirty;
        break;
    }
    close(wire->connection.fd);
    free(wire->in.bytes);
    free(wire->out.bytes);
}

bool wire_read(struct wire *wire)
{
    struct buffer *in = &wire->in;
    make_room(in, READ_BYTES + 1);
    ssize_t length = read(wire->connection.fd, in->bytes + in->to, READ_BYTES);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (length <= 0) return false;
    in->to += (size_t)length;
    in->bytes[in->to] = '\0'; /* so that numbers in text end somewhere */
    return true;
}

void wire_took(struct wire *wire, size_t length)
{
    drop(&wire->in, length);
}

char *wire_extend(struct wire *wire, size_t length)
{
    make_room(&wire->out, length);
    if (!wire->dirty) {
        wire->dirty = true;
        wire->next_dirty = dirty;
        dirty = wire;
    }
    wire->out.to += length;
    return wire->out.bytes + wire->out.to - length;
}

void wire_put(struct wire *wire, const void *bytes, size_t length)
{
    memcpy(wire_extend(wire, length), bytes, length);
}

void wire_print(struct wire *wire, const char *format, ...)
{
    char text[PRINT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (length < 0 || length >= PRINT_BYTES) exit(2);
    wire_put(wire, text, (size_t)length);
}

static void flush(struct wire *wire)
{
    struct buffer *out = &wire->out;
    if (out->from < out->to) {
        ssize_t sent = send(wire->connection.fd, out->bytes + out->from, out->to - out->from, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) sent = (ssize_t)(out->to - out->from); /* a read will tell */
        if (sent > 0) drop(out, (size_t)sent);
    }
    bool blocked = out->from < out->to;
    if (blocked != wire->blocked) loop_change(&wire->connection, blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
    wire->blocked = blocked;
}

void wires_flush(void)
{
    struct wire *wire = dirty;
    dirty = NULL;
    while (wire) {
        struct wire *next = wire->next_dirty;
        wire->dirty = false;
        flush(wire);
        wire = next;
    }
}
