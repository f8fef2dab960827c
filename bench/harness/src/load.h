/* load.h: the parts of the load generator for hubs and HTTP servers. */
#ifndef LOAD_H
#define LOAD_H

#include "bench.h"

enum { LOAD_PATHS = 16, LOAD_TEXT = 8192, MARKER_BYTES = 27 };

struct options {
    const char *host;
    int port, publish_port; /* publish_port defaults to port */
    int subscribers, messages, warmup, publishers;
    int topics;         /* subscriber i listens to topic i % topics */
    int message_topics; /* message j goes to topic j % message_topics; defaults to topics */
    int size, warmup_size;
    int stalled, receive_buffer; /* subscribers that never read, and their SO_RCVBUF */
    int window;                  /* connections being opened at once */
    int timeout_s, settle_ms, linger_ms;
    double rate, seconds, warmup_seconds;
    bool sync;
    int together;
    bool pipeline, gzip, speak, same;
    const char *method, *coding;
    const char *subscribe_paths[LOAD_PATHS]; /* subscriber i requests path i % subscribe_path_count */
    int subscribe_path_count;
    const char *stalled_path, *subscribe_body, *cable;
    const char *publish_path, *publish_prefix, *publish_suffix, *warmup_prefix, *text_file;
    char subscribe_headers[LOAD_TEXT], publish_headers[LOAD_TEXT];
    const char *subscribe_header_file;
    struct processes server;
};

extern struct options options;

/* --- texts with the holes {t} (a topic's number) and {n} (a message's or subscriber's) ------------------------------ */

enum { TEMPLATE_PIECES = 9 };

struct template {
    struct {
        const char *text;
        size_t length;
        char hole; /* behind the text: 't', 'n' or 0 */
    } pieces[TEMPLATE_PIECES];
    int count;
    size_t max_bytes;
};

void template_compile(struct template *template, const char *text); /* keeps pointers into `text` */
char *template_fill(const struct template *template, int t, int n, char *out); /* returns the end; adds no NUL */

struct lines {
    char **all;
    int count;
};

void lines_read(struct lines *lines, const char *path); /* exits when the file is empty or unreadable */

/* --- subscribers: event streams, and the latency of all that arrives ------------------------------------------------ */

struct subscribers_tally {
    long ready, dead, stalled;
    long delivered, misdirected; /* since the last reset */
    int64_t last_ns, bytes, bytes_out;
    struct samples latency;
};

extern struct subscribers_tally subscribers_tally;

bool subscribers_open(void); /* false on timeout */
/* Notes that the message was published; returns the number of streams that must receive it. */
long subscribers_expect(int message);
/* Sends a command of Action Cable on the stream whose turn it is; false when no stream stands. */
bool subscribers_speak(int message, const char *text, size_t length);
/* The number of streams that did not receive each expected message exactly once. */
long subscribers_wrong(void);
void subscribers_reset(int first_message); /* messages below it are no longer counted */

/* --- publishers: connections that send requests in turn ------------------------------------------------------------- */

struct publishers_tally {
    long sent, accepted, refused, wrong, connects; /* since the last reset */
    int64_t last_ns, bytes;
    size_t body_bytes;     /* of the latest response */
    struct samples answer; /* not taken with --pipeline */
};

extern struct publishers_tally publishers_tally;

void publishers_open(void);
/* Publishes on a free connection: one that waits for no response or, with --pipeline, whose socket takes more bytes.
 * False when there is none. With --pipeline the request may wait for publishers_flush. */
bool publishers_send(int message);
void publishers_flush(void);
long publishers_waiting(void); /* requests without a response */
void publishers_reset(void);

#endif
