/* journal_fuzz.c: a journal is opened over any bytes, or refused with words; what is replayed is dense and rising, and
 * still there when something was appended and it is opened again.
 *
 *     flags, one byte │ bytes of the first segment, two │ its bytes │ those of the second, or of the checkpoint
 *
 * Checksums would stop almost every input at the door. So the flags say what is put right before it is opened: 1 the
 * first header, 2 checksums and inverted lengths of records, 4 the rest is a second segment that continues the first,
 * 8 the rest is the checkpoint, whose checksum is put right, 16 the segment is shorter than its header says.
 */
#include "../engine/hk_disk.h"
#include "hk_crc32c.h"
#include "hk_journal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEGMENT = HK_JOURNAL_SEGMENT_LEAST, HEADER = 64, RECORD = 24 };

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void put(char *at, uint64_t number, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (char)(number >> 8 * i);
    }
}

static uint32_t get_32(const char *at)
{
    uint32_t number = 0;
    for (size_t i = 0; i < 4; i++) {
        number |= (uint32_t)(unsigned char)at[i] << 8 * i;
    }
    return number;
}

static void mend_header(char *segment, uint64_t number, uint64_t first)
{
    static const char magic[8] = {0x48, 0x4b, 0x4a, 0x0d, 0x0a, 0x1a, 0x0a, 0x01};
    memcpy(segment, magic, 8);
    memset(segment + 8, 'I', 16);
    put(segment + 24, number, 8);
    put(segment + 32, first, 8);
    put(segment + 56, SEGMENT, 4);
    put(segment + 60, hk_crc32c_by_table(0, segment, 60), 4);
}

/* Walks records as far as they go, and gives each the checksum that it should have; the position behind them. */
static uint64_t mend_records(char *segment, uint64_t first)
{
    size_t offset = HEADER;
    while (offset + RECORD <= SEGMENT) {
        char *record = segment + offset;
        uint32_t length = get_32(record);
        if (length > SEGMENT - offset - RECORD || record[16] == 0) {
            break;
        }
        put(record + 20, ~(uint64_t)length, 4);
        uint32_t crc = hk_crc32c_by_table(0, segment + 40, 8);
        put(record + 4, hk_crc32c_by_table(crc, record + 8, RECORD - 8 + (size_t)length), 4);
        first += (unsigned char)record[16] >= 16;
        offset += RECORD + ((length + 7) & ~(size_t)7);
    }
    return first;
}

static void put_segment(hk_disk_t *disk, uint64_t number, const char *segment, size_t size)
{
    char name[HK_DISK_NAME];
    snprintf(name, sizeof(name), "journal-%020u.seg", (unsigned)number);
    hk_disk_put(disk, name, segment, size);
}

static hk_disk_t *disk_of(const uint8_t *data, size_t size)
{
    static char segment[SEGMENT], second[SEGMENT];
    uint8_t flags = data[0];
    size_t length = data[1] | (size_t)data[2] << 8, rest = size - 3;
    length = length < rest ? length : rest;
    rest -= length;
    memset(segment, 0, SEGMENT);
    memset(second, 0, SEGMENT);
    memcpy(segment, data + 3, length);
    if (flags & 1) {
        mend_header(segment, 1, 1);
    }
    uint64_t next = flags & 2 ? mend_records(segment, 1) : 1;
    hk_disk_t *disk = hk_disk_new();
    put_segment(disk, 1, segment, flags & 16 ? SEGMENT - (size_t)data[1] : SEGMENT);
    if (flags & 4) {
        memcpy(second, data + 3 + length, rest < SEGMENT ? rest : SEGMENT);
        mend_header(second, 2, next);
        mend_records(second, next);
        put_segment(disk, 2, second, SEGMENT);
    } else if ((flags & 8) && rest < SEGMENT) {
        memcpy(second, data + 3 + length, rest);
        if (rest >= HEADER) {
            static const char magic[8] = {0x48, 0x4b, 0x43, 0x0d, 0x0a, 0x1a, 0x0a, 0x01};
            memcpy(second, magic, 8);
            memset(second + 8, 'I', 16);
            put(second + 56, (rest - HEADER) / 8, 4);
            put(second + rest - 4, hk_crc32c_by_table(0, second, rest - 4), 4);
        }
        hk_disk_put(disk, "checkpoint", second, rest);
    }
    hk_disk_settle(disk);
    return disk;
}

typedef struct seen {
    uint64_t count, last;
    uint32_t sum;
} seen_t;

static hk_status_t see(void *context, const hk_journal_record_t *record)
{
    seen_t *seen = context;
    check(record->type >= 16);
    check(seen->count == 0 || record->position > seen->last);
    seen->count++;
    seen->last = record->position;
    seen->sum = hk_crc32c_by_table(seen->sum, record->body.at, record->body.length);
    return HK_OK;
}

static hk_status_t open_on(hk_disk_t *disk, seen_t *seen, hk_journal_t **journal)
{
    *seen = (seen_t){.count = 0};
    hk_journal_options_t options = {
        .path = "folder", .files = &disk->files, .segment_bytes = SEGMENT, .replay = see, .context = seen};
    hk_journal_trouble_t trouble;
    hk_status_t status = hk_journal_open(hk_alloc_default(), &options, journal, &trouble);
    check(status == HK_OK || (status == HK_INVALID && trouble.text[0] != 0 && trouble.segment[0] != 0));
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3) {
        return 0;
    }
    hk_disk_t *disk = disk_of(data, size);
    hk_journal_t *journal;
    seen_t seen, again;
    if (open_on(disk, &seen, &journal) == HK_OK) {
        hk_bytes_t body = HK_BYTES("one more");
        check(hk_journal_append(journal, 32, 0, &body, 1, false, NULL) == HK_OK);
        uint64_t last = hk_journal_appended(journal);
        check(last > seen.last);
        check(hk_journal_close(journal) == HK_OK);
        check(open_on(disk, &again, &journal) == HK_OK);
        check(again.count == seen.count + 1 && again.last == last);
        check(again.sum == hk_crc32c_by_table(seen.sum, body.at, body.length));
        hk_journal_drop_dead(journal);
    }
    hk_disk_free(disk);
    return 0;
}
