#include "hk_broker_report_private.h"

static bool before(hk_pick_t *pick, const hk_queue_t *a, const hk_queue_t *b)
{
    hk_bytes_t one = hk_queue_name(a), other = hk_queue_name(b);
    int order = memcmp(one.at, other.at, one.length < other.length ? one.length : other.length);
    pick->compared++;
    return order != 0 ? order < 0 : one.length < other.length;
}

static void rise(hk_pick_t *pick, size_t place, hk_queue_t *queue)
{
    while (place > 0 && before(pick, pick->queues[(place - 1) / 2], queue)) {
        pick->queues[place] = pick->queues[(place - 1) / 2];
        place = (place - 1) / 2;
    }
    pick->queues[place] = queue;
}

static void sink(hk_pick_t *pick, size_t count, hk_queue_t *queue)
{
    size_t place = 0;
    for (size_t child; (child = 2 * place + 1) < count; place = child) {
        if (child + 1 < count && before(pick, pick->queues[child], pick->queues[child + 1])) {
            child++;
        }
        if (!before(pick, queue, pick->queues[child])) {
            break;
        }
        pick->queues[place] = pick->queues[child];
    }
    pick->queues[place] = queue;
}

void hk_pick_add(hk_pick_t *pick, hk_queue_t *queue)
{
    if (pick->count < pick->most) {
        rise(pick, pick->count++, queue);
    } else if (pick->most > 0 && before(pick, queue, pick->queues[0])) {
        sink(pick, pick->count, queue);
    }
}

void hk_pick_sort(hk_pick_t *pick)
{
    for (size_t left = pick->count; left > 1; left--) {
        hk_queue_t *last = pick->queues[0];
        hk_queue_t *moved = pick->queues[left - 1];
        sink(pick, left - 1, moved);
        pick->queues[left - 1] = last;
    }
}
