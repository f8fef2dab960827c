#include "hk_broker_lapse_private.h"
#include "hk_broker_store_private.h"

/* -- What a request is about --------------------------------------------------------------------------------------- */

static void stale(hk_session_t *session, uint64_t id, uint64_t delivery)
{
    session->broker->stats.stale++;
    hk_session_complain(session, &(hk_complaint_t){.id = id,
                                                   .delivery = delivery,
                                                   .code = HK_CODE_STALE,
                                                   .sentence = "the lease of this delivery has ended"});
    hk_session_heard(session, NULL);
}

static void no_memory(hk_session_t *session, uint64_t id)
{
    hk_session_refuse(session, id, HK_CODE_OVERLOADED, "there is no memory for this request");
}

typedef bool hk_each_t(hk_session_t *session, hk_delivery_t *delivery, void *context);

/* Calls `each` for these, as long as it is true; how many. */
static uint32_t each_number(hk_session_t *session, hk_bytes_t numbers, hk_each_t *each, void *context)
{
    uint32_t count = 0;
    for (size_t at = 0; at < numbers.length; at += 8) {
        uint64_t number;
        memcpy(&number, numbers.at + at, sizeof(number));
        hk_delivery_t *delivery = hk_session_delivery(session, number);
        if (delivery != NULL && !each(session, delivery, context)) {
            break;
        }
        count += delivery != NULL ? 1 : 0;
    }
    return count;
}

/* Which of a long range are out is asked of the slots. */
static hk_status_t collect(hk_session_t *session, uint64_t first, uint64_t last, hk_buf_t *numbers)
{
    hk_buf_clear(numbers);
    for (uint32_t i = 0; i < session->slot_count; i++) {
        for (hk_delivery_t *delivery = session->slots[i]; delivery != NULL; delivery = delivery->chain) {
            uint64_t number = delivery->number;
            if (number >= first && number <= last &&
                hk_buf_append(numbers, hk_bytes((const char *)&number, sizeof(number))) != HK_OK) {
                return HK_NO_MEMORY;
            }
        }
    }
    return HK_OK;
}

/* Calls `each`, which may end it, for the deliveries of a range that are out, as long as it is true; how many. */
static uint32_t each_of(hk_session_t *session, uint64_t first, uint64_t last, hk_each_t *each, void *context)
{
    uint64_t lowest = (session->number << HK_BROKER_SESSION_BITS) + 1;
    first = first < lowest ? lowest : first;
    last = last >= session->next_delivery ? session->next_delivery - 1 : last;
    if (session->out_count == 0 || first > last) {
        return 0;
    }
    if (last - first >= 2 * (uint64_t)session->slot_count) {
        hk_buf_t *numbers = &session->broker->scratch;
        return collect(session, first, last, numbers) == HK_OK
                   ? each_number(session, hk_buf_bytes(numbers), each, context)
                   : 0;
    }
    uint32_t count = 0;
    for (uint64_t number = first; number <= last && session->out_count > 0; number++) {
        hk_delivery_t *delivery = hk_session_delivery(session, number);
        if (delivery != NULL && !each(session, delivery, context)) {
            break;
        }
        count += delivery != NULL ? 1 : 0;
    }
    return count;
}

/* -- FREE ---------------------------------------------------------------------------------------------------------- */

static void end_freed(hk_broker_t *broker, hk_delivery_t *delivery)
{
    hk_message_t *message = hk_delivery_end(broker, delivery);
    hk_queue_t *queue = message->queue;
    queue->freed++;
    broker->stats.freed++;
    hk_message_done(broker, message);
    if (queue->waiting != 0 || queue->suspects.first != NULL) {
        hk_queue_pump(broker, queue);
    }
    if (queue->ready == 0) {
        hk_queue_touch(broker, queue);
    }
}

typedef struct freeing {
    bool recorded, no_memory;
} freeing_t;

static bool free_one(hk_session_t *session, hk_delivery_t *delivery, void *context)
{
    freeing_t *freeing = context;
    if (hk_store_reserve_freed(session->broker, 1) != HK_OK) {
        freeing->no_memory = true;
        return false;
    }
    freeing->recorded = freeing->recorded || hk_message_recorded(delivery->message);
    const hk_queue_t *queue = delivery->message->queue;
    end_freed(session->broker, delivery);
    hk_session_heard(session, queue);
    return true;
}

void hk_take_free(hk_session_t *session, const hk_frame_t *frame)
{
    hk_broker_t *broker = session->broker;
    if (!hk_frame_read_plain(frame, 32)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "FREE has 32 bytes, two flags and no subscription");
        return;
    }
    uint64_t first = hk_frame_u64(frame->bytes.at + 16), last = hk_frame_u64(frame->bytes.at + 24);
    uint8_t usual = broker->journal == NULL ? HK_LEVEL_MEMORY : HK_LEVEL_WRITTEN;
    uint8_t level = frame->flags == 0 ? usual : (uint8_t)(frame->flags - 1);
    if (level > HK_LEVEL_MEMORY && broker->journal == NULL) {
        hk_session_refuse(session, frame->id, HK_CODE_LEVEL, "this broker has no storage");
        return;
    }
    if (first > last) {
        hk_session_refuse(session, frame->id, HK_CODE_INVALID, "the first delivery comes after the last");
        return;
    }
    if (first == last && hk_session_delivery(session, first) == NULL) {
        stale(session, frame->id, first);
        return;
    }
    hk_ack_t *ack = NULL;
    if (frame->id != 0 && level > HK_LEVEL_MEMORY) {
        ack = hk_session_ack_later(session, HK_FRAME_FREE, level, frame->id);
        if (ack == NULL) {
            no_memory(session, frame->id);
            return;
        }
    }
    freeing_t freeing = {0};
    uint32_t count;
    if (first == last) {
        hk_delivery_t *delivery = hk_session_delivery(session, first);
        count = free_one(session, delivery, &freeing) ? 1 : 0;
    } else {
        count = each_of(session, first, last, free_one, &freeing);
        if (session->lapsed > 0) {
            hk_session_hear_range(session, first, last);
        }
    }
    if (freeing.no_memory) {
        if (ack != NULL) {
            hk_session_ack_never(session, ack);
        }
        no_memory(session, frame->id);
        return;
    }
    if (level == HK_LEVEL_SYNCED && freeing.recorded) {
        broker->wants_sync = true;
    }
    if (ack != NULL && freeing.recorded) {
        ack->count = count;
        return;
    }
    if (ack != NULL) {
        hk_session_ack_never(session, ack);
    }
    if (frame->id != 0) {
        hk_session_ack_now(session,
                           &(hk_frame_ack_t){.type = HK_FRAME_FREE, .level = level, .count = count, .id = frame->id});
    }
}

/* -- Coming back --------------------------------------------------------------------------------------------------- */

static void raise_count(uint16_t *count)
{
    if (*count < UINT16_MAX) {
        ++*count;
    }
}

/* It waits again, at once or later; where there is no memory to let it wait, at once. Its time may have come meanwhile.
 * HK_OK: it is written down what has become of it. */
static hk_status_t wait_again(hk_broker_t *broker, hk_message_t *message, uint32_t delay)
{
    if (message->extra != NULL && message->extra->expiry <= broker->now &&
        (!hk_message_recorded(message) || hk_store_reserve_freed(broker, 1) == HK_OK)) {
        message->queue->expired++;
        broker->stats.expired++;
        hk_message_done(broker, message);
        return HK_OK;
    }
    if (delay == 0 || hk_queue_delay(broker, message, broker->now + delay * HK_MS) != HK_OK) {
        hk_queue_put(message);
    }
    return hk_store_state(broker, message, delay);
}

static hk_status_t bury(hk_broker_t *broker, hk_message_t *message, uint8_t reason, hk_bytes_t words)
{
    hk_message_say(broker, message, words);
    hk_queue_bury(broker, message, reason);
    return hk_store_state(broker, message, 0);
}

/* Its receiver vanished with it. */
static void crash(hk_broker_t *broker, hk_message_t *message)
{
    raise_count(&message->crashes);
    message->queue->crashed++;
    broker->stats.crashed++;
    if (message->crashes >= broker->options.max_crashes) {
        (void)bury(broker, message, HK_REASON_CRASHES, (hk_bytes_t){0});
    } else {
        (void)wait_again(broker, message, 0);
    }
}

void hk_delivery_expire(hk_broker_t *broker, hk_delivery_t *delivery)
{
    hk_receiver_lapse(delivery);
    hk_message_t *message = hk_delivery_end(broker, delivery);
    hk_queue_t *queue = message->queue;
    crash(broker, message);
    hk_queue_pump(broker, queue);
    hk_queue_touch(broker, queue);
}

static hk_delivery_t *oldest_of(hk_receiver_t *subscription)
{
    hk_delivery_t *oldest = NULL;
    hk_list_t *lists[] = {&subscription->out, &subscription->odd};
    for (int i = 0; i < 2; i++) {
        for (hk_list_t *link = lists[i]->next; link != lists[i]; link = link->next) {
            hk_delivery_t *delivery = HK_OWNER(link, hk_delivery_t, link);
            oldest = oldest == NULL || delivery->number < oldest->number ? delivery : oldest;
        }
    }
    return oldest;
}

static void mark_in_hand(hk_session_t *session)
{
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions; link = link->next) {
        hk_delivery_t *oldest = oldest_of(HK_OWNER(link, hk_receiver_t, link));
        if (oldest != NULL) {
            oldest->in_hand = 1;
        }
    }
}

static void return_one(hk_broker_t *broker, hk_delivery_t *delivery)
{
    bool in_hand = delivery->in_hand && !delivery->subscription->session->drained;
    hk_message_t *message = hk_delivery_end(broker, delivery);
    hk_queue_t *queue = message->queue;
    if (in_hand) {
        crash(broker, message);
    } else {
        raise_count(&message->returns);
        (void)wait_again(broker, message, 0);
    }
    hk_queue_pump(broker, queue);
    hk_queue_touch(broker, queue);
}

void hk_session_return_all(hk_session_t *session)
{
    hk_broker_t *broker = session->broker;
    if (!session->acknowledges) {
        mark_in_hand(session);
    }
    /* In the order in which they were delivered, as far as nothing was touched. */
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions;) {
        hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, link);
        link = link->next;
        for (uint32_t left = subscription->out_count; left > 0; left--) {
            hk_list_t *first = hk_list_first(&subscription->odd);
            first = first == NULL ? hk_list_first(&subscription->out) : first;
            return_one(broker, HK_OWNER(first, hk_delivery_t, link));
        }
    }
}

/* -- NACK ---------------------------------------------------------------------------------------------------------- */

enum { RELEASE, REJECT, DEAD };

/* HK_OK: it is written down. */
static hk_status_t turn_down(hk_broker_t *broker, hk_message_t *message, const hk_frame_nack_t *nack)
{
    if (nack->kind == RELEASE) {
        raise_count(&message->returns);
        broker->stats.released++;
        return wait_again(broker, message, nack->delay);
    }
    message->queue->failed++;
    broker->stats.failed++;
    if (nack->kind == DEAD) {
        raise_count(&message->returns);
        return bury(broker, message, HK_REASON_SAID, nack->words);
    }
    raise_count(&message->failures);
    return message->failures >= broker->options.max_failures ? bury(broker, message, HK_REASON_FAILURES, nack->words)
                                                             : wait_again(broker, message, nack->delay);
}

void hk_take_nack(hk_session_t *session, const hk_frame_t *frame)
{
    hk_broker_t *broker = session->broker;
    hk_frame_nack_t nack;
    if (!hk_frame_read_nack(frame, &nack)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no NACK");
        return;
    }
    if (nack.kind > DEAD || nack.words.length > HK_FRAME_WORDS_MOST || !hk_bytes_utf8(nack.words)) {
        hk_session_refuse(session, frame->id, HK_CODE_INVALID,
                          nack.kind > DEAD ? "the kind of a NACK is 0, 1 or 2" : "words are UTF-8, up to 1,024 bytes");
        return;
    }
    hk_delivery_t *delivery = hk_session_delivery(session, nack.delivery);
    if (delivery == NULL) {
        stale(session, frame->id, nack.delivery);
        return;
    }
    uint8_t level = broker->journal == NULL ? HK_LEVEL_MEMORY : HK_LEVEL_WRITTEN;
    hk_ack_t *ack = NULL;
    if (frame->id != 0 && level > HK_LEVEL_MEMORY) {
        ack = hk_session_ack_later(session, HK_FRAME_NACK, level, frame->id);
        if (ack == NULL) {
            no_memory(session, frame->id);
            return;
        }
    }
    hk_message_t *message = hk_delivery_end(broker, delivery);
    hk_queue_t *queue = message->queue;
    bool kept = turn_down(broker, message, &nack) == HK_OK;
    hk_queue_pump(broker, queue);
    hk_queue_touch(broker, queue);
    hk_session_heard(session, queue);
    if (ack != NULL && !kept) {
        /* A restart finds the message as it was before, which loses nothing. */
        hk_session_ack_never(session, ack);
        ack = NULL;
    }
    if (ack == NULL && frame->id != 0) {
        hk_session_ack_now(session, &(hk_frame_ack_t){.type = HK_FRAME_NACK, .id = frame->id});
    }
}

/* -- TOUCH --------------------------------------------------------------------------------------------------------- */

typedef struct touching {
    uint32_t asked, lease; /* ms */
} touching_t;

static bool touch_one(hk_session_t *session, hk_delivery_t *delivery, void *context)
{
    hk_broker_t *broker = session->broker;
    touching_t *touching = context;
    hk_receiver_t *subscription = delivery->subscription;
    uint32_t lease = touching->asked == 0 ? subscription->lease : touching->asked;
    int64_t deadline = broker->now + lease * HK_MS;
    hk_odd_lease_t *odd = delivery->odd;
    if (lease == subscription->lease && !hk_heap_holds(&subscription->lease_end) &&
        hk_heap_add(&broker->leases, &subscription->lease_end, deadline) != HK_OK) {
        return false;
    }
    if (odd != NULL) {
        hk_heap_remove(&broker->odd_leases, &odd->node);
    }
    if (lease == subscription->lease) {
        hk_alloc_free(broker->alloc, odd);
        odd = NULL;
    } else {
        odd = odd != NULL ? odd : hk_alloc_zeroed(broker->alloc, 1, sizeof(*odd));
        /* One that stood in the heap before has its place there. */
        if (odd == NULL || hk_heap_add(&broker->odd_leases, &odd->node, deadline) != HK_OK) {
            hk_alloc_free(broker->alloc, odd);
            return false;
        }
        odd->delivery = delivery;
    }
    delivery->odd = odd;
    delivery->deadline = deadline;
    hk_list_remove(&delivery->link);
    hk_list_append(odd != NULL ? &subscription->odd : &subscription->out, &delivery->link);
    touching->lease = lease;
    return true;
}

void hk_take_touch(hk_session_t *session, const hk_frame_t *frame)
{
    if (!hk_frame_read_plain(frame, 40)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "TOUCH has 40 bytes, no flags and no subscription");
        return;
    }
    uint64_t first = hk_frame_u64(frame->bytes.at + 16), last = hk_frame_u64(frame->bytes.at + 24);
    uint32_t asked = hk_frame_u32(frame->bytes.at + 32), most = session->broker->options.lease_most;
    touching_t touching = {.asked = asked < most ? asked : most};
    if (first > last) {
        hk_session_refuse(session, frame->id, HK_CODE_INVALID, "the first delivery comes after the last");
        return;
    }
    hk_delivery_t *alone = first == last ? hk_session_delivery(session, first) : NULL;
    if (first == last && alone == NULL) {
        stale(session, frame->id, first);
        return;
    }
    uint32_t count = each_of(session, first, last, touch_one, &touching);
    if (alone != NULL && count == 0) {
        no_memory(session, frame->id);
    } else if (frame->id != 0) {
        hk_session_ack_now(
            session,
            &(hk_frame_ack_t){.type = HK_FRAME_TOUCH, .count = count, .id = frame->id, .value = touching.lease});
    }
}

/* -- ACK of a PUSH, DRAIN ------------------------------------------------------------------------------------------ */

void hk_take_receipt(hk_session_t *session, const hk_frame_t *frame)
{
    if (!hk_frame_read_plain(frame, HK_FRAME_HEADER_BYTES)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "ACK of a client has 16 bytes");
        return;
    }
    if (frame->id >> HK_BROKER_SESSION_BITS == session->number) {
        hk_delivery_t *delivery = hk_session_delivery(session, frame->id);
        session->acknowledges = true;
        if (delivery != NULL) {
            delivery->in_hand = 1;
        }
        hk_session_heard(session, delivery != NULL ? delivery->message->queue : NULL);
    }
}

void hk_take_drain(hk_session_t *session, const hk_frame_t *frame)
{
    if (!hk_frame_read_plain(frame, HK_FRAME_HEADER_BYTES)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "DRAIN of a client has 16 bytes");
        return;
    }
    session->drained = true;
    session->forgets = session->forgets || (frame->flags & HK_DRAIN_FORGET) != 0;
    hk_session_review(session);
}
