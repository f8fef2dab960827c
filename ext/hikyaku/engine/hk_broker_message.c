#include "hk_broker_private.h"
#include "hk_broker_store_private.h"

hk_message_t *hk_message_new(hk_broker_t *broker, hk_queue_t *queue)
{
    hk_message_t *message = hk_slab_new(&broker->messages);
    if (message != NULL) {
        *message = (hk_message_t){.queue = queue};
    }
    return message;
}

void hk_message_free(hk_broker_t *broker, hk_message_t *message)
{
    if (message->extra != NULL) {
        hk_message_drop_extra(broker, message);
    }
    hk_piece_release(message->piece);
    message->queue = NULL;
    hk_slab_free(&broker->messages, message);
}

hk_extra_t *hk_message_extra(hk_broker_t *broker, hk_message_t *message)
{
    if (message->extra == NULL) {
        hk_extra_t *extra = hk_slab_new(&broker->extras);
        if (extra == NULL) {
            return NULL;
        }
        *extra = (hk_extra_t){.message = message, .expiry = INT64_MAX};
        message->extra = extra;
    }
    return message->extra;
}

void hk_message_drop_extra(hk_broker_t *broker, hk_message_t *message)
{
    hk_extra_t *extra = message->extra;
    hk_heap_remove(&broker->due, &extra->due);
    hk_heap_remove(&broker->expiries, &extra->expires);
    hk_alloc_free(broker->alloc, extra->words);
    hk_slab_free(&broker->extras, extra);
    message->extra = NULL;
}

void hk_message_say(hk_broker_t *broker, hk_message_t *message, hk_bytes_t words)
{
    if (message->extra != NULL) {
        hk_alloc_free(broker->alloc, message->extra->words);
        message->extra->words = NULL;
        message->extra->words_length = 0;
    }
    if (words.length == 0) {
        return;
    }
    hk_extra_t *extra = hk_message_extra(broker, message);
    char *copy = extra == NULL ? NULL : hk_alloc_new(broker->alloc, words.length);
    if (copy != NULL) {
        memcpy(copy, words.at, words.length);
        extra->words = copy;
        extra->words_length = (uint16_t)words.length;
    }
}

/* -- Where its bytes are ------------------------------------------------------------------------------------------- */

/* As long as there is room, what was written stands in memory, too. */
uint64_t hk_broker_memory(const hk_broker_t *broker)
{
    uint64_t most = broker->options.max_memory, all = broker->stats.bytes;
    return all <= most ? all : broker->held_bytes > most ? broker->held_bytes : most;
}

/* Pieces that one message holds, and what messages take beside their bytes, are counted roughly. */
bool hk_broker_has_memory(const hk_broker_t *broker, size_t bytes)
{
    uint64_t most = broker->options.max_memory, roughly = 2 * most + 1024 * 1024;
    return hk_broker_memory(broker) + bytes <= most && broker->arena->bytes <= roughly &&
           broker->messages.bytes <= roughly;
}

hk_status_t hk_message_lay(hk_broker_t *broker, hk_message_t *message, hk_bytes_t content)
{
    hk_piece_t *piece = broker->filling;
    if (piece != NULL && piece->references == 1) {
        /* Nobody needs what was laid there before. */
        piece->used = 0;
    }
    if (piece == NULL || piece->size - piece->used < content.length) {
        piece = hk_piece_new(broker->arena, content.length);
        if (piece == NULL) {
            return HK_NO_MEMORY;
        }
        hk_piece_release(broker->filling);
        broker->filling = piece;
    }
    if (content.length > 0) {
        memcpy(piece->bytes + piece->used, content.at, content.length);
    }
    message->piece = hk_piece_retain(piece);
    message->offset = piece->used;
    message->bytes = (uint32_t)content.length;
    piece->used += (uint32_t)content.length;
    broker->held_bytes += content.length;
    return HK_OK;
}

hk_status_t hk_message_content(hk_broker_t *broker, const hk_message_t *message, hk_piece_t **piece, hk_bytes_t *bytes)
{
    hk_piece_t *held = message->piece;
    if (held->bytes != NULL) {
        *piece = hk_piece_retain(held);
        *bytes = hk_bytes(held->bytes + message->offset, message->bytes);
        return HK_OK;
    }
    uint32_t head = message->head > 0 ? message->head * 4U : message->extra->head;
    hk_journal_record_t record;
    hk_status_t status =
        hk_journal_reread(broker->journal, held->segment, held->offset + message->offset - head, &record);
    if (status != HK_OK) {
        return status == HK_NO_MEMORY ? status : HK_SYSTEM;
    }
    if (record.body.length != (size_t)head + message->bytes) {
        hk_piece_release(record.piece);
        return HK_SYSTEM;
    }
    *piece = record.piece;
    *bytes = hk_bytes(record.body.at + head, message->bytes);
    return HK_OK;
}

void hk_message_done(hk_broker_t *broker, hk_message_t *message)
{
    hk_queue_t *queue = message->queue;
    queue->bytes -= message->bytes;
    broker->stats.bytes -= message->bytes;
    broker->stats.messages--;
    if (hk_message_recorded(message)) {
        hk_store_freed(broker, message);
    } else {
        broker->held_bytes -= message->bytes;
    }
    if (message->state != HK_STATE_WAITS) {
        hk_message_free(broker, message);
        return;
    }
    queue->ready--;
    queue->gone++;
    message->state = HK_STATE_GONE;
    if (message->extra != NULL) {
        hk_message_drop_extra(broker, message);
    }
    hk_piece_release(message->piece);
    message->piece = NULL;
}

bool hk_message_expire(hk_broker_t *broker, hk_message_t *message)
{
    hk_queue_t *queue = message->queue;
    if (message->state != HK_STATE_WAITS && message->state != HK_STATE_DELAYED) {
        return true;
    }
    if (hk_message_recorded(message) && hk_store_reserve_freed(broker, 1) != HK_OK) {
        return false;
    }
    queue->expired++;
    broker->stats.expired++;
    if (message->state == HK_STATE_DELAYED) {
        queue->delayed--;
    }
    hk_message_done(broker, message);
    hk_queue_touch(broker, queue);
    if (!hk_list_empty(&queue->aside)) {
        /* Those may take the next one. */
        hk_queue_pump_soon(broker, queue);
    }
    return true;
}
