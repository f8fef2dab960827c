#include "hk_gate_private.h"
#include "hk_test.h"

#include <stdlib.h>

static hk_bytes_t encoded(uint32_t character, char text[static 4])
{
    unsigned char *at = (unsigned char *)text;
    if (character < 0x80) {
        *at++ = (unsigned char)character;
    } else if (character < 0x800) {
        *at++ = (unsigned char)(0xC0 | character >> 6);
        *at++ = (unsigned char)(0x80 | (character & 0x3F));
    } else if (character < 0x10000) {
        *at++ = (unsigned char)(0xE0 | character >> 12);
        *at++ = (unsigned char)(0x80 | (character >> 6 & 0x3F));
        *at++ = (unsigned char)(0x80 | (character & 0x3F));
    } else {
        *at++ = (unsigned char)(0xF0 | character >> 18);
        *at++ = (unsigned char)(0x80 | (character >> 12 & 0x3F));
        *at++ = (unsigned char)(0x80 | (character >> 6 & 0x3F));
        *at++ = (unsigned char)(0x80 | (character & 0x3F));
    }
    return hk_bytes(text, (size_t)(at - (unsigned char *)text));
}

/* The next range of the vectors. */
static bool read_range(hk_bytes_t *rest, uint32_t *first, uint32_t *last)
{
    hk_bytes_t line;
    do {
        if (!hk_test_line(rest, &line)) {
            return false;
        }
    } while (line.length == 0 || line.at[0] == '#');
    char *end;
    *first = (uint32_t)strtoul(line.at, &end, 16);
    *last = (uint32_t)strtoul(end, NULL, 16);
    return true;
}

HK_TEST(control_and_format_characters_may_not_stand_in_a_topic_and_all_others_may)
{
    hk_bytes_t rest = hk_test_file("test/vectors/forbidden_characters.txt");
    uint32_t first, last;
    HK_CHECK(read_range(&rest, &first, &last));
    bool more = true;
    for (uint32_t character = 0; character <= 0x10FFFF; character++) {
        if (more && character > last) {
            more = read_range(&rest, &first, &last);
        }
        bool surrogate = character >= 0xD800 && character <= 0xDFFF;
        bool forbidden = surrogate || (more && character >= first && character <= last);
        char text[4];
        if (hk_gate_text(encoded(character, text)) == forbidden) {
            HK_FAIL("is wrong about U+%04X", character);
        }
    }
    HK_CHECK(!more);
}

HK_TEST(a_forbidden_character_is_found_wherever_it_stands)
{
    HK_CHECK(hk_gate_text(HK_BYTES("")));
    HK_CHECK(hk_gate_text(HK_BYTES("/caf\xC3\xA9/\xE6\x97\xA5\xF0\x9F\x98\x80")));
    HK_CHECK(!hk_gate_text(HK_BYTES("\n/a")));
    HK_CHECK(!hk_gate_text(HK_BYTES("/a\x7F")));
    HK_CHECK(!hk_gate_text(HK_BYTES("/caf\xC3\xA9\x01")));
    HK_CHECK(!hk_gate_text(HK_BYTES("/caf\xC3\xA9\xE2\x80\x8B")));
    HK_CHECK(!hk_gate_text(HK_BYTES("\xE2\x80\x8B")));
    HK_CHECK(!hk_gate_text(HK_BYTES("\xF3\xA0\x80\x81 tag")));
}

HK_TEST(what_is_not_UTF_8_is_no_text)
{
    static const char *const wrong[] = {"\x80", "a\xC3", "\xC0\xAF", "\xE2\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80",
                                        "\xFF"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        hk_bytes_t text = hk_test_guarded(hk_test_text(wrong[i]));
        HK_CHECK(!hk_gate_text(text));
        hk_test_unguard(text.at);
    }
}
