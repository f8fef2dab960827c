#include "hk_broker_lapse_private.h"

/* All subscriptions of the connection to the queue: one thread may serve several of them. */
void hk_receiver_lapse(const hk_delivery_t *delivery)
{
    hk_session_t *session = delivery->subscription->session;
    hk_queue_t *queue = delivery->message->queue;
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions; link = link->next) {
        hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, link);
        if (subscription->queue == queue) {
            session->lapsed += subscription->lapsed == 0 ? 1 : 0;
            subscription->lapsed = delivery->number > subscription->lapsed ? delivery->number : subscription->lapsed;
            hk_receiver_review(subscription);
            queue->look = true;
        }
    }
}

void hk_receiver_end_lapse(hk_receiver_t *subscription)
{
    subscription->session->lapsed -= subscription->lapsed == 0 ? 0 : 1;
    subscription->lapsed = 0;
}

static void hear(hk_receiver_t *subscription)
{
    hk_broker_t *broker = subscription->session->broker;
    hk_queue_t *queue = subscription->queue;
    hk_receiver_end_lapse(subscription);
    if (subscription->credit > 0) {
        hk_queue_unpark(broker, queue, subscription);
    }
    hk_receiver_review(subscription);
    queue->look = true;
    hk_queue_pump(broker, queue);
}

void hk_session_hear(hk_session_t *session, const hk_queue_t *queue)
{
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions; link = link->next) {
        hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, link);
        if (subscription->lapsed != 0 && (queue == NULL || subscription->queue == queue)) {
            hear(subscription);
        }
    }
}

void hk_session_hear_range(hk_session_t *session, uint64_t first, uint64_t last)
{
    for (hk_list_t *link = session->subscriptions.next; link != &session->subscriptions; link = link->next) {
        hk_receiver_t *subscription = HK_OWNER(link, hk_receiver_t, link);
        if (subscription->lapsed != 0 && subscription->lapsed >= first && subscription->lapsed <= last) {
            hear(subscription);
        }
    }
}
