#include "hk_log.h"

#include "hk_cipher.h"
#include "hk_sse.h"

/* VOID  bytes that a position without a record costs. */
enum { SMALLEST_RING = 64, VOID = 8 };

/* Positions from the first on are sealed with this key, until the next generation. */
typedef struct generation {
    hk_position_t first;
    hk_cipher_t cipher;
} generation_t;

/* Part of the record whose id it is. In the index stands the earliest record that bears an id; it knows the newest one.
 * Records are evicted oldest first, so the one that goes is the one in the index, and the next takes its place. */
typedef struct hk_chosen_id {
    hk_map_node_t node;
    hk_position_t position;
    struct hk_chosen_id *later;
    struct hk_chosen_id *newest; /* only of the earliest */
} hk_chosen_id_t;

struct hk_log {
    const hk_alloc_t *alloc;
    size_t capacity, bytes;
    size_t topic_bytes; /* of the topics of all records, each once */
    hk_position_t first, head;
    hk_record_t **records; /* the record at a position stands at `position & mask` */
    hk_position_t mask;
    hk_cipher_t cipher;
    hk_position_t generation; /* the first position that is sealed with it */
    generation_t *earlier;    /* the oldest first */
    size_t earlier_count;
    hk_map_t ids;
    hk_log_keep_t keep; /* NULL: nothing is written down */
    void *keeper;
};

hk_status_t hk_log_new(const hk_alloc_t *alloc, const hk_log_options_t *options, hk_log_t **log)
{
    hk_log_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    hk_record_t **records = hk_alloc_zeroed(alloc, SMALLEST_RING, sizeof(*records));
    if (made == NULL || records == NULL) {
        hk_alloc_free(alloc, made);
        hk_alloc_free(alloc, records);
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->capacity = options->capacity;
    made->first = 1;
    made->records = records;
    made->mask = SMALLEST_RING - 1;
    hk_cipher_init(&made->cipher, options->key);
    hk_map_init(&made->ids, alloc, options->secret);
    *log = made;
    return HK_OK;
}

static void evict_first(hk_log_t *log);

void hk_log_free(hk_log_t *log)
{
    if (log == NULL) {
        return;
    }
    while (log->first <= log->head) {
        evict_first(log);
    }
    hk_map_release(&log->ids);
    hk_alloc_free(log->alloc, log->earlier);
    hk_alloc_free(log->alloc, log->records);
    hk_alloc_free(log->alloc, log);
}

/* -- Records ------------------------------------------------------------------------------------------------------- */

/* One block: the record, its topics, what the index of ids needs, the event's bytes. */
static hk_record_t *new_record(const hk_alloc_t *alloc, const hk_log_update_t *update, const hk_sse_event_t *event,
                               bool own_id)
{
    size_t frame_size = hk_sse_size(event);
    size_t topics_size = update->topic_count * sizeof(hk_topic_t *);
    size_t chosen_size = own_id ? sizeof(hk_chosen_id_t) : 0;
    hk_record_t *record = hk_alloc_new(alloc, sizeof(*record) + topics_size + chosen_size + frame_size);
    if (record == NULL) {
        return NULL;
    }
    hk_topic_t **topics = (hk_topic_t **)(record + 1);
    hk_chosen_id_t *chosen = (hk_chosen_id_t *)(topics + update->topic_count);
    char *frame = (char *)chosen + chosen_size;
    hk_sse_write(event, frame);
    *record = (hk_record_t){
        .references = 1,
        .is_private = update->is_private,
        .own_id = own_id,
        .topic_count = (uint16_t)update->topic_count,
        .frame = hk_bytes(frame, frame_size),
        .id = hk_bytes(frame + hk_sse_id_offset(event), event->id.length),
        .topics = topics,
        .bytes = frame_size + event->id.length + HK_RECORD_OVERHEAD + (own_id ? HK_CHOSEN_OVERHEAD : 0),
        .chosen = own_id ? chosen : NULL,
        .alloc = alloc,
    };
    for (size_t i = 0; i < update->topic_count; i++) {
        topics[i] = hk_topic_retain(update->topics[i]);
        record->bytes += hk_topic_value(topics[i]).length + HK_PLACE_OVERHEAD;
    }
    return record;
}

hk_record_t *hk_record_retain(hk_record_t *record)
{
    record->references++;
    return record;
}

void hk_record_release(hk_record_t *record)
{
    if (record == NULL || --record->references > 0) {
        return;
    }
    for (size_t i = 0; i < record->topic_count; i++) {
        hk_topic_release(record->topics[i]);
    }
    hk_alloc_free(record->alloc, record);
}

/* -- Ids that publishers chose ------------------------------------------------------------------------------------- */

static hk_status_t add_id(hk_log_t *log, hk_record_t *record)
{
    hk_chosen_id_t *chosen = record->chosen;
    *chosen = (hk_chosen_id_t){.position = record->position};
    hk_chosen_id_t *earliest = (hk_chosen_id_t *)hk_map_find(&log->ids, record->id);
    if (earliest == NULL) {
        chosen->newest = chosen;
        return hk_map_add(&log->ids, &chosen->node, record->id);
    }
    chosen->node.key = record->id;
    earliest->newest->later = chosen;
    earliest->newest = chosen;
    return HK_OK;
}

/* Of the earliest record that bears the id. */
static void remove_id(hk_log_t *log, hk_chosen_id_t *chosen)
{
    hk_chosen_id_t *later = chosen->later;
    hk_map_remove(&log->ids, &chosen->node);
    if (later != NULL) {
        later->newest = chosen->newest;
        /* Cannot fail: the table is as large as it was with the other. */
        (void)hk_map_add(&log->ids, &later->node, later->node.key);
    }
}

void hk_log_keep(hk_log_t *log, hk_log_keep_t keep, void *context)
{
    log->keep = keep;
    log->keeper = context;
}

/* -- The ring ------------------------------------------------------------------------------------------------------ */

/* more: positions that are about to be taken. */
static hk_status_t make_room(hk_log_t *log, size_t more)
{
    size_t size = (size_t)log->mask + 1;
    while (hk_log_count(log) + more > size) {
        size *= 2;
    }
    if (size == log->mask + 1) {
        return HK_OK;
    }
    hk_record_t **records = hk_alloc_zeroed(log->alloc, size, sizeof(*records));
    if (records == NULL) {
        return HK_NO_MEMORY;
    }
    hk_position_t mask = size - 1;
    for (hk_position_t position = log->first; position <= log->head; position++) {
        records[position & mask] = log->records[position & log->mask];
    }
    hk_alloc_free(log->alloc, log->records);
    log->records = records;
    log->mask = mask;
    return HK_OK;
}

static size_t cost_of(const hk_topic_t *topic)
{
    return HK_TOPIC_OVERHEAD + topic->beside;
}

static void hold_topics(hk_log_t *log, const hk_record_t *record)
{
    for (size_t i = 0; i < record->topic_count; i++) {
        log->topic_bytes += record->topics[i]->records++ == 0 ? cost_of(record->topics[i]) : 0;
    }
}

static void drop_topics(hk_log_t *log, const hk_record_t *record)
{
    for (size_t i = 0; i < record->topic_count; i++) {
        log->topic_bytes -= --record->topics[i]->records == 0 ? cost_of(record->topics[i]) : 0;
    }
}

static void evict_first(hk_log_t *log)
{
    hk_record_t *record = log->records[log->first & log->mask];
    log->first++;
    log->bytes -= record != NULL ? record->bytes : VOID;
    if (record != NULL && record->own_id) {
        remove_id(log, record->chosen);
    }
    if (record != NULL) {
        drop_topics(log, record);
        hk_record_release(record);
    }
}

/* There is room. */
static void take_in(hk_log_t *log, hk_record_t *record)
{
    log->head++;
    log->records[log->head & log->mask] = record;
    log->bytes += record->bytes;
    hold_topics(log, record);
    while (hk_log_bytes(log) > log->capacity && log->first < log->head) {
        evict_first(log);
    }
}

hk_status_t hk_log_append(hk_log_t *log, const hk_log_update_t *update, hk_record_t **record)
{
    if (update->topic_count == 0 || update->topic_count > UINT16_MAX) {
        return HK_INVALID;
    }
    char made[HK_EVENT_ID_BYTES];
    hk_sse_event_t event = {.id = update->id, .data = update->data, .type = update->type, .retry_ms = update->retry_ms};
    bool own_id = update->id.length > 0;
    if (!own_id) {
        hk_cipher_seal(&log->cipher, log->head + 1, made);
        event.id = hk_bytes(made, sizeof(made));
    }
    if (make_room(log, 1) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_record_t *appended = new_record(log->alloc, update, &event, own_id);
    if (appended == NULL) {
        return HK_NO_MEMORY;
    }
    appended->position = log->head + 1;
    hk_status_t status = log->keep != NULL ? log->keep(log->keeper, appended->position, update) : HK_OK;
    if (status != HK_OK) {
        hk_record_release(appended);
        return status;
    }
    if (own_id && add_id(log, appended) != HK_OK) {
        if (log->keep == NULL) {
            hk_record_release(appended);
            return HK_NO_MEMORY;
        }
        /* It is written down, so it is there; but nobody finds it by its id until the next start. */
        appended->own_id = false;
    }
    take_in(log, appended);
    if (record != NULL) {
        *record = appended;
    }
    return HK_OK;
}

hk_status_t hk_log_append_gap(hk_log_t *log, hk_position_t position, const hk_sse_event_t *event)
{
    hk_log_update_t nothing = {.topic_count = 0};
    if (make_room(log, (size_t)(position - log->head)) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_record_t *gap = new_record(log->alloc, &nothing, event, false);
    if (gap == NULL) {
        return HK_NO_MEMORY;
    }
    gap->position = position;
    while (log->head + 1 < position) {
        log->records[++log->head & log->mask] = NULL;
        log->bytes += VOID;
    }
    take_in(log, gap);
    return HK_OK;
}

void hk_log_keep_from(hk_log_t *log, hk_position_t position)
{
    while (log->first < position && log->first <= log->head) {
        evict_first(log);
    }
}

void hk_log_go_on_at(hk_log_t *log, hk_position_t position)
{
    if (position != log->head + 1) {
        hk_log_keep_from(log, log->head + 1);
        log->first = position;
        log->head = position - 1;
    }
}

hk_record_t *hk_log_at(const hk_log_t *log, hk_position_t position)
{
    return position >= log->first && position <= log->head ? log->records[position & log->mask] : NULL;
}

hk_position_t hk_log_first(const hk_log_t *log)
{
    return log->first;
}

hk_position_t hk_log_head(const hk_log_t *log)
{
    return log->head;
}

size_t hk_log_count(const hk_log_t *log)
{
    return (size_t)(log->head + 1 - log->first);
}

size_t hk_log_bytes(const hk_log_t *log)
{
    return log->bytes + (log->topic_bytes > HK_TOPICS_FREE ? log->topic_bytes - HK_TOPICS_FREE : 0);
}

/* -- From ids to positions ----------------------------------------------------------------------------------------- */

void hk_log_seal(const hk_log_t *log, hk_position_t position, char id[HK_EVENT_ID_BYTES])
{
    const hk_cipher_t *cipher = &log->cipher;
    hk_position_t first = log->generation;
    for (size_t i = log->earlier_count; position < first && i > 0; i--) {
        cipher = &log->earlier[i - 1].cipher;
        first = log->earlier[i - 1].first;
    }
    hk_cipher_seal(cipher, position, id);
}

void hk_log_rekey(hk_log_t *log, const uint8_t key[HK_LOG_KEY_BYTES])
{
    hk_cipher_init(&log->cipher, key);
    log->generation = 0;
    log->earlier_count = 0;
}

hk_status_t hk_log_begin_generation(hk_log_t *log, hk_position_t first, const uint8_t key[HK_LOG_KEY_BYTES])
{
    generation_t *earlier = hk_alloc_resize(log->alloc, log->earlier, log->earlier_count + 1, sizeof(*earlier));
    if (earlier == NULL) {
        return HK_NO_MEMORY;
    }
    log->earlier = earlier;
    log->earlier[log->earlier_count++] = (generation_t){log->generation, log->cipher};
    log->generation = first;
    hk_cipher_init(&log->cipher, key);
    return HK_OK;
}

hk_status_t hk_log_open(const hk_log_t *log, hk_bytes_t id, hk_position_t *position)
{
    hk_position_t first = log->generation;
    hk_status_t status = hk_cipher_open(&log->cipher, id, position);
    if (status != HK_OK || log->earlier_count == 0 || (*position >= first && *position <= log->head)) {
        return status;
    }
    for (size_t i = log->earlier_count; i > 0; i--) {
        const generation_t *generation = &log->earlier[i - 1];
        (void)hk_cipher_open(&generation->cipher, id, position);
        if (*position >= generation->first && *position < first) {
            return HK_OK;
        }
        first = generation->first;
    }
    return HK_NOT_FOUND;
}

hk_status_t hk_log_find(const hk_log_t *log, hk_bytes_t id, hk_position_t *position)
{
    const hk_chosen_id_t *chosen = (const hk_chosen_id_t *)hk_map_find(&log->ids, id);
    if (chosen != NULL) {
        *position = chosen->position;
        return HK_OK;
    }
    hk_position_t opened;
    if (hk_log_open(log, id, &opened) != HK_OK || opened + 1 < log->first || opened > log->head) {
        return HK_NOT_FOUND;
    }
    *position = opened;
    return HK_OK;
}
