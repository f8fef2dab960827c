#include "hk_broker_producer_private.h"
#include "hk_broker_record.h"
#include "hk_broker_store_private.h"

enum { IDS_RESERVED = 1 << 24, SESSIONS_RESERVED = 1 << 12, FREED_IN_RECORD = 1024 };

/* Appends a record that speaks of what stands in `other`; 0: of nothing. */
static hk_status_t append(hk_broker_t *broker, uint8_t type, uint8_t flags, const hk_bytes_t *parts, size_t count,
                          bool urgent, hk_journal_record_t *record)
{
    hk_status_t status = hk_journal_append(broker->journal, type, flags, parts, count, urgent, record);
    if (status == HK_OK && hk_ledger_reserve(broker, record->segment) != HK_OK) {
        /* What is needed of this segment cannot be told: it is kept for ever, or until the next start. */
        broker->ledger.dirty = true;
    }
    return status;
}

/* -- BOOT ---------------------------------------------------------------------------------------------------------- */

static hk_status_t append_boot(hk_journal_t *journal, uint64_t id, uint64_t session)
{
    char body[HK_RECORD_BOOT_BYTES];
    hk_frame_put64(body, id);
    hk_frame_put64(body + 8, session);
    hk_journal_record_t record;
    hk_bytes_t part = hk_bytes(body, sizeof(body));
    return hk_journal_append(journal, HK_RECORD_BOOT, 0, &part, 1, true, &record);
}

hk_status_t hk_store_boot(hk_broker_t *broker, bool exactly)
{
    if (broker->journal == NULL) {
        broker->reserved_id = broker->reserved_session = broker->boot_at = UINT64_MAX;
        return HK_OK;
    }
    if (exactly) {
        return append_boot(broker->journal, broker->next_id, broker->next_session);
    }
    if (broker->next_id < broker->boot_at && broker->next_session + SESSIONS_RESERVED / 2 < broker->reserved_session) {
        return HK_OK;
    }
    uint64_t id = broker->next_id + IDS_RESERVED, session = broker->next_session + SESSIONS_RESERVED;
    hk_status_t status = append_boot(broker->journal, id, session);
    if (status == HK_OK) {
        broker->reserved_id = id;
        broker->reserved_session = session;
        broker->boot_at = id - IDS_RESERVED / 2;
        broker->wants_sync = true;
    } else if (broker->next_id < broker->reserved_id && broker->next_session < broker->reserved_session) {
        return HK_OK;
    }
    return status;
}

/* -- What every segment begins with -------------------------------------------------------------------------------- */

static hk_status_t append_queue(hk_journal_t *journal, const hk_queue_t *queue)
{
    char head[HK_RECORD_QUEUE_BYTES];
    hk_bytes_t name = hk_queue_name(queue);
    hk_frame_put32(head, queue->number);
    head[4] = (char)queue->kind;
    head[5] = 0;
    hk_frame_put16(head + 6, (uint16_t)name.length);
    hk_bytes_t parts[] = {hk_bytes(head, sizeof(head)), name};
    hk_journal_record_t record;
    return hk_journal_append(journal, HK_RECORD_QUEUE, 0, parts, 2, false, &record);
}

/* On a full disk what is left of the last segment is for what frees something. */
static bool takes_more_than_frees(const hk_journal_t *journal)
{
    return !hk_journal_full(journal);
}

static hk_status_t append_producer(hk_journal_t *journal, hk_producer_t *producer, hk_producer_record_t as)
{
    char head[HK_RECORD_PRODUCER_BYTES], map[HK_FRAME_SEQUENCES / 8];
    uint64_t low;
    uint16_t bytes = hk_producer_snapshot(producer, as == HK_PRODUCER_WHOLE, &low, map);
    hk_frame_put32(head, producer->number);
    hk_frame_put16(head + 4, producer->length);
    hk_frame_put16(head + 6, bytes);
    hk_frame_put64(head + 8, producer->epoch);
    hk_frame_put64(head + 16, low);
    hk_bytes_t parts[] = {hk_bytes(head, sizeof(head)), hk_bytes(producer->identity, producer->length),
                          hk_bytes(map, bytes)};
    hk_journal_record_t record;
    bool urgent = as != HK_PRODUCER_FIRST && takes_more_than_frees(journal);
    hk_status_t status = hk_journal_append(journal, HK_RECORD_PRODUCER, 0, parts, 3, urgent, &record);
    producer->segment = status == HK_OK ? record.segment : producer->segment;
    return status;
}

/* A QUEUE of it stands in the current segment, or will when the next one is begun. */
static hk_status_t name_queue(hk_journal_t *journal, hk_queue_t *queue)
{
    hk_status_t status = HK_OK;
    if (queue->named != hk_journal_current(journal)) {
        status = append_queue(journal, queue);
        queue->named = status == HK_OK ? hk_journal_current(journal) : queue->named;
    }
    return status;
}

/* Of a segment that is begun. A process that goes on in a segment, for want of room, finds most of them there. */
static hk_status_t repeat_producer(hk_journal_t *journal, hk_producer_t *producer)
{
    return producer->recorded && producer->segment != hk_journal_current(journal)
               ? append_producer(journal, producer, HK_PRODUCER_AGAIN)
               : HK_OK;
}

/* Those that are idle first, for longest before others: a restart forgets them in this order. */
static hk_status_t append_producers(hk_broker_t *broker, hk_journal_t *journal)
{
    hk_status_t status = HK_OK;
    hk_list_t *idle = &broker->idle_producers, *all = &broker->all_producers;
    for (hk_list_t *link = idle->next; status == HK_OK && link != idle; link = link->next) {
        status = repeat_producer(journal, HK_OWNER(link, hk_producer_t, idle));
    }
    for (hk_list_t *link = all->next; status == HK_OK && link != all; link = link->next) {
        hk_producer_t *producer = HK_OWNER(link, hk_producer_t, link);
        status = producer->session != NULL ? repeat_producer(journal, producer) : HK_OK;
    }
    return status;
}

hk_status_t hk_store_begin(void *context, hk_journal_t *journal)
{
    hk_broker_t *broker = context;
    if (broker->replaying) {
        hk_producer_prune(broker);
        /* The first segment of this start: whatever was used before ends here. */
        broker->reserved_id = broker->next_id + IDS_RESERVED;
        broker->reserved_session = broker->next_session + SESSIONS_RESERVED;
        broker->boot_at = broker->next_id + IDS_RESERVED / 2;
    }
    hk_status_t status = append_boot(journal, broker->reserved_id, broker->reserved_session);
    status = status == HK_OK ? append_producers(broker, journal) : status;
    return status == HK_OK && broker->naming != NULL ? name_queue(journal, broker->naming) : status;
}

hk_status_t hk_store_producer(hk_broker_t *broker, hk_producer_t *producer, hk_producer_record_t as)
{
    return broker->journal == NULL ? HK_OK : append_producer(broker->journal, producer, as);
}

bool hk_store_full(const hk_broker_t *broker)
{
    const hk_broker_options_t *options = &broker->options;
    uint32_t segment = options->segment_bytes == 0 ? HK_JOURNAL_SEGMENT_USUAL : options->segment_bytes;
    return hk_journal_full(broker->journal) ||
           (options->max_storage > 0 && hk_journal_bytes(broker->journal) >= options->max_storage &&
            segment - broker->ledger.filled < segment / 4);
}

hk_status_t hk_store_gone(hk_broker_t *broker, uint8_t type, uint32_t number)
{
    if (broker->journal == NULL) {
        return HK_OK;
    }
    char body[8] = {0};
    hk_frame_put32(body, number);
    hk_journal_record_t record;
    hk_bytes_t part = hk_bytes(body, sizeof(body));
    return append(broker, type, 0, &part, 1, takes_more_than_frees(broker->journal), &record);
}

/* -- ENQUEUE ------------------------------------------------------------------------------------------------------- */

/* What was written down is said again as it was, whatever clocks were set since. */
static uint64_t wall_of(const hk_broker_t *broker, uint64_t written, int64_t at)
{
    if (written != 0) {
        return written;
    }
    return at <= broker->now ? broker->wall : broker->wall + (uint64_t)((at - broker->now + HK_MS - 1) / HK_MS);
}

static char *put_numbers(char *at, const hk_message_t *message, bool dead)
{
    hk_frame_put16(at, message->failures);
    hk_frame_put16(at + 2, message->crashes);
    hk_frame_put16(at + 4, message->returns);
    at[6] = dead ? 1 : 0;
    at[7] = (char)message->reason;
    return at + 8;
}

/* Lays the fields before the words, or the properties; how many bytes they have. */
static size_t put_enqueue(const hk_broker_t *broker, char *head, const hk_message_t *message, uint64_t sequence,
                          const hk_producer_t *producer, uint8_t *flags)
{
    hk_extra_t *extra = message->extra;
    hk_frame_put64(head, message->id);
    hk_frame_put64(head + 8, message->sent);
    hk_frame_put32(head + 16, message->queue->number);
    head[20] = (char)message->priority;
    head[21] = (char)message->level;
    hk_frame_put16(head + 22, message->properties);
    char *at = head + HK_RECORD_ENQUEUE_BYTES;
    if (message->state == HK_STATE_DELAYED) {
        *flags |= HK_ENQUEUE_DUE;
        extra->due_wall = wall_of(broker, extra->due_wall, extra->due.at);
        hk_frame_put64(at, extra->due_wall);
        at += 8;
    }
    if (extra != NULL && extra->expiry != INT64_MAX) {
        *flags |= HK_ENQUEUE_EXPIRES;
        extra->expires_wall = wall_of(broker, extra->expires_wall, extra->expiry);
        hk_frame_put64(at, extra->expires_wall);
        at += 8;
    }
    if (sequence != 0) {
        *flags |= HK_ENQUEUE_SEQUENCED;
        hk_frame_put64(at, sequence);
        hk_frame_put32(at + 8, producer->number);
        at += 12;
    }
    bool dead = message->state == HK_STATE_DEAD;
    if (dead || (message->failures | message->crashes | message->returns) != 0) {
        *flags |= HK_ENQUEUE_STATE;
        at = put_numbers(at, message, dead);
        hk_frame_put16(at, extra == NULL ? 0 : extra->words_length);
        hk_frame_put16(at + 2, 0);
        at += 4;
    }
    return (size_t)(at - head);
}

/* Appends an ENQUEUE behind a QUEUE in the same segment. */
static hk_status_t append_enqueue(hk_broker_t *broker, hk_queue_t *queue, uint8_t flags, const hk_bytes_t *parts,
                                  hk_journal_record_t *record)
{
    broker->naming = queue;
    hk_status_t status = name_queue(broker->journal, queue);
    if (status == HK_OK) {
        status = hk_journal_append(broker->journal, HK_RECORD_ENQUEUE, flags, parts, 3, false, record);
    }
    broker->naming = NULL;
    return status;
}

hk_status_t hk_store_enqueue(hk_broker_t *broker, hk_message_t *message, hk_bytes_t content, uint64_t sequence,
                             const hk_producer_t *producer, bool copy)
{
    char head[HK_RECORD_ENQUEUE_BYTES + 40];
    uint8_t flags = copy ? HK_ENQUEUE_COPY : 0;
    size_t length = put_enqueue(broker, head, message, sequence, producer, &flags);
    hk_bytes_t words = {0};
    if ((flags & HK_ENQUEUE_STATE) != 0 && message->extra != NULL) {
        words = hk_bytes(message->extra->words, message->extra->words_length);
    }
    hk_bytes_t parts[] = {hk_bytes(head, length), words, content};
    uint64_t current = hk_journal_current(broker->journal);
    hk_status_t status =
        hk_ledger_reserve(broker, current) == HK_OK ? hk_ledger_reserve(broker, current + 1) : HK_NO_MEMORY;
    hk_journal_record_t record;
    if (status == HK_OK) {
        status = append_enqueue(broker, message->queue, flags, parts, &record);
    }
    if (status != HK_OK) {
        return status;
    }
    message->piece = hk_piece_retain(record.piece);
    message->offset = (uint32_t)(record.body.at - record.piece->bytes) + (uint32_t)(length + words.length);
    message->bytes = (uint32_t)content.length;
    message->head = words.length == 0 ? (uint32_t)(length / 4) & 31U : 0;
    if (words.length > 0) {
        message->extra->head = (uint16_t)(length + words.length);
    }
    broker->ledger.filled = record.offset + (uint32_t)record.body.length;
    hk_ledger_add(broker, message);
    return HK_OK;
}

/* -- FREE and STATE ------------------------------------------------------------------------------------------------ */

hk_status_t hk_store_reserve_freed(hk_broker_t *broker, size_t count)
{
    hk_status_t status = hk_buf_reserve(&broker->freed, 8 * count);
    return status == HK_OK ? hk_buf_reserve(&broker->freed_in, 8 * count) : status;
}

static void add_number(hk_buf_t *buf, uint64_t number)
{
    hk_frame_put64(hk_buf_end(buf), number);
    hk_buf_grew(buf, 8);
}

void hk_store_freed(hk_broker_t *broker, const hk_message_t *message)
{
    hk_ledger_subtract(broker, message);
    add_number(&broker->freed, message->id);
    uint64_t segment = message->piece->segment;
    hk_buf_t *in = &broker->freed_in;
    if (in->length == 0 || hk_frame_u64(hk_buf_end(in) - 8) != segment) {
        add_number(in, segment);
    }
}

hk_status_t hk_store_flush_freed(hk_broker_t *broker)
{
    while (broker->freed.length > 0) {
        hk_bytes_t ids = hk_buf_bytes(&broker->freed);
        ids.length = ids.length < 8 * FREED_IN_RECORD ? ids.length : 8 * FREED_IN_RECORD;
        hk_journal_record_t record;
        hk_status_t status = append(broker, HK_RECORD_FREE, 0, &ids, 1, true, &record);
        if (status != HK_OK) {
            return status;
        }
        hk_bytes_t in = hk_buf_bytes(&broker->freed_in);
        for (size_t at = 0; at < in.length; at += 8) {
            hk_ledger_refer(broker, record.segment, hk_frame_u64(in.at + at));
        }
        hk_buf_consume(&broker->freed, ids.length);
    }
    hk_buf_clear(&broker->freed_in);
    return HK_OK;
}

hk_status_t hk_store_state(hk_broker_t *broker, const hk_message_t *message, uint32_t delay)
{
    if (!hk_message_recorded(message)) {
        return HK_OK;
    }
    char body[HK_RECORD_STATE_BYTES + HK_RECORD_DELAY_BYTES];
    size_t length = HK_RECORD_STATE_BYTES;
    uint64_t due = delay == 0 ? 0 : broker->wall + delay;
    hk_frame_put64(body, message->id);
    hk_frame_put64(body + 8, due);
    put_numbers(body + 16, message, message->state == HK_STATE_DEAD);
    if (delay > 0) {
        hk_frame_put32(body + length, delay);
        length += HK_RECORD_DELAY_BYTES;
    }
    if (message->extra != NULL) {
        message->extra->due_wall = due;
    }
    hk_bytes_t words = {0};
    if (message->extra != NULL) {
        words = hk_bytes(message->extra->words, message->extra->words_length);
    }
    hk_bytes_t parts[] = {hk_bytes(body, length), words};
    hk_journal_record_t record;
    hk_status_t status = append(broker, HK_RECORD_STATE, delay > 0 ? HK_RECORD_STATE_DELAYED : 0, parts, 2,
                                takes_more_than_frees(broker->journal), &record);
    if (status == HK_OK) {
        hk_ledger_refer(broker, record.segment, message->piece->segment);
    }
    return status;
}
