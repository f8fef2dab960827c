#include "hk_http1_private.h"

const hk_http1_limits_t hk_http1_default_limits = {
    .leading_lines = 4,
    .method_bytes = 32,
    .target_bytes = 16384,
    .line_bytes = 32768,
    .head_bytes = 65536,
    .chunk_line_bytes = 256,
    .trailer_bytes = 8192,
};

typedef struct error_entry {
    const char *name, *text;
    int status;
} error_entry_t;

static const error_entry_t entries[] = {
#define ENTRY(name, status, text) {#name, text, status},
    HK_HTTP1_ERROR_LIST(ENTRY)
#undef ENTRY
};

const char *hk_http1_error_name(hk_http1_error_t error)
{
    return entries[error].name;
}

const char *hk_http1_error_text(hk_http1_error_t error)
{
    return entries[error].text;
}

int hk_http1_error_status(hk_http1_error_t error)
{
    return entries[error].status;
}

static hk_bytes_t moved(hk_bytes_t bytes, const char *from, const char *to)
{
    if (bytes.at == NULL) {
        return bytes;
    }
    return hk_bytes(to + ((uintptr_t)bytes.at - (uintptr_t)from), bytes.length);
}

static void move_headers(hk_http1_header_t *headers, size_t count, const char *from, const char *to)
{
    for (size_t i = 0; i < count; i++) {
        headers[i].name = moved(headers[i].name, from, to);
        headers[i].value = moved(headers[i].value, from, to);
    }
}

void hk_http1_request_moved(hk_http1_request_t *request, const char *from, const char *to)
{
    request->method = moved(request->method, from, to);
    request->target = moved(request->target, from, to);
    request->path = moved(request->path, from, to);
    request->query = moved(request->query, from, to);
    request->authority = moved(request->authority, from, to);
    move_headers(request->headers, request->header_count, from, to);
}

void hk_http1_response_moved(hk_http1_response_t *response, const char *from, const char *to)
{
    response->reason = moved(response->reason, from, to);
    move_headers(response->headers, response->header_count, from, to);
}

const hk_http1_header_t *hk_http1_header_find(const hk_http1_header_t *headers, size_t count, hk_bytes_t name)
{
    for (size_t i = 0; i < count; i++) {
        if (hk_http1_is_word(headers[i].name, name)) {
            return &headers[i];
        }
    }
    return NULL;
}

size_t hk_http1_header_count(const hk_http1_header_t *headers, size_t count, hk_bytes_t name)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        found += hk_http1_is_word(headers[i].name, name);
    }
    return found;
}
