#include "hk_cipher.h"

#include "hk_base64.h"

/* Speck64/128, after the paper of its designers: https://eprint.iacr.org/2013/404.pdf. */

static inline uint32_t rotated_left(uint32_t word, unsigned bits)
{
    return word << bits | word >> (32 - bits);
}

static inline void encipher_round(uint32_t *x, uint32_t *y, uint32_t key)
{
    *x = (rotated_left(*x, 24) + *y) ^ key;
    *y = rotated_left(*y, 3) ^ *x;
}

static inline void decipher_round(uint32_t *x, uint32_t *y, uint32_t key)
{
    *y = rotated_left(*y ^ *x, 29);
    *x = rotated_left((*x ^ key) - *y, 8);
}

void hk_cipher_init(hk_cipher_t *cipher, const uint8_t key[HK_CIPHER_KEY_BYTES])
{
    uint32_t words[4];
    for (size_t i = 0; i < 4; i++) {
        const uint8_t *at = key + 4 * i;
        words[i] = (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
    }
    uint32_t round_key = words[0];
    for (uint32_t i = 0; i < HK_CIPHER_ROUNDS; i++) {
        cipher->round_keys[i] = round_key;
        encipher_round(&words[1 + i % 3], &round_key, i);
    }
}

uint64_t hk_cipher_encipher(const hk_cipher_t *cipher, uint64_t block)
{
    uint32_t x = (uint32_t)(block >> 32), y = (uint32_t)block;
    for (size_t i = 0; i < HK_CIPHER_ROUNDS; i++) {
        encipher_round(&x, &y, cipher->round_keys[i]);
    }
    return (uint64_t)x << 32 | y;
}

uint64_t hk_cipher_decipher(const hk_cipher_t *cipher, uint64_t block)
{
    uint32_t x = (uint32_t)(block >> 32), y = (uint32_t)block;
    for (size_t i = HK_CIPHER_ROUNDS; i > 0; i--) {
        decipher_round(&x, &y, cipher->round_keys[i - 1]);
    }
    return (uint64_t)x << 32 | y;
}

void hk_cipher_seal(const hk_cipher_t *cipher, uint64_t position, char id[HK_CIPHER_ID_BYTES])
{
    /* 11 digits carry 66 bits: two spare ones at the end are zero. */
    uint64_t block = hk_cipher_encipher(cipher, position);
    id[0] = '#';
    id[HK_CIPHER_ID_BYTES - 1] = hk_base64_digit((unsigned)(block << 2 & 63));
    block >>= 4;
    for (size_t i = HK_CIPHER_ID_BYTES - 2; i > 0; i--) {
        id[i] = hk_base64_digit((unsigned)(block & 63));
        block >>= 6;
    }
}

hk_status_t hk_cipher_open(const hk_cipher_t *cipher, hk_bytes_t id, uint64_t *position)
{
    if (id.length != HK_CIPHER_ID_BYTES || id.at[0] != '#') {
        return HK_NOT_FOUND;
    }
    uint64_t block = 0;
    for (size_t i = 1; i < HK_CIPHER_ID_BYTES - 1; i++) {
        int value = hk_base64_value(id.at[i]);
        if (value < 0) {
            return HK_NOT_FOUND;
        }
        block = block << 6 | (uint64_t)value;
    }
    int last = hk_base64_value(id.at[HK_CIPHER_ID_BYTES - 1]);
    if (last < 0 || (last & 3) != 0) {
        return HK_NOT_FOUND;
    }
    *position = hk_cipher_decipher(cipher, block << 4 | (uint64_t)last >> 2);
    return HK_OK;
}
