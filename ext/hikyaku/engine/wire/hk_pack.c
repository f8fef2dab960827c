#include "hk_pack.h"

#include "hk_sse.h"

#include <stdint.h>

/* MessagePack specification, section "Formats". */
enum {
    NIL = 0xC0,
    TRUE = 0xC3,
    UINT_8 = 0xCC,
    UINT_16 = 0xCD,
    UINT_32 = 0xCE,
    UINT_64 = 0xCF,
    SHORT_STRING = 0xA0,
    STRING_8 = 0xD9,
    STRING_16 = 0xDA,
    STRING_32 = 0xDB,
    ARRAY_OF_3 = 0x93
};

enum { HEAD = 9 /* bytes before a string, or of a number, at most */ };

typedef struct event {
    hk_bytes_t id, type; /* at == NULL: none */
    hk_bytes_t lines;    /* from the first field of data to the end of the event */
    size_t data_length;  /* with a line break behind each line */
    bool has_retry;
    uint64_t retry;
} event_t;

/* Takes a line, and the break behind it; false when nothing is left. */
static bool next_line(hk_bytes_t *rest, hk_bytes_t *line)
{
    if (rest->length == 0) {
        return false;
    }
    const char *found = memchr(rest->at, '\n', rest->length);
    size_t length = found != NULL ? (size_t)(found - rest->at) : rest->length;
    size_t taken = found != NULL ? length + 1 : length;
    *line = hk_bytes(rest->at, length);
    *rest = hk_bytes(rest->at + taken, rest->length - taken);
    return true;
}

/* HTML Living Standard, section "Interpreting an event stream": what stands behind the colon and one space. */
static bool field(hk_bytes_t line, hk_bytes_t name, hk_bytes_t *value)
{
    if (!hk_bytes_start_with(line, name)) {
        return false;
    }
    hk_bytes_t rest = hk_bytes(line.at + name.length, line.length - name.length);
    if (rest.length > 0 && rest.at[0] != ':') {
        return false;
    }
    size_t left_out = rest.length == 0 ? 0 : rest.length > 1 && rest.at[1] == ' ' ? 2 : 1;
    *value = hk_bytes(rest.at + left_out, rest.length - left_out);
    return true;
}

static bool number(hk_bytes_t digits, uint64_t *result)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < digits.length; i++) {
        unsigned digit = (unsigned)(unsigned char)digits.at[i] - '0';
        if (digit > 9 || sum > (UINT64_MAX - digit) / 10) {
            return false;
        }
        sum = sum * 10 + digit;
    }
    *result = sum;
    return digits.length > 0;
}

/* -- Writing ------------------------------------------------------------------------------------------------------- */

static char *put_big_endian(char *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (char)(unsigned char)(value >> 8 * (bytes - 1 - i));
    }
    return at + bytes;
}

static char *put_head(char *at, unsigned format, uint64_t value, unsigned bytes)
{
    *at = (char)(unsigned char)format;
    return put_big_endian(at + 1, value, bytes);
}

static char *put_number(char *at, uint64_t value)
{
    if (value < 128) {
        return put_big_endian(at, value, 1);
    }
    if (value <= UINT8_MAX) {
        return put_head(at, UINT_8, value, 1);
    }
    if (value <= UINT16_MAX) {
        return put_head(at, UINT_16, value, 2);
    }
    return value <= UINT32_MAX ? put_head(at, UINT_32, value, 4) : put_head(at, UINT_64, value, 8);
}

static char *put_string_head(char *at, size_t length)
{
    if (length < 32) {
        return put_big_endian(at, SHORT_STRING | length, 1);
    }
    if (length <= UINT8_MAX) {
        return put_head(at, STRING_8, length, 1);
    }
    return length <= UINT16_MAX ? put_head(at, STRING_16, length, 2) : put_head(at, STRING_32, length, 4);
}

static char *put(char *at, hk_bytes_t bytes)
{
    if (bytes.length > 0) {
        memcpy(at, bytes.at, bytes.length);
    }
    return at + bytes.length;
}

static char *put_string(char *at, hk_bytes_t string)
{
    return string.at == NULL ? put_big_endian(at, NIL, 1) : put(put_string_head(at, string.length), string);
}

/* The lines of the data, LF between them. */
static char *put_data(char *at, const event_t *event)
{
    hk_bytes_t rest = event->lines, line, value;
    size_t length = event->data_length - 1;
    at = put_string_head(at, length);
    char *end = at + length;
    while (next_line(&rest, &line)) {
        if (field(line, HK_BYTES("data"), &value)) {
            at = put(at, value);
            if (at == end) {
                break;
            }
            *at++ = '\n';
        }
    }
    return end;
}

static hk_status_t append_event(hk_buf_t *out, const event_t *event)
{
    if (event->data_length > UINT32_MAX || event->id.length > UINT32_MAX || event->type.length > UINT32_MAX) {
        return HK_TOO_LARGE;
    }
    if (hk_buf_reserve(out, 5 * HEAD + event->id.length + event->type.length + event->data_length) != HK_OK) {
        return HK_NO_MEMORY;
    }
    char *begin = hk_buf_end(out), *at = begin;
    if (event->has_retry) {
        at = put_number(at, event->retry);
    }
    if (event->data_length > 0) {
        at = put_big_endian(at, ARRAY_OF_3, 1);
        at = put_string(put_string(at, event->id), event->type);
        at = put_data(at, event);
    }
    hk_buf_grew(out, (size_t)(at - begin));
    return HK_OK;
}

static hk_status_t append_comment(hk_buf_t *out, hk_bytes_t line)
{
    hk_bytes_t word = hk_bytes(HK_SSE_CAUGHT_UP.at, HK_SSE_CAUGHT_UP.length - 2);
    char value = (char)(unsigned char)(hk_bytes_equal(line, word) ? TRUE : NIL);
    return hk_buf_append(out, hk_bytes(&value, 1));
}

/* -- Reading ------------------------------------------------------------------------------------------------------- */

static void read_field(event_t *event, hk_bytes_t line, const char *end)
{
    hk_bytes_t value;
    if (field(line, HK_BYTES("data"), &value)) {
        if (event->data_length == 0) {
            event->lines = hk_bytes(line.at, (size_t)(end - line.at));
        }
        event->data_length += value.length + 1;
    } else if (field(line, HK_BYTES("id"), &value)) {
        event->id = value;
    } else if (field(line, HK_BYTES("event"), &value)) {
        event->type = value.length > 0 ? value : hk_bytes(NULL, 0);
    } else if (field(line, HK_BYTES("retry"), &value)) {
        event->has_retry = number(value, &event->retry) || event->has_retry;
    }
}

static hk_status_t append_all(hk_buf_t *out, hk_bytes_t rest)
{
    event_t event = {0};
    const char *end = rest.at + rest.length;
    hk_bytes_t line;
    hk_status_t status = HK_OK;
    while (status == HK_OK && next_line(&rest, &line)) {
        if (line.length == 0) {
            event.lines.length = event.data_length > 0 ? (size_t)(line.at - event.lines.at) : 0;
            status = append_event(out, &event);
            event = (event_t){0};
        } else if (line.at[0] == ':') {
            status = append_comment(out, line);
        } else {
            read_field(&event, line, end);
        }
    }
    return status == HK_OK ? append_event(out, &event) : status;
}

hk_status_t hk_pack_append(hk_buf_t *out, hk_bytes_t events)
{
    size_t before = out->length;
    hk_status_t status = events.length > 0 ? append_all(out, events) : HK_OK;
    if (status != HK_OK) {
        out->length = before;
    }
    return status;
}
