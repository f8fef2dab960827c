#include "hk_buf.h"

enum { SMALLEST = 64 };

void hk_buf_init(hk_buf_t *buf, const hk_alloc_t *alloc)
{
    *buf = (hk_buf_t){.alloc = alloc};
}

void hk_buf_release(hk_buf_t *buf)
{
    hk_alloc_free(buf->alloc, buf->memory);
    hk_buf_init(buf, buf->alloc);
}

static size_t larger_capacity(size_t capacity, size_t needed)
{
    size_t larger = capacity > SIZE_MAX / 2 ? SIZE_MAX : capacity * 2;
    if (larger < SMALLEST) {
        larger = SMALLEST;
    }
    return larger < needed ? needed : larger;
}

static hk_status_t grow(hk_buf_t *buf, size_t needed)
{
    size_t capacity = larger_capacity(buf->capacity, needed);
    if (buf->start == 0) {
        char *memory = hk_alloc_resize(buf->alloc, buf->memory, capacity, 1);
        if (memory == NULL) {
            return HK_NO_MEMORY;
        }
        buf->memory = memory;
    } else {
        char *memory = hk_alloc_new(buf->alloc, capacity);
        if (memory == NULL) {
            return HK_NO_MEMORY;
        }
        memcpy(memory, buf->memory + buf->start, buf->length);
        hk_alloc_free(buf->alloc, buf->memory);
        buf->memory = memory;
        buf->start = 0;
    }
    buf->capacity = capacity;
    return HK_OK;
}

hk_status_t hk_buf_reserve(hk_buf_t *buf, size_t size)
{
    if (buf->capacity - buf->start - buf->length >= size) {
        return HK_OK;
    }
    /* Never more bytes are moved than were consumed since the last move: else a full buffer from which little is
     * consumed at a time would be moved again and again. */
    if (buf->capacity - buf->length >= size && buf->start >= buf->length) {
        memcpy(buf->memory, buf->memory + buf->start, buf->length);
        buf->start = 0;
        return HK_OK;
    }
    size_t needed;
    if (__builtin_add_overflow(buf->length, size, &needed)) {
        return HK_NO_MEMORY;
    }
    return grow(buf, needed);
}

hk_status_t hk_buf_append(hk_buf_t *buf, hk_bytes_t bytes)
{
    if (bytes.length == 0) {
        return HK_OK;
    }
    hk_status_t status = hk_buf_reserve(buf, bytes.length);
    if (status == HK_OK) {
        memcpy(hk_buf_end(buf), bytes.at, bytes.length);
        hk_buf_grew(buf, bytes.length);
    }
    return status;
}

hk_status_t hk_buf_append_number(hk_buf_t *buf, uint64_t number)
{
    char digits[20];
    size_t first = sizeof(digits);
    do {
        digits[--first] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return hk_buf_append(buf, hk_bytes(digits + first, sizeof(digits) - first));
}

void hk_buf_consume(hk_buf_t *buf, size_t count)
{
    if (count >= buf->length) {
        hk_buf_clear(buf);
    } else {
        buf->start += count;
        buf->length -= count;
    }
}

void hk_buf_clear(hk_buf_t *buf)
{
    buf->start = 0;
    buf->length = 0;
}
