#include "hk_form.h"

bool hk_form_next(hk_bytes_t *rest, hk_bytes_t *name, hk_bytes_t *value)
{
    while (rest->length > 0) {
        const char *at = rest->at, *end = at + rest->length;
        const char *mark = memchr(at, '&', rest->length);
        const char *stop = mark ? mark : end;
        *rest = mark ? hk_bytes(mark + 1, (size_t)(end - mark - 1)) : hk_bytes(end, 0);
        if (stop == at) {
            continue;
        }
        const char *equals = memchr(at, '=', (size_t)(stop - at));
        *name = hk_bytes(at, (size_t)((equals ? equals : stop) - at));
        *value = equals ? hk_bytes(equals + 1, (size_t)(stop - equals - 1)) : hk_bytes(stop, 0);
        return true;
    }
    return false;
}

bool hk_form_exceeds(hk_bytes_t form, size_t max_fields)
{
    size_t fields = 1;
    if (form.length < max_fields) {
        return false;
    }
    for (const char *mark; (mark = form.length > 0 ? memchr(form.at, '&', form.length) : NULL) != NULL;) {
        if (++fields > max_fields) {
            return true;
        }
        form.length -= (size_t)(mark + 1 - form.at);
        form.at = mark + 1;
    }
    return fields > max_fields;
}

bool hk_form_encoded(hk_bytes_t raw)
{
    return raw.length > 0 && (memchr(raw.at, '%', raw.length) != NULL || memchr(raw.at, '+', raw.length) != NULL);
}

static int digit_of(char byte)
{
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    char letter = (char)(byte | 0x20);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

size_t hk_form_decode(hk_bytes_t raw, char *decoded)
{
    size_t length = 0;
    for (size_t i = 0; i < raw.length; i++) {
        char byte = raw.at[i];
        if (byte == '+') {
            byte = ' ';
        } else if (byte == '%' && raw.length - i > 2) {
            int high = digit_of(raw.at[i + 1]), low = digit_of(raw.at[i + 2]);
            if (high >= 0 && low >= 0) {
                byte = (char)(high * 16 + low);
                i += 2;
            }
        }
        decoded[length++] = byte;
    }
    return length;
}
