/* report.h: the figures of a run: as one JSON object for a program, and as lines for a reader. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "options.h"
#include "process.h"

#include <stdio.h>

struct report_connect {
    struct usage before, after;
    double seconds;
    int64_t bytes_in, bytes_out; /* without headers of the network */
};

struct report_publish {
    struct usage before, after;
    int messages;            /* published */
    long expected;           /* deliveries, had none been lost */
    double delivery_seconds; /* from the first publish to the last delivery */
    double answer_seconds;   /* from the first publish to the last answer */
};

struct report {
    const struct options *options;
    struct report_connect connect;
    struct report_publish publish;
    struct usage before_publishing; /* and before the messages that are not measured */
    long wrong;                     /* streams that did not get exactly what they were to get */
    int64_t send_buffer;            /* of the server's sockets; see memory_send_buffer */
};

void report_print_json(const struct report *report, FILE *out);
void report_print_line(const struct report *report, FILE *out);

#endif
