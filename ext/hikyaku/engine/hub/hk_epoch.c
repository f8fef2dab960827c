#include "hk_epoch.h"

hk_status_t hk_epoch_new(const hk_alloc_t *alloc, uint64_t number, hk_position_t after, hk_epoch_t **epoch)
{
    hk_epoch_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    hk_status_t status = hk_gzip_new(alloc, HK_GZIP_EPOCHS, &made->gzip);
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

static void forget_all(hk_epoch_t *epoch)
{
    epoch->count = 0;
    hk_buf_clear(&epoch->bytes);
    if (epoch->bytes.capacity > HK_EPOCH_BYTES) {
        hk_buf_release(&epoch->bytes);
    }
}

void hk_epoch_begin(hk_epoch_t *epoch, uint64_t number, hk_position_t after)
{
    hk_gzip_begin(epoch->gzip);
    epoch->number = number;
    epoch->after = epoch->at = after;
    epoch->events = 0;
    epoch->sum = (hk_gzip_sum_t){0, 0};
    epoch->alone = epoch->alone_now = epoch->in_step = 0;
    forget_all(epoch);
}

bool hk_epoch_over(hk_epoch_t *epoch)
{
    bool waited = epoch->alone_now > 0;
    uint64_t in_step = epoch->in_step;
    epoch->alone += epoch->alone_now;
    epoch->alone_now = epoch->in_step = 0;
    if (epoch->events == 0 || !waited) {
        return epoch->sum.length >= HK_EPOCH_MOST;
    }
    return in_step == 0 || epoch->events >= HK_EPOCH_EVENTS || epoch->sum.length >= HK_EPOCH_BYTES ||
           (epoch->events >= HK_EPOCH_FEWEST && epoch->alone >= HK_EPOCH_WORTH * in_step);
}

void hk_epoch_forget(hk_epoch_t *epoch)
{
    uint32_t gone = epoch->count / 2;
    if (epoch->bytes.capacity > HK_EPOCH_BYTES || gone == 0) {
        epoch->after = epoch->at;
        forget_all(epoch);
        return;
    }
    size_t bytes = epoch->entries[gone - 1].end;
    epoch->after = epoch->entries[gone - 1].position;
    epoch->count -= gone;
    for (uint32_t i = 0; i < epoch->count; i++) {
        epoch->entries[i] = epoch->entries[gone + i];
        epoch->entries[i].end -= bytes;
    }
    hk_buf_consume(&epoch->bytes, bytes);
}

hk_status_t hk_epoch_add(hk_epoch_t *epoch, hk_position_t position, hk_bytes_t event, hk_gzip_sum_t sum,
                         uint32_t behind)
{
    hk_status_t status = hk_gzip_event(epoch->gzip, event, &epoch->bytes);
    if (status != HK_OK) {
        return status;
    }
    epoch->sum = hk_gzip_join(epoch->sum, sum, behind);
    epoch->entries[epoch->count++] = (hk_epoch_entry_t){position, epoch->bytes.length, epoch->sum};
    epoch->events++;
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
    return cursor >= epoch->after && (number == epoch->number || (got == 0 && epoch->events == epoch->count));
}

hk_bytes_t hk_epoch_from(const hk_epoch_t *epoch, uint32_t place)
{
    size_t begin = place > 0 ? epoch->entries[place - 1].end : 0;
    hk_bytes_t bytes = hk_buf_bytes(&epoch->bytes);
    return hk_bytes(bytes.at + begin, bytes.length - begin);
}
