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
    broker->words_bytes -= extra->words_length;
    hk_slab_free(&broker->extras, extra);
    message->extra = NULL;
}

void hk_message_say(hk_broker_t *broker, hk_message_t *message, hk_bytes_t words)
{
    if (message->extra != NULL) {
        hk_alloc_free(broker->alloc, message->extra->words);
        broker->words_bytes -= message->extra->words_length;
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
        broker->words_bytes += words.length;
    }
}

/* -- Where its bytes are ------------------------------------------------------------------------------------------- */

/* Of what was written, so much at most stands in memory, too. */
#define IMAGE_MOST ((uint64_t)64 * 1024 * 1024)

uint64_t hk_broker_index(const hk_broker_t *broker)
{
    return (uint64_t)broker->messages.count * sizeof(hk_message_t) +
           (uint64_t)broker->extras.count * (sizeof(hk_extra_t) + 2 * sizeof(hk_heap_node_t *)) +
           (uint64_t)broker->deliveries.count * sizeof(hk_delivery_t) + broker->words_bytes;
}

/* What has to stand in memory. */
static uint64_t needed(const hk_broker_t *broker)
{
    return broker->held_bytes + hk_broker_index(broker);
}

size_t hk_broker_image_most(const hk_broker_t *broker)
{
    uint64_t all = broker->options.max_memory, used = needed(broker), left = used < all ? all - used : 0;
    uint64_t most = all / 4 < IMAGE_MOST ? all / 4 : IMAGE_MOST;
    return (size_t)(left < most ? left : most);
}

uint64_t hk_broker_memory(const hk_broker_t *broker)
{
    uint64_t written = broker->stats.bytes - broker->held_bytes, most = hk_broker_image_most(broker);
    return needed(broker) + (written < most ? written : most);
}

/* Of pieces that few messages hold together the rest counts, too, but roughly. */
bool hk_broker_has_memory(const hk_broker_t *broker, size_t bytes)
{
    const hk_arena_t *arena = broker->arena;
    uint64_t most = broker->options.max_memory,
             pieces = arena->bytes - arena->idle_count * (uint64_t)arena->piece_bytes;
    return needed(broker) + sizeof(hk_message_t) + bytes <= most &&
           (bytes == 0 || pieces <= most + most / 4 + 4 * (uint64_t)arena->piece_bytes);
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
        return status == HK_NO_MEMORY || status == HK_AGAIN ? status : HK_SYSTEM;
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
