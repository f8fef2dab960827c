#include "hk_bytes.h"

#include <stdint.h>

static unsigned char in_lower_case(unsigned char byte)
{
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte | 0x20) : byte;
}

bool hk_bytes_equal_ignoring_case(hk_bytes_t a, hk_bytes_t b)
{
    if (a.length != b.length) {
        return false;
    }
    for (size_t i = 0; i < a.length; i++) {
        if (in_lower_case((unsigned char)a.at[i]) != in_lower_case((unsigned char)b.at[i])) {
            return false;
        }
    }
    return true;
}

static bool continues(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

/* How many bytes the character has that begins with a byte above 0x7F, 0 where there is none; `left` is at least 1. */
static size_t character_length(const unsigned char *at, size_t left)
{
    unsigned char first = at[0];
    if (first >= 0xC2 && first <= 0xDF) {
        return left >= 2 && continues(at[1]) ? 2 : 0;
    }
    if (first >= 0xE0 && first <= 0xEF) {
        if (left < 3 || !continues(at[1]) || !continues(at[2])) {
            return 0;
        }
        bool overlong = first == 0xE0 && at[1] < 0xA0;
        bool surrogate = first == 0xED && at[1] > 0x9F;
        return overlong || surrogate ? 0 : 3;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        if (left < 4 || !continues(at[1]) || !continues(at[2]) || !continues(at[3])) {
            return 0;
        }
        bool overlong = first == 0xF0 && at[1] < 0x90;
        bool beyond = first == 0xF4 && at[1] > 0x8F;
        return overlong || beyond ? 0 : 4;
    }
    return 0;
}

bool hk_bytes_utf8(hk_bytes_t bytes)
{
    const unsigned char *at = (const unsigned char *)bytes.at;
    size_t left = bytes.length;
    while (left > 0) {
        uint64_t eight;
        if (left >= sizeof(eight)) {
            memcpy(&eight, at, sizeof(eight));
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += sizeof(eight);
                left -= sizeof(eight);
                continue;
            }
        }
        size_t length = *at < 0x80 ? 1 : character_length(at, left);
        if (length == 0) {
            return false;
        }
        at += length;
        left -= length;
    }
    return true;
}

bool hk_bytes_printable(hk_bytes_t bytes)
{
    for (size_t i = 0; i < bytes.length; i++) {
        if (bytes.at[i] < 0x20 || bytes.at[i] > 0x7E) {
            return false;
        }
    }
    return true;
}
