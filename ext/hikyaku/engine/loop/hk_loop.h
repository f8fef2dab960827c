/* hk_loop.h: sockets, clock and threads round a hub, a broker, or both.
 *
 *            listeners   handed-over sockets        Ruby threads
 *                │                │                  ▲        │
 *                ▼                ▼          hk_loop_next   hk_loop_answer
 *     ┌─ accept ─ read ─ hk_http1 ─ hk_gate ──────── asks ────┘        │
 *     │             │                 │ answered here                  │
 *     │             ▼                 ▼                                ▼
 *     └─────── epoll_wait ◄─── write: answers, streams ◄───────────────┘
 *
 * One thread runs hk_loop_run, without Ruby's lock; it alone touches connections. Any other thread may call the
 * functions marked "any thread". The hub's lock is taken for slices of work.
 *
 * A connection is an HTTP/1.1 connection (keep-alive, pipelined requests answered in order) until it becomes a stream;
 * a stream belongs to its subscriber until it ends. Limits: bytes of a head, of a body and of all that is read, time
 * for a head, pace of a body, time between requests, time without progress of a write, connections in all and of one
 * address.
 *
 * A connection to the broker (docs/protocol.md) has nothing of HTTP. Its bytes go to hk_broker as they come:
 *
 *     readable sessions ─► recv ─► hk_broker ─► commit ─► sendmsg to each session that has something to hear
 *                                     │  ▲
 *                                jobs ▼  │ back, with one wake
 *                              a thread for each lane: fdatasync, new segments
 *
 * Cost: a turn of the broker is one epoll_wait, one recv for each session that can be read, one pwritev, and one send
 * for each session that has output, however many messages that is; the clocks are read four times, its lock is taken
 * once. Only a session that is blocked or has as many unanswered requests as it may costs an epoll_ctl, once, and
 * another when it goes on. No job is ever run on the loop's thread. Limits: time until the first answer to a session,
 * time without progress of a write; all else is the broker's.
 */
#ifndef HK_LOOP_H
#define HK_LOOP_H

#include "hk_alloc.h"
#include "hk_broker.h"
#include "hk_bytes.h"
#include "hk_gate.h"
#include "hk_hub.h"
#include "hk_lock.h"
#include "hk_status.h"
#include "hk_sys.h"

#include <stdint.h>

typedef struct hk_loop hk_loop_t;
typedef struct hk_ask hk_ask_t;
typedef struct hk_hello_ask hk_hello_ask_t;

enum { HK_SENTENCE_BYTES = 256 };

typedef struct hk_loop_options {
    hk_hub_t *hub;            /* NULL: there is none */
    hk_gate_t *gate;          /* NULL: no requests are served, only streams that were handed over */
    hk_lock_t *lock;          /* round hub and gate; NULL without */
    hk_broker_t *broker;      /* NULL: there is none */
    hk_lock_t *broker_lock;   /* round the broker; another one. NULL without */
    const hk_sys_t *sys;      /* system calls; NULL: the real ones */
    bool io_uring;            /* deliver with hk_ring where the kernel allows it, else with send() */
    uint32_t max_connections; /* but those of a broker; beyond: 429 with Retry-After and close. 0: any number */
    uint32_t max_sessions;    /* connections of a broker; beyond: LIMIT and close. 0: any number */
    uint32_t max_of_address;  /* of one peer (hk_gate_counts), streams apart; beyond: as above. 0: any number */
    uint32_t max_asks;        /* requests that wait for Ruby; beyond: 503 with Retry-After. 0: 4,096 */
    /* A larger body is not kept: Ruby is asked without it, then the connection ends. */
    size_t max_head_bytes, max_body_bytes;
    /* Of requests that are not whole yet, and again of those that wait for Ruby; beyond: 503 with Retry-After and
     * close. 0: 64 MiB, or four of the largest bodies. */
    size_t max_held_bytes;
    size_t send_buffer; /* SO_SNDBUF of streams; 0: the system's */
    /* ns; 0: never. For a head, and for a body to catch up with its pace; between requests; without progress of a
     * write. */
    int64_t head_timeout, idle_timeout, write_timeout;
    int64_t hello_timeout; /* ns until a session has had its first answer; 0: 10 s */
    int64_t drain_timeout; /* ns that a stop may take */
    uint64_t secret[2];    /* random, for hashes */
} hk_loop_options_t;

/* HK_OK, HK_NO_MEMORY or HK_SYSTEM. */
hk_status_t hk_loop_new(const hk_alloc_t *alloc, const hk_loop_options_t *options, hk_loop_t **loop);

/* Why deliveries do without io_uring, as an errno; 0: they use it, or were not to. Until hk_loop_run. */
int hk_loop_ring_error(const hk_loop_t *loop);

/* Closes all connections and descriptors and frees the loop, with every request that was not answered; nobody runs it
 * any more, or uses what it gave. Waits for jobs that are out. Hub, gate, broker and locks must still be there. Only in
 * the process that made it. NULL is allowed. */
void hk_loop_free(hk_loop_t *loop);

/* Frees the memory and touches no descriptor, hub, broker or lock: for a forked child. What was being changed at the
 * moment of the fork cannot be freed; then nothing is. */
void hk_loop_abandon(hk_loop_t *loop);

/* Runs until hk_loop_stop has taken effect (HK_OK), or until hk_loop_interrupt (HK_AGAIN: call it again), or until
 * nothing works any more (HK_SYSTEM, HK_NO_MEMORY). */
hk_status_t hk_loop_run(hk_loop_t *loop);

/* --- any thread --------------------------------------------------------------------------------------------------- */

/* Makes hk_loop_run return HK_AGAIN soon. */
void hk_loop_interrupt(hk_loop_t *loop);

/* Somebody may be ready: ends the loop's sleep, if it sleeps. The hub's lock need not be held. */
void hk_loop_wake(hk_loop_t *loop);

/* Accepts connections from a listening socket, which the loop owns from now on (non-blocking from now on).
 * tcp: it and what is accepted get TCP_NODELAY and the options of streams. HK_OK; HK_NO_MEMORY or HK_CLOSED (no gate,
 * or the loop has ended): the caller still owns it. */
hk_status_t hk_loop_listen(hk_loop_t *loop, int fd, bool tcp);

/* The same for the broker's clients. HK_CLOSED: there is no broker, or the loop has ended. */
hk_status_t hk_loop_listen_broker(hk_loop_t *loop, int fd, bool tcp);

/* Takes over a connection on which `bytes` were read already (a request, or its beginning). HK_OK: the loop owns `fd`.
 * HK_NO_MEMORY or HK_CLOSED: the caller still does. */
hk_status_t hk_loop_adopt(hk_loop_t *loop, int fd, hk_bytes_t bytes);

/* Takes over a stream whose head was sent already, for a subscriber that is registered. As above. When the subscriber
 * is gone the stream is closed. */
hk_status_t hk_loop_attach(hk_loop_t *loop, int fd, uint64_t subscriber);

/* Stops: no new connections, requests in hand are answered, what is pending is sent, streams are closed with a time to
 * come back; sessions are told (DRAIN), and end when nothing is out any more; after the drain timeout the rest is
 * closed. Jobs come back first. What was appended is written; to close the broker is its owner's. Harmless when
 * repeated. */
void hk_loop_stop(hk_loop_t *loop);

/* --- requests that Ruby answers, any thread ----------------------------------------------------------------------- */

/* Waits for a request that needs an answer.
 *
 * timeout  ns; negative: for ever.
 *
 * HK_OK; HK_AGAIN: none in that time, or hk_loop_interrupt_asks; HK_CLOSED: none will come. */
hk_status_t hk_loop_next(hk_loop_t *loop, int64_t timeout, hk_ask_t **ask);

/* Ends the waiting of everybody in hk_loop_next once; who is just about to wait returns after 50 ms. */
void hk_loop_interrupt_asks(hk_loop_t *loop);

/* The request; everything is valid until it is answered. */
const hk_http1_request_t *hk_ask_head(const hk_ask_t *ask);
hk_bytes_t hk_ask_body(const hk_ask_t *ask);
/* The body was larger than max_body_bytes and is not there; hk_ask_body is empty. */
bool hk_ask_body_too_large(const hk_ask_t *ask);
/* The client's address (hk_gate_address), and the socket's; empty on a Unix socket. */
hk_bytes_t hk_ask_address(const hk_ask_t *ask);
hk_bytes_t hk_ask_peer(const hk_ask_t *ask);
/* What it may be remembered under; empty: not at all. See hk_gate_remember. */
hk_bytes_t hk_ask_key(const hk_ask_t *ask);
uint64_t hk_ask_epoch(const hk_ask_t *ask);

/* Answers with bytes: head (status line, headers, empty line) and body. Consumes the ask. `close`: the connection ends
 * afterwards. HEAD and body-less statuses are the caller's to know. HK_OK, also when the client is gone. HK_NO_MEMORY:
 * the connection is closed. */
hk_status_t hk_loop_answer(hk_loop_t *loop, hk_ask_t *ask, hk_bytes_t head, hk_bytes_t body, bool close);

/* Answers with the head of a stream for a registered subscriber; when the client is gone the subscriber is
 * unsubscribed; when the subscriber has ended meanwhile the stream ends, too, with a time to come back. Consumes the
 * ask. */
hk_status_t hk_loop_answer_stream(hk_loop_t *loop, hk_ask_t *ask, hk_bytes_t head, uint64_t subscriber);

/* Gives the connection away: the caller answers by itself and owns `fd` (blocking or not as it was: non-blocking).
 * What the client sent behind its request may be lost. Consumes the ask. HK_OK; HK_CLOSED: the client is gone, or no
 * descriptor was left. */
hk_status_t hk_loop_answer_yourself(hk_loop_t *loop, hk_ask_t *ask, int *fd);

/* --- sessions that Ruby lets in, any thread ----------------------------------------------------------------------- */

/* Waits for a HELLO that is to be decided. As hk_loop_next, and interrupted with it. */
hk_status_t hk_loop_next_hello(hk_loop_t *loop, int64_t timeout, hk_hello_ask_t **ask);

/* Valid until it is decided. */
const hk_hello_t *hk_hello_ask_hello(const hk_hello_ask_t *ask);

/* Decides; what is given is copied. As hk_broker_permit and hk_broker_refuse; of a sentence the first HK_SENTENCE_BYTES
 * are said. Consume the ask. HK_OK, also when the client is gone. HK_NO_MEMORY: it is refused. */
hk_status_t hk_loop_permit(hk_loop_t *loop, hk_hello_ask_t *ask, const hk_permission_t *permissions, size_t count,
                           uint64_t until);
void hk_loop_refuse(hk_loop_t *loop, hk_hello_ask_t *ask, hk_bytes_t sentence);

/* Whether the broker's storage has failed, and how; `trouble` may be NULL. When it fails hk_loop_run returns HK_AGAIN
 * once. Sessions are told, and the broker takes nothing any more: whoever runs the process should end it. */
bool hk_loop_storage_failed(hk_loop_t *loop, hk_journal_trouble_t *trouble);

/* --- looking in, any thread --------------------------------------------------------------------------------------- */

typedef struct hk_loop_stats {
    uint64_t connections, streams, sessions; /* open now */
    uint64_t accepted, requests, bytes_in, bytes_out;
    uint64_t refused_connections; /* 429 for max_connections */
    uint64_t refused_of_address;  /* 429 for max_of_address */
    uint64_t refused_asks;        /* 503 for max_asks or max_held_bytes */
    uint64_t malformed;           /* refused by the parser */
    uint64_t timed_out_heads, timed_out_writes, timed_out_idle, timed_out_hellos;
    uint64_t accept_pauses;                   /* times that no descriptor or no memory was left for a connection */
    uint64_t ring_error;                      /* the errno with which io_uring ended while it was used; or 0 */
    uint64_t turns, turn_ns, longest_turn_ns; /* without waiting; longest since last read */
} hk_loop_stats_t;

void hk_loop_read_stats(hk_loop_t *loop, hk_loop_stats_t *stats);

#endif
