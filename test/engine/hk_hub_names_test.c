#include "hk_gzip.h"
#include "hk_hub_fixture.h"
#include "hk_subscriber.h"

/* Streams whose events name the matchers that selected them; what they say is in test/contracts/engine/naming.rb. */

static size_t count_of(const reader_t *reader, hk_bytes_t line)
{
    hk_bytes_t rest = hk_buf_bytes(&reader->received), found;
    size_t count = 0;
    while (hk_test_line(&rest, &found)) {
        count += hk_bytes_equal(found, line);
    }
    return count;
}

HK_TEST(an_event_names_what_selected_it_once)
{
    fixture_t f;
    reader_t reader, other;
    fixture_begin(&f, NULL);
    fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /b*", .naming = true});
    fixture_subscribe(&f, &other, &(wish_t){.matches = "/a /b*"});
    fixture_publish(&f, "/a /b", "1");
    fixture_publish(&f, "/b /bc", "2");
    HK_CHECK_BYTES("1 2", fixture_data(&f, &reader));
    HK_CHECK_EQUAL_UINT(1, count_of(&reader, HK_BYTES("match: /a")));
    HK_CHECK_EQUAL_UINT(2, count_of(&reader, HK_BYTES("match_urlpattern: /b*")) +
                               count_of(&reader, HK_BYTES("topic: /b*")) + count_of(&reader, HK_BYTES("match: /b*")));
    HK_CHECK_EQUAL_UINT(0, count_of(&other, HK_BYTES("match: /a")));
    fixture_end(&f);
}

HK_TEST(a_change_for_which_there_is_no_memory_leaves_events_without_names)
{
    hk_stream_coding_t codings[] = {HK_STREAM_IDENTITY, HK_STREAM_GZIP};
    for (size_t i = 0; i < (hk_gzip_available() ? 2 : 1); i++) {
        HK_EACH_FAILING_ALLOCATION {
            fixture_t f;
            reader_t reader;
            wish_t wish = {.matches = "/a", .naming = true, .coding = codings[i]};
            if (fixture_try(&f, NULL) == HK_OK) {
                if (fixture_try_subscribe(&f, &reader, &wish) == HK_OK) {
                    hk_status_t status = fixture_try_change(&f, &reader, &(wish_t){.matches = "/a /b"});
                    hk_test_not_failing();
                    fixture_publish(&f, "/a", "1");
                    fixture_drain(&f);
                    HK_CHECK_EQUAL_INT(status == HK_OK, hk_subscriber_names(reader.subscriber));
                    if (codings[i] == HK_STREAM_IDENTITY) {
                        HK_CHECK_EQUAL_UINT(status == HK_OK, count_of(&reader, HK_BYTES("match: /a")));
                    }
                } else {
                    reader_release(&reader);
                }
                fixture_end(&f);
            }
        }
    }
}
