/* hk_buf.h: bytes that grow at the end and are consumed at the beginning.
 *
 *     at ──► [ consumed | length bytes | room ]
 *
 * Consuming moves a mark; appending moves the bytes to the front again when that makes room. An empty buffer holds no
 * memory after hk_buf_release.
 */
#ifndef HK_BUF_H
#define HK_BUF_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdint.h>

typedef struct hk_buf {
    const hk_alloc_t *alloc;
    char *memory;
    size_t start, length, capacity;
} hk_buf_t;

/* An empty buffer without memory. */
void hk_buf_init(hk_buf_t *buf, const hk_alloc_t *alloc);

/* Gives the memory back; the buffer is empty and can be used again. */
void hk_buf_release(hk_buf_t *buf);

/* Makes room for `size` more bytes. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_buf_reserve(hk_buf_t *buf, size_t size);

/* Appends. HK_OK, or HK_NO_MEMORY (unchanged). Amortised O(length of `bytes`). */
hk_status_t hk_buf_append(hk_buf_t *buf, hk_bytes_t bytes);

/* Appends a number in decimal. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_buf_append_number(hk_buf_t *buf, uint64_t number);

/* The bytes; borrowed until the buffer changes. */
static inline hk_bytes_t hk_buf_bytes(const hk_buf_t *buf)
{
    return hk_bytes(buf->memory ? buf->memory + buf->start : NULL, buf->length);
}

/* Where the next bytes go; room for what was reserved. See hk_buf_grew. */
static inline char *hk_buf_end(hk_buf_t *buf)
{
    return buf->memory + buf->start + buf->length;
}

/* `count` bytes were written at hk_buf_end. */
static inline void hk_buf_grew(hk_buf_t *buf, size_t count)
{
    buf->length += count;
}

/* Takes `count` bytes, at most all, from the beginning. */
void hk_buf_consume(hk_buf_t *buf, size_t count);

/* Forgets the bytes, keeps the memory. */
void hk_buf_clear(hk_buf_t *buf);

#endif
