/* pack_fuzz.c: event streams as MessagePack. Whatever the input holds, what comes out are whole values of the kinds that
 * a stream has, and what hk_sse writes of the input as data comes back with line feeds for its line breaks. */
#include "hk_pack.h"
#include "hk_sse.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool so)
{
    if (!so) {
        abort();
    }
}

static uint64_t take(hk_bytes_t *rest, unsigned count)
{
    uint64_t value = 0;
    check(rest->length >= count);
    for (unsigned i = 0; i < count; i++) {
        value = value << 8 | (unsigned char)rest->at[i];
    }
    *rest = hk_bytes(rest->at + count, rest->length - count);
    return value;
}

/* A string, or nil: at == NULL. */
static hk_bytes_t take_string(hk_bytes_t *rest)
{
    unsigned head = (unsigned)take(rest, 1);
    if (head == 0xC0) {
        return hk_bytes(NULL, 0);
    }
    check((head >= 0xA0 && head <= 0xBF) || (head >= 0xD9 && head <= 0xDB));
    size_t length = head <= 0xBF ? head & 31 : take(rest, 1u << (head - 0xD9));
    check(rest->length >= length);
    hk_bytes_t string = hk_bytes(rest->at, length);
    *rest = hk_bytes(rest->at + length, rest->length - length);
    return string;
}

static void take_value(hk_bytes_t *rest)
{
    unsigned head = (unsigned)take(rest, 1);
    if (head == 0x93) {
        (void)take_string(rest);
        (void)take_string(rest);
        check(take_string(rest).at != NULL);
    } else if (head >= 0xCC && head <= 0xCF) {
        (void)take(rest, 1u << (head - 0xCC));
    } else {
        check(head < 128 || head == 0xC0 || head == 0xC3);
    }
}

static void check_any(hk_bytes_t events)
{
    hk_buf_t out;
    hk_buf_init(&out, hk_alloc_default());
    check(hk_pack_append(&out, events) == HK_OK);
    for (hk_bytes_t rest = hk_buf_bytes(&out); rest.length > 0;) {
        take_value(&rest);
    }
    hk_buf_release(&out);
}

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

static void check_data(hk_bytes_t data)
{
    hk_sse_event_t event = {.id = HK_BYTES("1"), .data = data, .type = HK_BYTES("t"), .retry_ms = 10};
    char *written = malloc(hk_sse_size(&event)), *expected = malloc(data.length + 1);
    hk_buf_t out;
    hk_buf_init(&out, hk_alloc_default());
    check(hk_pack_append(&out, hk_bytes(written, hk_sse_write(&event, written))) == HK_OK);
    hk_bytes_t rest = hk_buf_bytes(&out);
    check(take(&rest, 1) == 10 && take(&rest, 1) == 0x93);
    check(hk_bytes_equal(take_string(&rest), HK_BYTES("1")) && hk_bytes_equal(take_string(&rest), HK_BYTES("t")));
    check(hk_bytes_equal(take_string(&rest), hk_bytes(expected, normalized(data, expected))) && rest.length == 0);
    hk_buf_release(&out);
    free(written);
    free(expected);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_bytes_t bytes = hk_bytes((const char *)data, size);
    check_any(bytes);
    check_data(bytes);
    return 0;
}
