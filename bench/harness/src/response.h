/* response.h: as much of HTTP/1.1 as a load generator must understand of an answer. */
#ifndef BENCH_RESPONSE_H
#define BENCH_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>

/* The head of an answer, and how long all of it is. */
struct response {
    int status;
    bool closes;  /* the server closes the connection after it */
    size_t bytes; /* head and body */
};

/* Reads the answer at the beginning of these bytes, which are followed by a NUL. False while its head, or its body
 * when that comes in chunks, is not all there; a body with a Content-Length need not be. */
bool response_read(const char *bytes, size_t length, struct response *response);

/* The status alone, or 0 while the head has not ended. */
int response_status(const char *bytes);

#endif
