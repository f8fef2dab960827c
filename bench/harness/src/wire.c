#include "wire.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 262144, PRINT_BYTES = 4096, SHOWN = 300 };

int64_t wire_read_ns;
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
    if (!buffer->bytes) fail("buffer");
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
    struct wire **link = &dirty;
    while (*link && *link != wire) link = &(*link)->next_dirty;
    if (*link) *link = wire->next_dirty;
    close(wire->connection.fd);
    free(wire->in.bytes);
    free(wire->out.bytes);
}

bool wire_serve(struct wire *wire, uint32_t events, size_t (*take)(struct wire *wire, char *bytes, size_t length))
{
    struct buffer *in = &wire->in;
    if (events & EPOLLOUT) wire_extend(wire, 0);
    if (!(events & ~(uint32_t)EPOLLOUT)) return true;
    make_room(in, READ_BYTES + 1);
    ssize_t length = read(wire->connection.fd, in->bytes + in->to, READ_BYTES);
    if (length < 0) return errno == EAGAIN || errno == EINTR;
    if (length == 0) return false;
    wire_read_ns = clock_ns();
    in->to += (size_t)length;
    in->bytes[in->to] = '\0'; /* ends a number in text */
    size_t used = 1;
    while (in->from < in->to && used) {
        used = take(wire, in->bytes + in->from, in->to - in->from);
        drop(in, used);
    }
    return true;
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
        if (sent < 0 && errno != EAGAIN && errno != EINTR) sent = (ssize_t)(out->to - out->from); /* the next read reports it */
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

uint64_t frame_get(const char *at, int bytes)
{
    uint64_t value = 0;
    memcpy(&value, at, (size_t)bytes);
    return value;
}

void frame_put(char *at, int bytes, uint64_t value)
{
    memcpy(at, &value, (size_t)bytes);
}

char *frame_begin(struct wire *wire, size_t length, enum frame_type type, unsigned flags, uint64_t id, size_t fixed)
{
    char *at = wire_extend(wire, length);
    memset(at, 0, fixed);
    frame_put(at, 4, length);
    at[4] = (char)type;
    at[5] = (char)flags;
    frame_put(at + 8, 8, id);
    return at;
}
