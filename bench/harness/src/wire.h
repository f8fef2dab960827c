/* wire.h: a buffered connection between a broker and its client.
 *
 *     read ──► in  [ taken | incomplete | room ]
 *     out  [ sent | to be sent | room ]  ──► one send() at the end of a turn
 *
 * Output leaves together: one system call a message would measure the load instead of the broker. */
#ifndef WIRE_H
#define WIRE_H

#include "bench.h"

struct buffer {
    char *bytes;
    size_t from, to, room; /* from..to is filled */
};

struct wire {
    struct connection connection; /* first: the loop hands it back */
    struct buffer in, out;
    bool blocked, dirty;
    struct wire *next_dirty;
};

void wire_open(struct wire *wire, int fd, void (*on_ready)(struct connection *, uint32_t events));
void wire_close(struct wire *wire);
extern int64_t wire_read_ns; /* when wire_serve has read last */
/* Handles the events of a connection. `take` gets what has arrived, and returns the length of the first unit, or 0 while it is
 * incomplete. False when the peer has closed the connection. */
bool wire_serve(struct wire *wire, uint32_t events, size_t (*take)(struct wire *wire, char *bytes, size_t length));
char *wire_extend(struct wire *wire, size_t length); /* room for bytes to send, which the caller fills */
void wire_put(struct wire *wire, const void *bytes, size_t length);
void wire_print(struct wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wires_flush(void);
/* Prints why, and the beginning of the bytes; exits 1. */
_Noreturn void wire_fail(const char *what, const char *bytes, size_t length);

/* --- the frames of docs/protocol.md: offsets in bytes, numbers little-endian ---------------------------------------- */

enum frame_type { FRAME_HELLO = 1, FRAME_SEND = 2, FRAME_SUBSCRIBE = 4, FRAME_FREE = 7, FRAME_PING = 10, FRAME_ACK = 32, FRAME_ERROR = 33, FRAME_PUSH = 34 };
/* The fixed part of each. */
enum {
    FRAME_HEAD = 16, FRAME_HELLO_BYTES = 56, FRAME_SEND_BYTES = 40, FRAME_SUBSCRIBE_BYTES = 32, FRAME_FREE_BYTES = 32,
    FRAME_ACK_BYTES = 32, FRAME_HELLO_ACK_BYTES = 72, FRAME_ERROR_BYTES = 32, FRAME_PUSH_BYTES = 48
};
enum { FRAME_RANGE = 1 }; /* flag of an ACK */
#define FRAME_MAGIC "\x48\x4b\x42\x0d\x0a\x1a\x0a"

uint64_t frame_get(const char *at, int bytes);
void frame_put(char *at, int bytes, uint64_t value);
/* Appends a frame of `length` bytes, of which the first `fixed` are zero but for the head. */
char *frame_begin(struct wire *wire, size_t length, enum frame_type type, unsigned flags, uint64_t id, size_t fixed);

#endif
