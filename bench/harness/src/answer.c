#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { STATUS_AT = 9, GZIP_HEAD = 10 };

static const uint64_t print_start = 0xcbf29ce484222325ULL, print_factor = 0x100000001b3ULL; /* FNV-1a */

void answer_begin(struct answer *answer)
{
    memset(answer, 0, offsetof(struct answer, line));
    answer->print = print_start;
}

static void take_body(struct answer *answer, const char *bytes, size_t length)
{
    size_t skip = strcmp(answer->coding, "gzip") == 0 ? GZIP_HEAD : 0;
    uint64_t print = answer->print;
    for (size_t i = 0; i < length; i++)
        if (answer->body_bytes + i >= skip) print = (print ^ (unsigned char)bytes[i]) * print_factor;
    answer->print = print;
    answer->body_bytes += length;
    answer->left -= length;
}

/* What follows the name and colon of a field, or NULL. */
static const char *value_of(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':') return NULL;
    line += length + 1;
    return line + strspn(line, " ");
}

static void on_field(struct answer *answer, const char *line)
{
    const char *value;
    if ((value = value_of(line, "content-length"))) answer->left = strtoul(value, NULL, 10);
    else if ((value = value_of(line, "transfer-encoding"))) answer->chunked = true;
    else if ((value = value_of(line, "connection"))) answer->closes = strncasecmp(value, "close", 5) == 0;
    else if ((value = value_of(line, "content-encoding")))
        snprintf(answer->coding, sizeof answer->coding, "%.15s", value);
}

static enum answer_state after_head(const struct answer *answer)
{
    if (answer->chunked) return ANSWER_SIZE;
    return answer->left ? ANSWER_BODY : ANSWER_DONE;
}

static enum answer_state after_size(struct answer *answer)
{
    char *end;
    answer->left = strtoul(answer->line, &end, 16);
    if (end == answer->line) return ANSWER_BROKEN;
    return answer->left ? ANSWER_CHUNK : ANSWER_TRAILER;
}

/* A line without its end. */
static void on_line(struct answer *answer)
{
    const char *line = answer->line;
    switch (answer->state) {
    case ANSWER_HEAD:
        if (!answer->status) {
            answer->status = strncmp(line, "HTTP/1.", 7) == 0 ? atoi(line + STATUS_AT) : 0;
            if (!answer->status) answer->state = ANSWER_BROKEN;
        } else if (*line) {
            on_field(answer, line);
        } else {
            answer->state = after_head(answer);
        }
        break;
    case ANSWER_SIZE: answer->state = after_size(answer); break;
    case ANSWER_CHUNK_END: answer->state = *line ? ANSWER_BROKEN : ANSWER_SIZE; break;
    case ANSWER_TRAILER:
        if (!*line) answer->state = ANSWER_DONE;
        break;
    default: answer->state = ANSWER_BROKEN;
    }
}

static size_t take_line(struct answer *answer, const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    size_t taken = end ? (size_t)(end - bytes) + 1 : length;
    if (answer->used + taken >= ANSWER_LINE) {
        answer->state = ANSWER_BROKEN;
        return taken;
    }
    memcpy(answer->line + answer->used, bytes, taken);
    answer->used += taken;
    if (!end) return taken;
    size_t whole = answer->used - 1;
    if (whole > 0 && answer->line[whole - 1] == '\r') whole--;
    answer->line[whole] = '\0';
    answer->used = 0;
    on_line(answer);
    return taken;
}

static size_t take_some(struct answer *answer, const char *bytes, size_t length)
{
    if (answer->state != ANSWER_BODY && answer->state != ANSWER_CHUNK) return take_line(answer, bytes, length);
    size_t taken = length < answer->left ? length : answer->left;
    take_body(answer, bytes, taken);
    if (answer->left == 0) answer->state = answer->state == ANSWER_BODY ? ANSWER_DONE : ANSWER_CHUNK_END;
    return taken;
}

size_t answer_take(struct answer *answer, const char *bytes, size_t length)
{
    size_t taken = 0;
    while (taken < length && answer->state < ANSWER_DONE) taken += take_some(answer, bytes + taken, length - taken);
    answer->bytes += taken;
    return taken;
}
