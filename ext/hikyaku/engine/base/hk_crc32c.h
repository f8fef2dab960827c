/* hk_crc32c.h: the checksum CRC32C (Castagnoli; RFC 3720, appendix B.4).
 *
 * 8 bytes a step: with the processor's instruction where it has one (three streams side by side in what is long), from
 * tables otherwise. Whoever needs it asks once which is quickest here, and keeps the answer: to ask the processor can
 * cost more than to sum up a record.
 */
#ifndef HK_CRC32C_H
#define HK_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what `crc` is the checksum of (0: nothing), with the bytes behind it. O(size). */
typedef uint32_t hk_crc32c_t(uint32_t crc, const void *bytes, size_t size);

/* The quickest one on this machine. All give the same. */
hk_crc32c_t *hk_crc32c_best(void);

/* From tables: any machine. */
uint32_t hk_crc32c_by_table(uint32_t crc, const void *bytes, size_t size);

#endif
