/* hk_past.h: what a stream that was changed knows of before: what it had been sent when it went back to catch up.
 *
 *     log      ... 40 ····· 50 ····· 60 ················ 100 ...
 *     /a       ─────────────────────────────────────────► sent; then /b is added, and caught up from 50:
 *     layer    [ up to 100 what /a selects                ]
 *     /b                    ────────► sent; then /c is added, and caught up from 40:
 *     layer                 [ what /b selects ]
 *     /c           ─► now; of what it selects, that which a layer has is left out
 *
 * A layer is dropped when the stream has passed it. As Hikyaku::Hub::Past.
 */
#ifndef HK_PAST_H
#define HK_PAST_H

#include "hk_alloc.h"
#include "hk_grant.h"
#include "hk_log.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

/* So many layers may lie one on the other. */
enum { HK_PAST_LAYERS = 8 };

/* Where a subscription begins. */
typedef struct hk_beginning {
    hk_position_t from;  /* what is behind this position is for the stream */
    hk_position_t since; /* what is behind this position, and not behind the cursor, was sent */
} hk_beginning_t;

/* What was sent up to a position: of what each of a grant's matchers selects behind its position, what the grant
 * admits. */
typedef struct hk_layer {
    struct hk_layer *below; /* up to a later position */
    hk_position_t to;
    hk_grant_t *grant;
    hk_position_t since[]; /* of each of its subscriptions */
} hk_layer_t;

typedef struct hk_past {
    hk_layer_t *layers;
    hk_position_t ends; /* from here on, everything that a matcher selects is for the stream */
    hk_position_t
        resumes_at; /* behind the rest of the event of which it has a part; HK_POSITION_NONE: behind that event */
    hk_beginning_t beginnings[]; /* of each subscription */
} hk_past_t;

static inline size_t hk_past_size(size_t subscriptions)
{
    return sizeof(hk_past_t) + subscriptions * sizeof(hk_beginning_t);
}

/* A past of nothing. */
void hk_past_init(hk_past_t *past);

/* Gives back what it holds. */
void hk_past_release(const hk_alloc_t *alloc, hk_past_t *past);

/* Whether as many layers as there may be reach beyond a position. */
bool hk_past_full(const hk_past_t *past, hk_position_t position);

/* A layer that is not on the others yet, with room for where the grant's subscriptions begin. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_layer_new(const hk_alloc_t *alloc, hk_grant_t *grant, hk_position_t to, hk_layer_t **layer);

/* NULL is allowed. */
void hk_layer_free(const hk_alloc_t *alloc, hk_layer_t *layer);

/* Puts a layer on the others, of which those go that do not reach beyond it. */
void hk_past_add(const hk_alloc_t *alloc, hk_past_t *past, hk_layer_t *layer);

/* Drops what the stream has passed. */
void hk_past_pass(const hk_alloc_t *alloc, hk_past_t *past, hk_position_t cursor);

/* Sees where it ends. */
void hk_past_settle(hk_past_t *past, size_t subscriptions);

/* Whether a record was sent before. */
bool hk_past_had(const hk_past_t *past, hk_program_space_t *space, const hk_record_t *record);

#endif
