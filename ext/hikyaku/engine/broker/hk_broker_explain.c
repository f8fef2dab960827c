#include "hk_broker_report_private.h"
#include "hk_broker_store_private.h"

#include <inttypes.h>
#include <stdio.h>

/* Why this message waits, and who holds it. */

static const hk_message_t *oldest_in(const hk_line_t *line, const hk_message_t *oldest)
{
    const hk_message_t *message = line->first;
    while (message != NULL && message->state == HK_STATE_GONE) {
        message = message->next;
    }
    return message == NULL || (oldest != NULL && oldest->id < message->id) ? oldest : message;
}

/* Of those whose turn comes first in their lines. */
static const hk_message_t *oldest_of(const hk_queue_t *queue)
{
    const hk_message_t *oldest = oldest_in(&queue->suspects, NULL);
    for (int i = 0; i < HK_BROKER_LINES; i++) {
        oldest = oldest_in(&queue->lines[i], oldest);
    }
    return oldest;
}

typedef struct earliest {
    const hk_queue_t *queue;
    const hk_message_t *found;
} earliest_t;

static void look_when(void *context, void *item)
{
    earliest_t *earliest = context;
    const hk_message_t *message = item;
    if (message->queue != earliest->queue || message->state != HK_STATE_DELAYED) {
        return;
    }
    const hk_message_t *found = earliest->found;
    int64_t at = message->extra->due.at;
    if (found == NULL || at < found->extra->due.at || (at == found->extra->due.at && message->id < found->id)) {
        earliest->found = message;
    }
}

/* Of those whose time has not come, which stand in the heap of all queues. */
static const hk_message_t *earliest_of(const hk_queue_t *queue, hk_broker_t *broker)
{
    earliest_t earliest = {.queue = queue};
    hk_report_walk(broker, look_when, &earliest, NULL);
    return earliest.found;
}

/* A sentence that names a session: its names have 255 bytes each at most. */
typedef struct sentence {
    size_t length;
    char text[1024];
} sentence_t;

static void say(sentence_t *sentence, hk_bytes_t words)
{
    size_t room = sizeof(sentence->text) - 1 - sentence->length;
    size_t length = words.length < room ? words.length : room;
    memcpy(sentence->text + sentence->length, words.at, length);
    sentence->length += length;
    sentence->text[sentence->length] = 0;
}

static void say_text(sentence_t *sentence, const char *text)
{
    say(sentence, hk_bytes(text, strlen(text)));
}

static void say_number(sentence_t *sentence, uint64_t number)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%" PRIu64, number);
    say_text(sentence, digits);
}

static void say_named(sentence_t *sentence, const char *what, hk_bytes_t name)
{
    if (name.length > 0) {
        say_text(sentence, what);
        say(sentence, name);
        say_text(sentence, "\"");
    }
}

static void say_session(sentence_t *sentence, const hk_session_t *session)
{
    say_text(sentence, "session ");
    say_number(sentence, session->number);
    say_named(sentence, ", identity \"", session->hello.identity);
    say_named(sentence, ", agent \"", session->hello.agent);
}

static const char *too_large(sentence_t *sentence, const hk_message_t *message)
{
    const hk_session_t *widest = NULL;
    const hk_list_t *subscriptions = &message->queue->subscriptions;
    for (const hk_list_t *link = subscriptions->next; link != subscriptions; link = link->next) {
        const hk_session_t *each = HK_OWNER(link, hk_receiver_t, of_queue)->session;
        widest = widest == NULL || each->max_frame > widest->max_frame ? each : widest;
    }
    say_text(sentence, "no receiver takes a message of this size: its PUSH has ");
    say_number(sentence, HK_FRAME_PUSH_BYTES + (uint64_t)message->bytes);
    say_text(sentence, " bytes, and the largest frame that any of them takes has ");
    say_number(sentence, widest->max_frame);
    say_text(sentence, ": ");
    say_session(sentence, widest);
    return sentence->text;
}

static const char *passed_over(sentence_t *sentence, const hk_session_t *session, uint64_t others)
{
    say_text(sentence, "a receiver let a lease end and has said nothing since; it is passed over until it says FREE, "
                       "NACK, CREDIT or ACK of a PUSH, or connects again: ");
    say_session(sentence, session);
    if (others > 1) {
        say_text(sentence, ", and ");
        say_number(sentence, others);
    }
    say_text(sentence, others == 0 ? "" : others == 1 ? ", and another" : " others");
    return sentence->text;
}

static const char *why_waiting(hk_broker_t *broker, const hk_message_t *message, sentence_t *sentence)
{
    hk_queue_t *queue = message->queue;
    bool fits = false, alone = false, kept = false, leaves = false, unread = false;
    const hk_session_t *lapsed = NULL;
    uint64_t lapses = 0;
    for (hk_list_t *link = queue->subscriptions.next; link != &queue->subscriptions; link = link->next) {
        const hk_receiver_t *each = HK_OWNER(link, hk_receiver_t, of_queue);
        bool takes = hk_receiver_fits(each, message), unspent = takes && each->out_count < each->credit;
        fits = fits || takes;
        if (unspent && each->lapsed != 0) {
            lapsed = lapses++ == 0 ? each->session : lapsed;
        }
        alone = alone || (unspent && each->alone);
        kept = kept || (unspent && each == queue->emptying);
        leaves = leaves || (unspent && each->session->drained);
        unread = unread || (unspent && each->session->held);
    }
    return broker->draining                       ? "the broker is about to stop"
           : hk_list_empty(&queue->subscriptions) ? "nobody receives from this queue"
           : !fits                                ? too_large(sentence, message)
           : lapsed != NULL                       ? passed_over(sentence, lapsed, lapses - 1)
           : message->crashes > 0 ? "its receiver has vanished with it: it waits for one that has nothing else"
           : hk_queue_first(broker, queue) != message ? "messages before it wait for receivers, none of which is free"
           : alone  ? "a receiver has a suspect, and gets nothing else until it is done with it"
           : kept   ? "a receiver is kept free for a suspect, and gets nothing else before it"
           : leaves ? "who has credit left has said that it leaves"
           : unread ? "who has credit left does not read what was sent to it"
                    : "no receiver has credit left";
}

static const char *why(hk_broker_t *broker, const hk_message_t *message, sentence_t *sentence)
{
    static const char *const reasons[] = {"it is dead", "it has failed too often",
                                          "its receivers have vanished with it too often",
                                          "its receiver said that it is dead"};
    switch ((hk_state_t)message->state) {
    case HK_STATE_OUT:
        return "a receiver has it";
    case HK_STATE_DELAYED:
        return "its time has not come";
    case HK_STATE_DEAD:
        return reasons[message->reason];
    default:
        return why_waiting(broker, message, sentence);
    }
}

static uint64_t ms_until(const hk_broker_t *broker, int64_t at)
{
    return at > broker->now ? (uint64_t)((at - broker->now + HK_MS - 1) / HK_MS) : 0;
}

static void add_holder(hk_report_t *report, const hk_delivery_t *delivery)
{
    const hk_session_t *session = delivery->subscription->session;
    hk_report_open(report, "holder", "{");
    hk_report_string(report, "identity", session->hello.identity);
    hk_report_number(report, "session", session->number);
    hk_report_number(report, "delivery", delivery->number);
    hk_report_number(report, "lease_in_ms", ms_until(session->broker, delivery->deadline));
    hk_report_string(report, "agent", session->hello.agent);
    hk_report_text(report, "}");
}

static const hk_delivery_t *delivery_of(const hk_broker_t *broker, const hk_message_t *message)
{
    for (const hk_list_t *link = broker->sessions.next; link != &broker->sessions; link = link->next) {
        const hk_session_t *session = HK_OWNER(link, hk_session_t, link);
        for (uint32_t i = 0; session->out_count > 0 && i < session->slot_count; i++) {
            for (const hk_delivery_t *each = session->slots[i]; each != NULL; each = each->chain) {
                if (each->message == message) {
                    return each;
                }
            }
        }
    }
    return NULL;
}

static void add_message(hk_report_t *report, const hk_message_t *message)
{
    static const char *const states[] = {"ready", "delayed", "out", "dead", "gone"};
    const hk_broker_t *broker = report->session->broker;
    const hk_extra_t *extra = message->extra;
    hk_report_open(report, "message", "{");
    hk_report_number(report, "id", message->id);
    hk_report_string(report, "queue", hk_queue_name(message->queue));
    hk_report_number(report, "kind", message->queue->kind);
    hk_report_string(report, "state", hk_bytes(states[message->state], strlen(states[message->state])));
    hk_report_number(report, "age_ms", hk_message_age(broker, message));
    hk_report_number(report, "priority", message->priority);
    hk_report_number(report, "level", message->level);
    hk_report_number(report, "failures", message->failures);
    hk_report_number(report, "crashes", message->crashes);
    hk_report_number(report, "returns", message->returns);
    hk_report_number(report, "bytes", message->bytes);
    if (message->state == HK_STATE_DEAD) {
        hk_report_number(report, "reason", message->reason);
    }
    if (message->state == HK_STATE_DELAYED) {
        hk_report_number(report, "due_in_ms", ms_until(broker, extra->due.at));
    }
    if (extra != NULL && extra->expiry != INT64_MAX && message->state != HK_STATE_DEAD) {
        hk_report_number(report, "expires_in_ms", ms_until(broker, extra->expiry));
    }
    if (hk_message_recorded(message)) {
        hk_report_number(report, "segment", message->piece->segment);
    }
    const hk_delivery_t *delivery = message->state == HK_STATE_OUT ? delivery_of(broker, message) : NULL;
    if (delivery != NULL) {
        add_holder(report, delivery);
    }
    hk_report_text(report, "}");
}

void hk_report_explanation(hk_session_t *session, const hk_frame_t *frame, const hk_frame_query_t *query)
{
    hk_broker_t *broker = session->broker;
    const hk_message_t *message;
    if (query->number == 0) {
        hk_queue_t *queue = hk_report_queue(session, frame, query);
        if (queue == NULL) {
            return;
        }
        message = oldest_of(queue);
        if (message == NULL && queue->delayed > 0) {
            message = earliest_of(queue, broker);
        }
    } else {
        message = hk_report_message(broker, query->number);
        if (message == NULL) {
            hk_session_refuse(session, frame->id, HK_CODE_NO_SUCH_MESSAGE, "there is no such message");
            return;
        }
        if (!hk_report_may(session, frame, message->queue)) {
            return;
        }
    }
    hk_report_t report;
    hk_report_begin(&report, session, frame);
    const char *because = "nothing waits in this queue";
    sentence_t sentence = {0};
    if (message != NULL) {
        because = why(broker, message, &sentence);
        add_message(&report, message);
    }
    hk_report_string(&report, "because", hk_bytes(because, strlen(because)));
    hk_report_end(&report);
}
