#include "hk_broker_producer_private.h"
#include "hk_broker_record.h"
#include "hk_broker_store_private.h"

enum { MAP_BITS = HK_FRAME_SEQUENCES, MAP_WORDS = MAP_BITS / 64 };

hk_producer_t *hk_producer_find(hk_broker_t *broker, hk_bytes_t identity)
{
    hk_map_node_t *node = hk_map_find(&broker->producers, identity);
    return node == NULL ? NULL : HK_OWNER(node, hk_producer_t, node);
}

static bool is_crowded(const hk_broker_t *broker)
{
    return broker->remembered >= broker->options.max_identities && hk_list_empty(&broker->idle_producers);
}

hk_status_t hk_producer_get(hk_broker_t *broker, hk_bytes_t identity, hk_producer_t **producer)
{
    *producer = hk_producer_find(broker, identity);
    if (*producer != NULL) {
        return HK_OK;
    }
    if (is_crowded(broker) && !broker->replaying) {
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
    broker->remembered -= producer->remembered ? 1 : 0;
    hk_map_remove(&broker->producers, &producer->node);
    hk_list_remove(&producer->link);
    hk_list_remove(&producer->idle);
    hk_alloc_free(broker->alloc, producer->map);
    hk_alloc_free(broker->alloc, producer->passing);
    hk_alloc_free(broker->alloc, producer);
}

/* -- Who is remembered --------------------------------------------------------------------------------------------- */

static bool has_numbered(const hk_producer_t *producer)
{
    return producer->low > 0 || producer->above > 0;
}

void hk_producer_forget(hk_broker_t *broker, hk_producer_t *producer)
{
    if (producer->recorded) {
        /* Without room for this a restart finds it again, as one that is idle. */
        (void)hk_store_gone(broker, HK_RECORD_PRODUCER_GONE, producer->number);
    }
    hk_producer_free(broker, producer);
}

static hk_producer_t *longest_idle(hk_broker_t *broker)
{
    hk_list_t *first = hk_list_first(&broker->idle_producers);
    return first == NULL ? NULL : HK_OWNER(first, hk_producer_t, idle);
}

hk_status_t hk_producer_remember(hk_broker_t *broker, hk_producer_t *producer, bool durable)
{
    if (!producer->remembered) {
        if (is_crowded(broker)) {
            return HK_TOO_MANY;
        }
        if (broker->remembered >= broker->options.max_identities) {
            hk_producer_forget(broker, longest_idle(broker));
            broker->stats.identities_evicted++;
        }
        producer->remembered = true;
        broker->remembered++;
    }
    if (!durable || producer->recorded) {
        return HK_OK;
    }
    hk_status_t status = hk_store_producer(broker, producer, HK_PRODUCER_FIRST);
    producer->recorded = status == HK_OK;
    return status;
}

void hk_producer_leave(hk_session_t *session)
{
    hk_producer_t *producer = session->producer;
    session->producer = NULL;
    producer->session = NULL;
    if (has_numbered(producer) && !session->forgets) {
        hk_producer_touch(session->broker, producer);
    } else {
        hk_producer_forget(session->broker, producer);
    }
}

void hk_producer_prune(hk_broker_t *broker)
{
    for (hk_list_t *link = broker->all_producers.next, *next; link != &broker->all_producers; link = next) {
        next = link->next;
        hk_producer_t *producer = HK_OWNER(link, hk_producer_t, link);
        if (has_numbered(producer)) {
            broker->remembered += producer->remembered ? 0 : 1;
            producer->remembered = producer->recorded = true;
        } else {
            hk_producer_free(broker, producer);
        }
    }
    while (broker->remembered > broker->options.max_identities) {
        hk_producer_free(broker, longest_idle(broker));
        broker->stats.identities_evicted++;
    }
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
