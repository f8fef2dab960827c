/* hk_bytes.h: a run of bytes that belongs to somebody else.
 *
 * Inputs are borrowed for the call, outputs until the next call on the same object, unless a header says otherwise.
 * Never terminated by a zero; may hold any byte. `at` may be NULL only where `length` is 0.
 */
#ifndef HK_BYTES_H
#define HK_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct hk_bytes {
    const char *at;
    size_t length;
} hk_bytes_t;

/* A string literal as bytes. */
#define HK_BYTES(literal) ((hk_bytes_t){(literal), sizeof(literal) - 1})

static inline hk_bytes_t hk_bytes(const char *at, size_t length)
{
    return (hk_bytes_t){at, length};
}

static inline bool hk_bytes_equal(hk_bytes_t a, hk_bytes_t b)
{
    return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

static inline bool hk_bytes_start_with(hk_bytes_t bytes, hk_bytes_t beginning)
{
    return bytes.length >= beginning.length &&
           (beginning.length == 0 || memcmp(bytes.at, beginning.at, beginning.length) == 0);
}

/* Compares ASCII letters in any case. */
bool hk_bytes_equal_ignoring_case(hk_bytes_t a, hk_bytes_t b);

/* Whether the bytes are well-formed UTF-8 (no surrogates, nothing above U+10FFFF, no overlong forms). */
bool hk_bytes_utf8(hk_bytes_t bytes);

/* Whether every byte is printable ASCII, 0x20 to 0x7E. */
bool hk_bytes_printable(hk_bytes_t bytes);

#endif
