#include "hk_disk.h"
#include "hk_keeper.h"
#include "hk_log.h"
#include "hk_test.h"

#include <stdio.h>

#define MS INT64_C(1000000)

/* A log, and what keeps it, on a disk that forgets what was not synced. */
typedef struct kept_log {
    hk_disk_t *disk;
    hk_keeper_t *keeper;
    hk_log_t *log;
    int64_t now;
    int64_t age;
    bool synced;
    size_t capacity;
    uint32_t segment_bytes;
    bool keyed;
    int gaps;
    bool has_given; /* what the process before says that it has given */
    hk_position_t given;
} kept_log_t;

static hk_topic_t *topic_of(hk_bytes_t value)
{
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topic_new(hk_test_alloc(), value, NULL, false, &topic));
    return topic;
}

static hk_status_t keep(void *context, hk_position_t position, const hk_log_update_t *update)
{
    kept_log_t *kept = context;
    return hk_keeper_append(kept->keeper, position, update, kept->now);
}

static void begin_with(kept_log_t *kept, const uint8_t *key, hk_position_t position)
{
    if (!kept->keyed) {
        kept->keyed = true;
        hk_log_rekey(kept->log, key);
        hk_log_go_on_at(kept->log, position);
    }
}

static hk_status_t lose(void *context, hk_position_t from, hk_position_t upto, const uint8_t *before,
                        const uint8_t *key)
{
    kept_log_t *kept = context;
    begin_with(kept, before, from);
    HK_CHECK(upto >= from);
    HK_CHECK_EQUAL_UINT(hk_log_head(kept->log) + 1, from);
    char id[HK_EVENT_ID_BYTES];
    hk_status_t status =
        memcmp(before, key, HK_LOG_KEY_BYTES) != 0 ? hk_log_begin_generation(kept->log, upto, key) : HK_OK;
    hk_log_seal(kept->log, upto, id);
    hk_sse_event_t event = {.id = hk_bytes(id, sizeof(id)), .data = HK_BYTES("lost"), .retry_ms = -1};
    kept->gaps++;
    return status == HK_OK ? hk_log_append_gap(kept->log, upto, &event) : status;
}

static hk_status_t restore(void *context, const hk_keeper_t *keeper, const hk_kept_t *update)
{
    kept_log_t *kept = context;
    hk_topic_t *topics[8];
    hk_bytes_t rest = update->topics;
    HK_CHECK(update->topic_count <= 8);
    for (size_t i = 0; i < update->topic_count; i++) {
        topics[i] = topic_of(hk_kept_topic(&rest));
    }
    HK_CHECK_EQUAL_UINT(0, rest.length);
    begin_with(kept, hk_keeper_key(keeper), update->position);
    hk_log_update_t again = {.topics = topics,
                             .topic_count = update->topic_count,
                             .data = update->data,
                             .id = update->id,
                             .type = update->type,
                             .retry_ms = update->retry_ms,
                             .is_private = update->is_private};
    hk_status_t status = hk_log_append(kept->log, &again, NULL);
    for (size_t i = 0; i < update->topic_count; i++) {
        hk_topic_release(topics[i]);
    }
    return status;
}

static hk_status_t try_begin(kept_log_t *kept, hk_journal_trouble_t *trouble)
{
    hk_log_options_t options = {.capacity = kept->capacity, .key = "0123456789abcdef", .secret = {1, 2}};
    hk_keeper_options_t wanted = {.path = "folder",
                                  .files = &kept->disk->files,
                                  .segment_bytes = kept->segment_bytes,
                                  .synced = kept->synced,
                                  .age = kept->age,
                                  .now = kept->now,
                                  .wall = (uint64_t)(1700000000000 + kept->now / MS),
                                  .has_given = kept->has_given,
                                  .given = kept->given,
                                  .restore = restore,
                                  .lose = lose,
                                  .context = kept};
    kept->keyed = false;
    kept->gaps = 0;
    hk_status_t status = hk_log_new(hk_test_alloc(), &options, &kept->log);
    if (status != HK_OK) {
        return status;
    }
    status = hk_keeper_open(hk_test_alloc(), &wanted, &kept->keeper, trouble);
    if (status != HK_OK) {
        hk_log_free(kept->log);
        return status;
    }
    begin_with(kept, hk_keeper_key(kept->keeper), hk_keeper_next(kept->keeper));
    HK_CHECK_EQUAL_UINT(hk_keeper_next(kept->keeper), hk_log_head(kept->log) + 1);
    hk_log_keep(kept->log, keep, kept);
    return HK_OK;
}

static kept_log_t *begin(kept_log_t settings)
{
    static kept_log_t kept;
    kept = settings;
    kept.disk = hk_disk_new();
    kept.now = 1000 * MS;
    kept.capacity = kept.capacity > 0 ? kept.capacity : 1 << 20;
    kept.segment_bytes = kept.segment_bytes > 0 ? kept.segment_bytes : HK_JOURNAL_SEGMENT_LEAST;
    HK_CHECK_OK(try_begin(&kept, NULL));
    return &kept;
}

static void work(kept_log_t *kept)
{
    for (int lane = 0; lane < HK_LANES; lane++) {
        for (hk_job_t *job; (job = hk_keeper_job(kept->keeper, (hk_lane_t)lane)) != NULL;) {
            hk_job_run(job);
            HK_CHECK_OK(hk_keeper_done(kept->keeper, job));
        }
    }
}

/* Another process in the same run of the kernel. */
static void restart(kept_log_t *kept, bool in_order)
{
    kept->has_given = true;
    kept->given = hk_keeper_next(kept->keeper) - 1;
    hk_log_free(kept->log);
    if (in_order) {
        HK_CHECK_OK(hk_keeper_close(kept->keeper));
    } else {
        hk_keeper_drop_dead(kept->keeper);
    }
    HK_CHECK_OK(try_begin(kept, NULL));
}

static void end(kept_log_t *kept)
{
    hk_log_free(kept->log);
    HK_CHECK_OK(hk_keeper_close(kept->keeper));
    hk_disk_free(kept->disk);
}

static hk_status_t publish(kept_log_t *kept, const char *id, hk_bytes_t data)
{
    hk_topic_t *topics[] = {topic_of(HK_BYTES("/a")), topic_of(HK_BYTES("https://example.com/b"))};
    hk_log_update_t update = {.topics = topics,
                              .topic_count = 2,
                              .data = data,
                              .id = hk_test_text(id),
                              .type = HK_BYTES("news"),
                              .retry_ms = 5,
                              .is_private = true};
    hk_status_t status = hk_log_append(kept->log, &update, NULL);
    hk_topic_release(topics[0]);
    hk_topic_release(topics[1]);
    if (status == HK_OK) {
        hk_keeper_retain(kept->keeper, hk_log_first(kept->log));
    }
    return status;
}

HK_TEST(what_was_published_is_there_again_with_the_same_bytes_at_its_position)
{
    for (int in_order = 0; in_order < 2; in_order++) {
        kept_log_t *kept = begin((kept_log_t){.synced = false});
        HK_CHECK_OK(publish(kept, "", HK_BYTES("one\ntwo")));
        HK_CHECK_OK(publish(kept, "urn:own", HK_BYTES("")));
        char before[512];
        hk_bytes_t frame = hk_log_at(kept->log, 1)->frame;
        memcpy(before, frame.at, frame.length);
        size_t length = frame.length;
        restart(kept, in_order != 0);
        HK_CHECK_EQUAL_UINT(2, hk_log_head(kept->log));
        hk_record_t *record = hk_log_at(kept->log, 1);
        HK_CHECK(hk_bytes_equal(hk_bytes(before, length), record->frame));
        HK_CHECK(record->is_private);
        HK_CHECK_EQUAL_UINT(2, record->topic_count);
        HK_CHECK_BYTES("https://example.com/b", hk_topic_value(record->topics[1]));
        hk_position_t position;
        HK_CHECK_OK(hk_log_find(kept->log, HK_BYTES("urn:own"), &position));
        HK_CHECK_EQUAL_UINT(2, position);
        HK_CHECK_OK(hk_log_find(kept->log, record->id, &position));
        HK_CHECK_EQUAL_UINT(1, position);
        HK_CHECK_OK(publish(kept, "", HK_BYTES("three")));
        HK_CHECK_EQUAL_UINT(3, hk_log_head(kept->log));
        end(kept);
    }
}

HK_TEST(an_update_is_safe_when_the_kernel_or_the_disk_has_it)
{
    kept_log_t *kept = begin((kept_log_t){.synced = false});
    HK_CHECK_OK(publish(kept, "", HK_BYTES("one")));
    HK_CHECK(hk_keeper_safe(kept->keeper, hk_keeper_ticket(kept->keeper)));
    HK_CHECK(hk_keeper_prompt(kept->keeper, 100));
    HK_CHECK(!hk_keeper_prompt(kept->keeper, HK_JOURNAL_SEGMENT_LEAST));
    end(kept);
    kept = begin((kept_log_t){.synced = true});
    HK_CHECK_OK(publish(kept, "", HK_BYTES("one")));
    HK_CHECK(!hk_keeper_prompt(kept->keeper, 100));
    HK_CHECK(!hk_keeper_safe(kept->keeper, hk_keeper_ticket(kept->keeper)));
    work(kept);
    HK_CHECK(hk_keeper_safe(kept->keeper, hk_keeper_ticket(kept->keeper)));
    end(kept);
}

HK_TEST(segments_go_when_the_ring_has_passed_them)
{
    kept_log_t *kept = begin((kept_log_t){.capacity = 64 * 1024});
    char data[3000];
    memset(data, 'x', sizeof(data));
    for (int i = 0; i < 400; i++) {
        HK_CHECK_OK(publish(kept, "", hk_bytes(data, sizeof(data))));
        work(kept);
    }
    hk_journal_stats_t stats;
    hk_keeper_read_stats(kept->keeper, &stats);
    HK_CHECK(stats.segments <= 4);
    hk_position_t first = hk_log_first(kept->log);
    restart(kept, true);
    HK_CHECK_EQUAL_UINT(400, hk_log_head(kept->log));
    HK_CHECK_EQUAL_UINT(first, hk_log_first(kept->log));
    end(kept);
}

HK_TEST(positions_go_on_even_when_nothing_is_left_of_what_was_published)
{
    kept_log_t *kept = begin((kept_log_t){.age = 10000});
    for (int i = 0; i < 3; i++) {
        HK_CHECK_OK(publish(kept, "", HK_BYTES("old")));
    }
    HK_CHECK_EQUAL_UINT(0, hk_keeper_young_from(kept->keeper, kept->now));
    kept->now += 60000 * MS;
    HK_CHECK_EQUAL_UINT(4, hk_keeper_young_from(kept->keeper, kept->now));
    HK_CHECK_OK(publish(kept, "", HK_BYTES("young")));
    HK_CHECK_EQUAL_UINT(4, hk_keeper_young_from(kept->keeper, kept->now));
    restart(kept, false);
    HK_CHECK_EQUAL_UINT(4, hk_keeper_young_from(kept->keeper, kept->now));
    HK_CHECK_EQUAL_UINT(5, hk_keeper_next(kept->keeper));
    end(kept);
}

HK_TEST(marks_of_time_are_bounded_and_never_say_too_early_that_something_is_old)
{
    kept_log_t *kept = begin((kept_log_t){.age = 3600 * 1000, .capacity = 1 << 20});
    for (int i = 0; i < 3000; i++) {
        HK_CHECK_OK(publish(kept, "", HK_BYTES("x")));
        work(kept);
        kept->now += 10000 * MS; /* ten seconds: 360 in the age */
        hk_position_t young = hk_keeper_young_from(kept->keeper, kept->now);
        HK_CHECK(young <= (hk_position_t)(i + 1 < 360 ? 1 : i + 2 - 360));
        HK_CHECK(i < 500 || young + 400 >= (hk_position_t)i);
    }
    end(kept);
}

HK_TEST(an_update_that_cannot_be_written_down_is_not_published)
{
    kept_log_t *kept = begin((kept_log_t){.synced = false});
    HK_CHECK_OK(publish(kept, "", HK_BYTES("one")));
    kept->disk->fail_at = 1;
    kept->disk->error = 5;
    HK_CHECK_EQUAL_UINT(HK_SYSTEM, publish(kept, "", HK_BYTES("two")));
    HK_CHECK_EQUAL_UINT(1, hk_log_head(kept->log));
    HK_CHECK_EQUAL_UINT(HK_SYSTEM, publish(kept, "", HK_BYTES("three")));
    HK_CHECK(hk_keeper_trouble(kept->keeper) != NULL);
    hk_log_free(kept->log);
    hk_keeper_drop_dead(kept->keeper);
    hk_disk_free(kept->disk);
}

HK_TEST(an_update_larger_than_a_segment_is_refused)
{
    kept_log_t *kept = begin((kept_log_t){.synced = false});
    static char data[2 * HK_JOURNAL_SEGMENT_LEAST];
    HK_CHECK_EQUAL_UINT(HK_TOO_LARGE, publish(kept, "", hk_bytes(data, sizeof(data))));
    HK_CHECK_EQUAL_UINT(0, hk_log_head(kept->log));
    HK_CHECK_OK(publish(kept, "", HK_BYTES("one")));
    end(kept);
}

/* --- a loss of power ---------------------------------------------------------------------------------------------- */

enum { MOST_GIVEN = 4096 };

/* All ids that were given to anybody, and what they stand for. */
typedef struct given {
    char ids[MOST_GIVEN][HK_EVENT_ID_BYTES];
    uint32_t numbers[MOST_GIVEN];
    size_t count;
} given_t;

static uint32_t number_of(const hk_record_t *record)
{
    uint32_t number = 0;
    for (size_t i = 0; i + 1 < record->frame.length; i++) {
        if (record->frame.at[i] == '=') {
            for (i++; i < record->frame.length && record->frame.at[i] >= '0' && record->frame.at[i] <= '9'; i++) {
                number = 10 * number + (uint32_t)(record->frame.at[i] - '0');
            }
            break;
        }
    }
    return number;
}

static void give(kept_log_t *kept, given_t *given, uint32_t number)
{
    char data[32];
    snprintf(data, sizeof(data), "n=%u.", number);
    HK_CHECK_OK(publish(kept, "", hk_test_text(data)));
    const hk_record_t *record = hk_log_at(kept->log, hk_log_head(kept->log));
    HK_CHECK(given->count < MOST_GIVEN);
    for (size_t i = 0; i < given->count; i++) {
        HK_CHECK(memcmp(given->ids[i], record->id.at, HK_EVENT_ID_BYTES) != 0);
    }
    memcpy(given->ids[given->count], record->id.at, HK_EVENT_ID_BYTES);
    given->numbers[given->count++] = number;
}

/* A reader with any cursor that was given gets all that was given behind it, or is told a gap. */
static void check_readers(const kept_log_t *kept, const given_t *given)
{
    for (size_t i = 0; i < given->count; i++) {
        hk_position_t position;
        if (hk_log_find(kept->log, hk_bytes(given->ids[i], HK_EVENT_ID_BYTES), &position) != HK_OK) {
            continue; /* it is told that the id is unknown */
        }
        size_t next = i + 1;
        for (position++; position <= hk_log_head(kept->log); position++) {
            const hk_record_t *record = hk_log_at(kept->log, position);
            if (record == NULL) {
                continue;
            }
            if (record->topic_count == 0) {
                next = given->count + 1; /* told; what comes is not looked at any more */
                break;
            }
            HK_CHECK(next < given->count);
            HK_CHECK_EQUAL_UINT(given->numbers[next], number_of(record));
            next++;
        }
        HK_CHECK(next >= given->count);
    }
}

HK_TEST(after_any_loss_of_power_no_id_is_given_twice_and_every_reader_has_all_or_is_told)
{
    static given_t given;
    int gaps = 0;
    for (int turn = 0; turn < 60; turn++) {
        uint32_t number = 0;
        memset(&given, 0, sizeof(given));
        kept_log_t *kept = begin((kept_log_t){.synced = turn % 2 == 0, .capacity = 8 << 20});
        for (int life = 0; life < 5; life++) {
            size_t from = kept->disk->count, updates = hk_test_below(40);
            for (size_t i = 0; i < updates; i++) {
                give(kept, &given, ++number);
                if (hk_test_below(4) == 0) {
                    work(kept);
                }
            }
            size_t changes = from + hk_test_below(kept->disk->count - from + 1);
            hk_disk_t *after =
                hk_disk_cut(kept->disk, hk_test_below(2) == 0 ? kept->disk->count : changes, hk_test_random());
            hk_log_free(kept->log);
            hk_keeper_drop_dead(kept->keeper);
            hk_disk_free(kept->disk);
            kept->disk = after;
            kept->has_given = false;
            HK_CHECK_OK(try_begin(kept, NULL));
            gaps += kept->gaps;
            HK_CHECK(kept->gaps > 0);
            check_readers(kept, &given);
        }
        end(kept);
    }
    HK_CHECK(gaps > 60);
}

HK_TEST(what_is_missing_though_the_kernel_ran_on_is_known_to_the_last_one)
{
    kept_log_t *kept = begin((kept_log_t){.synced = false});
    HK_CHECK_OK(publish(kept, "", HK_BYTES("one")));
    restart(kept, false);
    HK_CHECK(!hk_keeper_loss(kept->keeper)->happened);
    HK_CHECK_EQUAL_INT(0, kept->gaps);
    hk_log_free(kept->log);
    hk_keeper_drop_dead(kept->keeper);
    kept->given = 4;
    HK_CHECK_OK(try_begin(kept, NULL));
    const hk_keeper_loss_t *loss = hk_keeper_loss(kept->keeper);
    HK_CHECK(loss->happened && loss->is_known && loss->has_newest);
    HK_CHECK_EQUAL_UINT(3, loss->known);
    HK_CHECK_EQUAL_INT(1, kept->gaps);
    end(kept);
}

HK_TEST(the_newest_position_is_written_where_the_next_process_looks)
{
    kept_log_t *kept = begin((kept_log_t){.synced = false});
    const hk_files_t *files = &kept->disk->files;
    int dir = files->open_folder(files->context, "folder"), fd = files->create(files->context, dir, "watermark");
    hk_keeper_watch(kept->keeper, fd, 16, true);
    HK_CHECK_OK(publish(kept, "", HK_BYTES("one")));
    HK_CHECK_OK(publish(kept, "", HK_BYTES("two")));
    unsigned char bytes[32];
    HK_CHECK_EQUAL_INT(32, files->read_at(files->context, fd, bytes, sizeof(bytes), 0));
    HK_CHECK_EQUAL_UINT(2, bytes[16]);
    uint64_t time = 0;
    for (int at = 7; at >= 0; at--) {
        time = time << 8 | bytes[24 + at];
    }
    HK_CHECK_EQUAL_UINT((uint64_t)files->wall(files->context), time);
    hk_keeper_watch(kept->keeper, fd, 16, false);
    HK_CHECK_OK(publish(kept, "", HK_BYTES("three")));
    HK_CHECK_EQUAL_INT(32, files->read_at(files->context, fd, bytes, sizeof(bytes), 0));
    HK_CHECK_EQUAL_UINT(3, bytes[16]);
    HK_CHECK_EQUAL_UINT(0, bytes[24]);
    files->close(files->context, fd);
    files->close(files->context, dir);
    hk_keeper_watch(kept->keeper, -1, 0, false);
    end(kept);
}
