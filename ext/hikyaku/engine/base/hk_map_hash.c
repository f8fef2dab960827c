#include "hk_map.h"

/* SipHash-1-3, after the paper of Aumasson and Bernstein: https://www.aumasson.jp/siphash/siphash.pdf. */

typedef struct sip_state {
    uint64_t v0, v1, v2, v3;
} sip_state_t;

static inline uint64_t rotated(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static inline void sip_round(sip_state_t *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotated(s->v1, 13) ^ s->v0;
    s->v3 = rotated(s->v3, 16) ^ s->v2;
    s->v0 = rotated(s->v0, 32);
    s->v2 += s->v1;
    s->v0 += s->v3;
    s->v1 = rotated(s->v1, 17) ^ s->v2;
    s->v3 = rotated(s->v3, 21) ^ s->v0;
    s->v2 = rotated(s->v2, 32);
}

static inline void sip_take(sip_state_t *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

static inline uint64_t word_at(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

uint64_t hk_hash(const uint64_t secret[2], hk_bytes_t bytes)
{
    sip_state_t s = {secret[0] ^ UINT64_C(0x736f6d6570736575), secret[1] ^ UINT64_C(0x646f72616e646f6d),
                     secret[0] ^ UINT64_C(0x6c7967656e657261), secret[1] ^ UINT64_C(0x7465646279746573)};
    size_t whole = bytes.length / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        sip_take(&s, word_at(bytes.at + i));
    }
    uint64_t last = (uint64_t)bytes.length << 56;
    for (size_t i = whole; i < bytes.length; i++) {
        last |= (uint64_t)(unsigned char)bytes.at[i] << (i - whole) * 8;
    }
    sip_take(&s, last);
    s.v2 ^= 0xFF;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
