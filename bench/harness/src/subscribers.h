/* subscribers.h: N event streams, and the latency of all that comes through them. */
#ifndef BENCH_SUBSCRIBERS_H
#define BENCH_SUBSCRIBERS_H

#include "options.h"
#include "samples.h"

#include <stdbool.h>

struct subscribers_tally {
    long ready, dead; /* streams that stand; that were refused or closed */
    long stalled;     /* of those that stand: that are never read */
    long delivered;   /* messages read, since the last reset */
    long misdirected; /* messages of another topic than the stream's */
    int64_t last_ns;  /* when the latest was read */
    int64_t bytes;    /* all that was read, since the last reset */
    int64_t bytes_out; /* all that was sent, likewise */
    struct samples latency;
};

extern struct subscribers_tally subscribers_tally;

/* Opens them all, `window` at a time, until each stands or is dead. False when time is up. */
bool subscribers_open(const struct options *options);

/* Says that this message was published: how many streams that are read must get it. */
long subscribers_expect(int message);

/* Sends a command of Action Cable on the stream whose turn it is with this message, or the next that stands. False when
 * there is none. */
bool subscribers_speak(int message, const char *text, size_t length);

/* How many of the streams that are read did not get exactly what they were to get since the last reset: each message
 * of their topic once, in any order, and no other. */
long subscribers_wrong(void);

/* Begins a new count; messages numbered below `first_message` are no longer counted. */
void subscribers_reset(int first_message);

#endif
