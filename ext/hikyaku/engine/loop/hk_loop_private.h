/* hk_loop_private.h: what the parts of the loop share. Not for others: see hk_loop.h.
 *
 *     hk_loop             making, running, freeing
 *     hk_loop_turn        one turn: wait, attend to sockets, take wishes, hand out, let time pass
 *     hk_loop_sleep       waiting, and being woken
 *     hk_loop_accept      listeners
 *     hk_loop_connection  making and closing connections, and which phase they are in
 *     hk_loop_http        from bytes to requests
 *     hk_loop_request     from requests to answers
 *     hk_loop_output      from answers to sockets, and what comes behind an answer
 *     hk_loop_refusal     answers of the loop itself
 *     hk_loop_stream      connections that have become streams
 *     hk_loop_ask         requests that wait for Ruby
 *     hk_loop_answer      what Ruby says to them
 *     hk_loop_broker_private.h has the parts that deal with a broker
 *     hk_loop_wish        what other threads want
 *     hk_loop_time        what happens because time passes
 *     hk_loop_stop        the end
 *     hk_loop_address     a peer's address as text
 *
 * Everything here runs on the loop's thread, unless it says otherwise. A function that is given a connection may close
 * it, unless it says otherwise; its memory lasts until the end of the turn.
 */
#ifndef HK_LOOP_PRIVATE_H
#define HK_LOOP_PRIVATE_H

#include "hk_address.h"
#include "hk_buf.h"
#include "hk_http1.h"
#include "hk_list.h"
#include "hk_loop.h"
#include "hk_ring.h"
#include "hk_wait.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

#define HK_MILLISECOND INT64_C(1000000)
#define HK_SECOND INT64_C(1000000000)

enum {
    HK_EVENTS = 128,                   /* that one wait tells of */
    HK_SLICE = 256,                    /* deliveries between two looks at the sockets */
    HK_WRITE_BYTES = 64 * 1024,        /* gathered for one write to a subscriber that is behind */
    HK_ACCEPTS = 64,                   /* connections of one listener in a turn */
    HK_READ_BYTES = 16 * 1024,         /* of one connection in a turn */
    HK_TURN_BYTES = 256 * 1024,        /* of all connections in a turn: what is beyond waits for the next */
    HK_OUT_BYTES = 64 * 1024,          /* of answers that leave together */
    HK_AHEAD_BYTES = 64 * 1024,        /* of requests that are read while one before them waits for Ruby */
    HK_CHATTER_BYTES = 64 * 1024,      /* that a subscriber may send: it has nothing to say */
    HK_LINGER_BYTES = 4 * 1024 * 1024, /* that a client which was refused may go on sending */
    HK_REFUSED = 16,                   /* connections beyond the limit that may take their time to read why */
    HK_LATE = 256,                     /* connections of one phase that are given up in a turn */
    HK_BODY_RATE = 512                 /* bytes a second below which a body takes too long */
};

/* --- what epoll tells of ------------------------------------------------------------------------------------------ */

typedef enum hk_watch_kind { HK_WATCH_WAKE, HK_WATCH_LISTENER, HK_WATCH_CONNECTION } hk_watch_kind_t;

typedef struct hk_watch {
    int fd;
    uint8_t kind;  /* hk_watch_kind_t */
    uint8_t armed; /* EPOLLIN, EPOLLOUT */
} hk_watch_t;

typedef struct hk_listener {
    hk_watch_t watch;
    bool watched;
    bool tcp;
    bool broker; /* what it accepts speaks to the broker */
    bool tuned;  /* what it accepts has its options: nothing is left that came before it had them itself */
    hk_list_t link;
} hk_listener_t;

/* --- connections -------------------------------------------------------------------------------------------------- */

/* Every connection stands in the list of its phase, those that came last at the end. What it may take to leave it is
 * the same for all of a phase, so that the first is the first to be given up.
 *
 *     accept ─► HEAD ─► BODY ──► (answered) ─► IDLE ─► HEAD ...
 *                         └─► ASKED ─┘ │  └─► FLUSH ─► IDLE
 *                                      │  └─► LINGER ─► closed
 *                                      └─► STREAM ⇄ BLOCKED ─► closed
 *
 * Of the broker:
 *
 *     accept ─► HELLO ─► SESSION ⇄ FULL
 *                           ⇅
 *                        STALLED ─► LINGER ─► closed
 */
typedef enum hk_phase {
    HK_PHASE_HEAD,    /* a head is to come: the first, or the rest of one */
    HK_PHASE_BODY,    /* the rest of a body */
    HK_PHASE_IDLE,    /* the next request, of which there is nothing yet */
    HK_PHASE_ASKED,   /* an answer of Ruby's */
    HK_PHASE_FLUSH,   /* room in the socket for the rest of an answer */
    HK_PHASE_LINGER,  /* the end of what a client sends that was answered already */
    HK_PHASE_REFUSED, /* as LINGER, beyond the limit of connections */
    HK_PHASE_STREAM,  /* it belongs to its subscriber */
    HK_PHASE_BLOCKED, /* as STREAM; room in the socket */
    HK_PHASE_HELLO,   /* a session that has heard nothing yet */
    HK_PHASE_SESSION, /* whatever there is to do */
    HK_PHASE_FULL,    /* answers, before any more is read */
    HK_PHASE_STALLED, /* as SESSION; room in the socket */
    HK_PHASES,
    HK_PHASE_CLOSED = HK_PHASES
} hk_phase_t;

/* What comes behind the bytes that are on their way. */
typedef enum hk_then { HK_THEN_GO_ON, HK_THEN_STREAM, HK_THEN_LINGER, HK_THEN_CLOSE, HK_THEN_DROP } hk_then_t;

/* What only a connection has that is no stream. */
typedef struct hk_http {
    /* What was read and is not done with; nothing most of the time:
     *
     *     [ head_bytes: a head that is whole │ body_bytes: of its body, chunks joined │ not looked at ] */
    hk_buf_t in;
    hk_buf_t out; /* what the socket did not take */
    hk_http1_scan_t scan;
    hk_http1_body_t body;
    size_t head_bytes, body_bytes;
    int64_t body_since;    /* when the body began */
    hk_ask_t *ask;         /* NULL: nothing was asked */
    hk_address_t *address; /* NULL: nobody counts its connections */
    uint8_t then;          /* hk_then_t */
    bool too_large;        /* the body: it is not read; behind it comes nothing */
    bool ended;            /* the client sends no more */
    uint8_t peer_length;
    char peer[INET6_ADDRSTRLEN];
} hk_http_t;

typedef struct hk_connection {
    hk_watch_t watch;
    uint8_t phase;    /* hk_phase_t */
    bool tuned;       /* its socket has the options of a stream already */
    bool has_session; /* with the broker, and so no subscriber */
    bool deaf;        /* nothing more is read from its session */
    uint32_t heard;   /* bytes that were read and not wanted */
    int64_t since;    /* when it came to its phase, or got on in it */
    hk_list_t link;
    hk_http_t *http; /* NULL: it is a stream, a session, or lingers */
    union {
        uint64_t subscriber; /* 0: none */
        hk_session_t *session;
    };
} hk_connection_t;

/* --- wishes and asks -------------------------------------------------------------------------------------------- */

typedef enum hk_wish_kind {
    HK_WISH_LISTEN,
    HK_WISH_ADOPT,
    HK_WISH_ATTACH,
    HK_WISH_ANSWER,     /* an ask, with bytes */
    HK_WISH_STREAM,     /* an ask, with the head of a stream */
    HK_WISH_NO_MEMORY,  /* an ask whose answer found no room */
    HK_WISH_GIVEN_AWAY, /* an ask whose connection somebody else has now */
    HK_WISH_HELLO       /* a decision about a session */
} hk_wish_kind_t;

typedef struct hk_wish {
    hk_list_t link;
    hk_wish_kind_t kind;
    uint64_t subscriber; /* ATTACH, STREAM */
    int fd;              /* LISTEN, ADOPT, ATTACH */
    bool tcp, broker;    /* LISTEN */
    hk_bytes_t bytes;    /* ADOPT; they stand behind the wish */
} hk_wish_t;

/* One block, in which everything stands that it points to, but the answer. */
struct hk_ask {
    hk_wish_t wish;              /* in the queue, with Ruby, or in the inbox */
    hk_connection_t *connection; /* NULL: the client is gone; the loop's thread alone looks */
    int fd;                      /* the connection's; -1: it is gone. Under the mutex */
    hk_http1_request_t head;
    hk_bytes_t body, address, peer, key;
    bool too_large;
    uint64_t epoch;
    size_t bytes; /* of the block */
    char *answer; /* NULL: none */
    size_t answer_bytes;
    bool close;
};

/* What it has to do with a broker: hk_loop_broker_private.h. */
typedef struct hk_brokerage hk_brokerage_t;

/* --- the loop ----------------------------------------------------------------------------------------------------- */

struct hk_loop {
    const hk_alloc_t *alloc;
    hk_loop_options_t options;
    const hk_sys_t *sys;
    int64_t patience[HK_PHASES]; /* ns; HK_NEVER */
    hk_http1_limits_t limits;

    int epoll;
    hk_watch_t waker;
    int event_at, event_count; /* those of the last wait that were not attended to */
    int failures;              /* waits that failed, one after the other */
    struct epoll_event events[HK_EVENTS];

    int64_t now, wall; /* of this turn; wall 0: not read yet */
    ptrdiff_t budget;  /* bytes that may still be read in this turn */
    bool locked;       /* the hub is */
    bool more;         /* somebody is ready: the next wait is none */
    int64_t next_tick; /* of the hub */
    int64_t serve_at;  /* not before: there was no memory */

    hk_list_t listeners, phases[HK_PHASES];
    hk_list_t closed, closed_listeners; /* whose memory goes when no event can mean them any more */
    uint32_t connection_count, refused_count;
    hk_map_t addresses; /* of connections that are no streams */
    size_t held_bytes;  /* of all `in` */
    int64_t accept_at;  /* not before; HK_NEVER: listeners are not pausing */

    char *room;                                 /* HK_READ_BYTES, in which is read what nobody keeps */
    hk_buf_t out;                               /* answers of the connection that is attended to */
    hk_buf_t key;                               /* within one call */
    hk_http1_header_t fields[HK_HTTP1_HEADERS]; /* within one request */
    hk_ring_t *ring;                            /* NULL: there is none */
    int ring_error;                             /* the errno for which there is none */
    hk_subscriber_t *closing[HK_SLICE];
    size_t closing_count;

    hk_brokerage_t *brokerage; /* NULL: there is no broker */

    bool stopping, parted, ended;
    int64_t stop_at, end_at; /* when streams are closed at the latest; when everything is */
    hk_loop_stats_t stats;

    /* Any thread. */
    atomic_bool sleeping, roused, interrupted, stop_wanted;
    atomic_bool at_rest; /* the loop's thread changes nothing of all this */
    pthread_mutex_t mutex;
    pthread_cond_t asked, greeted;
    /* Under the mutex, which is held for moments, and taken behind the locks if with one. */
    hk_list_t inbox, queue, taken, hellos, taken_hellos;
    uint32_t ask_count;
    size_t ask_bytes;
    bool closed_to_wishes;
    uint64_t interruptions;
    int64_t interrupted_at;
    hk_loop_stats_t shown;
    bool storage_failed;
    hk_journal_trouble_t trouble;
};

/* The hub's lock, for as much of a turn as it is needed: taken and given when it is not already. It and the broker's
 * are never held together: to take one gives the other. */
void hk_loop_lock(hk_loop_t *loop);
void hk_loop_unlock(hk_loop_t *loop);

/* The time of day in this turn: ns since 1970. */
int64_t hk_loop_wall(hk_loop_t *loop);

/* --- hk_loop_turn ------------------------------------------------------------------------------------------------- */

/* HK_AGAIN; HK_OK: the loop has ended; HK_SYSTEM: nothing works any more. */
hk_status_t hk_loop_turn(hk_loop_t *loop);

/* --- hk_loop_sleep ------------------------------------------------------------------------------------------------ */

/* HK_OK, or HK_SYSTEM with nothing to be closed. */
hk_status_t hk_loop_open_epoll(hk_loop_t *loop);

/* Waits for events, if none are left, and no longer than until something is due. HK_OK or HK_SYSTEM. */
hk_status_t hk_loop_wait(hk_loop_t *loop);

/* Begins to watch for EPOLLIN. False: it cannot be watched. */
bool hk_watch_add(hk_loop_t *loop, hk_watch_t *watch);

/* Watches for these events alone; errors are told of in any case. False: the system refuses. */
bool hk_watch_arm(hk_loop_t *loop, hk_watch_t *watch, uint32_t events);

/* Watches no more. */
void hk_watch_end(hk_loop_t *loop, hk_watch_t *watch);

/* --- hk_loop_accept ----------------------------------------------------------------------------------------------- */

/* Owns `fd` from now on, whatever becomes of it. */
void hk_listener_open(hk_loop_t *loop, const hk_wish_t *wish);
void hk_listener_accept(hk_loop_t *loop, hk_listener_t *listener);
/* Those that paused accept again. */
void hk_listeners_resume(hk_loop_t *loop);
void hk_listeners_close(hk_loop_t *loop);

/* False: there are as many connections as there may be, and none that can be spared. */
bool hk_loop_make_room(hk_loop_t *loop);

/* The connection that has been in a phase for the longest, if that is long enough to be given up for another. NULL:
 * none. */
hk_connection_t *hk_loop_idle_for_long(const hk_loop_t *loop, hk_phase_t phase);

/* Another connection may be refused, and be told why. */
void hk_loop_make_room_for_refusal(hk_loop_t *loop);

/* A connection from elsewhere, of which some bytes were read. Owns `fd` from now on. */
void hk_connection_adopt(hk_loop_t *loop, int fd, hk_bytes_t bytes);

/* --- hk_loop_connection ------------------------------------------------------------------------------------------- */

/* A connection that is watched, in a phase. NULL: there is no memory for it, or it cannot be watched; then `fd` was
 * closed. */
hk_connection_t *hk_connection_open(hk_loop_t *loop, int fd, hk_phase_t phase);

/* Gives it what a connection has that serves requests. False: it was closed for want of memory. */
bool hk_connection_serve(hk_loop_t *loop, hk_connection_t *connection);

/* Enters a phase, or begins it anew. */
void hk_connection_enter(hk_loop_t *loop, hk_connection_t *connection, hk_phase_t phase);

/* Closes a socket that is no connection yet; whoever else has it cannot use it any more. */
void hk_loop_hang_up(hk_loop_t *loop, int fd);

/* Forgets what was read and is not done with. */
void hk_http_drop_input(hk_loop_t *loop, hk_http_t *http);

/* Gives back what only a connection has that serves requests. */
void hk_connection_drop_http(hk_loop_t *loop, hk_connection_t *connection);

/* Closes, unsubscribes, and forgets whoever asked. */
void hk_connection_close(hk_loop_t *loop, hk_connection_t *connection);

/* Sends no more, and waits for the end of what the client sends: closing at once would take away from it what it has
 * not read yet. It is no session and serves no requests any more. */
void hk_connection_linger(hk_loop_t *loop, hk_connection_t *connection);

/* The same of one that is beyond a limit, of which there are few at a time. */
void hk_connection_refuse(hk_loop_t *loop, hk_connection_t *connection);

/* Closes and forgets, and leaves alone what others know of the same socket. */
void hk_connection_give_away(hk_loop_t *loop, hk_connection_t *connection);

/* Something of it can be read or written, or it is broken. */
void hk_connection_attend(hk_loop_t *loop, hk_connection_t *connection, uint32_t events);

/* Frees the memory of what was closed. */
void hk_connections_bury(hk_loop_t *loop);

/* Reads what nobody wants. HK_OK: there may be more; HK_CLOSED: it is the end, or it was more than `limit` bytes. */
hk_status_t hk_connection_waste(hk_loop_t *loop, hk_connection_t *connection, uint32_t limit);

/* Whether a connection is broken on which a call failed. Else the call may work later. */
bool hk_loop_broken(hk_loop_t *loop, int error);

/* --- hk_loop_http ------------------------------------------------------------------------------------------------- */

/* Reads and serves. */
void hk_http_readable(hk_loop_t *loop, hk_connection_t *connection);

/* Serves bytes that were read elsewhere. */
void hk_http_take(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes);

/* Serves what was read already, as an answer has left or has come. */
void hk_http_go_on(hk_loop_t *loop, hk_connection_t *connection);

/* --- hk_loop_request ---------------------------------------------------------------------------------------------- */

/* Answers a request that is whole, asks Ruby, or begins a stream. Does not close the connection.
 *
 * from  where the request's head begins.
 *
 * False: it must be asked again when what is on its way has left. */
bool hk_http_answer(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request, const char *from);

/* --- hk_loop_output ----------------------------------------------------------------------------------------------- */

/* Sends bytes behind those that are on their way: soon. Does not close the connection. */
void hk_http_say(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes);

/* Sends at once what was said. True: the socket has taken everything. Does not close the connection. */
bool hk_http_flush(hk_loop_t *loop, hk_connection_t *connection);

/* Room in the socket. */
void hk_http_writable(hk_loop_t *loop, hk_connection_t *connection);

/* Sends what was said, and enters the phase that follows. The last thing that is done with a connection. */
void hk_http_settle(hk_loop_t *loop, hk_connection_t *connection);

/* --- hk_loop_refusal ---------------------------------------------------------------------------------------------- */

enum { HK_REFUSAL_BYTES = 768 };

typedef struct hk_refusal {
    int status;
    const char *detail;
    uint64_t retry_after; /* seconds; 0: not said */
    hk_bytes_t date;      /* a line; may be empty. See hk_loop_date */
    bool head_only;
} hk_refusal_t;

/* Writes an answer that ends the connection. */
hk_bytes_t hk_refusal_write(const hk_refusal_t *refusal, char room[HK_REFUSAL_BYTES]);

/* The line of a head that says when it was written. */
hk_bytes_t hk_loop_date(hk_loop_t *loop);

/* Says it, and when, and that the connection ends. Does not close the connection. */
void hk_http_refuse(hk_loop_t *loop, hk_connection_t *connection, const hk_refusal_t *refusal);

/* --- hk_loop_stream ----------------------------------------------------------------------------------------------- */

/* Options of a socket that will carry a stream, or of a listener whose sockets have the same. */
void hk_stream_tune(hk_loop_t *loop, int fd, bool tcp);

/* Says the head of a stream, which begins when that has left. With the lock. Does not close the connection. */
void hk_stream_promise(hk_loop_t *loop, hk_connection_t *connection, hk_subscriber_t *subscriber, hk_bytes_t head);

/* Says the head of a stream whose subscriber has ended already, and when to come back. With the lock. Does not
 * close the connection. */
void hk_stream_decline(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t head, uint64_t serial);

/* The head has left: the subscriber is given what it missed. */
void hk_stream_begin(hk_loop_t *loop, hk_connection_t *connection);

/* A stream from elsewhere. Owns `fd` from now on. */
void hk_stream_attach(hk_loop_t *loop, int fd, uint64_t subscriber);

void hk_stream_readable(hk_loop_t *loop, hk_connection_t *connection);
void hk_stream_writable(hk_loop_t *loop, hk_connection_t *connection);

/* Hands out what is pending, to a slice. With the lock. */
void hk_streams_serve(hk_loop_t *loop);

/* --- hk_loop_ask -------------------------------------------------------------------------------------------------- */

/* Asks Ruby. HK_OK, HK_TOO_MANY or HK_NO_MEMORY. With the lock. */
hk_status_t hk_ask_make(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request,
                        const char *from);

/* The client is gone, or waits no more. */
void hk_ask_leave(hk_loop_t *loop, hk_ask_t *ask);

/* Does what Ruby has answered, and frees the ask. */
void hk_ask_answered(hk_loop_t *loop, hk_ask_t *ask);

/* Any thread. */
void hk_ask_free(hk_loop_t *loop, hk_ask_t *ask);

/* Any thread: HK_OK with the first of a queue, which stands in `taken` now; HK_AGAIN or HK_CLOSED. See hk_loop_next. */
hk_status_t hk_loop_await(hk_loop_t *loop, hk_list_t *queue, pthread_cond_t *filled, hk_list_t *taken, int64_t timeout,
                          hk_list_t **link);

/* Copies bytes to where the next of a block's stand. */
hk_bytes_t hk_loop_place(char **at, hk_bytes_t bytes);

/* --- hk_loop_wish ------------------------------------------------------------------------------------------------- */

/* Does what other threads want. */
void hk_wishes_take(hk_loop_t *loop);

/* Nobody is heard any more: what was wanted is undone, whoever waits is told. */
void hk_wishes_end(hk_loop_t *loop);

/* --- hk_loop_time ------------------------------------------------------------------------------------------------- */

/* Gives up who takes too long. */
void hk_loop_pass_time(hk_loop_t *loop);

/* When something is due; HK_NEVER: nothing. */
int64_t hk_loop_next_due(const hk_loop_t *loop);

/* --- hk_loop_stop ------------------------------------------------------------------------------------------------- */

/* A step towards the end, if it is wanted. */
void hk_loop_wind_up(hk_loop_t *loop);

/* Closes everything that is still open. */
void hk_loop_close_all(hk_loop_t *loop);

/* --- hk_loop_address ---------------------------------------------------------------------------------------------- */

/* The peer's address, with IPv4-mapped ones as IPv4. The length; 0: it has none. */
size_t hk_peer_text(const struct sockaddr_storage *address, socklen_t length, char text[INET6_ADDRSTRLEN]);

/* "unix, process 4711", of who has connected this Unix socket; "unknown". The length. */
size_t hk_process_text(const hk_sys_t *sys, int fd, char text[INET6_ADDRSTRLEN]);

#endif
