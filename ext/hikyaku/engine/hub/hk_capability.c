#include "hk_capability.h"

#include "hk_base64.h"
#include "hk_map.h"

enum { BLOCK = 8, BYTES = 2 * BLOCK };

static void init_cipher(hk_cipher_t *cipher, const uint64_t secret[2], hk_bytes_t first, hk_bytes_t second)
{
    uint64_t halves[2] = {hk_hash(secret, first), hk_hash(secret, second)};
    uint8_t key[HK_CIPHER_KEY_BYTES];
    memcpy(key, halves, sizeof(key));
    hk_cipher_init(cipher, key);
}

void hk_capability_init(hk_capability_keys_t *keys, const uint64_t secret[2])
{
    init_cipher(&keys->finds, secret, HK_BYTES("capability 1"), HK_BYTES("capability 2"));
    init_cipher(&keys->proves, secret, HK_BYTES("capability 3"), HK_BYTES("capability 4"));
}

static void put_block(uint64_t block, uint8_t *bytes)
{
    for (size_t i = 0; i < BLOCK; i++) {
        bytes[i] = (uint8_t)(block >> 8 * i);
    }
}

static uint64_t block_at(const uint8_t *bytes)
{
    uint64_t block = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        block |= (uint64_t)bytes[i] << 8 * i;
    }
    return block;
}

/* 22 digits carry 132 bits: four spare ones at the end are zero. */
void hk_capability_write(const hk_capability_keys_t *keys, uint64_t number, char capability[HK_CAPABILITY_BYTES])
{
    uint8_t bytes[BYTES + 1] = {0};
    put_block(hk_cipher_encipher(&keys->finds, number), bytes);
    put_block(hk_cipher_encipher(&keys->proves, number), bytes + BLOCK);
    for (size_t i = 0; i < HK_CAPABILITY_BYTES; i++) {
        size_t bit = 6 * i, at = bit / 8;
        unsigned pair = (unsigned)bytes[at] << 8 | bytes[at + 1];
        capability[i] = hk_base64_digit(pair >> (10 - bit % 8));
    }
}

hk_status_t hk_capability_read(const hk_capability_keys_t *keys, hk_bytes_t capability, uint64_t *number)
{
    if (capability.length != HK_CAPABILITY_BYTES) {
        return HK_NOT_FOUND;
    }
    uint8_t bytes[BYTES + 1] = {0};
    unsigned wrong = 0;
    for (size_t i = 0; i < HK_CAPABILITY_BYTES; i++) {
        int value = hk_base64_value(capability.at[i]);
        wrong |= value < 0;
        size_t bit = 6 * i, at = bit / 8;
        unsigned pair = ((unsigned)value & 63) << (10 - bit % 8);
        bytes[at] |= (uint8_t)(pair >> 8);
        bytes[at + 1] |= (uint8_t)pair;
    }
    wrong |= bytes[BYTES];
    uint64_t found = hk_cipher_decipher(&keys->finds, block_at(bytes));
    uint64_t difference = block_at(bytes + BLOCK) ^ hk_cipher_encipher(&keys->proves, found);
    wrong |= difference != 0;
    if (wrong != 0) {
        return HK_NOT_FOUND;
    }
    *number = found;
    return HK_OK;
}
