/* hk_frame.h: the frames of docs/protocol.md, taken apart where they stand, and laid down.
 *
 *     0        4     5      6             8        16
 *     length   type  flags  subscription  id       fields … bytes
 *
 * Reading checks a frame's shape: lengths, flags, what has to be 0. Whether a value is allowed is for whoever carries
 * out the request, and can refuse it alone. What is read points into the frame. No allocation; O(1) but for batches.
 */
#ifndef HK_FRAME_H
#define HK_FRAME_H

#include "hk_bytes.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    HK_FRAME_HEADER_BYTES = 16,
    HK_FRAME_SEND_BYTES = 40,
    HK_FRAME_PUSH_BYTES = 48,
    HK_FRAME_ACK_BYTES = 32,
    HK_FRAME_ERROR_BYTES = 32,
    HK_FRAME_HELLO_BYTES = 56,
    HK_FRAME_WELCOME_BYTES = 72, /* the ACK of a HELLO */
    HK_FRAME_WORDS_MOST = 1024,
    HK_FRAME_NAME_MOST = 255,
    HK_FRAME_CREDENTIALS_MOST = 16384,
    HK_FRAME_SEQUENCES = 4096 /* numbers above `low` that are remembered */
};

enum {
    HK_FRAME_HELLO = 1,
    HK_FRAME_SEND,
    HK_FRAME_SEND_BATCH,
    HK_FRAME_SUBSCRIBE,
    HK_FRAME_UNSUBSCRIBE,
    HK_FRAME_CREDIT,
    HK_FRAME_FREE,
    HK_FRAME_NACK,
    HK_FRAME_TOUCH,
    HK_FRAME_PING,
    HK_FRAME_DRAIN,
    HK_FRAME_QUERY,
    HK_FRAME_ACK = 32,
    HK_FRAME_ERROR,
    HK_FRAME_PUSH,
    HK_FRAME_REPORT
};

/* Flags: of an ACK, of a PUSH. */
enum { HK_ACK_RANGE = 1, HK_ACK_DUPLICATE = 2, HK_PUSH_AGAIN = 1, HK_PUSH_SUSPECT = 2 };

#define HK_CODE_LIST(X)                                                                                                \
    X(MALFORMED, false)                                                                                                \
    X(UNEXPECTED, false)                                                                                               \
    X(VERSION, false)                                                                                                  \
    X(UNAUTHORIZED, false)                                                                                             \
    X(FORBIDDEN, false)                                                                                                \
    X(FENCED, false)                                                                                                   \
    X(TOO_BIG, false)                                                                                                  \
    X(INVALID, false)                                                                                                  \
    X(NO_SUCH_QUEUE, false)                                                                                            \
    X(NO_SUCH_MESSAGE, false)                                                                                          \
    X(NO_SUCH_SUBSCRIPTION, false)                                                                                     \
    X(STALE, false)                                                                                                    \
    X(LEVEL, false)                                                                                                    \
    X(SEQUENCE, false)                                                                                                 \
    X(QUEUE_FULL, true)                                                                                                \
    X(OVERLOADED, true)                                                                                                \
    X(DISK_FULL, true)                                                                                                 \
    X(DRAINING, true)                                                                                                  \
    X(FAILED, false)                                                                                                   \
    X(IDLE, true)                                                                                                      \
    X(LIMIT, true)

/* What an ERROR says; HK_CODE_NONE: there is none. */
typedef enum hk_code {
    HK_CODE_NONE,
#define HK_CODE_ENUM(name, later) HK_CODE_##name,
    HK_CODE_LIST(HK_CODE_ENUM)
#undef HK_CODE_ENUM
        HK_CODES
} hk_code_t;

typedef enum hk_scope { HK_SCOPE_REQUEST, HK_SCOPE_SUBSCRIPTION, HK_SCOPE_CONNECTION } hk_scope_t;

/* Flag of a client's DRAIN: its identity is not needed any more. */
enum { HK_DRAIN_FORGET = 1 };

/* Whether the same request may succeed later, and after how many ms it may be tried again; 0: not said. */
bool hk_code_later(hk_code_t code);
uint32_t hk_code_retry_after(hk_code_t code);

/* --- numbers on the wire: little-endian, at any address ----------------------------------------------------------- */

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define HK_FRAME_LITTLE(bits, number) __builtin_bswap##bits(number)
#else
#define HK_FRAME_LITTLE(bits, number) (number)
#endif

static inline uint16_t hk_frame_u16(const char *at)
{
    uint16_t number;
    memcpy(&number, at, sizeof(number));
    return HK_FRAME_LITTLE(16, number);
}

static inline uint32_t hk_frame_u32(const char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof(number));
    return HK_FRAME_LITTLE(32, number);
}

static inline uint64_t hk_frame_u64(const char *at)
{
    uint64_t number;
    memcpy(&number, at, sizeof(number));
    return HK_FRAME_LITTLE(64, number);
}

static inline void hk_frame_put16(char *at, uint16_t number)
{
    number = HK_FRAME_LITTLE(16, number);
    memcpy(at, &number, sizeof(number));
}

static inline void hk_frame_put32(char *at, uint32_t number)
{
    number = HK_FRAME_LITTLE(32, number);
    memcpy(at, &number, sizeof(number));
}

static inline void hk_frame_put64(char *at, uint64_t number)
{
    number = HK_FRAME_LITTLE(64, number);
    memcpy(at, &number, sizeof(number));
}

/* --- reading: each is false when the frame is malformed ----------------------------------------------------------- */

typedef struct hk_frame {
    hk_bytes_t bytes; /* the whole of it */
    uint8_t type, flags;
    uint16_t subscription;
    uint64_t id;
} hk_frame_t;

/* `bytes` is a whole frame by its length, which is 16 at least. */
static inline hk_frame_t hk_frame(hk_bytes_t bytes)
{
    return (hk_frame_t){.bytes = bytes,
                        .type = (uint8_t)bytes.at[4],
                        .flags = (uint8_t)bytes.at[5],
                        .subscription = hk_frame_u16(bytes.at + 6),
                        .id = hk_frame_u64(bytes.at + 8)};
}

typedef struct hk_frame_hello {
    uint16_t lowest, highest;
    uint32_t features, max_frame, heartbeat;
    uint64_t epoch;
    uint8_t authentication;
    hk_bytes_t identity, credentials, agent;
} hk_frame_hello_t;

bool hk_frame_read_hello(const hk_frame_t *frame, hk_frame_hello_t *hello);

/* SEND and SEND_BATCH. `content`: properties and payload; of a batch the messages, see hk_frame_next_item. */
typedef struct hk_frame_send {
    uint64_t sequence;
    uint32_t delay, time_to_live; /* ms */
    uint8_t priority, level, kind;
    uint16_t properties; /* bytes of the content */
    uint32_t count;      /* of messages */
    hk_bytes_t destination, content;
} hk_frame_send_t;

bool hk_frame_read_send(const hk_frame_t *frame, hk_frame_send_t *send);

/* Takes all of a batch apart once, so that it is known to be whole before anything of it is done. */
bool hk_frame_read_batch(const hk_frame_t *frame, hk_frame_send_t *send);

/* Takes the next message off the content of a batch that was read. */
void hk_frame_next_item(hk_bytes_t *rest, uint16_t *properties, hk_bytes_t *content);

typedef struct hk_frame_subscribe {
    uint32_t credit, credit_bytes, lease;
    uint8_t kind;
    hk_bytes_t name;
} hk_frame_subscribe_t;

bool hk_frame_read_subscribe(const hk_frame_t *frame, hk_frame_subscribe_t *subscribe);

typedef struct hk_frame_nack {
    uint64_t delivery;
    uint32_t delay;
    uint8_t kind;
    hk_bytes_t words;
} hk_frame_nack_t;

bool hk_frame_read_nack(const hk_frame_t *frame, hk_frame_nack_t *nack);

typedef struct hk_frame_query {
    uint8_t what, kind;
    uint32_t limit;
    uint64_t number;
    hk_bytes_t name;
} hk_frame_query_t;

bool hk_frame_read_query(const hk_frame_t *frame, hk_frame_query_t *query);

/* UNSUBSCRIBE, PING, DRAIN and ACK: nothing but a header. CREDIT, FREE, TOUCH: fields of one length. */
bool hk_frame_read_plain(const hk_frame_t *frame, size_t size);

/* Whether the bytes are pairs of names and values, each with a name, to their end. */
bool hk_frame_properties(hk_bytes_t bytes);

/* Whether it is a name of a queue (kind 0) or an identity (1): 1 to 255 bytes of UTF-8 without control characters; that
 * of a queue does not begin with '@'. */
bool hk_frame_name(uint8_t kind, hk_bytes_t name);

/* --- writing: `at` has room for the frame's fixed bytes ----------------------------------------------------------- */

static inline void hk_frame_put_header(char *at, size_t length, uint8_t type, uint8_t flags, uint16_t subscription,
                                       uint64_t id)
{
    hk_frame_put32(at, (uint32_t)length);
    at[4] = (char)type;
    at[5] = (char)flags;
    hk_frame_put16(at + 6, subscription);
    hk_frame_put64(at + 8, id);
}

typedef struct hk_frame_ack {
    uint8_t type, level, flags;
    uint16_t refusals;
    uint32_t count;
    uint64_t id, value;
} hk_frame_ack_t;

/* 32 bytes. extra: of what follows. */
void hk_frame_put_ack(char *at, const hk_frame_ack_t *ack, size_t extra);

/* 32 bytes, before the sentence. */
void hk_frame_put_error(char *at, uint64_t id, hk_code_t code, hk_scope_t scope, uint32_t retry_after,
                        uint64_t delivery, uint16_t subscription, size_t sentence);

#endif
