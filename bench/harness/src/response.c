#include "response.h"

#include <stdlib.h>
#include <string.h>

void response_clear(struct response *response)
{
    response->length = 0;
    response->bytes[0] = '\0';
}

void response_feed(struct response *response, const char *bytes, size_t length)
{
    size_t room = RESPONSE_BYTES - 1 - response->length;
    size_t taken = length < room ? length : room;
    memcpy(response->bytes + response->length, bytes, taken);
    response->length += taken;
    response->bytes[response->length] = '\0';
}

static const char *body_of(const struct response *response)
{
    const char *end = strstr(response->bytes, "\r\n\r\n");
    return end ? end + 4 : NULL;
}

int response_status(const struct response *response)
{
    return body_of(response) && response->length > 12 ? atoi(response->bytes + 9) : 0;
}

/* What follows the name and colon of a field in the head, or NULL. */
static const char *field(const struct response *response, const char *name)
{
    const char *body = body_of(response);
    size_t length = strlen(name);
    for (const char *line = strstr(response->bytes, "\r\n"); line && line + 2 < body; line = strstr(line + 2, "\r\n"))
        if (strncasecmp(line + 2, name, length) == 0 && line[2 + length] == ':') return line + 3 + length;
    return NULL;
}

bool response_complete(const struct response *response)
{
    const char *body = body_of(response);
    if (!body) return false;
    const char *length = field(response, "content-length");
    if (length) return response->length - (size_t)(body - response->bytes) >= strtoul(length, NULL, 10);
    return !field(response, "transfer-encoding") || strstr(body, "0\r\n\r\n");
}

bool response_closes(const struct response *response)
{
    const char *value = field(response, "connection");
    return value && strncasecmp(value + strspn(value, " "), "close", 5) == 0;
}
