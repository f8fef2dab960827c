/* hk_hub_state.h: what the parts of a hub share. Not for drivers: see hk_hub.h.
 *
 *     hk_hub              making and freeing
 *     hk_hub_look         looking in
 *     hk_hub_publish      from an update to the feeds that grow
 *     hk_hub_persist      writing the log down, and restoring it
 *     hk_hub_tell         what somebody is told beside the log, and that a stream ends
 *     hk_hub_subscribe    coming, going, where a cursor stands
 *     hk_hub_change       streams that get another grant while they last: hk_hub_state_plan.h
 *     hk_hub_announce     subscription events
 *     hk_hub_serve        the hot path
 *     hk_hub_gather       what somebody receives next where the short way does not do
 *     hk_hub_coded        streams of another form, and compressed ones: hk_hub_state_coded.h
 *     hk_hub_epoch        what those share that are in step
 *     hk_hub_group        those that have several matchers, the same
 *     hk_hub_timing       heartbeats and ends
 */
#ifndef HK_HUB_STATE_H
#define HK_HUB_STATE_H

#include "hk_address.h"
#include "hk_batch.h"
#include "hk_buf.h"
#include "hk_capability.h"
#include "hk_feed.h"
#include "hk_gap.h"
#include "hk_heap.h"
#include "hk_hub.h"
#include "hk_hub_state_coded.h"
#include "hk_index.h"
#include "hk_keeper.h"
#include "hk_list.h"
#include "hk_log.h"
#include "hk_map.h"
#include "hk_roster.h"
#include "hk_sse.h"
#include "hk_subscriber.h"
#include "hk_wheel.h"

/* What was taken for somebody and not yet reported as written. */
typedef struct hk_taken {
    hk_subscriber_t *subscriber; /* NULL: nothing was */
    size_t length;
    bool control;      /* it is the subscriber's control, else events: */
    hk_position_t to;  /* where they lead */
    uint32_t count;    /* how many they are */
    const char *at;    /* of a coded subscriber's, where they lie, until something else is taken */
    hk_gzip_sum_t sum; /* of a coded subscriber's, what they say; of an epoch, all of it */
    uint64_t epoch;    /* the number of the epoch that they are from; 0: they are blocks */
} hk_taken_t;

struct hk_hub {
    const hk_alloc_t *alloc;
    hk_topics_t *topics;
    hk_topic_t *home; /* the hub's own URL */
    hk_log_t *log;
    hk_keeper_t *keeper; /* NULL: nothing is kept */
    int64_t now;         /* of the publish in hand */
    hk_index_t *index;
    hk_program_space_t space;
    hk_map_t feeds; /* by the matcher's key */
    hk_roster_t roster;
    hk_map_t addresses;
    uint32_t max_subscribers, max_of_address, max_cost, max_cost_of_address, max_cost_beside;
    bool announces, shut_down;

    /* Who has something pending: some subscribers, and the members of some feeds. */
    hk_list_t ready;
    hk_list_t scanning; /* with costly patterns */
    hk_list_t dirty;
    hk_feed_t *feed; /* whose members are being gone through, downwards; NULL: none's */
    size_t place;    /* those before it are still to be looked at */
    hk_batch_t batch;
    hk_buf_t batch_bytes, gathered;
    hk_taken_t taken;

    int64_t heartbeat, max_lifetime;
    hk_wheel_t beats;
    hk_heap_t deadlines;
    hk_said_t comment;   /* what a heartbeat is */
    hk_control_t *word;  /* that somebody has caught up */
    hk_coding_t *coding; /* NULL: there was no such stream */

    /* What is to be said of subscriptions when there is time, and the steps that may be taken for that now. */
    hk_list_t untold;
    size_t untold_count;
    hk_map_t coming; /* who comes, of those */
    hk_index_survey_t survey;
    uint64_t allowance;
    uint64_t scan_allowance; /* steps that those who scan may take in this turn */

    hk_buf_t scratch;      /* within one call */
    hk_record_t *answered; /* whose id was an answer */
    char sealed[HK_EVENT_ID_BYTES];
    uint64_t id_secret[2], chance[2];
    hk_capability_keys_t capabilities;
    uint64_t chances; /* taken */

    uint64_t subscriptions, publishes, deliveries, delivered_bytes, gaps, overruns, refused_total, refused_address,
        refused_cost;
};

/* --- hk_hub ------------------------------------------------------------------------------------------------------- */

/* A number at random from 0 to below the limit, which is above 0. */
uint64_t hk_hub_chance(hk_hub_t *hub, uint64_t limit);

/* The random id of the subscriber with a number, which may be gone. */
void hk_hub_id_of(const hk_hub_t *hub, uint64_t serial, char id[HK_SUBSCRIBER_ID_BYTES]);

/* Puts a subscriber on the ready list, if it is not there. */
static inline void hk_hub_make_ready(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_READY)) {
        hk_subscriber_set(subscriber, HK_SUBSCRIBER_READY);
        hk_list_append(&hub->ready, &subscriber->ready);
    }
}

/* Likewise for somebody who is to go on scanning the log when the others have had their turn. */
static inline void hk_hub_defer(hk_hub_t *hub, hk_subscriber_t *subscriber)
{
    if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_READY)) {
        hk_subscriber_set(subscriber, HK_SUBSCRIBER_READY);
        hk_list_append(&hub->scanning, &subscriber->ready);
    }
}

/* Counts whoever was refused because of what matching costs; returns the status. */
static inline hk_status_t hk_hub_count_costly(hk_hub_t *hub, hk_status_t status)
{
    hub->refused_cost += status == HK_TOO_COSTLY || status == HK_TOO_COSTLY_OF_ADDRESS;
    return status;
}

/* --- hk_hub_persist ----------------------------------------------------------------------------------------------- */

/* Forgets what is too old to be kept. */
void hk_hub_forget_the_old(hk_hub_t *hub, int64_t now);

/* --- hk_hub_subscribe --------------------------------------------------------------------------------------------- */

/* The feeds of a matcher, of each variant; NULL: there is none. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_feeds(hk_hub_t *hub, hk_bytes_t type, hk_bytes_t pattern, hk_feed_t *feeds[HK_VARIANTS]);

/* The first there is, or NULL. */
static inline hk_feed_t *hk_hub_first_feed(hk_feed_t *feeds[HK_VARIANTS])
{
    unsigned variant = 0;
    while (variant < HK_VARIANTS && feeds[variant] == NULL) {
        variant++;
    }
    return variant < HK_VARIANTS ? feeds[variant] : NULL;
}

/* The position that a cursor stands for, and what is answered: as of hk_hub_subscribe. */
hk_position_t hk_hub_place_of(hk_hub_t *hub, const hk_grant_t *grant, hk_bytes_t cursor, hk_bytes_t *answer);

/* Makes a subscription of a subscriber to a matcher, at one of its places. HK_OK, HK_TOO_COSTLY,
 * HK_TOO_COSTLY_OF_ADDRESS or HK_NO_MEMORY. */
hk_status_t hk_hub_link(hk_hub_t *hub, hk_subscriber_t *subscriber, uint32_t subscription, hk_matcher_t *matcher);

/* Ends a subscription. */
void hk_hub_leave(hk_hub_t *hub, const hk_subscription_t *subscription);

/* Frees a subscriber and whatever knows it; announces nothing. */
void hk_hub_forget(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* How many feeds there are, of all variants. */
size_t hk_hub_feed_count(const hk_hub_t *hub);

/* --- hk_hub_announce ---------------------------------------------------------------------------------------------- */

/* So much may wait to be said before streams are not changed any more. */
enum { HK_MOST_UNTOLD = 4096 };

/* Publishes an event for each subscription of a grant that is announced: at once where the patterns in use allow that,
 * else when hk_hub_tell comes to it, in order. Those for which there is no memory are left out.
 *
 * stays  of each subscription, whether nothing is said of it; NULL: of each something is. */
void hk_hub_announce(hk_hub_t *hub, hk_grant_t *grant, const bool *stays, uint64_t serial, bool active, int64_t now);

/* Says what waits to be said, for about HK_HUB_STEPS: once a turn. */
void hk_hub_tell(hk_hub_t *hub, int64_t now);

/* Forgets what waits to be said. */
void hk_hub_keep_silent(hk_hub_t *hub);

/* --- hk_hub_gather ------------------------------------------------------------------------------------------------ */

/* hk_hub_take where a batch does not do: control, events in pieces, several feeds, scans, gaps. */
hk_status_t hk_hub_take_slowly(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes);

/* The socket took only a part of the events that were taken: the cursor stops at the last whole one. */
void hk_hub_wrote_part(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t count);

/* Says, behind what is pending for a subscriber alone, that events may be missing.
 *
 * gap        begun, in hub->scratch, with the matchers that it names.
 * continues  the position behind which the subscriber goes on.
 *
 * HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_say_gap(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_gap_t *gap, hk_position_t continues);

/* The next records that a coded subscriber receives, one behind the other, as hk_hub_take_slowly.
 *
 * until  no later ones; HK_POSITION_NONE: all. */
hk_status_t hk_hub_gather_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_position_t until,
                                hk_bytes_t *bytes);

/* --- hk_hub_names ------------------------------------------------------------------------------------------------- */

/* Appends the field that names a matcher. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_hub_name(const hk_matcher_t *matcher, hk_buf_t *names);

/* Names the matchers for which a subscriber is sent a record: nothing, where that is for all. What `names` holds is
 * overwritten. HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_write_names(hk_hub_t *hub, const hk_subscriber_t *subscriber, const hk_record_t *record,
                               hk_buf_t *names);

/* --- hk_hub_coded ------------------------------------------------------------------------------------------------- */

/* What a subscriber's form or coding needs, or NULL. */
static inline hk_coded_t *hk_hub_coded(hk_subscriber_t *subscriber)
{
    return hk_subscriber_is(subscriber, HK_SUBSCRIBER_CODED) ? hk_subscriber_coded(subscriber) : NULL;
}

/* Makes sure that there is what streams of a form and coding need, whose events name matchers or not. HK_OK;
 * HK_NO_MEMORY; HK_NOT_FOUND: it cannot be compressed. */
hk_status_t hk_hub_prepare_coding(hk_hub_t *hub, hk_stream_form_t form, hk_stream_coding_t coding, bool naming);

void hk_hub_free_coding(hk_hub_t *hub);

/* Says what a new stream begins with. */
void hk_hub_begin_coded(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* Says a heartbeat to a stream to which nothing was said, or only what it begins with, which all such streams share.
 * False: something was said. */
bool hk_hub_beat(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* Which variant of a matcher's feed a subscriber is to be a member of when it has a grant. */
unsigned hk_hub_variant(hk_subscriber_t *subscriber, const hk_grant_t *grant);

/* A part of an event stream as those of a variant receive it; the control is the caller's to release. HK_OK or
 * HK_NO_MEMORY. */
hk_status_t hk_hub_encode(hk_hub_t *hub, unsigned variant, hk_bytes_t events, hk_said_t *said);

/* Says it to a subscriber of that variant to whom nothing is being said. */
void hk_hub_share(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_said_t *said);

/* Says a part of an event stream behind what is pending for a subscriber alone. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_hub_say(hk_hub_t *hub, hk_subscriber_t *subscriber, hk_bytes_t events);

/* A heartbeat, as a subscriber receives it. */
const hk_said_t *hk_hub_comment(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* An event in a form and a coding, from those that are kept or made now. Borrowed until the next call. HK_OK or
 * HK_NO_MEMORY. */
hk_status_t hk_hub_render(hk_hub_t *hub, unsigned variant, const hk_record_t *record, const hk_rendered_t **rendered);

/* What was said of an epoch to one in step is now so much. */
void hk_hub_count_in_step(hk_subscriber_t *subscriber, hk_gzip_sum_t sum, uint64_t epoch);

/* From now on it is in step with no epoch. */
void hk_hub_step_out(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* The socket of a coded subscriber took so many bytes of the events that were taken. */
void hk_hub_wrote_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, const hk_taken_t *taken, size_t count);

/* Counts no more what was kept for a subscriber that has been sent it, or that goes. */
void hk_hub_let_go(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* --- hk_hub_epoch ------------------------------------------------------------------------------------------------- */

/* Gives a feed an epoch, if it has none and there is room for one more. */
void hk_hub_add_epoch(hk_hub_t *hub, hk_feed_t *feed);

void hk_hub_drop_epoch(hk_hub_t *hub, hk_feed_t *feed);

/* Adds what a feed with an epoch has got to it, or to the next one where it was full. */
void hk_hub_advance(hk_hub_t *hub, hk_feed_t *feed);

/* With which a coded subscriber may be in step, or NULL. */
hk_epoch_t *hk_hub_epoch_of(hk_subscriber_t *subscriber);

/* What is handed to those who have got so many entries of an epoch, which has more: all of the rest. */
hk_taken_t hk_hub_rest_of_epoch(const hk_epoch_t *epoch, uint32_t place);

/* What a coded subscriber receives next, as hk_hub_take_slowly. */
hk_status_t hk_hub_take_coded(hk_hub_t *hub, hk_subscriber_t *subscriber, size_t max_bytes, hk_bytes_t *bytes);

/* --- hk_hub_group ------------------------------------------------------------------------------------------------- */

/* Makes a subscriber a member of the group of its matchers, if it may be in one, is in none, and there is memory. */
void hk_hub_join_group(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* Harmless when it is in none. Before it leaves the feeds of its matchers. */
void hk_hub_leave_group(hk_hub_t *hub, hk_subscriber_t *subscriber);

/* --- hk_hub_timing ------------------------------------------------------------------------------------------------ */

/* HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_start_timing(hk_hub_t *hub, int64_t heartbeat, int64_t max_lifetime);

/* HK_OK or HK_NO_MEMORY. */
hk_status_t hk_hub_time(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now, int64_t expires_in);

/* For a grant that takes the place of another, with room in hub->deadlines for one more. */
void hk_hub_retime(hk_hub_t *hub, hk_subscriber_t *subscriber, int64_t now, int64_t expires_in);

void hk_hub_cancel_timing(hk_hub_t *hub, hk_subscriber_t *subscriber);

#endif
