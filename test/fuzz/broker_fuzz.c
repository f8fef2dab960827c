/* broker_fuzz.c: whatever bytes come, cut anywhere, from several clients and with time passing: the broker's figures add up, what it
 * sends are frames, and nothing is left behind.
 *
 * Input: actions of one byte each with what they need behind them.
 *     0 to 2  bytes of a client: a length, then these      3  the client that speaks from now on
 *     4  a frame of a client: a type, a length, fields     5  time passes      6  a turn
 *     7  a connection breaks                               8  a socket is blocked, or takes more
 */
#include "hk_broker.h"
#include "hk_frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENTS = 3, MS = 1000000 };

typedef struct client {
    hk_session_t *session;
    char *heard; /* what was not looked at yet */
    size_t bytes;
    bool blocked;
    uint64_t delivery;
} client_t;

typedef struct input {
    const uint8_t *at;
    size_t left;
} input_t;

static void check(bool holds)
{
    if (!holds) {
        abort();
    }
}

static uint8_t next(input_t *input)
{
    if (input->left == 0) {
        return 0;
    }
    input->left--;
    return *input->at++;
}

/* What is sent are whole frames, each of a type that comes from a broker. */
static void hear(client_t *client, const void *bytes, size_t size)
{
    client->heard = realloc(client->heard, client->bytes + size + 1);
    check(client->heard != NULL);
    memcpy(client->heard + client->bytes, bytes, size);
    client->bytes += size;
    size_t at = 0;
    while (client->bytes - at >= HK_FRAME_HEADER_BYTES) {
        uint32_t length = hk_frame_u32(client->heard + at);
        check(length >= HK_FRAME_HEADER_BYTES);
        if (length > client->bytes - at) {
            break;
        }
        hk_frame_t frame = hk_frame(hk_bytes(client->heard + at, length));
        check(frame.type == HK_FRAME_PING || frame.type == HK_FRAME_DRAIN ||
              (frame.type >= HK_FRAME_ACK && frame.type <= HK_FRAME_REPORT));
        if (frame.type == HK_FRAME_PUSH) {
            check(frame.id > client->delivery && length >= HK_FRAME_PUSH_BYTES);
            client->delivery = frame.id;
        }
        at += length;
    }
    memmove(client->heard, client->heard + at, client->bytes - at);
    client->bytes -= at;
}

static void output(hk_broker_t *broker)
{
    for (hk_session_t *session; (session = hk_broker_next_ready(broker)) != NULL;) {
        client_t *client = hk_session_context(session);
        struct iovec parts[3];
        int count = hk_session_gather(session, parts, 3);
        size_t wrote = 0;
        for (int i = 0; i < count && !client->blocked; i++) {
            hear(client, parts[i].iov_base, parts[i].iov_len);
            wrote += parts[i].iov_len;
        }
        hk_session_wrote(session, wrote);
    }
}

static void add_up(hk_broker_t *broker)
{
    hk_broker_stats_t stats;
    hk_broker_read_stats(broker, &stats);
    check(stats.messages == stats.ready + stats.delayed + stats.out + stats.dead);
    check(stats.messages > 0 || stats.bytes == 0);
    check(stats.sessions <= CLIENTS);
}

static void connect(hk_broker_t *broker, client_t *client, int64_t now)
{
    if (client->session == NULL) {
        client->bytes = 0;
        client->delivery = 0;
        client->blocked = false;
        client->session = hk_broker_connect(broker, HK_BYTES("fuzz"), client, now);
        check(client->session != NULL);
        char hello[HK_FRAME_HELLO_BYTES + 1] = {0};
        hk_frame_put_header(hello, sizeof(hello), HK_FRAME_HELLO, 0, 0, 1);
        memcpy(hello + 16, "HKB\r\n\x1A\n\0", 8);
        hk_frame_put16(hello + 24, 1);
        hk_frame_put16(hello + 26, 1);
        hk_frame_put32(hello + 32, 1 << 16);
        hk_frame_put64(hello + 40, (uint64_t)now);
        hk_frame_put16(hello + 50, 1);
        hello[56] = 'a';
        (void)hk_broker_receive(broker, client->session, hk_bytes(hello, sizeof(hello)), now, 1);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_broker_options_t options = {
        .open = true, .max_frame = 1 << 16, .max_crashes = 2, .max_failures = 2, .secret = {1, 2}};
    hk_broker_t *broker;
    int64_t now = INT64_C(1000) * MS;
    uint64_t wall = 1700000000000;
    check(hk_broker_open(hk_alloc_default(), &options, now, wall, &broker, NULL) == HK_OK);
    client_t clients[CLIENTS] = {0}, *client = &clients[0];
    connect(broker, client, now);
    input_t input = {data, size};
    while (input.left > 0) {
        uint8_t action = next(&input) % 9;
        if (action <= 2 || action == 4) {
            char frame[HK_FRAME_HEADER_BYTES + 255] = {0};
            uint8_t type = action == 4 ? next(&input) : 0;
            size_t head = action == 4 ? HK_FRAME_HEADER_BYTES : 0, some = next(&input);
            some = some < input.left ? some : input.left;
            if (action == 4) {
                uint8_t low = next(&input);
                some = some < input.left ? some : input.left;
                bool numbered = type >= HK_FRAME_SUBSCRIBE && type <= HK_FRAME_CREDIT;
                hk_frame_put_header(frame, head + some, type, 0, numbered ? low : 0,
                                    type == HK_FRAME_ACK ? client->delivery - low : low);
            }
            if (some > 0) {
                memcpy(frame + head, input.at, some);
            }
            input.at += some;
            input.left -= some;
            /* Deliveries are numbered high up: one that is meant is reached from the newest downwards. */
            if (action == 4 && (type == HK_FRAME_FREE || type == HK_FRAME_NACK || type == HK_FRAME_TOUCH) &&
                some >= 16) {
                hk_frame_put64(frame + 16, client->delivery - (hk_frame_u64(frame + 16) & 7));
                if (type != HK_FRAME_NACK) {
                    hk_frame_put64(frame + 24, client->delivery - (hk_frame_u64(frame + 24) & 7));
                }
            }
            (void)hk_broker_receive(broker, client->session, hk_bytes(frame, head + some), now, wall);
        } else if (action == 3) {
            client = &clients[next(&input) % CLIENTS];
            connect(broker, client, now);
        } else if (action == 5) {
            int64_t ms = (int64_t)next(&input) << (next(&input) % 16);
            now += ms * MS;
            wall += (uint64_t)ms;
        } else if (action == 6) {
            hk_broker_tick(broker, now, wall);
            check(hk_broker_commit(broker, wall) == HK_OK);
            output(broker);
            add_up(broker);
        } else if (action == 7) {
            hk_broker_disconnect(broker, client->session, now, wall);
            client->session = NULL;
            add_up(broker);
            connect(broker, client, now);
        } else {
            client->blocked = !client->blocked;
            if (!client->blocked) {
                hk_session_writable(client->session);
            }
        }
    }
    output(broker);
    add_up(broker);
    check(hk_broker_close(broker, now, wall) == HK_OK);
    for (int i = 0; i < CLIENTS; i++) {
        free(clients[i].heard);
    }
    return 0;
}
