#include "hk_frame.h"

bool hk_code_later(hk_code_t code)
{
    switch (code) {
#define HK_CODE_LATER(name, later)                                                                                     \
    case HK_CODE_##name:                                                                                               \
        return later;
        HK_CODE_LIST(HK_CODE_LATER)
#undef HK_CODE_LATER
    default:
        return false;
    }
}

uint32_t hk_code_retry_after(hk_code_t code)
{
    switch (code) {
    case HK_CODE_QUEUE_FULL:
        return 1000;
    case HK_CODE_OVERLOADED:
        return 250;
    case HK_CODE_DISK_FULL:
    case HK_CODE_LIMIT:
        return 5000;
    default:
        return 0;
    }
}

static const char MAGIC[8] = {0x48, 0x4B, 0x42, 0x0D, 0x0A, 0x1A, 0x0A, 0x00};

static bool bare(const hk_frame_t *frame)
{
    return frame->flags == 0 && frame->subscription == 0;
}

bool hk_frame_read_hello(const hk_frame_t *frame, hk_frame_hello_t *hello)
{
    const char *at = frame->bytes.at;
    if (!bare(frame) || frame->bytes.length < HK_FRAME_HELLO_BYTES || memcmp(at + 16, MAGIC, sizeof(MAGIC)) != 0 ||
        at[49] != 0) {
        return false;
    }
    size_t identity = hk_frame_u16(at + 50), credentials = hk_frame_u16(at + 52), agent = hk_frame_u16(at + 54);
    if (identity > HK_FRAME_NAME_MOST || credentials > HK_FRAME_CREDENTIALS_MOST || agent > HK_FRAME_NAME_MOST ||
        frame->bytes.length != HK_FRAME_HELLO_BYTES + identity + credentials + agent) {
        return false;
    }
    const char *text = at + HK_FRAME_HELLO_BYTES;
    *hello = (hk_frame_hello_t){.lowest = hk_frame_u16(at + 24),
                                .highest = hk_frame_u16(at + 26),
                                .features = hk_frame_u32(at + 28),
                                .max_frame = hk_frame_u32(at + 32),
                                .heartbeat = hk_frame_u32(at + 36),
                                .epoch = hk_frame_u64(at + 40),
                                .authentication = (uint8_t)at[48],
                                .identity = hk_bytes(text, identity),
                                .credentials = hk_bytes(text + identity, credentials),
                                .agent = hk_bytes(text + identity + credentials, agent)};
    return true;
}

bool hk_frame_read_send(const hk_frame_t *frame, hk_frame_send_t *send)
{
    const char *at = frame->bytes.at;
    if (!bare(frame) || frame->bytes.length < HK_FRAME_SEND_BYTES || at[39] != 0) {
        return false;
    }
    size_t name = hk_frame_u16(at + 34), properties = hk_frame_u16(at + 36);
    size_t left = frame->bytes.length - HK_FRAME_SEND_BYTES;
    if (name + properties > left) {
        return false;
    }
    *send = (hk_frame_send_t){.sequence = hk_frame_u64(at + 16),
                              .delay = hk_frame_u32(at + 24),
                              .time_to_live = hk_frame_u32(at + 28),
                              .priority = (uint8_t)at[32],
                              .level = (uint8_t)at[33],
                              .kind = (uint8_t)at[38],
                              .properties = (uint16_t)properties,
                              .count = 1,
                              .destination = hk_bytes(at + HK_FRAME_SEND_BYTES, name),
                              .content = hk_bytes(at + HK_FRAME_SEND_BYTES + name, left - name)};
    return true;
}

enum { ITEM_BYTES = 6 };

void hk_frame_next_item(hk_bytes_t *rest, uint16_t *properties, hk_bytes_t *content)
{
    *content = hk_bytes(rest->at + ITEM_BYTES, hk_frame_u32(rest->at));
    *properties = hk_frame_u16(rest->at + 4);
    *rest = hk_bytes(rest->at + ITEM_BYTES + content->length, rest->length - ITEM_BYTES - content->length);
}

bool hk_frame_read_batch(const hk_frame_t *frame, hk_frame_send_t *send)
{
    if (!hk_frame_read_send(frame, send) || send->properties != 0 || send->content.length < 4) {
        return false;
    }
    send->count = hk_frame_u32(send->content.at);
    send->content = hk_bytes(send->content.at + 4, send->content.length - 4);
    hk_bytes_t rest = send->content;
    for (uint32_t i = 0; i < send->count; i++) {
        if (rest.length < ITEM_BYTES || hk_frame_u32(rest.at) > rest.length - ITEM_BYTES ||
            hk_frame_u16(rest.at + 4) > hk_frame_u32(rest.at)) {
            return false;
        }
        uint16_t properties;
        hk_bytes_t content;
        hk_frame_next_item(&rest, &properties, &content);
    }
    return rest.length == 0;
}

bool hk_frame_read_subscribe(const hk_frame_t *frame, hk_frame_subscribe_t *subscribe)
{
    const char *at = frame->bytes.at;
    if (frame->flags != 0 || frame->bytes.length < 32 || at[29] != 0 ||
        frame->bytes.length != 32U + hk_frame_u16(at + 30)) {
        return false;
    }
    *subscribe = (hk_frame_subscribe_t){.credit = hk_frame_u32(at + 16),
                                        .credit_bytes = hk_frame_u32(at + 20),
                                        .lease = hk_frame_u32(at + 24),
                                        .kind = (uint8_t)at[28],
                                        .name = hk_bytes(at + 32, frame->bytes.length - 32)};
    return true;
}

bool hk_frame_read_nack(const hk_frame_t *frame, hk_frame_nack_t *nack)
{
    const char *at = frame->bytes.at;
    if (!bare(frame) || frame->bytes.length < 32 || at[29] != 0 || frame->bytes.length != 32U + hk_frame_u16(at + 30)) {
        return false;
    }
    *nack = (hk_frame_nack_t){.delivery = hk_frame_u64(at + 16),
                              .delay = hk_frame_u32(at + 24),
                              .kind = (uint8_t)at[28],
                              .words = hk_bytes(at + 32, frame->bytes.length - 32)};
    return true;
}

bool hk_frame_read_query(const hk_frame_t *frame, hk_frame_query_t *query)
{
    const char *at = frame->bytes.at;
    if (!bare(frame) || frame->bytes.length < 32 || frame->bytes.length != 32U + hk_frame_u16(at + 18)) {
        return false;
    }
    *query = (hk_frame_query_t){.what = (uint8_t)at[16],
                                .kind = (uint8_t)at[17],
                                .limit = hk_frame_u32(at + 20),
                                .number = hk_frame_u64(at + 24),
                                .name = hk_bytes(at + 32, frame->bytes.length - 32)};
    return true;
}

bool hk_frame_read_plain(const hk_frame_t *frame, size_t size)
{
    bool numbered = frame->type == HK_FRAME_UNSUBSCRIBE || frame->type == HK_FRAME_CREDIT;
    uint8_t flags = frame->type == HK_FRAME_FREE ? 3 : frame->type == HK_FRAME_DRAIN ? HK_DRAIN_FORGET : 0;
    return frame->bytes.length == size && (frame->flags & ~flags) == 0 && (numbered || frame->subscription == 0) &&
           (frame->type != HK_FRAME_TOUCH || hk_frame_u32(frame->bytes.at + 36) == 0);
}

bool hk_frame_properties(hk_bytes_t bytes)
{
    size_t at = 0;
    while (at < bytes.length) {
        size_t name = (unsigned char)bytes.at[at];
        if (name == 0 || bytes.length - at < 3 + name) {
            return false;
        }
        at += 1 + name;
        size_t value = hk_frame_u16(bytes.at + at);
        if (bytes.length - at - 2 < value) {
            return false;
        }
        at += 2 + value;
    }
    return true;
}

bool hk_frame_name(uint8_t kind, hk_bytes_t name)
{
    if (name.length == 0 || name.length > HK_FRAME_NAME_MOST || (kind == 0 && name.at[0] == '@')) {
        return false;
    }
    for (size_t i = 0; i < name.length; i++) {
        unsigned char byte = (unsigned char)name.at[i];
        if (byte < 0x20 || byte == 0x7F) {
            return false;
        }
    }
    return hk_bytes_utf8(name);
}

void hk_frame_put_ack(char *at, const hk_frame_ack_t *ack, size_t extra)
{
    hk_frame_put_header(at, HK_FRAME_ACK_BYTES + extra, HK_FRAME_ACK, ack->flags, 0, ack->id);
    at[16] = (char)ack->type;
    at[17] = (char)ack->level;
    hk_frame_put16(at + 18, ack->refusals);
    hk_frame_put32(at + 20, ack->count);
    hk_frame_put64(at + 24, ack->value);
}

void hk_frame_put_error(char *at, uint64_t id, hk_code_t code, hk_scope_t scope, uint32_t retry_after,
                        uint64_t delivery, uint16_t subscription, size_t sentence)
{
    hk_frame_put_header(at, HK_FRAME_ERROR_BYTES + sentence, HK_FRAME_ERROR, 0, subscription, id);
    hk_frame_put16(at + 16, (uint16_t)code);
    at[18] = (char)scope;
    at[19] = hk_code_later(code) ? 1 : 0;
    hk_frame_put32(at + 20, retry_after);
    hk_frame_put64(at + 24, delivery);
}
