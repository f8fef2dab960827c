#include "hk_broker_producer_private.h"
#include "hk_broker_store_private.h"

enum {
    SLICE = 4096,    /* of each kind in one tick */
    AGAIN_MS = 10,   /* after which what failed for want of memory is tried again */
    GONE_MOST = 1024 /* that stand in the lines of a queue, whatever else does */
};

/* -- Leases -------------------------------------------------------------------------------------------------------- */

/* Ends those of one subscription that are due; false: there is more to do. What comes back may be given to it again. */
static bool end_leases(hk_broker_t *broker, hk_receiver_t *subscription, uint32_t *left)
{
    hk_list_t *first;
    while ((first = hk_list_first(&subscription->out)) != NULL) {
        hk_delivery_t *delivery = HK_OWNER(first, hk_delivery_t, link);
        if (delivery->deadline > broker->now || *left == 0) {
            /* It stood in the heap a moment ago: there is room. */
            hk_heap_remove(&broker->leases, &subscription->lease_end);
            (void)hk_heap_add(&broker->leases, &subscription->lease_end, delivery->deadline);
            return delivery->deadline > broker->now;
        }
        --*left;
        bool forgotten = subscription->queue == NULL && subscription->out_count == 1;
        hk_delivery_expire(broker, delivery);
        if (forgotten) {
            break;
        }
    }
    return true;
}

static void tick_leases(hk_broker_t *broker)
{
    uint32_t left = SLICE;
    for (hk_heap_node_t *node; (node = hk_heap_first(&broker->leases)) != NULL && node->at <= broker->now;) {
        hk_receiver_t *subscription = HK_OWNER(node, hk_receiver_t, lease_end);
        hk_heap_remove(&broker->leases, node);
        if (!end_leases(broker, subscription, &left)) {
            return;
        }
    }
    for (hk_heap_node_t *node;
         left > 0 && (node = hk_heap_first(&broker->odd_leases)) != NULL && node->at <= broker->now; left--) {
        hk_delivery_expire(broker, HK_OWNER(node, hk_odd_lease_t, node)->delivery);
    }
}

/* -- Delay and expiry ---------------------------------------------------------------------------------------------- */

static void tick_due(hk_broker_t *broker)
{
    hk_heap_node_t *node;
    for (uint32_t left = SLICE; left > 0 && (node = hk_heap_first(&broker->due)) != NULL && node->at <= broker->now;) {
        int64_t at = node->at;
        hk_message_t *together = NULL;
        while ((node = hk_heap_first(&broker->due)) != NULL && node->at == at) {
            hk_message_t *message = HK_OWNER(node, hk_extra_t, due)->message;
            hk_heap_remove(&broker->due, node);
            message->next = together;
            together = message;
            left -= left > 0 ? 1 : 0;
        }
        /* Those that are due at the same time wait in the order of their ids. */
        for (hk_message_t *message = hk_messages_sorted(broker->alloc, together), *next; message != NULL;
             message = next) {
            next = message->next;
            message->queue->delayed--;
            hk_queue_put(message);
            hk_queue_pump(broker, message->queue);
        }
    }
}

static void tick_expiries(hk_broker_t *broker)
{
    hk_heap_node_t *node;
    for (uint32_t left = SLICE;
         left > 0 && (node = hk_heap_first(&broker->expiries)) != NULL && node->at <= broker->now; left--) {
        hk_message_t *message = HK_OWNER(node, hk_extra_t, expires)->message;
        hk_queue_t *queue = message->queue;
        hk_heap_remove(&broker->expiries, node);
        if (!hk_message_expire(broker, message)) {
            (void)hk_heap_add(&broker->expiries, node, broker->now + AGAIN_MS * HK_MS);
        } else if (queue->gone > queue->ready + GONE_MOST) {
            hk_queue_sweep(broker, queue);
        }
    }
}

/* -- Sessions ------------------------------------------------------------------------------------------------------ */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t until(const hk_session_t *session)
{
    const hk_broker_t *broker = session->broker;
    if (session->until == UINT64_MAX) {
        return INT64_MAX;
    }
    uint64_t left = session->until > broker->wall ? session->until - broker->wall : 0;
    return left > UINT32_MAX ? INT64_MAX : broker->now + (int64_t)left * HK_MS;
}

void hk_session_set_timer(hk_session_t *session)
{
    int64_t at = session->heard + HK_BROKER_HELLO_MS * HK_MS;
    if (session->phase == HK_SESSION_OPEN) {
        at = until(session);
        if (session->heartbeat > 0) {
            at = earlier(at, earlier(session->said + session->heartbeat / 2, session->heard + 2 * session->heartbeat));
        }
    }
    hk_heap_remove(&session->broker->timers, &session->timer);
    if (at != INT64_MAX) {
        /* Its room was made when the session came. */
        (void)hk_heap_add(&session->broker->timers, &session->timer, at);
    }
}

static void ping(hk_session_t *session)
{
    char *at = hk_session_try(session, HK_FRAME_HEADER_BYTES);
    if (at != NULL) {
        hk_frame_put_header(at, HK_FRAME_HEADER_BYTES, HK_FRAME_PING, 0, 0, 0);
    }
    session->said = session->broker->now;
}

static void tick_session(hk_session_t *session)
{
    hk_broker_t *broker = session->broker;
    hk_heap_remove(&broker->timers, &session->timer);
    if (session->phase == HK_SESSION_ENDED) {
        return;
    }
    if (session->phase != HK_SESSION_OPEN) {
        hk_session_end(session, 0, HK_CODE_IDLE, "nothing was said in time");
        return;
    }
    if (session->until <= broker->wall) {
        hk_session_end(session, 0, HK_CODE_UNAUTHORIZED, "the token has expired");
        return;
    }
    if (session->heartbeat > 0 && session->heard + 2 * session->heartbeat <= broker->now) {
        hk_session_end(session, 0, HK_CODE_IDLE, "nothing was heard for two heartbeats");
        return;
    }
    if (session->heartbeat > 0 && session->said + session->heartbeat / 2 <= broker->now) {
        ping(session);
    }
    hk_session_set_timer(session);
}

static void tick_sessions(hk_broker_t *broker)
{
    hk_heap_node_t *node;
    while ((node = hk_heap_first(&broker->timers)) != NULL && node->at <= broker->now) {
        tick_session(HK_OWNER(node, hk_session_t, timer));
    }
}

/* -- What nobody needs --------------------------------------------------------------------------------------------- */

static int64_t idle_at(hk_list_t *link, int64_t since, uint32_t seconds)
{
    return link == NULL ? INT64_MAX : since + seconds * 1000 * HK_MS;
}

static int64_t queue_idle_at(const hk_broker_t *broker)
{
    hk_list_t *link = hk_list_first(&broker->idle_queues);
    return idle_at(link, link == NULL ? 0 : HK_OWNER(link, hk_queue_t, idle)->idle_since, broker->options.queue_idle);
}

static int64_t producer_idle_at(const hk_broker_t *broker)
{
    hk_list_t *link = hk_list_first(&broker->idle_producers);
    return idle_at(link, link == NULL ? 0 : HK_OWNER(link, hk_producer_t, idle)->idle_since,
                   broker->options.producer_idle);
}

static void tick_idle(hk_broker_t *broker)
{
    for (uint32_t left = SLICE; left > 0 && queue_idle_at(broker) <= broker->now; left--) {
        hk_queue_forget(broker, HK_OWNER(broker->idle_queues.next, hk_queue_t, idle));
    }
    for (uint32_t left = SLICE; left > 0 && producer_idle_at(broker) <= broker->now; left--) {
        hk_producer_forget(broker, HK_OWNER(broker->idle_producers.next, hk_producer_t, idle));
    }
}

/* -- The tick ------------------------------------------------------------------------------------------------------ */

static void tick_again(hk_broker_t *broker)
{
    hk_list_t queues;
    hk_list_init(&queues);
    hk_list_move(&broker->again, &queues);
    for (hk_list_t *link; (link = hk_list_shift(&queues)) != NULL;) {
        hk_queue_pump(broker, HK_OWNER(link, hk_queue_t, again));
    }
    broker->again_at = hk_list_empty(&broker->again) ? INT64_MAX : broker->now + AGAIN_MS * HK_MS;
}

static void tick_disk(hk_broker_t *broker)
{
    if (broker->journal == NULL || !hk_journal_full(broker->journal)) {
        broker->disk_retry = INT64_MAX;
    } else if (broker->disk_retry == INT64_MAX) {
        broker->disk_retry = broker->now + HK_BROKER_RETRY_MS * HK_MS;
    } else if (broker->disk_retry <= broker->now) {
        hk_journal_retry(broker->journal);
        broker->disk_retry = broker->now + HK_BROKER_RETRY_MS * HK_MS;
    }
}

void hk_broker_tick(hk_broker_t *broker, int64_t now, uint64_t wall)
{
    hk_broker_at(broker, now, wall);
    tick_expiries(broker);
    tick_due(broker);
    tick_leases(broker);
    tick_sessions(broker);
    tick_idle(broker);
    tick_again(broker);
    tick_disk(broker);
    if (broker->journal != NULL && !broker->failed) {
        hk_ledger_work(broker);
    }
}

static int64_t heap_next(const hk_heap_t *heap)
{
    const hk_heap_node_t *node = hk_heap_first(heap);
    return node == NULL ? INT64_MAX : node->at;
}

int64_t hk_broker_next_tick(const hk_broker_t *broker)
{
    int64_t at = earlier(heap_next(&broker->due), heap_next(&broker->expiries));
    at = earlier(at, earlier(heap_next(&broker->leases), heap_next(&broker->odd_leases)));
    at = earlier(at, earlier(heap_next(&broker->timers), broker->disk_retry));
    at = earlier(at, earlier(queue_idle_at(broker), producer_idle_at(broker)));
    if (broker->journal != NULL && broker->disk_retry == INT64_MAX && hk_journal_full(broker->journal)) {
        at = earlier(at, broker->now);
    }
    if (!hk_list_empty(&broker->again)) {
        at = earlier(at, broker->again_at == INT64_MAX ? broker->now : broker->again_at);
    }
    return broker->journal != NULL && !broker->failed && hk_ledger_due(broker) ? earlier(at, broker->now) : at;
}
