#include "hk_crc32c.h"

#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#include <nmmintrin.h>
#define INSTRUCTION __attribute__((target("sse4.2")))
#define STEP(crc, word) ((uint32_t)_mm_crc32_u64((crc), (word)))
#define STEP_BYTE(crc, byte) _mm_crc32_u8((crc), (byte))
#elif defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ &&                                             \
    (defined(__ARM_FEATURE_CRC32) || defined(__linux__))
#ifdef __clang__
#define INSTRUCTION __attribute__((target("crc")))
#else
#define INSTRUCTION __attribute__((target("+crc")))
#endif
#define STEP(crc, word) __builtin_aarch64_crc32cx((crc), (word))
#define STEP_BYTE(crc, byte) __builtin_aarch64_crc32cb((crc), (byte))
#ifdef __clang__
#undef STEP
#undef STEP_BYTE
#define STEP(crc, word) __builtin_arm_crc32cd((crc), (word))
#define STEP_BYTE(crc, byte) __builtin_arm_crc32cb((crc), (byte))
#endif
#ifndef __ARM_FEATURE_CRC32
#include <sys/auxv.h>
#endif
#endif

/* -- Tables --------------------------------------------------------------------------------------------------------
 *
 * A checksum is linear: what a byte adds is the sum (XOR) of what its bits add. So eight numbers make a table of 256.
 */

#define BIT(n, bit, value) (((n) >> (bit)&1u) != 0 ? (value) : 0u)
#define ENTRY(n, a, b, c, d, e, f, g, h)                                                                               \
    BIT(n, 0, a) ^ BIT(n, 1, b) ^ BIT(n, 2, c) ^ BIT(n, 3, d) ^ BIT(n, 4, e) ^ BIT(n, 5, f) ^ BIT(n, 6, g) ^           \
        BIT(n, 7, h)
#define ENTRIES_4(n, ...)                                                                                              \
    ENTRY((n), __VA_ARGS__), ENTRY((n) + 1, __VA_ARGS__), ENTRY((n) + 2, __VA_ARGS__), ENTRY((n) + 3, __VA_ARGS__)
#define ENTRIES_16(n, ...)                                                                                             \
    ENTRIES_4((n), __VA_ARGS__), ENTRIES_4((n) + 4, __VA_ARGS__), ENTRIES_4((n) + 8, __VA_ARGS__),                     \
        ENTRIES_4((n) + 12, __VA_ARGS__)
#define ENTRIES_64(n, ...)                                                                                             \
    ENTRIES_16((n), __VA_ARGS__), ENTRIES_16((n) + 16, __VA_ARGS__), ENTRIES_16((n) + 32, __VA_ARGS__),                \
        ENTRIES_16((n) + 48, __VA_ARGS__)
#define TABLE(...)                                                                                                     \
    {                                                                                                                  \
        ENTRIES_64(0u, __VA_ARGS__), ENTRIES_64(64u, __VA_ARGS__), ENTRIES_64(128u, __VA_ARGS__),                      \
            ENTRIES_64(192u, __VA_ARGS__)                                                                              \
    }

/* What a byte adds when so many bytes stand behind it: none, 1, … 7. */
static const uint32_t behind[8][256] = {
    TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc, 0x82f63b78),
    TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604, 0xfbc3faf9),
    TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9, 0x8b277743),
    TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7, 0x52a0c93f),
    TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae, 0x6ea2d55c),
    TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb, 0x1c08b7d6),
    TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a, 0xf56e0ef4),
    TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32, 0x34019664),
};

static uint32_t number_at(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint32_t hk_crc32c_by_table(uint32_t crc, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    crc = ~crc;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low = number_at(at) ^ crc, high = number_at(at + 4);
        crc = behind[7][low & 255] ^ behind[6][low >> 8 & 255] ^ behind[5][low >> 16 & 255] ^ behind[4][low >> 24] ^
              behind[3][high & 255] ^ behind[2][high >> 8 & 255] ^ behind[1][high >> 16 & 255] ^ behind[0][high >> 24];
    }
    for (; size > 0; size--, at++) {
        crc = crc >> 8 ^ behind[0][(crc ^ *at) & 255];
    }
    return ~crc;
}

/* -- The processor's instruction ------------------------------------------------------------------------------------
 *
 * It takes three cycles, and one can begin in each: three streams side by side are three times as quick. Their sums are
 * joined by shifting the first over the bytes of the next, which is linear, too.
 */

#ifdef INSTRUCTION

enum { STREAM_BYTES = 256 };

/* What each of the four bytes of a sum adds when a stream stands behind it. */
static const uint32_t over_stream[4][256] = {
    TABLE(0xdcb17aa4, 0xbc8e83b9, 0x7cf17183, 0xf9e2e306, 0xf629b0fd, 0xe9bf170b, 0xd69258e7, 0xa8c8c73f),
    TABLE(0x547df88f, 0xa8fbf11e, 0x541b94cd, 0xa837299a, 0x558225c5, 0xab044b8a, 0x53e4e1e5, 0xa7c9c3ca),
    TABLE(0x4a7ff165, 0x94ffe2ca, 0x2c13b365, 0x582766ca, 0xb04ecd94, 0x6571edd9, 0xcae3dbb2, 0x902bc195),
    TABLE(0x25bbf5db, 0x4b77ebb6, 0x96efd76c, 0x2833d829, 0x5067b052, 0xa0cf60a4, 0x4472b7b9, 0x88e56f72),
};

static uint32_t shifted(uint32_t crc)
{
    return over_stream[0][crc & 255] ^ over_stream[1][crc >> 8 & 255] ^ over_stream[2][crc >> 16 & 255] ^
           over_stream[3][crc >> 24];
}

static uint64_t word_at(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return word;
}

INSTRUCTION static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    crc = ~crc;
    for (; size >= 3 * STREAM_BYTES; size -= 3 * STREAM_BYTES, at += 3 * STREAM_BYTES) {
        uint32_t second = 0, third = 0;
        for (size_t i = 0; i < STREAM_BYTES; i += 8) {
            crc = STEP(crc, word_at(at + i));
            second = STEP(second, word_at(at + STREAM_BYTES + i));
            third = STEP(third, word_at(at + 2 * STREAM_BYTES + i));
        }
        crc = shifted(shifted(crc) ^ second) ^ third;
    }
    for (; size >= 8; size -= 8, at += 8) {
        crc = STEP(crc, word_at(at));
    }
    for (; size > 0; size--, at++) {
        crc = STEP_BYTE(crc, *at);
    }
    return ~crc;
}

#if defined(__x86_64__)
static int has_instruction(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_2) != 0;
}
#elif defined(__ARM_FEATURE_CRC32)
static int has_instruction(void)
{
    return 1;
}
#else
static int has_instruction(void)
{
    return (getauxval(AT_HWCAP) & 1ul << 7) != 0; /* HWCAP_CRC32 */
}
#endif

#endif

hk_crc32c_t *hk_crc32c_best(void)
{
#ifdef INSTRUCTION
    if (has_instruction()) {
        return by_instruction;
    }
#endif
    return hk_crc32c_by_table;
}
