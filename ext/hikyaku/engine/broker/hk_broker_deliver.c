#include "hk_broker_private.h"

/* -- What is out at a session -------------------------------------------------------------------------------------- */

enum { SLOTS_LEAST = 64 };

static hk_delivery_t **slot_of(const hk_session_t *session, uint64_t number)
{
    return &session->slots[number & (session->slot_count - 1)];
}

hk_delivery_t *hk_session_delivery(const hk_session_t *session, uint64_t number)
{
    if (session->out_count == 0) {
        return NULL;
    }
    hk_delivery_t *delivery = *slot_of(session, number);
    while (delivery != NULL && delivery->number != number) {
        delivery = delivery->chain;
    }
    return delivery;
}

/* Numbers follow each other, so that nearly every slot has one delivery at most. */
static bool grow_slots(hk_session_t *session)
{
    uint32_t count = session->slot_count > 0 ? session->slot_count * 2 : SLOTS_LEAST;
    hk_delivery_t **slots = hk_alloc_zeroed(session->broker->alloc, count, sizeof(hk_delivery_t *));
    if (slots == NULL) {
        return session->slot_count > 0;
    }
    hk_delivery_t **old = session->slots;
    uint32_t old_count = session->slot_count;
    session->slots = slots;
    session->slot_count = count;
    for (uint32_t i = 0; i < old_count; i++) {
        for (hk_delivery_t *delivery = old[i], *next; delivery != NULL; delivery = next) {
            next = delivery->chain;
            hk_delivery_t **slot = slot_of(session, delivery->number);
            delivery->chain = *slot;
            *slot = delivery;
        }
    }
    hk_alloc_free(session->broker->alloc, old);
    return true;
}

static void leave_slot(hk_session_t *session, const hk_delivery_t *delivery)
{
    hk_delivery_t **place = slot_of(session, delivery->number);
    while (*place != delivery) {
        place = &(*place)->chain;
    }
    *place = delivery->chain;
    session->out_count--;
}

hk_message_t *hk_delivery_end(hk_broker_t *broker, hk_delivery_t *delivery)
{
    hk_receiver_t *subscription = delivery->subscription;
    hk_message_t *message = delivery->message;
    leave_slot(subscription->session, delivery);
    hk_list_remove(&delivery->link);
    if (delivery->odd != NULL) {
        hk_heap_remove(&broker->odd_leases, &delivery->odd->node);
        hk_alloc_free(broker->alloc, delivery->odd);
    }
    hk_slab_free(&broker->deliveries, delivery);
    subscription->out_count--;
    subscription->out_bytes -= message->bytes;
    subscription->alone = false;
    message->queue->out--;
    broker->stats.out--;
    if (subscription->queue == NULL) {
        if (subscription->out_count == 0) {
            hk_receiver_forget(subscription);
        }
    } else if (subscription->aside || !hk_list_holds(&subscription->taker)) {
        hk_receiver_review(subscription);
    }
    return message;
}

/* -- Who may get something ----------------------------------------------------------------------------------------- */

static bool eligible(const hk_receiver_t *subscription)
{
    const hk_session_t *session = subscription->session;
    return subscription->queue != NULL && subscription->out_count < subscription->credit && !subscription->alone &&
           subscription->lapsed == 0 && session->phase == HK_SESSION_OPEN && !session->drained && !session->held &&
           !session->broker->draining;
}

static void add_taker(hk_queue_t *queue, hk_receiver_t *subscription)
{
    if (queue->suspects.first != NULL && subscription->out_count == 0) {
        /* It can take what only an empty receiver may have. */
        hk_list_append(queue->takers.next, &subscription->taker);
    } else {
        hk_list_append(&queue->takers, &subscription->taker);
    }
}

void hk_receiver_review(hk_receiver_t *subscription)
{
    if (subscription->aside || !eligible(subscription)) {
        hk_list_remove(&subscription->taker);
        subscription->aside = false;
    }
    if (eligible(subscription) && !hk_list_holds(&subscription->taker)) {
        add_taker(subscription->queue, subscription);
    }
}

void hk_session_review(hk_session_t *session)
{
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions; link = link->next) {
        hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, link);
        if (subscription->queue != NULL) {
            hk_receiver_review(subscription);
            subscription->queue->look = true;
            hk_queue_pump(session->broker, subscription->queue);
        }
    }
}

/* -- PUSH ---------------------------------------------------------------------------------------------------------- */

static void put_push(char *at, const hk_delivery_t *delivery)
{
    const hk_message_t *message = delivery->message;
    const hk_receiver_t *subscription = delivery->subscription;
    uint32_t attempt = 1U + message->failures + message->crashes + message->returns;
    uint8_t flags = (uint8_t)((message->delivered ? HK_PUSH_AGAIN : 0) | (message->crashes > 0 ? HK_PUSH_SUSPECT : 0));
    hk_frame_put_header(at, HK_FRAME_PUSH_BYTES + (size_t)message->bytes, HK_FRAME_PUSH, flags, subscription->number,
                        delivery->number);
    hk_frame_put64(at + 16, message->id);
    hk_frame_put64(at + 24, message->sent);
    hk_frame_put32(at + 32, subscription->lease);
    hk_frame_put16(at + 36, (uint16_t)(attempt < UINT16_MAX ? attempt : UINT16_MAX));
    hk_frame_put16(at + 38, message->failures);
    hk_frame_put16(at + 40, message->crashes);
    at[42] = (char)message->priority;
    at[43] = 0;
    hk_frame_put16(at + 44, message->properties);
    hk_frame_put16(at + 46, 0);
}

static hk_status_t lay_push(hk_broker_t *broker, hk_session_t *session, const hk_delivery_t *delivery)
{
    const hk_message_t *message = delivery->message;
    hk_piece_t *piece = message->piece, *read = NULL;
    hk_bytes_t content;
    if (piece->bytes != NULL) {
        content = hk_bytes(piece->bytes + message->offset, message->bytes);
    } else {
        hk_status_t status = hk_message_content(broker, message, &read, &content);
        if (status != HK_OK) {
            return status;
        }
        piece = read;
    }
    char *at;
    if (content.length <= HK_BROKER_COPIED_MOST) {
        at = hk_session_try(session, HK_FRAME_PUSH_BYTES + content.length);
        if (at != NULL) {
            memcpy(at + HK_FRAME_PUSH_BYTES, content.at, content.length);
        }
    } else {
        at = hk_session_refer(session, HK_FRAME_PUSH_BYTES, piece, content);
    }
    if (at != NULL) {
        put_push(at, delivery);
    }
    hk_piece_release(read);
    return at != NULL ? HK_OK : HK_NO_MEMORY;
}

static hk_status_t give(hk_broker_t *broker, hk_receiver_t *subscription, hk_message_t *message)
{
    hk_session_t *session = subscription->session;
    if (session->out_count >= session->slot_count && !grow_slots(session)) {
        return HK_NO_MEMORY;
    }
    int64_t deadline = broker->now + subscription->lease * HK_MS;
    if (!hk_heap_holds(&subscription->lease_end) &&
        hk_heap_add(&broker->leases, &subscription->lease_end, deadline) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_delivery_t *delivery = hk_slab_new(&broker->deliveries);
    if (delivery == NULL) {
        return HK_NO_MEMORY;
    }
    *delivery = (hk_delivery_t){.message = message,
                                .subscription = subscription,
                                .deadline = deadline,
                                .number = session->next_delivery & (UINT64_MAX >> 1)};
    hk_status_t status = lay_push(broker, session, delivery);
    if (status != HK_OK) {
        hk_slab_free(&broker->deliveries, delivery);
        return status;
    }
    hk_delivery_t **slot = slot_of(session, session->next_delivery++);
    delivery->chain = *slot;
    *slot = delivery;
    session->out_count++;
    hk_list_append(&subscription->out, &delivery->link);
    subscription->out_count++;
    subscription->out_bytes += message->bytes;
    subscription->alone = message->crashes > 0;
    session->held = session->laid >= HK_BROKER_AHEAD_BYTES;

    hk_queue_t *queue = message->queue;
    hk_queue_shift(queue, message);
    message->state = HK_STATE_OUT;
    queue->out++;
    broker->stats.out++;
    broker->stats.delivered++;
    if (message->delivered) {
        broker->stats.redelivered++;
        queue->redelivered++;
    }
    message->delivered = 1;
    return HK_OK;
}

/* -- Whose turn it is ---------------------------------------------------------------------------------------------- */

static bool affords(const hk_receiver_t *subscription, const hk_message_t *message)
{
    return subscription->credit_bytes == 0 || subscription->out_count == 0 ||
           subscription->out_bytes + message->bytes <= subscription->credit_bytes;
}

/* Its client takes frames as large as that. */
bool hk_receiver_fits(const hk_receiver_t *subscription, const hk_message_t *message)
{
    return HK_FRAME_PUSH_BYTES + (size_t)message->bytes <= subscription->session->max_frame;
}

static bool may_empty(const hk_receiver_t *subscription)
{
    return subscription->credit > 0 && subscription->lapsed == 0 && !subscription->session->drained &&
           subscription->session->phase == HK_SESSION_OPEN;
}

/* What the first taker is to get. NULL: nothing; `passed`: others may. */
static hk_message_t *choose(hk_broker_t *broker, hk_queue_t *queue, hk_receiver_t *subscription, bool *passed)
{
    *passed = false;
    hk_message_t *suspect = hk_queue_first_suspect(broker, queue);
    if (suspect != NULL && hk_receiver_fits(subscription, suspect)) {
        if (subscription->out_count == 0) {
            queue->emptying = queue->emptying == subscription ? NULL : queue->emptying;
            return suspect;
        }
        if (queue->emptying != NULL && !may_empty(queue->emptying)) {
            queue->emptying = NULL;
        }
        if (queue->emptying == NULL || queue->emptying == subscription) {
            /* Somebody must become empty, or a suspect would wait for ever behind what goes well. */
            queue->emptying = subscription;
            hk_list_remove(&subscription->taker);
            *passed = true;
            return NULL;
        }
    }
    hk_message_t *message = hk_queue_first(broker, queue);
    if (message == NULL || (affords(subscription, message) && hk_receiver_fits(subscription, message))) {
        return message;
    }
    *passed = true;
    hk_list_remove(&subscription->taker);
    hk_list_append(&queue->aside, &subscription->taker);
    subscription->aside = true;
    queue->aside_for = message->id;
    queue->look = queue->look || !hk_receiver_fits(subscription, message);
    return NULL;
}

/* Those aside take turns again, when it is another message's turn; O(1) while it is not. */
static void rejoin(hk_broker_t *broker, hk_queue_t *queue)
{
    if (hk_list_empty(&queue->aside)) {
        return;
    }
    const hk_message_t *message = hk_queue_first(broker, queue);
    if (message != NULL && message->id == queue->aside_for && queue->suspects.first == NULL) {
        return;
    }
    for (hk_list_t *link = queue->aside.next; link != &queue->aside; link = link->next) {
        HK_OWNER(link, hk_receiver_t, taker)->aside = false;
    }
    hk_list_move(&queue->aside, &queue->takers);
}

/* The message whose turn it is lets others go before, when nobody is left who may receive and takes one of its size:
 * they would wait for as long as nobody comes. Who takes it, but has no credit now, is waited for. */
static bool park(hk_broker_t *broker, hk_queue_t *queue)
{
    if (!queue->look || !hk_list_empty(&queue->takers) || hk_list_empty(&queue->aside)) {
        return false;
    }
    queue->look = false;
    hk_message_t *message = hk_queue_first(broker, queue);
    bool taken = message == NULL;
    for (hk_list_t *link = queue->subscriptions.next; !taken && link != &queue->subscriptions; link = link->next) {
        const hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, of_queue);
        taken = may_empty(subscription) && hk_receiver_fits(subscription, message);
    }
    if (!taken) {
        hk_queue_park(queue, message);
        rejoin(broker, queue);
    }
    return !taken;
}

void hk_queue_pump_soon(hk_broker_t *broker, hk_queue_t *queue)
{
    if (!hk_list_holds(&queue->again)) {
        hk_list_append(&broker->again, &queue->again);
    }
}

/* Nobody has to become empty any more. */
static void stop_emptying(hk_queue_t *queue)
{
    hk_receiver_t *subscription = queue->emptying;
    queue->emptying = NULL;
    hk_receiver_review(subscription);
}

static bool expired(const hk_broker_t *broker, const hk_message_t *message)
{
    return message->extra != NULL && message->extra->expiry <= broker->now;
}

static void serve(hk_broker_t *broker, hk_queue_t *queue)
{
    while (!hk_list_empty(&queue->takers) && (queue->waiting != 0 || queue->suspects.first != NULL)) {
        hk_receiver_t *subscription = HK_OWNER(queue->takers.next, hk_receiver_t, taker);
        if (!eligible(subscription)) {
            hk_list_remove(&subscription->taker);
            continue;
        }
        bool passed;
        hk_message_t *message = choose(broker, queue, subscription, &passed);
        if (message == NULL) {
            if (passed) {
                continue;
            }
            break;
        }
        if (expired(broker, message)) {
            if (!hk_message_expire(broker, message)) {
                hk_queue_pump_soon(broker, queue);
                break;
            }
            rejoin(broker, queue);
            continue;
        }
        hk_status_t status = give(broker, subscription, message);
        if (status != HK_OK) {
            if (status == HK_SYSTEM) {
                hk_broker_fail(broker);
            } else {
                hk_queue_pump_soon(broker, queue);
            }
            break;
        }
        hk_list_remove(&subscription->taker);
        if (eligible(subscription)) {
            hk_list_append(&queue->takers, &subscription->taker);
        }
        rejoin(broker, queue);
    }
}

void hk_queue_pump(hk_broker_t *broker, hk_queue_t *queue)
{
    rejoin(broker, queue);
    do {
        serve(broker, queue);
    } while (park(broker, queue));
    if (queue->emptying != NULL && hk_queue_first_suspect(broker, queue) == NULL) {
        stop_emptying(queue);
        if (queue->waiting != 0 && !hk_list_holds(&queue->again)) {
            hk_queue_pump_soon(broker, queue);
        }
    }
}
