#include "hk_test.h"

#include "hk_bytes.h"

HK_TEST(bytes_are_equal_when_each_is)
{
    HK_CHECK(hk_bytes_equal(HK_BYTES("a\0b"), HK_BYTES("a\0b")));
    HK_CHECK(!hk_bytes_equal(HK_BYTES("a\0b"), HK_BYTES("a\0c")));
    HK_CHECK(!hk_bytes_equal(HK_BYTES("a"), HK_BYTES("ab")));
    HK_CHECK(hk_bytes_equal(hk_bytes(NULL, 0), HK_BYTES("")));
}

HK_TEST(bytes_start_with_their_beginnings)
{
    HK_CHECK(hk_bytes_start_with(HK_BYTES("Bearer abc"), HK_BYTES("Bearer ")));
    HK_CHECK(hk_bytes_start_with(HK_BYTES("Bearer"), HK_BYTES("Bearer")));
    HK_CHECK(hk_bytes_start_with(HK_BYTES("Bearer"), hk_bytes(NULL, 0)));
    HK_CHECK(hk_bytes_start_with(hk_bytes(NULL, 0), hk_bytes(NULL, 0)));
    HK_CHECK(!hk_bytes_start_with(HK_BYTES("Beare"), HK_BYTES("Bearer")));
    HK_CHECK(!hk_bytes_start_with(HK_BYTES("bearer"), HK_BYTES("Bearer")));
}

HK_TEST(only_ascii_letters_are_equal_in_any_case)
{
    HK_CHECK(hk_bytes_equal_ignoring_case(HK_BYTES("Last-Event-ID"), HK_BYTES("lAST-eVENT-id")));
    HK_CHECK(!hk_bytes_equal_ignoring_case(HK_BYTES("Last"), HK_BYTES("Last-")));
    HK_CHECK(hk_bytes_equal_ignoring_case(hk_bytes(NULL, 0), hk_bytes(NULL, 0)));
    for (unsigned a = 0; a < 256; a++) {
        for (unsigned b = 0; b < 256; b++) {
            char one = (char)a, other = (char)b;
            bool letters = (a | 32) == (b | 32) && (a | 32) >= 'a' && (a | 32) <= 'z';
            hk_test_note("%02x and %02x", a, b);
            HK_CHECK_EQUAL_INT(a == b || letters, hk_bytes_equal_ignoring_case(hk_bytes(&one, 1), hk_bytes(&other, 1)));
        }
    }
}

HK_TEST(printable_is_from_space_to_tilde)
{
    for (unsigned value = 0; value < 256; value++) {
        char bytes[3] = {'a', (char)value, 'z'};
        hk_test_note("byte %02x", value);
        HK_CHECK_EQUAL_INT(value >= 0x20 && value <= 0x7E, hk_bytes_printable(hk_bytes(bytes, 3)));
    }
    HK_CHECK(hk_bytes_printable(hk_bytes(NULL, 0)));
}

/* UTF-8 by the definition: decode, then see whether the shortest form is what was there. */
static bool is_character(const unsigned char *bytes, size_t length)
{
    static const unsigned firsts[] = {0, 0, 0xC0, 0xE0, 0xF0}, lowest[] = {0, 0, 0x80, 0x800, 0x10000};
    if (length == 1) {
        return bytes[0] < 0x80;
    }
    unsigned first_bits = 7 - (unsigned)length;
    if ((unsigned)bytes[0] >> first_bits != firsts[length] >> first_bits) {
        return false;
    }
    unsigned value = bytes[0] & ((1u << first_bits) - 1);
    for (size_t i = 1; i < length; i++) {
        if (bytes[i] >> 6 != 2) {
            return false;
        }
        value = value << 6 | (bytes[i] & 0x3F);
    }
    return value >= lowest[length] && value <= 0x10FFFF && !(value >= 0xD800 && value <= 0xDFFF);
}

static bool is_text(const unsigned char *bytes, size_t length)
{
    if (length == 0) {
        return true;
    }
    for (size_t first = 1; first <= 4 && first <= length; first++) {
        if (is_character(bytes, first)) {
            return is_text(bytes + first, length - first);
        }
    }
    return false;
}

/* The values at which something changes. */
static const unsigned char telling[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0,
                                        0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0,
                                        0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFC, 0xFE, 0xFF};

HK_TEST(utf8_is_what_its_definition_says_for_every_four_telling_bytes)
{
    enum { VALUES = sizeof(telling), ALL = VALUES * VALUES * VALUES * VALUES };
    for (size_t i = 0; i < ALL; i++) {
        unsigned char bytes[4] = {telling[i % VALUES], telling[i / VALUES % VALUES],
                                  telling[i / VALUES / VALUES % VALUES], telling[i / VALUES / VALUES / VALUES]};
        for (size_t length = 1; length <= 4; length++) {
            if (is_text(bytes, length) != hk_bytes_utf8(hk_bytes((const char *)bytes, length))) {
                HK_FAIL("differs for %zu of %02x %02x %02x %02x", length, bytes[0], bytes[1], bytes[2], bytes[3]);
            }
        }
    }
}

HK_TEST(utf8_is_found_wrong_wherever_it_is_wrong)
{
    char bytes[40];
    for (size_t length = 1; length <= sizeof(bytes); length++) {
        for (size_t at = 0; at < length; at++) {
            memset(bytes, 'a', sizeof(bytes));
            HK_CHECK(hk_bytes_utf8(hk_bytes(bytes, length)));
            bytes[at] = (char)0xA9;
            HK_CHECK(!hk_bytes_utf8(hk_bytes(bytes, length)));
            if (at > 0) {
                bytes[at - 1] = (char)0xC3;
                HK_CHECK(hk_bytes_utf8(hk_bytes(bytes, length)));
            }
        }
    }
    HK_CHECK(hk_bytes_utf8(hk_bytes(NULL, 0)));
}

HK_TEST(utf8_is_never_read_beyond_its_end)
{
    hk_bytes_t text = HK_BYTES("pl\xC3\xA4in, \xE2\x82\xAC and \xF0\x9F\x98\x80; then more");
    for (size_t length = 0; length <= text.length; length++) {
        hk_bytes_t guarded = hk_test_guarded(hk_bytes(text.at, length));
        HK_CHECK_EQUAL_INT(is_text((const unsigned char *)text.at, length), hk_bytes_utf8(guarded));
        HK_CHECK_EQUAL_INT(length < 3, hk_bytes_printable(guarded));
        HK_CHECK(hk_bytes_equal_ignoring_case(guarded, hk_bytes(text.at, length)));
        hk_test_unguard(guarded.at);
    }
}
