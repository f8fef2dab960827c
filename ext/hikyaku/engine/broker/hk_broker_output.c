#include "hk_broker_private.h"

#include <stdio.h>

/* -- Laying out ---------------------------------------------------------------------------------------------------- */

void hk_session_wake(hk_session_t *session)
{
    if (!session->blocked && !session->taken && !hk_list_holds(&session->ready)) {
        hk_list_append(&session->broker->ready, &session->ready);
    }
}

static hk_part_t *part_at(const hk_session_t *session, uint32_t place)
{
    return &session->parts[(session->part_first + place) & (session->part_capacity - 1)];
}

static bool grow_parts(hk_session_t *session)
{
    uint32_t capacity = session->part_capacity > 0 ? session->part_capacity * 2 : 8;
    hk_part_t *parts = hk_alloc_new(session->broker->alloc, capacity * sizeof(*parts));
    if (parts == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < session->part_count; i++) {
        parts[i] = *part_at(session, i);
    }
    hk_alloc_free(session->broker->alloc, session->parts);
    session->parts = parts;
    session->part_first = 0;
    session->part_capacity = capacity;
    return true;
}

static bool reserve_part(hk_session_t *session)
{
    return session->part_count < session->part_capacity || grow_parts(session);
}

static void add_part(hk_session_t *session, hk_part_t part)
{
    session->part_count++;
    *part_at(session, session->part_count - 1) = part;
}

char *hk_session_try(hk_session_t *session, size_t size)
{
    bool joins = session->part_count > 0 && part_at(session, session->part_count - 1)->piece == NULL;
    if (session->broken || hk_buf_reserve(&session->out, size) != HK_OK || (!joins && !reserve_part(session))) {
        return NULL;
    }
    if (joins) {
        part_at(session, session->part_count - 1)->length += (uint32_t)size;
    } else {
        add_part(session, (hk_part_t){.length = (uint32_t)size});
    }
    char *at = hk_buf_end(&session->out);
    hk_buf_grew(&session->out, size);
    session->laid += size;
    hk_session_wake(session);
    return at;
}

/* What cannot be said cannot be left out either: whoever sent the request would wait for ever. */
static void break_off(hk_session_t *session)
{
    hk_session_clear_output(session);
    session->broken = true;
    session->phase = HK_SESSION_ENDED;
    hk_session_wake(session);
}

char *hk_session_lay(hk_session_t *session, size_t size)
{
    char *at = hk_session_try(session, size);
    if (at == NULL && !session->broken) {
        break_off(session);
    }
    return at;
}

char *hk_session_refer(hk_session_t *session, size_t size, hk_piece_t *piece, hk_bytes_t bytes)
{
    /* Two parts at most: the header's, and that of the bytes. */
    while (session->part_count + 2 > session->part_capacity) {
        if (session->broken || !grow_parts(session)) {
            return NULL;
        }
    }
    char *at = hk_session_try(session, size);
    if (at != NULL) {
        add_part(session, (hk_part_t){.piece = hk_piece_retain(piece),
                                      .offset = (uint32_t)(bytes.at - piece->bytes),
                                      .length = (uint32_t)bytes.length});
        session->laid += bytes.length;
    }
    return at;
}

void hk_session_clear_output(hk_session_t *session)
{
    for (uint32_t i = 0; i < session->part_count; i++) {
        hk_piece_release(part_at(session, i)->piece);
    }
    session->part_count = 0;
    session->part_written = session->laid = session->gathered = 0;
    hk_buf_release(&session->out);
    session->pending = (hk_ack_t){0};
}

/* -- ERROR --------------------------------------------------------------------------------------------------------- */

void hk_session_complain(hk_session_t *session, const hk_complaint_t *complaint)
{
    hk_session_flush(session);
    size_t length = strlen(complaint->sentence);
    char *at = hk_session_lay(session, HK_FRAME_ERROR_BYTES + length);
    if (at == NULL) {
        return;
    }
    hk_broker_t *broker = session->broker;
    uint32_t retry = complaint->code == HK_CODE_DRAINING ? broker->retry_after : hk_code_retry_after(complaint->code);
    hk_frame_put_error(at, complaint->id, complaint->code, complaint->scope, retry, complaint->delivery,
                       complaint->subscription, length);
    memcpy(at + HK_FRAME_ERROR_BYTES, complaint->sentence, length);
    broker->stats.refused[complaint->code]++;
}

void hk_session_refuse(hk_session_t *session, uint64_t id, hk_code_t code, const char *sentence)
{
    hk_session_complain(session, &(hk_complaint_t){.id = id, .code = code, .sentence = sentence});
}

void hk_session_end_with(hk_session_t *session, const hk_complaint_t *complaint)
{
    if (session->phase == HK_SESSION_ENDED) {
        return;
    }
    hk_session_complain(session, complaint);
    hk_session_finish(session);
    hk_session_wake(session);
}

void hk_session_end(hk_session_t *session, uint64_t id, hk_code_t code, const char *sentence)
{
    hk_complaint_t complaint = {.id = id, .code = code, .scope = HK_SCOPE_CONNECTION, .sentence = sentence};
    hk_session_end_with(session, &complaint);
}

/* -- Sending ------------------------------------------------------------------------------------------------------- */

hk_session_t *hk_broker_next_ready(hk_broker_t *broker)
{
    hk_list_t *link = hk_list_shift(&broker->ready);
    if (link == NULL) {
        return NULL;
    }
    hk_session_t *session = HK_OWNER(link, hk_session_t, ready);
    session->taken = true;
    return session;
}

/* Its bytes were given back since it was laid out: they are read again. */
static bool restore(hk_session_t *session, hk_part_t *part)
{
    hk_broker_t *broker = session->broker;
    hk_piece_t *piece = hk_piece_new(broker->arena, part->length);
    if (piece == NULL || hk_journal_read(broker->journal, part->piece->segment, part->piece->offset + part->offset,
                                         piece->bytes, part->length) != HK_OK) {
        hk_piece_release(piece);
        return false;
    }
    hk_piece_release(part->piece);
    part->piece = piece;
    part->offset = 0;
    return true;
}

int hk_session_gather(hk_session_t *session, struct iovec *parts, int most)
{
    hk_session_flush(session);
    size_t copied = 0, written = session->part_written;
    int count = 0;
    session->gathered = 0;
    for (uint32_t i = 0; i < session->part_count && count < most; i++) {
        hk_part_t *part = part_at(session, i);
        if (part->piece != NULL && part->piece->bytes == NULL && !restore(session, part)) {
            if (count == 0) {
                break_off(session);
            }
            break;
        }
        char *at = part->piece == NULL ? session->out.memory + session->out.start + copied
                                       : part->piece->bytes + part->offset + written;
        size_t length = part->length - written;
        copied += part->piece == NULL ? length : 0;
        parts[count++] = (struct iovec){.iov_base = at, .iov_len = length};
        session->gathered += length;
        written = 0;
    }
    return count;
}

static void consume(hk_session_t *session, size_t bytes)
{
    session->laid -= bytes;
    while (bytes > 0) {
        hk_part_t *part = part_at(session, 0);
        size_t some = part->length - session->part_written;
        some = some < bytes ? some : bytes;
        if (part->piece == NULL) {
            hk_buf_consume(&session->out, some);
            part->length -= (uint32_t)some;
        } else {
            session->part_written += some;
        }
        bytes -= some;
        if (session->part_written == part->length) {
            hk_piece_release(part->piece);
            session->part_written = 0;
            session->part_first = (session->part_first + 1) & (session->part_capacity - 1);
            session->part_count--;
        }
    }
}

void hk_session_wrote(hk_session_t *session, size_t bytes)
{
    session->taken = false;
    bytes = bytes < session->gathered ? bytes : session->gathered;
    session->blocked = bytes < session->gathered;
    session->gathered = 0;
    consume(session, bytes);
    if (bytes > 0) {
        session->said = session->broker->now;
    }
    if (session->laid == 0 && session->out.capacity > HK_BROKER_AHEAD_BYTES / 4) {
        hk_buf_release(&session->out);
    }
    if (session->held && session->laid < HK_BROKER_AHEAD_BYTES / 2) {
        session->held = false;
        hk_session_review(session);
    }
    if (session->laid > 0) {
        hk_session_wake(session);
    }
}

void hk_session_writable(hk_session_t *session)
{
    if (!session->blocked) {
        return;
    }
    session->blocked = false;
    if (session->laid > 0 || session->pending.requests > 0 || session->phase == HK_SESSION_ENDED) {
        hk_session_wake(session);
    }
}

bool hk_session_over(const hk_session_t *session)
{
    return session->phase == HK_SESSION_ENDED && session->laid == 0 && session->pending.requests == 0;
}

/* Deliveries alone do not come so far, for none is laid out beyond HK_BROKER_AHEAD_BYTES: a receiver is always listened
 * to. */
bool hk_session_behind(const hk_session_t *session)
{
    return session->laid >= HK_BROKER_OUTPUT_MOST + (size_t)session->broker->options.max_frame;
}

bool hk_session_is_strange(const hk_session_t *session)
{
    return session->phase == HK_SESSION_NEW;
}

bool hk_session_full(const hk_session_t *session)
{
    const hk_broker_options_t *options = &session->broker->options;
    return session->unanswered >= options->window_messages || session->unanswered_bytes >= options->window_bytes ||
           hk_session_behind(session);
}

void *hk_session_context(const hk_session_t *session)
{
    return session->context;
}
