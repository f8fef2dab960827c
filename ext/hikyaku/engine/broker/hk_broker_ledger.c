#include "hk_broker_private.h"
#include "hk_broker_store_private.h"

/* A segment is needed while a message stands in it that is not done with, and while a FREE, STATE or COPY in it speaks
 * of a message in another segment that is still there: else that message would come back as it was.
 *
 *     segment 1   ENQUEUE 7 ◄──────┐
 *     segment 2   ENQUEUE 8        │ needs segment 1 gone first
 *     segment 3   FREE 7 ──────────┘
 *
 * That a message was copied is synced before the segment goes in which it stood before: DROPPED stands behind the
 * copy, and a file goes only when its DROPPED is on the disk. */

enum {
    OVERHEAD = 64,            /* of a message's record, about */
    MANY = 4,                 /* segments, from which on the oldest is evacuated */
    SLABS = 32,               /* of messages, looked through in one tick */
    COPIED_BYTES = 256 * 1024 /* in one tick */
};

/* -- Rows ---------------------------------------------------------------------------------------------------------- */

hk_ledger_row_t *hk_ledger_row(hk_broker_t *broker, uint64_t segment)
{
    const hk_ledger_t *ledger = &broker->ledger;
    return segment < ledger->first || segment - ledger->first >= ledger->count ? NULL
                                                                               : ledger->rows[segment - ledger->first];
}

static hk_status_t grow(hk_broker_t *broker, uint64_t segment)
{
    hk_ledger_t *ledger = &broker->ledger;
    if (ledger->count == 0) {
        ledger->first = segment;
    }
    if (segment < ledger->first) {
        return HK_INVALID;
    }
    size_t count = (size_t)(segment - ledger->first) + 1;
    if (count > ledger->capacity) {
        size_t capacity = count < 16 ? 16 : 2 * count;
        hk_ledger_row_t **rows = hk_alloc_resize(broker->alloc, ledger->rows, capacity, sizeof(hk_ledger_row_t *));
        if (rows == NULL) {
            return HK_NO_MEMORY;
        }
        ledger->rows = rows;
        ledger->capacity = capacity;
    }
    while (ledger->count < count) {
        ledger->rows[ledger->count++] = NULL;
    }
    return HK_OK;
}

hk_status_t hk_ledger_reserve(hk_broker_t *broker, uint64_t segment)
{
    if (hk_ledger_row(broker, segment) != NULL) {
        return HK_OK;
    }
    hk_ledger_row_t *row = hk_alloc_zeroed(broker->alloc, 1, sizeof(*row));
    hk_status_t status = row == NULL ? HK_NO_MEMORY : grow(broker, segment);
    if (status != HK_OK) {
        hk_alloc_free(broker->alloc, row);
        return status;
    }
    row->number = segment;
    row->stub = (hk_piece_t){.references = 1, .segment = segment};
    broker->ledger.rows[segment - broker->ledger.first] = row;
    broker->ledger.dirty = true;
    return HK_OK;
}

static void free_row(hk_broker_t *broker, hk_ledger_row_t *row)
{
    if (row != NULL) {
        hk_alloc_free(broker->alloc, row->refers);
        hk_alloc_free(broker->alloc, row);
    }
}

void hk_ledger_release(hk_broker_t *broker)
{
    hk_ledger_t *ledger = &broker->ledger;
    for (size_t i = 0; i < ledger->count; i++) {
        free_row(broker, ledger->rows[i]);
    }
    hk_alloc_free(broker->alloc, ledger->rows);
    *ledger = (hk_ledger_t){0};
}

/* -- What stands where --------------------------------------------------------------------------------------------- */

void hk_ledger_add(hk_broker_t *broker, const hk_message_t *message)
{
    hk_ledger_row_t *row = hk_ledger_row(broker, message->piece->segment);
    row->live++;
    broker->ledger.live_bytes += message->bytes + (uint64_t)OVERHEAD;
}

void hk_ledger_subtract(hk_broker_t *broker, const hk_message_t *message)
{
    hk_ledger_row_t *row = hk_ledger_row(broker, message->piece->segment);
    broker->ledger.live_bytes -= message->bytes + (uint64_t)OVERHEAD;
    if (--row->live == 0) {
        broker->ledger.dirty = true;
    }
}

void hk_ledger_refer(hk_broker_t *broker, uint64_t segment, uint64_t other)
{
    hk_ledger_row_t *row = hk_ledger_row(broker, segment);
    if (segment == other || row == NULL || hk_ledger_row(broker, other) == NULL) {
        return;
    }
    for (uint32_t i = row->refer_count; i > 0; i--) {
        if (row->refers[i - 1] == other) {
            return;
        }
    }
    if (row->refer_count == row->refer_capacity) {
        uint32_t capacity = row->refer_capacity == 0 ? 4 : 2 * row->refer_capacity;
        uint64_t *refers = hk_alloc_resize(broker->alloc, row->refers, capacity, sizeof(*refers));
        if (refers == NULL) {
            row->refers_to_all = true;
            return;
        }
        row->refers = refers;
        row->refer_capacity = capacity;
    }
    row->refers[row->refer_count++] = other;
}

/* -- Dropping ------------------------------------------------------------------------------------------------------ */

/* It is dropped, and will never be read again. A segment from before this start may have to wait for the one before
 * it, whose end was torn: what follows that stays until it goes. */
static bool is_gone(hk_broker_t *broker, uint64_t segment)
{
    for (;; segment--) {
        const hk_ledger_row_t *row = hk_ledger_row(broker, segment);
        if (row == NULL || (row->dropped && segment > broker->ledger.first_own)) {
            return true;
        }
        if (!row->dropped) {
            return false;
        }
    }
}

static bool is_needed(hk_broker_t *broker, hk_ledger_row_t *row)
{
    if (row->live > 0) {
        return true;
    }
    if (row->refers_to_all) {
        for (uint64_t other = broker->ledger.first; other < row->number; other++) {
            if (!is_gone(broker, other)) {
                return true;
            }
        }
        return false;
    }
    uint32_t kept = 0;
    for (uint32_t i = 0; i < row->refer_count; i++) {
        if (!is_gone(broker, row->refers[i])) {
            row->refers[kept++] = row->refers[i];
        }
    }
    row->refer_count = kept;
    return kept > 0;
}

/* Rows at the beginning that nobody has to know any more. */
static void forget_gone(hk_broker_t *broker)
{
    hk_ledger_t *ledger = &broker->ledger;
    size_t gone = 0;
    while (gone < ledger->count && (ledger->rows[gone] == NULL || ledger->rows[gone]->dropped)) {
        free_row(broker, ledger->rows[gone++]);
    }
    ledger->count -= gone;
    ledger->first += gone;
    if (gone > 0) {
        memmove(ledger->rows, ledger->rows + gone, ledger->count * sizeof(hk_ledger_row_t *));
    }
}

void hk_ledger_drop(hk_broker_t *broker)
{
    hk_ledger_t *ledger = &broker->ledger;
    uint64_t current = hk_journal_current(broker->journal);
    if (current != ledger->current) {
        ledger->current = current;
        ledger->dirty = true;
    }
    if (!ledger->dirty) {
        return;
    }
    ledger->dirty = hk_ledger_reserve(broker, current) != HK_OK;
    /* In the order of their numbers: one that goes may let the next ones go. */
    for (size_t i = 0; i < ledger->count; i++) {
        hk_ledger_row_t *row = ledger->rows[i];
        if (row == NULL || row->dropped || row->number >= current || is_needed(broker, row)) {
            continue;
        }
        if (hk_journal_drop(broker->journal, row->number) == HK_NO_MEMORY) {
            ledger->dirty = true;
            break;
        }
        row->dropped = true;
    }
    forget_gone(broker);
}

/* -- Evacuating ---------------------------------------------------------------------------------------------------- */

/* The oldest with messages, when most of what the journal holds is not needed; 0: none. */
static uint64_t straggling(const hk_broker_t *broker)
{
    const hk_ledger_t *ledger = &broker->ledger;
    const hk_ledger_row_t *oldest = NULL;
    uint64_t standing = 0;
    for (size_t i = 0; i < ledger->count; i++) {
        const hk_ledger_row_t *row = ledger->rows[i];
        if (row != NULL && !row->dropped && row->number <= ledger->current) {
            oldest = oldest == NULL && row->live > 0 ? row : oldest;
            standing++;
        }
    }
    uint32_t bytes = broker->options.segment_bytes == 0 ? HK_JOURNAL_SEGMENT_USUAL : broker->options.segment_bytes;
    bool wasteful = standing >= MANY && standing * bytes > 2 * ledger->live_bytes;
    return wasteful && oldest != NULL && oldest->number != ledger->current ? oldest->number : 0;
}

typedef struct evacuation {
    hk_broker_t *broker;
    size_t bytes; /* that may still be copied */
    hk_status_t status;
    bool skipped;
} evacuation_t;

static hk_status_t copy(hk_broker_t *broker, hk_message_t *message)
{
    hk_piece_t *piece, *old = message->piece;
    hk_bytes_t content;
    hk_status_t status = hk_message_content(broker, message, &piece, &content);
    if (status != HK_OK) {
        return status;
    }
    hk_message_t before = *message;
    status = hk_store_enqueue(broker, message, content, 0, NULL, true);
    hk_piece_release(piece);
    if (status == HK_OK) {
        hk_ledger_subtract(broker, &before);
        hk_ledger_refer(broker, message->piece->segment, old->segment);
        hk_piece_release(old);
        broker->stats.copied++;
    }
    return status;
}

static void visit(void *context, void *item)
{
    evacuation_t *evacuation = context;
    hk_message_t *message = item;
    if (message->queue == NULL || message->piece == NULL || evacuation->status != HK_OK ||
        message->piece->segment != evacuation->broker->ledger.evacuated) {
        return;
    }
    if (message->bytes > evacuation->bytes) {
        evacuation->skipped = true;
        return;
    }
    evacuation->status = copy(evacuation->broker, message);
    evacuation->bytes -= message->bytes;
}

static void evacuate(hk_broker_t *broker)
{
    hk_ledger_t *ledger = &broker->ledger;
    hk_slab_pool_t *messages = &broker->messages;
    evacuation_t evacuation = {.broker = broker, .bytes = COPIED_BYTES + broker->options.max_frame, .status = HK_OK};
    for (int i = 0; i < SLABS && evacuation.bytes > broker->options.max_frame; i++) {
        hk_slab_chunk_t *walked = messages->walked;
        uint32_t slab = messages->walked_slab;
        if (!hk_slab_step(messages, visit, &evacuation)) {
            ledger->evacuated = 0;
            return;
        }
        if (evacuation.skipped) {
            messages->walked = walked;
            messages->walked_slab = slab;
            return;
        }
        if (evacuation.status == HK_SYSTEM) {
            hk_broker_fail(broker);
        }
        if (evacuation.status != HK_OK) {
            ledger->evacuated = 0;
            ledger->rests_until = broker->now + HK_BROKER_RETRY_MS * HK_MS;
            return;
        }
    }
}

bool hk_ledger_due(const hk_broker_t *broker)
{
    return broker->ledger.rests_until <= broker->now && (broker->ledger.evacuated != 0 || straggling(broker) != 0);
}

void hk_ledger_work(hk_broker_t *broker)
{
    hk_ledger_t *ledger = &broker->ledger;
    if (!hk_ledger_due(broker)) {
        return;
    }
    if (ledger->evacuated == 0) {
        ledger->evacuated = straggling(broker);
        hk_slab_walk(&broker->messages);
    }
    evacuate(broker);
}
