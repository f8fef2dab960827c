/* hk_broker_producer_private.h: which numbers of a client were taken. */
#ifndef HK_BROKER_PRODUCER_PRIVATE_H
#define HK_BROKER_PRODUCER_PRIVATE_H

#include "hk_broker_private.h"

/* Made if it is not there. HK_OK; HK_TOO_MANY: as many are remembered as may be, and all are connected;
 * HK_NO_MEMORY. */
hk_status_t hk_producer_get(hk_broker_t *broker, hk_bytes_t identity, hk_producer_t **producer);
hk_producer_t *hk_producer_find(hk_broker_t *broker, hk_bytes_t identity);
void hk_producer_free(hk_broker_t *broker, hk_producer_t *producer);

/* It is going to number a message: it is remembered from now on, and the one that was idle for longest is forgotten if
 * there are too many. durable: a restart is to find it. HK_OK; HK_TOO_MANY: nobody is idle; as hk_store_enqueue. */
hk_status_t hk_producer_remember(hk_broker_t *broker, hk_producer_t *producer, bool durable);

/* Nothing of it is known any more. It is not connected. */
void hk_producer_forget(hk_broker_t *broker, hk_producer_t *producer);

/* What was read and is not to be kept is forgotten: who has numbered nothing, and those beyond the limit. */
void hk_producer_prune(hk_broker_t *broker);

/* The connection of its session ends. */
void hk_producer_leave(hk_session_t *session);

/* Its connection came, or went. */
void hk_producer_touch(hk_broker_t *broker, hk_producer_t *producer);

typedef enum hk_number { HK_NUMBER_NEW, HK_NUMBER_TAKEN, HK_NUMBER_TOO_FAR } hk_number_t;
hk_number_t hk_producer_look(const hk_producer_t *producer, uint64_t number);

/* A number that was taken: a restart may forget it, its message is in memory alone. */
bool hk_producer_passes(const hk_producer_t *producer, uint64_t number);

/* Makes sure that _take cannot fail. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_producer_reserve(hk_broker_t *broker, hk_producer_t *producer, uint64_t number, bool passing);

/* passing: a restart forgets it, with its message. */
void hk_producer_take(hk_producer_t *producer, uint64_t number, bool passing);

/* A number that stands in the journal, maybe far ahead: all that is missing between was answered long ago. HK_OK or
 * HK_NO_MEMORY. */
hk_status_t hk_producer_recall(hk_broker_t *broker, hk_producer_t *producer, uint64_t number);

/* What stands in a PRODUCER. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_producer_restore(hk_broker_t *broker, hk_producer_t *producer, uint64_t low, hk_bytes_t map);

/* What a restart is to find: fills the map of HK_FRAME_SEQUENCES bits; how many bytes of it. all: also what passes. */
uint16_t hk_producer_snapshot(const hk_producer_t *producer, bool all, uint64_t *low, char *map);

#endif
