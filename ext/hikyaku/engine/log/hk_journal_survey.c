/* docs/journal.md, section "Opening: torn or corrupt". */
#include "hk_journal_private.h"

enum { LARGEST_CHECKPOINT = 64 * 1024 * 1024 };

/* -- Lists of numbers ---------------------------------------------------------------------------------------------- */

static hk_status_t grow(const hk_alloc_t *alloc, void **items, size_t *capacity, size_t count, size_t size)
{
    if (count < *capacity) {
        return HK_OK;
    }
    size_t larger = *capacity > 0 ? 2 * *capacity : 16;
    void *grown = hk_alloc_resize(alloc, *items, larger, size);
    if (grown == NULL) {
        return HK_NO_MEMORY;
    }
    *items = grown;
    *capacity = larger;
    return HK_OK;
}

static size_t index_in(const uint64_t *numbers, size_t count, uint64_t number)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (numbers[middle] < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool hk_survey_knows_dropped(const hk_survey_t *survey, uint64_t number)
{
    size_t index = index_in(survey->dropped, survey->dropped_count, number);
    return index < survey->dropped_count && survey->dropped[index] == number;
}

hk_status_t hk_survey_add_dropped(hk_survey_t *survey, uint64_t number)
{
    size_t index = index_in(survey->dropped, survey->dropped_count, number);
    if (index < survey->dropped_count && survey->dropped[index] == number) {
        return HK_OK;
    }
    if (grow(survey->alloc, (void **)&survey->dropped, &survey->dropped_capacity, survey->dropped_count,
             sizeof(*survey->dropped)) != HK_OK) {
        return HK_NO_MEMORY;
    }
    memmove(survey->dropped + index + 1, survey->dropped + index,
            (survey->dropped_count - index) * sizeof(*survey->dropped));
    survey->dropped[index] = number;
    survey->dropped_count++;
    return HK_OK;
}

/* -- What is in the folder ----------------------------------------------------------------------------------------- */

static void add_found(hk_survey_t *survey, uint64_t number)
{
    if (grow(survey->alloc, (void **)&survey->found, &survey->capacity, survey->count, sizeof(*survey->found)) !=
        HK_OK) {
        survey->no_memory = true;
        return;
    }
    size_t index = survey->count++;
    for (; index > 0 && survey->found[index - 1].segment.number > number; index--) {
        survey->found[index] = survey->found[index - 1];
    }
    survey->found[index] = (hk_found_t){.segment = {.number = number, .fd = -1}};
}

static void see_name(void *visitor, const char *name)
{
    hk_survey_t *survey = visitor;
    uint64_t number;
    if (hk_journal_is_segment(name, &number)) {
        add_found(survey, number);
    } else if (hk_journal_is_spare(name, &number)) {
        if (grow(survey->alloc, (void **)&survey->spares, &survey->spare_capacity, survey->spare_count,
                 sizeof(*survey->spares)) != HK_OK) {
            survey->no_memory = true;
            return;
        }
        survey->spares[survey->spare_count++] = number;
    } else if (strcmp(name, HK_JOURNAL_CHECKPOINT) == 0) {
        survey->has_checkpoint = true;
    } else if (strcmp(name, HK_JOURNAL_CHECKPOINT_MADE) == 0) {
        survey->has_temporary_checkpoint = true;
    }
}

void hk_survey_release(hk_survey_t *survey)
{
    hk_scan_release(&survey->scan);
    hk_alloc_free(survey->alloc, survey->found);
    hk_alloc_free(survey->alloc, survey->dropped);
    hk_alloc_free(survey->alloc, survey->spares);
}

static hk_status_t corrupt_file(hk_survey_t *survey, const char *name, uint64_t offset, const char *why)
{
    hk_journal_trouble_t *trouble = survey->scan.trouble;
    trouble->error = 0;
    trouble->offset = offset;
    snprintf(trouble->segment, sizeof(trouble->segment), "%s", name);
    snprintf(
        trouble->text, sizeof(trouble->text),
        "%s is damaged at offset %llu: %s; hikyaku log check says more, and hikyaku log salvage keeps what is whole",
        name, (unsigned long long)offset, why);
    return HK_INVALID;
}

static hk_status_t corrupt(hk_survey_t *survey, uint64_t number, uint64_t offset, const char *why)
{
    char name[HK_JOURNAL_NAME_BYTES];
    hk_journal_segment_name(number, name);
    return corrupt_file(survey, name, offset, why);
}

static hk_status_t read_checkpoint(hk_survey_t *survey)
{
    hk_scan_t *scan = &survey->scan;
    const char *bytes = NULL;
    hk_status_t status = hk_scan_open(scan, survey->dir, HK_JOURNAL_CHECKPOINT);
    if (status == HK_OK && scan->size >= HK_JOURNAL_CHECKPOINT_BYTES && scan->size <= LARGEST_CHECKPOINT) {
        status = hk_scan_view(scan, 0, scan->size, &bytes);
    }
    if (status == HK_OK) {
        hk_checkpoint_t *checkpoint = &survey->checkpoint;
        if (bytes == NULL || hk_journal_read_checkpoint(bytes, (size_t)scan->size, scan->crc32c, checkpoint) != HK_OK) {
            status = corrupt_file(survey, HK_JOURNAL_CHECKPOINT, 0, "its checksum or its form is wrong");
        } else {
            memcpy(survey->identity, checkpoint->identity, sizeof(survey->identity));
            survey->has_identity = true;
            for (uint32_t i = 0; i < checkpoint->dropped_count && status == HK_OK; i++) {
                uint64_t number = hk_journal_get(checkpoint->dropped + 8 * (size_t)i, 8);
                status = number < checkpoint->newest ? hk_survey_add_dropped(survey, number) : HK_OK;
            }
        }
    }
    hk_scan_close(scan);
    return status;
}

/* Sets has_header, foreign. */
static hk_status_t read_header(hk_survey_t *survey, hk_found_t *found)
{
    const char *bytes;
    char identity[HK_JOURNAL_IDENTITY_BYTES];
    uint64_t number = found->segment.number;
    hk_status_t status = hk_scan_view(&survey->scan, 0, HK_JOURNAL_HEADER_BYTES, &bytes);
    if (status != HK_OK) {
        return status == HK_NOT_FOUND ? HK_OK : status;
    }
    if (hk_journal_read_header(bytes, survey->scan.crc32c, identity, &found->segment) != HK_OK) {
        return HK_OK;
    }
    if (found->segment.number != number) {
        found->segment.number = number;
        found->renamed = true;
        return HK_OK;
    }
    if (!survey->has_identity) {
        memcpy(survey->identity, identity, sizeof(identity));
        survey->has_identity = true;
    }
    found->foreign = memcmp(survey->identity, identity, sizeof(identity)) != 0;
    found->has_header = true;
    return HK_OK;
}

typedef enum hk_reading { WHOLE, BEHIND, BRIDGE } hk_reading_t;

static hk_status_t read_found(hk_survey_t *survey, hk_found_t *found, hk_reading_t reading)
{
    char name[HK_JOURNAL_NAME_BYTES];
    hk_journal_segment_name(found->segment.number, name);
    hk_status_t status = hk_scan_open(&survey->scan, survey->dir, name);
    if (status == HK_OK && reading == BEHIND) {
        status = hk_scan_behind(&survey->scan, found);
    } else if (status == HK_OK && reading == BRIDGE) {
        status = hk_scan_bridge(&survey->scan, found, survey, &survey->repair);
    } else if (status == HK_OK) {
        found->size = survey->scan.size;
        status = read_header(survey, found);
        if (status == HK_OK && found->has_header && !found->foreign) {
            status = hk_scan_segment(&survey->scan, found, survey, NULL, NULL);
        }
    }
    hk_scan_close(&survey->scan);
    survey->synced = found->synced > survey->synced ? found->synced : survey->synced;
    return status;
}

static hk_status_t read_folder(hk_survey_t *survey)
{
    const hk_files_t *files = survey->scan.files;
    if (files->list(files->context, survey->dir, see_name, survey) != 0) {
        return hk_journal_say(survey->scan.trouble, "readdir", "", files->error(files->context));
    }
    hk_status_t status = survey->no_memory ? HK_NO_MEMORY : HK_OK;
    if (status == HK_OK && survey->has_checkpoint) {
        status = read_checkpoint(survey);
        survey->synced = survey->checkpoint.synced;
    }
    for (size_t i = 0; i < survey->count && status == HK_OK; i++) {
        hk_found_t *found = &survey->found[i];
        found->unneeded = found->segment.number < survey->checkpoint.first;
        status = found->unneeded ? HK_OK : read_found(survey, found, WHOLE);
    }
    return status;
}

/* -- What it means ------------------------------------------------------------------------------------------------- */

/* The newest segment is as if it had not been begun when nothing of it was synced, the one before it has no end, and it
 * has no header, or nothing behind one that does not continue what there is before. */
static bool is_unbegun(const hk_survey_t *survey, const hk_found_t *newest, const hk_found_t *before)
{
    if (before->unneeded || !before->has_header || before->foreign || before->ended ||
        before->segment.number + 1 != newest->segment.number || newest->segment.number <= survey->checkpoint.newest ||
        survey->synced > before->segment.last) {
        return false;
    }
    return (!newest->has_header && !newest->renamed) ||
           (newest->has_header && !newest->foreign && newest->segment.end == HK_JOURNAL_HEADER_BYTES &&
            newest->segment.first > before->segment.last + 1);
}

/* Its end: what is said behind it, and, where nothing says that it was synced, what is whole behind it. */
static hk_status_t read_end(hk_survey_t *survey, hk_found_t *found)
{
    hk_status_t status = read_found(survey, found, BEHIND);
    if (status == HK_OK && survey->synced <= found->segment.last) {
        status = read_found(survey, found, BRIDGE);
    }
    return status;
}

static hk_status_t judge_newest(hk_survey_t *survey)
{
    hk_found_t *newest = &survey->found[survey->count - 1];
    hk_status_t status = HK_OK;
    if (newest->has_header && !newest->foreign && !newest->ended) {
        status = read_end(survey, newest);
    }
    if (status == HK_OK && survey->count > 1 && is_unbegun(survey, newest, newest - 1)) {
        newest->unbegun = true;
        status = read_end(survey, newest - 1);
    }
    return status;
}

/* All numbers from `from` to that before `to` must be known to be dropped. */
static hk_status_t judge_gap(hk_survey_t *survey, uint64_t from, uint64_t to)
{
    for (; from < to; from++) {
        if (!hk_survey_knows_dropped(survey, from)) {
            return corrupt(survey, from, 0, "it is missing, and nothing says that it was dropped");
        }
    }
    return HK_OK;
}

static hk_status_t judge_header(hk_survey_t *survey, const hk_found_t *found)
{
    const hk_segment_t *segment = &found->segment;
    if (found->renamed) {
        return corrupt(survey, segment->number, 24, "its header says another number");
    }
    if (!found->has_header) {
        return corrupt(survey, segment->number, 0, "its header does not verify");
    }
    if (found->foreign) {
        return corrupt(survey, segment->number, 8, "it is of another journal");
    }
    if (found->followed) {
        return corrupt(survey, segment->number, segment->end, "a record stands behind the one that closed the journal");
    }
    return HK_OK;
}

/* Looked at when the records are in order: where one is missing says more. */
static hk_status_t judge_size(hk_survey_t *survey, const hk_found_t *found)
{
    const hk_segment_t *segment = &found->segment;
    if (found->size == segment->bytes) {
        return HK_OK;
    }
    uint64_t offset = found->size < segment->bytes ? found->size : segment->bytes;
    return corrupt(survey, segment->number, offset, "the file has another size than its header says");
}

/* before: the needed segment before it. between: the one right behind that, maybe dropped. */
static hk_status_t judge_order(hk_survey_t *survey, const hk_found_t *before, const hk_found_t *between,
                               const hk_found_t *found)
{
    const hk_segment_t *first = &before->segment, *second = &found->segment;
    bool is_next = between->segment.number == first->number + 1 && between->has_header && !between->foreign;
    bool continues = is_next && between->segment.first == first->last + 1;
    if (!before->ended && !continues) {
        return corrupt(survey, first->number, first->end, "the record there does not verify, and others follow");
    }
    if ((is_next && !continues && !between->dropped) || second->first <= first->last) {
        return corrupt(survey, second->number, 32, "its first position does not continue the segment before it");
    }
    return judge_size(survey, before);
}

static hk_status_t judge_end(hk_survey_t *survey, const hk_found_t *newest)
{
    char why[160];
    if (newest->segment.last >= survey->synced) {
        return newest->unneeded ? HK_OK : judge_size(survey, newest);
    }
    snprintf(why, sizeof(why), "the record there does not verify, though all up to position %llu were on the disk",
             (unsigned long long)survey->synced);
    return corrupt(survey, newest->segment.number, newest->segment.end, why);
}

static hk_status_t judge(hk_survey_t *survey)
{
    hk_status_t status = judge_newest(survey);
    const hk_found_t *before = NULL, *newest = &survey->found[survey->count - 1];
    newest -= newest->unbegun ? 1 : 0;
    uint64_t due = survey->has_checkpoint ? survey->checkpoint.first : survey->found[0].segment.number;
    for (hk_found_t *found = survey->found; status == HK_OK && found <= newest; found++) {
        if (found->unneeded) {
            continue;
        }
        status = judge_gap(survey, due, found->segment.number);
        due = found->segment.number + 1;
        found->dropped = found != newest && hk_survey_knows_dropped(survey, found->segment.number);
        if (found->dropped || status != HK_OK) {
            continue;
        }
        status = judge_header(survey, found);
        if (status == HK_OK && before != NULL) {
            status = judge_order(survey, before, before + 1, found);
        }
        before = found;
    }
    if (status == HK_OK && survey->checkpoint.newest >= due) {
        status = judge_gap(survey, due, survey->checkpoint.newest + 1);
    }
    survey->newest = newest->segment.number;
    survey->next = newest->segment.last + 1;
    survey->repair.segment = newest->segment.number;
    survey->repair.in_order = newest->closed;
    survey->repair.open_end =
        newest->segment.bytes > newest->segment.end ? newest->segment.bytes - newest->segment.end : 0;
    return status == HK_OK ? judge_end(survey, newest) : status;
}

hk_status_t hk_survey_take(hk_survey_t *survey)
{
    survey->next = 1;
    survey->repair.in_order = true;
    hk_status_t status = read_folder(survey);
    if (status == HK_OK && survey->count > 0) {
        status = judge(survey);
    } else if (status == HK_OK && survey->has_checkpoint) {
        status = corrupt(survey, survey->checkpoint.newest, 0, "it is missing, and the checkpoint names it");
    }
    return status;
}
