/* wire.h: one connection between a broker and its client: what has come and is not understood yet, what is to be sent.
 *
 *     read ──► in  [ taken | not whole yet | room ]
 *     out  [ sent | to be sent | room ]  ──► one send() at the end of a turn
 *
 * Words are gathered, and leave together: a system call for each message would measure the load, not the broker. */
#ifndef BENCH_WIRE_H
#define BENCH_WIRE_H

#include "loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *bytes;
    size_t from, to, room; /* from..to is what is in it */
};

struct wire {
    struct connection connection; /* first: the loop hands it back */
    struct buffer in, out;
    bool blocked; /* the socket takes no more for now */
    bool dirty;   /* it is among those that wires_flush will look at */
    struct wire *next_dirty;
};

/* Takes over a connected socket. Its events go to `on_ready`. */
void wire_open(struct wire *wire, int fd, void (*on_ready)(struct connection *, uint32_t events));

void wire_close(struct wire *wire);

/* One read of what is there. False when the other side has closed. */
bool wire_read(struct wire *wire);

/* So many bytes of `in` are done with. */
void wire_took(struct wire *wire, size_t length);

/* Room for `length` bytes that are to be sent, which count as written. */
char *wire_extend(struct wire *wire, size_t length);

void wire_put(struct wire *wire, const void *bytes, size_t length);
void wire_print(struct wire *wire, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sends what every connection has gathered. */
void wires_flush(void);

/* What came next is not what the protocol says, or a refusal: prints its beginning and exits 1. */
_Noreturn void wire_fail(const char *what, const char *bytes, size_t length);

#endif
