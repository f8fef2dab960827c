/* hk_cipher.h: turns positions into opaque event ids and back.
 *
 *     7  ──Speck64/128──►  8 bytes, big-endian  ──base64url──►  "#K7gNU3sdo-O"
 *
 * No index is needed to find such an id again, and it tells nothing about how many events there were or when (Mercure
 * draft-08, section "Authorization on Event Replay"). As Hikyaku::Log::PositionCipher; test/vectors/position_ids.txt
 * holds for both.
 */
#ifndef HK_CIPHER_H
#define HK_CIPHER_H

#include "hk_bytes.h"
#include "hk_status.h"

#include <stdint.h>

enum { HK_CIPHER_KEY_BYTES = 16, HK_CIPHER_ID_BYTES = 12, HK_CIPHER_ROUNDS = 27 };

typedef struct hk_cipher {
    uint32_t round_keys[HK_CIPHER_ROUNDS];
} hk_cipher_t;

/* key  random; its words are little-endian, least significant first. */
void hk_cipher_init(hk_cipher_t *cipher, const uint8_t key[HK_CIPHER_KEY_BYTES]);

/* One block, and back. */
uint64_t hk_cipher_encipher(const hk_cipher_t *cipher, uint64_t block);
uint64_t hk_cipher_decipher(const hk_cipher_t *cipher, uint64_t block);

/* Writes the id of a position. */
void hk_cipher_seal(const hk_cipher_t *cipher, uint64_t position, char id[HK_CIPHER_ID_BYTES]);

/* The position of an id. An id of another key opens as well, to a position that no log has.
 *
 * id  any bytes that a client sent.
 *
 * HK_OK, or HK_NOT_FOUND: it has not the form that hk_cipher_seal writes. */
hk_status_t hk_cipher_open(const hk_cipher_t *cipher, hk_bytes_t id, uint64_t *position);

#endif
