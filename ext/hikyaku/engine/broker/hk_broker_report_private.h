/* hk_broker_report_private.h: what answers a QUERY. */
#ifndef HK_BROKER_REPORT_PRIVATE_H
#define HK_BROKER_REPORT_PRIVATE_H

#include "hk_broker_private.h"

/* JSON in the making: of one REPORT. Only one at a time. */
typedef struct hk_report {
    hk_session_t *session;
    hk_buf_t *out;
    uint64_t id;
    size_t item; /* where the last item of the list begins */
    hk_status_t status;
} hk_report_t;

void hk_report_begin(hk_report_t *report, hk_session_t *session, const hk_frame_t *frame);
void hk_report_bytes(hk_report_t *report, hk_bytes_t bytes);
void hk_report_text(hk_report_t *report, const char *text);
void hk_report_number(hk_report_t *report, const char *name, uint64_t number);
void hk_report_truth(hk_report_t *report, const char *name, bool truth);
void hk_report_string(hk_report_t *report, const char *name, hk_bytes_t text);
void hk_report_open(hk_report_t *report, const char *name, const char *bracket);

/* An object of a list. End: false when it did not fit into a frame that the client takes, and was taken back. */
void hk_report_item(hk_report_t *report);
bool hk_report_item_end(hk_report_t *report);
void hk_report_end(hk_report_t *report);

/* How many items a list may have: at most 10,000. */
uint32_t hk_report_limit(const hk_frame_query_t *query);

/* The client may not do this: it is told so. */
void hk_report_forbid(hk_session_t *session, const hk_frame_t *frame);

/* The queue that is meant. NULL: the client was told why not. */
hk_queue_t *hk_report_queue(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query);
bool hk_report_may(hk_session_t *session, const hk_frame_t *frame, const hk_queue_t *queue);

/* Shows all messages to `visit`, or those up to where *found is not NULL: O(messages), 64 bytes of each are read, one
 * behind the other. It goes between the slices of an evacuation, and gives nothing back. */
void hk_report_walk(hk_broker_t *broker, void (*visit)(void *context, void *item), void *context,
                    hk_message_t *const *found);

/* The message with this id, or NULL. O(messages). */
hk_message_t *hk_report_message(hk_broker_t *broker, uint64_t id);
uint64_t hk_message_age(const hk_broker_t *broker, const hk_message_t *message);

/* --- hk_broker_pick ----------------------------------------------------------------------------------------------- */

/* The first by their names of many queues, as many as there is room for: a heap with the last of them on top, so that
 * n queues cost O(n log most). */
typedef struct hk_pick {
    hk_queue_t **queues; /* the caller's */
    size_t count, most;
    uint64_t compared; /* pairs of names */
} hk_pick_t;

void hk_pick_add(hk_pick_t *pick, hk_queue_t *queue);

/* In the order of their names; none is added after that. */
void hk_pick_sort(hk_pick_t *pick);

/* --- hk_broker_explain -------------------------------------------------------------------------------------------- */

void hk_report_explanation(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query);

/* --- hk_broker_identities ----------------------------------------------------------------------------------------- */

void hk_report_identities(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query);
void hk_report_drop_identity(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query);

/* --- hk_broker_dead ----------------------------------------------------------------------------------------------- */

void hk_report_dead(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query);
void hk_report_bring_back(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query, bool replay);
void hk_report_purge(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query);

#endif
