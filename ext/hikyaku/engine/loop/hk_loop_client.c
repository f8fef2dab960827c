#include "hk_frame.h"
#include "hk_loop_broker_private.h"

#include <errno.h>

/* When who was turned away may come back. */
enum { COME_BACK_MS = 1000 };

/* --- coming ------------------------------------------------------------------------------------------------------- */

/* It is told, and has time to read it. */
static void turn_away(hk_loop_t *loop, hk_connection_t *connection)
{
    static const char sentence[] = "the broker has as many connections as it may";
    char frame[HK_FRAME_ERROR_BYTES + sizeof(sentence) - 1];
    hk_frame_put_error(frame, 0, HK_CODE_LIMIT, HK_SCOPE_CONNECTION, COME_BACK_MS, 0, 0, sizeof(sentence) - 1);
    memcpy(frame + HK_FRAME_ERROR_BYTES, sentence, sizeof(sentence) - 1);
    (void)loop->sys->send(loop->sys->context, connection->watch.fd, frame, sizeof(frame));
    hk_connection_refuse(loop, connection);
}

/* With all that have left, and are still there. */
static bool full(const hk_loop_t *loop)
{
    const hk_loop_options_t *options = &loop->options;
    return options->max_sessions > 0 &&
           loop->connection_count > (uint64_t)options->max_connections + options->max_sessions;
}

/* Who has not said who it is for a while gives its place to a new one. */
static bool make_room(hk_loop_t *loop)
{
    hk_connection_t *oldest = hk_loop_idle_for_long(loop, HK_PHASE_HELLO);
    if (oldest == NULL || !hk_session_is_strange(oldest->session)) {
        return false;
    }
    loop->stats.timed_out_hellos++;
    hk_connection_close(loop, oldest);
    return true;
}

static hk_session_t *begin_session(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t address)
{
    hk_broker_t *broker = hk_loop_broker(loop);
    hk_session_t *session = full(loop) ? NULL : hk_broker_connect(broker, address, connection, loop->now);
    return session == NULL && make_room(loop) ? hk_broker_connect(broker, address, connection, loop->now) : session;
}

void hk_client_welcome(hk_loop_t *loop, int fd, hk_bytes_t address)
{
    hk_connection_t *connection = hk_connection_open(loop, fd, HK_PHASE_HELLO);
    if (connection == NULL) {
        return;
    }
    hk_session_t *session = begin_session(loop, connection, address);
    if (session == NULL) {
        loop->stats.refused_connections++;
        turn_away(loop, connection);
        return;
    }
    connection->session = session;
    connection->has_session = true;
    hk_client_readable(loop, connection);
}

/* --- going -------------------------------------------------------------------------------------------------------- */

void hk_client_leave(hk_loop_t *loop, hk_connection_t *connection)
{
    if (connection->has_session) {
        hk_broker_disconnect(hk_loop_broker(loop), connection->session, loop->now, hk_loop_wall_ms(loop));
        connection->has_session = false;
        connection->subscriber = 0;
    }
}

/* Everything was said. */
static void part(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_client_leave(loop, connection);
    hk_connection_linger(loop, connection);
}

void hk_clients_part(hk_loop_t *loop)
{
    for (size_t phase = HK_PHASE_HELLO; phase <= HK_PHASE_STALLED; phase++) {
        for (hk_list_t *first; (first = hk_list_first(&loop->phases[phase])) != NULL;) {
            part(loop, HK_OWNER(first, hk_connection_t, link));
        }
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Watches for what it waits for; a session that cannot be watched ends. */
static void watch(hk_loop_t *loop, hk_connection_t *connection, bool reads)
{
    uint32_t room = connection->phase == HK_PHASE_STALLED ? EPOLLOUT : 0;
    if (!hk_watch_arm(loop, &connection->watch, room | (reads && !connection->deaf ? EPOLLIN : 0))) {
        hk_connection_close(loop, connection);
    }
}

/* It is read again when it has got answers. */
static void wait_for_answers(hk_loop_t *loop, hk_connection_t *connection)
{
    if (connection->phase == HK_PHASE_SESSION) {
        hk_connection_enter(loop, connection, HK_PHASE_FULL);
    }
    watch(loop, connection, false);
}

void hk_clients_resume(hk_loop_t *loop)
{
    hk_list_t *full = &loop->phases[HK_PHASE_FULL];
    for (hk_list_t *link = full->next, *next; link != full; link = next) {
        hk_connection_t *connection = HK_OWNER(link, hk_connection_t, link);
        next = link->next;
        if (!hk_session_full(connection->session)) {
            hk_connection_enter(loop, connection, HK_PHASE_SESSION);
            watch(loop, connection, true);
        }
    }
}

static void take(hk_loop_t *loop, hk_connection_t *connection, hk_bytes_t bytes)
{
    hk_broker_t *broker = hk_loop_broker(loop);
    hk_session_t *session = connection->session;
    if (hk_broker_receive(broker, session, bytes, loop->now, hk_loop_wall_ms(loop)) == HK_OK) {
        return;
    }
    connection->deaf = true;
    if (hk_session_over(session)) {
        part(loop, connection);
    } else {
        watch(loop, connection, false);
    }
}

void hk_client_readable(hk_loop_t *loop, hk_connection_t *connection)
{
    hk_brokerage_t *brokerage = loop->brokerage;
    if (hk_session_full(connection->session)) {
        wait_for_answers(loop, connection);
        return;
    }
    ssize_t got =
        loop->sys->receive(loop->sys->context, connection->watch.fd, brokerage->room, sizeof(brokerage->room));
    if (got <= 0) {
        if (got == 0 || hk_loop_broken(loop, errno)) {
            hk_connection_close(loop, connection);
        }
        return;
    }
    loop->stats.bytes_in += (uint64_t)got;
    brokerage->budget -= got;
    take(loop, connection, hk_bytes(brokerage->room, (size_t)got));
}

/* --- writing ------------------------------------------------------------------------------------------------------ */

static size_t sum(const struct iovec *parts, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        bytes += parts[i].iov_len;
    }
    return bytes;
}

static ssize_t send_parts(hk_loop_t *loop, const hk_connection_t *connection, size_t count)
{
    const struct iovec *parts = loop->brokerage->parts;
    if (count == 1) {
        return loop->sys->send(loop->sys->context, connection->watch.fd, parts->iov_base, parts->iov_len);
    }
    return loop->sys->send_parts(loop->sys->context, connection->watch.fd, parts, count);
}

/* Whoever gets on with writing has all its time again. */
static void wait_for_room(hk_loop_t *loop, hk_connection_t *connection, bool got_on)
{
    if (connection->phase != HK_PHASE_STALLED || got_on) {
        hk_connection_enter(loop, connection, HK_PHASE_STALLED);
    }
    watch(loop, connection, (connection->watch.armed & EPOLLIN) != 0);
}

/* Everything has left. */
static void go_on(hk_loop_t *loop, hk_connection_t *connection)
{
    if (hk_session_over(connection->session)) {
        part(loop, connection);
    } else if (connection->phase == HK_PHASE_HELLO || connection->phase == HK_PHASE_STALLED) {
        bool reads = !hk_session_full(connection->session);
        hk_connection_enter(loop, connection, reads ? HK_PHASE_SESSION : HK_PHASE_FULL);
        watch(loop, connection, reads);
    }
}

size_t hk_client_send(hk_loop_t *loop, hk_session_t *session)
{
    hk_connection_t *connection = hk_session_context(session);
    size_t count = (size_t)hk_session_gather(session, loop->brokerage->parts, HK_PARTS);
    size_t bytes = sum(loop->brokerage->parts, count);
    ssize_t sent = count > 0 ? send_parts(loop, connection, count) : 0;
    if (sent < 0 && hk_loop_broken(loop, errno)) {
        hk_connection_close(loop, connection);
        return 0;
    }
    size_t taken = sent > 0 ? (size_t)sent : 0;
    loop->stats.bytes_out += taken;
    hk_session_wrote(session, taken);
    if (taken < bytes) {
        wait_for_room(loop, connection, taken > 0);
    } else {
        go_on(loop, connection);
    }
    return taken;
}

/* It stays where it is, and is watched, until everything has left. */
void hk_client_writable(hk_loop_t *loop, hk_connection_t *connection)
{
    (void)hk_loop_broker(loop);
    hk_session_writable(connection->session);
}
