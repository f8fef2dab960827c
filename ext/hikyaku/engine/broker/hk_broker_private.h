/* hk_broker_private.h: what the parts of a broker share.
 *
 *     hk_broker            opening, closing, connecting
 *     hk_broker_receive    bytes become frames
 *     hk_broker_hello      who it is, and what they may do
 *     hk_broker_producer   identities: epochs, numbers that were taken
 *     hk_broker_send       SEND and SEND_BATCH
 *     hk_broker_message    messages, and where their bytes are
 *     hk_broker_queue      queues, and the lines in them
 *     hk_broker_subscribe  SUBSCRIBE, UNSUBSCRIBE, CREDIT
 *     hk_broker_deliver    who gets a message next; PUSH
 *     hk_broker_lapse      receivers that let a lease end (hk_broker_lapse_private.h)
 *     hk_broker_settle     FREE, NACK, TOUCH, and what comes back
 *     hk_broker_ack        acknowledgements that wait for their level
 *     hk_broker_output     what a session has to be sent
 *     hk_broker_order      many messages, in the order of their ids
 *     hk_broker_tick       leases, delays, expiries, heartbeats
 *     hk_broker_store      records into the journal
 *     hk_broker_replay     and out of it
 *     hk_broker_ledger     what is needed of which segment
 *     hk_broker_report     QUERY
 *     hk_broker_pick       the queues that it lists
 *     hk_broker_explain    why a message waits, and who holds it
 *     hk_broker_identities which identities are remembered
 *     hk_broker_dead       and what it says and does about dead letters
 *
 *     SEND ─► message ─► line of its queue ─► delivery, out at a session ─► FREE
 *                 │            ▲                    │
 *                 └─ delayed ──┘◄─── comes back ────┘
 */
#ifndef HK_BROKER_PRIVATE_H
#define HK_BROKER_PRIVATE_H

#include "hk_arena.h"
#include "hk_broker.h"
#include "hk_buf.h"
#include "hk_frame.h"
#include "hk_heap.h"
#include "hk_json.h"
#include "hk_list.h"
#include "hk_map.h"
#include "hk_slab.h"

#define HK_MS INT64_C(1000000) /* ns */

enum {
    HK_BROKER_PRIORITIES = 10,
    HK_BROKER_LARGE = 2 * HK_BROKER_PRIORITIES, /* lines of each priority: what came back, what is new; */
    HK_BROKER_LINES = HK_BROKER_LARGE + 1,      /* and of all: what nobody takes, for its size */
    HK_BROKER_PIECE_BYTES = 64 * 1024,
    HK_BROKER_COPIED_MOST = 2048,            /* larger contents are not copied to the output, but referred to */
    HK_BROKER_AHEAD_BYTES = 512 * 1024,      /* that are laid out for one receiver */
    HK_BROKER_OUTPUT_MOST = 8 * 1024 * 1024, /* and one frame: beyond, nothing is read from a session */
    HK_BROKER_USUAL_PRIORITY = 4,
    HK_BROKER_RETRY_MS = 1000,
    HK_BROKER_SESSION_BITS = 36,
    HK_BROKER_HELLO_MS = 10000 /* in which a connection says who it is */
};

typedef struct hk_message hk_message_t;
typedef struct hk_extra hk_extra_t;
typedef struct hk_queue hk_queue_t;
typedef struct hk_receiver hk_receiver_t;
typedef struct hk_delivery hk_delivery_t;
typedef struct hk_producer hk_producer_t;
typedef struct hk_ack hk_ack_t;
typedef struct hk_ledger_row hk_ledger_row_t;

/* --- messages ----------------------------------------------------------------------------------------------------- */

typedef enum hk_state {
    HK_STATE_WAITS,   /* in a line */
    HK_STATE_DELAYED, /* in the heap of what is due later */
    HK_STATE_OUT,
    HK_STATE_DEAD,
    HK_STATE_GONE /* done with, but still standing in a line */
} hk_state_t;

struct hk_message {
    hk_message_t *next; /* in its line */
    uint64_t id;
    uint64_t sent : 46, reason : 2, properties : 16; /* ms since 1970; of its death; bytes */
    hk_queue_t *queue;                               /* NULL: given back */
    hk_piece_t *piece;                               /* where its content is; with a segment: in the journal, too */
    hk_extra_t *extra;                               /* NULL: nothing special */
    uint32_t offset, bytes;                          /* of the content: properties and payload */
    uint16_t failures, crashes, returns;
    uint16_t priority : 4, level : 2, state : 3, head : 5,
        delivered : 1; /* head: 4 bytes each before the content in its record */
};

/* What few messages have. */
struct hk_extra {
    hk_heap_node_t due, expires; /* ns */
    hk_message_t *message;
    int64_t expiry; /* ns; INT64_MAX: none */
    char *words;    /* of the receiver */
    uint16_t words_length;
    uint16_t head;                   /* bytes before the content in its record, where message->head is 0 */
    uint64_t due_wall, expires_wall; /* as the journal says: ms since 1970; 0: it does not */
    uint32_t due_most;               /* ms that the delay had at first, at most. While the journal is read */
};

enum { HK_REASON_FAILURES = 1, HK_REASON_CRASHES, HK_REASON_SAID };

typedef struct hk_line {
    hk_message_t *first, *last;
} hk_line_t;

/* --- queues ------------------------------------------------------------------------------------------------------- */

struct hk_queue {
    hk_map_node_t node; /* by kind and name */
    hk_list_t link;
    hk_list_t idle;  /* empty and unsubscribed, since idle_since */
    hk_list_t again; /* something failed for want of memory: is tried again */
    int64_t idle_since;
    uint32_t number;
    uint8_t kind;
    uint64_t named;   /* the newest segment with a QUEUE of it; 0: none */
    bool look;        /* whether anybody takes what is too large for those aside is to be asked (again) */
    uint32_t waiting; /* a bit for each line that is not empty, but for that of what nobody takes */
    hk_line_t lines[HK_BROKER_LINES];
    hk_line_t suspects, dead;
    uint64_t gone;                   /* how many stand in lines, and are done with */
    uint64_t dead_gone;              /* the same, among the dead: what was there has gone elsewhere */
    hk_list_t subscriptions, takers; /* takers: those that may get something, who is next first */
    hk_list_t aside;                 /* takers for which the message with this id is too large, whose turn it was */
    uint64_t aside_for;
    hk_message_t *finger;    /* the last that came back, while it stands in its line */
    hk_receiver_t *emptying; /* gets nothing, so that it can take a suspect */
    uint64_t ready, delayed, out, dead_count, bytes;
    uint64_t sent, freed, redelivered, failed, crashed, expired;
    uint16_t key_length;
    char key[]; /* kind, then the name */
};

static inline hk_bytes_t hk_queue_name(const hk_queue_t *queue)
{
    return hk_bytes(queue->key + 1, (size_t)queue->key_length - 1);
}

static inline uint64_t hk_queue_messages(const hk_queue_t *queue)
{
    return queue->ready + queue->delayed + queue->out + queue->dead_count;
}

/* --- sessions ----------------------------------------------------------------------------------------------------- */

struct hk_receiver {
    hk_list_t link; /* of its session */
    hk_list_t of_queue;
    hk_list_t taker;          /* while it may get something: of the queue's takers, or those aside */
    hk_list_t out;            /* deliveries, whose lease ends first */
    hk_list_t odd;            /* and those whose lease has another length */
    hk_heap_node_t lease_end; /* not later than that of the first of them */
    hk_session_t *session;
    hk_queue_t *queue; /* NULL: unsubscribed */
    uint16_t number;
    bool alone; /* it has a suspect, and gets nothing else */
    bool aside; /* it stands in queue->aside */
    uint32_t credit, credit_bytes;
    uint32_t out_count;
    uint64_t out_bytes;
    uint32_t lease;  /* ms */
    uint64_t lapsed; /* the newest delivery whose lease its connection let end, and has said nothing since: it is
                      * passed over. 0: none */
};

struct hk_delivery {
    hk_delivery_t *chain; /* of the same slot */
    hk_message_t *message;
    hk_receiver_t *subscription;
    hk_list_t link; /* of subscription->out or ->odd */
    int64_t deadline;
    struct hk_odd_lease *odd; /* NULL: its lease is as long as the subscription's, so it stands in order */
    uint64_t number : 63, in_hand : 1;
};

/* A lease that was touched with a length of its own. */
typedef struct hk_odd_lease {
    hk_heap_node_t node;
    hk_delivery_t *delivery;
} hk_odd_lease_t;

/* What was asked for and is to be acknowledged: one request, or SENDs with ids that follow each other. */
struct hk_ack {
    hk_ack_t *next;
    hk_list_t link; /* of the session; stands in none when that is gone */
    hk_session_t *session;
    uint64_t position; /* that has to be written, or synced; 0: not known before the turn ends */
    uint64_t id, last, value;
    uint32_t count, requests;
    uint64_t bytes;
    char *refused; /* of a batch: 12 bytes each */
    uint16_t refusals;
    uint8_t type, level, flags;
};

typedef struct hk_acks {
    hk_ack_t *first, *last;
} hk_acks_t;

/* Bytes that are to be sent: of a piece, or the next of session->out. */
typedef struct hk_part {
    hk_piece_t *piece;
    uint32_t offset, length;
} hk_part_t;

typedef enum hk_session_phase {
    HK_SESSION_NEW,
    HK_SESSION_ASKING,
    HK_SESSION_OPEN,
    HK_SESSION_ENDED
} hk_session_phase_t;

typedef struct hk_right {
    uint8_t rights;
    bool beginning; /* of names, not a whole one */
    hk_bytes_t name;
} hk_right_t;

struct hk_session {
    hk_broker_t *broker;
    hk_list_t link, ready, asking;
    void *context;
    uint64_t serial, number;
    hk_session_phase_t phase;
    bool blocked, taken,
        broken; /* taken: it was told by next_ready. broken: output was lost, there is nothing to be said */
    bool drained, acknowledges; /* it said DRAIN; it has said ACK to a PUSH */
    bool forgets;               /* it said that its identity is not needed any more */
    bool held;                  /* so much is laid out that it gets nothing more for now */
    uint32_t max_frame;
    uint32_t lapsed; /* of its subscriptions, those that are passed over */

    hk_buf_t in, out;
    hk_part_t *parts;
    uint32_t part_first, part_count, part_capacity;
    size_t part_written;   /* of the first */
    size_t laid, gathered; /* bytes */

    hk_ack_t pending;  /* reached its level: is laid out when something else is, or when gathered */
    hk_ack_t *open[3]; /* by level, what SENDs of this turn are added to */
    hk_list_t acks;
    uint32_t unanswered;
    uint64_t unanswered_bytes;

    hk_queue_t *last_queue; /* of the last SEND, who may send there; as long as no queue was forgotten since */
    uint64_t last_forgotten;
    hk_list_t subscriptions;
    uint32_t subscription_count;
    hk_delivery_t **slots;
    uint32_t slot_count, out_count;
    uint64_t next_delivery;

    hk_producer_t *producer;
    hk_right_t *rights;
    size_t right_count;
    uint64_t until; /* wall ms */

    hk_heap_node_t timer;
    int64_t heartbeat, heard, said; /* ns; heartbeat 0: none */
    hk_frame_hello_t hello;         /* in hello_text */
    uint64_t hello_id;
    char *address_text, *hello_text;
    hk_bytes_t address;
};

struct hk_producer {
    hk_map_node_t node; /* by identity */
    hk_list_t link, idle;
    int64_t idle_since;
    hk_session_t *session; /* NULL: not connected */
    uint32_t number;
    bool begun;       /* it had a connection before */
    bool remembered;  /* it has numbered a message: it counts, and stays when its connection ends */
    bool recorded;    /* PRODUCER was appended: each segment repeats it */
    uint64_t segment; /* the newest that says all of it; 0: none */
    uint64_t epoch, low;
    uint64_t newest;
    uint64_t *map;     /* NULL: none above low was taken. A ring: the bit of n is n % 4,096 */
    uint64_t *passing; /* the same, up to `newest`, of those that a restart forgets. NULL: none */
    uint32_t above;
    uint16_t length;
    char identity[];
};

/* --- segments ----------------------------------------------------------------------------------------------------- */

struct hk_ledger_row {
    uint64_t number, live; /* live: messages whose newest ENQUEUE stands here */
    hk_piece_t stub;       /* what messages refer to whose bytes are on the disk alone */
    uint64_t *refers;      /* older segments that its FREEs, STATEs and COPYs speak of */
    uint32_t refer_count, refer_capacity;
    bool refers_to_all; /* there was no memory to say which */
    bool dropped;
    hk_message_t *oldest; /* while a report is made */
};

typedef struct hk_ledger {
    hk_ledger_row_t **rows; /* by number, from `first` on */
    uint64_t first;
    size_t count, capacity;
    uint64_t live_bytes;
    uint32_t filled;             /* of the segment in which the newest ENQUEUE stands, up to its end */
    bool dirty;                  /* something may have become needless */
    uint64_t current, first_own; /* the segment that is being written; that of this start */
    int64_t rests_until;         /* nothing is copied before */
    uint64_t evacuated;          /* the segment that is being emptied; 0: none */
} hk_ledger_t;

/* --- the broker --------------------------------------------------------------------------------------------------- */

struct hk_broker {
    const hk_alloc_t *alloc;
    hk_broker_options_t options; /* with the usual in place of 0 */
    hk_journal_t *journal;       /* NULL: no storage */
    hk_arena_t *arena;
    hk_piece_t *filling;
    uint64_t held_bytes;  /* of messages that stand in memory alone */
    uint64_t words_bytes; /* of receivers' words */
    hk_slab_pool_t messages, extras, deliveries, acks;
    hk_map_t queues, producers;
    hk_list_t all_queues, idle_queues, again, all_producers, idle_producers;
    hk_list_t sessions, ready;
    hk_list_t asking, asked; /* whose HELLO is to be decided: nobody was told yet; somebody was */
    uint32_t session_count, last_queue_number, last_producer_number;
    uint32_t remembered; /* producers */
    hk_queue_t *naming;  /* whose name a segment that is begun now needs; NULL: none */
    hk_heap_t due, expiries, leases, odd_leases, timers;
    int64_t now;
    uint64_t wall;
    uint64_t next_id, reserved_id, next_session, reserved_session, last_serial;
    uint64_t boot_at;         /* the id at which more are reserved */
    hk_acks_t waiting[3];     /* by level */
    hk_ack_t *unstamped[3];   /* the first of this turn */
    hk_buf_t freed, freed_in; /* ids that were freed in this turn; segments in which they stood */
    hk_buf_t scratch;
    hk_ledger_t ledger;
    uint64_t queues_forgotten;
    bool failed, draining, closing, replaying, wants_sync;
    uint32_t retry_after;
    int64_t disk_retry, again_at; /* when a full disk, and what there was no memory for, are tried again */
    struct hk_replay *replay;     /* NULL: not opening */
    hk_status_t close_status;
    hk_journal_trouble_t trouble;
    hk_broker_stats_t stats;
};

/* --- hk_broker_message -------------------------------------------------------------------------------------------- */

/* A message of this turn, in no line. NULL: there is no memory. */
hk_message_t *hk_message_new(hk_broker_t *broker, hk_queue_t *queue);

/* Its bytes and itself go. It must be in no line and no heap. */
void hk_message_free(hk_broker_t *broker, hk_message_t *message);

/* What few messages have, made if it has none. NULL: there is no memory. */
hk_extra_t *hk_message_extra(hk_broker_t *broker, hk_message_t *message);

/* It has nothing special any more. */
void hk_message_drop_extra(hk_broker_t *broker, hk_message_t *message);

/* Lays its content into the arena. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_message_lay(hk_broker_t *broker, hk_message_t *message, hk_bytes_t content);

/* Its content. piece: one that holds it, with a reference for the caller; bytes: where. HK_OK, HK_NO_MEMORY, or
 * HK_SYSTEM: it cannot be read from the disk. */
hk_status_t hk_message_content(hk_broker_t *broker, const hk_message_t *message, hk_piece_t **piece, hk_bytes_t *bytes);

/* Whether it stands in the journal. */
static inline bool hk_message_recorded(const hk_message_t *message)
{
    return message->piece != NULL && message->piece->segment != 0;
}

/* Bytes that messages take in memory: all; beside their content; and what those that were written may leave there of
 * their content. */
uint64_t hk_broker_memory(const hk_broker_t *broker);
uint64_t hk_broker_index(const hk_broker_t *broker);
size_t hk_broker_image_most(const hk_broker_t *broker);

/* Whether there may be another message with so many bytes that must stand in memory. */
bool hk_broker_has_memory(const hk_broker_t *broker, size_t bytes);

/* It is done with: freed, expired, dropped or purged. It must be out of lines and heaps, but for one that waits: it
 * stays in its line, as gone. hk_store_reserve_freed has been called. */
void hk_message_done(hk_broker_t *broker, hk_message_t *message);

/* Its time has come: dropped, if it is not out. false: there is no memory to say so. */
bool hk_message_expire(hk_broker_t *broker, hk_message_t *message);

/* Its receiver's words. No memory: without. */
void hk_message_say(hk_broker_t *broker, hk_message_t *message, hk_bytes_t words);

/* --- hk_broker_queue ---------------------------------------------------------------------------------------------- */

/* HK_OK; HK_TOO_MANY; HK_NO_MEMORY. */
hk_status_t hk_queue_get(hk_broker_t *broker, uint8_t kind, hk_bytes_t name, hk_queue_t **queue);
hk_queue_t *hk_queue_find(hk_broker_t *broker, uint8_t kind, hk_bytes_t name);

/* It may have become needless, or needed. */
void hk_queue_touch(hk_broker_t *broker, hk_queue_t *queue);
void hk_queue_free(hk_broker_t *broker, hk_queue_t *queue);

/* As hk_queue_free; sessions that remember it look for it anew. */
void hk_queue_forget(hk_broker_t *broker, hk_queue_t *queue);

/* Forgets its messages, which somebody else frees. */
void hk_queue_clear(hk_queue_t *queue);

/* Puts a message where it waits: with the suspects, with what came back in the order of ids, or behind what is new. */
void hk_queue_put(hk_message_t *message);

/* It waits until then. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_queue_delay(hk_broker_t *broker, hk_message_t *message, int64_t due);

/* The first that waits, or NULL; those that are gone are taken out. */
hk_message_t *hk_queue_first(hk_broker_t *broker, hk_queue_t *queue);
hk_message_t *hk_queue_first_suspect(hk_broker_t *broker, hk_queue_t *queue);
void hk_queue_shift(hk_queue_t *queue, hk_message_t *message);

/* The first lets others go before: nobody who may receive takes a message of its size. */
void hk_queue_park(hk_queue_t *queue, hk_message_t *message);

/* Somebody may receive (again): what lets others go before, and fits, waits before what is new. O(what does). */
void hk_queue_unpark(hk_broker_t *broker, hk_queue_t *queue, const hk_receiver_t *subscription);

/* Frees those that are gone. */
void hk_queue_sweep(hk_broker_t *broker, hk_queue_t *queue);

/* It is dead. */
void hk_queue_bury(hk_broker_t *broker, hk_message_t *message, uint8_t reason);

void hk_line_append(hk_line_t *line, hk_message_t *message);

/* --- hk_broker_deliver -------------------------------------------------------------------------------------------- */

/* Gives out what can be given out. */
void hk_queue_pump(hk_broker_t *broker, hk_queue_t *queue);

/* The same with the next tick. */
void hk_queue_pump_soon(hk_broker_t *broker, hk_queue_t *queue);

/* Its credit, what is out, or its session changed: whether it is a taker. */
void hk_receiver_review(hk_receiver_t *subscription);

/* The same for all of a session, and gives out. */
void hk_session_review(hk_session_t *session);

/* Its client takes frames that are large enough. */
bool hk_receiver_fits(const hk_receiver_t *subscription, const hk_message_t *message);

/* NULL: it is not out. */
hk_delivery_t *hk_session_delivery(const hk_session_t *session, uint64_t number);

/* Takes a delivery out: its message is nowhere then. */
hk_message_t *hk_delivery_end(hk_broker_t *broker, hk_delivery_t *delivery);

/* --- hk_broker_settle --------------------------------------------------------------------------------------------- */

void hk_take_free(hk_session_t *session, const hk_frame_t *frame);
void hk_take_nack(hk_session_t *session, const hk_frame_t *frame);
void hk_take_touch(hk_session_t *session, const hk_frame_t *frame);
void hk_take_receipt(hk_session_t *session, const hk_frame_t *frame);

void hk_take_drain(hk_session_t *session, const hk_frame_t *frame);

/* All that is out comes back; what it had in hand has crashed, unless it said DRAIN. */
void hk_session_return_all(hk_session_t *session);

/* Its lease has ended. */
void hk_delivery_expire(hk_broker_t *broker, hk_delivery_t *delivery);

/* --- hk_broker_subscribe ------------------------------------------------------------------------------------------ */

void hk_take_subscribe(hk_session_t *session, const hk_frame_t *frame);
void hk_take_unsubscribe(hk_session_t *session, const hk_frame_t *frame);
void hk_take_credit(hk_session_t *session, const hk_frame_t *frame);
void hk_receiver_end(hk_receiver_t *subscription);
void hk_receiver_forget(hk_receiver_t *subscription);

/* --- hk_broker_send ----------------------------------------------------------------------------------------------- */

void hk_take_send(hk_session_t *session, const hk_frame_t *frame);
void hk_take_send_batch(hk_session_t *session, const hk_frame_t *frame);

/* --- hk_broker_hello ---------------------------------------------------------------------------------------------- */

void hk_take_hello(hk_session_t *session, const hk_frame_t *frame);

/* Whether it may: HK_RIGHT_…. */
enum { HK_RIGHT_SEND = 1, HK_RIGHT_RECEIVE = 2, HK_RIGHT_MANAGE = 4 };
bool hk_session_may(const hk_session_t *session, uint8_t right, uint8_t kind, hk_bytes_t name);

/* --- hk_broker_ack ------------------------------------------------------------------------------------------------ */

/* A SEND is going to be acknowledged at a level: joins the range of this turn, or makes one. NULL: there is no memory.
 * `value`: id of the message. */
hk_ack_t *hk_session_ack_send(hk_session_t *session, uint8_t level, uint64_t id, uint64_t value, size_t bytes);

/* Another request. Sets nothing but type, level and id. */
hk_ack_t *hk_session_ack_later(hk_session_t *session, uint8_t type, uint8_t level, uint64_t id);

/* It stands for so many messages, and bytes, of the session's window. */
void hk_session_ack_weigh(hk_ack_t *ack, uint32_t messages, size_t bytes);

/* Takes back what has just been made. */
void hk_session_ack_never(hk_session_t *session, hk_ack_t *ack);

/* Says it now. */
void hk_session_ack_now(hk_session_t *session, const hk_frame_ack_t *ack);

void hk_session_say(hk_session_t *session, const hk_ack_t *ack);

/* Lays out what is pending. */
void hk_session_flush(hk_session_t *session);

/* All that waits for a level up to this position. */
void hk_broker_acknowledge(hk_broker_t *broker, uint8_t level, uint64_t position);
void hk_broker_forget_acks(hk_session_t *session);
void hk_broker_stamp(hk_broker_t *broker, uint64_t position);

/* --- hk_broker_output --------------------------------------------------------------------------------------------- */

/* Room for so many bytes at the end of what is to be sent, laid out with this. NULL: the session is broken. */
char *hk_session_lay(hk_session_t *session, size_t size);

/* The same, and it is no harm when there is no memory: NULL. */
char *hk_session_try(hk_session_t *session, size_t size);

/* The same, with bytes of a piece behind them, which is retained. */
char *hk_session_refer(hk_session_t *session, size_t size, hk_piece_t *piece, hk_bytes_t bytes);
void hk_session_clear_output(hk_session_t *session);

/* It does not read what it is sent: nothing more is to be read from it either. */
bool hk_session_behind(const hk_session_t *session);

/* It has something to be sent. */
void hk_session_wake(hk_session_t *session);

/* ERROR. The sentence is formatted as printf. */
typedef struct hk_complaint {
    uint64_t id, delivery; /* FENCED: an epoch */
    hk_code_t code;
    hk_scope_t scope;
    uint16_t subscription;
    const char *sentence;
} hk_complaint_t;

void hk_session_complain(hk_session_t *session, const hk_complaint_t *complaint);

/* Refuses a request. */
void hk_session_refuse(hk_session_t *session, uint64_t id, hk_code_t code, const char *sentence);

/* It ends: what was out comes back, the identity is free. */
void hk_session_finish(hk_session_t *session);

/* Says why, and ends the connection. Not from within a hk_queue_pump. */
void hk_session_end(hk_session_t *session, uint64_t id, hk_code_t code, const char *sentence);
void hk_session_end_with(hk_session_t *session, const hk_complaint_t *complaint);

/* --- hk_broker_order ---------------------------------------------------------------------------------------------- */

/* The same messages in the order of their ids, linked by `next`. O(n), with 32 bytes a message meanwhile; where
   those are not to be had, O(n log n) without. */
hk_message_t *hk_messages_sorted(const hk_alloc_t *alloc, hk_message_t *messages);

/* --- hk_broker_tick ----------------------------------------------------------------------------------------------- */

void hk_session_set_timer(hk_session_t *session);

/* --- hk_broker ---------------------------------------------------------------------------------------------------- */

/* The storage has failed: everybody is told. */
void hk_broker_fail(hk_broker_t *broker);

/* The clocks of a call from outside. */
static inline void hk_broker_at(hk_broker_t *broker, int64_t now, uint64_t wall)
{
    broker->now = now > broker->now ? now : broker->now;
    broker->wall = wall;
}

void hk_queue_read_stats(const hk_queue_t *queue, uint64_t wall, hk_queue_stats_t *stats);

/* --- hk_broker_report --------------------------------------------------------------------------------------------- */

void hk_take_query(hk_session_t *session, const hk_frame_t *frame);

#endif
