/* response.h: as much of HTTP/1.1 as a load generator must understand of an answer. */
#ifndef BENCH_RESPONSE_H
#define BENCH_RESPONSE_H

#include <stdbool.h>
#include <stddef.h>

enum { RESPONSE_BYTES = 2048 };

/* The first bytes of an answer: more than these are not looked at. */
struct response {
    char bytes[RESPONSE_BYTES];
    size_t length;
};

void response_clear(struct response *response);
void response_feed(struct response *response, const char *bytes, size_t length);

/* The status code, or 0 while the head has not ended. */
int response_status(const struct response *response);

/* Whether the body, delimited by Content-Length or chunks, is there too. */
bool response_complete(const struct response *response);

/* Whether the server will close the connection after it. */
bool response_closes(const struct response *response);

#endif
