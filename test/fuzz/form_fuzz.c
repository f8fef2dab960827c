/* form_fuzz.c: the pairs of a form lie within it, in order, and decoding them writes no byte more than they have. */
#include "hk_form.h"

#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_decoding(hk_bytes_t raw)
{
    /* Of the very size, so that a byte written too much is seen. */
    char *decoded = malloc(raw.length > 0 ? raw.length : 1);
    check(decoded != NULL);
    size_t length = hk_form_decode(raw, decoded);
    check(length <= raw.length);
    check(hk_form_encoded(raw) || hk_bytes_equal(raw, hk_bytes(decoded, length)));
    free(decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_bytes_t form = hk_bytes((const char *)data, size), rest = form, name, value;
    const char *at = form.at;
    while (hk_form_next(&rest, &name, &value)) {
        check(name.at >= at && value.at >= name.at + name.length && rest.at >= value.at + value.length);
        check(rest.at + rest.length == form.at + form.length);
        check(name.length + value.length > 0 || value.at > name.at);
        check_decoding(name);
        check_decoding(value);
        at = rest.at;
    }
    check(rest.length == 0);
    return 0;
}
