#include "hk_test.h"

#include "hk_gap.h"

#include <string.h>

/* "6162" as "ab". */
static hk_bytes_t bytes_of(hk_bytes_t digits, char *room)
{
    static const char all[] = "0123456789abcdef";
    for (size_t i = 0; i < digits.length / 2; i++) {
        size_t high = (size_t)(strchr(all, digits.at[2 * i]) - all),
               low = (size_t)(strchr(all, digits.at[2 * i + 1]) - all);
        room[i] = (char)(high << 4 | low);
    }
    return hk_bytes(room, digits.length / 2);
}

static hk_status_t write_event(hk_buf_t *data, hk_bytes_t after, hk_bytes_t named, hk_sse_event_t *event)
{
    hk_gap_t gap;
    static char pattern[4096];
    hk_status_t status = hk_gap_begin(&gap, data, named.length > 0 ? HK_BYTES("overrun") : HK_BYTES("unknown"), after);
    while (status == HK_OK && named.length > 0) {
        hk_bytes_t digits = hk_test_field(&named, ' ');
        hk_matcher_t matcher = {.type = hk_test_field(&digits, '=')};
        matcher.pattern = bytes_of(digits, pattern);
        status = hk_gap_add(&gap, &matcher);
    }
    return status == HK_OK ? hk_gap_end(&gap, HK_BYTES("#K7gNU3sdo-O"), event) : status;
}

HK_TEST(the_bytes_are_those_of_ruby)
{
    static char after[8192], expected[16384], actual[16384];
    hk_bytes_t rest = hk_test_file("test/vectors/gap_events.txt"), line;
    hk_buf_t data;
    hk_buf_init(&data, hk_test_alloc());
    size_t count = 0;
    while (hk_test_line(&rest, &line)) {
        if (line.at[0] == '#') {
            continue;
        }
        hk_test_note("%.*s", (int)line.length, line.at);
        hk_bytes_t id = bytes_of(hk_test_field(&line, ' '), after),
                   event_bytes = bytes_of(hk_test_field(&line, ' '), expected);
        hk_sse_event_t event;
        HK_CHECK_OK(write_event(&data, hk_test_guarded(id), line, &event));
        HK_CHECK_BYTES(event_bytes, hk_bytes(actual, hk_sse_write(&event, actual)));
        count++;
    }
    HK_CHECK(count > 200);
    hk_buf_release(&data);
}

HK_TEST(without_memory_it_says_so)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_buf_t data;
        hk_sse_event_t event;
        hk_buf_init(&data, hk_test_alloc());
        hk_status_t status = write_event(&data, HK_BYTES("urn:\xFF"), HK_BYTES("exact=2f61 exact=2f62"), &event);
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        if (status == HK_OK) {
            HK_CHECK_BYTES("{\"type\":\"gap\",\"reason\":\"overrun\",\"last_event_id\":\"urn:\xEF\xBF\xBD\","
                           "\"matches\":[{\"match\":"
                           "\"/a\",\"match_type\":\"exact\"},{\"match\":\"/b\",\"match_type\":\"exact\"}]}",
                           event.data);
        }
        hk_buf_release(&data);
    }
}
