/* hk_broker_lapse_private.h: receivers that let a lease end, and are passed over until they are heard. */
#ifndef HK_BROKER_LAPSE_PRIVATE_H
#define HK_BROKER_LAPSE_PRIVATE_H

#include "hk_broker_private.h"

/* The lease of a delivery has ended: its receiver gets nothing more from the queue until it is heard. */
void hk_receiver_lapse(const hk_delivery_t *delivery);

/* It is passed over no longer; who calls it reviews it. */
void hk_receiver_end_lapse(hk_receiver_t *subscription);

void hk_session_hear(hk_session_t *session, const hk_queue_t *queue);
void hk_session_hear_range(hk_session_t *session, uint64_t first, uint64_t last);

/* The client has spoken of its deliveries from the queue, or (NULL) of one that it has no longer. */
static inline void hk_session_heard(hk_session_t *session, const hk_queue_t *queue)
{
    if (session->lapsed > 0) {
        hk_session_hear(session, queue);
    }
}

#endif
