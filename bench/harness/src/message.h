/* message.h: what a message begins with, whatever broker carries it. The rest is filled up. */
#ifndef BENCH_MESSAGE_H
#define BENCH_MESSAGE_H

#include <stdint.h>
#include <string.h>

struct message {
    uint64_t magic; /* that it is one of this run's at all */
    int64_t sent_ns;
    uint32_t number; /* from 0, each once in all senders */
    uint32_t queue;
};

enum { MESSAGE_BYTES = sizeof(struct message) };

#define MESSAGE_MAGIC UINT64_C(0x6d6573736167655f)

static inline void message_write(char *out, const struct message *message, size_t size)
{
    memcpy(out, message, MESSAGE_BYTES);
    memset(out + MESSAGE_BYTES, 'x', size - MESSAGE_BYTES);
}

#endif
