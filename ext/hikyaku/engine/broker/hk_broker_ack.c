#include "hk_broker_private.h"

/* -- Laying out ---------------------------------------------------------------------------------------------------- */

static void lay_ack(hk_session_t *session, const hk_ack_t *ack)
{
    bool range = ack->type == HK_FRAME_SEND && ack->last != ack->id;
    size_t extra = (range ? 8 : 0) + 12U * (size_t)ack->refusals;
    char *at = hk_session_lay(session, HK_FRAME_ACK_BYTES + extra);
    if (at == NULL) {
        return;
    }
    hk_frame_ack_t frame = {.type = ack->type,
                            .level = ack->level,
                            .flags = (uint8_t)(ack->flags | (range ? HK_ACK_RANGE : 0)),
                            .refusals = ack->refusals,
                            .count = ack->type == HK_FRAME_SEND ? 0 : ack->count,
                            .id = ack->id,
                            .value = ack->value};
    hk_frame_put_ack(at, &frame, extra);
    if (range) {
        hk_frame_put64(at + HK_FRAME_ACK_BYTES, ack->last);
    } else if (ack->refusals > 0) {
        memcpy(at + HK_FRAME_ACK_BYTES, ack->refused, extra);
    }
}

void hk_session_flush(hk_session_t *session)
{
    if (session->pending.requests > 0) {
        hk_ack_t pending = session->pending;
        session->pending.requests = 0;
        lay_ack(session, &pending);
    }
}

static bool follows(const hk_ack_t *ack, uint64_t id, uint64_t value)
{
    return ack->type == HK_FRAME_SEND && ack->flags == 0 && id == ack->last + 1 &&
           value == ack->value + (ack->last - ack->id) + 1;
}

/* It has reached its level. */
void hk_session_say(hk_session_t *session, const hk_ack_t *ack)
{
    hk_ack_t *pending = &session->pending;
    if (pending->requests > 0 && ack->type == HK_FRAME_SEND && ack->flags == 0 && pending->level == ack->level &&
        follows(pending, ack->id, ack->value)) {
        pending->last = ack->last;
        return;
    }
    hk_session_flush(session);
    if (ack->type == HK_FRAME_SEND && !session->broken) {
        *pending = *ack;
        pending->requests = 1;
        hk_session_wake(session);
    } else {
        lay_ack(session, ack);
    }
}

void hk_session_ack_now(hk_session_t *session, const hk_frame_ack_t *ack)
{
    hk_session_say(session, &(hk_ack_t){.type = ack->type,
                                        .level = ack->level,
                                        .flags = ack->flags,
                                        .count = ack->count,
                                        .id = ack->id,
                                        .last = ack->id,
                                        .value = ack->value});
}

/* -- Waiting ------------------------------------------------------------------------------------------------------- */

hk_ack_t *hk_session_ack_later(hk_session_t *session, uint8_t type, uint8_t level, uint64_t id)
{
    hk_broker_t *broker = session->broker;
    hk_ack_t *ack = hk_slab_new(&broker->acks);
    if (ack == NULL) {
        return NULL;
    }
    *ack = (hk_ack_t){
        .session = session, .position = UINT64_MAX, .id = id, .last = id, .type = type, .level = level, .requests = 1};
    hk_list_append(&session->acks, &ack->link);
    hk_acks_t *acks = &broker->waiting[level];
    if (acks->last == NULL) {
        acks->first = ack;
    } else {
        acks->last->next = ack;
    }
    acks->last = ack;
    if (level > HK_LEVEL_MEMORY && broker->unstamped[level] == NULL) {
        broker->unstamped[level] = ack;
    }
    session->unanswered++;
    return ack;
}

hk_ack_t *hk_session_ack_send(hk_session_t *session, uint8_t level, uint64_t id, uint64_t value, size_t bytes)
{
    hk_ack_t *ack = session->open[level];
    if (ack != NULL && follows(ack, id, value)) {
        ack->last = id;
        ack->requests++;
        session->unanswered++;
    } else {
        ack = hk_session_ack_later(session, HK_FRAME_SEND, level, id);
        if (ack == NULL) {
            return NULL;
        }
        ack->value = value;
        session->open[level] = ack;
    }
    ack->bytes += bytes;
    session->unanswered_bytes += bytes;
    return ack;
}

void hk_session_ack_weigh(hk_ack_t *ack, uint32_t messages, size_t bytes)
{
    ack->session->unanswered += messages - ack->requests;
    ack->session->unanswered_bytes += bytes - ack->bytes;
    ack->requests = messages;
    ack->bytes = bytes;
}

/* The entry stays in the row, and says nothing when its turn comes. */
void hk_session_ack_never(hk_session_t *session, hk_ack_t *ack)
{
    session->unanswered--;
    if (--ack->requests > 0) {
        ack->last--;
        return;
    }
    session->unanswered_bytes -= ack->bytes;
    if (session->open[ack->level] == ack) {
        session->open[ack->level] = NULL;
    }
    hk_list_remove(&ack->link);
    ack->session = NULL;
}

static void end_ack(hk_broker_t *broker, hk_ack_t *ack)
{
    hk_session_t *session = ack->session;
    if (session != NULL) {
        hk_list_remove(&ack->link);
        session->unanswered -= ack->requests;
        session->unanswered_bytes -= ack->bytes;
        if (session->open[ack->level] == ack) {
            session->open[ack->level] = NULL;
        }
        if (session->phase == HK_SESSION_OPEN && ack->id != 0) {
            hk_session_say(session, ack);
        }
    }
    hk_alloc_free(broker->alloc, ack->refused);
    hk_slab_free(&broker->acks, ack);
}

void hk_broker_acknowledge(hk_broker_t *broker, uint8_t level, uint64_t position)
{
    hk_acks_t *acks = &broker->waiting[level];
    while (acks->first != NULL && acks->first->position <= position) {
        hk_ack_t *ack = acks->first;
        acks->first = ack->next;
        if (acks->first == NULL) {
            acks->last = NULL;
        }
        end_ack(broker, ack);
    }
}

/* Those of this turn stand at the end of their rows; positions only rise. */
void hk_broker_stamp(hk_broker_t *broker, uint64_t position)
{
    for (int level = HK_LEVEL_WRITTEN; level <= HK_LEVEL_SYNCED; level++) {
        hk_ack_t **unstamped = &broker->unstamped[level];
        for (hk_ack_t *ack = *unstamped; ack != NULL; ack = ack->next) {
            ack->position = position;
            if (ack->session != NULL && ack->session->open[level] == ack) {
                ack->session->open[level] = NULL;
            }
        }
        *unstamped = NULL;
    }
}

void hk_broker_forget_acks(hk_session_t *session)
{
    for (hk_list_t *link; (link = hk_list_shift(&session->acks)) != NULL;) {
        HK_OWNER(link, hk_ack_t, link)->session = NULL;
    }
    memset(session->open, 0, sizeof(session->open));
    session->unanswered = 0;
    session->unanswered_bytes = 0;
}
