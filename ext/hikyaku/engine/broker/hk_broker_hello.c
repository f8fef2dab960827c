#include "hk_broker_producer_private.h"
#include "hk_broker_store_private.h"

/* -- Who may ------------------------------------------------------------------------------------------------------- */

static bool matches(const hk_right_t *right, uint8_t kind, hk_bytes_t name)
{
    hk_bytes_t pattern = right->name;
    if (kind == 1) {
        if (pattern.length == 0 || pattern.at[0] != '@') {
            /* "*" speaks of everything, "a*" of queues alone. */
            return right->beginning && pattern.length == 0;
        }
        pattern = hk_bytes(pattern.at + 1, pattern.length - 1);
    }
    return right->beginning ? hk_bytes_start_with(name, pattern) : hk_bytes_equal(name, pattern);
}

bool hk_session_may(const hk_session_t *session, uint8_t right, uint8_t kind, hk_bytes_t name)
{
    if (session->broker->options.open) {
        return true;
    }
    for (size_t i = 0; i < session->right_count; i++) {
        if ((session->rights[i].rights & right) != 0 && matches(&session->rights[i], kind, name)) {
            return true;
        }
    }
    return false;
}

static hk_status_t copy_rights(hk_session_t *session, const hk_permission_t *permissions, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += permissions[i].pattern.length;
    }
    hk_right_t *rights = hk_alloc_new(session->broker->alloc, count * sizeof(*rights) + bytes);
    if (rights == NULL) {
        return HK_NO_MEMORY;
    }
    char *text = (char *)(rights + count);
    for (size_t i = 0; i < count; i++) {
        hk_bytes_t pattern = permissions[i].pattern;
        if (pattern.length > 0) {
            memcpy(text, pattern.at, pattern.length);
        }
        bool beginning = pattern.length > 0 && text[pattern.length - 1] == '*';
        rights[i] = (hk_right_t){.rights = permissions[i].rights,
                                 .beginning = beginning,
                                 .name = hk_bytes(text, pattern.length - (beginning ? 1 : 0))};
        text += pattern.length;
    }
    session->rights = rights;
    session->right_count = count;
    return HK_OK;
}

/* -- HELLO --------------------------------------------------------------------------------------------------------- */

static hk_code_t judge(const hk_broker_t *broker, const hk_frame_hello_t *hello, const char **sentence)
{
    if (broker->failed) {
        *sentence = "the storage has failed";
        return HK_CODE_FAILED;
    }
    if (hello->lowest > 1 || hello->highest < 1) {
        *sentence = "this broker speaks version 1";
        return HK_CODE_VERSION;
    }
    if (broker->draining) {
        *sentence = "the broker is about to stop";
        return HK_CODE_DRAINING;
    }
    *sentence =
        hello->max_frame < 4096 ? "the largest frame has 4,096 bytes at least" : "this is no kind of authentication";
    if (hello->max_frame < 4096 || hello->authentication > 2) {
        return HK_CODE_INVALID;
    }
    *sentence = "an identity is UTF-8 without control characters, an agent UTF-8";
    bool named = hello->identity.length == 0 || hk_frame_name(1, hello->identity);
    return named && hk_bytes_utf8(hello->agent) ? HK_CODE_NONE : HK_CODE_INVALID;
}

static bool keep_texts(hk_session_t *session, const hk_frame_hello_t *hello)
{
    size_t identity = hello->identity.length, agent = hello->agent.length, credentials = hello->credentials.length;
    char *text = hk_alloc_new(session->broker->alloc, identity + agent + credentials + 1);
    if (text == NULL) {
        return false;
    }
    memcpy(text, hello->identity.at, identity);
    memcpy(text + identity, hello->agent.at, agent);
    memcpy(text + identity + agent, hello->credentials.at, credentials);
    session->hello_text = text;
    session->hello = *hello;
    session->hello.identity = hk_bytes(text, identity);
    session->hello.agent = hk_bytes(text + identity, agent);
    session->hello.credentials = hk_bytes(text + identity + agent, credentials);
    return true;
}

static int64_t heartbeat(const hk_broker_options_t *options, uint32_t proposed)
{
    uint32_t least = options->heartbeat_least, most = options->heartbeat_most;
    return proposed == 0 ? 0 : proposed < least ? least : proposed > most ? most : proposed;
}

static void welcome(hk_session_t *session)
{
    hk_broker_t *broker = session->broker;
    const hk_broker_options_t *options = &broker->options;
    size_t extra = HK_FRAME_WELCOME_BYTES - HK_FRAME_ACK_BYTES;
    char *at = hk_session_lay(session, HK_FRAME_WELCOME_BYTES);
    if (at == NULL) {
        return;
    }
    memset(at, 0, HK_FRAME_WELCOME_BYTES);
    hk_frame_put_ack(at, &(hk_frame_ack_t){.type = HK_FRAME_HELLO, .id = session->hello_id}, extra);
    hk_frame_put16(at + 32, 1);
    at[34] = broker->journal == NULL ? 1 : 7;
    at[35] = (char)options->level;
    hk_frame_put32(at + 40, options->max_frame);
    hk_frame_put32(at + 44, (uint32_t)(session->heartbeat / HK_MS));
    hk_frame_put32(at + 48, options->window_messages);
    hk_frame_put32(at + 52, options->window_bytes);
    hk_frame_put64(at + 56, session->number);
    hk_frame_put64(at + 64, session->producer == NULL ? 0 : session->producer->low);
}

/* Whoever has the identity with a lower epoch loses it. above: the epoch that was too high, where that was it. */
static hk_code_t take_identity(hk_session_t *session, const char **sentence, uint64_t *above)
{
    hk_broker_t *broker = session->broker;
    hk_producer_t *producer;
    hk_status_t status = hk_producer_get(broker, session->hello.identity, &producer);
    if (status != HK_OK) {
        *sentence = status == HK_TOO_MANY ? "as many identities are remembered as may be, and all of them are connected"
                                          : "there is no memory";
        return status == HK_TOO_MANY ? HK_CODE_LIMIT : HK_CODE_OVERLOADED;
    }
    if (producer->begun && session->hello.epoch <= producer->epoch) {
        *sentence = "somebody with this identity came with the same epoch, or a higher one";
        *above = producer->epoch;
        return HK_CODE_FENCED;
    }
    if (producer->session != NULL) {
        hk_session_t *older = producer->session;
        older->producer = NULL;
        hk_session_end(older, 0, HK_CODE_FENCED, "somebody with a higher epoch has this identity");
    }
    producer->begun = true;
    producer->epoch = session->hello.epoch;
    producer->session = session;
    session->producer = producer;
    hk_producer_touch(broker, producer);
    if (producer->recorded) {
        /* Without room it is written when the next segment begins. */
        (void)hk_store_producer(broker, producer, HK_PRODUCER_AGAIN);
    }
    return HK_CODE_NONE;
}

static void open_session(hk_session_t *session)
{
    hk_broker_t *broker = session->broker;
    const char *sentence;
    uint64_t above = 0;
    hk_code_t code = session->hello.identity.length == 0 ? HK_CODE_NONE : take_identity(session, &sentence, &above);
    if (code == HK_CODE_NONE && hk_store_boot(broker, false) != HK_OK) {
        code = HK_CODE_OVERLOADED;
        sentence = "there is no memory for this session";
    }
    if (code != HK_CODE_NONE) {
        hk_complaint_t complaint = {.id = session->hello_id,
                                    .code = code,
                                    .scope = HK_SCOPE_CONNECTION,
                                    .sentence = sentence,
                                    .delivery = above};
        hk_session_end_with(session, &complaint);
        return;
    }
    session->phase = HK_SESSION_OPEN;
    session->number = broker->next_session++;
    session->next_delivery = (session->number << HK_BROKER_SESSION_BITS) + 1;
    session->heartbeat = heartbeat(&broker->options, session->hello.heartbeat) * HK_MS;
    session->max_frame = session->hello.max_frame;
    session->heard = session->said = broker->now;
    hk_session_set_timer(session);
    welcome(session);
}

void hk_take_hello(hk_session_t *session, const hk_frame_t *frame)
{
    hk_broker_t *broker = session->broker;
    hk_frame_hello_t hello;
    if (!hk_frame_read_hello(frame, &hello)) {
        hk_session_end(session, frame->id, HK_CODE_MALFORMED, "this is no HELLO of this protocol");
        return;
    }
    const char *sentence;
    hk_code_t code = judge(broker, &hello, &sentence);
    if (code == HK_CODE_NONE && !keep_texts(session, &hello)) {
        code = HK_CODE_OVERLOADED;
        sentence = "there is no memory for this session";
    }
    if (code != HK_CODE_NONE) {
        hk_session_end(session, frame->id, code, sentence);
        return;
    }
    session->hello_id = frame->id;
    if (broker->options.open) {
        open_session(session);
    } else {
        session->phase = HK_SESSION_ASKING;
        hk_list_append(&broker->asking, &session->asking);
    }
}

/* -- Asking -------------------------------------------------------------------------------------------------------- */

bool hk_broker_asking(hk_broker_t *broker, hk_hello_t *hello)
{
    hk_list_t *first = hk_list_shift(&broker->asking);
    if (first == NULL) {
        return false;
    }
    const hk_session_t *session = HK_OWNER(first, hk_session_t, asking);
    hk_list_append(&broker->asked, first);
    *hello = (hk_hello_t){.serial = session->serial,
                          .identity = session->hello.identity,
                          .credentials = session->hello.credentials,
                          .agent = session->hello.agent,
                          .address = session->address,
                          .kind = session->hello.authentication};
    return true;
}

static hk_session_t *asked(hk_broker_t *broker, uint64_t serial)
{
    for (hk_list_t *link = broker->asked.next; link != &broker->asked; link = link->next) {
        hk_session_t *session = HK_OWNER(link, hk_session_t, asking);
        if (session->serial == serial) {
            return session;
        }
    }
    return NULL;
}

hk_status_t hk_broker_permit(hk_broker_t *broker, uint64_t serial, const hk_permission_t *permissions, size_t count,
                             uint64_t until, int64_t now, uint64_t wall)
{
    hk_broker_at(broker, now, wall);
    hk_session_t *session = asked(broker, serial);
    if (session == NULL) {
        return HK_NOT_FOUND;
    }
    if (copy_rights(session, permissions, count) != HK_OK) {
        return HK_NO_MEMORY;
    }
    hk_list_remove(&session->asking);
    memset(session->hello_text + session->hello.identity.length + session->hello.agent.length, 0,
           session->hello.credentials.length);
    session->until = until;
    if (broker->draining) {
        hk_session_end(session, session->hello_id, HK_CODE_DRAINING, "the broker is about to stop");
        return HK_OK;
    }
    if (until <= wall) {
        hk_session_end(session, session->hello_id, HK_CODE_UNAUTHORIZED, "the token has expired");
        return HK_OK;
    }
    open_session(session);
    return HK_OK;
}

hk_status_t hk_broker_refuse(hk_broker_t *broker, uint64_t serial, hk_bytes_t sentence)
{
    hk_session_t *session = asked(broker, serial);
    if (session == NULL) {
        return HK_NOT_FOUND;
    }
    char text[256];
    size_t length = sentence.length < sizeof(text) - 1 ? sentence.length : sizeof(text) - 1;
    memcpy(text, sentence.at, length);
    text[length] = 0;
    hk_session_end(session, session->hello_id, HK_CODE_UNAUTHORIZED, text);
    return HK_OK;
}
