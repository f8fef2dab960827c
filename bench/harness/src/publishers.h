/* publishers.h: connections that publish in turn, and the time until each answer. */
#ifndef BENCH_PUBLISHERS_H
#define BENCH_PUBLISHERS_H

#include "options.h"
#include "samples.h"

#include <stdbool.h>

struct publishers_tally {
    long sent, accepted, refused; /* since the last reset */
    int64_t last_ns;              /* when the latest answer was complete */
    struct samples answer;        /* none of pipelined requests */
};

extern struct publishers_tally publishers_tally;

void publishers_open(const struct options *options);

/* Publishes this message on a connection that is free: that waits for no answer, or, with --pipeline, that takes more
 * bytes; with --speak on a subscriber's. False when there is none. A pipelined request may wait for publishers_flush. */
bool publishers_send(int message);

/* Sends what pipelined requests wait. */
void publishers_flush(void);

/* Messages that are not answered yet. */
long publishers_waiting(void);

void publishers_reset(void);

#endif
