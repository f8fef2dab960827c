/* options.h: what to open, what to publish, whom to measure. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OPTIONS_PIDS = 16, OPTIONS_TEXT = 8192 };

struct options {
    int port;
    int subscribers, messages, warmup, publishers;
    int topics;      /* subscriber i and message j are on topic i % topics, j % topics */
    int size;        /* bytes of a message, marker included */
    int window;      /* connections under way at once */
    int timeout_s;   /* for each phase */
    int settle_ms;   /* between the phases: subscribers register, collectors collect */
    double rate;     /* messages a second; 0: as fast as they are answered */
    bool sync;       /* the next only when all have the last */
    const char *method;
    const char *subscribe_path, *publish_path, *publish_prefix; /* "{t}" in them is the topic's number */
    char subscribe_headers[OPTIONS_TEXT], publish_headers[OPTIONS_TEXT];
    pid_t pids[OPTIONS_PIDS]; /* the server's processes */
    int pid_count;
};

/* Reads the command line; on a mistake says which, and exits 2. */
void options_parse(struct options *options, int argc, char **argv);

/* Copies `template` with "{t}" replaced by the number of the topic of subscriber or message `index`. */
void options_expand(const struct options *options, const char *template, int index, char *out, size_t size);

#endif
