/* inflated.h: a stream that comes in gzip, as it was before; with zlib, where the program was compiled with it. */
#ifndef BENCH_INFLATED_H
#define BENCH_INFLATED_H

#include <stdbool.h>
#include <stddef.h>

struct inflated;

/* Whether there is zlib. */
bool inflated_available(void);

/* A new stream, or NULL. */
struct inflated *inflated_new(void);

/* NULL is allowed. */
void inflated_free(struct inflated *inflated);

/* Calls `take` with what these bytes come to, in pieces of at most 64 KiB. False when they are not gzip, or when it
 * ended. */
bool inflated_read(struct inflated *inflated, const char *bytes, size_t length,
                   void (*take)(void *context, const char *bytes, size_t length), void *context);

#endif
