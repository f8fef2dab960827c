#include "response.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STATUS_AT = 9, LEAST_HEAD = 12 };

static const char last_chunk[] = "0\r\n\r\n";

/* What follows the name and colon of a field, or NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':') return NULL;
    line += length + 1;
    return line + strspn(line, " ");
}

static const char *end_of_chunks(const char *body)
{
    if (strncmp(body, last_chunk, sizeof last_chunk - 1) == 0) return body + sizeof last_chunk - 1;
    const char *end = strstr(body, "\r\n0\r\n\r\n");
    return end ? end + sizeof last_chunk + 1 : NULL;
}

int response_status(const char *bytes)
{
    const char *end = strstr(bytes, "\r\n\r\n");
    return end && end - bytes >= LEAST_HEAD ? atoi(bytes + STATUS_AT) : 0;
}

bool response_read(const char *bytes, size_t length, struct response *response)
{
    *response = (struct response){.status = response_status(bytes)};
    if (!response->status) return false;
    const char *body = strstr(bytes, "\r\n\r\n") + 4, *value;
    size_t head = (size_t)(body - bytes), content = 0;
    bool chunked = false;
    for (const char *line = bytes; (line = strstr(line, "\r\n") + 2) < body - 2;) {
        if ((value = value_of(line, "content-length"))) content = strtoul(value, NULL, 10);
        else if ((value = value_of(line, "connection"))) response->closes = strncasecmp(value, "close", 5) == 0;
        else if (value_of(line, "transfer-encoding")) chunked = true;
    }
    response->bytes = head + content;
    if (!chunked) return true;
    const char *end = end_of_chunks(body);
    response->bytes = end ? (size_t)(end - bytes) : length;
    return end != NULL;
}
