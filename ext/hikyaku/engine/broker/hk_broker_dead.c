#include "hk_broker_report_private.h"
#include "hk_broker_store_private.h"

/* Dead letters: listing, replaying, dropping; and purging what waits. */

enum {
    SHOWN_BYTES = 256,
    GONE_MOST = 1024, /* that stand in the line of the dead, whatever else does */
    STRAIGHT = 16     /* messages that are shown in the time that one of a line takes */
};

static void no_memory(hk_session_t *session, const hk_frame_t *frame)
{
    hk_session_refuse(session, frame->id, HK_CODE_OVERLOADED, "there is no memory for this request");
}

static void report_count(hk_session_t *session, const hk_frame_t *frame, uint64_t count)
{
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    hk_report_number(&report, "count", count);
    hk_report_end(&report);
}

/* -- One of them --------------------------------------------------------------------------------------------------- */

static void add_base64(hk_report_t *report, hk_bytes_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t at = 0; at < bytes.length; at += 3) {
        size_t left = bytes.length - at;
        uint32_t bits = (uint32_t)(unsigned char)bytes.at[at] << 16;
        bits |= left > 1 ? (uint32_t)(unsigned char)bytes.at[at + 1] << 8 : 0;
        bits |= left > 2 ? (uint32_t)(unsigned char)bytes.at[at + 2] : 0;
        char text[4] = {digits[bits >> 18], digits[bits >> 12 & 63], left > 1 ? digits[bits >> 6 & 63] : '=',
                        left > 2 ? digits[bits & 63] : '='};
        hk_report_bytes(report, hk_bytes(text, sizeof(text)));
    }
}

static hk_status_t add_letter(hk_report_t *report, const hk_message_t *message)
{
    hk_broker_t *broker = report->session->broker;
    hk_piece_t *piece;
    hk_bytes_t content;
    hk_status_t status = hk_message_content(broker, message, &piece, &content);
    if (status != HK_OK) {
        return status;
    }
    hk_bytes_t words = {0};
    if (message->extra != NULL) {
        words = hk_bytes(message->extra->words, message->extra->words_length);
    }
    hk_bytes_t payload = hk_bytes(content.at + message->properties, content.length - message->properties);
    payload.length = payload.length < SHOWN_BYTES ? payload.length : SHOWN_BYTES;
    hk_report_number(report, "id", message->id);
    hk_report_number(report, "reason", message->reason);
    hk_report_string(report, "words", words);
    hk_report_number(report, "failures", message->failures);
    hk_report_number(report, "crashes", message->crashes);
    hk_report_number(report, "age_ms", hk_message_age(broker, message));
    hk_report_number(report, "bytes", message->bytes);
    hk_report_open(report, "payload", "\"");
    add_base64(report, payload);
    hk_report_text(report, "\"");
    hk_piece_release(piece);
    return HK_OK;
}

/* -- Which are listed: a heap with the highest id on top ----------------------------------------------------------- */

typedef struct chosen {
    const hk_queue_t *queue;
    uint64_t above;               /* ids */
    const hk_message_t **letters; /* the caller's */
    uint32_t count, most;
} chosen_t;

static void rise(chosen_t *chosen, const hk_message_t *letter)
{
    uint32_t at = chosen->count++;
    for (; at > 0 && chosen->letters[(at - 1) / 2]->id < letter->id; at = (at - 1) / 2) {
        chosen->letters[at] = chosen->letters[(at - 1) / 2];
    }
    chosen->letters[at] = letter;
}

static void sink(chosen_t *chosen, uint32_t count, const hk_message_t *letter)
{
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && chosen->letters[child]->id < chosen->letters[child + 1]->id) {
            child++;
        }
        if (chosen->letters[child]->id <= letter->id) {
            break;
        }
        chosen->letters[at] = chosen->letters[child];
    }
    chosen->letters[at] = letter;
}

static void consider(void *context, void *item)
{
    chosen_t *chosen = context;
    const hk_message_t *letter = item;
    if (letter->queue != chosen->queue || letter->state != HK_STATE_DEAD || letter->id <= chosen->above) {
        return;
    }
    if (chosen->count < chosen->most) {
        rise(chosen, letter);
    } else if (letter->id < chosen->letters[0]->id) {
        sink(chosen, chosen->count, letter);
    }
}

/* Those with the lowest ids, in order: n log most for n in their line, or n messages of all queues where that takes
 * less. The line leads through memory in the order in which they died, which may be any. */
static void choose(hk_broker_t *broker, chosen_t *chosen)
{
    const hk_queue_t *queue = chosen->queue;
    if ((queue->dead_count + queue->dead_gone) * STRAIGHT > broker->messages.count) {
        hk_report_walk(broker, consider, chosen, NULL);
    } else {
        for (hk_message_t *letter = queue->dead.first; letter != NULL; letter = letter->next) {
            consider(chosen, letter);
        }
    }
    for (uint32_t left = chosen->count; left > 1; left--) {
        const hk_message_t *highest = chosen->letters[0];
        sink(chosen, left - 1, chosen->letters[left - 1]);
        chosen->letters[left - 1] = highest;
    }
}

/* -- Listing ------------------------------------------------------------------------------------------------------- */

void hk_report_dead(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    hk_broker_t *broker = session->broker;
    hk_queue_t *queue = hk_report_queue(session, frame, query);
    if (queue == NULL) {
        return;
    }
    uint32_t limit = hk_report_limit(query);
    chosen_t chosen = {.queue = queue,
                       .above = query->number,
                       .most = queue->dead_count < limit ? (uint32_t)queue->dead_count : limit};
    if (chosen.most > 0) {
        chosen.letters = hk_alloc_new(broker->alloc, chosen.most * sizeof(*chosen.letters));
        if (chosen.letters == NULL) {
            no_memory(session, frame);
            return;
        }
        choose(broker, &chosen);
    }
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    hk_report_open(&report, "dead", "[");
    hk_status_t status = HK_OK;
    for (uint32_t i = 0; i < chosen.count && status == HK_OK; i++) {
        hk_report_item(&report);
        status = add_letter(&report, chosen.letters[i]);
        if (status == HK_OK && !hk_report_item_end(&report)) {
            break;
        }
    }
    hk_alloc_free(broker->alloc, chosen.letters);
    if (status == HK_SYSTEM) {
        hk_broker_fail(broker);
        return;
    }
    report.status = report.status == HK_OK ? status : report.status;
    hk_report_text(&report, "]");
    hk_report_end(&report);
}

/* -- Replaying and dropping ---------------------------------------------------------------------------------------- */

static void bring_back(hk_broker_t *broker, hk_message_t *message, bool replay)
{
    hk_queue_t *queue = message->queue;
    queue->dead_count--;
    if (!replay) {
        hk_message_done(broker, message);
        return;
    }
    message->failures = message->crashes = message->returns = 0;
    message->delivered = 0;
    hk_queue_put(message);
    (void)hk_store_state(broker, message, 0);
}

/* Frees what went elsewhere. What is left. */
static hk_line_t sweep(hk_broker_t *broker, hk_queue_t *queue)
{
    hk_line_t line = {0};
    for (hk_message_t *message = queue->dead.first, *next; message != NULL; message = next) {
        next = message->next;
        if (message->state == HK_STATE_GONE) {
            hk_message_free(broker, message);
        } else {
            hk_line_append(&line, message);
        }
    }
    queue->dead_gone = 0;
    return line;
}

/* It moves elsewhere, and what it was stays in the line: nobody has to look for who stands before it. HK_OK or
 * HK_NO_MEMORY. */
static hk_status_t bring_back_one(hk_broker_t *broker, hk_message_t *letter, bool replay)
{
    hk_queue_t *queue = letter->queue;
    hk_message_t *moved = hk_message_new(broker, queue);
    if (moved == NULL) {
        return HK_NO_MEMORY;
    }
    *moved = *letter;
    if (moved->extra != NULL) {
        moved->extra->message = moved;
    }
    letter->extra = NULL;
    letter->piece = NULL;
    letter->state = HK_STATE_GONE;
    bring_back(broker, moved, replay);
    if (++queue->dead_gone > queue->dead_count + GONE_MOST) {
        queue->dead = sweep(broker, queue);
    }
    return HK_OK;
}

/* In the order of their ids. O(n): all in one turn. */
static uint64_t bring_back_all(hk_broker_t *broker, hk_queue_t *queue, bool replay)
{
    hk_line_t these = sweep(broker, queue);
    queue->dead = (hk_line_t){0};
    uint64_t count = 0;
    for (hk_message_t *message = hk_messages_sorted(broker->alloc, these.first), *next; message != NULL;
         message = next) {
        next = message->next;
        bring_back(broker, message, replay);
        count++;
    }
    return count;
}

void hk_report_bring_back(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query, bool replay)
{
    hk_broker_t *broker = session->broker;
    hk_queue_t *queue;
    hk_message_t *letter = NULL;
    if (query->number == 0) {
        queue = hk_report_queue(session, frame, query);
    } else {
        letter = hk_report_message(broker, query->number);
        if (letter == NULL || letter->state != HK_STATE_DEAD) {
            hk_session_refuse(session, frame->id, HK_CODE_NO_SUCH_MESSAGE, "there is no such dead letter");
            return;
        }
        queue = hk_report_may(session, frame, letter->queue) ? letter->queue : NULL;
    }
    if (queue == NULL) {
        return;
    }
    uint64_t count = letter != NULL ? 1 : queue->dead_count;
    if (hk_store_reserve_freed(broker, replay ? 0 : count) != HK_OK ||
        (letter != NULL && bring_back_one(broker, letter, replay) != HK_OK)) {
        no_memory(session, frame);
        return;
    }
    report_count(session, frame, letter != NULL ? 1 : bring_back_all(broker, queue, replay));
    hk_queue_pump(broker, queue);
    hk_queue_touch(broker, queue);
}

/* -- Purging ------------------------------------------------------------------------------------------------------- */

typedef struct purge {
    hk_broker_t *broker;
    hk_queue_t *queue;
    uint64_t count;
} purge_t;

static void drop_line(purge_t *purge, hk_line_t *line)
{
    for (hk_message_t *message = line->first, *next; message != NULL; message = next) {
        next = message->next;
        if (message->state == HK_STATE_WAITS) {
            hk_message_done(purge->broker, message);
            purge->count++;
        }
    }
}

/* Delayed ones stand in the heap of all queues: their slots are looked through. None goes back while that is done. */
static void collect_delayed(void *context, void *item)
{
    purge_t *purge = context;
    hk_message_t *message = item;
    if (message->queue == purge->queue && message->state == HK_STATE_DELAYED) {
        hk_buf_t *found = &purge->broker->scratch;
        memcpy(hk_buf_end(found), &message, sizeof(message));
        hk_buf_grew(found, sizeof(message));
    }
}

static void drop_delayed(purge_t *purge)
{
    hk_broker_t *broker = purge->broker;
    hk_report_walk(broker, collect_delayed, purge, NULL);
    hk_bytes_t found = hk_buf_bytes(&broker->scratch);
    for (size_t at = 0; at < found.length; at += sizeof(hk_message_t *)) {
        hk_message_t *message;
        memcpy(&message, found.at + at, sizeof(message));
        purge->queue->delayed--;
        hk_message_done(broker, message);
        purge->count++;
    }
}

void hk_report_purge(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    hk_broker_t *broker = session->broker;
    hk_queue_t *queue = hk_report_queue(session, frame, query);
    if (queue == NULL) {
        return;
    }
    hk_buf_clear(&broker->scratch);
    if (hk_store_reserve_freed(broker, queue->ready + queue->delayed) != HK_OK ||
        hk_buf_reserve(&broker->scratch, queue->delayed * sizeof(hk_message_t *)) != HK_OK) {
        no_memory(session, frame);
        return;
    }
    purge_t purge = {.broker = broker, .queue = queue};
    if (queue->delayed > 0) {
        drop_delayed(&purge);
    }
    for (int i = 0; i < HK_BROKER_LINES; i++) {
        drop_line(&purge, &queue->lines[i]);
    }
    drop_line(&purge, &queue->suspects);
    hk_queue_sweep(broker, queue);
    hk_queue_touch(broker, queue);
    report_count(session, frame, purge.count);
}
