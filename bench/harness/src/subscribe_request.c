#include "subscribe_request.h"

#include "cable.h"
#include "lines.h"
#include "template.h"

#include <stdio.h>
#include <stdlib.h>

static const struct options *options;
static struct template paths[OPTIONS_PATHS], stalled_path, body;
static struct lines headers;

static void compile(struct template *template, const char *text, const char *what)
{
    template_compile(template, text ? text : "");
    if (template->most < OPTIONS_TEXT) return;
    fprintf(stderr, "load: %s is too long\n", what);
    exit(2);
}

void subscribe_request_prepare(const struct options *given)
{
    options = given;
    for (int i = 0; i < options->subscribe_path_count; i++) compile(&paths[i], options->subscribe_paths[i], "a path");
    compile(&stalled_path, options->stalled_path, "a path");
    compile(&body, options->subscribe_body, "the body of a subscribe");
    if (options->subscribe_header_file) lines_read(&headers, options->subscribe_header_file);
}

static const struct template *path_of(int index, bool stalled)
{
    return stalled && options->stalled_path ? &stalled_path : &paths[index % options->subscribe_path_count];
}

static const char *own_fields(char *out, size_t size, size_t body_bytes)
{
    if (options->cable) return cable_upgrade;
    if (!options->subscribe_body && options->gzip) return "Accept: text/event-stream\r\nAccept-Encoding: gzip\r\n";
    if (!options->subscribe_body) return "Accept: text/event-stream\r\n";
    snprintf(out, size, "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n", body_bytes);
    return out;
}

size_t subscribe_request_write(char *out, int index, int topic, bool stalled)
{
    char path[OPTIONS_TEXT], form[OPTIONS_TEXT], fields[128];
    *template_fill(path_of(index, stalled), topic, index, path) = '\0';
    char *end = template_fill(&body, topic, index, form);
    *end = '\0';
    const char *header = headers.count ? headers.all[index % headers.count] : "";
    return (size_t)snprintf(out, SUBSCRIBE_REQUEST_BYTES, "%s %s HTTP/1.1\r\nHost: %s:%d\r\n%s%s%s%s\r\n%s",
                            options->subscribe_body ? "POST" : "GET", path, options->host, options->port,
                            own_fields(fields, sizeof fields, (size_t)(end - form)), options->subscribe_headers, header,
                            *header ? "\r\n" : "", form);
}
