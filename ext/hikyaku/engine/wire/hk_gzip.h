/* hk_gzip.h: streams that are compressed once for all who receive them.
 *
 *     stream   [ head ][ block ][ block ][ epoch: event event event … ][ epoch … ]…[ tail ]
 *
 * A stream is one member of gzip (RFC 1952): a head, pieces of deflate (RFC 1951), and a tail if it ends in order. Each
 * piece ends at a whole byte, and is of one of two kinds:
 *
 *     block    refers to nothing before it: it can be put into any stream, between any two pieces
 *     epoch    some events that share one context: each is flushed as soon as it is there, and may refer to those
 *              before it in the epoch, and to nothing else. Whoever gets one must have got all of its epoch
 *
 * The tail's checksum is that of what the stream says uncompressed. Of two things whose checksums are known that of
 * both together is found without their bytes, from the length of the second alone.
 *
 * Where the engine was compiled without zlib there is no hk_gzip_t to be had, and the rest works.
 */
#ifndef HK_GZIP_H
#define HK_GZIP_H

#include "hk_alloc.h"
#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

enum { HK_GZIP_HEAD_BYTES = 10, HK_GZIP_TAIL_BYTES = 10 };

/* What begins a stream: no name, no time. */
#define HK_GZIP_HEAD HK_BYTES("\x1F\x8B\x08\0\0\0\0\0\0\xFF")

/* A checksum of bytes and how many they are, as the tail has them. */
typedef struct hk_gzip_sum {
    uint32_t crc;    /* CRC-32 (ISO 3309); of nothing: 0 */
    uint32_t length; /* modulo 2^32 */
} hk_gzip_sum_t;

/* Of some bytes. O(length). */
hk_gzip_sum_t hk_gzip_sum(hk_bytes_t bytes);

/* What to multiply a checksum by when so many bytes come behind. O(log length). */
uint32_t hk_gzip_behind(uint32_t length);

/* Of bytes, and others behind them. O(1).
 *
 * behind  hk_gzip_behind(second.length), which is made once for all that get the same bytes. */
hk_gzip_sum_t hk_gzip_join(hk_gzip_sum_t first, hk_gzip_sum_t second, uint32_t behind);

/* Of the bytes that make `whole` when they come behind `first`. O(log length). */
hk_gzip_sum_t hk_gzip_rest(hk_gzip_sum_t whole, hk_gzip_sum_t first);

/* What ends a stream that said so much. */
void hk_gzip_tail(hk_gzip_sum_t sum, char tail[HK_GZIP_TAIL_BYTES]);

/* Appends bytes as blocks that are not compressed: for what is for one alone. HK_OK, or HK_NO_MEMORY (nothing was
 * appended). */
hk_status_t hk_gzip_stored(hk_bytes_t bytes, hk_buf_t *out);

/* Whether the engine can compress. */
bool hk_gzip_available(void);

/* What is to be made with a context; it will do the other, too.
 *
 * HK_GZIP_EPOCHS  looks back over 32 KiB, and longer: 150 KiB of memory
 * HK_GZIP_BLOCKS  looks back over 4 KiB: 40 KiB of memory. Of JSON, what is 5 KiB is not larger for it, and what is
 *                 50 KiB by 5 % */
typedef enum hk_gzip_use { HK_GZIP_EPOCHS, HK_GZIP_BLOCKS } hk_gzip_use_t;

typedef struct hk_gzip hk_gzip_t;

/* A context. HK_OK; HK_NO_MEMORY; HK_NOT_FOUND: there is no zlib. */
hk_status_t hk_gzip_new(const hk_alloc_t *alloc, hk_gzip_use_t use, hk_gzip_t **gzip);

/* NULL is allowed. */
void hk_gzip_free(hk_gzip_t *gzip);

/* Appends bytes as a block. The epoch ends. HK_OK, or HK_NO_MEMORY (nothing was appended). */
hk_status_t hk_gzip_block(hk_gzip_t *gzip, hk_bytes_t bytes, hk_buf_t *out);

/* Ends the epoch: the next event begins one. */
void hk_gzip_begin(hk_gzip_t *gzip);

/* Whether the next event begins an epoch. */
bool hk_gzip_at_beginning(const hk_gzip_t *gzip);

/* Appends an event to the epoch, or as the first one of the next. HK_OK, or HK_NO_MEMORY: nothing was appended, and the
 * epoch ends. */
hk_status_t hk_gzip_event(hk_gzip_t *gzip, hk_bytes_t event, hk_buf_t *out);

#endif
