/* hk_frame against test/vectors/protocol, which hikyaku's Ruby has made and reads, too. */
#include "hk_frame.h"
#include "hk_test.h"

#include <stdlib.h>

/* The text of a field of a flat object on one line, with its quotation marks if it has them; empty: there is none. */
static hk_bytes_t field_of(hk_bytes_t line, const char *name)
{
    char key[64];
    size_t length = strlen(name);
    HK_CHECK(length + 3 < sizeof(key));
    key[0] = '"';
    memcpy(key + 1, name, length);
    memcpy(key + 1 + length, "\":", 2);
    const char *at = memmem(line.at, line.length, key, length + 3);
    if (at == NULL) {
        return hk_bytes(NULL, 0);
    }
    at += length + 3;
    const char *end = line.at + line.length, *stop = at;
    bool text = *at == '"';
    for (stop += text; stop < end && (text ? *stop != '"' : *stop != ',' && *stop != '}'); stop++) {
        stop += text && *stop == '\\';
    }
    return hk_bytes(at + text, (size_t)(stop - at) - text);
}

static uint64_t number_of(hk_bytes_t line, const char *name)
{
    char text[32] = {0};
    hk_bytes_t field = field_of(line, name);
    HK_CHECK(field.length > 0 && field.length < sizeof(text));
    memcpy(text, field.at, field.length);
    return strtoull(text, NULL, 10);
}

/* The frame, right before a page that must not be touched. */
static hk_bytes_t frame_of(hk_bytes_t line)
{
    hk_bytes_t hex = field_of(line, "hex");
    HK_CHECK(hex.length % 2 == 0);
    char *bytes = malloc(hex.length / 2 + 1);
    for (size_t i = 0; i < hex.length / 2; i++) {
        char digits[3] = {hex.at[2 * i], hex.at[2 * i + 1], 0};
        bytes[i] = (char)strtoul(digits, NULL, 16);
    }
    hk_bytes_t guarded = hk_test_guarded(hk_bytes(bytes, hex.length / 2));
    free(bytes);
    return guarded;
}

static bool reads(const hk_frame_t *frame)
{
    hk_frame_hello_t hello;
    hk_frame_send_t send;
    hk_frame_subscribe_t subscribe;
    hk_frame_nack_t nack;
    hk_frame_query_t query;
    switch (frame->type) {
    case HK_FRAME_HELLO:
        return hk_frame_read_hello(frame, &hello);
    case HK_FRAME_SEND:
        return hk_frame_read_send(frame, &send);
    case HK_FRAME_SEND_BATCH:
        return hk_frame_read_batch(frame, &send);
    case HK_FRAME_SUBSCRIBE:
        return hk_frame_read_subscribe(frame, &subscribe);
    case HK_FRAME_NACK:
        return hk_frame_read_nack(frame, &nack);
    case HK_FRAME_QUERY:
        return hk_frame_read_query(frame, &query);
    case HK_FRAME_CREDIT:
        return hk_frame_read_plain(frame, 24);
    case HK_FRAME_FREE:
        return hk_frame_read_plain(frame, 32);
    case HK_FRAME_TOUCH:
        return hk_frame_read_plain(frame, 40);
    default:
        return hk_frame_read_plain(frame, 16);
    }
}

HK_TEST(every_frame_of_a_client_is_read_as_it_was_written)
{
    hk_bytes_t rest = hk_test_file("test/vectors/protocol/client.json"), line;
    int count = 0;
    while (hk_test_line(&rest, &line)) {
        if (field_of(line, "hex").length == 0) {
            continue;
        }
        hk_test_note("%.*s", (int)field_of(line, "name").length, field_of(line, "name").at);
        hk_bytes_t bytes = frame_of(line);
        HK_CHECK_EQUAL_UINT(bytes.length, hk_frame_u32(bytes.at));
        hk_frame_t frame = hk_frame(bytes);
        HK_CHECK_EQUAL_UINT(number_of(line, "id"), frame.id);
        HK_CHECK(reads(&frame));
        hk_frame_send_t send;
        hk_frame_hello_t hello;
        if (frame.type == HK_FRAME_SEND) {
            HK_CHECK(hk_frame_read_send(&frame, &send));
            HK_CHECK_EQUAL_UINT(number_of(line, "sequence"), send.sequence);
            HK_CHECK_EQUAL_UINT(number_of(line, "delay"), send.delay);
            HK_CHECK_EQUAL_UINT(number_of(line, "time_to_live"), send.time_to_live);
            HK_CHECK_EQUAL_UINT(number_of(line, "priority"), send.priority);
            HK_CHECK_EQUAL_UINT(number_of(line, "level"), send.level);
        } else if (frame.type == HK_FRAME_HELLO) {
            HK_CHECK(hk_frame_read_hello(&frame, &hello));
            HK_CHECK_EQUAL_UINT(number_of(line, "epoch"), hello.epoch);
            HK_CHECK_EQUAL_UINT(number_of(line, "max_frame"), hello.max_frame);
            HK_CHECK_EQUAL_UINT(number_of(line, "heartbeat"), hello.heartbeat);
            HK_CHECK_BYTES(field_of(line, "identity"), hello.identity);
        }
        count++;
    }
    HK_CHECK(count > 20);
}

HK_TEST(what_is_malformed_is_no_frame)
{
    hk_bytes_t rest = hk_test_file("test/vectors/protocol/malformed.json"), line;
    int count = 0;
    while (hk_test_line(&rest, &line)) {
        if (field_of(line, "hex").length == 0 || !hk_bytes_equal(field_of(line, "from"), HK_BYTES("client")) ||
            number_of(line, "code") != HK_CODE_MALFORMED) {
            continue;
        }
        hk_test_note("%.*s", (int)field_of(line, "name").length, field_of(line, "name").at);
        hk_bytes_t bytes = frame_of(line);
        if (bytes.length < HK_FRAME_HEADER_BYTES || hk_frame_u32(bytes.at) != bytes.length ||
            (bytes.at[4] > HK_FRAME_QUERY && bytes.at[4] != HK_FRAME_ACK) || bytes.at[4] < HK_FRAME_HELLO) {
            continue; /* for whoever cuts bytes into frames */
        }
        hk_frame_t frame = hk_frame(bytes);
        HK_CHECK(!reads(&frame));
        count++;
    }
    HK_CHECK(count > 40);
}

HK_TEST(names_are_text_without_control_characters)
{
    static const struct {
        const char *name;
        size_t length;
        bool queue, identity;
    } cases[] = {{"a", 1, true, true},       {"", 0, false, false},      {"b\xC3\xBCro", 5, true, true},
                 {"a\x1F", 2, false, false}, {"a\x7F", 2, false, false}, {"\xC3", 1, false, false},
                 {"@a", 2, false, true},     {"a\0b", 3, false, false},  {"a b", 3, true, true}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        hk_test_note("case %zu", i);
        hk_bytes_t name = hk_test_guarded(hk_bytes(cases[i].name, cases[i].length));
        HK_CHECK_EQUAL_INT(cases[i].queue, hk_frame_name(0, name));
        HK_CHECK_EQUAL_INT(cases[i].identity, hk_frame_name(1, name));
    }
    char most[256];
    memset(most, 'x', sizeof(most));
    HK_CHECK(hk_frame_name(0, hk_bytes(most, 255)));
    HK_CHECK(!hk_frame_name(0, hk_bytes(most, 256)));
}

HK_TEST(properties_are_pairs_to_their_end)
{
    HK_CHECK(hk_frame_properties(HK_BYTES("")));
    HK_CHECK(hk_frame_properties(HK_BYTES("\1a\0\0")));
    HK_CHECK(hk_frame_properties(HK_BYTES("\1a\1\0b\2cd\0\0")));
    static const struct {
        const char *bytes;
        size_t length;
    } wrong[] = {{"\0", 1}, {"\1", 1}, {"\1a", 2}, {"\1a\0", 3}, {"\1a\1\0", 4}, {"\0\0\0", 3}, {"\1a\0\0x", 5}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        hk_test_note("case %zu", i);
        HK_CHECK(!hk_frame_properties(hk_test_guarded(hk_bytes(wrong[i].bytes, wrong[i].length))));
    }
}
