/* The journals of test/vectors/journal, which both languages read. */
#include "hk_journal_fixture.h"

#include <dirent.h>

static int nibble(char digit)
{
    return digit <= '9' ? digit - '0' : digit - 'a' + 10;
}

static uint64_t number_of(hk_bytes_t text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.length; i++) {
        number = 10 * number + (uint64_t)(text.at[i] - '0');
    }
    return number;
}

/* Bytes that are written as "-", "4c*1000" or "4b4c". How many. */
static size_t bytes_of(hk_bytes_t text, char *bytes, size_t room)
{
    const char *star = text.length > 0 ? memchr(text.at, '*', text.length) : NULL;
    if (hk_bytes_equal(text, HK_BYTES("-"))) {
        return 0;
    }
    size_t count = text.length / 2;
    if (star != NULL) {
        count = number_of(hk_bytes(star + 1, text.length - (size_t)(star + 1 - text.at)));
    }
    HK_CHECK(count <= room);
    for (size_t i = 0; i < count; i++) {
        const char *digits = text.at + (star != NULL ? 0 : 2 * i);
        bytes[i] = (char)(nibble(digits[0]) << 4 | nibble(digits[1]));
    }
    return count;
}

/* What a vector says. */
typedef struct vector {
    hk_disk_t *disk;
    bool opens;
    uint64_t segment, position; /* opens */
    char name[HK_DISK_NAME];    /* corrupt */
    uint64_t offset;
    hk_replayed_t records;
} vector_t;

static void read_record(hk_bytes_t line, hk_replayed_t *records)
{
    static char body[1 << 20];
    size_t at = records->count++;
    records->positions[at] = number_of(hk_test_field(&line, ' '));
    (void)hk_test_field(&line, ' ');
    (void)hk_test_field(&line, ' ');
    records->segments[at] = number_of(hk_test_field(&line, ' '));
    records->offsets[at] = (uint32_t)number_of(hk_test_field(&line, ' '));
    records->lengths[at] = (uint32_t)bytes_of(line, body, sizeof(body));
    records->sums[at] = sum_of(hk_bytes(body, records->lengths[at]));
}

static void read_vector(hk_bytes_t text, vector_t *vector)
{
    memset(vector, 0, sizeof(*vector));
    vector->disk = hk_disk_new();
    char file[HK_DISK_NAME] = "";
    for (hk_bytes_t line; hk_test_line(&text, &line);) {
        hk_bytes_t word = hk_test_field(&line, ' ');
        if (hk_bytes_equal(word, HK_BYTES("file"))) {
            hk_bytes_t name = hk_test_field(&line, ' ');
            snprintf(file, sizeof(file), "%.*s", (int)name.length, name.at);
            char *zeros = calloc(1, number_of(line) + 1);
            hk_disk_put(vector->disk, file, zeros, number_of(line));
            free(zeros);
        } else if (hk_bytes_equal(word, HK_BYTES("at"))) {
            uint64_t offset = number_of(hk_test_field(&line, ' '));
            hk_disk_file_t *content = hk_disk_file(vector->disk, file);
            HK_CHECK(offset <= content->size);
            bytes_of(line, content->bytes + offset, content->size - offset);
        } else if (hk_bytes_equal(word, HK_BYTES("opens"))) {
            vector->opens = true;
            vector->segment = number_of(hk_test_field(&line, ' '));
            vector->position = number_of(line);
        } else if (hk_bytes_equal(word, HK_BYTES("corrupt"))) {
            hk_bytes_t name = hk_test_field(&line, ' ');
            snprintf(vector->name, sizeof(vector->name), "%.*s", (int)name.length, name.at);
            vector->offset = number_of(line);
        } else if (hk_bytes_equal(word, HK_BYTES("record"))) {
            read_record(line, &vector->records);
        } else {
            HK_CHECK(hk_bytes_equal(word, HK_BYTES("#")));
        }
    }
    hk_disk_settle(vector->disk);
}

static void check_records(const hk_replayed_t *expected, const hk_replayed_t *actual)
{
    HK_CHECK_EQUAL_UINT(expected->count, actual->count);
    for (uint64_t i = 0; i < expected->count; i++) {
        HK_CHECK_EQUAL_UINT(expected->positions[i], actual->positions[i]);
        HK_CHECK_EQUAL_UINT(expected->segments[i], actual->segments[i]);
        HK_CHECK_EQUAL_UINT(expected->offsets[i], actual->offsets[i]);
        HK_CHECK_EQUAL_UINT(expected->lengths[i], actual->lengths[i]);
        HK_CHECK_EQUAL_UINT(expected->sums[i], actual->sums[i]);
    }
}

static vector_t vector;
static hk_replayed_t replayed;

static void check_vector(const char *name)
{
    char path[300];
    snprintf(path, sizeof(path), "test/vectors/journal/%s", name);
    hk_test_note("%s", name);
    read_vector(hk_test_file(path), &vector);
    hk_journal_t *journal;
    hk_journal_trouble_t trouble;
    hk_status_t status = open_on(vector.disk, &replayed, &journal, &trouble);
    if (!vector.opens) {
        HK_CHECK_STATUS(HK_INVALID, status);
        HK_CHECK_BYTES(hk_test_text(vector.name), hk_test_text(trouble.segment));
        HK_CHECK_EQUAL_UINT(vector.offset, trouble.offset);
        HK_CHECK(strstr(trouble.text, vector.name) != NULL);
        for (size_t i = 0; i < vector.disk->count; i++) {
            HK_CHECK(vector.disk->changes[i].kind == HK_DISK_UNLINKED);
        }
    } else {
        hk_test_note("%s: %s", name, trouble.text);
        HK_CHECK_OK(status);
        check_records(&vector.records, &replayed);
        HK_CHECK_EQUAL_UINT(vector.segment, hk_journal_current(journal));
        HK_CHECK_EQUAL_UINT(vector.position, hk_journal_appended(journal) + 1);
        HK_CHECK_EQUAL_UINT(vector.position, hk_journal_synced(journal) + 1);
        HK_CHECK_OK(append_seeded(journal, 1, 100, false, NULL, NULL));
        HK_CHECK_OK(hk_journal_close(journal));
        /* And once more, with what was appended. */
        HK_CHECK_OK(open_on(vector.disk, &replayed, &journal, &trouble));
        HK_CHECK_EQUAL_UINT(vector.records.count + 1, replayed.count);
        hk_journal_drop_dead(journal);
    }
    HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(vector.disk));
    hk_disk_free(vector.disk);
}

HK_TEST(every_vector_is_opened_or_refused_as_it_says)
{
    struct dirent **entries;
    int count = scandir(HK_TEST_ROOT "/test/vectors/journal", &entries, NULL, alphasort), vectors = 0;
    HK_CHECK(count > 0);
    for (int i = 0; i < count; i++) {
        const char *end = strstr(entries[i]->d_name, ".txt");
        if (end != NULL && end[4] == 0) {
            check_vector(entries[i]->d_name);
            vectors++;
        }
        free(entries[i]);
    }
    free(entries);
    HK_CHECK(vectors > 40);
}

/* -- Writing the same bytes ------------------------------------------------------------------------------------------ */

static const uint64_t when = 1795000000000;

/* What make.rb takes for random: the identity, then the salt of each segment. */
static void choose_random(hk_disk_t *disk, char random[16 + 8 * 3])
{
    for (int i = 0; i < 16; i++) {
        random[i] = (char)(i + 1);
    }
    for (uint64_t number = 1; number <= 3; number++) {
        uint64_t salt = 0x5a170000 + number;
        for (int i = 0; i < 8; i++) {
            random[8 + 8 * number + (uint64_t)i] = (char)(salt >> 8 * i);
        }
    }
    disk->random_bytes = random;
}

static void append_text(hk_journal_t *journal, size_t index, hk_bytes_t body)
{
    HK_CHECK_OK(hk_journal_append(journal, (uint8_t)(32 + index % 4), (uint8_t)(index % 3), &body, 1, false, NULL));
}

static void write_batch(hk_journal_t *journal, uint64_t offset)
{
    HK_CHECK_OK(hk_journal_write(journal, when + 1000 + offset));
}

HK_TEST(the_bytes_of_a_closed_journal_are_those_of_its_vector)
{
    read_vector(hk_test_file("test/vectors/journal/closed.txt"), &vector);
    char random[16 + 8 * 3];
    hk_disk_t *disk = hk_disk_new();
    choose_random(disk, random);
    hk_journal_options_t options = {
        .path = "folder", .files = &disk->files, .segment_bytes = SEGMENT, .wall = when + 1};
    hk_journal_t *journal;
    HK_CHECK_OK(hk_journal_open(hk_test_alloc(), &options, &journal, NULL));
    append_text(journal, 0, HK_BYTES("first"));
    append_text(journal, 1, HK_BYTES(""));
    write_batch(journal, 64);
    hk_journal_want_sync(journal, 2);
    HK_CHECK_OK(run_jobs(journal));
    for (size_t i = 0; i < 8; i++) {
        append_text(journal, i, hk_bytes("xxxxxxxx", i + 1));
    }
    write_batch(journal, 160);
    append_text(journal, 0, HK_BYTES("\xc3\xa9\0\xff\n"));
    append_text(journal, 1, HK_BYTES("last"));
    write_batch(journal, 456);
    write_batch(journal, 560);
    HK_CHECK_OK(hk_journal_close(journal));
    const char *name = "journal-00000000000000000001.seg";
    const hk_disk_file_t *written = hk_disk_file(disk, name), *expected = hk_disk_file(vector.disk, name);
    HK_CHECK_BYTES(hk_bytes(expected->bytes, 640), hk_bytes(written->bytes, 640));
    HK_CHECK_BYTES(hk_bytes(expected->bytes, expected->size), hk_bytes(written->bytes, written->size));
    hk_disk_free(disk);
    hk_disk_free(vector.disk);
}

HK_TEST(the_bytes_of_a_segment_with_the_largest_body_are_those_of_its_vector)
{
    read_vector(hk_test_file("test/vectors/journal/largest.txt"), &vector);
    char random[16 + 8 * 3];
    static char body[SEGMENT - 168 + 1];
    memset(body, 'L', sizeof(body));
    hk_disk_t *disk = hk_disk_new();
    choose_random(disk, random);
    hk_journal_options_t options = {
        .path = "folder", .files = &disk->files, .segment_bytes = SEGMENT, .wall = when + 1};
    hk_journal_t *journal;
    HK_CHECK_OK(hk_journal_open(hk_test_alloc(), &options, &journal, NULL));
    hk_bytes_t too_large = hk_bytes(body, sizeof(body)), largest = hk_bytes(body, sizeof(body) - 1);
    HK_CHECK_STATUS(HK_INVALID, hk_journal_append(journal, 33, 0, &too_large, 1, false, NULL));
    HK_CHECK_OK(hk_journal_append(journal, 33, 0, &largest, 1, false, NULL));
    write_batch(journal, 64);
    write_batch(journal, 65496);
    append_text(journal, 0, HK_BYTES("next"));
    HK_CHECK_OK(sync_journal(journal));
    HK_CHECK_EQUAL_UINT(2, hk_journal_synced(journal));
    const char *name = "journal-00000000000000000001.seg";
    const hk_disk_file_t *written = hk_disk_file(disk, name), *expected = hk_disk_file(vector.disk, name);
    HK_CHECK_BYTES(hk_bytes(expected->bytes, expected->size), hk_bytes(written->bytes, written->size));
    hk_journal_drop_dead(journal);
    hk_disk_free(disk);
    hk_disk_free(vector.disk);
}
