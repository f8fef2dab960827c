#include "hk_sse.h"
#include "hk_test.h"

enum { ROOM = 4096 };

/* Into room that ends at a page that must not be touched: an event that is longer than it said is a crash. */
static hk_bytes_t written(const hk_sse_event_t *event)
{
    size_t size = hk_sse_size(event);
    char *out = hk_test_guarded_room(size);
    HK_CHECK_EQUAL_UINT(size, hk_sse_write(event, out));
    HK_CHECK_BYTES(event->id, hk_bytes(out + hk_sse_id_offset(event), event->id.length));
    return hk_bytes(out, size);
}

static hk_bytes_t encoded(hk_bytes_t id, hk_bytes_t data, hk_bytes_t type, int64_t retry_ms)
{
    return written(&(hk_sse_event_t){.id = id, .data = data, .type = type, .retry_ms = retry_ms});
}

HK_TEST(an_event_is_its_type_retry_id_and_data_and_an_empty_line)
{
    HK_CHECK_BYTES("event: note\nretry: 5\nid: urn:1\ndata: x\n\n",
                   encoded(HK_BYTES("urn:1"), HK_BYTES("x"), HK_BYTES("note"), 5));
    HK_CHECK_BYTES("id: 1\ndata: x\n\n", encoded(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES(""), -1));
    HK_CHECK_BYTES("retry: 0\nid: 1\ndata: x\n\n", encoded(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES(""), 0));
    HK_CHECK_BYTES("event: note\nid: 1\ndata: x\n\n", encoded(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES("note"), -5));
    HK_CHECK_BYTES("retry: 9223372036854775807\nid: 1\ndata: x\n\n",
                   encoded(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES(""), INT64_MAX));
    HK_CHECK_BYTES("retry: 1000000\nid: 1\ndata: x\n\n", encoded(HK_BYTES("1"), HK_BYTES("x"), HK_BYTES(""), 1000000));
}

HK_TEST(every_line_break_of_the_data_begins_a_data_field)
{
    static const struct {
        const char *data, *fields;
    } rows[] = {
        {"a\nb", "data: a\ndata: b\n"},
        {"a\rb", "data: a\ndata: b\n"},
        {"a\r\nb", "data: a\ndata: b\n"},
        {"a\n\nb", "data: a\ndata: \ndata: b\n"},
        {"a\r\rb", "data: a\ndata: \ndata: b\n"},
        {"a\n\rb", "data: a\ndata: \ndata: b\n"},
        {"a\r\n\rb", "data: a\ndata: \ndata: b\n"},
        {"a\r\r\nb", "data: a\ndata: \ndata: b\n"},
        {"a\r\n\r\nb", "data: a\ndata: \ndata: b\n"},
        {"\n", "data: \ndata: \n"},
        {"\r", "data: \ndata: \n"},
        {"\r\n", "data: \ndata: \n"},
        {"a\n", "data: a\ndata: \n"},
        {"a\r", "data: a\ndata: \n"},
        {"a\r\n", "data: a\ndata: \n"},
        {"a\n\n\n", "data: a\ndata: \ndata: \ndata: \n"},
        {"a\nid: evil\nevent: mercure", "data: a\ndata: id: evil\ndata: event: mercure\n"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        hk_bytes_t event = encoded(HK_BYTES("1"), hk_test_guarded(hk_test_text(rows[i].data)), HK_BYTES(""), -1);
        HK_CHECK_BYTES("id: 1\n", hk_bytes(event.at, 6));
        HK_CHECK_BYTES(rows[i].fields, hk_bytes(event.at + 6, event.length - 7));
        HK_CHECK(event.at[event.length - 1] == '\n');
    }
}

HK_TEST(an_event_without_data_is_still_an_event)
{
    HK_CHECK_BYTES("id: 1\ndata: \n\n", encoded(HK_BYTES("1"), HK_BYTES(""), HK_BYTES(""), -1));
    HK_CHECK_BYTES("id: 1\ndata: \n\n", encoded(HK_BYTES("1"), hk_bytes(NULL, 0), hk_bytes(NULL, 0), -1));
}

HK_TEST(data_may_hold_any_bytes)
{
    HK_CHECK_BYTES("id: \xC3\xA9\ndata: \xE6\x97\xA5\0\xFF\v\f\xC2\x85\n\n",
                   encoded(HK_BYTES("\xC3\xA9"), HK_BYTES("\xE6\x97\xA5\0\xFF\v\f\xC2\x85"), HK_BYTES(""), -1));
}

HK_TEST(a_heartbeat_is_a_comment)
{
    HK_CHECK_BYTES(":\n\n", HK_SSE_HEARTBEAT);
}

/* The same, byte by byte. */
static size_t simply(hk_bytes_t data, char *out)
{
    size_t length = 0;
    memcpy(out + length, "id: 1\ndata: ", 12);
    length += 12;
    for (size_t i = 0; i < data.length; i++) {
        if (data.at[i] != '\r' && data.at[i] != '\n') {
            out[length++] = data.at[i];
            continue;
        }
        i += data.at[i] == '\r' && i + 1 < data.length && data.at[i + 1] == '\n';
        memcpy(out + length, "\ndata: ", 7);
        length += 7;
    }
    memcpy(out + length, "\n\n", 2);
    return length + 2;
}

HK_TEST(random_data_is_written_as_a_simpler_writer_does)
{
    static const char bytes[] = {'\r', '\n', 'a', ':', ' '};
    for (size_t i = 0; i < 20000; i++) {
        char data[60], expected[ROOM], out[ROOM];
        size_t length = hk_test_below(sizeof(data)), variety = 1 + hk_test_below(sizeof(bytes));
        for (size_t j = 0; j < length; j++) {
            data[j] = bytes[hk_test_below(variety)];
        }
        hk_sse_event_t event = {.id = HK_BYTES("1"), .data = {data, length}, .type = HK_BYTES(""), .retry_ms = -1};
        size_t size = simply(event.data, expected);
        HK_CHECK_EQUAL_UINT(size, hk_sse_size(&event));
        HK_CHECK_BYTES(hk_bytes(expected, size), hk_bytes(out, hk_sse_write(&event, out)));
    }
}
