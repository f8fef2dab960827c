/* hk_loop_broker_fixture.h: a loop with a broker, and clients that speak its protocol; for the tests of the loop.
 *
 *     desk_t desk;
 *     desk_begin(&desk, NULL);
 *     int client = desk_client(&desk, "me");              has said HELLO, and was answered
 *     desk_send(&desk, client, 1, "queue", "payload");
 *     hk_frame_t ack = desk_expect(&desk, client, HK_FRAME_ACK);
 *     desk_end(&desk);
 *
 * As in hk_loop_fixture.h one thread does everything, the clock stands still, and nothing fails but what a test makes
 * fail. With storage there are the loop's threads for the disk: what they do can be held up (desk->held).
 */
#ifndef HK_LOOP_BROKER_FIXTURE_H
#define HK_LOOP_BROKER_FIXTURE_H

#include "hk_frame.h"
#include "hk_loop_broker_private.h"
#include "hk_loop_fixture.h"

#include <dirent.h>
#include <sys/stat.h>

/* A lease is longer than any test waits. */
enum { FRAME_ROOM = 4096, DESK_CLIENTS = MOST_CLIENTS, LEASE_MS = 3600 * 1000 };

typedef struct desk {
    rig_t rig;
    hk_lock_t lock;
    hk_broker_t *broker;
    hk_broker_options_t wanted;
    bool with_hub;
    char folder[64]; /* empty: no storage */
    struct sockaddr_un address;
    socklen_t address_length;

    /* The disk. */
    hk_files_t files;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool held;           /* a sync waits. Under the mutex, as the rest */
    int syncing, synced; /* syncs that wait or run; that have run */
    int writes;
    int fail_write, fail_sync; /* the n-th from now on fails, and all after it; 0: none does */
    bool on_loop;              /* a sync ran on the thread that turns the loop */
    pthread_t loop_thread;

    /* What each client has received and not looked at. */
    char *heard[DESK_CLIENTS];
    size_t heard_bytes[DESK_CLIENTS];
    size_t looked_at[DESK_CLIENTS];
    bool ended[DESK_CLIENTS];
} desk_t;

/* --- the disk ----------------------------------------------------------------------------------------------------- */

static inline bool desk_fails(int *countdown)
{
    if (*countdown > 1) {
        --*countdown;
        return false;
    }
    return *countdown == 1;
}

static inline int desk_sync_data(void *context, int fd)
{
    desk_t *desk = context;
    pthread_mutex_lock(&desk->mutex);
    desk->syncing++;
    desk->on_loop = desk->on_loop || pthread_equal(desk->loop_thread, pthread_self());
    pthread_cond_broadcast(&desk->changed);
    while (desk->held) {
        pthread_cond_wait(&desk->changed, &desk->mutex);
    }
    desk->syncing--;
    desk->synced++;
    bool fails = desk_fails(&desk->fail_sync);
    pthread_mutex_unlock(&desk->mutex);
    if (fails) {
        errno = EIO;
        return -1;
    }
    return hk_files_default()->sync_data(hk_files_default()->context, fd);
}

static inline ssize_t desk_write_at(void *context, int fd, const struct iovec *parts, int count, uint64_t offset)
{
    desk_t *desk = context;
    pthread_mutex_lock(&desk->mutex);
    desk->writes++;
    bool fails = desk_fails(&desk->fail_write);
    pthread_mutex_unlock(&desk->mutex);
    if (fails) {
        errno = EIO;
        return -1;
    }
    return hk_files_default()->write_at(hk_files_default()->context, fd, parts, count, offset);
}

static inline void desk_hold(desk_t *desk, bool held)
{
    pthread_mutex_lock(&desk->mutex);
    desk->held = held;
    pthread_cond_broadcast(&desk->changed);
    pthread_mutex_unlock(&desk->mutex);
}

static inline bool desk_syncs(desk_t *desk)
{
    pthread_mutex_lock(&desk->mutex);
    bool syncs = desk->syncing > 0;
    pthread_mutex_unlock(&desk->mutex);
    return syncs;
}

/* Until a sync is held up. */
static inline void desk_await_sync(desk_t *desk)
{
    RIG_UNTIL(&desk->rig, desk_syncs(desk));
}

static inline void desk_remove_folder(const char *folder)
{
    char path[512];
    DIR *open = opendir(folder);
    for (struct dirent *entry; open != NULL && (entry = readdir(open)) != NULL;) {
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        (void)unlink(path);
    }
    if (open != NULL) {
        closedir(open);
    }
    (void)rmdir(folder);
}

/* --- beginning and ending ----------------------------------------------------------------------------------------- */

static inline void desk_clear(desk_t *desk)
{
    *desk = (desk_t){.held = false};
    rig_clear(&desk->rig);
    desk->wanted = (hk_broker_options_t){.open = true, .segment_bytes = HK_JOURNAL_SEGMENT_LEAST};
    desk->loop_thread = pthread_self();
    HK_CHECK(pthread_mutex_init(&desk->mutex, NULL) == 0);
    HK_CHECK(pthread_cond_init(&desk->changed, NULL) == 0);
    desk->files = *hk_files_default();
    desk->files.context = desk;
    desk->files.sync_data = desk_sync_data;
    desk->files.write_at = desk_write_at;
}

/* Keeps messages on the disk. Before it begins. */
static inline void desk_store(desk_t *desk)
{
    snprintf(desk->folder, sizeof(desk->folder), "/tmp/hk_loop_broker.XXXXXX");
    HK_CHECK(mkdtemp(desk->folder) != NULL);
    desk->wanted.path = desk->folder;
    desk->wanted.files = &desk->files;
}

static inline hk_status_t desk_open_broker(desk_t *desk)
{
    return hk_broker_open(hk_test_alloc(), &desk->wanted, atomic_load(&desk->rig.calls.now),
                          (uint64_t)(atomic_load(&desk->rig.calls.wall) / HK_MILLISECOND), &desk->broker, NULL);
}

/* HK_OK, or why not, with nothing to be given back. options: NULL: rig_options(). */
static inline hk_status_t desk_try(desk_t *desk, const hk_loop_options_t *options)
{
    hk_loop_options_t usual = rig_options();
    usual = options != NULL ? *options : usual;
    HK_CHECK_OK(hk_lock_init(&desk->lock));
    hk_status_t status = desk_open_broker(desk);
    if (status != HK_OK) {
        return status;
    }
    desk->on_loop = false;
    usual.broker = desk->broker;
    usual.broker_lock = &desk->lock;
    if (desk->with_hub) {
        status = rig_try(&desk->rig, &usual, NULL);
    } else {
        usual.sys = &desk->rig.calls.sys;
        status = hk_loop_new(hk_test_alloc(), &usual, &desk->rig.loop);
    }
    if (status != HK_OK) {
        hk_broker_drop_dead(desk->broker);
    }
    return status;
}

static inline void desk_listen(desk_t *desk)
{
    desk->address.sun_family = AF_UNIX;
    desk->address_length = sizeof(desk->address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HK_CHECK(fd >= 0);
    /* The system chooses a name that is no file. */
    HK_CHECK(bind(fd, (struct sockaddr *)&desk->address, sizeof(sa_family_t)) == 0);
    HK_CHECK(listen(fd, 128) == 0);
    HK_CHECK(getsockname(fd, (struct sockaddr *)&desk->address, &desk->address_length) == 0);
    hk_status_t status = hk_loop_listen_broker(desk->rig.loop, fd, false);
    if (status != HK_OK) {
        HK_CHECK(status == HK_NO_MEMORY && hk_test_failed());
        close(fd);
    }
}

static inline void desk_begin(desk_t *desk, const hk_loop_options_t *options)
{
    desk_clear(desk);
    HK_CHECK_OK(desk_try(desk, options));
    desk_listen(desk);
}

static inline void desk_begin_stored(desk_t *desk, const hk_loop_options_t *options)
{
    desk_clear(desk);
    desk_store(desk);
    HK_CHECK_OK(desk_try(desk, options));
    desk_listen(desk);
}

static inline void desk_release(desk_t *desk)
{
    for (size_t i = 0; i < DESK_CLIENTS; i++) {
        free(desk->heard[i]);
    }
    pthread_cond_destroy(&desk->changed);
    pthread_mutex_destroy(&desk->mutex);
    if (desk->folder[0] != '\0') {
        desk_remove_folder(desk->folder);
    }
}

static inline hk_status_t desk_close_broker(desk_t *desk)
{
    return hk_broker_close(desk->broker, atomic_load(&desk->rig.calls.now),
                           (uint64_t)(atomic_load(&desk->rig.calls.wall) / HK_MILLISECOND));
}

/* Whatever clients are still open are closed. */
static inline void desk_end(desk_t *desk)
{
    rig_end(&desk->rig);
    (void)desk_close_broker(desk);
    desk_release(desk);
}

static inline hk_broker_stats_t desk_stats(desk_t *desk)
{
    hk_broker_stats_t stats;
    hk_broker_read_stats(desk->broker, &stats);
    return stats;
}

/* --- clients ------------------------------------------------------------------------------------------------------ */

static inline size_t desk_index(const desk_t *desk, int client)
{
    for (size_t i = 0; i < desk->rig.client_count; i++) {
        if (desk->rig.clients[i] == client) {
            return i;
        }
    }
    HK_FAIL("no client");
    return 0;
}

static inline int desk_connect(desk_t *desk)
{
    int client = rig_keep(&desk->rig, socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    HK_CHECK(connect(client, (struct sockaddr *)&desk->address, desk->address_length) == 0);
    return client;
}

/* What the client has received by now is taken from its socket. */
static inline void desk_hear(desk_t *desk, int client)
{
    size_t i = desk_index(desk, client);
    bool ended;
    hk_bytes_t bytes = rig_receive(&desk->rig, client, &ended);
    desk->ended[i] = desk->ended[i] || ended;
    if (bytes.length > 0) {
        desk->heard[i] = realloc(desk->heard[i], desk->heard_bytes[i] + bytes.length);
        HK_CHECK(desk->heard[i] != NULL);
        memcpy(desk->heard[i] + desk->heard_bytes[i], bytes.at, bytes.length);
        desk->heard_bytes[i] += bytes.length;
    }
}

/* The next frame that has been received; false: there is none that is whole. It is valid until the next one. */
static inline bool desk_next(desk_t *desk, int client, hk_frame_t *frame)
{
    size_t i = desk_index(desk, client);
    desk_hear(desk, client);
    size_t left = desk->heard_bytes[i] - desk->looked_at[i];
    const char *at = desk->heard[i] + desk->looked_at[i];
    if (left < HK_FRAME_HEADER_BYTES || left < hk_frame_u32(at)) {
        return false;
    }
    *frame = hk_frame(hk_bytes(at, hk_frame_u32(at)));
    desk->looked_at[i] += frame->bytes.length;
    return true;
}

/* The next frame, waited for where a disk or TCP is in between. */
static inline hk_frame_t desk_answer(desk_t *desk, int client)
{
    hk_frame_t frame;
    for (int waited = 0;; waited++, poll(NULL, 0, 1)) {
        HK_CHECK(waited < PATIENCE_MS);
        rig_run(&desk->rig);
        if (desk_next(desk, client, &frame)) {
            return frame;
        }
    }
}

/* The same, which must be of this type. */
static inline hk_frame_t desk_expect(desk_t *desk, int client, int type)
{
    hk_frame_t frame = desk_answer(desk, client);
    HK_CHECK_EQUAL_INT(type, frame.type);
    return frame;
}

static inline bool desk_hears_nothing(desk_t *desk, int client)
{
    hk_frame_t frame;
    rig_run(&desk->rig);
    return !desk_next(desk, client, &frame);
}

static inline bool desk_is_closed(desk_t *desk, int client)
{
    rig_run(&desk->rig);
    desk_hear(desk, client);
    return desk->ended[desk_index(desk, client)];
}

static inline hk_code_t desk_code(const hk_frame_t *error)
{
    return (hk_code_t)hk_frame_u16(error->bytes.at + 16);
}

/* --- frames of clients: each is written to `at`, which has FRAME_ROOM bytes; the length ------------------------------ */

static inline size_t desk_hello_frame(char *at, const char *identity, uint64_t epoch, const char *secret)
{
    size_t name = strlen(identity), credentials = strlen(secret);
    memset(at, 0, HK_FRAME_HELLO_BYTES);
    hk_frame_put_header(at, HK_FRAME_HELLO_BYTES + name + credentials, HK_FRAME_HELLO, 0, 0, 1);
    memcpy(at + 16, "HKB\r\n\x1a\n", 8);
    hk_frame_put16(at + 24, 1);
    hk_frame_put16(at + 26, 1);
    hk_frame_put32(at + 32, 1024 * 1024);
    hk_frame_put64(at + 40, epoch);
    at[48] = credentials > 0 ? 1 : 0;
    hk_frame_put16(at + 50, (uint16_t)name);
    hk_frame_put16(at + 52, (uint16_t)credentials);
    memcpy(at + HK_FRAME_HELLO_BYTES, identity, name);
    memcpy(at + HK_FRAME_HELLO_BYTES + name, secret, credentials);
    return HK_FRAME_HELLO_BYTES + name + credentials;
}

static inline size_t desk_send_frame(char *at, uint64_t id, hk_level_t level, const char *queue, hk_bytes_t payload)
{
    size_t name = strlen(queue);
    memset(at, 0, HK_FRAME_SEND_BYTES);
    hk_frame_put_header(at, HK_FRAME_SEND_BYTES + name + payload.length, HK_FRAME_SEND, 0, 0, id);
    at[32] = 4;
    at[33] = (char)level;
    hk_frame_put16(at + 34, (uint16_t)name);
    memcpy(at + HK_FRAME_SEND_BYTES, queue, name);
    if (payload.length > 0) {
        memcpy(at + HK_FRAME_SEND_BYTES + name, payload.at, payload.length);
    }
    return HK_FRAME_SEND_BYTES + name + payload.length;
}

static inline size_t desk_subscribe_frame(char *at, uint64_t id, const char *queue, uint32_t credit)
{
    size_t name = strlen(queue);
    memset(at, 0, 32);
    hk_frame_put_header(at, 32 + name, HK_FRAME_SUBSCRIBE, 0, 1, id);
    hk_frame_put32(at + 16, credit);
    hk_frame_put32(at + 24, LEASE_MS);
    hk_frame_put16(at + 30, (uint16_t)name);
    memcpy(at + 32, queue, name);
    return 32 + name;
}

static inline size_t desk_free_frame(char *at, uint64_t id, uint64_t first, uint64_t last)
{
    hk_frame_put_header(at, 32, HK_FRAME_FREE, 0, 0, id);
    hk_frame_put64(at + 16, first);
    hk_frame_put64(at + 24, last);
    return 32;
}

/* --- what clients do ---------------------------------------------------------------------------------------------- */

static inline void desk_say(desk_t *desk, int client, const char *frame, size_t length)
{
    rig_say_bytes(&desk->rig, client, hk_bytes(frame, length));
}

static inline void desk_hello(desk_t *desk, int client, const char *identity)
{
    char frame[FRAME_ROOM];
    desk_say(desk, client, frame, desk_hello_frame(frame, identity, 1, ""));
}

static inline int desk_client(desk_t *desk, const char *identity)
{
    int client = desk_connect(desk);
    desk_hello(desk, client, identity);
    hk_frame_t ack = desk_expect(desk, client, HK_FRAME_ACK);
    HK_CHECK_EQUAL_INT(HK_FRAME_HELLO, ack.bytes.at[16]);
    return client;
}

static inline void desk_send_at(desk_t *desk, int client, uint64_t id, hk_level_t level, const char *queue,
                                const char *payload)
{
    char frame[FRAME_ROOM];
    desk_say(desk, client, frame, desk_send_frame(frame, id, level, queue, hk_test_text(payload)));
}

/* At level memory. */
static inline void desk_send(desk_t *desk, int client, uint64_t id, const char *queue, const char *payload)
{
    desk_send_at(desk, client, id, HK_LEVEL_MEMORY, queue, payload);
}

static inline void desk_subscribe(desk_t *desk, int client, const char *queue, uint32_t credit)
{
    char frame[FRAME_ROOM];
    desk_say(desk, client, frame, desk_subscribe_frame(frame, 7, queue, credit));
    (void)desk_expect(desk, client, HK_FRAME_ACK);
}

static inline void desk_free(desk_t *desk, int client, uint64_t delivery)
{
    char frame[FRAME_ROOM];
    desk_say(desk, client, frame, desk_free_frame(frame, 0, delivery, delivery));
}

/* The payload of a PUSH without properties. */
static inline hk_bytes_t desk_payload(const hk_frame_t *push)
{
    return hk_bytes(push->bytes.at + HK_FRAME_PUSH_BYTES, push->bytes.length - HK_FRAME_PUSH_BYTES);
}

#endif
