/* queue_report.h: the figures of a run with a broker: as one JSON object for a program, and as a line for a reader. */
#ifndef BENCH_QUEUE_REPORT_H
#define BENCH_QUEUE_REPORT_H

#include "process.h"
#include "queue_options.h"

#include <stdio.h>

struct queue_report {
    const struct queue_options *options;
    struct usage idle, before, after; /* before anything was sent; around the messages that are measured */
    double connect_seconds;           /* until every client was ready */
    double ready_seconds;             /* until the first of them was */
    double first_seconds;             /* from the first connection to the first receipt */
    double delivery_seconds;          /* from the first SEND to the last receipt */
    long done_each_second[QUEUE_SECONDS]; /* of --seconds: messages that were done with in each whole one */
    int whole_seconds;
    double seconds;                   /* from the first SEND until everything was acknowledged and freed */
};

void queue_report_print_json(const struct queue_report *report, FILE *out);
void queue_report_print_line(const struct queue_report *report, FILE *out);

#endif
