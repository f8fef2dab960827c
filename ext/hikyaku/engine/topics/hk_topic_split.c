#include "hk_topic.h"

enum { MAX_DOMAIN = 253, MAX_LABEL = 63, MAX_PORT = 65535 };

/* What the standard leaves as it is, in the path and so also behind it. */
enum { OTHER, IN_PATH, IN_QUERY };

static const unsigned char kinds[256] = {
    ['a' ... 'z'] = IN_PATH, ['A' ... 'Z'] = IN_PATH, ['0' ... '9'] = IN_PATH, ['-'] = IN_PATH, ['.'] = IN_PATH,
    ['_'] = IN_PATH,         ['~'] = IN_PATH,         ['!'] = IN_PATH,         ['$'] = IN_PATH, ['&'] = IN_PATH,
    ['('] = IN_PATH,         [')'] = IN_PATH,         ['*'] = IN_PATH,         ['+'] = IN_PATH, [','] = IN_PATH,
    [';'] = IN_PATH,         ['='] = IN_PATH,         [':'] = IN_PATH,         ['@'] = IN_PATH, ['/'] = IN_PATH,
    ['?'] = IN_QUERY,
};

typedef struct hk_reader {
    const char *at, *end;
} hk_reader_t;

static bool follows(const hk_reader_t *reader, char byte)
{
    return reader->at < reader->end && *reader->at == byte;
}

static bool skip(hk_reader_t *reader, char byte)
{
    bool there = follows(reader, byte);
    reader->at += there;
    return there;
}

static bool is_letter(char byte)
{
    return byte >= 'a' && byte <= 'z';
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Labels of letters and digits with single hyphens between them; the last begins with a letter, so the host is no
 * address. */
static bool read_domain(hk_reader_t *reader, hk_bytes_t *domain)
{
    const char *start = reader->at, *label;
    do {
        label = reader->at;
        bool hyphen = true;
        for (; reader->at < reader->end; reader->at++) {
            bool alphanumeric = is_letter(*reader->at) || is_digit(*reader->at);
            if (!alphanumeric && (*reader->at != '-' || hyphen)) {
                break;
            }
            hyphen = !alphanumeric;
        }
        if (hyphen || reader->at - label > MAX_LABEL) {
            return false;
        }
    } while (skip(reader, '.'));
    *domain = hk_bytes(start, (size_t)(reader->at - start));
    return is_letter(*label) && domain->length <= MAX_DOMAIN;
}

static bool read_port(hk_reader_t *reader, unsigned default_port, hk_bytes_t *port)
{
    const char *start = reader->at;
    unsigned number = 0;
    for (; reader->at < reader->end && is_digit(*reader->at) && number <= MAX_PORT; reader->at++) {
        number = number * 10 + (unsigned)(*reader->at - '0');
    }
    *port = hk_bytes(start, (size_t)(reader->at - start));
    return port->length > 0 && *start != '0' && number <= MAX_PORT && number != default_port;
}

/* Whether "." or ".." is all that stands up to the next slash. */
static bool dots_follow(hk_reader_t reader)
{
    if (!skip(&reader, '.')) {
        return false;
    }
    skip(&reader, '.');
    return reader.at == reader.end || *reader.at == '/' || *reader.at == '?' || *reader.at == '#';
}

static bool read_path(hk_reader_t *reader, hk_bytes_t *path)
{
    const char *start = reader->at;
    while (reader->at < reader->end && kinds[(unsigned char)*reader->at] == IN_PATH) {
        if (*reader->at++ == '/' && dots_follow(*reader)) {
            return false;
        }
    }
    *path = reader->at > start ? hk_bytes(start, (size_t)(reader->at - start)) : HK_BYTES("/");
    return true;
}

static hk_bytes_t read_after(hk_reader_t *reader, char mark)
{
    if (!skip(reader, mark)) {
        return HK_BYTES("");
    }
    const char *start = reader->at;
    while (reader->at < reader->end && kinds[(unsigned char)*reader->at] != OTHER) {
        reader->at++;
    }
    return hk_bytes(start, (size_t)(reader->at - start));
}

/* scheme "://" domain [":" port], and then a path, a query, a fragment, or nothing. */
static bool read_origin(hk_reader_t *reader, hk_url_t *url)
{
    static const hk_bytes_t http = {"http", 4}, https = {"https", 5};
    const char *start = reader->at;
    hk_bytes_t whole = hk_bytes(start, (size_t)(reader->end - start));
    bool secure = hk_bytes_start_with(whole, https);
    if (!hk_bytes_start_with(whole, http)) {
        return false;
    }
    url->parts[HK_URL_PROTOCOL] = secure ? https : http;
    reader->at += url->parts[HK_URL_PROTOCOL].length;
    if (!skip(reader, ':') || !skip(reader, '/') || !skip(reader, '/') ||
        !read_domain(reader, &url->parts[HK_URL_HOSTNAME])) {
        return false;
    }
    if (skip(reader, ':') && !read_port(reader, secure ? 443 : 80, &url->parts[HK_URL_PORT])) {
        return false;
    }
    url->origin = hk_bytes(start, (size_t)(reader->at - start));
    return reader->at == reader->end || follows(reader, '/') || follows(reader, '?') || follows(reader, '#');
}

static bool take_origin(const hk_url_t *hub, hk_url_t *url)
{
    hk_bytes_t protocol = hub->parts[HK_URL_PROTOCOL];
    for (size_t part = HK_URL_PROTOCOL; part < HK_URL_PATHNAME; part++) {
        url->parts[part] = hub->parts[part];
    }
    url->origin = hub->origin;
    return hk_bytes_equal(protocol, HK_BYTES("https")) || hk_bytes_equal(protocol, HK_BYTES("http"));
}

hk_status_t hk_topic_split(hk_bytes_t value, const hk_url_t *hub, hk_url_t *url)
{
    if (value.length == 0) {
        return HK_UNKNOWN;
    }
    hk_reader_t reader = {value.at, value.at + value.length};
    hk_url_t split = {.origin = HK_BYTES("")};
    bool absolute = *value.at != '/';
    if (!absolute && value.length > 1 && value.at[1] == '/') {
        return HK_UNKNOWN;
    }
    if (!(absolute ? read_origin(&reader, &split) : take_origin(hub, &split))) {
        return HK_UNKNOWN;
    }
    if (!read_path(&reader, &split.parts[HK_URL_PATHNAME])) {
        return HK_UNKNOWN;
    }
    split.parts[HK_URL_SEARCH] = read_after(&reader, '?');
    split.parts[HK_URL_HASH] = read_after(&reader, '#');
    if (reader.at != reader.end) {
        return HK_UNKNOWN;
    }
    *url = split;
    return HK_OK;
}
