/* frames.h: of docs/protocol.md what the load and the floor of frames speak. Offsets in bytes; numbers are
 * little-endian. */
#ifndef BENCH_FRAMES_H
#define BENCH_FRAMES_H

#include <stdint.h>
#include <string.h>

enum frame_type {
    FRAME_HELLO = 1,
    FRAME_SEND = 2,
    FRAME_SUBSCRIBE = 4,
    FRAME_FREE = 7,
    FRAME_PING = 10,
    FRAME_ACK = 32,
    FRAME_ERROR = 33,
    FRAME_PUSH = 34
};

/* How long each is, before what has no fixed length. */
enum frame_bytes {
    FRAME_HEAD = 16,
    FRAME_HELLO_BYTES = 56,
    FRAME_SEND_BYTES = 40,
    FRAME_SUBSCRIBE_BYTES = 32,
    FRAME_FREE_BYTES = 32,
    FRAME_ACK_BYTES = 32,
    FRAME_HELLO_ACK_BYTES = 72,
    FRAME_ERROR_BYTES = 32,
    FRAME_PUSH_BYTES = 48
};

enum { FRAME_RANGE = 1 }; /* flag of an ACK */

#define FRAME_MAGIC "\x48\x4b\x42\x0d\x0a\x1a\x0a"

static inline void put16(char *at, unsigned value)
{
    uint16_t v = (uint16_t)value;
    memcpy(at, &v, 2);
}

static inline void put32(char *at, uint32_t value)
{
    memcpy(at, &value, 4);
}

static inline void put64(char *at, uint64_t value)
{
    memcpy(at, &value, 8);
}

static inline uint16_t get16(const char *at)
{
    uint16_t value;
    memcpy(&value, at, 2);
    return value;
}

static inline uint32_t get32(const char *at)
{
    uint32_t value;
    memcpy(&value, at, 4);
    return value;
}

static inline uint64_t get64(const char *at)
{
    uint64_t value;
    memcpy(&value, at, 8);
    return value;
}

/* The first 16 bytes, the others zero. */
static inline void frame_begin(char *at, size_t length, enum frame_type type, unsigned flags, uint64_t id, size_t zeros)
{
    memset(at, 0, zeros);
    put32(at, (uint32_t)length);
    at[4] = (char)type;
    at[5] = (char)flags;
    put64(at + 8, id);
}

#endif
