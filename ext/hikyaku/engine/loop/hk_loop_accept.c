#include "hk_loop_broker_private.h"

#include <errno.h>
#include <netinet/tcp.h>

/* Before it is tried again, when no descriptor or no memory is left for a connection. */
#define PAUSE (100 * HK_MILLISECOND)

/* Without a request, or with a part of a head, after which a connection may be given to somebody else. */
#define ENOUGH_IDLENESS HK_SECOND

/* --- listeners ---------------------------------------------------------------------------------------------------- */

static void drop_listener(hk_loop_t *loop, hk_listener_t *listener)
{
    hk_watch_end(loop, &listener->watch);
    loop->sys->close(loop->sys->context, listener->watch.fd);
    hk_list_remove(&listener->link);
    hk_list_append(&loop->closed_listeners, &listener->link);
}

static void send_at_once(hk_loop_t *loop, int fd)
{
    static const int one = 1;
    (void)loop->sys->set_option(loop->sys->context, fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static bool is_none(int error)
{
    return error == EBADF || error == EINVAL || error == ENOTSOCK || error == EOPNOTSUPP || error == EPERM;
}

/* Accepting would wait, if another process were faster. */
static bool watch(hk_loop_t *loop, hk_listener_t *listener)
{
    if (!listener->watched) {
        listener->watched = loop->sys->set_nonblocking(loop->sys->context, listener->watch.fd) >= 0 &&
                            hk_watch_add(loop, &listener->watch);
        return listener->watched;
    }
    return hk_watch_arm(loop, &listener->watch, EPOLLIN);
}

/* Now, or when it is tried again. */
static void begin_to_accept(hk_loop_t *loop, hk_listener_t *listener)
{
    if (watch(loop, listener)) {
        return;
    }
    if (is_none(errno)) {
        drop_listener(loop, listener);
    } else {
        loop->accept_at = hk_later(loop->now, PAUSE);
    }
}

void hk_listener_open(hk_loop_t *loop, const hk_wish_t *wish)
{
    hk_listener_t *listener = loop->stopping ? NULL : hk_alloc_zeroed(loop->alloc, 1, sizeof(*listener));
    if (listener == NULL) {
        loop->sys->close(loop->sys->context, wish->fd);
        return;
    }
    listener->watch = (hk_watch_t){.fd = wish->fd, .kind = HK_WATCH_LISTENER};
    listener->tcp = wish->tcp;
    listener->broker = wish->broker;
    hk_list_append(&loop->listeners, &listener->link);
    if (listener->tcp) {
        send_at_once(loop, wish->fd);
    }
    if (listener->tcp && !listener->broker) {
        hk_stream_tune(loop, wish->fd, true);
    }
    begin_to_accept(loop, listener);
}

void hk_listeners_close(hk_loop_t *loop)
{
    for (hk_list_t *link; (link = hk_list_first(&loop->listeners)) != NULL;) {
        drop_listener(loop, HK_OWNER(link, hk_listener_t, link));
    }
    loop->accept_at = HK_NEVER;
}

static void pause_accepting(hk_loop_t *loop, hk_listener_t *listener)
{
    loop->stats.accept_pauses++;
    if (hk_watch_arm(loop, &listener->watch, 0)) {
        loop->accept_at = hk_later(loop->now, PAUSE);
    }
}

void hk_listeners_resume(hk_loop_t *loop)
{
    loop->accept_at = HK_NEVER;
    for (hk_list_t *link = loop->listeners.next, *next; link != &loop->listeners; link = next) {
        next = link->next;
        begin_to_accept(loop, HK_OWNER(link, hk_listener_t, link));
    }
}

/* --- connections -------------------------------------------------------------------------------------------------- */

static bool full(const hk_loop_t *loop)
{
    return loop->options.max_connections > 0 &&
           loop->connection_count - loop->stats.sessions >= loop->options.max_connections;
}

static uint64_t retry_after(hk_loop_t *loop)
{
    hk_loop_lock(loop);
    return 1 + hk_hub_reconnection_delay(loop->options.hub) / 1000;
}

static bool give_up_oldest(hk_loop_t *loop, hk_phase_t phase, uint64_t *given_up)
{
    hk_connection_t *oldest = hk_loop_idle_for_long(loop, phase);
    if (oldest == NULL) {
        return false;
    }
    (*given_up)++;
    hk_connection_close(loop, oldest);
    return true;
}

/* When there is no room, a connection makes some that has sent no whole head for a while, or does not get on with a
 * body: first one that has never had a head. To be told why would take the room again. */
bool hk_loop_make_room(hk_loop_t *loop)
{
    return !full(loop) || give_up_oldest(loop, HK_PHASE_HEAD, &loop->stats.timed_out_heads) ||
           give_up_oldest(loop, HK_PHASE_IDLE, &loop->stats.timed_out_idle) ||
           give_up_oldest(loop, HK_PHASE_BODY, &loop->stats.timed_out_heads);
}

hk_connection_t *hk_loop_idle_for_long(const hk_loop_t *loop, hk_phase_t phase)
{
    const hk_list_t *phases = &loop->phases[phase];
    hk_connection_t *oldest = phases->next != phases ? HK_OWNER(phases->next, hk_connection_t, link) : NULL;
    return oldest != NULL && hk_later(oldest->since, ENOUGH_IDLENESS) <= loop->now ? oldest : NULL;
}

/* Of those that have had the longest time to read why they were refused, one has to go when there are many. */
void hk_loop_make_room_for_refusal(hk_loop_t *loop)
{
    if (loop->refused_count >= HK_REFUSED) {
        hk_list_t *oldest = hk_list_first(&loop->phases[HK_PHASE_REFUSED]);
        hk_connection_close(loop, HK_OWNER(oldest, hk_connection_t, link));
    }
}

/* The client is told before it is closed, and has time to read it. */
static void turn_away(hk_loop_t *loop, int fd, const char *why)
{
    char room[HK_REFUSAL_BYTES];
    hk_refusal_t refusal = {.status = 429, .detail = why, .retry_after = retry_after(loop), .date = hk_loop_date(loop)};
    hk_loop_make_room_for_refusal(loop);
    hk_connection_t *connection = hk_connection_open(loop, fd, HK_PHASE_REFUSED);
    if (connection == NULL) {
        return;
    }
    hk_bytes_t text = hk_refusal_write(&refusal, room);
    (void)loop->sys->send(loop->sys->context, fd, text.at, text.length);
    (void)loop->sys->shutdown(loop->sys->context, fd, SHUT_WR);
}

/* A proxy's address is that of all its clients. */
static hk_status_t count_at_address(hk_loop_t *loop, hk_bytes_t peer, hk_address_t **address)
{
    *address = NULL;
    if (loop->options.max_of_address == 0 || !hk_gate_counts(loop->options.gate, peer)) {
        return HK_OK;
    }
    return hk_address_enter(&loop->addresses, peer, loop->options.max_of_address, address);
}

static hk_connection_t *open_counted(hk_loop_t *loop, int fd, hk_bytes_t peer, hk_address_t *address)
{
    hk_connection_t *connection = hk_connection_open(loop, fd, HK_PHASE_HEAD);
    if (connection == NULL || !hk_connection_serve(loop, connection)) {
        if (address != NULL) {
            hk_address_leave(&loop->addresses, address);
        }
        return NULL;
    }
    connection->http->address = address;
    connection->http->peer_length = (uint8_t)peer.length;
    memcpy(connection->http->peer, peer.at, peer.length);
    return connection;
}

/* A connection that waits for its first request; NULL: there is no room for it, and it was told so if it could be. */
static hk_connection_t *open_connection(hk_loop_t *loop, int fd, const struct sockaddr_storage *socket_address,
                                        socklen_t length)
{
    char text[INET6_ADDRSTRLEN];
    hk_bytes_t peer = hk_bytes(text, hk_peer_text(socket_address, length, text));
    hk_address_t *address;
    if (!hk_loop_make_room(loop)) {
        loop->stats.refused_connections++;
        turn_away(loop, fd, "the hub holds as many connections as it may");
        return NULL;
    }
    switch (count_at_address(loop, peer, &address)) {
    case HK_OK:
        return open_counted(loop, fd, peer, address);
    case HK_TOO_MANY_OF_ADDRESS:
        loop->stats.refused_of_address++;
        turn_away(loop, fd, "your address holds as many connections as it may");
        return NULL;
    default:
        hk_loop_hang_up(loop, fd);
        return NULL;
    }
}

static void welcome(hk_loop_t *loop, int fd, const hk_listener_t *listener, const struct sockaddr_storage *address,
                    socklen_t length)
{
    loop->stats.accepted++;
    if (listener->tcp && !listener->tuned) {
        send_at_once(loop, fd);
    }
    if (listener->broker) {
        char text[INET6_ADDRSTRLEN];
        size_t size = listener->tcp ? hk_peer_text(address, length, text) : hk_process_text(loop->sys, fd, text);
        hk_client_welcome(loop, fd, hk_bytes(text, size));
        return;
    }
    hk_connection_t *connection = open_connection(loop, fd, address, length);
    if (connection == NULL) {
        return;
    }
    connection->tuned = listener->tuned;
    hk_http_readable(loop, connection);
}

/* What is wrong with one connection does not concern the next. */
static bool of_connection(int error)
{
    return error == EINTR || error == ECONNABORTED || error == EPROTO || error == ENETDOWN || error == ENOPROTOOPT ||
           error == EHOSTDOWN || error == ENONET || error == EHOSTUNREACH || error == ENETUNREACH || error == EPERM ||
           error == ETIMEDOUT || error == ECONNRESET;
}

void hk_listener_accept(hk_loop_t *loop, hk_listener_t *listener)
{
    for (int i = 0; i < HK_ACCEPTS && loop->budget > 0; i++) {
        struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
        socklen_t length = sizeof(address);
        int fd = loop->sys->accept(loop->sys->context, listener->watch.fd, (struct sockaddr *)&address, &length);
        if (fd >= 0) {
            welcome(loop, fd, listener, &address, length);
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            listener->tuned = listener->tcp;
            return;
        } else if (!of_connection(errno)) {
            is_none(errno) ? drop_listener(loop, listener) : pause_accepting(loop, listener);
            return;
        }
    }
}

void hk_connection_adopt(hk_loop_t *loop, int fd, hk_bytes_t bytes)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    socklen_t length = sizeof(address);
    if (loop->stopping) {
        hk_loop_hang_up(loop, fd);
        return;
    }
    if (loop->sys->peer(loop->sys->context, fd, (struct sockaddr *)&address, &length) < 0) {
        length = 0;
    }
    hk_connection_t *connection = open_connection(loop, fd, &address, length);
    if (connection == NULL) {
        return;
    }
    if (connection->http->peer_length > 0) {
        send_at_once(loop, fd);
    }
    hk_http_take(loop, connection, bytes);
}
