/* hk_broker_fixture.h: a broker with clients that speak frames, for tests.
 *
 *     world_t world;
 *     client_t client;
 *     world_open(&world, NULL);
 *     client_open(&world, &client, "alice", 1);
 *     client_send(&client, 7, "queue", "hello", &(sending_t){0});
 *     expect_ack(&client, HK_FRAME_SEND, 7);
 *     world_close(&world);
 *
 * Nothing is sent or written before a turn (world_turn), which every expectation begins with.
 */
#ifndef HK_BROKER_FIXTURE_H
#define HK_BROKER_FIXTURE_H

#include "hk_broker.h"
#include "hk_buf.h"
#include "hk_frame.h"
#include "hk_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define MS INT64_C(1000000)

enum { MOST_CLIENTS = 16, USUAL_LEVEL = 255 };

typedef struct world world_t;

typedef struct client {
    world_t *world;
    hk_session_t *session; /* NULL: gone */
    hk_buf_t received;     /* not read yet */
    hk_buf_t frame;        /* the last that was read */
    size_t most;           /* bytes that its socket takes at once */
    hk_status_t status;    /* of the last receive */
    bool stuck;            /* its socket takes nothing */
    uint64_t number;       /* of its session */
    uint64_t low;
} client_t;

struct world {
    hk_broker_t *broker;
    const hk_alloc_t *alloc;
    int64_t now;
    uint64_t wall;
    client_t *clients[MOST_CLIENTS];
    size_t client_count;
    hk_status_t committed; /* what the last commit said */
    bool no_jobs;          /* nothing gets synced */
    bool no_commit;
};

/* -- The world ----------------------------------------------------------------------------------------------------- */

static inline hk_status_t world_try(world_t *world, const hk_broker_options_t *options)
{
    hk_broker_options_t usual = {.open = true, .secret = {1, 2}};
    if (options != NULL) {
        usual = *options;
    }
    if (world->now == 0) {
        world->now = 1000 * SECOND;
        world->wall = UINT64_C(1700000000000);
    }
    world->alloc = hk_test_alloc();
    world->client_count = 0;
    world->committed = HK_OK;
    return hk_broker_open(world->alloc, &usual, world->now, world->wall, &world->broker, NULL);
}

static inline void world_open(world_t *world, const hk_broker_options_t *options)
{
    *world = (world_t){0};
    HK_CHECK_OK(world_try(world, options));
}

static inline void client_release(client_t *client)
{
    client->session = NULL;
    hk_buf_release(&client->received);
    hk_buf_release(&client->frame);
}

static inline hk_status_t world_end(world_t *world, bool orderly)
{
    for (size_t i = 0; i < world->client_count; i++) {
        client_release(world->clients[i]);
    }
    world->client_count = 0;
    hk_broker_t *broker = world->broker;
    world->broker = NULL;
    if (orderly) {
        return hk_broker_close(broker, world->now, world->wall);
    }
    hk_broker_drop_dead(broker);
    return HK_OK;
}

static inline void world_close(world_t *world)
{
    HK_CHECK_OK(world_end(world, true));
}

static inline void world_pass(world_t *world, int64_t ns)
{
    world->now += ns;
    world->wall += (uint64_t)(ns / MS);
}

static inline void world_jobs(world_t *world)
{
    for (bool worked = true; worked && world->committed == HK_OK;) {
        worked = false;
        for (int lane = 0; lane < HK_LANES; lane++) {
            hk_job_t *job = hk_broker_job(world->broker, (hk_lane_t)lane);
            if (job != NULL) {
                worked = true;
                hk_job_run(job);
                hk_status_t status = hk_broker_done(world->broker, job);
                world->committed = status == HK_OK ? world->committed : status;
            }
        }
    }
}

static inline void client_take(client_t *client)
{
    struct iovec parts[8];
    int count = hk_session_gather(client->session, parts, 8);
    size_t left = client->stuck ? 0 : client->most, wrote = 0;
    for (int i = 0; i < count && left > 0; i++) {
        size_t some = parts[i].iov_len < left ? parts[i].iov_len : left;
        HK_CHECK_OK(hk_buf_append(&client->received, hk_bytes(parts[i].iov_base, some)));
        left -= some;
        wrote += some;
    }
    hk_session_wrote(client->session, wrote);
}

static inline void world_output(world_t *world)
{
    for (hk_session_t *session; (session = hk_broker_next_ready(world->broker)) != NULL;) {
        client_t *client = hk_session_context(session);
        client_take(client);
        if (!client->stuck) {
            hk_session_writable(session);
        }
    }
}

static inline void world_turn(world_t *world)
{
    hk_broker_tick(world->broker, world->now, world->wall);
    if (!world->no_commit) {
        hk_status_t status = hk_broker_commit(world->broker, world->wall);
        world->committed = world->committed == HK_OK ? status : world->committed;
        if (!world->no_jobs) {
            world_jobs(world);
        }
    }
    world_output(world);
}

static inline hk_broker_stats_t world_stats(const world_t *world)
{
    hk_broker_stats_t stats;
    hk_broker_read_stats(world->broker, &stats);
    return stats;
}

/* -- Clients ------------------------------------------------------------------------------------------------------- */

static inline void client_connect(world_t *world, client_t *client)
{
    *client = (client_t){.world = world, .most = SIZE_MAX};
    hk_buf_init(&client->received, hk_alloc_default());
    hk_buf_init(&client->frame, hk_alloc_default());
    client->session = hk_broker_connect(world->broker, HK_BYTES("127.0.0.1:1"), client, world->now);
    if (client->session != NULL) {
        HK_CHECK(world->client_count < MOST_CLIENTS);
        world->clients[world->client_count++] = client;
    }
}

static inline void client_gone(client_t *client)
{
    hk_broker_disconnect(client->world->broker, client->session, client->world->now, client->world->wall);
    world_t *world = client->world;
    for (size_t i = 0; i < world->client_count; i++) {
        if (world->clients[i] == client) {
            world->clients[i] = world->clients[--world->client_count];
        }
    }
    client_release(client);
}

static inline hk_status_t client_bytes(client_t *client, hk_bytes_t bytes)
{
    client->status =
        hk_broker_receive(client->world->broker, client->session, bytes, client->world->now, client->world->wall);
    return client->status;
}

/* A frame in the making. */
typedef struct making {
    char bytes[256 * 1024];
    size_t length;
} making_t;

static inline void make_frame(making_t *making, uint8_t type, uint8_t flags, uint16_t subscription, uint64_t id)
{
    hk_frame_put_header(making->bytes, HK_FRAME_HEADER_BYTES, type, flags, subscription, id);
    making->length = HK_FRAME_HEADER_BYTES;
}

static inline void make_number(making_t *making, int bytes, uint64_t number)
{
    for (int i = 0; i < bytes; i++) {
        making->bytes[making->length++] = (char)(number >> (8 * i));
    }
}

static inline void make_bytes(making_t *making, hk_bytes_t bytes)
{
    if (bytes.length > 0) {
        memcpy(making->bytes + making->length, bytes.at, bytes.length);
    }
    making->length += bytes.length;
}

static inline hk_bytes_t made(making_t *making)
{
    hk_frame_put32(making->bytes, (uint32_t)making->length);
    return hk_bytes(making->bytes, making->length);
}

static inline hk_status_t client_say(client_t *client, making_t *making)
{
    hk_bytes_t bytes = made(making);
    hk_bytes_t guarded = hk_test_guarded(bytes);
    hk_status_t status = client_bytes(client, guarded);
    hk_test_unguard(guarded.at);
    return status;
}

typedef struct sending {
    uint64_t sequence;
    uint32_t delay, time_to_live;
    uint8_t priority, level, kind;
    const char *properties;
    size_t property_bytes;
} sending_t;

/* Nothing said that need not be. */
static const sending_t PLAIN = {.priority = 4, .level = USUAL_LEVEL};

static inline void make_send(making_t *making, uint64_t id, const char *queue, hk_bytes_t payload,
                             const sending_t *sending)
{
    make_frame(making, HK_FRAME_SEND, 0, 0, id);
    make_number(making, 8, sending->sequence);
    make_number(making, 4, sending->delay);
    make_number(making, 4, sending->time_to_live);
    make_number(making, 1, sending->priority);
    make_number(making, 1, sending->level);
    make_number(making, 2, strlen(queue));
    make_number(making, 2, sending->property_bytes);
    make_number(making, 1, sending->kind);
    make_number(making, 1, 0);
    make_bytes(making, hk_test_text(queue));
    make_bytes(making, hk_bytes(sending->properties, sending->property_bytes));
    make_bytes(making, payload);
}

static inline void client_send(client_t *client, uint64_t id, const char *queue, const char *payload,
                               const sending_t *sending)
{
    making_t making;
    make_send(&making, id, queue, hk_test_text(payload), sending);
    (void)client_say(client, &making);
}

static inline void client_subscribe_with(client_t *client, uint16_t number, const char *queue, uint32_t credit,
                                         uint32_t credit_bytes, uint32_t lease, uint8_t kind)
{
    making_t making;
    make_frame(&making, HK_FRAME_SUBSCRIBE, 0, number, 0);
    make_number(&making, 4, credit);
    make_number(&making, 4, credit_bytes);
    make_number(&making, 4, lease);
    make_number(&making, 1, kind);
    make_number(&making, 1, 0);
    make_number(&making, 2, strlen(queue));
    make_bytes(&making, hk_test_text(queue));
    (void)client_say(client, &making);
}

static inline void client_subscribe(client_t *client, uint16_t number, const char *queue, uint32_t credit)
{
    client_subscribe_with(client, number, queue, credit, 0, 0, 0);
}

static inline void client_credit(client_t *client, uint16_t number, uint32_t credit, uint32_t credit_bytes)
{
    making_t making;
    make_frame(&making, HK_FRAME_CREDIT, 0, number, 0);
    make_number(&making, 4, credit);
    make_number(&making, 4, credit_bytes);
    (void)client_say(client, &making);
}

static inline void client_plain(client_t *client, uint8_t type, uint16_t subscription, uint64_t id)
{
    making_t making;
    make_frame(&making, type, 0, subscription, id);
    (void)client_say(client, &making);
}

static inline void client_free(client_t *client, uint64_t id, uint64_t first, uint64_t last, uint8_t flags)
{
    making_t making;
    make_frame(&making, HK_FRAME_FREE, flags, 0, id);
    make_number(&making, 8, first);
    make_number(&making, 8, last);
    (void)client_say(client, &making);
}

static inline void client_nack(client_t *client, uint64_t id, uint64_t delivery, uint8_t kind, uint32_t delay,
                               const char *words)
{
    making_t making;
    make_frame(&making, HK_FRAME_NACK, 0, 0, id);
    make_number(&making, 8, delivery);
    make_number(&making, 4, delay);
    make_number(&making, 1, kind);
    make_number(&making, 1, 0);
    make_number(&making, 2, strlen(words));
    make_bytes(&making, hk_test_text(words));
    (void)client_say(client, &making);
}

static inline void client_touch(client_t *client, uint64_t id, uint64_t first, uint64_t last, uint32_t lease)
{
    making_t making;
    make_frame(&making, HK_FRAME_TOUCH, 0, 0, id);
    make_number(&making, 8, first);
    make_number(&making, 8, last);
    make_number(&making, 4, lease);
    make_number(&making, 4, 0);
    (void)client_say(client, &making);
}

static inline void client_query(client_t *client, uint64_t id, uint8_t what, const char *queue, uint64_t number,
                                uint32_t limit)
{
    making_t making;
    make_frame(&making, HK_FRAME_QUERY, 0, 0, id);
    make_number(&making, 1, what);
    make_number(&making, 1, 0);
    make_number(&making, 2, strlen(queue));
    make_number(&making, 4, limit);
    make_number(&making, 8, number);
    make_bytes(&making, hk_test_text(queue));
    (void)client_say(client, &making);
}

typedef struct greeting {
    uint16_t lowest, highest;
    uint32_t max_frame, heartbeat;
    uint64_t epoch;
    uint8_t authentication;
    const char *identity, *credentials;
} greeting_t;

static inline hk_status_t client_hello(client_t *client, const greeting_t *greeting)
{
    making_t making;
    const char *identity = greeting->identity == NULL ? "" : greeting->identity;
    const char *credentials = greeting->credentials == NULL ? "" : greeting->credentials;
    make_frame(&making, HK_FRAME_HELLO, 0, 0, 1);
    make_bytes(&making, HK_BYTES("HKB\r\n\x1A\n\0"));
    make_number(&making, 2, greeting->lowest == 0 ? 1 : greeting->lowest);
    make_number(&making, 2, greeting->highest == 0 ? 1 : greeting->highest);
    make_number(&making, 4, 0);
    make_number(&making, 4, greeting->max_frame == 0 ? 1 << 20 : greeting->max_frame);
    make_number(&making, 4, greeting->heartbeat);
    make_number(&making, 8, greeting->epoch);
    make_number(&making, 1, greeting->authentication);
    make_number(&making, 1, 0);
    make_number(&making, 2, strlen(identity));
    make_number(&making, 2, strlen(credentials));
    make_number(&making, 2, 4);
    make_bytes(&making, hk_test_text(identity));
    make_bytes(&making, hk_test_text(credentials));
    make_bytes(&making, HK_BYTES("test"));
    return client_say(client, &making);
}

/* -- What they hear ------------------------------------------------------------------------------------------------ */

/* The next frame without a turn; false: there is none. Borrowed until the next. */
static inline bool client_next(client_t *client, hk_frame_t *frame)
{
    hk_bytes_t bytes = hk_buf_bytes(&client->received);
    if (bytes.length < HK_FRAME_HEADER_BYTES || bytes.length < hk_frame_u32(bytes.at)) {
        return false;
    }
    hk_buf_clear(&client->frame);
    size_t length = hk_frame_u32(bytes.at);
    HK_CHECK_OK(hk_buf_append(&client->frame, hk_bytes(bytes.at, length)));
    hk_buf_consume(&client->received, length);
    *frame = hk_frame(hk_buf_bytes(&client->frame));
    return true;
}

static inline hk_frame_t expect(client_t *client, uint8_t type)
{
    hk_frame_t frame;
    world_turn(client->world);
    if (!client_next(client, &frame)) {
        HK_FAIL("a frame of type %d was expected, there is none", type);
    }
    if (frame.type != type) {
        HK_FAIL("a frame of type %d was expected, not %d (%.*s)", type, frame.type,
                frame.type == HK_FRAME_ERROR ? (int)frame.bytes.length - 32 : 0, frame.bytes.at + 32);
    }
    return frame;
}

static inline void expect_nothing(client_t *client)
{
    hk_frame_t frame;
    world_turn(client->world);
    if (client_next(client, &frame)) {
        HK_FAIL("nothing was expected, not a frame of type %d", frame.type);
    }
}

/* Its value. */
static inline uint64_t expect_ack(client_t *client, uint8_t type, uint64_t id)
{
    hk_frame_t frame = expect(client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(id, frame.id);
    HK_CHECK_EQUAL_INT(type, frame.bytes.at[16]);
    return hk_frame_u64(frame.bytes.at + 24);
}

static inline hk_frame_t expect_error(client_t *client, hk_code_t code, uint64_t id)
{
    hk_frame_t frame = expect(client, HK_FRAME_ERROR);
    HK_CHECK_EQUAL_INT(code, hk_frame_u16(frame.bytes.at + 16));
    HK_CHECK_EQUAL_UINT(id, frame.id);
    return frame;
}

/* Its document, borrowed until the next frame. */
static inline hk_bytes_t expect_report(client_t *client)
{
    hk_frame_t frame = expect(client, HK_FRAME_REPORT);
    return hk_bytes(frame.bytes.at + 16, frame.bytes.length - 16);
}

typedef struct push {
    uint64_t delivery, message, sent;
    uint32_t lease;
    uint16_t attempt, failures, crashes, subscription;
    uint8_t priority, flags;
    hk_bytes_t payload;
} push_t;

static inline push_t read_push(const hk_frame_t *frame)
{
    const char *at = frame->bytes.at;
    size_t properties = hk_frame_u16(at + 44);
    return (push_t){.delivery = frame->id,
                    .message = hk_frame_u64(at + 16),
                    .sent = hk_frame_u64(at + 24),
                    .lease = hk_frame_u32(at + 32),
                    .attempt = hk_frame_u16(at + 36),
                    .failures = hk_frame_u16(at + 38),
                    .crashes = hk_frame_u16(at + 40),
                    .subscription = frame->subscription,
                    .priority = (uint8_t)at[42],
                    .flags = frame->flags,
                    .payload = hk_bytes(at + 48 + properties, frame->bytes.length - 48 - properties)};
}

static inline push_t expect_push(client_t *client, const char *payload)
{
    hk_frame_t frame = expect(client, HK_FRAME_PUSH);
    push_t push = read_push(&frame);
    HK_CHECK_BYTES(payload, push.payload);
    return push;
}

static inline void client_open(world_t *world, client_t *client, const char *identity, uint64_t epoch)
{
    client_connect(world, client);
    HK_CHECK(client->session != NULL);
    HK_CHECK_OK(client_hello(client, &(greeting_t){.identity = identity, .epoch = epoch}));
    hk_frame_t frame = expect(client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_UINT(72, frame.bytes.length);
    client->number = hk_frame_u64(frame.bytes.at + 56);
    client->low = hk_frame_u64(frame.bytes.at + 64);
}

/* A broker as usual, and one client without an identity. */
static inline void world_open_with(world_t *world, client_t *client)
{
    world_open(world, NULL);
    client_open(world, client, NULL, 0);
}

#endif
