/* hk_broker_store_private.h: what a broker keeps in its journal, finds there again, and needs no more. */
#ifndef HK_BROKER_STORE_PRIVATE_H
#define HK_BROKER_STORE_PRIVATE_H

#include "hk_broker_private.h"

/* --- hk_broker_store ---------------------------------------------------------------------------------------------- */

/* Appends the ENQUEUE of a message: its piece is the journal's then. sequence 0: none. HK_OK; HK_TOO_LARGE: full;
 * HK_INVALID: too big; HK_NO_MEMORY; HK_SYSTEM. */
hk_status_t hk_store_enqueue(hk_broker_t *broker, hk_message_t *message, hk_bytes_t content, uint64_t sequence,
                             const hk_producer_t *producer, bool copy);

/* A message of the journal is done with: its id will be written at the end of the turn. Room was reserved. */
void hk_store_freed(hk_broker_t *broker, const hk_message_t *message);
hk_status_t hk_store_reserve_freed(hk_broker_t *broker, size_t count);

/* Writes what has become of a message, if it stands in the journal: STATE. delay: ms. As hk_store_enqueue. */
hk_status_t hk_store_state(hk_broker_t *broker, const hk_message_t *message, uint32_t delay);
/* No bulk record is taken. */
bool hk_store_full(const hk_broker_t *broker);
/* first: before it is known to the journal, as a bulk record. whole: also numbers of messages in memory alone. */
typedef enum hk_producer_record { HK_PRODUCER_FIRST, HK_PRODUCER_AGAIN, HK_PRODUCER_WHOLE } hk_producer_record_t;
hk_status_t hk_store_producer(hk_broker_t *broker, hk_producer_t *producer, hk_producer_record_t as);
hk_status_t hk_store_gone(hk_broker_t *broker, uint8_t type, uint32_t number);
hk_status_t hk_store_flush_freed(hk_broker_t *broker);

/* Sees to it that ids and sessions from here on are known to be used. */
hk_status_t hk_store_boot(hk_broker_t *broker, bool exactly);
hk_status_t hk_store_begin(void *context, hk_journal_t *journal);

/* --- hk_broker_replay --------------------------------------------------------------------------------------------- */

hk_status_t hk_broker_replay(void *context, const hk_journal_record_t *record);
hk_status_t hk_replay_init(hk_broker_t *broker);
hk_status_t hk_replay_end(hk_broker_t *broker);
void hk_replay_release(hk_broker_t *broker);

/* --- hk_broker_ledger --------------------------------------------------------------------------------------------- */

hk_ledger_row_t *hk_ledger_row(hk_broker_t *broker, uint64_t segment); /* NULL: there is none */
hk_status_t hk_ledger_reserve(hk_broker_t *broker, uint64_t segment);  /* makes it */
void hk_ledger_add(hk_broker_t *broker, const hk_message_t *message);
void hk_ledger_subtract(hk_broker_t *broker, const hk_message_t *message);
/* A record in `segment` speaks of a message in `other`. */
void hk_ledger_refer(hk_broker_t *broker, uint64_t segment, uint64_t other);
/* Drops what is needed no more; copies a slice of what keeps others. */
void hk_ledger_drop(hk_broker_t *broker);
void hk_ledger_work(hk_broker_t *broker);
bool hk_ledger_due(const hk_broker_t *broker);
void hk_ledger_release(hk_broker_t *broker);

#endif
