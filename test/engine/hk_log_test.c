#include "hk_cipher.h"
#include "hk_log.h"
#include "hk_test.h"

#include <stdio.h>
#include <stdlib.h>

static const hk_log_options_t options = {.capacity = 10000, .key = "0123456789abcdef", .secret = {1, 2}};

static hk_log_t *log_of(size_t capacity)
{
    hk_log_options_t chosen = options;
    chosen.capacity = capacity;
    hk_log_t *log;
    HK_CHECK_OK(hk_log_new(hk_test_alloc(), &chosen, &log));
    return log;
}

static hk_topic_t *topic_of(const char *value)
{
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), hk_test_text(value), NULL, false, &topic));
    return topic;
}

static hk_status_t try_append(hk_log_t *log, const char *id, hk_bytes_t data, hk_topic_t *topic, hk_record_t **record)
{
    hk_log_update_t update = {
        .topics = &topic, .topic_count = 1, .data = data, .id = hk_test_text(id), .retry_ms = -1, .is_private = false};
    return hk_log_append(log, &update, record);
}

static hk_record_t *append(hk_log_t *log, const char *id, hk_bytes_t data, hk_topic_t *topic)
{
    hk_record_t *record;
    HK_CHECK_OK(try_append(log, id, data, topic, &record));
    return record;
}

/* -- Ids ----------------------------------------------------------------------------------------------------------- */

static void take_key(hk_bytes_t hex, uint8_t key[HK_CIPHER_KEY_BYTES])
{
    HK_CHECK_EQUAL_UINT(2 * HK_CIPHER_KEY_BYTES, hex.length);
    for (size_t i = 0; i < HK_CIPHER_KEY_BYTES; i++) {
        char digits[3] = {hex.at[2 * i], hex.at[2 * i + 1], '\0'};
        key[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static uint64_t number_of(hk_bytes_t digits)
{
    char text[32] = "";
    memcpy(text, digits.at, digits.length);
    return strtoull(text, NULL, 10);
}

HK_TEST(positions_are_enciphered_as_the_vectors_say)
{
    hk_bytes_t rest = hk_test_file("test/vectors/position_ids.txt"), line;
    size_t sealed = 0, refused = 0;
    while (hk_test_line(&rest, &line)) {
        hk_bytes_t hex = hk_test_field(&line, ' '), position = hk_test_field(&line, ' '), id = line;
        if (hex.at[0] == '#') {
            continue;
        }
        hk_test_note("%.*s", (int)id.length, id.at);
        hk_cipher_t cipher;
        uint8_t key[HK_CIPHER_KEY_BYTES];
        take_key(hex, key);
        hk_cipher_init(&cipher, key);
        uint64_t opened = 99;
        hk_bytes_t guarded = hk_test_guarded(id);
        if (hk_bytes_equal(position, HK_BYTES("-"))) {
            HK_CHECK_STATUS(HK_NOT_FOUND, hk_cipher_open(&cipher, guarded, &opened));
            HK_CHECK_EQUAL_UINT(99, opened);
            refused++;
        } else {
            char made[HK_CIPHER_ID_BYTES];
            hk_cipher_seal(&cipher, number_of(position), made);
            HK_CHECK_BYTES(id, hk_bytes(made, sizeof(made)));
            HK_CHECK_OK(hk_cipher_open(&cipher, guarded, &opened));
            HK_CHECK_EQUAL_UINT(number_of(position), opened);
            sealed++;
        }
    }
    HK_CHECK(sealed >= 70 && refused >= 60);
}

HK_TEST(any_byte_that_is_no_digit_of_base64url_is_refused_wherever_it_stands)
{
    hk_cipher_t cipher;
    hk_cipher_init(&cipher, options.key);
    char id[HK_CIPHER_ID_BYTES];
    for (size_t at = 1; at < sizeof(id); at++) {
        for (int byte = 0; byte < 256; byte++) {
            hk_cipher_seal(&cipher, 5, id);
            id[at] = (char)byte;
            bool digit = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
                         byte == '-' || byte == '_';
            uint64_t position;
            hk_status_t status = hk_cipher_open(&cipher, hk_bytes(id, sizeof(id)), &position);
            if (at < sizeof(id) - 1 || !digit) {
                HK_CHECK_STATUS(digit ? HK_OK : HK_NOT_FOUND, status);
            }
        }
    }
    uint64_t position;
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_cipher_open(&cipher, hk_bytes(NULL, 0), &position));
}

HK_TEST(random_positions_are_opened_again)
{
    hk_cipher_t cipher;
    hk_cipher_init(&cipher, options.key);
    for (size_t i = 0; i < 10000; i++) {
        uint64_t position = hk_test_random(), opened;
        char id[HK_CIPHER_ID_BYTES];
        hk_cipher_seal(&cipher, position, id);
        HK_CHECK_OK(hk_cipher_open(&cipher, hk_bytes(id, sizeof(id)), &opened));
        HK_CHECK_EQUAL_UINT(position, opened);
    }
}

/* -- Records ------------------------------------------------------------------------------------------------------- */

HK_TEST(a_record_holds_the_event_its_id_its_topics_and_what_it_costs)
{
    hk_log_t *log = log_of(10000);
    hk_topic_t *topics[] = {topic_of("/a"), topic_of("https://example.com/b")};
    hk_log_update_t update = {.topics = topics,
                              .topic_count = 2,
                              .data = HK_BYTES("one\ntwo"),
                              .id = HK_BYTES("urn:1"),
                              .type = HK_BYTES("note"),
                              .retry_ms = 20,
                              .is_private = true};
    hk_record_t *record;
    HK_CHECK_OK(hk_log_append(log, &update, &record));
    HK_CHECK_BYTES("event: note\nretry: 20\nid: urn:1\ndata: one\ndata: two\n\n", record->frame);
    HK_CHECK_BYTES("urn:1", record->id);
    HK_CHECK(record->id.at > record->frame.at && record->id.at < record->frame.at + record->frame.length);
    HK_CHECK(record->is_private && record->own_id);
    HK_CHECK_EQUAL_UINT(1, record->position);
    HK_CHECK_EQUAL_UINT(2, record->topic_count);
    HK_CHECK(record->topics[0] == topics[0] && record->topics[1] == topics[1]);
    /* The frame, the id, the topics; with a chosen id and two topics. */
    HK_CHECK_EQUAL_UINT(53 + 5 + 2 + 21 + HK_RECORD_OVERHEAD + HK_CHOSEN_OVERHEAD + 2 * HK_PLACE_OVERHEAD,
                        record->bytes);
    HK_CHECK_EQUAL_UINT(record->bytes, hk_log_bytes(log));
    hk_log_free(log);
    hk_topic_release(topics[0]);
    hk_topic_release(topics[1]);
}

HK_TEST(an_update_without_an_id_gets_that_of_its_position)
{
    hk_log_t *log = log_of(10000);
    hk_topic_t *topic = topic_of("/a");
    for (hk_position_t position = 1; position < 10; position++) {
        hk_record_t *record = append(log, "", HK_BYTES("x"), topic);
        char id[HK_EVENT_ID_BYTES];
        hk_log_seal(log, position, id);
        HK_CHECK_BYTES(hk_bytes(id, sizeof(id)), record->id);
        HK_CHECK_BYTES("id: #", hk_bytes(record->frame.at, 5));
        HK_CHECK(!record->own_id);
        HK_CHECK_EQUAL_UINT(26 + 12 + 2 + HK_RECORD_OVERHEAD + HK_PLACE_OVERHEAD, record->bytes);
        hk_position_t found;
        HK_CHECK_OK(hk_log_open(log, record->id, &found));
        HK_CHECK_EQUAL_UINT(position, found);
    }
    hk_log_free(log);
    hk_topic_release(topic);
}

HK_TEST(a_record_is_one_block_of_memory)
{
    hk_log_t *log = log_of(100000);
    hk_topic_t *topic = topic_of("/a");
    append(log, "first", HK_BYTES("x"), topic);
    size_t before = hk_test_requests();
    append(log, "", HK_BYTES("x"), topic);
    append(log, "urn:1", HK_BYTES("x"), topic);
    HK_CHECK_EQUAL_UINT(before + 2, hk_test_requests());
    hk_log_free(log);
    hk_topic_release(topic);
}

HK_TEST(updates_with_no_topic_or_too_many_are_refused)
{
    hk_log_t *log = log_of(10000);
    hk_topic_t *topic = topic_of("/a");
    hk_topic_t **many = hk_alloc_new(hk_test_alloc(), 65536 * sizeof(*many));
    for (size_t i = 0; i < 65536; i++) {
        many[i] = topic;
    }
    hk_record_t *record = NULL;
    HK_CHECK_STATUS(HK_INVALID, hk_log_append(log, &(hk_log_update_t){.topics = many, .topic_count = 0}, &record));
    HK_CHECK_STATUS(HK_INVALID, hk_log_append(log, &(hk_log_update_t){.topics = many, .topic_count = 65536}, &record));
    HK_CHECK_EQUAL_UINT(0, hk_log_head(log));
    HK_CHECK_OK(hk_log_append(log, &(hk_log_update_t){.topics = many, .topic_count = 65535}, &record));
    HK_CHECK_EQUAL_UINT(65535, record->topic_count);
    HK_CHECK_EQUAL_UINT(65536, topic->references);
    hk_log_free(log);
    hk_alloc_free(hk_test_alloc(), many);
    hk_topic_release(topic);
}

/* -- The ring ------------------------------------------------------------------------------------------------------ */

HK_TEST(positions_are_dense_and_rise_from_1)
{
    hk_log_t *log = log_of(10000);
    hk_topic_t *topic = topic_of("/a");
    HK_CHECK_EQUAL_UINT(0, hk_log_head(log));
    HK_CHECK_EQUAL_UINT(1, hk_log_first(log));
    HK_CHECK_EQUAL_UINT(0, hk_log_count(log));
    HK_CHECK(hk_log_at(log, 0) == NULL && hk_log_at(log, 1) == NULL);
    hk_record_t *records[3];
    for (size_t i = 0; i < 3; i++) {
        records[i] = append(log, "", HK_BYTES("x"), topic);
        HK_CHECK_EQUAL_UINT(i + 1, records[i]->position);
    }
    for (size_t i = 0; i < 3; i++) {
        HK_CHECK(hk_log_at(log, i + 1) == records[i]);
    }
    HK_CHECK(hk_log_at(log, 0) == NULL && hk_log_at(log, 4) == NULL && hk_log_at(log, UINT64_MAX) == NULL);
    HK_CHECK_EQUAL_UINT(1, hk_log_first(log));
    HK_CHECK_EQUAL_UINT(3, hk_log_head(log));
    HK_CHECK_EQUAL_UINT(3, hk_log_count(log));
    hk_log_free(log);
    hk_topic_release(topic);
}

HK_TEST(the_oldest_records_go_when_there_are_too_many_bytes)
{
    hk_topic_t *topic = topic_of("/a");
    hk_log_t *log = log_of(3 * 204);
    for (size_t i = 0; i < 3; i++) {
        append(log, "", HK_BYTES("x"), topic);
    }
    HK_CHECK_EQUAL_UINT(3 * 204, hk_log_bytes(log));
    HK_CHECK_EQUAL_UINT(1, hk_log_first(log));
    append(log, "", HK_BYTES("x"), topic);
    HK_CHECK_EQUAL_UINT(2, hk_log_first(log));
    HK_CHECK_EQUAL_UINT(3 * 204, hk_log_bytes(log));
    append(log, "", HK_BYTES("two more"), topic);
    HK_CHECK_EQUAL_UINT(4, hk_log_first(log));
    HK_CHECK(hk_log_at(log, 3) == NULL);
    HK_CHECK_EQUAL_UINT(4, hk_log_at(log, 4)->position);
    HK_CHECK_EQUAL_UINT(2, hk_log_count(log));
    HK_CHECK_EQUAL_UINT(3, topic->references);
    hk_log_free(log);
    hk_topic_release(topic);
}

/* Percent-encoded, a topic's URL is up to three times as long as its text, and a copy beside it. */
HK_TEST(what_a_log_takes_counts_also_where_urls_are_much_longer_than_their_topics)
{
    enum { TEXT = 600, CAPACITY = 1 << 20, TOPICS = 3000 };
    hk_log_t *log = log_of(CAPACITY);
    char value[TEXT], path[3 * TEXT];
    memset(path, 'x', sizeof(path));
    hk_url_t url = {.parts[HK_URL_PATHNAME] = hk_bytes(path, sizeof(path)), .origin = HK_BYTES("https://example.com")};
    for (size_t i = 0; i < TOPICS; i++) {
        memset(value, ' ', sizeof(value));
        snprintf(value, sizeof(value), "%zu", i);
        hk_topic_t *topic;
        HK_CHECK_OK(hk_topic_new(hk_test_alloc(), hk_bytes(value, sizeof(value)), &url, false, &topic));
        append(log, "", HK_BYTES("x"), topic);
        HK_CHECK(hk_log_bytes(log) <= CAPACITY);
        hk_topic_release(topic);
    }
    HK_CHECK(hk_log_bytes(log) > CAPACITY / 10 * 9);
    HK_CHECK(hk_test_bytes_in_use() < CAPACITY / 10 * 13);
    hk_log_free(log);
}

HK_TEST(the_newest_record_stays_even_when_it_is_larger_than_the_ring)
{
    hk_log_t *log = log_of(10);
    hk_topic_t *topic = topic_of("/a");
    for (hk_position_t position = 1; position < 5; position++) {
        append(log, "urn:1", HK_BYTES("much too large"), topic);
        HK_CHECK_EQUAL_UINT(position, hk_log_first(log));
        HK_CHECK_EQUAL_UINT(position, hk_log_head(log));
        HK_CHECK_EQUAL_UINT(hk_log_at(log, position)->bytes, hk_log_bytes(log));
    }
    hk_log_free(log);
    hk_topic_release(topic);
}

HK_TEST(a_record_that_somebody_keeps_outlives_its_eviction_and_the_log)
{
    hk_log_t *log = log_of(10);
    hk_topic_t *topic = topic_of("/a");
    hk_record_t *kept = hk_record_retain(append(log, "urn:1", HK_BYTES("kept"), topic));
    append(log, "urn:1", HK_BYTES("x"), topic);
    HK_CHECK(hk_log_at(log, 1) == NULL);
    HK_CHECK_BYTES("id: urn:1\ndata: kept\n\n", kept->frame);
    hk_log_free(log);
    hk_topic_release(topic);
    HK_CHECK_BYTES("/a", hk_topic_value(kept->topics[0]));
    hk_record_release(kept);
    hk_record_release(NULL);
    hk_log_free(NULL);
}

/* -- From ids to positions ----------------------------------------------------------------------------------------- */

static void check_found(const hk_log_t *log, const char *id, hk_position_t expected)
{
    hk_position_t position = 99;
    HK_CHECK_OK(hk_log_find(log, hk_test_text(id), &position));
    HK_CHECK_EQUAL_UINT(expected, position);
}

static void check_not_found(const hk_log_t *log, hk_bytes_t id)
{
    hk_position_t position = 99;
    HK_CHECK_STATUS(HK_NOT_FOUND, hk_log_find(log, id, &position));
    HK_CHECK_EQUAL_UINT(99, position);
}

HK_TEST(a_reused_id_leads_to_the_earliest_record_that_is_still_there)
{
    hk_topic_t *topic = topic_of("/a");
    hk_log_t *log = log_of(1600);
    append(log, "same", HK_BYTES("x"), topic);
    append(log, "other", HK_BYTES("x"), topic);
    append(log, "same", HK_BYTES("x"), topic);
    append(log, "same", HK_BYTES("x"), topic);
    check_found(log, "same", 1);
    check_found(log, "other", 2);
    append(log, "third", HK_BYTES("x"), topic);
    check_found(log, "same", 3);
    append(log, "third", HK_BYTES("x"), topic);
    check_not_found(log, HK_BYTES("other"));
    append(log, "third", HK_BYTES("x"), topic);
    check_found(log, "same", 4);
    append(log, "same", HK_BYTES("x"), topic);
    check_found(log, "same", 8);
    check_found(log, "third", 5);
    for (size_t i = 0; i < 8; i++) {
        append(log, "", HK_BYTES("x"), topic);
    }
    check_not_found(log, HK_BYTES("same"));
    check_not_found(log, HK_BYTES(""));
    hk_log_free(log);
    hk_topic_release(topic);
}

HK_TEST(an_id_of_the_hub_leads_to_its_position_while_nothing_was_lost_since)
{
    hk_topic_t *topic = topic_of("/a");
    hk_log_t *log = log_of(800);
    char ids[8][HK_EVENT_ID_BYTES];
    for (hk_position_t position = 0; position < 8; position++) {
        hk_log_seal(log, position, ids[position]);
    }
    hk_position_t position;
    HK_CHECK_OK(hk_log_find(log, hk_bytes(ids[0], HK_EVENT_ID_BYTES), &position));
    HK_CHECK_EQUAL_UINT(0, position);
    check_not_found(log, hk_bytes(ids[1], HK_EVENT_ID_BYTES));
    for (size_t i = 0; i < 6; i++) {
        append(log, i == 5 ? "own" : "", HK_BYTES("x"), topic);
    }
    HK_CHECK_EQUAL_UINT(4, hk_log_first(log));
    for (size_t i = 0; i < 8; i++) {
        hk_bytes_t id = hk_bytes(ids[i], HK_EVENT_ID_BYTES);
        hk_test_note("position %zu", i);
        if (i < 3 || i > 6) {
            check_not_found(log, id);
        } else {
            HK_CHECK_OK(hk_log_find(log, id, &position));
            HK_CHECK_EQUAL_UINT(i, position);
        }
    }
    check_found(log, "own", 6);
    hk_log_t *other;
    hk_log_options_t others = options;
    others.key[3] = 'x';
    HK_CHECK_OK(hk_log_new(hk_test_alloc(), &others, &other));
    check_not_found(other, hk_bytes(ids[1], HK_EVENT_ID_BYTES));
    hk_log_free(other);
    char last[HK_EVENT_ID_BYTES];
    hk_log_seal(log, UINT64_MAX, last);
    check_not_found(log, hk_bytes(last, sizeof(last)));
    hk_log_free(log);
    hk_topic_release(topic);
}

/* With anything that grows with the number of its records, this test would take minutes. */
HK_TEST(one_id_may_be_used_a_hundred_thousand_times)
{
    hk_topic_t *topic = topic_of("/a");
    hk_log_t *log = log_of(50000 * (size_t)450);
    for (size_t i = 0; i < 100000; i++) {
        append(log, "same", HK_BYTES("x"), topic);
    }
    check_found(log, "same", hk_log_first(log));
    HK_CHECK(hk_log_first(log) > 40000 && hk_log_count(log) > 40000);
    hk_log_free(log);
    hk_topic_release(topic);
}

/* A model: all records that ever were, and a search through those that are retained. */
HK_TEST(random_appends_leave_what_a_simple_model_says)
{
    enum { UPDATES = 4000 };
    static struct {
        size_t bytes;
        int id; /* -1: the hub's */
    } model[UPDATES + 1];
    static const char *ids[] = {"a", "b", "c", "d", "urn:e", "f", "g"};
    hk_topic_t *topic = topic_of("/a");
    hk_log_t *log = log_of(60000);
    size_t bytes = 0, first = 1;
    char data[3000];
    memset(data, 'x', sizeof(data));
    for (size_t head = 1; head <= UPDATES; head++) {
        model[head].id = (int)hk_test_below(9) - 1;
        model[head].id = model[head].id == 7 ? -1 : model[head].id;
        const char *id = model[head].id < 0 ? "" : ids[model[head].id];
        hk_bytes_t update_data = hk_bytes(data, hk_test_below(hk_test_below(8) == 0 ? sizeof(data) : 30));
        size_t id_length = model[head].id < 0 ? 12 : strlen(id);
        model[head].bytes = 2 + 2 * id_length + update_data.length + 13 + HK_RECORD_OVERHEAD + HK_PLACE_OVERHEAD +
                            (model[head].id < 0 ? 0 : HK_CHOSEN_OVERHEAD);
        hk_record_t *record = append(log, id, update_data, topic);
        HK_CHECK_EQUAL_UINT(model[head].bytes, record->bytes);
        for (bytes += model[head].bytes; bytes > 60000; first++) {
            bytes -= model[first].bytes;
        }
        HK_CHECK_EQUAL_UINT(head, hk_log_head(log));
        HK_CHECK_EQUAL_UINT(first, hk_log_first(log));
        HK_CHECK_EQUAL_UINT(bytes, hk_log_bytes(log));
        size_t asked = hk_test_below(head + 2);
        HK_CHECK((hk_log_at(log, asked) != NULL) == (asked >= first && asked <= head));
        for (int i = 0; i < 7; i++) {
            size_t found = first;
            while (found <= head && model[found].id != i) {
                found++;
            }
            if (found <= head) {
                check_found(log, ids[i], found);
            } else {
                check_not_found(log, hk_test_text(ids[i]));
            }
        }
    }
    hk_log_free(log);
    hk_topic_release(topic);
}

HK_TEST(without_memory_nothing_is_appended)
{
    hk_topic_t *topic = topic_of("/a");
    HK_EACH_FAILING_ALLOCATION {
        hk_log_t *log = NULL;
        hk_status_t status = hk_log_new(hk_test_alloc(), &options, &log);
        HK_CHECK_STATUS(log == NULL ? HK_NO_MEMORY : HK_OK, status);
        for (size_t i = 0; log != NULL && i < 70; i++) {
            char id[16];
            snprintf(id, sizeof(id), "%zu", i / 3 * (i % 2));
            hk_position_t head = hk_log_head(log);
            size_t bytes = hk_log_bytes(log);
            hk_record_t *record = NULL;
            status = try_append(log, i % 2 ? id : "", HK_BYTES("x"), topic, &record);
            HK_CHECK_EQUAL_UINT(status == HK_OK ? head + 1 : head, hk_log_head(log));
            HK_CHECK((status == HK_OK) == (record != NULL) && (status == HK_OK || hk_test_failed()));
            HK_CHECK(status == HK_OK || hk_log_bytes(log) == bytes);
            hk_position_t position;
            if (status != HK_OK && i % 2) {
                hk_log_find(log, hk_test_text(id), &position);
            }
        }
        hk_log_free(log);
        HK_CHECK_EQUAL_UINT(1, topic->references);
    }
    hk_topic_release(topic);
}
