#include "hk_broker_private.h"

static void take_ping(hk_session_t *session, const hk_frame_t *frame)
{
    if (!hk_frame_read_plain(frame, HK_FRAME_HEADER_BYTES)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "PING has 16 bytes");
        return;
    }
    if (frame->id != 0) {
        hk_session_flush(session);
        char *at = hk_session_lay(session, HK_FRAME_HEADER_BYTES);
        if (at != NULL) {
            hk_frame_put_header(at, HK_FRAME_HEADER_BYTES, HK_FRAME_ACK, 0, 0, frame->id);
        }
    }
}

static void take_second_hello(hk_session_t *session, const hk_frame_t *frame)
{
    hk_frame_hello_t hello;
    if (hk_frame_read_hello(frame, &hello)) {
        hk_session_end(session, frame->id, HK_CODE_UNEXPECTED, "HELLO is said once");
    } else {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no HELLO of this protocol");
    }
}

static void take_rare(hk_session_t *session, const hk_frame_t *frame)
{
    switch (frame->type) {
    case HK_FRAME_SUBSCRIBE:
        hk_take_subscribe(session, frame);
        break;
    case HK_FRAME_UNSUBSCRIBE:
        hk_take_unsubscribe(session, frame);
        break;
    case HK_FRAME_CREDIT:
        hk_take_credit(session, frame);
        break;
    case HK_FRAME_PING:
        take_ping(session, frame);
        break;
    case HK_FRAME_DRAIN:
        hk_take_drain(session, frame);
        break;
    case HK_FRAME_QUERY:
        hk_take_query(session, frame);
        break;
    default:
        take_second_hello(session, frame);
    }
}

static void take(hk_session_t *session, const hk_frame_t *frame)
{
    if (session->phase != HK_SESSION_OPEN) {
        if (frame->type == HK_FRAME_HELLO && session->phase == HK_SESSION_NEW) {
            hk_take_hello(session, frame);
        } else {
            hk_session_end(session, frame->id, HK_CODE_UNEXPECTED,
                           "HELLO comes first, and its ACK before anything else");
        }
        return;
    }
    switch (frame->type) {
    case HK_FRAME_SEND:
        hk_take_send(session, frame);
        break;
    case HK_FRAME_FREE:
        hk_take_free(session, frame);
        break;
    case HK_FRAME_ACK:
        hk_take_receipt(session, frame);
        break;
    case HK_FRAME_SEND_BATCH:
        hk_take_send_batch(session, frame);
        break;
    case HK_FRAME_NACK:
        hk_take_nack(session, frame);
        break;
    case HK_FRAME_TOUCH:
        hk_take_touch(session, frame);
        break;
    default:
        take_rare(session, frame);
    }
}

/* Whether the frame that begins here can be one; its length. The 16 bytes of the header are there. */
static bool check_header(hk_session_t *session, const char *at, uint32_t *length)
{
    *length = hk_frame_u32(at);
    uint8_t type = (uint8_t)at[4];
    uint64_t id = hk_frame_u64(at + 8);
    if (*length < HK_FRAME_HEADER_BYTES) {
        hk_session_end(session, 0, HK_CODE_MALFORMED, "a frame has 16 bytes at least");
    } else if (type == HK_FRAME_ERROR || type == HK_FRAME_PUSH || type == HK_FRAME_REPORT) {
        hk_session_end(session, id, HK_CODE_UNEXPECTED, "this frame does not come from a client");
    } else if ((type < HK_FRAME_HELLO || type > HK_FRAME_QUERY) && type != HK_FRAME_ACK) {
        hk_session_end(session, id, HK_CODE_MALFORMED, "there is no frame of this type");
    } else if (*length > session->broker->options.max_frame) {
        hk_session_end(session, id, HK_CODE_TOO_BIG, "the frame is larger than was agreed on");
    }
    return session->phase != HK_SESSION_ENDED;
}

static bool keep(hk_session_t *session, hk_bytes_t *bytes, size_t most)
{
    size_t some = bytes->length < most ? bytes->length : most;
    if (hk_buf_append(&session->in, hk_bytes(bytes->at, some)) != HK_OK) {
        session->broken = true;
        session->phase = HK_SESSION_ENDED;
        hk_session_clear_output(session);
        return false;
    }
    *bytes = hk_bytes(bytes->at + some, bytes->length - some);
    return true;
}

enum { KEPT_MOST = 16 * 1024 };

/* Goes on with the frame of which a part was kept. */
static void complete(hk_session_t *session, hk_bytes_t *bytes)
{
    uint32_t length;
    if (session->in.length < HK_FRAME_HEADER_BYTES &&
        !keep(session, bytes, HK_FRAME_HEADER_BYTES - session->in.length)) {
        return;
    }
    if (session->in.length < HK_FRAME_HEADER_BYTES || !check_header(session, hk_buf_bytes(&session->in).at, &length) ||
        !keep(session, bytes, length - session->in.length) || session->in.length < length) {
        return;
    }
    hk_frame_t frame = hk_frame(hk_buf_bytes(&session->in));
    take(session, &frame);
    hk_buf_clear(&session->in);
    if (session->in.capacity > KEPT_MOST) {
        hk_buf_release(&session->in);
    }
}

hk_status_t hk_broker_receive(hk_broker_t *broker, hk_session_t *session, hk_bytes_t bytes, int64_t now, uint64_t wall)
{
    hk_broker_at(broker, now, wall);
    session->heard = now;
    if (session->in.length > 0 && session->phase != HK_SESSION_ENDED) {
        complete(session, &bytes);
    }
    while (session->phase != HK_SESSION_ENDED && bytes.length >= HK_FRAME_HEADER_BYTES) {
        uint32_t length;
        if (!check_header(session, bytes.at, &length) || length > bytes.length) {
            break;
        }
        hk_frame_t frame = hk_frame(hk_bytes(bytes.at, length));
        take(session, &frame);
        bytes = hk_bytes(bytes.at + length, bytes.length - length);
    }
    if (session->phase != HK_SESSION_ENDED && bytes.length > 0) {
        keep(session, &bytes, bytes.length);
    }
    return session->broken ? HK_NO_MEMORY : session->phase == HK_SESSION_ENDED ? HK_CLOSED : HK_OK;
}
