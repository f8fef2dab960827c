/* options.h: what to open, what to publish, whom to measure. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { OPTIONS_PIDS = 16, OPTIONS_PATHS = 16, OPTIONS_TEXT = 8192 };

struct options {
    const char *host;
    int port, publish_port; /* the latter is the former unless said */
    int subscribers, messages, warmup, publishers;
    int topics;         /* subscriber i is on topic i % topics */
    int message_topics; /* message j is on topic j % message_topics; as many as topics unless said */
    int size;           /* bytes of a message, marker included */
    int warmup_size;    /* of those before; as many unless said */
    int stalled;        /* how many of the subscribers never read */
    int receive_buffer; /* SO_RCVBUF of those */
    int window;         /* connections under way at once */
    int timeout_s;      /* for each phase */
    int settle_ms;      /* between the phases: subscribers register, collectors collect */
    int linger_ms;      /* after the last of them, before the connections are closed */
    double rate;        /* messages a second; 0: as fast as they are answered */
    double seconds;     /* publish for so long, whatever `messages` says; 0: until they are all sent */
    bool sync;          /* the next only when all have the last */
    int together;       /* with sync: so many leave before all must have them */
    bool pipeline;      /* never wait for an answer */
    const char *method;
    const char *subscribe_paths[OPTIONS_PATHS]; /* subscriber i asks for path i % subscribe_path_count */
    int subscribe_path_count;
    const char *stalled_path;   /* instead, of those that never read */
    const char *subscribe_body; /* they POST this; NULL: they GET */
    bool gzip;                  /* they ask for their streams in gzip, and take no other */
    const char *cable;          /* they speak Action Cable and subscribe with this command; NULL: they read a stream */
    bool speak;                 /* messages are commands of the subscribers themselves */
    const char *publish_path, *publish_prefix, *publish_suffix;
    const char *text_file;     /* line j is the text of message j, in turn, its marker in place of {m}; NULL: filler */
    const char *warmup_prefix; /* instead, of the messages before; only those that never read get them */
    char subscribe_headers[OPTIONS_TEXT], publish_headers[OPTIONS_TEXT];
    const char *subscribe_header_file; /* line i is one more header of subscriber i */
    pid_t pids[OPTIONS_PIDS];          /* the server's processes */
    int pid_count;
};

/* Reads the command line; on a mistake says which, and exits 2. */
void options_parse(struct options *options, int argc, char **argv);

#endif
