#include "hk_broker_producer_private.h"
#include "hk_broker_store_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* Why a message is not taken. */
typedef struct reason {
    hk_code_t code;
    const char *sentence;
    char text[256]; /* of a sentence with numbers */
} reason_t;

static bool refused(reason_t *reason, hk_code_t code, const char *sentence)
{
    reason->code = code;
    reason->sentence = sentence;
    return false;
}

/* -- What is common to SEND and SEND_BATCH ------------------------------------------------------------------------- */

static bool is_last(const hk_session_t *session, const hk_frame_send_t *send)
{
    const hk_queue_t *queue = session->last_queue;
    return queue != NULL && session->last_forgotten == session->broker->queues_forgotten && queue->kind == send->kind &&
           queue->key_length == send->destination.length + 1 &&
           memcmp(queue->key + 1, send->destination.at, send->destination.length) == 0;
}

/* What no message may say, also one that was taken before. Fills in the usual level. *queue: that of the last SEND, if
 * this one goes there, too; else NULL. */
static bool is_sound(const hk_session_t *session, hk_frame_send_t *send, hk_queue_t **queue, reason_t *reason)
{
    if (send->priority >= HK_BROKER_PRIORITIES) {
        return refused(reason, HK_CODE_INVALID, "a priority is 0 to 9");
    }
    send->level = send->level == 255 ? session->broker->options.level : send->level;
    if (send->level > HK_LEVEL_SYNCED) {
        return refused(reason, HK_CODE_INVALID, "a level is 0, 1, 2 or 255");
    }
    if (send->sequence != 0 && session->producer == NULL) {
        return refused(reason, HK_CODE_INVALID, "messages are numbered by clients that have an identity");
    }
    *queue = is_last(session, send) ? session->last_queue : NULL;
    if (*queue != NULL) {
        return true;
    }
    if (send->kind > 1) {
        return refused(reason, HK_CODE_INVALID, "the kind of a destination is 0 or 1");
    }
    return hk_frame_name(send->kind, send->destination) ||
           refused(
               reason, HK_CODE_INVALID,
               "a name has 1 to 255 bytes of UTF-8 without control characters, and a queue's does not begin with @");
}

/* Something new may be taken now, and where to. */
static bool allowed(hk_session_t *session, const hk_frame_send_t *send, hk_queue_t **queue, reason_t *reason)
{
    hk_broker_t *broker = session->broker;
    const hk_broker_options_t *options = &broker->options;
    if (broker->draining) {
        return refused(reason, HK_CODE_DRAINING, "the broker is about to stop");
    }
    if (session->unanswered >= options->window_messages || session->unanswered_bytes >= options->window_bytes) {
        return refused(reason, HK_CODE_OVERLOADED, "too many messages have no answer yet");
    }
    if (send->level > HK_LEVEL_MEMORY && broker->journal == NULL) {
        return refused(reason, HK_CODE_LEVEL, "this broker has no storage: there is level memory alone");
    }
    if (*queue != NULL) {
        return true;
    }
    if (!hk_session_may(session, HK_RIGHT_SEND, send->kind, send->destination)) {
        return refused(reason, HK_CODE_FORBIDDEN, "this client may not send to this queue");
    }
    switch (hk_queue_get(broker, send->kind, send->destination, queue)) {
    case HK_OK:
        session->last_queue = *queue;
        session->last_forgotten = broker->queues_forgotten;
        return true;
    case HK_TOO_MANY:
        return refused(reason, HK_CODE_LIMIT, "there are as many queues as there may be");
    default:
        return refused(reason, HK_CODE_OVERLOADED, "there is no memory for this queue");
    }
}

static const char *full_of(const hk_broker_t *broker)
{
    int shortage = hk_journal_shortage(broker->journal);
    return shortage == EMFILE || shortage == ENFILE ? "the broker may open no other file for its journal"
           : shortage == 0                          ? "the journal has the bytes that it may have (broker_max_storage)"
                                                    : "there is no room on the broker's disk";
}

static bool has_room(hk_broker_t *broker, const hk_queue_t *queue, const hk_frame_send_t *send, size_t bytes,
                     reason_t *reason)
{
    const hk_broker_options_t *options = &broker->options;
    if (HK_FRAME_PUSH_BYTES + bytes > options->max_frame) {
        snprintf(reason->text, sizeof(reason->text),
                 "properties and payload have %zu bytes; a message may have %zu, so that the PUSH that delivers it is "
                 "no larger than the broker's largest frame of %" PRIu32,
                 bytes, (size_t)options->max_frame - HK_FRAME_PUSH_BYTES, options->max_frame);
        return refused(reason, HK_CODE_TOO_BIG, reason->text);
    }
    uint32_t kept_most = hk_broker_message_most(options->segment_bytes, options->max_identities);
    if (send->level > HK_LEVEL_MEMORY && bytes > kept_most) {
        snprintf(reason->text, sizeof(reason->text),
                 "properties and payload have %zu bytes; a message on the disk may have %" PRIu32
                 ", so that it fits into a segment beside %" PRIu32
                 " identities: raise broker_segment_bytes, or lower broker_max_identities",
                 bytes, kept_most, options->max_identities);
        return refused(reason, HK_CODE_TOO_BIG, reason->text);
    }
    if (options->max_queue_bytes > 0 && bytes > options->max_queue_bytes) {
        snprintf(reason->text, sizeof(reason->text),
                 "properties and payload have %zu bytes; a queue may have %" PRIu64 " in all (broker_max_queue_bytes)",
                 bytes, options->max_queue_bytes);
        return refused(reason, HK_CODE_TOO_BIG, reason->text);
    }
    if ((options->max_queue_messages > 0 && hk_queue_messages(queue) >= options->max_queue_messages) ||
        (options->max_queue_bytes > 0 && queue->bytes + bytes > options->max_queue_bytes)) {
        return refused(reason, HK_CODE_QUEUE_FULL, "the queue is full");
    }
    if (!hk_broker_has_memory(broker, send->level == HK_LEVEL_MEMORY ? bytes : 0)) {
        return refused(reason, HK_CODE_OVERLOADED, "messages take as much memory as broker_max_memory permits");
    }
    return send->level == HK_LEVEL_MEMORY || !hk_store_full(broker) ||
           refused(reason, HK_CODE_DISK_FULL, full_of(broker));
}

/* -- One message --------------------------------------------------------------------------------------------------- */

static hk_status_t set_times(hk_broker_t *broker, hk_message_t *message, const hk_frame_send_t *send)
{
    if (send->time_to_live > 0) {
        hk_extra_t *extra = hk_message_extra(broker, message);
        int64_t expiry = broker->now + send->time_to_live * HK_MS;
        if (extra == NULL || hk_heap_add(&broker->expiries, &extra->expires, expiry) != HK_OK) {
            return HK_NO_MEMORY;
        }
        extra->expiry = expiry;
    }
    return send->delay == 0 ? HK_OK : hk_queue_delay(broker, message, broker->now + send->delay * HK_MS);
}

static bool not_kept(const hk_broker_t *broker, hk_status_t status, reason_t *reason)
{
    switch (status) {
    case HK_TOO_LARGE:
        return hk_journal_full(broker->journal)
                   ? refused(reason, HK_CODE_DISK_FULL, full_of(broker))
                   : refused(reason, HK_CODE_OVERLOADED, "the next segment of the journal is in the making");
    case HK_INVALID:
        return refused(reason, HK_CODE_TOO_BIG, "the message does not fit into a segment of the journal");
    case HK_TOO_MANY:
        return refused(reason, HK_CODE_LIMIT,
                       "as many identities are remembered as may be, and all of them are connected");
    case HK_SYSTEM:
        return refused(reason, HK_CODE_FAILED, "the storage has failed");
    default:
        return refused(reason, HK_CODE_OVERLOADED, "there is no memory for this message");
    }
}

/* Takes a message whose number, if it has one, is new. */
static bool take(hk_session_t *session, hk_queue_t *queue, const hk_frame_send_t *send, uint64_t sequence,
                 uint16_t properties, hk_bytes_t content, reason_t *reason)
{
    hk_broker_t *broker = session->broker;
    hk_producer_t *producer = session->producer;
    bool passing = send->level == HK_LEVEL_MEMORY && broker->journal != NULL;
    if (!has_room(broker, queue, send, content.length, reason)) {
        return false;
    }
    hk_message_t *message = hk_message_new(broker, queue);
    if (message == NULL) {
        return not_kept(broker, HK_NO_MEMORY, reason);
    }
    message->id = broker->next_id;
    message->sent = broker->wall & ((UINT64_C(1) << 46) - 1);
    message->properties = properties;
    message->priority = send->priority & 15U;
    message->level = send->level & 3U;
    hk_status_t status = send->delay > 0 || send->time_to_live > 0 ? set_times(broker, message, send) : HK_OK;
    if (status == HK_OK && broker->next_id >= broker->boot_at) {
        status = hk_store_boot(broker, false);
    }
    if (status == HK_OK && sequence != 0) {
        status = hk_producer_remember(broker, producer, send->level > HK_LEVEL_MEMORY);
        status = status == HK_OK ? hk_producer_reserve(broker, producer, sequence, passing) : status;
    }
    if (status == HK_OK) {
        status = send->level == HK_LEVEL_MEMORY ? hk_message_lay(broker, message, content)
                                                : hk_store_enqueue(broker, message, content, sequence, producer, false);
    }
    if (status != HK_OK) {
        queue->delayed -= message->state == HK_STATE_DELAYED ? 1 : 0;
        hk_message_free(broker, message);
        return not_kept(broker, status, reason);
    }
    broker->next_id++;
    if (sequence != 0) {
        hk_producer_take(producer, sequence, passing);
    }
    queue->sent++;
    queue->bytes += message->bytes;
    broker->stats.received[send->level]++;
    broker->stats.messages++;
    broker->stats.bytes += message->bytes;
    if (message->state != HK_STATE_DELAYED) {
        hk_queue_put(message);
    }
    if (hk_list_holds(&queue->idle)) {
        hk_list_remove(&queue->idle);
    }
    if (!hk_list_empty(&queue->takers) || !hk_list_empty(&queue->aside)) {
        hk_queue_pump(broker, queue);
    }
    return true;
}

/* -- SEND ---------------------------------------------------------------------------------------------------------- */

static void refuse(hk_session_t *session, uint64_t id, const reason_t *reason)
{
    if (reason->code == HK_CODE_FAILED) {
        hk_broker_fail(session->broker);
    } else {
        hk_session_refuse(session, id, reason->code, reason->sentence);
    }
}

/* The message was taken before, maybe a moment ago: its level may not have been reached yet. Where it was to be in
 * memory alone it never will be, whatever is asked for now. The answer counts in the window, full or not: nothing more
 * is read until there is room, so it is exceeded by what was read at once, and no more. */
static void answer_duplicate(hk_session_t *session, const hk_frame_t *frame, const hk_frame_send_t *send)
{
    hk_broker_t *broker = session->broker;
    broker->stats.duplicates++;
    if (frame->id == 0) {
        return;
    }
    if (send->level == HK_LEVEL_MEMORY || broker->journal == NULL) {
        hk_session_ack_now(
            session, &(hk_frame_ack_t){
                         .type = HK_FRAME_SEND, .flags = HK_ACK_DUPLICATE, .level = HK_LEVEL_MEMORY, .id = frame->id});
        return;
    }
    hk_ack_t *ack = hk_session_ack_later(session, HK_FRAME_SEND, send->level, frame->id);
    if (ack == NULL) {
        hk_session_refuse(session, frame->id, HK_CODE_OVERLOADED, "there is no memory for an answer");
        return;
    }
    hk_session_ack_weigh(ack, 1, frame->bytes.length);
    ack->flags = HK_ACK_DUPLICATE;
    ack->level = hk_producer_passes(session->producer, send->sequence) ? HK_LEVEL_MEMORY : send->level;
    broker->wants_sync = broker->wants_sync || send->level == HK_LEVEL_SYNCED;
}

void hk_take_send(hk_session_t *session, const hk_frame_t *frame)
{
    hk_broker_t *broker = session->broker;
    hk_frame_send_t send;
    if (!hk_frame_read_send(frame, &send)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no SEND");
        return;
    }
    reason_t reason;
    hk_queue_t *queue;
    if (!is_sound(session, &send, &queue, &reason) ||
        (send.properties > 0 && !hk_frame_properties(hk_bytes(send.content.at, send.properties)) &&
         !refused(&reason, HK_CODE_INVALID, "properties are pairs of a name and a value"))) {
        refuse(session, frame->id, &reason);
        return;
    }
    hk_number_t number = send.sequence == 0 ? HK_NUMBER_NEW : hk_producer_look(session->producer, send.sequence);
    if (number == HK_NUMBER_TAKEN) {
        answer_duplicate(session, frame, &send);
        return;
    }
    if (!allowed(session, &send, &queue, &reason) ||
        (number == HK_NUMBER_TOO_FAR &&
         !refused(&reason, HK_CODE_SEQUENCE, "this number is too far ahead of what is settled"))) {
        refuse(session, frame->id, &reason);
        return;
    }
    hk_ack_t *ack = NULL;
    if (frame->id != 0 && send.level > HK_LEVEL_MEMORY) {
        ack = hk_session_ack_send(session, send.level, frame->id, broker->next_id, frame->bytes.length);
        if (ack == NULL) {
            hk_session_refuse(session, frame->id, HK_CODE_OVERLOADED, "there is no memory for an answer");
            return;
        }
    }
    uint64_t id = broker->next_id;
    if (!take(session, queue, &send, send.sequence, send.properties, send.content, &reason)) {
        if (ack != NULL) {
            hk_session_ack_never(session, ack);
        }
        refuse(session, frame->id, &reason);
    } else if (ack == NULL && frame->id != 0) {
        hk_session_ack_now(session,
                           &(hk_frame_ack_t){.type = HK_FRAME_SEND, .level = send.level, .id = frame->id, .value = id});
    }
    if (send.level == HK_LEVEL_SYNCED) {
        broker->wants_sync = true;
    }
}

/* -- SEND_BATCH ---------------------------------------------------------------------------------------------------- */

enum { REFUSAL_BYTES = 12 };

typedef struct batch {
    uint32_t taken, duplicates, refused;
    uint64_t first; /* id */
    bool passing;   /* one that was taken before is in memory alone */
    bool barred;    /* nothing new is taken, why says the reason */
    reason_t reason;
    char *refusals;
} batch_t;

static void put_refusal(hk_broker_t *broker, batch_t *batch, uint32_t index, hk_code_t code)
{
    char *at = batch->refusals + REFUSAL_BYTES * (size_t)batch->refused++;
    hk_frame_put32(at, index);
    hk_frame_put16(at + 4, (uint16_t)code);
    hk_frame_put16(at + 6, 0);
    hk_frame_put32(at + 8, code == HK_CODE_DRAINING ? broker->retry_after : hk_code_retry_after(code));
    broker->stats.refused[code]++;
}

/* Numbers end, and do not begin anew. */
static hk_number_t look_from(const hk_producer_t *producer, uint64_t first, uint32_t index)
{
    return first > UINT64_MAX - index ? HK_NUMBER_TOO_FAR : hk_producer_look(producer, first + index);
}

static bool repeats(const hk_session_t *session, const hk_frame_send_t *send)
{
    for (uint32_t i = 0; send->sequence != 0 && i < send->count; i++) {
        if (look_from(session->producer, send->sequence, i) == HK_NUMBER_TAKEN) {
            return true;
        }
    }
    return false;
}

static void take_items(hk_session_t *session, hk_queue_t *queue, const hk_frame_send_t *send, batch_t *batch)
{
    hk_broker_t *broker = session->broker;
    hk_bytes_t rest = send->content;
    for (uint32_t i = 0; i < send->count; i++) {
        uint16_t properties;
        hk_bytes_t content;
        hk_frame_next_item(&rest, &properties, &content);
        uint64_t sequence = send->sequence == 0 ? 0 : send->sequence + i;
        hk_number_t number = send->sequence == 0 ? HK_NUMBER_NEW : look_from(session->producer, send->sequence, i);
        if (!hk_frame_properties(hk_bytes(content.at, properties))) {
            put_refusal(broker, batch, i, HK_CODE_INVALID);
        } else if (number == HK_NUMBER_TAKEN) {
            batch->duplicates++;
            batch->passing = batch->passing || hk_producer_passes(session->producer, sequence);
            broker->stats.duplicates++;
        } else if (batch->barred) {
            put_refusal(broker, batch, i, batch->reason.code);
        } else if (number == HK_NUMBER_TOO_FAR) {
            put_refusal(broker, batch, i, HK_CODE_SEQUENCE);
        } else if (take(session, queue, send, sequence, properties, content, &batch->reason)) {
            batch->taken++;
        } else {
            put_refusal(broker, batch, i, batch->reason.code);
            /* What follows may not be taken before this one, which is sent again. */
            batch->barred = hk_code_later(batch->reason.code);
        }
    }
}

/* Where a part of it was taken before, that is acknowledged, whatever becomes of the rest. */
static bool prepare_batch(hk_session_t *session, hk_frame_send_t *send, hk_queue_t **queue, batch_t *batch)
{
    reason_t *reason = &batch->reason;
    if (!is_sound(session, send, queue, reason)) {
        return false;
    }
    if (send->count == 0 || send->count > UINT16_MAX) {
        return refused(reason, HK_CODE_INVALID, "a batch has 1 to 65,535 messages");
    }
    if (HK_FRAME_ACK_BYTES + REFUSAL_BYTES * (size_t)send->count > session->max_frame) {
        return refused(reason, HK_CODE_TOO_BIG, "its ACK may become larger than the largest frame of this client");
    }
    if (allowed(session, send, queue, reason)) {
        return true;
    }
    batch->barred = true;
    send->level = session->broker->journal == NULL ? HK_LEVEL_MEMORY : send->level;
    return repeats(session, send);
}

void hk_take_send_batch(hk_session_t *session, const hk_frame_t *frame)
{
    hk_broker_t *broker = session->broker;
    hk_frame_send_t send;
    if (!hk_frame_read_batch(frame, &send)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no SEND_BATCH");
        return;
    }
    batch_t batch = {.first = broker->next_id};
    hk_queue_t *queue;
    if (!prepare_batch(session, &send, &queue, &batch)) {
        refuse(session, frame->id, &batch.reason);
        return;
    }
    batch.refusals = hk_alloc_new(broker->alloc, REFUSAL_BYTES * (size_t)send.count);
    hk_ack_t *ack =
        batch.refusals == NULL ? NULL : hk_session_ack_later(session, HK_FRAME_SEND_BATCH, send.level, frame->id);
    if (ack == NULL) {
        hk_alloc_free(broker->alloc, batch.refusals);
        hk_session_refuse(session, frame->id, HK_CODE_OVERLOADED, "there is no memory for this batch");
        return;
    }
    take_items(session, queue, &send, &batch);
    if (frame->id == 0) {
        hk_alloc_free(broker->alloc, batch.refusals);
        hk_session_ack_never(session, ack);
    } else {
        hk_session_ack_weigh(ack, send.count, frame->bytes.length);
        ack->level = batch.passing ? HK_LEVEL_MEMORY : send.level;
        ack->flags = batch.duplicates > 0 ? HK_ACK_DUPLICATE : 0;
        ack->count = batch.taken + batch.duplicates;
        ack->value = batch.taken == 0 || batch.duplicates > 0 ? 0 : batch.first;
        ack->refused = batch.refusals;
        ack->refusals = (uint16_t)batch.refused;
    }
    broker->wants_sync = broker->wants_sync || send.level == HK_LEVEL_SYNCED;
    if (send.level == HK_LEVEL_MEMORY) {
        ack->position = 0;
        hk_broker_acknowledge(broker, HK_LEVEL_MEMORY, 0);
    }
    if (broker->journal != NULL && hk_journal_trouble(broker->journal) != NULL) {
        hk_broker_fail(broker);
    }
}
