#include "hk_broker_producer_private.h"
#include "hk_broker_record.h"
#include "hk_broker_store_private.h"

/* What is found by numbers while records are read. */
typedef struct table {
    struct {
        uint32_t number; /* 0: free */
        void *thing;
    } * places;
    size_t count, capacity; /* a power of two */
} table_t;

struct hk_replay {
    hk_message_t **buckets; /* by id, chained by `next` */
    size_t count, capacity;
    table_t queues, producers;
    uint64_t due, segment; /* the position that is due; the segment of the record before */
    bool behind_hole;
};

enum { SMALLEST = 64 };

/* -- Tables -------------------------------------------------------------------------------------------------------- */

static size_t place_of(const table_t *table, uint32_t number)
{
    size_t place = (number * UINT32_C(2654435761)) & (table->capacity - 1);
    while (table->places[place].number != 0 && table->places[place].number != number) {
        place = (place + 1) & (table->capacity - 1);
    }
    return place;
}

static void *table_find(const table_t *table, uint32_t number)
{
    return table->capacity == 0 || number == 0 ? NULL : table->places[place_of(table, number)].thing;
}

static hk_status_t table_set(hk_broker_t *broker, table_t *table, uint32_t number, void *thing)
{
    if (number == 0) {
        return HK_INVALID;
    }
    if (2 * table->count >= table->capacity) {
        table_t larger = {.capacity = table->capacity == 0 ? SMALLEST : 2 * table->capacity, .count = table->count};
        larger.places = hk_alloc_zeroed(broker->alloc, larger.capacity, sizeof(*larger.places));
        if (larger.places == NULL) {
            return HK_NO_MEMORY;
        }
        for (size_t i = 0; i < table->capacity; i++) {
            if (table->places[i].number != 0) {
                larger.places[place_of(&larger, table->places[i].number)] = table->places[i];
            }
        }
        hk_alloc_free(broker->alloc, table->places);
        *table = larger;
    }
    size_t place = place_of(table, number);
    table->count += table->places[place].number == 0 ? 1 : 0;
    table->places[place].number = number;
    table->places[place].thing = thing;
    return HK_OK;
}

/* -- Messages ------------------------------------------------------------------------------------------------------ */

static hk_message_t **bucket_of(const struct hk_replay *replay, uint64_t id)
{
    /* Eight that follow each other, as most do, share a line of the cache. */
    uint64_t eight = (id >> 3) * UINT64_C(0x9E3779B97F4A7C15) >> 20;
    return &replay->buckets[(eight << 3 | (id & 7)) & (replay->capacity - 1)];
}

static hk_message_t *find(const struct hk_replay *replay, uint64_t id)
{
    if (replay->capacity == 0) {
        return NULL;
    }
    hk_message_t *message = *bucket_of(replay, id);
    while (message != NULL && message->id != id) {
        message = message->next;
    }
    return message;
}

static hk_status_t add(hk_broker_t *broker, hk_message_t *message)
{
    struct hk_replay *replay = broker->replay;
    if (replay->count >= replay->capacity) {
        struct hk_replay larger = {.capacity = replay->capacity == 0 ? SMALLEST : 2 * replay->capacity};
        larger.buckets = hk_alloc_zeroed(broker->alloc, larger.capacity, sizeof(hk_message_t *));
        if (larger.buckets == NULL) {
            return HK_NO_MEMORY;
        }
        for (size_t i = 0; i < replay->capacity; i++) {
            for (hk_message_t *each = replay->buckets[i], *next; each != NULL; each = next) {
                next = each->next;
                hk_message_t **bucket = bucket_of(&larger, each->id);
                each->next = *bucket;
                *bucket = each;
            }
        }
        hk_alloc_free(broker->alloc, replay->buckets);
        replay->buckets = larger.buckets;
        replay->capacity = larger.capacity;
    }
    hk_message_t **bucket = bucket_of(replay, message->id);
    message->next = *bucket;
    *bucket = message;
    replay->count++;
    return HK_OK;
}

static void take_out(struct hk_replay *replay, const hk_message_t *message)
{
    hk_message_t **place = bucket_of(replay, message->id);
    while (*place != message) {
        place = &(*place)->next;
    }
    *place = message->next;
    replay->count--;
}

/* -- Records ------------------------------------------------------------------------------------------------------- */

/* What is known of a message beside its ENQUEUE's first fields. */
static hk_status_t take_state(hk_broker_t *broker, hk_message_t *message, const char *at, uint64_t due, uint32_t most,
                              hk_bytes_t words)
{
    message->failures = at == NULL ? 0 : hk_frame_u16(at);
    message->crashes = at == NULL ? 0 : hk_frame_u16(at + 2);
    message->returns = at == NULL ? 0 : hk_frame_u16(at + 4);
    message->state = at != NULL && at[6] == 1 ? HK_STATE_DEAD : HK_STATE_WAITS;
    message->reason = at == NULL ? 0U : (unsigned char)at[7] & 3U;
    message->delivered = (message->failures | message->crashes | message->returns) != 0;
    if (due != 0 || message->extra != NULL) {
        hk_extra_t *extra = hk_message_extra(broker, message);
        if (extra == NULL) {
            return HK_NO_MEMORY;
        }
        /* A copy of what a STATE said does not know it better. */
        extra->due_most = due == extra->due_wall && extra->due_most < most ? extra->due_most : most;
        extra->due_wall = due;
    }
    hk_message_say(broker, message, words);
    return words.length > 0 && (message->extra == NULL || message->extra->words == NULL) ? HK_NO_MEMORY : HK_OK;
}

/* How long it was from when it was sent, in ms. Before that it can only be when the clock was set back: nobody knows
 * how long. */
static uint32_t span(uint64_t sent, uint64_t until)
{
    return until > sent && until - sent < UINT32_MAX ? (uint32_t)(until - sent) : UINT32_MAX;
}

typedef struct enqueue {
    const char *body;
    uint64_t id, due, expires, sequence;
    uint32_t queue, producer;
    const char *state; /* NULL: nothing became of it */
    hk_bytes_t words;
    size_t head; /* bytes before the properties */
} enqueue_t;

static bool skip(const hk_journal_record_t *record, size_t *at, size_t bytes)
{
    *at += bytes;
    return *at <= record->body.length;
}

static bool parse(const hk_journal_record_t *record, enqueue_t *enqueue)
{
    size_t at = 0, field;
    *enqueue = (enqueue_t){.body = record->body.at};
    if (!skip(record, &at, HK_RECORD_ENQUEUE_BYTES)) {
        return false;
    }
    enqueue->id = hk_frame_u64(enqueue->body);
    enqueue->queue = hk_frame_u32(enqueue->body + 16);
    if ((field = at, record->flags & HK_ENQUEUE_DUE) != 0) {
        if (!skip(record, &at, 8)) {
            return false;
        }
        enqueue->due = hk_frame_u64(enqueue->body + field);
    }
    if ((field = at, record->flags & HK_ENQUEUE_EXPIRES) != 0) {
        if (!skip(record, &at, 8)) {
            return false;
        }
        enqueue->expires = hk_frame_u64(enqueue->body + field);
    }
    if ((field = at, record->flags & HK_ENQUEUE_SEQUENCED) != 0) {
        if (!skip(record, &at, 12)) {
            return false;
        }
        enqueue->sequence = hk_frame_u64(enqueue->body + field);
        enqueue->producer = hk_frame_u32(enqueue->body + field + 8);
    }
    if ((field = at, record->flags & HK_ENQUEUE_STATE) != 0) {
        if (!skip(record, &at, 12)) {
            return false;
        }
        enqueue->state = enqueue->body + field;
        enqueue->words = hk_bytes(enqueue->body + at, hk_frame_u16(enqueue->body + field + 8));
        if (!skip(record, &at, enqueue->words.length)) {
            return false;
        }
    }
    enqueue->head = at;
    return hk_frame_u16(enqueue->body + 22) <= record->body.length - at;
}

/* Where its newest ENQUEUE stands. */
static hk_status_t set_place(hk_broker_t *broker, hk_message_t *message, const hk_journal_record_t *record, size_t head)
{
    hk_status_t status = hk_ledger_reserve(broker, record->segment);
    if (status != HK_OK) {
        return status;
    }
    bool compact = head % 4 == 0 && head / 4 < 32;
    if (!compact && hk_message_extra(broker, message) == NULL) {
        return HK_NO_MEMORY;
    }
    if (message->piece != NULL) {
        hk_ledger_subtract(broker, message);
        hk_ledger_refer(broker, record->segment, message->piece->segment);
        hk_piece_release(message->piece);
    }
    message->piece = hk_piece_retain(&hk_ledger_row(broker, record->segment)->stub);
    message->offset = record->offset + (uint32_t)head;
    message->bytes = (uint32_t)(record->body.length - head);
    message->head = compact ? (uint32_t)(head / 4) & 31U : 0;
    if (!compact) {
        message->extra->head = (uint16_t)head;
    }
    hk_ledger_add(broker, message);
    return HK_OK;
}

static hk_status_t replay_enqueue(hk_broker_t *broker, const hk_journal_record_t *record)
{
    enqueue_t enqueue;
    if (!parse(record, &enqueue)) {
        return HK_INVALID;
    }
    struct hk_replay *replay = broker->replay;
    hk_message_t *message = find(replay, enqueue.id);
    hk_queue_t *queue = table_find(&replay->queues, enqueue.queue);
    /* Who has numbered it is not known behind a hole: it might be taken again. */
    bool nobodys =
        replay->behind_hole && enqueue.sequence != 0 && table_find(&replay->producers, enqueue.producer) == NULL;
    if (nobodys || (message == NULL && queue == NULL)) {
        /* What it needs was lost with what nobody had synced: so is the message. */
        broker->stats.messages_lost++;
        broker->next_id = enqueue.id >= broker->next_id ? enqueue.id + 1 : broker->next_id;
        return HK_OK;
    }
    if (queue != NULL && queue->named != record->segment) {
        /* A salvage has parted them: the segment with its name stays as long as this one. */
        hk_ledger_refer(broker, queue->named, record->segment);
    }
    if (message == NULL) {
        message = hk_message_new(broker, queue);
        if (message == NULL) {
            return HK_NO_MEMORY;
        }
        message->id = enqueue.id;
        if (add(broker, message) != HK_OK) {
            hk_message_free(broker, message);
            return HK_NO_MEMORY;
        }
        broker->next_id = enqueue.id >= broker->next_id ? enqueue.id + 1 : broker->next_id;
    }
    message->sent = hk_frame_u64(enqueue.body + 8) & ((UINT64_C(1) << 46) - 1);
    message->priority = (unsigned char)enqueue.body[20] % (unsigned)HK_BROKER_PRIORITIES & 15U;
    message->level = (unsigned char)enqueue.body[21] & 3U;
    message->properties = hk_frame_u16(enqueue.body + 22);
    hk_status_t status = set_place(broker, message, record, enqueue.head);
    if (status == HK_OK && enqueue.expires != 0) {
        hk_extra_t *extra = hk_message_extra(broker, message);
        status = extra == NULL ? HK_NO_MEMORY : HK_OK;
        if (extra != NULL) {
            extra->expires_wall = enqueue.expires;
        }
    }
    if (status == HK_OK) {
        status =
            take_state(broker, message, enqueue.state, enqueue.due, span(message->sent, enqueue.due), enqueue.words);
    }
    hk_producer_t *producer = enqueue.sequence == 0 ? NULL : table_find(&replay->producers, enqueue.producer);
    if (status != HK_OK || producer == NULL) {
        return status;
    }
    hk_producer_touch(broker, producer);
    return hk_producer_recall(broker, producer, enqueue.sequence);
}

static hk_status_t replay_free(hk_broker_t *broker, const hk_journal_record_t *record)
{
    hk_status_t status = hk_ledger_reserve(broker, record->segment);
    for (size_t at = 0; status == HK_OK && at + 8 <= record->body.length; at += 8) {
        hk_message_t *message = find(broker->replay, hk_frame_u64(record->body.at + at));
        if (message != NULL) {
            take_out(broker->replay, message);
            hk_ledger_subtract(broker, message);
            hk_ledger_refer(broker, record->segment, message->piece->segment);
            hk_message_free(broker, message);
        }
    }
    return status;
}

static hk_status_t replay_state(hk_broker_t *broker, const hk_journal_record_t *record)
{
    bool delayed = (record->flags & HK_RECORD_STATE_DELAYED) != 0;
    size_t length = (size_t)HK_RECORD_STATE_BYTES + (delayed ? HK_RECORD_DELAY_BYTES : 0);
    if (record->body.length < length) {
        return HK_INVALID;
    }
    const char *at = record->body.at;
    hk_message_t *message = find(broker->replay, hk_frame_u64(at));
    if (message == NULL) {
        return HK_OK;
    }
    hk_status_t status = hk_ledger_reserve(broker, record->segment);
    if (status == HK_OK) {
        hk_ledger_refer(broker, record->segment, message->piece->segment);
        status = take_state(broker, message, at + 16, hk_frame_u64(at + 8),
                            delayed ? hk_frame_u32(at + HK_RECORD_STATE_BYTES) : UINT32_MAX,
                            hk_bytes(at + length, record->body.length - length));
    }
    return status;
}

static hk_status_t replay_queue(hk_broker_t *broker, const hk_journal_record_t *record)
{
    const char *at = record->body.at;
    if (record->body.length < HK_RECORD_QUEUE_BYTES ||
        record->body.length != (size_t)HK_RECORD_QUEUE_BYTES + hk_frame_u16(at + 6) ||
        hk_frame_u16(at + 6) > HK_FRAME_NAME_MOST) {
        return HK_INVALID;
    }
    uint32_t number = hk_frame_u32(at), last = broker->last_queue_number;
    hk_queue_t *known = table_find(&broker->replay->queues, number);
    if (known != NULL) {
        known->named = record->segment;
        return HK_OK;
    }
    hk_bytes_t name = hk_bytes(at + HK_RECORD_QUEUE_BYTES, record->body.length - HK_RECORD_QUEUE_BYTES);
    hk_queue_t *queue;
    hk_status_t status = hk_queue_get(broker, (uint8_t)at[4], name, &queue);
    if (status != HK_OK) {
        return status;
    }
    queue->number = queue->named == 0 ? number : queue->number;
    queue->named = record->segment;
    broker->last_queue_number = number > last ? number : last;
    return table_set(broker, &broker->replay->queues, number, queue);
}

/* Messages of it, if there are any, keep the queue: it is as if it had not gone. */
static hk_status_t replay_queue_gone(hk_broker_t *broker, const hk_journal_record_t *record)
{
    if (record->body.length < HK_RECORD_GONE_BYTES) {
        return HK_INVALID;
    }
    uint32_t number = hk_frame_u32(record->body.at);
    hk_queue_t *queue = table_find(&broker->replay->queues, number);
    if (queue == NULL) {
        return HK_OK;
    }
    queue->named = queue->number != number ? queue->named : 0;
    return table_set(broker, &broker->replay->queues, number, NULL);
}

static hk_status_t replay_producer(hk_broker_t *broker, const hk_journal_record_t *record)
{
    const char *at = record->body.at;
    if (record->body.length < HK_RECORD_PRODUCER_BYTES ||
        record->body.length != (size_t)HK_RECORD_PRODUCER_BYTES + hk_frame_u16(at + 4) + hk_frame_u16(at + 6) ||
        hk_frame_u16(at + 4) > HK_FRAME_NAME_MOST || hk_frame_u16(at + 6) > HK_FRAME_SEQUENCES / 8) {
        return HK_INVALID;
    }
    uint32_t number = hk_frame_u32(at), last = broker->last_producer_number;
    hk_bytes_t identity = hk_bytes(at + HK_RECORD_PRODUCER_BYTES, hk_frame_u16(at + 4));
    hk_producer_t *producer;
    hk_status_t status = hk_producer_get(broker, identity, &producer);
    if (status == HK_OK) {
        status = table_set(broker, &broker->replay->producers, number, producer);
    }
    if (status != HK_OK) {
        return status;
    }
    bool another = producer->number != number;
    if (another) {
        status = table_set(broker, &broker->replay->producers, producer->number, NULL);
    }
    broker->last_producer_number = number > last ? number : last;
    hk_producer_touch(broker, producer);
    producer->number = number;
    producer->begun = true;
    producer->epoch = hk_frame_u64(at + 8);
    producer->segment = another ? 0 : producer->segment;
    if (broker->replay->behind_hole) {
        /* Its map may speak of messages that were lost before it. */
        return status == HK_OK && another ? hk_producer_restore(broker, producer, 0, hk_bytes(NULL, 0)) : status;
    }
    producer->segment = record->segment;
    hk_bytes_t map = hk_bytes(identity.at + identity.length, hk_frame_u16(at + 6));
    return status == HK_OK ? hk_producer_restore(broker, producer, hk_frame_u64(at + 16), map) : status;
}

static hk_status_t replay_producer_gone(hk_broker_t *broker, const hk_journal_record_t *record)
{
    if (record->body.length < HK_RECORD_GONE_BYTES) {
        return HK_INVALID;
    }
    uint32_t number = hk_frame_u32(record->body.at);
    hk_producer_t *producer = table_find(&broker->replay->producers, number);
    if (producer == NULL) {
        return HK_OK;
    }
    hk_producer_free(broker, producer);
    return table_set(broker, &broker->replay->producers, number, NULL);
}

static hk_status_t replay_boot(hk_broker_t *broker, const hk_journal_record_t *record)
{
    if (record->body.length < HK_RECORD_BOOT_BYTES) {
        return HK_INVALID;
    }
    uint64_t id = hk_frame_u64(record->body.at), session = hk_frame_u64(record->body.at + 8);
    broker->next_id = id > broker->next_id ? id : broker->next_id;
    broker->next_session = session > broker->next_session ? session : broker->next_session;
    return HK_OK;
}

/* Positions that are missing before a record are those of a SKIP: nobody had synced what follows in that segment,
 * either. */
static void look_for_hole(struct hk_replay *replay, const hk_journal_record_t *record)
{
    bool missing = record->position != replay->due && record->segment <= replay->segment + 1;
    replay->behind_hole = missing || (record->segment == replay->segment && replay->behind_hole);
    replay->due = record->position + 1;
    replay->segment = record->segment;
}

hk_status_t hk_broker_replay(void *context, const hk_journal_record_t *record)
{
    hk_broker_t *broker = context;
    hk_status_t status = hk_ledger_reserve(broker, record->segment);
    if (status != HK_OK) {
        return status;
    }
    look_for_hole(broker->replay, record);
    switch (record->type) {
    case HK_RECORD_ENQUEUE:
        return replay_enqueue(broker, record);
    case HK_RECORD_FREE:
        return replay_free(broker, record);
    case HK_RECORD_STATE:
        return replay_state(broker, record);
    case HK_RECORD_QUEUE:
        return replay_queue(broker, record);
    case HK_RECORD_QUEUE_GONE:
        return replay_queue_gone(broker, record);
    case HK_RECORD_PRODUCER:
        return replay_producer(broker, record);
    case HK_RECORD_PRODUCER_GONE:
        return replay_producer_gone(broker, record);
    case HK_RECORD_BOOT:
        return replay_boot(broker, record);
    default:
        return HK_INVALID;
    }
}

/* -- The beginning and the end ------------------------------------------------------------------------------------- */

hk_status_t hk_replay_init(hk_broker_t *broker)
{
    broker->replay = hk_alloc_zeroed(broker->alloc, 1, sizeof(*broker->replay));
    broker->replaying = true;
    if (broker->replay != NULL) {
        broker->replay->due = 1;
    }
    return broker->replay == NULL ? HK_NO_MEMORY : HK_OK;
}

void hk_replay_release(hk_broker_t *broker)
{
    struct hk_replay *replay = broker->replay;
    if (replay != NULL) {
        hk_alloc_free(broker->alloc, replay->buckets);
        hk_alloc_free(broker->alloc, replay->queues.places);
        hk_alloc_free(broker->alloc, replay->producers.places);
        hk_alloc_free(broker->alloc, replay);
        broker->replay = NULL;
    }
}

/* What is left until then: the clock may have been set meanwhile, but no more is left than there was. */
static int64_t remaining(const hk_broker_t *broker, uint64_t at, uint32_t most)
{
    uint64_t left = at > broker->wall ? at - broker->wall : 0;
    return broker->now + (int64_t)(left < most ? left : most) * HK_MS;
}

static hk_status_t place(hk_broker_t *broker, hk_message_t *message)
{
    hk_queue_t *queue = message->queue;
    hk_extra_t *extra = message->extra;
    queue->bytes += message->bytes;
    broker->stats.bytes += message->bytes;
    broker->stats.messages++;
    if (message->state == HK_STATE_DEAD) {
        hk_queue_bury(broker, message, (uint8_t)message->reason);
        return HK_OK;
    }
    /* A dead letter that waits again has no time to live any more. */
    if (extra != NULL && extra->expires_wall != 0 && message->reason == 0) {
        extra->expiry = remaining(broker, extra->expires_wall, span(message->sent, extra->expires_wall));
        if (hk_heap_add(&broker->expiries, &extra->expires, extra->expiry) != HK_OK) {
            return HK_NO_MEMORY;
        }
    }
    if (extra != NULL && extra->due_wall != 0) {
        return hk_queue_delay(broker, message, remaining(broker, extra->due_wall, extra->due_most));
    }
    hk_queue_put(message);
    return HK_OK;
}

hk_status_t hk_replay_end(hk_broker_t *broker)
{
    struct hk_replay *replay = broker->replay;
    hk_message_t *all = NULL;
    for (size_t i = 0; i < replay->capacity; i++) {
        for (hk_message_t *message = replay->buckets[i], *next; message != NULL; message = next) {
            next = message->next;
            message->next = all;
            all = message;
        }
    }
    hk_replay_release(broker);
    hk_status_t status = HK_OK;
    for (hk_message_t *message = hk_messages_sorted(broker->alloc, all), *next; message != NULL && status == HK_OK;
         message = next) {
        next = message->next;
        status = place(broker, message);
    }
    /* A queue without messages need not be there: its name stands somewhere, and nobody uses it yet. */
    for (hk_list_t *link = broker->all_queues.next, *next; status == HK_OK && link != &broker->all_queues;
         link = next) {
        next = link->next;
        hk_queue_t *queue = HK_OWNER(link, hk_queue_t, link);
        if (hk_queue_messages(queue) == 0) {
            hk_queue_free(broker, queue);
        } else {
            hk_queue_touch(broker, queue);
        }
    }
    /* Segments without a record of the broker's are not needed, either. */
    uint64_t oldest = hk_journal_oldest(broker->journal), current = hk_journal_current(broker->journal);
    for (uint64_t number = oldest; status == HK_OK && number <= current; number++) {
        status = number < broker->ledger.first ? HK_OK : hk_ledger_reserve(broker, number);
    }
    broker->ledger.first_own = current;
    broker->replaying = status != HK_OK;
    return status;
}
