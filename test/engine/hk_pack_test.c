#include "hk_pack.h"
#include "hk_sse.h"
#include "hk_test.h"

/* Borrowed until the next call. */
static hk_bytes_t packed(hk_bytes_t events)
{
    static char room[1 << 18];
    hk_buf_t out;
    hk_buf_init(&out, hk_test_alloc());
    HK_CHECK_OK(hk_pack_append(&out, hk_test_guarded(events)));
    hk_bytes_t bytes = hk_buf_bytes(&out);
    HK_CHECK(bytes.length <= sizeof(room));
    if (bytes.length > 0) {
        memcpy(room, bytes.at, bytes.length);
    }
    hk_buf_release(&out);
    return hk_bytes(room, bytes.length);
}

/* As hk_sse writes it. */
static hk_bytes_t packed_event(hk_bytes_t id, hk_bytes_t data, hk_bytes_t type, int64_t retry_ms)
{
    static char room[1 << 18];
    hk_sse_event_t event = {.id = id, .data = data, .type = type, .retry_ms = retry_ms};
    HK_CHECK(hk_sse_size(&event) <= sizeof(room));
    return packed(hk_bytes(room, hk_sse_write(&event, room)));
}

HK_TEST(an_event_is_an_array_of_its_id_type_and_data)
{
    HK_CHECK_BYTES("\x93\xA5urn:1\xA4note\xA1x", packed_event(HK_BYTES("urn:1"), HK_BYTES("x"), HK_BYTES("note"), -1));
    HK_CHECK_BYTES("\x93\xA1"
                   "1\xC0\xA1x",
                   packed_event(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES(""), -1));
    HK_CHECK_BYTES("\x93\xA1"
                   "1\xC0\xA0",
                   packed_event(HK_BYTES("1"), HK_BYTES(""), HK_BYTES(""), -1));
}

HK_TEST(an_event_without_an_id_has_nil_for_it)
{
    HK_CHECK_BYTES("\x93\xC0\xA4note\xA1x", packed(HK_BYTES("event: note\ndata: x\n\n")));
    HK_CHECK_BYTES("\x93\xA0\xC0\xA1x", packed(HK_BYTES("id: \ndata: x\n\n")));
    HK_CHECK_BYTES("\x93\xC0\xC0\xA1x", packed(HK_BYTES("event: \ndata: x\n\n")));
}

HK_TEST(line_breaks_of_the_data_are_line_feeds)
{
    static const struct {
        const char *data, *string;
    } rows[] = {
        {"a\nb", "\xA3"
                 "a\nb"},
        {"a\rb", "\xA3"
                 "a\nb"},
        {"a\r\nb", "\xA3"
                   "a\nb"},
        {"\n", "\xA1\n"},
        {"a\n\n\n", "\xA4"
                    "a\n\n\n"},
        {"a\nid: evil\nevent: mercure", "\xB9"
                                        "a\nid: evil\nevent: mercure"},
        {" a", "\xA2 a"},
        {": x", "\xA3: x"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        hk_bytes_t bytes = packed_event(HK_BYTES("1"), hk_test_text(rows[i].data), HK_BYTES(""), -1);
        HK_CHECK_BYTES("\x93\xA1"
                       "1\xC0",
                       hk_bytes(bytes.at, 4));
        HK_CHECK_BYTES(rows[i].string, hk_bytes(bytes.at + 4, bytes.length - 4));
    }
}

HK_TEST(comments_are_nil_and_that_all_was_sent_is_true)
{
    HK_CHECK_BYTES("\xC0", packed(HK_SSE_HEARTBEAT));
    HK_CHECK_BYTES("\xC3", packed(HK_SSE_CAUGHT_UP));
    HK_CHECK_BYTES("\xC0", packed(HK_BYTES(": caught up, or not\n\n")));
    HK_CHECK_BYTES("\xC0\xC3\xC0\x93\xC0\xC0\xA1x", packed(HK_BYTES(":\n\n: caught up\n\n:\ndata: x\n\n")));
}

HK_TEST(when_to_come_back_is_a_number_before_the_event)
{
    static const struct {
        int64_t retry;
        const char *bytes;
        size_t length;
    } rows[] = {
        {0, "\x00", 1},
        {127, "\x7F", 1},
        {128, "\xCC\x80", 2},
        {255, "\xCC\xFF", 2},
        {256, "\xCD\x01\x00", 3},
        {65535, "\xCD\xFF\xFF", 3},
        {65536, "\xCE\x00\x01\x00\x00", 5},
        {UINT32_MAX, "\xCE\xFF\xFF\xFF\xFF", 5},
        {INT64_C(1) << 32, "\xCF\x00\x00\x00\x01\x00\x00\x00\x00", 9},
        {INT64_MAX, "\xCF\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 9},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        hk_bytes_t bytes = packed_event(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES(""), rows[i].retry);
        HK_CHECK_BYTES(hk_bytes(rows[i].bytes, rows[i].length), hk_bytes(bytes.at, rows[i].length));
        HK_CHECK_BYTES("\x93\xA1"
                       "1\xC0\xA1x",
                       hk_bytes(bytes.at + rows[i].length, bytes.length - rows[i].length));
    }
    HK_CHECK_BYTES("\xCD\x13\x88", packed(HK_BYTES("retry: 5000\n\n")));
    HK_CHECK_BYTES("", packed(HK_BYTES("retry: \n\nretry: 5s\n\nretry: 18446744073709551616\n\n")));
    HK_CHECK_BYTES("\xCF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", packed(HK_BYTES("retry: 18446744073709551615\n\n")));
}

HK_TEST(the_head_of_a_string_is_the_shortest_there_is)
{
    static const struct {
        size_t length;
        const char *head;
        size_t head_length;
    } rows[] = {
        {31, "\xBF", 1},          {32, "\xD9\x20", 2},        {255, "\xD9\xFF", 2},
        {256, "\xDA\x01\x00", 3}, {65535, "\xDA\xFF\xFF", 3}, {65536, "\xDB\x00\x01\x00\x00", 5},
    };
    static char data[65536];
    memset(data, 'x', sizeof(data));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        hk_bytes_t bytes = packed_event(HK_BYTES("1"), hk_bytes(data, rows[i].length), HK_BYTES(""), -1);
        HK_CHECK_BYTES(hk_bytes(rows[i].head, rows[i].head_length), hk_bytes(bytes.at + 4, rows[i].head_length));
        HK_CHECK_EQUAL_UINT(4 + rows[i].head_length + rows[i].length, bytes.length);
    }
}

HK_TEST(what_is_no_event_is_left_out)
{
    HK_CHECK_BYTES("", packed(HK_BYTES("")));
    HK_CHECK_BYTES("", packed(HK_BYTES("\n\n\n")));
    HK_CHECK_BYTES("", packed(HK_BYTES("id: 1\nevent: x\n\n")));
    HK_CHECK_BYTES("", packed(HK_BYTES("datum: x\nidentity: 1\n\n")));
    HK_CHECK_BYTES("\x93\xC0\xC0\xA1x", packed(HK_BYTES("color: red\ndata: x")));
    HK_CHECK_BYTES("\x93\xC0\xC0\xA2\n\n", packed(HK_BYTES("data\ndata:\ndata: \n\n")));
}

HK_TEST(without_memory_nothing_is_appended)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_buf_t out;
        hk_buf_init(&out, hk_test_alloc());
        hk_status_t status = hk_buf_append(&out, HK_BYTES("before"));
        if (status == HK_OK) {
            static char event[5000] = "data: x\n\ndata: ";
            memset(event + 15, 'x', sizeof(event) - 15);
            status = hk_pack_append(&out, hk_bytes(event, sizeof(event)));
            HK_CHECK_EQUAL_UINT(status == HK_OK ? 6 + 5 + 6 + 4985 : 6, out.length);
        }
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        hk_buf_release(&out);
    }
}
