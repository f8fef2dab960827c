#include "hk_sse.h"

static const hk_bytes_t event_field = {"event: ", 7}, retry_field = {"retry: ", 7}, id_field = {"id: ", 4},
                        data_field = {"data: ", 6};

/* Where lines end. A break of one kind is looked for only beyond the last one found, so that data that is all of one
 * kind is read twice and not once for each line. */
typedef struct hk_line_reader {
    const char *at, *end;
    const char *next_cr, *next_lf; /* not before `at`; `end`: no more */
} hk_line_reader_t;

static const char *find(const char *at, const char *end, char byte)
{
    const char *found = at < end ? memchr(at, byte, (size_t)(end - at)) : NULL;
    return found != NULL ? found : end;
}

static hk_line_reader_t lines_of(hk_bytes_t data)
{
    const char *at = data.length > 0 ? data.at : "";
    const char *end = at + data.length;
    return (hk_line_reader_t){at, end, find(at, end, '\r'), find(at, end, '\n')};
}

/* Takes the next line; false when it was the last one, which no break ends. */
static bool next_line(hk_line_reader_t *reader, hk_bytes_t *line)
{
    const char *stop = reader->next_cr < reader->next_lf ? reader->next_cr : reader->next_lf;
    *line = hk_bytes(reader->at, (size_t)(stop - reader->at));
    if (stop == reader->end) {
        return false;
    }
    bool crlf = stop == reader->next_cr && stop + 1 == reader->next_lf && stop + 1 < reader->end;
    reader->at = crlf ? stop + 2 : stop + 1;
    if (reader->next_cr < reader->at) {
        reader->next_cr = find(reader->at, reader->end, '\r');
    }
    if (reader->next_lf < reader->at) {
        reader->next_lf = find(reader->at, reader->end, '\n');
    }
    return true;
}

static size_t digits_of(int64_t number, char digits[20])
{
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    for (size_t i = 0; i < count; i++) {
        digits[i] = reversed[count - 1 - i];
    }
    return count;
}

static char *put(char *at, hk_bytes_t bytes)
{
    if (bytes.length > 0) {
        memcpy(at, bytes.at, bytes.length);
    }
    return at + bytes.length;
}

static char *put_field(char *at, hk_bytes_t name, hk_bytes_t value)
{
    at = put(put(at, name), value);
    *at = '\n';
    return at + 1;
}

size_t hk_sse_id_offset(const hk_sse_event_t *event)
{
    size_t size = id_field.length;
    if (event->type.length > 0) {
        size += event_field.length + event->type.length + 1;
    }
    if (event->retry_ms >= 0) {
        char digits[20];
        size += retry_field.length + digits_of(event->retry_ms, digits) + 1;
    }
    return size;
}

size_t hk_sse_size(const hk_sse_event_t *event)
{
    size_t size = hk_sse_id_offset(event) + event->id.length + 1;
    hk_line_reader_t reader = lines_of(event->data);
    hk_bytes_t line;
    bool more;
    do {
        more = next_line(&reader, &line);
        size += data_field.length + line.length + 1;
    } while (more);
    return size + 1;
}

size_t hk_sse_write(const hk_sse_event_t *event, char *out)
{
    char *at = out;
    if (event->type.length > 0) {
        at = put_field(at, event_field, event->type);
    }
    if (event->retry_ms >= 0) {
        char digits[20];
        at = put_field(at, retry_field, hk_bytes(digits, digits_of(event->retry_ms, digits)));
    }
    at = put_field(at, id_field, event->id);
    hk_line_reader_t reader = lines_of(event->data);
    hk_bytes_t line;
    bool more;
    do {
        more = next_line(&reader, &line);
        at = put_field(at, data_field, line);
    } while (more);
    *at++ = '\n';
    return (size_t)(at - out);
}
