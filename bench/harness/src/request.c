#include "request.h"

#include "lines.h"
#include "marker.h"
#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = OPTIONS_TEXT + 256 };

#define HOLE "{m}" /* of a text: where its marker goes */

static const struct options *options;
static struct template path, prefix, warmup_prefix, suffix;
static char before_path[64], after_path[HEAD_BYTES];
static struct lines texts;
static char *filler, *body;
static int largest;

/* Of a body, beside the message. */
static size_t around_most(void)
{
    return (prefix.most > warmup_prefix.most ? prefix.most : warmup_prefix.most) + suffix.most;
}

static void read_texts(void)
{
    lines_read(&texts, options->text_file);
    for (int i = 0; i < texts.count; i++) {
        int length = (int)strlen(texts.all[i]) + MARKER_BYTES;
        if (length > largest) largest = length;
        if (strstr(texts.all[i], HOLE)) continue;
        fprintf(stderr, "load: %s has a line without " HOLE "\n", options->text_file);
        exit(2);
    }
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
    if (options->text_file) read_texts();
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

/* A message of the size that is wanted, or of the line whose turn it is. */
static char *write_message(char *out, int message, int64_t sent_ns)
{
    int size = message < options->warmup ? options->warmup_size : options->size;
    const char *text = texts.count ? texts.all[message % texts.count] : HOLE;
    const char *hole = strstr(text, HOLE), *rest = hole + sizeof HOLE - 1;
    out = copy(out, text, (size_t)(hole - text));
    marker_write(out, sent_ns, (uint32_t)message);
    out += MARKER_BYTES;
    return texts.count ? copy(out, rest, strlen(rest)) : copy(out, filler, (size_t)size - MARKER_BYTES);
}

size_t request_write_body(char *out, int message, int64_t sent_ns)
{
    int topic = message % options->message_topics;
    char *end = template_fill(message < options->warmup ? &warmup_prefix : &prefix, topic, message, out);
    end = write_message(end, message, sent_ns);
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
