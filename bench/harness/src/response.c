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

bool response_complete(const struct response *response)
{
    const char *body = body_of(response);
    if (!body) return false;
    const char *length = strcasestr(response->bytes, "\r\ncontent-length:");
    if (length && length < body)
        return response->length - (size_t)(body - response->bytes) >= strtoul(length + 17, NULL, 10);
    const char *chunked = strcasestr(response->bytes, "\r\ntransfer-encoding: chunked");
    return !(chunked && chunked < body) || strstr(body, "0\r\n\r\n");
}
