#include "samples.h"

#include <stdlib.h>

struct summary {
    double mean, median, min, max, p99; /* milliseconds */
};

void samples_add(struct samples *samples, int64_t ns)
{
    if (samples->count == samples->capacity) {
        samples->capacity = samples->capacity ? samples->capacity * 2 : 4096;
        samples->ns = realloc(samples->ns, samples->capacity * sizeof *samples->ns);
        if (!samples->ns) {
            perror("samples");
            exit(2);
        }
    }
    samples->ns[samples->count++] = ns;
}

void samples_clear(struct samples *samples)
{
    samples->count = 0;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static struct summary summarize(struct samples *samples)
{
    if (samples->count == 0) return (struct summary){0};
    size_t n = samples->count;
    int64_t *ns = samples->ns;
    qsort(ns, n, sizeof *ns, compare);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += (double)ns[i];
    int64_t twice_median = ns[(n - 1) / 2] + ns[n / 2];
    return (struct summary){.mean = sum / (double)n / 1e6,
                            .median = (double)twice_median / 2e6,
                            .min = (double)ns[0] / 1e6,
                            .max = (double)ns[n - 1] / 1e6,
                            .p99 = (double)ns[(n - 1) * 99 / 100] / 1e6};
}

double samples_percentile_ms(struct samples *samples, int percent)
{
    if (samples->count == 0) return 0;
    qsort(samples->ns, samples->count, sizeof *samples->ns, compare);
    return (double)samples->ns[(samples->count - 1) * (size_t)percent / 100] / 1e6;
}

void samples_print_json(struct samples *samples, FILE *out)
{
    struct summary s = summarize(samples);
    fprintf(out,
            "{\"count\": %zu, \"mean\": %.4f, \"median\": %.4f, \"min\": %.4f, \"max\": %.4f, \"p99\": %.4f}",
            samples->count, s.mean, s.median, s.min, s.max, s.p99);
}

void samples_print_line(struct samples *samples, const char *name, FILE *out)
{
    struct summary s = summarize(samples);
    fprintf(out, "%s ms: mean %.3f, median %.3f, min %.3f, max %.3f, p99 %.3f", name, s.mean, s.median,
            s.min, s.max, s.p99);
}
