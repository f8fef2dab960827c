/* hk_alloc.h: where the engine's memory comes from.
 *
 * All memory goes through a struct of one function, so that a test can let the n-th request fail and count what was
 * not given back. Whoever creates something keeps the allocator; it must outlive what was made with it.
 */
#ifndef HK_ALLOC_H
#define HK_ALLOC_H

#include <stddef.h>

typedef struct hk_alloc {
    /* As realloc(): memory == NULL allocates, size == 0 frees and returns NULL. NULL otherwise means that there is no
     * memory and that `memory` is as it was. */
    void *(*resize)(void *context, void *memory, size_t size);
    void *context;
} hk_alloc_t;

/* The C library's. */
const hk_alloc_t *hk_alloc_default(void);

/* `size` bytes, maybe none, not cleared; NULL when there is no memory. */
void *hk_alloc_new(const hk_alloc_t *alloc, size_t size);

/* `count` times `size` bytes, cleared; NULL when there is no memory or the product overflows. */
void *hk_alloc_zeroed(const hk_alloc_t *alloc, size_t count, size_t size);

/* As realloc(), `count` times `size`; NULL when there is no memory or the product overflows: `memory` is as it was. */
void *hk_alloc_resize(const hk_alloc_t *alloc, void *memory, size_t count, size_t size);

/* Gives memory back. NULL is allowed. */
void hk_alloc_free(const hk_alloc_t *alloc, void *memory);

#endif
