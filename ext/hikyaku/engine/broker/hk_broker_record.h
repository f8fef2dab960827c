/* hk_broker_record.h: types and sizes of what the broker keeps in its journal (docs/journal.md). */
#ifndef HK_BROKER_RECORD_H
#define HK_BROKER_RECORD_H

enum {
    HK_RECORD_ENQUEUE = 32,
    HK_RECORD_FREE,
    HK_RECORD_STATE,
    HK_RECORD_QUEUE,
    HK_RECORD_QUEUE_GONE,
    HK_RECORD_PRODUCER,
    HK_RECORD_PRODUCER_GONE,
    HK_RECORD_BOOT
};

/* Flags of an ENQUEUE. */
enum {
    HK_ENQUEUE_DUE = 1,
    HK_ENQUEUE_EXPIRES = 2,
    HK_ENQUEUE_SEQUENCED = 4,
    HK_ENQUEUE_STATE = 8,
    HK_ENQUEUE_COPY = 16
};

/* Flag of a STATE. */
enum { HK_RECORD_STATE_DELAYED = 1 };

/* Bytes before what has a length of its own. */
enum {
    HK_RECORD_ENQUEUE_BYTES = 24,
    HK_RECORD_STATE_BYTES = 24,
    HK_RECORD_DELAY_BYTES = 4,
    HK_RECORD_QUEUE_BYTES = 8,
    HK_RECORD_GONE_BYTES = 8,
    HK_RECORD_PRODUCER_BYTES = 24,
    HK_RECORD_PRODUCER_MOST = 816, /* of the whole record: its head, 24, 255 of the identity, 512 of the map, padded */
    HK_RECORD_BOOT_BYTES = 16
};

#endif
