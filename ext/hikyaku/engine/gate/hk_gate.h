/* hk_gate.h: what a request asks of the hub, answered from decisions that were taken before.
 *
 *     request ──► key: every value that decides ──► remembered? ──► publish or subscribe here
 *                                                      │ no, over, or anything unusual
 *                                                      ▼
 *                                            HK_UNKNOWN: ask Ruby, which may remember
 *
 * The values that decide are the request's kind and version, the query's deciding parameters (match…, topic,
 * authorization), the credentials (Authorization, and of the cookies only the token's), Origin, and for a publish Host,
 * X-Forwarded-Proto and its like, Referer and Content-Type. They are compared whole, behind a keyed hash. Last-Event-ID
 * in all its forms is no part of them, nor is Hikyaku-Stream, nor any other header: Ruby is shown only what is in the
 * key and these (hk_gate_shown_header), so that nothing else can have decided.
 *
 * Only GET without a body and POST without a query component, of exactly the hub's path, are answered here; and neither
 * with an Idempotency-Key, nor where a field that decides is sent twice. All else is asked, and has no key.
 *
 * Only what was granted is remembered. The end of a grant is compared with the clock on every hit; hk_gate_forget ends
 * decisions that revocation, new keys or a new configuration have made void, those that are just being taken included.
 * The table is bounded in bytes, by two generations.
 *
 * Not thread-safe: the hub's lock is held round every call that takes a gate.
 */
#ifndef HK_GATE_H
#define HK_GATE_H

#include "hk_alloc.h"
#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_grant.h"
#include "hk_http1.h"
#include "hk_hub.h"
#include "hk_status.h"

#include <stdint.h>

/* A network whose proxies' X-Forwarded-For is believed. */
typedef struct hk_network {
    uint8_t family; /* 4 or 6 */
    uint8_t bits;   /* length of the prefix */
    uint8_t address[16];
} hk_network_t;

/* All bytes are copied. */
typedef struct hk_gate_options {
    hk_bytes_t path; /* of the hub, as requests write it */
    const hk_bytes_t *cookie_names;
    size_t cookie_name_count;
    /* 0.x: the parameters topic, authorization, lastEventID, Last-Event-ID; the header Last-Event-ID in answers. */
    bool legacy;
    const hk_network_t *trusted_proxies;
    size_t trusted_proxy_count;
    size_t max_table_bytes;
    size_t max_topics, max_topic_bytes, max_id_bytes, max_type_bytes, max_body_bytes;
    size_t max_fields;    /* of a form or a query; 0: any number */
    bool counts_loopback; /* else who is on this machine has as many connections as it likes */
    bool dates;           /* answers have a field Date (RFC 9110, section 6.6.1) */
    uint64_t secret[2];   /* random, for the hashes */
} hk_gate_options_t;

typedef struct hk_gate hk_gate_t;

/* HK_OK or HK_NO_MEMORY. `hub` must outlive the gate. */
hk_status_t hk_gate_new(const hk_alloc_t *alloc, const hk_gate_options_t *options, hk_hub_t *hub, hk_gate_t **gate);

/* NULL is allowed. */
void hk_gate_free(hk_gate_t *gate);

/* --- answering ---------------------------------------------------------------------------------------------------- */

typedef struct hk_gate_request {
    const hk_http1_request_t *head;
    hk_bytes_t body;    /* whole, chunks already joined */
    bool body_is_whole; /* false: it was too large to be kept */
    hk_bytes_t peer;    /* the address that the socket has, as text; empty on a Unix socket */
    bool stopping;      /* the hub takes no new subscribers */
    int64_t now, wall;
} hk_gate_request_t;

typedef enum hk_gate_kind {
    HK_GATE_PUBLISHED, /* `head` and `body` are the answer */
    HK_GATE_SUBSCRIBED /* `head` begins a stream; `subscriber` waits for its connection */
} hk_gate_kind_t;

typedef struct hk_gate_answer {
    hk_gate_kind_t kind;
    hk_bytes_t head; /* status line and headers with the empty line; borrowed until the next call */
    hk_bytes_t body;
    hk_subscriber_t *subscriber;
} hk_gate_answer_t;

/* Answers a request, if it is certain how. A publish that is answered was valid in every field; a stream's head says
 * where it begins if the request named an event. Allocates only what the hub needs, once its buffers have grown.
 *
 * answer  `head` and `body` of a publish are one run of bytes; its head says whether the connection stays open, as
 *         request->head->keep_alive has it.
 *
 * HK_OK; HK_UNKNOWN: Ruby must be asked, whatever the reason; HK_NO_MEMORY. Nothing was done unless HK_OK. */
hk_status_t hk_gate_serve(hk_gate_t *gate, const hk_gate_request_t *request, hk_gate_answer_t *answer);

/* --- asking ------------------------------------------------------------------------------------------------------- */

/* The values of a request that decide, in one string; empty when a decision about it must not be remembered. With it
 * the epoch in which it is asked.
 *
 * key  appended to.
 *
 * HK_OK or HK_NO_MEMORY. */
hk_status_t hk_gate_key(hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *key, uint64_t *epoch);

/* The client's address: the peer's, or what the nearest proxies that are trusted say of it. A slice of the request or
 * of `peer`. As Web::Request#address. */
hk_bytes_t hk_gate_address(const hk_gate_t *gate, const hk_http1_request_t *head, hk_bytes_t peer);

/* The line of a head with the field Date, of an answer that somebody else gives; empty without `dates`. Borrowed until
 * the next call.
 *
 * wall  ns since 1970. */
hk_bytes_t hk_gate_date(hk_gate_t *gate, int64_t wall);

/* Whether an address is that of one client: neither empty (a Unix socket), nor a trusted proxy, nor this machine. */
bool hk_gate_counts(const hk_gate_t *gate, hk_bytes_t address);

/* What Ruby is shown of a request whose key is not empty: method and version; the query with nothing but deciding
 * parameters and cursors, as they were sent and in their order, … HK_OK or HK_NO_MEMORY. `query` is appended to. */
hk_status_t hk_gate_shown_query(const hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *query);

/* … of its headers those for which this is true, never Cookie; … */
bool hk_gate_shown_header(const hk_gate_t *gate, const hk_http1_request_t *head, hk_bytes_t name);

/* … and as Cookie the token's cookies: unless there are none, which appends nothing. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_gate_shown_cookie(const hk_gate_t *gate, const hk_http1_request_t *head, hk_buf_t *cookie);

typedef struct hk_decision {
    hk_bytes_t key; /* as hk_gate_key made it */
    uint64_t epoch;
    hk_grant_t *grant; /* retained; for a publish one with `publishes` */
    /* The status line and headers that answer, without Date: for a stream without Mercure-Last-Event-ID (and
     * Last-Event-ID) and Hikyaku-Stream, for a publish without Content-Length; without the empty line at the end. What
     * its Content-Type and Content-Encoding say is what the stream is. */
    hk_bytes_t head;
} hk_decision_t;

/* Remembers a decision in the place of an earlier one, unless its epoch is over or its key empty. HK_OK (also when it
 * is not remembered) or HK_NO_MEMORY (nothing was changed). */
hk_status_t hk_gate_remember(hk_gate_t *gate, const hk_decision_t *decision);

/* Ends the decisions about a subject (empty: all decisions). O(decisions). */
void hk_gate_forget(hk_gate_t *gate, hk_bytes_t subject);

typedef struct hk_gate_stats {
    uint64_t hits, misses, asks; /* answered here; asked for want of a decision; asked for any reason */
    uint64_t decisions, bytes;   /* remembered now */
} hk_gate_stats_t;

void hk_gate_read_stats(const hk_gate_t *gate, hk_gate_stats_t *stats);

#endif
