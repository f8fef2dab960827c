#include "hk_broker_producer_private.h"
#include "hk_broker_report_private.h"

static bool may(hk_session_t *session, const hk_frame_t *frame)
{
    if (hk_session_may(session, HK_RIGHT_MANAGE, 0, HK_BYTES("*"))) {
        return true;
    }
    hk_report_forbid(session, frame);
    return false;
}

/* false: the report is full. */
static bool add(hk_report_t *report, const hk_producer_t *producer)
{
    const hk_broker_t *broker = report->session->broker;
    hk_report_item(report);
    hk_report_string(report, "identity", hk_bytes(producer->identity, producer->length));
    hk_report_truth(report, "connected", producer->session != NULL);
    hk_report_number(report, "idle_ms",
                     producer->session != NULL ? 0 : (uint64_t)((broker->now - producer->idle_since) / HK_MS));
    hk_report_number(report, "epoch", producer->epoch);
    hk_report_number(report, "low", producer->low);
    return hk_report_item_end(report);
}

static bool is_asked_for(const hk_producer_t *producer, const hk_frame_query_t *query)
{
    return producer->remembered && hk_bytes_start_with(hk_bytes(producer->identity, producer->length), query->name);
}

/* Those that are idle, for longest before others, as they would be forgotten; then those that are connected. */
void hk_report_identities(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    hk_broker_t *broker = session->broker;
    if (!may(session, frame)) {
        return;
    }
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    hk_report_open(&report, "identities", "[");
    uint32_t left = hk_report_limit(query);
    bool fits = true;
    hk_list_t *idle = &broker->idle_producers, *all = &broker->all_producers;
    for (hk_list_t *link = idle->next; fits && left > 0 && link != idle; link = link->next) {
        const hk_producer_t *producer = HK_OWNER(link, hk_producer_t, idle);
        if (is_asked_for(producer, query)) {
            fits = add(&report, producer);
            left--;
        }
    }
    for (hk_list_t *link = all->next; fits && left > 0 && link != all; link = link->next) {
        const hk_producer_t *producer = HK_OWNER(link, hk_producer_t, link);
        if (producer->session != NULL && is_asked_for(producer, query)) {
            fits = add(&report, producer);
            left--;
        }
    }
    hk_report_text(&report, "]");
    hk_report_end(&report);
}

void hk_report_drop_identity(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    if (!may(session, frame)) {
        return;
    }
    hk_producer_t *producer = hk_producer_find(session->broker, query->name);
    if (producer != NULL && producer->session != NULL) {
        hk_session_refuse(session, frame->id, HK_CODE_INVALID,
                          "a client is connected with this identity: it can be dropped when the client has ended");
        return;
    }
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    hk_report_number(&report, "count", producer == NULL ? 0 : 1);
    if (producer != NULL) {
        hk_producer_forget(session->broker, producer);
    }
    hk_report_end(&report);
}
