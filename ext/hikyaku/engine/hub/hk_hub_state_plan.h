/* hk_hub_state_plan.h: what is to be done to change a stream, made before anything is.
 *
 *     hk_hub_change_plan  what can fail
 *     hk_hub_change       what cannot
 */
#ifndef HK_HUB_STATE_PLAN_H
#define HK_HUB_STATE_PLAN_H

#include "hk_hub_state.h"

typedef struct hk_change_plan {
    const hk_change_t *change;
    hk_subscriber_t *subscriber;
    uint32_t count, former_count; /* subscriptions from now on, and until now */
    uint32_t *origins;            /* of each from now on, its place until now; or HK_CHANGE_NEW */
    bool *stays;                  /* of each from now on, whether it is one of those until now */
    bool *stayed;                 /* of each until now, whether it is one from now on */
    bool as_it_was;               /* the same subscriptions in the same places; then the three above are NULL */
    bool moves;                   /* also those that stay go to another variant of their feeds */
    bool begins_naming;           /* its events did not name matchers until now */
    bool adds;
    bool same_reads;
    hk_position_t here; /* where the stream stands */
    hk_position_t from; /* behind this position those begin that are added */
    bool goes_back;
    hk_subscriber_t *made;  /* takes the subscriber's place; what is added is linked to it. NULL if it is as it was */
    hk_sent_range_t *range; /* NULL unless the stream goes back */
} hk_change_plan_t;

enum { HK_CHANGE_NEW = UINT32_MAX };

/* Makes a plan, and says that there is a gap if there is one: what can fail.
 *
 * plan    of zeros, but for change and subscriber.
 * answer  as of hk_hub_change.
 *
 * HK_OK; HK_TOO_MANY or HK_NO_MEMORY: the plan is undone. */
hk_status_t hk_hub_plan_change(hk_hub_t *hub, hk_change_plan_t *plan, hk_bytes_t *answer);

/* Gives back what only the plan holds, whatever became of it. */
void hk_hub_forget_plan(hk_hub_t *hub, hk_change_plan_t *plan);

#endif
