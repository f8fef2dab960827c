/* The loop on a thread of its own, the disk on two others, clients and whoever looks in on more; also what
 * ThreadSanitizer looks at. */
#include "hk_loop_broker_fixture.h"

enum { SENDERS = 3, MESSAGES = 300 };

typedef struct crew {
    desk_t desk;
    pthread_t loop, doorkeeper, looker, senders[SENDERS], receiver;
    atomic_bool done;
} crew_t;

static void *run_loop(void *argument)
{
    crew_t *crew = argument;
    hk_status_t status;
    while ((status = hk_loop_run(crew->desk.rig.loop)) == HK_AGAIN) {
    }
    HK_CHECK_OK(status);
    return NULL;
}

static void *decide(void *argument)
{
    static const hk_permission_t everything = {.pattern = {"*", 1}, .rights = 7};
    crew_t *crew = argument;
    hk_hello_ask_t *ask;
    hk_status_t status;
    while ((status = hk_loop_next_hello(crew->desk.rig.loop, -1, &ask)) != HK_CLOSED) {
        if (status == HK_OK) {
            HK_CHECK_OK(hk_loop_permit(crew->desk.rig.loop, ask, &everything, 1, UINT64_MAX));
        }
    }
    return NULL;
}

static void visit(void *context, const hk_queue_stats_t *stats)
{
    *(uint64_t *)context += stats->ready;
}

static void *look_in(void *argument)
{
    crew_t *crew = argument;
    while (!atomic_load(&crew->done)) {
        hk_broker_stats_t stats;
        uint64_t ready = 0;
        hk_lock_take(&crew->desk.lock);
        hk_broker_read_stats(crew->desk.broker, &stats);
        hk_broker_each_queue(crew->desk.broker, 0, visit, &ready);
        hk_lock_give(&crew->desk.lock);
        (void)rig_stats(&crew->desk.rig);
        (void)hk_loop_storage_failed(crew->desk.rig.loop, NULL);
        poll(NULL, 0, 1);
    }
    return NULL;
}

/* --- clients that wait -------------------------------------------------------------------------------------------- */

static void write_all(int fd, const char *bytes, size_t length)
{
    for (size_t at = 0; at < length;) {
        ssize_t sent = send(fd, bytes + at, length - at, MSG_NOSIGNAL);
        HK_CHECK(sent > 0);
        at += (size_t)sent;
    }
}

static hk_frame_t read_frame(int fd, char room[FRAME_ROOM])
{
    HK_CHECK(recv(fd, room, 16, MSG_WAITALL) == 16);
    size_t rest = hk_frame_u32(room) - 16;
    HK_CHECK(rest <= FRAME_ROOM - 16);
    HK_CHECK(rest == 0 || recv(fd, room + 16, rest, MSG_WAITALL) == (ssize_t)rest);
    return hk_frame(hk_bytes(room, rest + 16));
}

static int enter(crew_t *crew)
{
    char room[FRAME_ROOM];
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HK_CHECK(connect(fd, (struct sockaddr *)&crew->desk.address, crew->desk.address_length) == 0);
    write_all(fd, room, desk_hello_frame(room, "", 1, ""));
    HK_CHECK_EQUAL_INT(HK_FRAME_ACK, read_frame(fd, room).type);
    return fd;
}

static void *send_messages(void *argument)
{
    char room[FRAME_ROOM];
    crew_t *crew = argument;
    int fd = enter(crew);
    for (uint64_t i = 0; i < MESSAGES; i++) {
        hk_level_t level = (hk_level_t)(i % 3);
        write_all(fd, room, desk_send_frame(room, i + 1, level, "a", HK_BYTES("payload")));
        hk_frame_t ack = read_frame(fd, room);
        HK_CHECK_EQUAL_INT(HK_FRAME_ACK, ack.type);
        HK_CHECK_EQUAL_UINT(i + 1, ack.id);
        HK_CHECK_EQUAL_INT(level, ack.bytes.at[17]);
    }
    close(fd);
    return NULL;
}

static void *receive_messages(void *argument)
{
    char room[FRAME_ROOM];
    crew_t *crew = argument;
    int fd = enter(crew);
    write_all(fd, room, desk_subscribe_frame(room, 0, "a", 100));
    for (int i = 0; i < SENDERS * MESSAGES; i++) {
        hk_frame_t push = read_frame(fd, room);
        HK_CHECK_EQUAL_INT(HK_FRAME_PUSH, push.type);
        write_all(fd, room, desk_free_frame(room, 0, push.id, push.id));
    }
    close(fd);
    return NULL;
}

HK_TEST(loop_disk_clients_and_lookers_get_on_with_each_other)
{
    crew_t crew = {.done = false};
    desk_t *desk = &crew.desk;
    desk_clear(desk);
    desk_store(desk);
    desk->wanted.open = false;
    HK_CHECK_OK(desk_try(desk, NULL));
    desk_listen(desk);
    desk->rig.calls.never_waits = false;
    HK_CHECK(pthread_create(&crew.loop, NULL, run_loop, &crew) == 0);
    HK_CHECK(pthread_create(&crew.doorkeeper, NULL, decide, &crew) == 0);
    HK_CHECK(pthread_create(&crew.looker, NULL, look_in, &crew) == 0);
    HK_CHECK(pthread_create(&crew.receiver, NULL, receive_messages, &crew) == 0);
    for (int i = 0; i < SENDERS; i++) {
        HK_CHECK(pthread_create(&crew.senders[i], NULL, send_messages, &crew) == 0);
    }
    for (int i = 0; i < SENDERS; i++) {
        HK_CHECK(pthread_join(crew.senders[i], NULL) == 0);
    }
    HK_CHECK(pthread_join(crew.receiver, NULL) == 0);
    hk_loop_stop(desk->rig.loop);
    HK_CHECK(pthread_join(crew.loop, NULL) == 0);
    HK_CHECK(pthread_join(crew.doorkeeper, NULL) == 0);
    atomic_store(&crew.done, true);
    HK_CHECK(pthread_join(crew.looker, NULL) == 0);
    HK_CHECK_EQUAL_UINT(SENDERS * MESSAGES, desk_stats(desk).freed);
    HK_CHECK_EQUAL_UINT(0, desk_stats(desk).messages);
    desk_end(desk);
}
