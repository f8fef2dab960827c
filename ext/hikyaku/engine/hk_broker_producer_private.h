/* hk_broker_producer_private.h: which numbers of a client were taken. */
#ifndef HK_BROKER_PRODUCER_PRIVATE_H
#define HK_BROKER_PRODUCER_PRIVATE_H

#include "hk_broker_private.h"

/* HK_OK; HK_TOO_MANY; HK_NO_MEMORY. */
hk_status_t hk_producer_get(hk_broker_t *broker, hk_bytes_t identity, hk_producer_t **producer);
void hk_producer_free(hk_broker_t *broker, hk_producer_t *producer);

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
