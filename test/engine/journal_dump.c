/* journal_dump.c: a journal in C, for tests in Ruby (see dump.h).
 *
 * Reads the path of a folder, then commands: a letter, and what it takes.
 *
 *     O                opens it; prints a line "record POSITION TYPE FLAGS SEGMENT OFFSET CRC32C" for each, then
 *                      "opened SEGMENT POSITION", or "corrupt NAME OFFSET"
 *     A TYPE BODY      appends
 *     W                writes
 *     S                writes, syncs, and runs what else is due
 *     D NUMBER         drops a segment
 *     C, X             closes it; leaves it as it is
 */
#include "dump.h"
#include "hk_crc32c.h"
#include "hk_journal.h"

static void expect(hk_status_t status)
{
    if (status != HK_OK) {
        dump_fail(hk_status_name(status));
    }
}

static hk_status_t print_record(void *context, const hk_journal_record_t *record)
{
    (void)context;
    printf("record %llu %u %u %llu %u %u\n", (unsigned long long)record->position, record->type, record->flags,
           (unsigned long long)record->segment, record->offset,
           hk_crc32c_by_table(0, record->body.at, record->body.length));
    return HK_OK;
}

static hk_status_t begin(void *context, hk_journal_t *journal)
{
    (void)context;
    hk_bytes_t body = HK_BYTES("begin");
    return hk_journal_append(journal, 39, 0, &body, 1, false, NULL);
}

static hk_journal_t *open_journal(const char *path)
{
    hk_journal_options_t options = {.path = path,
                                    .files = hk_files_default(),
                                    .segment_bytes = HK_JOURNAL_SEGMENT_LEAST,
                                    .begin = begin,
                                    .replay = print_record};
    hk_journal_trouble_t trouble;
    hk_journal_t *journal;
    hk_status_t status = hk_journal_open(DUMP_ALLOC, &options, &journal, &trouble);
    if (status == HK_INVALID) {
        printf("corrupt %s %llu\n", trouble.segment, (unsigned long long)trouble.offset);
        exit(EXIT_SUCCESS);
    }
    if (status != HK_OK) {
        dump_fail(trouble.text);
    }
    printf("opened %llu %llu\n", (unsigned long long)hk_journal_current(journal),
           (unsigned long long)hk_journal_appended(journal));
    return journal;
}

static void run_jobs(hk_journal_t *journal)
{
    for (hk_job_t *job; (job = hk_journal_job(journal, HK_LANE_SYNC)) != NULL ||
                        (job = hk_journal_job(journal, HK_LANE_SPACE)) != NULL;) {
        hk_job_run(job);
        expect(hk_journal_done(journal, job));
    }
}

static uint64_t number_of(hk_bytes_t text)
{
    uint64_t number = 0;
    for (size_t i = 0; i < text.length; i++) {
        number = 10 * number + (uint64_t)(text.at[i] - '0');
    }
    return number;
}

static void obey(hk_journal_t *journal, char letter)
{
    switch (letter) {
    case 'A': {
        uint8_t type = (uint8_t)number_of(dump_field());
        hk_bytes_t body = dump_field();
        expect(hk_journal_append(journal, type, 0, &body, 1, false, NULL));
        break;
    }
    case 'W':
        expect(hk_journal_write(journal, 1));
        break;
    case 'S':
        expect(hk_journal_write(journal, 1));
        hk_journal_want_sync(journal, hk_journal_appended(journal));
        run_jobs(journal);
        break;
    case 'D':
        (void)hk_journal_drop(journal, number_of(dump_field()));
        break;
    case 'C':
        expect(hk_journal_close(journal));
        break;
    default:
        hk_journal_drop_dead(journal);
    }
}

int main(void)
{
    char path[4096];
    hk_bytes_t text = dump_field(), letter;
    snprintf(path, sizeof(path), "%.*s", (int)text.length, text.at);
    hk_journal_t *journal = NULL;
    while (dump_take(&letter)) {
        if (*letter.at == 'O') {
            journal = open_journal(path);
        } else {
            obey(journal, *letter.at);
        }
    }
    return EXIT_SUCCESS;
}
