/* dump.h: how a test in Ruby asks the engine: it writes fields to a program's standard input, each after its length in
 * 4 bytes, big-endian, and reads what the program prints.
 */
#ifndef DUMP_H
#define DUMP_H

#include "hk_topic.h"

#include <stdio.h>
#include <stdlib.h>

/* The allocator of dumps; whatever they keep goes when they end. */
#define DUMP_ALLOC hk_alloc_default()

_Noreturn static inline void dump_fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(EXIT_FAILURE);
}

/* The next field in memory of its very size; false at the end of the input. */
static inline bool dump_take(hk_bytes_t *field)
{
    unsigned char size[4];
    size_t got = fread(size, 1, sizeof(size), stdin);
    if (got == 0) {
        return false;
    }
    size_t length = (size_t)size[0] << 24 | (size_t)size[1] << 16 | (size_t)size[2] << 8 | size[3];
    char *at = malloc(length > 0 ? length : 1);
    if (got != sizeof(size) || at == NULL || fread(at, 1, length, stdin) != length) {
        dump_fail("the input ends within a field");
    }
    *field = hk_bytes(at, length);
    return true;
}

static inline hk_bytes_t dump_field(void)
{
    hk_bytes_t field;
    if (!dump_take(&field)) {
        dump_fail("a field is missing");
    }
    return field;
}

/* Nine fields: the parts, and the origin. */
static inline hk_url_t dump_url(void)
{
    hk_url_t url;
    for (size_t part = 0; part < HK_URL_PARTS; part++) {
        url.parts[part] = dump_field();
    }
    url.origin = dump_field();
    return url;
}

#endif
