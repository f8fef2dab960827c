/* request.h: the requests that publish, made of prepared parts: a load generator that is slower than the server
 * measures itself. */
#ifndef BENCH_REQUEST_H
#define BENCH_REQUEST_H

#include "options.h"

#include <stddef.h>
#include <stdint.h>

/* Prepares the parts. Once, before anything else. */
void request_prepare(const struct options *options);

/* The most bytes that one can have. */
size_t request_most(void);

/* Writes the request that publishes this message, with a marker that says when, and returns its length. */
size_t request_write(char *out, int message, int64_t sent_ns);

/* Writes what is the body of that request alone. */
size_t request_write_body(char *out, int message, int64_t sent_ns);

#endif
