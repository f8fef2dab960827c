/* hk_hub.h: the log, who listens to what, and who has got how far.
 *
 * The C twin of Hikyaku::Hub::RubyEngine, free of sockets and clocks: a driver (hk_loop, or a test) owns them and
 * moves the bytes. A publish costs the matchers that match and the deliveries; a subscriber is a cursor into the log
 * and has no queue; adding or removing a subscription is O(1), however many there are.
 *
 *     topics ──► index ──► feeds: positions ──► batch: bytes that all who stand at the same place share
 *                            │ members
 *                            ▼
 *                          subscribers: cursor, grant, what is said to it alone
 *
 *     hk_hub_publish(hub, &update, now, id)       something was published
 *     hk_hub_serve(hub, 128, 65536, now, deliver, context, &more)
 *     hk_hub_tick(hub, now)                       heartbeats, ends
 *
 * Not thread-safe: one lock is held round every call. `now` is in ns of a clock that only goes forward, `wall` in ns
 * since 1970. Subscribers are known by number (`serial`) outside the lock, by pointer within it.
 */
#ifndef HK_HUB_H
#define HK_HUB_H

#include "hk_alloc.h"
#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_grant.h"
#include "hk_index.h"
#include "hk_keeper.h"
#include "hk_log.h"
#include "hk_status.h"
#include "hk_topic.h"

#include <stdint.h>

typedef struct hk_hub hk_hub_t;
typedef struct hk_subscriber hk_subscriber_t;

enum { HK_SUBSCRIBER_ID_BYTES = 45 /* urn:uuid:8-4-4-4-12 */, HK_STREAM_CAPABILITY_BYTES = 22 };

typedef struct hk_hub_options {
    size_t history_bytes;
    int64_t heartbeat;                        /* ns of silence after which a comment is sent; 0: never */
    int64_t max_lifetime;                     /* ns after which a stream is closed, up to a tenth earlier; 0: never */
    bool announces;                           /* subscription events are published */
    uint32_t max_subscribers, max_of_address; /* 0: any number */
    /* What the matchers that are in use may cost together (see hk_matcher_options_t), in total, of one address, and of
     * those whose beginnings begin one another; 0: anything. */
    uint32_t max_cost, max_cost_of_address, max_cost_beside;
    hk_url_t hub_url;
    hk_bytes_t comparable_path; /* see hk_topics_options_t */
    size_t topic_table_bytes;
    uint8_t log_key[HK_LOG_KEY_BYTES];
    uint64_t secret[2]; /* random: hashes, jitter and the ids of subscribers come from it */
} hk_hub_options_t;

/* HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_new(const hk_alloc_t *alloc, const hk_hub_options_t *options, hk_hub_t **hub);

/* Frees everything, subscribers included. NULL is allowed. */
void hk_hub_free(hk_hub_t *hub);

/* The table of topics; what hk_topics_find does not know must be added before it is published. */
hk_topics_t *hk_hub_topics(hk_hub_t *hub);

/* The log, to read. */
const hk_log_t *hk_hub_log(const hk_hub_t *hub);

/* What is published is kept from now on, before anybody sees it. The hub does not own the keeper; NULL: nothing is kept
 * any more. */
void hk_hub_persist(hk_hub_t *hub, hk_keeper_t *keeper);

/* Publishes what was kept, at its position, before there is any subscriber or keeper. HK_OK; HK_INVALID: no topic;
 * HK_NO_MEMORY. */
hk_status_t hk_hub_restore(hk_hub_t *hub, hk_position_t position, const hk_log_update_t *update);

/* Updates from a position up to another are missing: whoever reads on from before is told. As hk_hub_restore.
 *
 * key  of the ids from `upto` on; NULL: the same as before.
 *
 * HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_lose(hk_hub_t *hub, hk_position_t from, hk_position_t upto, const uint8_t *key);

/* As hk_log_go_on_at. */
void hk_hub_go_on_at(hk_hub_t *hub, hk_position_t position);

/* Whether an update of about so many bytes would be as safe as was asked for when hk_hub_publish returns. */
bool hk_hub_prompt(const hk_hub_t *hub, size_t bytes);

/* As hk_log_rekey; and no capability is known any more. */
void hk_hub_rekey(hk_hub_t *hub, const uint8_t key[HK_LOG_KEY_BYTES]);

/* Room for programs, big enough for every matcher that is in use or in a grant that was reserved. */
hk_program_space_t *hk_hub_space(hk_hub_t *hub);

/* Makes sure that hk_hub_space suits all matchers of a grant. Once for each grant. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_reserve(hk_hub_t *hub, const hk_grant_t *grant);

/* --- publishing --------------------------------------------------------------------------------------------------- */

/* Appends an update and marks whom it concerns. O(matchers that match).
 *
 * id  the event's id; borrowed until the next publish. May be NULL.
 *
 * HK_OK; HK_NO_MEMORY; HK_AGAIN, HK_TOO_LARGE, HK_SYSTEM: it could not be kept, in the first case for a moment. On
 * failure nothing was published. */
hk_status_t hk_hub_publish(hk_hub_t *hub, const hk_log_update_t *update, int64_t now, hk_bytes_t *id);

/* Steps of programs that one turn may take: about a millisecond. */
enum { HK_HUB_STEPS = 262144 };

/* Whether to publish on these topics takes more than HK_HUB_STEPS now: then hk_hub_look_at is to be called for each of
 * them before, by somebody who may take its time. */
bool hk_hub_takes_long(const hk_hub_t *hub, hk_topic_t *const *topics, size_t count);

/* Matches a topic that is not known in pieces, each of about HK_HUB_STEPS; others may use the hub between them.
 *
 * survey  zeroed before the first piece, and afterwards.
 *
 * HK_OK: it is known; HK_AGAIN: there are more pieces; HK_NO_MEMORY. */
hk_status_t hk_hub_look_at(hk_hub_t *hub, hk_topic_t *topic, hk_index_survey_t *survey);

/* Ends a survey that is not finished. */
void hk_hub_stop_looking(hk_index_survey_t *survey);

/* Sends bytes that are not in the log to the exact subscribers of a topic that are not behind.
 *
 * frame  whole lines of an event without id.
 * count  how many subscribe to exactly this topic; may be NULL.
 *
 * HK_OK, or HK_NO_MEMORY (nobody was told). */
hk_status_t hk_hub_notify(hk_hub_t *hub, hk_bytes_t topic, hk_bytes_t frame, size_t *count);

/* Whether anybody subscribes to exactly this topic. Without memory to look: false. */
bool hk_hub_watched(hk_hub_t *hub, hk_bytes_t topic);

/* --- subscribers -------------------------------------------------------------------------------------------------- */

/* What a stream is made of (hk_sse, hk_pack), and whether it is compressed (hk_gzip). */
typedef enum hk_stream_form { HK_STREAM_EVENTS, HK_STREAM_MESSAGE_PACK } hk_stream_form_t;
typedef enum hk_stream_coding { HK_STREAM_IDENTITY, HK_STREAM_GZIP } hk_stream_coding_t;

typedef struct hk_subscribe {
    hk_grant_t *grant;  /* retained; has subscriptions */
    bool has_cursor;    /* the request named an event, maybe an empty one */
    hk_bytes_t cursor;  /* Last-Event-ID, or "earliest" */
    hk_bytes_t address; /* of the client, for the limits; empty: none */
    int64_t expires_in; /* ns until its grant ends, or HK_NEVER */
    int64_t now;
    bool tentative;  /* who is refused is not counted: somebody else refuses, and is */
    bool naming;     /* its events name the matchers that selected them: see hk_hub_names.c; only of HK_STREAM_EVENTS */
    bool changeable; /* it has a capability; and a comment tells it when it has been sent what its cursor asked for */
    hk_stream_form_t form;
    hk_stream_coding_t coding;
    void *connection; /* the driver's own; NULL until it has one */
} hk_subscribe_t;

/* Registers a subscriber behind everything that it asked to see again, and announces its subscriptions: where matching
 * that takes long, when hk_hub_serve comes to it, in order. It is blocked
 * until the driver has a socket for it and calls hk_hub_writable.
 *
 * answer  what Mercure-Last-Event-ID says; empty when the request named no event. Borrowed until the next call; where
 *         nothing was lost since the cursor it is the cursor itself, the caller's bytes.
 *
 * HK_OK (announcements for which there is no memory are left out); HK_TOO_MANY; HK_TOO_MANY_OF_ADDRESS; HK_TOO_COSTLY;
 * HK_TOO_COSTLY_OF_ADDRESS; HK_NO_MEMORY; HK_NOT_FOUND: the engine cannot compress. On failure nobody was registered,
 * and nothing is announced. O(matchers of
 * the grant). */
hk_status_t hk_hub_subscribe(hk_hub_t *hub, const hk_subscribe_t *subscribe, hk_subscriber_t **subscriber,
                             hk_bytes_t *answer);

/* What a cursor would be answered, without subscribing. `answer` as above. */
void hk_hub_resolve(hk_hub_t *hub, const hk_grant_t *grant, hk_bytes_t cursor, hk_bytes_t *answer);

/* Where the log is now, for whoever comes back later: the newest event's id; of an event that the grant may not read,
 * and of an empty log, the alias that the position has. Borrowed until the next call. */
hk_bytes_t hk_hub_cursor(hk_hub_t *hub, const hk_grant_t *grant);

/* Forgets a subscriber, frees it, and announces the end of its subscriptions (unless the hub is closing). The
 * announcement is left out when there is no memory for it. O(its matchers). */
void hk_hub_unsubscribe(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now);

/* Writes what whoever wants to change a stream must know. HK_OK, or HK_NOT_FOUND: it may not be changed. */
hk_status_t hk_hub_capability(const hk_hub_t *hub, const hk_subscriber_t *subscriber,
                              char capability[HK_STREAM_CAPABILITY_BYTES]);

/* The subscriber with this capability; NULL: there is none, or it is gone. O(1).
 *
 * capability  any bytes that a client sent. */
hk_subscriber_t *hk_hub_find_changeable(hk_hub_t *hub, hk_bytes_t capability);

typedef struct hk_change {
    hk_grant_t *grant;  /* retained; has subscriptions */
    bool has_cursor;    /* an event is named behind which those begin that are added, maybe an empty one */
    hk_bytes_t cursor;  /* or "earliest"; as of hk_subscribe_t */
    int64_t expires_in; /* ns until the grant ends, or HK_NEVER */
    int64_t now;
} hk_change_t;

/* Gives a subscriber another grant. Matchers that stay go on where they are, and nothing of theirs is lost or repeated.
 * Those that are added begin with what is published from now on, or behind the cursor: then the subscriber goes back to
 * it, and what one of its former matchers selected, and was sent, is left out on the way. Those that are removed end at
 * once. What was removed and added is announced. The longest lifetime counts from the beginning. With a cursor a
 * comment tells when it has caught up.
 *
 * What was sent is known as long as its matcher stays and the private topics are the same; else it may come again.
 *
 * subscriber  another object afterwards, with the same number; not one whose bytes were taken and not reported as
 *             written.
 * answer      what Mercure-Last-Event-ID says: hk_hub_cursor when the change took effect, or "earliest" where
 *             something may be missing. Borrowed until the next call.
 *
 * HK_OK (announcements for which there is no memory are left out); HK_CLOSED: it has to be closed; HK_TOO_MANY: it
 * catches up for as many changes as it may; HK_TOO_COSTLY; HK_TOO_COSTLY_OF_ADDRESS; HK_NO_MEMORY. On failure nothing
 * was changed. O(matchers). */
hk_status_t hk_hub_change(hk_hub_t *hub, hk_subscriber_t **subscriber, const hk_change_t *change, hk_bytes_t *answer);

/* The subscriber with this number, or NULL when it is gone. O(1). */
hk_subscriber_t *hk_hub_find(hk_hub_t *hub, uint64_t serial);

/* Why a subscriber has to be closed. */
typedef enum hk_closing {
    HK_CLOSING_NOT,
    HK_CLOSING_HUNG_UP,      /* the other side is gone */
    HK_CLOSING_OVERRUN,      /* the ring has passed it */
    HK_CLOSING_EXPIRED,      /* its grant ends */
    HK_CLOSING_LIFETIME,     /* it lasted long enough */
    HK_CLOSING_DISCONNECTED, /* somebody wants its subject gone */
    HK_CLOSING_SHUTDOWN      /* the hub ends */
} hk_closing_t;

uint64_t hk_subscriber_serial(const hk_subscriber_t *subscriber);
const hk_grant_t *hk_subscriber_grant(const hk_subscriber_t *subscriber);
hk_bytes_t hk_subscriber_address(const hk_subscriber_t *subscriber);
hk_position_t hk_subscriber_cursor(const hk_subscriber_t *subscriber);
hk_closing_t hk_subscriber_closing(const hk_subscriber_t *subscriber);
bool hk_subscriber_blocked(const hk_subscriber_t *subscriber);
/* A part of an event was written: nothing else can be said before its rest. */
bool hk_subscriber_within_event(const hk_subscriber_t *subscriber);
/* What is on its way to it alone and was not written yet; empty: nothing. Borrowed until the next call. */
hk_bytes_t hk_subscriber_control(const hk_subscriber_t *subscriber);
/* Its random id (Mercure draft-08, section "Subscriber Identifier Assignment"). */
void hk_subscriber_id(const hk_hub_t *hub, const hk_subscriber_t *subscriber, char id[HK_SUBSCRIBER_ID_BYTES]);
void *hk_subscriber_connection(const hk_subscriber_t *subscriber);
void hk_subscriber_connect(hk_subscriber_t *subscriber, void *connection);

/* --- delivering --------------------------------------------------------------------------------------------------- */

enum { HK_MAX_RECIPIENTS = 64 }; /* of one call of hk_deliver_t */

/* Moves the same bytes to several subscribers; must not call the hub.
 *
 * bytes     what they receive next; at == NULL: the only one has to be closed, see hk_subscriber_closing.
 * accepted  for each how many of the bytes were; fewer than given: it is blocked until hk_hub_writable. Negative: its
 *           connection is broken. */
typedef void (*hk_deliver_t)(void *context, hk_subscriber_t *const *recipients, size_t count, hk_bytes_t bytes,
                             ptrdiff_t *accepted);

/* Hands out what is pending, to at most `limit` subscribers. For a caught-up subscriber with one matcher this compares
 * two integers, hands out bytes that all its equals share, and moves the cursor.
 *
 * max_bytes  about how many are gathered for one subscriber; a single larger event is handed out whole.
 * more       whether the limit was reached, or subscription events wait to be published.
 *
 * HK_OK, or HK_NO_MEMORY (whoever was concerned stays ready). */
hk_status_t hk_hub_serve(hk_hub_t *hub, size_t limit, size_t max_bytes, int64_t now, hk_deliver_t deliver,
                         void *context, bool *more);

/* The steps of hk_hub_serve, one by one, for drivers that take their time: somebody who has bytes pending and is not
 * blocked or has to be closed, or NULL; … */
hk_subscriber_t *hk_hub_next_ready(hk_hub_t *hub);

/* … what it receives next, empty when nothing is (or closing is set now), borrowed until the next call but
 * hk_hub_wrote for it; HK_OK or HK_NO_MEMORY; … */
hk_status_t hk_hub_take(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes);

/* … how many of the taken bytes the socket accepted. Nothing happens unless this subscriber's were taken last. HK_OK:
 * it allocates nothing. */
hk_status_t hk_hub_wrote(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t count, int64_t now);

/* Whether hk_hub_serve may have somebody. */
bool hk_hub_ready(const hk_hub_t *hub);

/* The socket of a blocked subscriber accepts bytes (again). */
void hk_hub_writable(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* Sends bytes to one subscriber at the next event boundary, behind what is pending for it alone. HK_OK, or HK_NO_MEMORY
 * (nothing was added). HK_SSE_HEARTBEAT costs no memory where nothing is pending.
 *
 * bytes  of an event stream, also where its own has another form or coding. */
hk_status_t hk_hub_control(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t bytes);

/* Whether nothing is pending for it alone but what a compressed stream begins with: a proxy in between passes a head on
 * when something of the stream follows it. */
bool hk_hub_silent(hk_subscriber_t *subscriber);

/* Writes what a stream ends with, which is taken to be sent: what is pending for it alone, something more, and what
 * ends a compressed stream.
 *
 * last  bytes of an event stream, maybe none.
 *
 * HK_OK, or HK_NO_MEMORY. */
hk_status_t hk_hub_farewell(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t last, hk_buf_t *out);

/* Appends the whole of a stream of which nothing was sent, and whose subscriber is gone: what it says last, in its
 * form.
 *
 * serial  the subscriber's.
 * last    as of hk_hub_farewell.
 *
 * HK_OK; HK_NO_MEMORY, or HK_NOT_FOUND (the hub never had such a stream): nothing was appended. */
hk_status_t hk_hub_farewell_to_gone(hk_hub_t *hub, uint64_t serial, hk_bytes_t last, hk_buf_t *out);

/* Marks a subscriber to be closed by the driver, which unsubscribes it. */
void hk_hub_close(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_closing_t closing);

/* Marks all subscribers of a subject to be closed; of an empty one, which is nobody in particular, none. How many were
 * marked. O(subscribers). */
size_t hk_hub_disconnect(hk_hub_t *hub, hk_bytes_t subject);

/* Marks all subscribers to be closed whose grant has one of these tags, which rise. How many were marked.
 * O(subscribers · log count). */
size_t hk_hub_expel(hk_hub_t *hub, const uint64_t *tags, size_t count);

/* Marks all subscribers to be closed, and announces no end any more. */
void hk_hub_shutdown(hk_hub_t *hub);

/* --- time --------------------------------------------------------------------------------------------------------- */

/* Files heartbeats and marks subscribers whose time is over. O(what is due). HK_OK: it allocates nothing. */
hk_status_t hk_hub_tick(hk_hub_t *hub, int64_t now);

/* When hk_hub_tick has work; HK_NEVER: not for now. */
int64_t hk_hub_next_tick(const hk_hub_t *hub);

/* ms after which a closed client should come back: more, the more there are, so that they do not come all at once. */
uint32_t hk_hub_reconnection_delay(hk_hub_t *hub);

/* --- looking in --------------------------------------------------------------------------------------------------- */

/* Calls `visit` for each subscriber until it returns false; it must not change the hub. */
void hk_hub_each(hk_hub_t *hub, bool (*visit)(void *context, hk_subscriber_t *subscriber), void *context);

/* Calls `visit` for each subscriber of one matcher until it returns false. O(those). */
void hk_hub_each_of_matcher(hk_hub_t *hub, hk_bytes_t type, hk_bytes_t pattern,
                            bool (*visit)(void *context, hk_subscriber_t *subscriber), void *context);

/* The matcher that is in use for this type and pattern, or NULL; NULL as well without memory to look. Borrowed. */
hk_matcher_t *hk_hub_matcher(hk_hub_t *hub, hk_bytes_t type, hk_bytes_t pattern);

/* The id of the newest event, empty when there was none. Borrowed until the next publish. */
hk_bytes_t hk_hub_last_event_id(const hk_hub_t *hub);

typedef struct hk_hub_stats {
    uint64_t subscribers, subscriptions, feeds, publishes, deliveries, delivered_bytes;
    uint64_t history_bytes, history_updates, topics, topic_bytes;
    uint64_t gaps;                           /* readers told that the ring had passed them */
    uint64_t overruns;                       /* readers closed for it */
    uint64_t refused_total, refused_address; /* connections */
    uint64_t pattern_cost, refused_cost;     /* of the matchers in use; subscribers and changes */
} hk_hub_stats_t;

void hk_hub_read_stats(const hk_hub_t *hub, hk_hub_stats_t *stats);

/* How many positions the slowest reader is behind what there is for it, and the 99th percentile. O(subscribers),
 * without memory. */
void hk_hub_read_lag(hk_hub_t *hub, uint64_t *slowest, uint64_t *p99);

#endif
