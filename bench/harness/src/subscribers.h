/* subscribers.h: N event streams, and the latency of all that comes through them. */
#ifndef BENCH_SUBSCRIBERS_H
#define BENCH_SUBSCRIBERS_H

#include "options.h"
#include "samples.h"

#include <stdbool.h>

struct subscribers_tally {
    long ready, dead; /* streams that stand; that were refused or closed */
    long delivered;   /* messages read, since the last reset */
    long misdirected; /* messages of another topic than the stream's */
    int64_t last_ns;  /* when the latest was read */
    int64_t bytes;    /* all that was read, since the last reset */
    struct samples latency;
};

extern struct subscribers_tally subscribers_tally;

/* Opens them all, `window` at a time, until each stands or is dead. False when time is up. */
bool subscribers_open(const struct options *options);

/* How many live streams are on the topic of this message. */
long subscribers_of_message(int message);

/* Begins a new count; messages numbered below `first_message` are no longer counted. */
void subscribers_reset(int first_message);

#endif
