#include "hk_wheel.h"

hk_status_t hk_wheel_init(hk_wheel_t *wheel, const hk_alloc_t *alloc, int64_t span, int64_t slot)
{
    size_t slot_count = (size_t)(span / slot) + 2;
    hk_list_t *slots = hk_alloc_zeroed(alloc, slot_count, sizeof(*slots));
    if (slots == NULL) {
        return HK_NO_MEMORY;
    }
    for (size_t i = 0; i < slot_count; i++) {
        hk_list_init(&slots[i]);
    }
    *wheel = (hk_wheel_t){.alloc = alloc, .slots = slots, .slot_count = slot_count, .slot = slot};
    hk_list_init(&wheel->due);
    return HK_OK;
}

void hk_wheel_release(hk_wheel_t *wheel)
{
    if (wheel->alloc != NULL) {
        hk_alloc_free(wheel->alloc, wheel->slots);
    }
    *wheel = (hk_wheel_t){0};
}

static int64_t slot_at(const hk_wheel_t *wheel, int64_t at)
{
    return at / wheel->slot - (at % wheel->slot < 0);
}

static hk_list_t *list_of(const hk_wheel_t *wheel, int64_t slot)
{
    int64_t count = (int64_t)wheel->slot_count;
    int64_t place = slot % count;
    return &wheel->slots[place < 0 ? place + count : place];
}

/* So the slots that have not begun are always as many as the span is long, however seldom the wheel is turned. */
static void advance(hk_wheel_t *wheel, int64_t now)
{
    int64_t last = slot_at(wheel, now);
    for (size_t i = 0; wheel->count > 0 && i < wheel->slot_count && wheel->turned <= last; i++) {
        hk_list_move(list_of(wheel, wheel->turned++), &wheel->due);
    }
    if (wheel->count == 0 || wheel->turned <= last) {
        wheel->turned = last + 1;
    }
}

void hk_wheel_file(hk_wheel_t *wheel, hk_list_t *link, int64_t at, int64_t now)
{
    advance(wheel, now);
    int64_t last = wheel->turned + (int64_t)wheel->slot_count - 1;
    int64_t slot = slot_at(wheel, at);
    slot = slot < wheel->turned ? wheel->turned : slot > last ? last : slot;
    hk_list_append(list_of(wheel, slot), link);
    if (wheel->count++ == 0 || slot < wheel->earliest) {
        wheel->earliest = slot;
    }
}

void hk_wheel_remove(hk_wheel_t *wheel, hk_list_t *link)
{
    if (hk_list_holds(link)) {
        hk_list_remove(link);
        wheel->count--;
    }
}

static int64_t first_filed(const hk_wheel_t *wheel)
{
    int64_t slot = wheel->earliest > wheel->turned ? wheel->earliest : wheel->turned;
    while (hk_list_empty(list_of(wheel, slot))) {
        slot++;
    }
    return slot;
}

void hk_wheel_turn(hk_wheel_t *wheel, int64_t now, void (*due)(void *context, hk_list_t *link), void *context)
{
    if (wheel->count == 0) {
        return;
    }
    advance(wheel, now);
    hk_list_t all;
    hk_list_init(&all);
    hk_list_move(&wheel->due, &all);
    wheel->earliest = wheel->turned;
    for (hk_list_t *link; (link = hk_list_shift(&all)) != NULL;) {
        wheel->count--;
        due(context, link);
    }
    if (wheel->count > 0) {
        wheel->earliest = first_filed(wheel);
    }
}

int64_t hk_wheel_next(const hk_wheel_t *wheel)
{
    if (wheel->count == 0) {
        return INT64_MAX;
    }
    return (hk_list_empty(&wheel->due) ? first_filed(wheel) : wheel->earliest) * wheel->slot;
}
