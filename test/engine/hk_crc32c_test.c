#include "hk_crc32c.h"

#include "hk_test.h"

#include <string.h>

static hk_crc32c_t *const both[] = {hk_crc32c_by_table, NULL};

static hk_crc32c_t *way(size_t index)
{
    return both[index] != NULL ? both[index] : hk_crc32c_best();
}

HK_TEST(the_examples_of_rfc_3720_b_4)
{
    char zeros[32] = {0}, ones[32], rising[32], falling[32];
    memset(ones, 0xff, sizeof(ones));
    for (int i = 0; i < 32; i++) {
        rising[i] = (char)i;
        falling[i] = (char)(31 - i);
    }
    static const unsigned char read_command[48] = {
        0x01, 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    for (size_t i = 0; i < 2; i++) {
        HK_CHECK_EQUAL_UINT(0x8a9136aa, way(i)(0, zeros, sizeof(zeros)));
        HK_CHECK_EQUAL_UINT(0x62a8ab43, way(i)(0, ones, sizeof(ones)));
        HK_CHECK_EQUAL_UINT(0x46dd794e, way(i)(0, rising, sizeof(rising)));
        HK_CHECK_EQUAL_UINT(0x113fdb5c, way(i)(0, falling, sizeof(falling)));
        HK_CHECK_EQUAL_UINT(0xd9963a56, way(i)(0, read_command, sizeof(read_command)));
        HK_CHECK_EQUAL_UINT(0xe3069283, way(i)(0, "123456789", 9));
    }
}

HK_TEST(nothing_changes_no_sum)
{
    for (size_t i = 0; i < 2; i++) {
        HK_CHECK_EQUAL_UINT(0, way(i)(0, NULL, 0));
        HK_CHECK_EQUAL_UINT(0x12345678, way(i)(0x12345678, "", 0));
    }
}

/* Bit by bit, as the polynomial says. */
static uint32_t by_definition(uint32_t crc, const char *bytes, size_t size)
{
    crc = ~crc;
    for (size_t i = 0; i < size; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ (0x82f63b78u & (0u - (crc & 1)));
        }
    }
    return ~crc;
}

HK_TEST(every_way_sums_any_length_at_any_place_to_the_same)
{
    static char bytes[8192 + 16];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (char)hk_test_random();
    }
    for (int turn = 0; turn < 600; turn++) {
        size_t size = hk_test_below(turn % 3 == 0 ? 8192 : 800), at = hk_test_below(16);
        uint32_t before = (uint32_t)hk_test_random();
        hk_test_note("%zu bytes at %zu", size, at);
        uint32_t expected = by_definition(before, bytes + at, size);
        hk_bytes_t guarded = hk_test_guarded(hk_bytes(bytes + at, size));
        for (size_t i = 0; i < 2; i++) {
            HK_CHECK_EQUAL_UINT(expected, way(i)(before, bytes + at, size));
            HK_CHECK_EQUAL_UINT(expected, way(i)(before, guarded.at, size));
        }
        hk_test_unguard(guarded.at);
    }
}

HK_TEST(a_sum_goes_on_where_it_was_left)
{
    char bytes[2000];
    memset(bytes, 'x', sizeof(bytes));
    for (size_t cut = 0; cut <= sizeof(bytes); cut += 37) {
        for (size_t i = 0; i < 2; i++) {
            uint32_t crc = way(i)(way(i)(0, bytes, cut), bytes + cut, sizeof(bytes) - cut);
            HK_CHECK_EQUAL_UINT(way(1 - i)(0, bytes, sizeof(bytes)), crc);
        }
    }
}
