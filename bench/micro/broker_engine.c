/* broker_engine.c: what hk_broker costs a message, in one process and without sockets: SEND, PUSH, FREE and their ACKs.
 *
 * 10 senders with a window each, 10 receivers that free what they got, one frame each. The clock runs round the calls into the
 * broker alone. Needs a folder for the levels written and synced, whose fdatasyncs are done in place, and not counted.
 *
 *     make -C ext/hikyaku/engine lib
 *     cc -O2 -D_GNU_SOURCE $(printf -- "-I%s " ext/hikyaku/engine/*/) -o tmp/broker_engine bench/micro/broker_engine.c \
 *       tmp/engine/cc/plain/libhikyaku.a -lz -pthread
 *     tmp/broker_engine BYTES LEVEL MESSAGES [WINDOW [FOLDER]]
 */
#include "hk_broker.h"
#include "hk_frame.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { PEERS = 10, ROOM = 4 << 20 };

static int64_t clock_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

typedef struct peer {
    hk_session_t *session;
    char *heard;
    size_t heard_bytes;
    uint64_t next, answered, sent;
} peer_t;

static hk_broker_t *broker;
static int64_t spent, started;
static uint64_t wall = 1700000000000, pushed;
static char out[ROOM];

static void in(void)
{
    started = clock_ns();
}

static void gone(void)
{
    spent += clock_ns() - started;
}

static void say(peer_t *peer, size_t bytes)
{
    in();
    if (hk_broker_receive(broker, peer->session, hk_bytes(out, bytes), started, wall) != HK_OK) {
        fprintf(stderr, "the broker has closed a connection\n");
        exit(1);
    }
    gone();
}

static void turn(void)
{
    in();
    hk_broker_tick(broker, started, wall);
    hk_broker_commit(broker, wall);
    gone();
    for (int lane = 0; lane < HK_LANES; lane++) {
        hk_job_t *job = hk_broker_job(broker, (hk_lane_t)lane);
        if (job != NULL) {
            hk_job_run(job);
            in();
            hk_broker_done(broker, job);
            gone();
        }
    }
    for (;;) {
        in();
        hk_session_t *session = hk_broker_next_ready(broker);
        struct iovec parts[64];
        int count = session == NULL ? 0 : hk_session_gather(session, parts, 64);
        gone();
        if (session == NULL) {
            return;
        }
        peer_t *peer = hk_session_context(session);
        size_t bytes = 0;
        for (int i = 0; i < count && peer->heard_bytes + parts[i].iov_len <= ROOM; i++) {
            memcpy(peer->heard + peer->heard_bytes, parts[i].iov_base, parts[i].iov_len);
            peer->heard_bytes += parts[i].iov_len;
            bytes += parts[i].iov_len;
        }
        in();
        hk_session_wrote(session, bytes);
        gone();
    }
}

static void hello(peer_t *peer)
{
    memset(out, 0, HK_FRAME_HELLO_BYTES);
    hk_frame_put_header(out, HK_FRAME_HELLO_BYTES, HK_FRAME_HELLO, 0, 0, 1);
    memcpy(out + 16, "HKB\r\n\x1A\n\0", 8);
    hk_frame_put16(out + 24, 1);
    hk_frame_put16(out + 26, 1);
    hk_frame_put32(out + 32, 1 << 20);
    peer->session = hk_broker_connect(broker, HK_BYTES("-"), peer, clock_ns());
    peer->heard = malloc(ROOM);
    say(peer, HK_FRAME_HELLO_BYTES);
}

static void subscribe(peer_t *peer, uint32_t credit)
{
    memset(out, 0, 33);
    hk_frame_put_header(out, 33, HK_FRAME_SUBSCRIBE, 0, 1, 0);
    hk_frame_put32(out + 16, credit);
    hk_frame_put16(out + 30, 1);
    out[32] = 'q';
    say(peer, 33);
}

static void send_some(peer_t *peer, uint64_t window, size_t bytes, uint8_t level)
{
    size_t at = 0, frame = HK_FRAME_SEND_BYTES + 1 + bytes;
    while (peer->next - peer->answered < window && at + frame <= 64 * 1024) {
        memset(out + at, 0, HK_FRAME_SEND_BYTES);
        hk_frame_put_header(out + at, frame, HK_FRAME_SEND, 0, 0, ++peer->next);
        out[at + 32] = 4;
        out[at + 33] = (char)level;
        hk_frame_put16(out + at + 34, 1);
        out[at + 40] = 'q';
        memset(out + at + 41, 'x', bytes);
        at += frame;
    }
    if (at > 0) {
        say(peer, at);
    }
}

static void hear(peer_t *peer)
{
    size_t at = 0, frees = 0;
    while (peer->heard_bytes - at >= 16 && hk_frame_u32(peer->heard + at) <= peer->heard_bytes - at) {
        hk_frame_t frame = hk_frame(hk_bytes(peer->heard + at, hk_frame_u32(peer->heard + at)));
        at += frame.bytes.length;
        if (frame.type == HK_FRAME_PUSH) {
            hk_frame_put_header(out + frees, 32, HK_FRAME_FREE, 0, 0, 0);
            hk_frame_put64(out + frees + 16, frame.id);
            hk_frame_put64(out + frees + 24, frame.id);
            frees += 32;
            pushed++;
        } else if (frame.type == HK_FRAME_ACK && frame.bytes.at[16] == HK_FRAME_SEND) {
            peer->answered = frame.flags & HK_ACK_RANGE ? hk_frame_u64(frame.bytes.at + 32) : frame.id;
        }
    }
    memmove(peer->heard, peer->heard + at, peer->heard_bytes - at);
    peer->heard_bytes -= at;
    if (frees > 0) {
        say(peer, frees);
    }
}

int main(int count, char **values)
{
    if (count < 4) {
        fprintf(stderr, "broker_engine BYTES LEVEL MESSAGES [WINDOW [FOLDER]]\n");
        return 2;
    }
    size_t bytes = strtoul(values[1], NULL, 10);
    uint8_t level = (uint8_t)atoi(values[2]);
    uint64_t messages = strtoull(values[3], NULL, 10), window = count > 4 ? strtoull(values[4], NULL, 10) : 100;
    hk_broker_options_t options = {.open = true, .secret = {1, 2}};
    if (count > 5) {
        options.path = values[5];
        options.files = hk_files_default();
    }
    hk_journal_trouble_t trouble = {0};
    if (hk_broker_open(hk_alloc_default(), &options, clock_ns(), wall, &broker, &trouble) != HK_OK) {
        fprintf(stderr, "cannot open: %s\n", trouble.text);
        return 1;
    }
    peer_t senders[PEERS] = {0}, receivers[PEERS] = {0};
    for (int i = 0; i < PEERS; i++) {
        hello(&senders[i]);
        hello(&receivers[i]);
        subscribe(&receivers[i], 1000);
    }
    turn();
    for (int i = 0; i < PEERS; i++) {
        senders[i].heard_bytes = receivers[i].heard_bytes = 0;
    }
    spent = 0;
    int64_t begun = clock_ns();
    while (pushed < messages) {
        for (int i = 0; i < PEERS; i++) {
            send_some(&senders[i], window, bytes, level);
        }
        for (int i = 0; i < PEERS; i++) {
            hear(&receivers[i]);
        }
        turn();
        for (int i = 0; i < PEERS; i++) {
            hear(&senders[i]);
        }
    }
    int64_t took = clock_ns() - begun;
    printf("%zu bytes, level %d, window %llu: %.0f ns a message in the broker, %.0f in all\n", bytes, level,
           (unsigned long long)window, (double)spent / (double)pushed, (double)took / (double)pushed);
    return 0;
}
