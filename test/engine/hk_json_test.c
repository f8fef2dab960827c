#include "hk_test.h"

#include "hk_json.h"

static void check_string(hk_bytes_t expected, hk_bytes_t text)
{
    hk_buf_t out;
    hk_buf_init(&out, hk_test_alloc());
    HK_CHECK_OK(hk_json_string(&out, hk_test_guarded(text)));
    HK_CHECK_BYTES(expected, hk_buf_bytes(&out));
    hk_buf_release(&out);
}

HK_TEST(a_string_is_escaped_as_ruby_does)
{
    check_string(HK_BYTES("\"\""), HK_BYTES(""));
    check_string(HK_BYTES("\"caf\xC3\xA9 / \xE2\x80\xA8\""), HK_BYTES("caf\xC3\xA9 / \xE2\x80\xA8"));
    check_string(HK_BYTES("\"\\\"\\\\\""), HK_BYTES("\"\\"));
    check_string(HK_BYTES("\"\\u0000\\u0001\\u0007\\b\\t\\n\\u000b\\f\\r\\u000e\\u001f \x7F\""),
                 HK_BYTES("\0\x01\x07\b\t\n\x0B\f\r\x0E\x1F \x7F"));
}

HK_TEST(what_is_not_utf8_is_replaced_in_a_string)
{
    check_string(HK_BYTES("\"a\xEF\xBF\xBD\xEF\xBF\xBD\\\"\""), HK_BYTES("a\xF0\x9F\xC0\""));
}

/* Unicode, section 3.9, "U+FFFD Substitution of Maximal Subparts", tables 3-8 to 3-11. */
HK_TEST(text_is_scrubbed_by_maximal_subparts)
{
    static const struct {
        const char *text, *expected;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x9A\x80"},
        {"\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", "????????A"},
        {"\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", "????????A"},
        {"\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42", "?????A??B"},
        {"\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", "????A"},
        {"a\xF0\x9F\x9A", "a?"},
        {"\xC3", "?"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        hk_test_note("row %zu", i);
        hk_buf_t expected, out;
        hk_buf_init(&expected, hk_test_alloc());
        hk_buf_init(&out, hk_test_alloc());
        for (const char *at = rows[i].expected; *at != '\0'; at++) {
            HK_CHECK_OK(hk_buf_append(&expected, *at == '?' ? HK_BYTES("\xEF\xBF\xBD") : hk_bytes(at, 1)));
        }
        HK_CHECK_OK(hk_json_scrub(&out, hk_test_guarded(hk_test_text(rows[i].text))));
        HK_CHECK_BYTES(hk_buf_bytes(&expected), hk_buf_bytes(&out));
        hk_buf_release(&expected);
        hk_buf_release(&out);
    }
}

HK_TEST(without_memory_it_says_so)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_buf_t out;
        hk_buf_init(&out, hk_test_alloc());
        hk_bytes_t text =
            HK_BYTES("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF");
        hk_status_t status = hk_json_scrub(&out, text);
        if (status == HK_OK) {
            status = hk_json_string(&out, text);
        }
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        hk_buf_release(&out);
    }
}
