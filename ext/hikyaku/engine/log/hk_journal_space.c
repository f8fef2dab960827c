#include "hk_journal_private.h"

/* -- The segments -------------------------------------------------------------------------------------------------- */

/* The index of the first segment with this number or a higher one. */
static size_t index_of(const hk_journal_t *journal, uint64_t number)
{
    size_t low = 0, high = journal->segment_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (journal->segments[middle]->number < number) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

hk_segment_t *hk_journal_find(const hk_journal_t *journal, uint64_t number)
{
    size_t index = index_of(journal, number);
    return index < journal->segment_count && journal->segments[index]->number == number ? journal->segments[index]
                                                                                        : NULL;
}

hk_status_t hk_journal_reserve_segment(hk_journal_t *journal)
{
    if (journal->segment_count < journal->segment_capacity) {
        return HK_OK;
    }
    size_t capacity = journal->segment_capacity > 0 ? 2 * journal->segment_capacity : 8;
    hk_segment_t **segments = hk_alloc_resize(journal->alloc, journal->segments, capacity, sizeof(*journal->segments));
    if (segments == NULL) {
        return HK_NO_MEMORY;
    }
    journal->segments = segments;
    journal->segment_capacity = capacity;
    return HK_OK;
}

void hk_journal_remove_segment(hk_journal_t *journal, hk_segment_t *segment)
{
    size_t index = index_of(journal, segment->number);
    const hk_files_t *files = journal->files;
    if (journal->reader_of == segment->number) {
        (void)files->close(files->context, journal->reader);
        journal->reader_of = 0;
    }
    if (segment->fd >= 0) {
        (void)files->close(files->context, segment->fd);
    }
    if (journal->writing == segment) {
        journal->writing = NULL;
    }
    journal->segment_count--;
    memmove(journal->segments + index, journal->segments + index + 1,
            (journal->segment_count - index) * sizeof(*journal->segments));
    hk_alloc_free(journal->alloc, segment);
}

uint64_t hk_journal_oldest(const hk_journal_t *journal)
{
    size_t index = 0;
    while (journal->segments[index]->doomed) {
        index++;
    }
    return journal->segments[index]->number;
}

uint64_t hk_journal_current(const hk_journal_t *journal)
{
    return hk_journal_last_segment(journal)->number;
}

uint64_t hk_journal_bytes(const hk_journal_t *journal)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < journal->segment_count; i++) {
        bytes += journal->segments[i]->bytes;
    }
    return bytes;
}

/* -- Dropping ------------------------------------------------------------------------------------------------------ */

hk_status_t hk_journal_reserve_gone(hk_journal_t *journal, size_t count)
{
    if (journal->gone_count + count <= journal->gone_capacity) {
        return HK_OK;
    }
    size_t capacity = 2 * (journal->gone_count + count);
    uint64_t *gone = hk_alloc_resize(journal->alloc, journal->gone, capacity, sizeof(*gone));
    if (gone == NULL) {
        return HK_NO_MEMORY;
    }
    journal->gone = gone;
    journal->gone_capacity = capacity;
    return HK_OK;
}

hk_status_t hk_journal_drop(hk_journal_t *journal, uint64_t number)
{
    hk_segment_t *segment = hk_journal_find(journal, number);
    if (segment == NULL || segment->doomed || segment == hk_journal_last_segment(journal)) {
        return HK_NOT_FOUND;
    }
    if (hk_journal_reserve_gone(journal, journal->doomed_count + journal->dropped_count + 1) != HK_OK) {
        return HK_NO_MEMORY;
    }
    segment->doomed = true;
    journal->doomed_count++;
    return HK_OK;
}

static bool is_due(const hk_journal_t *journal, size_t index);

/* The header of the segment behind a torn one says that nothing is missing between them: it stays as long as that,
 * which may be a witness itself. */
static bool is_witness(const hk_journal_t *journal, size_t index)
{
    const hk_segment_t *before = index > 0 ? journal->segments[index - 1] : NULL;
    return before != NULL && before->torn && !before->dropped && !is_due(journal, index - 1) &&
           before->number + 1 == journal->segments[index]->number;
}

static bool is_due(const hk_journal_t *journal, size_t index)
{
    const hk_segment_t *segment = journal->segments[index];
    return segment->doomed && !segment->dropped && !is_witness(journal, index);
}

static size_t list_doomed(const hk_journal_t *journal, char *numbers)
{
    size_t count = 0;
    for (size_t i = 0; i < journal->segment_count; i++) {
        if (is_due(journal, i)) {
            hk_journal_put(numbers + 8 * count++, journal->segments[i]->number, 8);
        }
    }
    return count;
}

hk_status_t hk_journal_drop_doomed(hk_journal_t *journal)
{
    if (journal->doomed_count == 0) {
        return HK_OK;
    }
    /* Without memory or room it is done another time. */
    char *numbers = hk_alloc_new(journal->alloc, 8 * journal->doomed_count);
    if (numbers == NULL) {
        return HK_OK;
    }
    size_t count = list_doomed(journal, numbers);
    hk_status_t status = count > 0 ? hk_journal_lay_dropped(journal, numbers, &count) : HK_NOT_FOUND;
    hk_alloc_free(journal->alloc, numbers);
    if (status != HK_OK) {
        return status == HK_SYSTEM ? status : HK_OK;
    }
    journal->wanted_within = journal->laid_within;
    for (size_t i = 0; i < journal->segment_count && count > 0; i++) {
        if (is_due(journal, i)) {
            journal->segments[i]->dropped = true;
            journal->segments[i]->dropped_within = journal->laid_within;
            journal->doomed_count--;
            journal->dropped_count++;
            count--;
        }
    }
    return HK_OK;
}

size_t hk_journal_list_dropped(const hk_journal_t *journal, char *numbers, size_t capacity, uint64_t first,
                               size_t skipped, bool on_disk)
{
    size_t count = 0;
    for (size_t i = 0; i < journal->segment_count && count < capacity; i++) {
        const hk_segment_t *segment = journal->segments[i];
        if (segment->number >= first && (on_disk ? hk_journal_may_go(journal, segment) : segment->dropped)) {
            hk_journal_put(numbers + 8 * count++, segment->number, 8);
        }
    }
    for (size_t i = skipped; i < journal->gone_count && count < capacity; i++) {
        if (journal->gone[i] >= first) {
            hk_journal_put(numbers + 8 * count++, journal->gone[i], 8);
        }
    }
    return count;
}
