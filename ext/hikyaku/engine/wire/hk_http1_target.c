#include "hk_http1_private.h"

static bool valid_port(const char *at, const char *end)
{
    uint64_t port = 0;
    return end - at <= 5 && hk_http1_skip(at, end, HK_HTTP1_DIGIT) == end &&
           hk_http1_number(hk_bytes(at, (size_t)(end - at)), 10, &port) && port <= UINT16_MAX;
}

/* The end of what could be a host, or NULL. In brackets stands something like an IPv6 address, which is not looked at
 * more closely: whoever wants to connect to it will. */
static const char *end_of_host(const char *at, const char *end)
{
    if (*at == '[') {
        unsigned colons = 0;
        for (at++; at < end && (hk_http1_is(*at, HK_HTTP1_HEX) || *at == ':' || *at == '.'); at++) {
            colons += *at == ':';
        }
        return at < end && *at == ']' && colons >= 2 ? at + 1 : NULL;
    }
    const char *begin = at;
    while ((at = hk_http1_skip(at, end, HK_HTTP1_IN_NAME)) < end && *at == '%') {
        if (end - at < 3 || !hk_http1_is(at[1], HK_HTTP1_HEX) || !hk_http1_is(at[2], HK_HTTP1_HEX)) {
            return NULL;
        }
        at += 3;
    }
    return at > begin ? at : NULL;
}

bool hk_http1_valid_authority(hk_bytes_t bytes, bool port_needed)
{
    if (bytes.length == 0) {
        return false;
    }
    const char *end = bytes.at + bytes.length;
    const char *colon = end_of_host(bytes.at, end);
    if (colon == NULL) {
        return false;
    }
    if (colon == end || colon + 1 == end) {
        return !port_needed && (colon == end || *colon == ':');
    }
    return *colon == ':' && valid_port(colon + 1, end);
}

static void split_path(hk_http1_request_t *request, const char *at, const char *end)
{
    const char *mark = at < end ? memchr(at, '?', (size_t)(end - at)) : NULL;
    request->path = hk_bytes(at, (size_t)((mark ? mark : end) - at));
    request->query = mark ? hk_bytes(mark + 1, (size_t)(end - mark - 1)) : hk_bytes(NULL, 0);
}

static hk_http1_error_t parse_absolute(hk_http1_request_t *request)
{
    const char *at = request->target.at, *end = at + request->target.length;
    if (!hk_http1_is(*at, HK_HTTP1_ALPHA)) {
        return HK_HTTP1_TARGET;
    }
    while (at < end && (hk_http1_is(*at, HK_HTTP1_ALPHA | HK_HTTP1_DIGIT) || *at == '+' || *at == '-' || *at == '.')) {
        at++;
    }
    if (!hk_bytes_start_with(hk_bytes(at, (size_t)(end - at)), HK_BYTES("://"))) {
        return HK_HTTP1_TARGET;
    }
    const char *authority = at + 3, *path = authority;
    while (path < end && *path != '/' && *path != '?') {
        path++;
    }
    request->form = HK_HTTP1_ABSOLUTE;
    request->authority = hk_bytes(authority, (size_t)(path - authority));
    split_path(request, path, end);
    return hk_http1_valid_authority(request->authority, false) ? HK_HTTP1_NONE : HK_HTTP1_TARGET;
}

hk_http1_error_t hk_http1_parse_target(hk_http1_request_t *request)
{
    hk_bytes_t target = request->target;
    request->path = request->query = request->authority = hk_bytes(NULL, 0);
    if (hk_bytes_equal(request->method, HK_BYTES("CONNECT"))) {
        request->form = HK_HTTP1_AUTHORITY;
        request->authority = target;
        return hk_http1_valid_authority(target, true) ? HK_HTTP1_NONE : HK_HTTP1_TARGET;
    }
    if (target.at[0] == '/') {
        request->form = HK_HTTP1_ORIGIN;
        split_path(request, target.at, target.at + target.length);
        return HK_HTTP1_NONE;
    }
    if (hk_bytes_equal(target, HK_BYTES("*"))) {
        request->form = HK_HTTP1_ASTERISK;
        request->path = target;
        return hk_bytes_equal(request->method, HK_BYTES("OPTIONS")) ? HK_HTTP1_NONE : HK_HTTP1_TARGET;
    }
    return parse_absolute(request);
}
