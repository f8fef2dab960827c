#include "hk_alloc.h"

#include <stdlib.h>
#include <string.h>

static void *resize_with_libc(void *context, void *memory, size_t size)
{
    (void)context;
    /* realloc(memory, 0) may return something or nothing, as the library likes. */
    if (size == 0) {
        free(memory);
        return NULL;
    }
    return realloc(memory, size);
}

static const hk_alloc_t libc_alloc = {resize_with_libc, NULL};

const hk_alloc_t *hk_alloc_default(void)
{
    return &libc_alloc;
}

void *hk_alloc_new(const hk_alloc_t *alloc, size_t size)
{
    /* Nothing to allocate is not "no memory". */
    return alloc->resize(alloc->context, NULL, size > 0 ? size : 1);
}

void *hk_alloc_zeroed(const hk_alloc_t *alloc, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        return NULL;
    }
    void *memory = hk_alloc_new(alloc, total);
    if (memory != NULL) {
        memset(memory, 0, total);
    }
    return memory;
}

void *hk_alloc_resize(const hk_alloc_t *alloc, void *memory, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        return NULL;
    }
    return alloc->resize(alloc->context, memory, total);
}

void hk_alloc_free(const hk_alloc_t *alloc, void *memory)
{
    if (memory != NULL) {
        alloc->resize(alloc->context, memory, 0);
    }
}
