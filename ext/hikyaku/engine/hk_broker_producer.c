#include "hk_broker_producer_private.h"

enum { MAP_BITS = HK_FRAME_SEQUENCES, MAP_WORDS = MAP_BITS / 64 };

hk_status_t hk_producer_get(hk_broker_t *broker, hk_bytes_t identity, hk_producer_t **producer)
{
    hk_map_node_t *node = hk_map_find(&broker->producers, identity);
    if (node != NULL) {
        *producer = HK_OWNER(node, hk_producer_t, node);
        return HK_OK;
    }
    if (broker->producers.count >= broker->options.max_queues && !broker->replaying) {
        return HK_TOO_MANY;
    }
    hk_producer_t *made = hk_alloc_zeroed(broker->alloc, 1, sizeof(*made) + identity.length);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    memcpy(made->identity, identity.at, identity.length);
    made->length = (uint16_t)identity.length;
    made->number = ++broker->last_producer_number;
    if (hk_map_add(&broker->producers, &made->node, hk_bytes(made->identity, made->length)) != HK_OK) {
        hk_alloc_free(broker->alloc, made);
        return HK_NO_MEMORY;
    }
    hk_list_append(&broker->all_producers, &made->link);
    hk_producer_touch(broker, made);
    *producer = made;
    return HK_OK;
}

void hk_producer_touch(hk_broker_t *broker, hk_producer_t *producer)
{
    hk_list_remove(&producer->idle);
    if (producer->session == NULL) {
        producer->idle_since = broker->now;
        hk_list_append(&broker->idle_producers, &producer->idle);
    }
}

void hk_producer_free(hk_broker_t *broker, hk_producer_t *producer)
{
    hk_map_remove(&broker->producers, &producer->node);
    hk_list_remove(&producer->link);
    hk_list_remove(&producer->idle);
    hk_alloc_free(broker->alloc, producer->map);
    hk_alloc_free(broker->alloc, producer->passing);
    hk_alloc_free(broker->alloc, producer);
}

/* -- Numbers ------------------------------------------------------------------------------------------------------- */

static bool has_bit(const uint64_t *map, uint64_t number)
{
    return (map[number / 64 % MAP_WORDS] >> (number % 64) & 1) != 0;
}

static void set_bit(uint64_t *map, uint64_t number)
{
    map[number / 64 % MAP_WORDS] |= UINT64_C(1) << (number % 64);
}

static void clear_bit(uint64_t *map, uint64_t number)
{
    map[number / 64 % MAP_WORDS] &= ~(UINT64_C(1) << (number % 64));
}

static bool holds(const hk_producer_t *producer, uint64_t number)
{
    return producer->above > 0 && has_bit(producer->map, number);
}

hk_number_t hk_producer_look(const hk_producer_t *producer, uint64_t number)
{
    if (number <= producer->low || (number - producer->low <= MAP_BITS && holds(producer, number))) {
        return HK_NUMBER_TAKEN;
    }
    return number - producer->low > MAP_BITS ? HK_NUMBER_TOO_FAR : HK_NUMBER_NEW;
}

bool hk_producer_passes(const hk_producer_t *producer, uint64_t number)
{
    /* Of numbers that have fallen out of the ring nothing is known any more. */
    return producer->passing != NULL && (producer->newest - number >= MAP_BITS || has_bit(producer->passing, number));
}

hk_status_t hk_producer_reserve(hk_broker_t *broker, hk_producer_t *producer, uint64_t number, bool passing)
{
    if (passing && producer->passing == NULL) {
        producer->passing = hk_alloc_zeroed(broker->alloc, MAP_WORDS, sizeof(*producer->passing));
        if (producer->passing == NULL) {
            return HK_NO_MEMORY;
        }
    }
    if (producer->map != NULL || number == producer->low + 1) {
        return HK_OK;
    }
    producer->map = hk_alloc_zeroed(broker->alloc, MAP_WORDS, sizeof(*producer->map));
    return producer->map != NULL ? HK_OK : HK_NO_MEMORY;
}

/* Bits of numbers that are too old to be used again stand for newer ones now. */
static void note_passing(hk_producer_t *producer, uint64_t number, bool passing)
{
    if (producer->passing != NULL && number > producer->newest) {
        if (number - producer->newest >= MAP_BITS) {
            memset(producer->passing, 0, MAP_WORDS * sizeof(*producer->passing));
        } else {
            for (uint64_t between = producer->newest + 1; between <= number; between++) {
                clear_bit(producer->passing, between);
            }
        }
    }
    producer->newest = number > producer->newest ? number : producer->newest;
    if (passing) {
        set_bit(producer->passing, number);
    }
}

void hk_producer_take(hk_producer_t *producer, uint64_t number, bool passing)
{
    note_passing(producer, number, passing);
    if (number != producer->low + 1) {
        set_bit(producer->map, number);
        producer->above++;
        return;
    }
    producer->low = number;
    while (holds(producer, producer->low + 1)) {
        producer->low++;
        clear_bit(producer->map, producer->low);
        producer->above--;
    }
}

hk_status_t hk_producer_recall(hk_broker_t *broker, hk_producer_t *producer, uint64_t number)
{
    if (number <= producer->low) {
        return HK_OK;
    }
    while (number - producer->low > MAP_BITS && producer->above > 0) {
        /* The lowest numbers fall out of the map, one by one. */
        producer->low++;
        if (holds(producer, producer->low)) {
            clear_bit(producer->map, producer->low);
            producer->above--;
        }
    }
    producer->low = number - producer->low > MAP_BITS ? number - MAP_BITS : producer->low;
    if (holds(producer, number)) {
        return HK_OK;
    }
    if (hk_producer_reserve(broker, producer, number, false) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_producer_take(producer, number, false);
    return HK_OK;
}

hk_status_t hk_producer_restore(hk_broker_t *broker, hk_producer_t *producer, uint64_t low, hk_bytes_t map)
{
    producer->low = producer->newest = low;
    producer->above = 0;
    if (producer->map != NULL) {
        memset(producer->map, 0, MAP_WORDS * sizeof(*producer->map));
    }
    hk_status_t status = HK_OK;
    for (size_t i = 0; i < 8 * map.length && status == HK_OK; i++) {
        if ((map.at[i / 8] >> (i % 8) & 1) != 0) {
            status = hk_producer_recall(broker, producer, low + 1 + i);
        }
    }
    return status;
}

uint16_t hk_producer_snapshot(const hk_producer_t *producer, bool all, uint64_t *low, char *map)
{
    bool passing = producer->passing != NULL && !all;
    uint64_t first = producer->newest > MAP_BITS ? producer->newest - MAP_BITS + 1 : 1;
    *low = producer->low;
    for (uint64_t number = first; passing && number <= *low; number++) {
        if (has_bit(producer->passing, number)) {
            *low = number - 1;
        }
    }
    memset(map, 0, MAP_BITS / 8);
    uint16_t bytes = 0;
    bool any = producer->above > 0 || *low < producer->low;
    for (uint64_t number = *low + 1; any && number <= producer->newest; number++) {
        bool taken = number <= producer->low || holds(producer, number);
        if (taken && !(passing && has_bit(producer->passing, number))) {
            uint64_t bit = number - *low - 1;
            map[bit / 8] = (char)(map[bit / 8] | 1 << (bit % 8));
            bytes = (uint16_t)(bit / 8 + 1);
        }
    }
    return bytes;
}
