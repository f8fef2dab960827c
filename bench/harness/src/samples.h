/* samples.h: every measured duration, kept whole: nothing is dropped, nothing is estimated. */
#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct samples {
    int64_t *ns;
    size_t count, capacity;
};

void samples_add(struct samples *samples, int64_t ns);
void samples_clear(struct samples *samples);

/* Sorts them and prints {"count", "mean", "median", "min", "max", "p99"}, in milliseconds. */
void samples_print_json(struct samples *samples, FILE *out);

/* Sorts them; as many in a hundred are no longer than this, in milliseconds. 0 when there are none. */
double samples_percentile_ms(struct samples *samples, int percent);

/* The same as the JSON, in words. */
void samples_print_line(struct samples *samples, const char *name, FILE *out);

#endif
