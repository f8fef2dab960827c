#include "hk_test.h"

#include "hk_form.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

HK_TEST(a_form_is_split_into_pairs_in_order)
{
    hk_bytes_t rest = hk_test_guarded(HK_BYTES("a=1&b=2=3&&c&=4&=&d=&&"));
    static const struct {
        hk_bytes_t name, value;
    } pairs[] = {{HK_BYTES("a"), HK_BYTES("1")}, {HK_BYTES("b"), HK_BYTES("2=3")}, {HK_BYTES("c"), HK_BYTES("")},
                 {HK_BYTES(""), HK_BYTES("4")},  {HK_BYTES(""), HK_BYTES("")},     {HK_BYTES("d"), HK_BYTES("")}};
    hk_bytes_t name, value;
    for (size_t i = 0; i < COUNT(pairs); i++) {
        hk_test_note("pair %zu", i);
        HK_CHECK(hk_form_next(&rest, &name, &value));
        HK_CHECK_BYTES(pairs[i].name, name);
        HK_CHECK_BYTES(pairs[i].value, value);
    }
    HK_CHECK(!hk_form_next(&rest, &name, &value));
    HK_CHECK(!hk_form_next(&rest, &name, &value));
    HK_CHECK_EQUAL_UINT(0, rest.length);
}

HK_TEST(pairs_are_slices_that_are_not_decoded)
{
    hk_bytes_t form = HK_BYTES("a%3D=%26"), rest = form, name, value;
    HK_CHECK(hk_form_next(&rest, &name, &value));
    HK_CHECK(name.at == form.at && name.length == 4 && value.at == form.at + 5 && value.length == 3);
}

HK_TEST(an_empty_form_has_no_pairs)
{
    static const hk_bytes_t forms[] = {{NULL, 0}, HK_BYTES(""), HK_BYTES("&"), HK_BYTES("&&&")};
    for (size_t i = 0; i < COUNT(forms); i++) {
        hk_bytes_t rest = forms[i], name = HK_BYTES("untouched"), value = name;
        HK_CHECK(!hk_form_next(&rest, &name, &value));
        HK_CHECK_BYTES("untouched", name);
        HK_CHECK_BYTES("untouched", value);
    }
}

HK_TEST(bytes_are_decoded)
{
    static const struct {
        hk_bytes_t raw, decoded;
    } cases[] = {
        {HK_BYTES(""), HK_BYTES("")},
        {HK_BYTES("plain"), HK_BYTES("plain")},
        {HK_BYTES("a+b"), HK_BYTES("a b")},
        {HK_BYTES("%2B%2b+"), HK_BYTES("++ ")},
        {HK_BYTES("%41%5A%7f%fF%00"), HK_BYTES("AZ\x7F\xFF\0")},
        {HK_BYTES("%"), HK_BYTES("%")},
        {HK_BYTES("%4"), HK_BYTES("%4")},
        {HK_BYTES("%%41"), HK_BYTES("%A")},
        {HK_BYTES("%4%41"), HK_BYTES("%4A")},
        {HK_BYTES("%G1%1G%+1%1+"), HK_BYTES("%G1%1G% 1%1 ")},
        {HK_BYTES("%25%34%31"), HK_BYTES("%41")},
        {HK_BYTES("\xC3\xA9%C3%A9"), HK_BYTES("\xC3\xA9\xC3\xA9")},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        hk_test_note("case %zu", i);
        hk_bytes_t raw = hk_test_guarded(cases[i].raw);
        char *decoded = hk_test_guarded_room(raw.length);
        size_t length = hk_form_decode(raw, decoded);
        HK_CHECK_BYTES(cases[i].decoded, hk_bytes(decoded, length));
        HK_CHECK(hk_form_encoded(raw) || hk_bytes_equal(raw, cases[i].decoded));
    }
}

HK_TEST(bytes_are_decoded_in_their_place)
{
    char bytes[] = "a%20b+c%";
    size_t length = hk_form_decode(hk_bytes(bytes, sizeof(bytes) - 1), bytes);
    HK_CHECK_BYTES("a b c%", hk_bytes(bytes, length));
}

HK_TEST(what_needs_no_decoding_is_said)
{
    HK_CHECK(!hk_form_encoded(hk_bytes(NULL, 0)));
    HK_CHECK(!hk_form_encoded(HK_BYTES("https://example.com/\xC3\xA9?a=b&c;d")));
    HK_CHECK(hk_form_encoded(HK_BYTES("a+")));
    HK_CHECK(hk_form_encoded(HK_BYTES("+")));
    HK_CHECK(hk_form_encoded(HK_BYTES("a%20")));
}

static int value_of(char digit)
{
    static const char digits[] = "00112233445566778899aAbBcCdDeEfF";
    const char *found = digit != '\0' ? strchr(digits, digit) : NULL;
    return found != NULL ? (int)(found - digits) / 2 : -1;
}

HK_TEST(only_two_hexadecimal_digits_make_an_escape)
{
    for (int i = 0; i < 256 * 256; i++) {
        char raw[] = {'%', (char)(i / 256), (char)(i % 256)}, decoded[3];
        int high = value_of(raw[1]), low = value_of(raw[2]);
        size_t length = hk_form_decode(hk_bytes(raw, 3), decoded);
        if (high >= 0 && low >= 0) {
            char byte = (char)(high * 16 + low);
            HK_CHECK_BYTES(hk_bytes(&byte, 1), hk_bytes(decoded, length));
        } else {
            HK_CHECK_EQUAL_UINT(3, length);
        }
    }
}

HK_TEST(a_form_with_too_many_fields_is_told_by_its_marks)
{
    HK_CHECK(!hk_form_exceeds(hk_bytes(NULL, 0), 1));
    HK_CHECK(!hk_form_exceeds(HK_BYTES("a=b"), 1));
    HK_CHECK(hk_form_exceeds(HK_BYTES("&"), 1));
    HK_CHECK(!hk_form_exceeds(HK_BYTES("a=b&c"), 2));
    HK_CHECK(hk_form_exceeds(HK_BYTES("a=b&c&"), 2));
    HK_CHECK(hk_form_exceeds(HK_BYTES("&&&"), 3));
    HK_CHECK(!hk_form_exceeds(HK_BYTES("&&&"), 4));
}
