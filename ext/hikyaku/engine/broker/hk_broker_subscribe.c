#include "hk_broker_lapse_private.h"

static hk_receiver_t *find(const hk_session_t *session, uint16_t number)
{
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions; link = link->next) {
        hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, link);
        if (subscription->number == number && subscription->queue != NULL) {
            return subscription;
        }
    }
    return NULL;
}

static void accept(hk_session_t *session, const hk_frame_t *frame)
{
    if (frame->id != 0) {
        hk_session_ack_now(session, &(hk_frame_ack_t){.type = frame->type, .id = frame->id});
    }
}

/* What is wrong with a SUBSCRIBE; HK_CODE_NONE: nothing. */
static hk_code_t judge(const hk_session_t *session, const hk_frame_t *frame, hk_frame_subscribe_t *subscribe,
                       const char **sentence)
{
    if (frame->subscription == 0 || find(session, frame->subscription) != NULL) {
        *sentence = frame->subscription == 0 ? "a subscription has a number from 1" : "this number is in use";
        return HK_CODE_INVALID;
    }
    if (subscribe->kind > 1) {
        *sentence = "the kind of a queue is 0 or 1";
        return HK_CODE_INVALID;
    }
    if (subscribe->kind == 1) {
        if (session->producer == NULL) {
            *sentence = "a client without an identity has no queue of its own";
            return HK_CODE_INVALID;
        }
        if (subscribe->name.length == 0) {
            subscribe->name = session->hello.identity;
        }
        *sentence = "the queue of a client has no other receiver";
        return hk_bytes_equal(subscribe->name, session->hello.identity) ? HK_CODE_NONE : HK_CODE_FORBIDDEN;
    }
    if (!hk_frame_name(subscribe->kind, subscribe->name)) {
        *sentence =
            "a name has 1 to 255 bytes of UTF-8 without control characters, and a queue's does not begin with @";
        return HK_CODE_INVALID;
    }
    if (!hk_session_may(session, HK_RIGHT_RECEIVE, subscribe->kind, subscribe->name)) {
        *sentence = "this client may not receive from this queue";
        return HK_CODE_FORBIDDEN;
    }
    *sentence = "the session has as many subscriptions as it may";
    return session->subscription_count >= session->broker->options.max_subscriptions ? HK_CODE_LIMIT : HK_CODE_NONE;
}

static hk_receiver_t *make(hk_session_t *session, hk_queue_t *queue, uint16_t number,
                           const hk_frame_subscribe_t *subscribe)
{
    const hk_broker_options_t *options = &session->broker->options;
    hk_receiver_t *subscription = hk_alloc_zeroed(session->broker->alloc, 1, sizeof(*subscription));
    if (subscription == NULL) {
        return NULL;
    }
    uint32_t lease = subscribe->lease == 0 ? options->lease : subscribe->lease;
    subscription->session = session;
    subscription->queue = queue;
    subscription->number = number;
    subscription->credit = subscribe->credit;
    subscription->credit_bytes = subscribe->credit_bytes;
    subscription->lease = lease < options->lease_most ? lease : options->lease_most;
    hk_list_init(&subscription->out);
    hk_list_init(&subscription->odd);
    hk_list_append(&session->subscriptions, &subscription->link);
    hk_list_append(&queue->subscriptions, &subscription->of_queue);
    session->subscription_count++;
    return subscription;
}

void hk_take_subscribe(hk_session_t *session, const hk_frame_t *frame)
{
    hk_broker_t *broker = session->broker;
    hk_frame_subscribe_t subscribe;
    if (!hk_frame_read_subscribe(frame, &subscribe)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no SUBSCRIBE");
        return;
    }
    const char *sentence;
    hk_code_t code = judge(session, frame, &subscribe, &sentence);
    if (code != HK_CODE_NONE) {
        hk_session_refuse(session, frame->id, code, sentence);
        return;
    }
    hk_queue_t *queue;
    hk_status_t status = hk_queue_get(broker, subscribe.kind, subscribe.name, &queue);
    if (status == HK_TOO_MANY) {
        hk_session_refuse(session, frame->id, HK_CODE_LIMIT, "there are as many queues as there may be");
        return;
    }
    hk_receiver_t *subscription = status == HK_OK ? make(session, queue, frame->subscription, &subscribe) : NULL;
    if (subscription == NULL) {
        hk_session_refuse(session, frame->id, HK_CODE_OVERLOADED, "there is no memory for this subscription");
        return;
    }
    accept(session, frame);
    hk_queue_touch(broker, queue);
    if (subscription->credit > 0) {
        hk_queue_unpark(broker, queue, subscription);
    }
    hk_receiver_review(subscription);
    hk_queue_pump(broker, queue);
    hk_session_heard(session, queue);
}

/* NULL: there is none, as was said. */
static hk_receiver_t *find_or_refuse(hk_session_t *session, const hk_frame_t *frame)
{
    hk_receiver_t *subscription = find(session, frame->subscription);
    if (subscription == NULL) {
        hk_session_refuse(session, frame->id, HK_CODE_NO_SUCH_SUBSCRIPTION,
                          "there is no subscription with this number");
    }
    return subscription;
}

void hk_take_unsubscribe(hk_session_t *session, const hk_frame_t *frame)
{
    if (!hk_frame_read_plain(frame, HK_FRAME_HEADER_BYTES)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "UNSUBSCRIBE has 16 bytes");
        return;
    }
    hk_receiver_t *subscription = find_or_refuse(session, frame);
    if (subscription == NULL) {
        return;
    }
    hk_receiver_end(subscription);
    accept(session, frame);
}

void hk_take_credit(hk_session_t *session, const hk_frame_t *frame)
{
    if (!hk_frame_read_plain(frame, 24)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "CREDIT has 24 bytes");
        return;
    }
    hk_receiver_t *subscription = find_or_refuse(session, frame);
    if (subscription == NULL) {
        return;
    }
    bool paused = subscription->credit == 0;
    subscription->credit = hk_frame_u32(frame->bytes.at + 16);
    subscription->credit_bytes = hk_frame_u32(frame->bytes.at + 20);
    accept(session, frame);
    if (paused && subscription->credit > 0) {
        hk_queue_unpark(session->broker, subscription->queue, subscription);
    }
    subscription->queue->look = true;
    hk_receiver_review(subscription);
    hk_queue_pump(session->broker, subscription->queue);
    hk_session_heard(session, subscription->queue);
}

/* What is out stays out; when nothing is, it goes. */
void hk_receiver_end(hk_receiver_t *subscription)
{
    hk_queue_t *queue = subscription->queue;
    hk_session_t *session = subscription->session;
    if (queue != NULL) {
        hk_list_remove(&subscription->taker);
        hk_list_remove(&subscription->of_queue);
        hk_receiver_end_lapse(subscription);
        subscription->queue = NULL;
        queue->look = true;
        if (queue->emptying == subscription) {
            queue->emptying = NULL;
        }
        session->subscription_count--;
        hk_queue_touch(session->broker, queue);
    }
    if (subscription->out_count == 0) {
        hk_receiver_forget(subscription);
    }
    if (queue != NULL) {
        hk_queue_pump(session->broker, queue);
    }
}

void hk_receiver_forget(hk_receiver_t *subscription)
{
    hk_broker_t *broker = subscription->session->broker;
    hk_heap_remove(&broker->leases, &subscription->lease_end);
    hk_list_remove(&subscription->link);
    hk_alloc_free(broker->alloc, subscription);
}
