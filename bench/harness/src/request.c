#include "request.h"

#include "marker.h"
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = OPTIONS_TEXT + 256 };

static const struct options *options;
static struct template path, prefix, warmup_prefix, suffix;
static char before_path[64], after_path[HEAD_BYTES];
static char *filler, *body;
static int largest;

/* Of a body, beside the message. */
static size_t around_most(void)
{
    return (prefix.most > warmup_prefix.most ? prefix.most : warmup_prefix.most) + suffix.most;
}

void request_prepare(const struct options *given)
{
    options = given;
    template_compile(&path, options->publish_path);
    template_compile(&prefix, options->publish_prefix);
    template_compile(&suffix, options->publish_suffix);
    template_compile(&warmup_prefix, options->warmup_prefix ? options->warmup_prefix : options->publish_prefix);
    bool has_body = strcmp(options->method, "GET") != 0;
    snprintf(before_path, sizeof before_path, "%.30s ", options->method);
    snprintf(after_path, sizeof after_path, " HTTP/1.1\r\nHost: %s:%d\r\n%s%s", options->host,
             options->publish_port, options->publish_headers,
             has_body ? "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " : "\r\n");
    largest = !has_body ? 0 : options->size > options->warmup_size ? options->size : options->warmup_size;
    filler = malloc((size_t)largest + 1);
    body = malloc(around_most() + (size_t)largest);
    if (!filler || !body) exit(2);
    memset(filler, 'x', (size_t)largest);
}

size_t request_most(void)
{
    return sizeof before_path + path.most + sizeof after_path + around_most() + (size_t)largest + 16;
}

static char *copy(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}

size_t request_write_body(char *out, int message, int64_t sent_ns)
{
    int topic = message % options->message_topics;
    bool warmup = message < options->warmup;
    int size = warmup ? options->warmup_size : options->size;
    char *end = template_fill(warmup ? &warmup_prefix : &prefix, topic, message, out);
    marker_write(end, sent_ns, (uint32_t)message);
    end = copy(end + MARKER_BYTES, filler, (size_t)size - MARKER_BYTES);
    return (size_t)(template_fill(&suffix, topic, message, end) - out);
}

size_t request_write(char *out, int message, int64_t sent_ns)
{
    int topic = message % options->message_topics;
    char *at = copy(out, before_path, strlen(before_path));
    at = template_fill(&path, topic, message, at);
    at = copy(at, after_path, strlen(after_path));
    if (!largest) return (size_t)(at - out);

    size_t length = request_write_body(body, message, sent_ns);
    at = template_number(at, (unsigned)length);
    at = copy(at, "\r\n\r\n", 4);
    at = copy(at, body, length);
    return (size_t)(at - out);
}
