/* sse_fuzz.c: updates as events. The input is the data; whatever it holds, a reader gets it back as data alone. */
#include "hk_sse.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool so)
{
    if (!so) {
        abort();
    }
}

static void expect(hk_bytes_t *rest, hk_bytes_t text)
{
    check(hk_bytes_start_with(*rest, text));
    *rest = hk_bytes(rest->at + text.length, rest->length - text.length);
}

/* The data as a client reads it: LF where a line ended. */
static size_t normalized(hk_bytes_t data, char *out)
{
    size_t length = 0;
    for (size_t i = 0; i < data.length; i++) {
        bool crlf = data.at[i] == '\r' && i + 1 < data.length && data.at[i + 1] == '\n';
        out[length++] = data.at[i] == '\r' ? '\n' : data.at[i];
        i += crlf;
    }
    return length;
}

static size_t read_back(hk_bytes_t event, char *out)
{
    size_t length = 0;
    expect(&event, HK_BYTES("event: t\nretry: 10\nid: 1\n"));
    while (event.at[0] != '\n') {
        expect(&event, HK_BYTES("data: "));
        for (; event.at[0] != '\n'; expect(&event, hk_bytes(event.at, 1))) {
            check(event.at[0] != '\r');
            out[length++] = event.at[0];
        }
        expect(&event, HK_BYTES("\n"));
        out[length++] = '\n';
    }
    expect(&event, HK_BYTES("\n"));
    check(event.length == 0 && length > 0);
    return length - 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_sse_event_t event = {
        .id = HK_BYTES("1"), .data = {(const char *)data, size}, .type = HK_BYTES("t"), .retry_ms = 10};
    size_t length = hk_sse_size(&event);
    char *out = malloc(length), *expected = malloc(size + 1), *actual = malloc(length);
    check(hk_sse_write(&event, out) == length);
    check(out[hk_sse_id_offset(&event)] == '1');
    size_t expected_length = normalized(event.data, expected);
    size_t actual_length = read_back(hk_bytes(out, length), actual);
    check(hk_bytes_equal(hk_bytes(expected, expected_length), hk_bytes(actual, actual_length)));
    free(out);
    free(expected);
    free(actual);
    return 0;
}
