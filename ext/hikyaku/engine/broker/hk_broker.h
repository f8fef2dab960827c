/* hk_broker.h: queues, messages, leases and sessions; bytes in, bytes out. docs/protocol.md is what it speaks.
 *
 *     bytes of a client ─► receive ─► frames ─► queues ─► deliveries ─► gather ─► bytes for a client
 *                             │                   ▲            │
 *                             ▼                   │            ▼
 *                        hk_journal ── commit, jobs ──► acknowledgements of their levels
 *
 * A message is appended once, to the journal's image or (at level memory) to an arena; a PUSH copies from there what is
 * small, and points to what is large; FREE is a record of 8 bytes per message. A message that waits costs 64 bytes
 * beside its own, which stand in memory as long as there is room for them, else they are read from the disk again when
 * its turn comes.
 *
 * Cost: SEND, PUSH, FREE, NACK, TOUCH O(bytes), amortised, independent of how many messages, queues and sessions there
 * are; a lease O(1), one that was touched with another length O(log n), as delay and expiry. QUERY may look at all.
 * No allocation per message but slabs and pieces, now and then.
 *
 * The driver (the loop, a test) owns sockets, clock and threads:
 *
 *     each turn:  receive / connect / disconnect … ; tick ; commit ;
 *                 for each of next_ready: gather, send, wrote ; jobs of both lanes out and back
 *
 * Times: now is ns of a clock that only goes forward; wall ms since 1970. Not thread-safe, but hk_job_run.
 */
#ifndef HK_BROKER_H
#define HK_BROKER_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_files.h"
#include "hk_journal.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

typedef struct hk_broker hk_broker_t;
typedef struct hk_session hk_session_t;

typedef enum hk_level { HK_LEVEL_MEMORY, HK_LEVEL_WRITTEN, HK_LEVEL_SYNCED } hk_level_t;

typedef struct hk_broker_options {
    const char *path;        /* of the journal's folder; NULL: no storage, level memory alone */
    const hk_files_t *files; /* NULL with no path */
    uint32_t segment_bytes;  /* 0: the usual */
    size_t max_memory; /* bytes that messages take in memory, beyond which they are refused (OVERLOADED): 64 for each,
                        * and those of level memory their content. 0: 1 GiB */
    uint64_t max_storage; /* bytes of segments; beyond: DISK_FULL. 0: any number */
    uint8_t level;        /* hk_level_t: of SENDs that leave it to the broker; never above what there is */
    bool open;            /* whoever says HELLO may do everything, nobody is asked */
    uint32_t max_frame;   /* bytes; 0: 1 MiB */
    uint32_t heartbeat_least, heartbeat_most;             /* ms; 0: 1 s, 60 s */
    uint32_t window_messages, window_bytes;               /* 0: 4,096; 8 MiB */
    uint32_t lease, lease_most;                           /* ms; 0: 30 s, 12 h */
    uint16_t max_failures, max_crashes;                   /* 0: 20, 3 */
    uint64_t max_queue_messages, max_queue_bytes;         /* 0: any number */
    uint32_t max_queues, max_sessions, max_subscriptions; /* the last of one session. 0: 100,000; 10,000; 1,024 */
    uint32_t max_identities;            /* that are remembered. 0: 10,000; no more than hk_broker_identities_most */
    uint32_t queue_idle, producer_idle; /* s; 0: an hour, a week */
    uint64_t secret[2];                 /* random, for hashes */
    hk_journal_reading_t reading;
} hk_broker_options_t;

/* Identities whose records fit into half a segment of this size, whatever they hold; 0: the usual size. */
uint32_t hk_broker_identities_most(uint32_t segment_bytes);

/* Bytes of properties and payload that fit into a segment beside so many identities, whatever else it begins with. */
uint32_t hk_broker_message_most(uint32_t segment_bytes, uint32_t identities);

/* Opens the journal, if there is to be one, and replays it. As hk_journal_open. */
hk_status_t hk_broker_open(const hk_alloc_t *alloc, const hk_broker_options_t *options, int64_t now, uint64_t wall,
                           hk_broker_t **broker, hk_journal_trouble_t *trouble);

/* The orderly end: messages of level memory are written down, too; the journal is closed. No job may be out. Sessions
 * end without a word. HK_OK or HK_SYSTEM; the broker is freed in any case. */
hk_status_t hk_broker_close(hk_broker_t *broker, int64_t now, uint64_t wall);

/* Frees the memory and touches no file: for a forked child, and for tests of crashes. */
void hk_broker_drop_dead(hk_broker_t *broker);

/* --- sessions ----------------------------------------------------------------------------------------------------- */

/* A connection has come. address: for people; context: the driver's. NULL: there is no memory, or too many. */
hk_session_t *hk_broker_connect(hk_broker_t *broker, hk_bytes_t address, void *context, int64_t now);

/* Bytes came. Whole frames are done at once, the rest is kept. When it is HK_CLOSED nothing more is read: what there is
 * to say is sent, then the connection is closed (hk_session_over). HK_NO_MEMORY: as HK_CLOSED, with nothing to say. */
hk_status_t hk_broker_receive(hk_broker_t *broker, hk_session_t *session, hk_bytes_t bytes, int64_t now, uint64_t wall);

/* The connection is gone: what was out comes back. The session is freed. */
void hk_broker_disconnect(hk_broker_t *broker, hk_session_t *session, int64_t now, uint64_t wall);

void *hk_session_context(const hk_session_t *session);

/* It has not said HELLO. */
bool hk_session_is_strange(const hk_session_t *session);

/* It has as many unanswered requests as it may: nothing is to be read from it for now. */
bool hk_session_full(const hk_session_t *session);

/* Nothing more is to be read, and everything was gathered: close it. */
bool hk_session_over(const hk_session_t *session);

/* --- output ------------------------------------------------------------------------------------------------------- */

/* Somebody who has something to be sent, or is over, and is not blocked; NULL: nobody. It comes again only after
 * hk_session_wrote. */
hk_session_t *hk_broker_next_ready(hk_broker_t *broker);

/* What is to be sent: up to `most` parts; how many. Valid until the next call for this session but `wrote`. */
int hk_session_gather(hk_session_t *session, struct iovec *parts, int most);

/* So many bytes were sent. Fewer than gathered: it is blocked until hk_session_writable. */
void hk_session_wrote(hk_session_t *session, size_t bytes);
void hk_session_writable(hk_session_t *session);

/* --- who may ------------------------------------------------------------------------------------------------------ */

typedef struct hk_hello {
    uint64_t serial; /* of the session: how the answer finds it */
    hk_bytes_t identity, credentials, agent, address;
    uint8_t kind; /* of the credentials */
} hk_hello_t;

/* A HELLO that is to be decided, each told once; false: none. Valid until the next call into the broker. */
bool hk_broker_asking(hk_broker_t *broker, hk_hello_t *hello);

typedef struct hk_permission {
    hk_bytes_t pattern; /* a name, or a beginning with '*' at its end; "@identity": queues of clients */
    uint8_t rights;     /* 1 send, 2 receive, 4 manage */
} hk_permission_t;

/* The decision; permissions are copied. until: wall ms at which they end, UINT64_MAX: never. HK_NOT_FOUND: the session
 * is gone. HK_OK, HK_NO_MEMORY. */
hk_status_t hk_broker_permit(hk_broker_t *broker, uint64_t serial, const hk_permission_t *permissions, size_t count,
                             uint64_t until, int64_t now, uint64_t wall);
hk_status_t hk_broker_refuse(hk_broker_t *broker, uint64_t serial, hk_bytes_t sentence);

/* --- time and the disk -------------------------------------------------------------------------------------------- */

/* Leases, delays, expiries, heartbeats, idle queues; a slice of them at a time. */
void hk_broker_tick(hk_broker_t *broker, int64_t now, uint64_t wall);

/* When it wants to be ticked, in ns; INT64_MAX: not at all. */
int64_t hk_broker_next_tick(const hk_broker_t *broker);

/* The end of a turn: writes what was appended, and acknowledges what is written. HK_OK; HK_SYSTEM: the storage has
 * failed: everybody is told FAILED, and the broker takes nothing any more. */
hk_status_t hk_broker_commit(hk_broker_t *broker, uint64_t wall);

/* As hk_journal_job and hk_journal_done; acknowledges what is synced. No storage: NULL. */
hk_job_t *hk_broker_job(hk_broker_t *broker, hk_lane_t lane);
hk_status_t hk_broker_done(hk_broker_t *broker, hk_job_t *job);

/* What went wrong with the storage; NULL: nothing. */
const hk_journal_trouble_t *hk_broker_trouble(const hk_broker_t *broker);

/* Says DRAIN to everybody, takes and delivers nothing more. */
void hk_broker_drain(hk_broker_t *broker, uint32_t retry_after_ms);

/* Nothing is out any more, and nothing is unanswered. */
bool hk_broker_drained(const hk_broker_t *broker);

/* --- looking in --------------------------------------------------------------------------------------------------- */

typedef struct hk_broker_stats {
    /* identities: those that are remembered. memory_bytes: what messages take in memory; index_bytes: of these, what
     * they take beside their content. */
    uint64_t sessions, queues, identities, messages, bytes, memory_bytes, index_bytes;
    uint64_t messages_lost;      /* when the journal was opened: what says their queue or sender was missing */
    uint64_t identities_evicted; /* since the start, for want of room */
    uint64_t ready, delayed, out, dead;
    uint64_t received[3]; /* SENDs taken, by level asked for */
    uint64_t delivered, freed, redelivered, failed, crashed, released, expired, duplicates, stale, copied;
    uint64_t refused[24]; /* ERRORs by code */
    hk_journal_stats_t journal;
} hk_broker_stats_t;

void hk_broker_read_stats(hk_broker_t *broker, hk_broker_stats_t *stats);

typedef struct hk_queue_stats {
    hk_bytes_t name; /* borrowed */
    uint8_t kind;
    uint64_t ready, delayed, out, dead, bytes, oldest_ms, receivers;
    uint64_t sent, freed, redelivered, failed, crashed, expired;
} hk_queue_stats_t;

/* Visits every queue. */
void hk_broker_each_queue(hk_broker_t *broker, uint64_t wall,
                          void (*visit)(void *context, const hk_queue_stats_t *stats), void *context);

#endif
