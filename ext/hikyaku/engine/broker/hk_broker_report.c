#include "hk_broker_report_private.h"
#include "hk_broker_store_private.h"

/* QUERY, but for why a message waits (hk_broker_explain), and for dead letters and dropping (hk_broker_dead). */

enum { USUAL_LIMIT = 100, MOST_LIMIT = 10000 };
enum { QUEUES = 1, EXPLAIN, DEAD, REPLAY, DROP, SEGMENTS, SESSIONS, PURGE, IDENTITIES = 16, DROP_IDENTITY };

/* -- JSON ---------------------------------------------------------------------------------------------------------- */

void hk_report_begin(hk_report_t *report, hk_session_t *session, const hk_frame_t *frame)
{
    *report = (hk_report_t){.session = session, .out = &session->broker->scratch, .id = frame->id, .status = HK_OK};
    hk_buf_clear(report->out);
    hk_report_text(report, "{");
}

void hk_report_bytes(hk_report_t *report, hk_bytes_t bytes)
{
    if (report->status == HK_OK) {
        report->status = hk_buf_append(report->out, bytes);
    }
}

void hk_report_text(hk_report_t *report, const char *text)
{
    hk_report_bytes(report, hk_bytes(text, strlen(text)));
}

static char last_of(const hk_report_t *report)
{
    return report->out->length == 0 ? 0 : *(hk_buf_end(report->out) - 1);
}

static void key(hk_report_t *report, const char *name)
{
    char last = last_of(report);
    hk_report_text(report, last == '{' || last == '[' ? "\"" : ",\"");
    hk_report_text(report, name);
    hk_report_text(report, "\":");
}

void hk_report_number(hk_report_t *report, const char *name, uint64_t number)
{
    key(report, name);
    if (report->status == HK_OK) {
        report->status = hk_buf_append_number(report->out, number);
    }
}

void hk_report_truth(hk_report_t *report, const char *name, bool truth)
{
    key(report, name);
    hk_report_text(report, truth ? "true" : "false");
}

void hk_report_string(hk_report_t *report, const char *name, hk_bytes_t text)
{
    key(report, name);
    if (report->status == HK_OK) {
        report->status = hk_json_string(report->out, text);
    }
}

void hk_report_open(hk_report_t *report, const char *name, const char *bracket)
{
    key(report, name);
    hk_report_text(report, bracket);
}

void hk_report_item(hk_report_t *report)
{
    report->item = report->out->length;
    hk_report_text(report, last_of(report) == '[' ? "{" : ",{");
}

/* The list may still have to be closed behind it. */
bool hk_report_item_end(hk_report_t *report)
{
    hk_report_text(report, "}");
    const hk_session_t *session = report->session;
    uint32_t own = session->broker->options.max_frame;
    uint32_t most = own < session->max_frame ? own : session->max_frame;
    if (report->out->length + HK_FRAME_HEADER_BYTES + 2 <= most) {
        return report->status == HK_OK;
    }
    report->out->length = report->item;
    return false;
}

void hk_report_end(hk_report_t *report)
{
    hk_report_text(report, "}");
    hk_session_t *session = report->session;
    if (report->status != HK_OK) {
        hk_session_refuse(session, report->id, HK_CODE_OVERLOADED,
                          "there is no memory or no open file for this report: ask again");
        return;
    }
    hk_bytes_t json = hk_buf_bytes(report->out);
    hk_session_flush(session);
    char *at = hk_session_lay(session, HK_FRAME_HEADER_BYTES + json.length);
    if (at != NULL) {
        hk_frame_put_header(at, HK_FRAME_HEADER_BYTES + json.length, HK_FRAME_REPORT, 0, 0, report->id);
        memcpy(at + HK_FRAME_HEADER_BYTES, json.at, json.length);
    }
    hk_buf_release(report->out);
}

uint32_t hk_report_limit(const hk_frame_query_t *query)
{
    return query->limit == 0 ? USUAL_LIMIT : query->limit < MOST_LIMIT ? query->limit : MOST_LIMIT;
}

/* -- Who may look -------------------------------------------------------------------------------------------------- */

void hk_report_forbid(hk_session_t *session, const hk_frame_t *frame)
{
    hk_session_refuse(session, frame->id, HK_CODE_FORBIDDEN, "this client may not look into this");
}

hk_queue_t *hk_report_queue(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    if (!hk_session_may(session, HK_RIGHT_MANAGE, query->kind, query->name)) {
        hk_report_forbid(session, frame);
        return NULL;
    }
    hk_queue_t *queue = query->name.length == 0 || query->name.length > HK_FRAME_NAME_MOST
                            ? NULL
                            : hk_queue_find(session->broker, query->kind, query->name);
    if (queue == NULL) {
        hk_session_refuse(session, frame->id, HK_CODE_NO_SUCH_QUEUE, "there is no such queue");
    }
    return queue;
}

bool hk_report_may(hk_session_t *session, const hk_frame_t *frame, const hk_queue_t *queue)
{
    if (hk_session_may(session, HK_RIGHT_MANAGE, queue->kind, hk_queue_name(queue))) {
        return true;
    }
    hk_report_forbid(session, frame);
    return false;
}

/* -- Messages by id ------------------------------------------------------------------------------------------------ */

typedef struct search {
    uint64_t id;
    hk_message_t *found;
} search_t;

static void look(void *context, void *item)
{
    search_t *search = context;
    hk_message_t *message = item;
    if (message->queue != NULL && message->state != HK_STATE_GONE && message->id == search->id) {
        search->found = message;
    }
}

void hk_report_walk(hk_broker_t *broker, void (*visit)(void *context, void *item), void *context,
                    hk_message_t *const *found)
{
    hk_slab_pool_t *messages = &broker->messages;
    hk_slab_chunk_t *walked = messages->walked;
    uint32_t slab = messages->walked_slab;
    hk_slab_walk(messages);
    while ((found == NULL || *found == NULL) && hk_slab_step(messages, visit, context)) {
    }
    messages->walked = walked;
    messages->walked_slab = slab;
}

/* There is no table of ids: a person can wait for a look at all messages, senders and receivers need none. */
hk_message_t *hk_report_message(hk_broker_t *broker, uint64_t id)
{
    search_t search = {.id = id};
    hk_report_walk(broker, look, &search, &search.found);
    return search.found;
}

uint64_t hk_message_age(const hk_broker_t *broker, const hk_message_t *message)
{
    return broker->wall > message->sent ? broker->wall - message->sent : 0;
}

/* -- queues -------------------------------------------------------------------------------------------------------- */

/* The first by name of those that are asked for, in order. HK_NO_MEMORY: there is none for their row. */
static hk_status_t pick_queues(const hk_session_t *session, const hk_frame_query_t *query, hk_pick_t *pick)
{
    hk_broker_t *broker = session->broker;
    uint32_t limit = hk_report_limit(query);
    *pick = (hk_pick_t){.most = broker->queues.count < limit ? broker->queues.count : limit};
    if (pick->most == 0) {
        return HK_OK;
    }
    pick->queues = hk_alloc_new(broker->alloc, pick->most * sizeof(*pick->queues));
    if (pick->queues == NULL) {
        return HK_NO_MEMORY;
    }
    for (hk_list_t *link = broker->all_queues.next; link != &broker->all_queues; link = link->next) {
        hk_queue_t *queue = HK_OWNER(link, hk_queue_t, link);
        if (queue->kind == query->kind && hk_bytes_start_with(hk_queue_name(queue), query->name) &&
            hk_session_may(session, HK_RIGHT_MANAGE, queue->kind, hk_queue_name(queue))) {
            hk_pick_add(pick, queue);
        }
    }
    hk_pick_sort(pick);
    return HK_OK;
}

static void add_queue(hk_report_t *report, const hk_queue_t *queue)
{
    hk_queue_stats_t stats;
    hk_queue_read_stats(queue, report->session->broker->wall, &stats);
    hk_report_string(report, "name", stats.name);
    hk_report_number(report, "kind", stats.kind);
    hk_report_number(report, "ready", stats.ready);
    hk_report_number(report, "delayed", stats.delayed);
    hk_report_number(report, "out", stats.out);
    hk_report_number(report, "dead", stats.dead);
    hk_report_number(report, "bytes", stats.bytes);
    hk_report_number(report, "oldest_ms", stats.oldest_ms);
    hk_report_number(report, "receivers", stats.receivers);
    hk_report_number(report, "sent", stats.sent);
    hk_report_number(report, "freed", stats.freed);
    hk_report_number(report, "redelivered", stats.redelivered);
    hk_report_number(report, "failed", stats.failed);
    hk_report_number(report, "crashed", stats.crashed);
    hk_report_number(report, "expired", stats.expired);
}

static bool may_manage_any(const hk_session_t *session)
{
    bool any = session->broker->options.open;
    for (size_t i = 0; i < session->right_count; i++) {
        any = any || (session->rights[i].rights & HK_RIGHT_MANAGE) != 0;
    }
    return any;
}

static void report_queues(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    if (!may_manage_any(session)) {
        hk_report_forbid(session, frame);
        return;
    }
    hk_pick_t pick = {0};
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    report.status = report.status == HK_OK ? pick_queues(session, query, &pick) : report.status;
    hk_report_open(&report, "queues", "[");
    for (size_t i = 0; report.status == HK_OK && i < pick.count; i++) {
        hk_report_item(&report);
        add_queue(&report, pick.queues[i]);
        if (!hk_report_item_end(&report)) {
            break;
        }
    }
    hk_alloc_free(session->broker->alloc, pick.queues);
    hk_report_text(&report, "]");
    hk_report_end(&report);
}

/* -- sessions ------------------------------------------------------------------------------------------------------ */

static void report_sessions(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    hk_broker_t *broker = session->broker;
    if (!hk_session_may(session, HK_RIGHT_MANAGE, 0, HK_BYTES("*"))) {
        hk_report_forbid(session, frame);
        return;
    }
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    hk_report_open(&report, "sessions", "[");
    uint32_t left = hk_report_limit(query);
    for (hk_list_t *link = broker->sessions.next; left > 0 && link != &broker->sessions; link = link->next) {
        const hk_session_t *each = HK_OWNER(link, hk_session_t, link);
        if (each->phase != HK_SESSION_OPEN) {
            continue;
        }
        left--;
        hk_report_item(&report);
        hk_report_number(&report, "session", each->number);
        hk_report_string(&report, "identity", each->hello.identity);
        hk_report_string(&report, "agent", each->hello.agent);
        hk_report_string(&report, "address", each->address);
        hk_report_number(&report, "out", each->out_count);
        hk_report_number(&report, "unanswered", each->unanswered);
        hk_report_number(&report, "subscriptions", each->subscription_count);
        if (each->lapsed > 0) {
            hk_report_number(&report, "passed_over", each->lapsed);
        }
        if (!hk_report_item_end(&report)) {
            break;
        }
    }
    hk_report_text(&report, "]");
    hk_report_end(&report);
}

/* -- segments ------------------------------------------------------------------------------------------------------ */

static void find_oldest(void *context, void *item)
{
    hk_broker_t *broker = context;
    hk_message_t *message = item;
    if (message->queue == NULL || message->piece == NULL || message->piece->segment == 0) {
        return;
    }
    hk_ledger_row_t *row = hk_ledger_row(broker, message->piece->segment);
    if (row->oldest == NULL || message->id < row->oldest->id) {
        row->oldest = message;
    }
}

/* As permissions name it: @ stands before the name of a client. */
static void add_whole_name(hk_report_t *report, const hk_queue_t *queue)
{
    char whole[1 + HK_FRAME_NAME_MOST] = "@";
    hk_bytes_t name = hk_queue_name(queue);
    memcpy(whole + 1, name.at, name.length);
    hk_report_string(report, "queue", queue->kind == 1 ? hk_bytes(whole, 1 + name.length) : name);
}

static void report_segments(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    hk_broker_t *broker = session->broker;
    hk_ledger_t *ledger = &broker->ledger;
    if (!hk_session_may(session, HK_RIGHT_MANAGE, 0, HK_BYTES("*"))) {
        hk_report_forbid(session, frame);
        return;
    }
    for (size_t i = 0; i < ledger->count; i++) {
        if (ledger->rows[i] != NULL) {
            ledger->rows[i]->oldest = NULL;
        }
    }
    hk_report_walk(broker, find_oldest, broker, NULL);
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    hk_report_open(&report, "segments", "[");
    uint32_t left = hk_report_limit(query);
    uint32_t bytes = broker->options.segment_bytes == 0 ? HK_JOURNAL_SEGMENT_USUAL : broker->options.segment_bytes;
    for (size_t i = 0; left > 0 && i < ledger->count; i++) {
        const hk_ledger_row_t *row = ledger->rows[i];
        if (row == NULL || row->dropped || row->number > hk_journal_current(broker->journal)) {
            continue;
        }
        left--;
        hk_report_item(&report);
        hk_report_number(&report, "number", row->number);
        hk_report_number(&report, "bytes", bytes);
        hk_report_number(&report, "live", row->live);
        if (row->oldest != NULL) {
            hk_report_open(&report, "oldest", "{");
            hk_report_number(&report, "id", row->oldest->id);
            add_whole_name(&report, row->oldest->queue);
            hk_report_text(&report, "}");
        }
        if (!hk_report_item_end(&report)) {
            break;
        }
    }
    hk_report_text(&report, "]");
    hk_report_end(&report);
}

/* -- QUERY --------------------------------------------------------------------------------------------------------- */

void hk_take_query(hk_session_t *session, const hk_frame_t *frame)
{
    hk_frame_query_t query;
    if (!hk_frame_read_query(frame, &query)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no QUERY");
        return;
    }
    bool known =
        (query.what >= QUEUES && query.what <= PURGE) || query.what == IDENTITIES || query.what == DROP_IDENTITY;
    if (!known || query.kind > 1) {
        hk_session_refuse(session, frame->id, HK_CODE_INVALID,
                          known ? "the kind of a queue is 0 or 1" : "a QUERY asks for 1 to 8, 16 or 17");
        return;
    }
    if (hk_session_behind(session)) {
        hk_session_refuse(session, frame->id, HK_CODE_OVERLOADED, "what was reported before is to be read first");
        return;
    }
    switch (query.what) {
    case QUEUES:
        report_queues(session, frame, &query);
        break;
    case EXPLAIN:
        hk_report_explanation(session, frame, &query);
        break;
    case DEAD:
        hk_report_dead(session, frame, &query);
        break;
    case REPLAY:
    case DROP:
        hk_report_bring_back(session, frame, &query, query.what == REPLAY);
        break;
    case SEGMENTS:
        report_segments(session, frame, &query);
        break;
    case SESSIONS:
        report_sessions(session, frame, &query);
        break;
    case IDENTITIES:
        hk_report_identities(session, frame, &query);
        break;
    case DROP_IDENTITY:
        hk_report_drop_identity(session, frame, &query);
        break;
    default:
        hk_report_purge(session, frame, &query);
    }
}
