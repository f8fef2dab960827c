/* hk_capability.h: what whoever wants to change a stream must know.
 *
 *     subscriber 7  ──Speck64/128, two keys──►  16 bytes  ──base64url──►  "vT0c…" (22 digits)
 *
 * Nothing has to be kept of it, and nobody without the keys can tell that of another stream. The first block is
 * deciphered to find the stream, the second proves that it was not guessed.
 */
#ifndef HK_CAPABILITY_H
#define HK_CAPABILITY_H

#include "hk_bytes.h"
#include "hk_cipher.h"
#include "hk_status.h"

#include <stdint.h>

enum { HK_CAPABILITY_BYTES = 22 };

typedef struct hk_capability_keys {
    hk_cipher_t finds, proves;
} hk_capability_keys_t;

/* secret  random; says nothing about what else is made from it. */
void hk_capability_init(hk_capability_keys_t *keys, const uint64_t secret[2]);

/* Writes the capability for a number. */
void hk_capability_write(const hk_capability_keys_t *keys, uint64_t number, char capability[HK_CAPABILITY_BYTES]);

/* The number for a capability. In the same time wherever it is wrong.
 *
 * capability  any bytes that a client sent.
 *
 * HK_OK, or HK_NOT_FOUND: it was not written with these keys. */
hk_status_t hk_capability_read(const hk_capability_keys_t *keys, hk_bytes_t capability, uint64_t *number);

#endif
