/* hk_log.h: everything that was published, in order, within so many bytes.
 *
 *     evicted …  | first … head |  next
 *                 └─ retained ─┘
 *
 * Positions are dense and rise from 1. The newest record is always kept, even when it alone is larger than the ring.
 * Event ids that the hub makes are enciphered positions (Speck64/128, as Hikyaku::Log::PositionCipher) and need no
 * index; ids that publishers chose are indexed, and stand for the earliest retained record that bears them.
 */
#ifndef HK_LOG_H
#define HK_LOG_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_map.h"
#include "hk_sse.h"
#include "hk_status.h"
#include "hk_topic.h"

#include <stdint.h>

typedef uint64_t hk_position_t;
#define HK_POSITION_NONE UINT64_MAX

enum { HK_LOG_KEY_BYTES = 16, HK_EVENT_ID_BYTES = 12 };

/* What the log holds, in bytes; with what the allocator adds, and tables that are as large as they were.
 *
 * RECORD   a record, beside the event, its id and the texts of its topics, which each record counts.
 * PLACE    a topic in a record.
 * CHOSEN   an id that its publisher chose, in the index.
 * TOPIC    a topic that records hold, beside its text and what its URL has besides: once, however many they are. So
 *          many bytes of topics cost nothing (FREE): what a hub has anyway. */
enum {
    HK_RECORD_OVERHEAD = 160,
    HK_PLACE_OVERHEAD = 4,
    HK_CHOSEN_OVERHEAD = 200,
    HK_TOPIC_OVERHEAD = 320,
    HK_TOPICS_FREE = 256 * 1024
};

/* One record: immutable, shared by reference. */
typedef struct hk_record {
    uint32_t references;
    bool is_private;
    bool own_id;          /* the publisher chose the id */
    uint16_t topic_count; /* 0: it is for all, whatever they subscribe to; see hk_log_append_gap */
    hk_position_t position;
    hk_bytes_t frame, id; /* the event's bytes, and its id in them */
    hk_topic_t **topics;
    size_t bytes;                /* what it costs the ring: as Hikyaku::Hub::History has it */
    struct hk_chosen_id *chosen; /* the log's own: NULL unless own_id */
    const hk_alloc_t *alloc;
} hk_record_t;

typedef struct hk_log hk_log_t;

typedef struct hk_log_options {
    size_t capacity;               /* bytes */
    uint8_t key[HK_LOG_KEY_BYTES]; /* random, of the ids */
    uint64_t secret[2];            /* random, of the hashes */
} hk_log_options_t;

/* What is appended; all bytes are copied, topics are retained. */
typedef struct hk_log_update {
    hk_topic_t *const *topics;
    size_t topic_count; /* 1 to 65,535 */
    hk_bytes_t data;
    hk_bytes_t id;    /* empty: the log makes one */
    hk_bytes_t type;  /* empty: none */
    int64_t retry_ms; /* negative: none */
    bool is_private;
} hk_log_update_t;

/* Makes an empty log. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_log_new(const hk_alloc_t *alloc, const hk_log_options_t *options, hk_log_t **log);

/* Forgets all records; those that somebody retained live on. NULL is allowed. */
void hk_log_free(hk_log_t *log);

/* Writes an update down, before anybody sees it. HK_OK; else it is not appended. */
typedef hk_status_t (*hk_log_keep_t)(void *context, hk_position_t position, const hk_log_update_t *update);

/* Everything that is appended is written down from now on. NULL: nothing is. */
void hk_log_keep(hk_log_t *log, hk_log_keep_t keep, void *context);

/* Encodes an update as an event, appends it, and evicts the oldest records while the ring is too large. Amortised
 * O(bytes of the update), also where one id is used again and again. One allocation, beside tables that grow now and
 * then.
 *
 * record  borrowed until the next append; hk_record_retain keeps it. May be NULL.
 *
 * HK_OK; HK_INVALID: no topic, or more than 65,535; HK_NO_MEMORY; what `keep` says. On failure nothing was appended, no
 * position used. */
hk_status_t hk_log_append(hk_log_t *log, const hk_log_update_t *update, hk_record_t **record);

/* Seals with another key from a position on, which is above all that were appended: a log that may have lost its newest
 * records goes on so, and an id that was lost never comes to stand for another record. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_log_begin_generation(hk_log_t *log, hk_position_t first, const uint8_t key[HK_LOG_KEY_BYTES]);

/* Appends an event for all readers at a position not below the one that the next record would have; there is none at
 * the positions between. It is not written down. HK_OK or HK_NO_MEMORY: nothing was appended. */
hk_status_t hk_log_append_gap(hk_log_t *log, hk_position_t position, const hk_sse_event_t *event);

/* Evicts what stands before a position. */
void hk_log_keep_from(hk_log_t *log, hk_position_t position);

/* Goes on at a position, not below the one that the next record would have: when it is another, nothing before it is
 * retained. */
void hk_log_go_on_at(hk_log_t *log, hk_position_t position);

/* The record at a position, or NULL when it was evicted or not yet written. O(1). */
hk_record_t *hk_log_at(const hk_log_t *log, hk_position_t position);

/* Keeps a record; returns it. */
hk_record_t *hk_record_retain(hk_record_t *record);

/* Lets go of a record, and frees it when nobody keeps it. NULL is allowed. */
void hk_record_release(hk_record_t *record);

/* The oldest retained position, head + 1 when nothing is retained; the newest, 0 before the first append. */
hk_position_t hk_log_first(const hk_log_t *log);
hk_position_t hk_log_head(const hk_log_t *log);

/* How many records are retained, and what they cost, with their topics: those that many records share count once. */
size_t hk_log_count(const hk_log_t *log);
size_t hk_log_bytes(const hk_log_t *log);

/* Writes the id that the hub makes for a position, whether there is such a record or not. */
void hk_log_seal(const hk_log_t *log, hk_position_t position, char id[HK_EVENT_ID_BYTES]);

/* Makes ids with another key from now on, which nobody else has: those made before are unknown. For a process that was
 * forked, in which the same positions are to become other events. */
void hk_log_rekey(hk_log_t *log, const uint8_t key[HK_LOG_KEY_BYTES]);

/* The position for an id that the hub made. HK_OK, or HK_NOT_FOUND when it has not that form. */
hk_status_t hk_log_open(const hk_log_t *log, hk_bytes_t id, hk_position_t *position);

/* The position of a retained event, or of one from which nothing was lost since: by the index of chosen ids, else by
 * deciphering. HK_OK, or HK_NOT_FOUND. O(1). As RubyEngine#position_of. */
hk_status_t hk_log_find(const hk_log_t *log, hk_bytes_t id, hk_position_t *position);

#endif
