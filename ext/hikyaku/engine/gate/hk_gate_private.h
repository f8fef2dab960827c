/* hk_gate_private.h: what the parts of the gate share. Only they include it.
 *
 *     hk_gate.c            the calls of hk_gate.h
 *     hk_gate_fields.c     which fields of a head matter, and whether it may have a key
 *     hk_gate_query.c      the parameters that decide, the cursors, and the cookies with the token
 *     hk_gate_key.c        keys, and what Ruby is shown
 *     hk_gate_table.c      what was decided
 *     hk_gate_publish.c    a publish that was decided
 *     hk_gate_subscribe.c  a subscribe that was decided
 */
#ifndef HK_GATE_PRIVATE_H
#define HK_GATE_PRIVATE_H

#include "hk_date.h"
#include "hk_gate.h"
#include "hk_gate_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct hk_gate {
    const hk_alloc_t *alloc;
    hk_hub_t *hub;
    hk_gate_options_t options; /* all that it points to is the gate's own */
    hk_gate_table_t table;
    uint64_t epoch;
    uint64_t hits, misses, asks;
    hk_date_line_t date;
    hk_buf_t key, decoded, answer; /* of one request; kept, so that the next one allocates nothing */
    hk_topic_t **topics;
    size_t topic_capacity;
};

/* --- fields ------------------------------------------------------------------------------------------------------- */

typedef enum hk_gate_field {
    HK_GATE_AUTHORIZATION,
    HK_GATE_COOKIE,
    HK_GATE_ORIGIN,
    HK_GATE_HOST,
    HK_GATE_REFERER,
    HK_GATE_FORWARDED_PROTO, /* X-Forwarded-…: the scheme that the client used, so whose origin is the hub's own */
    HK_GATE_FORWARDED_SCHEME,
    HK_GATE_FORWARDED_SSL,
    HK_GATE_CONTENT_TYPE,
    HK_GATE_ACCEPT, /* the form and the coding of a stream */
    HK_GATE_ACCEPT_ENCODING,
    HK_GATE_LAST_EVENT_ID,
    HK_GATE_STREAM, /* Hikyaku-Stream: whether a capability is asked for, and that matchers are named */
    HK_GATE_IDEMPOTENCY_KEY,
    HK_GATE_IDEMPOTENCY_MEMORY, /* Hikyaku-Idempotency */
    HK_GATE_OTHER_FIELD,
    HK_GATE_FIELDS
} hk_gate_field_t;

/* A head, looked through once. */
typedef struct hk_gate_asked {
    const hk_http1_request_t *head;
    bool publishes; /* else it subscribes */
    bool has_key;   /* a decision about it may be remembered; the rest is only right if it is so */
    hk_bytes_t values[HK_GATE_FIELDS];
    size_t counts[HK_GATE_FIELDS];
} hk_gate_asked_t;

hk_gate_field_t hk_gate_field_of(hk_bytes_t name);

/* Whether a field is in the keys of publishes or else of subscribes. */
bool hk_gate_field_decides(hk_gate_field_t field, bool publishes);

void hk_gate_ask(const hk_gate_t *gate, const hk_http1_request_t *head, hk_gate_asked_t *asked);

/* --- query and cookies -------------------------------------------------------------------------------------------- */

/* Writes the parameters that decide, and if asked the cursors, as they were sent and in their order; returns how many
 * bytes: at most query.length, which `out` has room for. */
size_t hk_gate_write_query(const hk_gate_t *gate, hk_bytes_t query, bool with_cursors, char *out);

/* Writes the token's cookies, as they were sent and in their order; returns how many bytes: at most cookie.length. */
size_t hk_gate_write_cookie(const hk_gate_t *gate, hk_bytes_t cookie, char *out);

/* The cursor of the query, raw: of the names that there are in turn, the first parameter of each, the first value that
 * is not empty, else an empty one. False when none was sent. */
bool hk_gate_query_cursor(const hk_gate_t *gate, hk_bytes_t query, hk_bytes_t *cursor);

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* Appends the key of a request that has one. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_gate_write_key(const hk_gate_t *gate, const hk_gate_asked_t *asked, hk_buf_t *key);

/* --- answering ---------------------------------------------------------------------------------------------------- */

/* Whether every character may stand in a topic: valid UTF-8, neither control nor format characters, as
 * Hikyaku::Hub::Topic.valid_text?. */
bool hk_gate_text(hk_bytes_t text);

/* Decodes a form value into gate->decoded, in which there is room for it; borrows it where nothing is encoded. */
hk_bytes_t hk_gate_decode(hk_gate_t *gate, hk_bytes_t raw);

/* Begins gate->answer: the head that was remembered, with Date behind the status line. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_gate_begin(hk_gate_t *gate, hk_bytes_t head, int64_t wall);

/* As hk_gate_serve, for a request whose decision is known and not over. */
hk_status_t hk_gate_publish(hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked,
                            const hk_gate_entry_t *entry, hk_gate_answer_t *answer);
hk_status_t hk_gate_subscribe(hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked,
                              const hk_gate_entry_t *entry, hk_gate_answer_t *answer);

/* Whether it is worth looking for a decision: false when Ruby is asked in any case. */
bool hk_gate_publishable(const hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked);
bool hk_gate_subscribable(const hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked);

#endif
