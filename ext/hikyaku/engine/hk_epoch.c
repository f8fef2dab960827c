#include "hk_epoch.h"

/* Of the bytes that an epoch had, so much is kept for the next. */
enum { KEPT = 64 * 1024 };

hk_status_t hk_epoch_new(const hk_alloc_t *alloc, uint64_t number, hk_position_t after, hk_epoch_t **epoch)
{
    hk_epoch_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    hk_status_t status = hk_gzip_new(alloc, &made->gzip);
    if (status != HK_OK) {
        hk_alloc_free(alloc, made);
        return status;
    }
    made->alloc = alloc;
    hk_buf_init(&made->bytes, alloc);
    hk_epoch_begin(made, number, after);
    *epoch = made;
    return HK_OK;
}

void hk_epoch_free(hk_epoch_t *epoch)
{
    if (epoch != NULL) {
        hk_gzip_free(epoch->gzip);
        hk_buf_release(&epoch->bytes);
        hk_alloc_free(epoch->alloc, epoch);
    }
}

void hk_epoch_begin(hk_epoch_t *epoch, uint64_t number, hk_position_t after)
{
    hk_gzip_begin(epoch->gzip);
    epoch->number = number;
    epoch->after = epoch->at = after;
    epoch->count = 0;
    hk_buf_clear(&epoch->bytes);
    if (epoch->bytes.capacity > KEPT) {
        hk_buf_release(&epoch->bytes);
    }
}

hk_status_t hk_epoch_add(hk_epoch_t *epoch, hk_position_t position, hk_bytes_t event, hk_gzip_sum_t sum,
                         uint32_t behind)
{
    hk_status_t status = hk_gzip_event(epoch->gzip, event, &epoch->bytes);
    if (status != HK_OK) {
        return status;
    }
    hk_gzip_sum_t before = epoch->count > 0 ? epoch->entries[epoch->count - 1].sum : (hk_gzip_sum_t){0, 0};
    epoch->entries[epoch->count++] =
        (hk_epoch_entry_t){position, epoch->bytes.length, hk_gzip_join(before, sum, behind)};
    epoch->at = position;
    return HK_OK;
}

bool hk_epoch_place(const hk_epoch_t *epoch, uint64_t number, hk_position_t cursor, uint32_t *place)
{
    uint32_t got = epoch->count;
    while (got > 0 && epoch->entries[got - 1].position > cursor) {
        got--;
    }
    *place = got;
    return number == epoch->number || (got == 0 && cursor >= epoch->after);
}

hk_bytes_t hk_epoch_from(const hk_epoch_t *epoch, uint32_t place)
{
    size_t begin = place > 0 ? epoch->entries[place - 1].end : 0;
    hk_bytes_t bytes = hk_buf_bytes(&epoch->bytes);
    return hk_bytes(bytes.at + begin, bytes.length - begin);
}
