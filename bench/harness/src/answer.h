/* answer.h: one answer of HTTP/1.1 as it comes, in pieces of any size: how long its body is, how it is coded, and a
 * fingerprint by which it is told from another.
 *
 *     HEAD ─► BODY ────────────────────────────────────► DONE
 *       └───► SIZE ─► CHUNK ─► CHUNK_END ─► SIZE … ─► TRAILER ─► DONE
 *
 * Any state ─► BROKEN: what came is no answer that this understands. */
#ifndef BENCH_ANSWER_H
#define BENCH_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ANSWER_LINE = 4096, ANSWER_CODING = 16 };

enum answer_state {
    ANSWER_HEAD,
    ANSWER_BODY,
    ANSWER_SIZE,
    ANSWER_CHUNK,
    ANSWER_CHUNK_END,
    ANSWER_TRAILER,
    ANSWER_DONE,
    ANSWER_BROKEN
};

struct answer {
    enum answer_state state;
    int status;
    bool closes;                /* the server closes the connection after it */
    bool chunked;
    char coding[ANSWER_CODING]; /* its Content-Encoding; "" for none */
    size_t bytes, body_bytes;   /* of all of it, and of its body as it is coded */
    uint64_t print;             /* of the body, but for the head of gzip, which may tell the time */
    size_t left;                /* of the body, or of the chunk */
    size_t used;                /* of the line */
    char line[ANSWER_LINE];
};

/* Before the first byte. */
void answer_begin(struct answer *answer);

/* Takes as many of these bytes as belong to it, and says how many; once it is DONE or BROKEN it takes none. */
size_t answer_take(struct answer *answer, const char *bytes, size_t length);

#endif
