#include "hk_log.h"

#include "hk_cipher.h"
#include "hk_sse.h"

enum { SMALLEST_RING = 64 };

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
    hk_position_t first, head;
    hk_record_t **records; /* the record at a position stands at `position & mask` */
    hk_position_t mask;
    hk_cipher_t cipher;
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

void hk_log_free(hk_log_t *log)
{
    if (log == NULL) {
        return;
    }
    for (hk_position_t position = log->first; position <= log->head; position++) {
        hk_record_release(log->records[position & log->mask]);
    }
    hk_map_release(&log->ids);
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
        .bytes = frame_size + event->id.length + HK_RECORD_OVERHEAD,
        .chosen = own_id ? chosen : NULL,
        .alloc = alloc,
    };
    for (size_t i = 0; i < update->topic_count; i++) {
        topics[i] = hk_topic_retain(update->topics[i]);
        record->bytes += hk_topic_value(topics[i]).length;
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

static hk_status_t make_room(hk_log_t *log)
{
    size_t size = (size_t)log->mask + 1;
    if (hk_log_count(log) < size) {
        return HK_OK;
    }
    hk_record_t **records = hk_alloc_zeroed(log->alloc, size, 2 * sizeof(*records));
    if (records == NULL) {
        return HK_NO_MEMORY;
    }
    hk_position_t mask = 2 * size - 1;
    for (hk_position_t position = log->first; position <= log->head; position++) {
        records[position & mask] = log->records[position & log->mask];
    }
    hk_alloc_free(log->alloc, log->records);
    log->records = records;
    log->mask = mask;
    return HK_OK;
}

static void evict_first(hk_log_t *log)
{
    hk_record_t *record = log->records[log->first & log->mask];
    log->first++;
    log->bytes -= record->bytes;
    if (record->own_id) {
        remove_id(log, record->chosen);
    }
    hk_record_release(record);
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
    if (make_room(log) != HK_OK) {
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
    log->head++;
    log->records[log->head & log->mask] = appended;
    log->bytes += appended->bytes;
    while (log->bytes > log->capacity && log->first < log->head) {
        evict_first(log);
    }
    if (record != NULL) {
        *record = appended;
    }
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
    return log->bytes;
}

/* -- From ids to positions ----------------------------------------------------------------------------------------- */

void hk_log_seal(const hk_log_t *log, hk_position_t position, char id[HK_EVENT_ID_BYTES])
{
    hk_cipher_seal(&log->cipher, position, id);
}

void hk_log_rekey(hk_log_t *log, const uint8_t key[HK_LOG_KEY_BYTES])
{
    hk_cipher_init(&log->cipher, key);
}

hk_status_t hk_log_open(const hk_log_t *log, hk_bytes_t id, hk_position_t *position)
{
    return hk_cipher_open(&log->cipher, id, position);
}

hk_status_t hk_log_find(const hk_log_t *log, hk_bytes_t id, hk_position_t *position)
{
    const hk_chosen_id_t *chosen = (const hk_chosen_id_t *)hk_map_find(&log->ids, id);
    if (chosen != NULL) {
        *position = chosen->position;
        return HK_OK;
    }
    hk_position_t opened;
    if (hk_cipher_open(&log->cipher, id, &opened) != HK_OK || opened + 1 < log->first || opened > log->head) {
        return HK_NOT_FOUND;
    }
    *position = opened;
    return HK_OK;
}
