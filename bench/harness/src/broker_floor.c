/* broker_floor: the least that a broker can do. What a broker costs is said as a multiple of it.
 *
 *     broker_floor HOST:PORT                 memory only
 *     broker_floor HOST:PORT LOG             every message and every end of one is appended to LOG, one write() a turn
 *     broker_floor HOST:PORT LOG synced      and fdatasync()ed before any answer of the turn: group commit
 *
 * All requests of one turn of epoll are handled, then logged, then answered: one send() for each connection. It
 * knows no leases, no priorities, no names but the number behind a dot, and checks nothing. It speaks beanstalkd's
 * protocol, with one message in a receiver's hand, or the project's own, with as many as there is credit for. */
#include "floor_queues.h"
#include "loop.h"
#include "net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { HOST_BYTES = 64 };

static void serve(struct connection *connection, uint32_t events)
{
    struct floor_client *client = (struct floor_client *)connection;
    struct wire *wire = &client->wire;
    if (events & EPOLLOUT) wire_extend(wire, 0);
    if (!(events & ~(uint32_t)EPOLLOUT)) return;
    if (!wire_read(wire)) {
        floor_leave(client);
        wire_close(wire);
        free(client);
        return;
    }
    size_t used = 1;
    while (wire->in.from < wire->in.to && used) {
        char *bytes = wire->in.bytes + wire->in.from;
        size_t length = wire->in.to - wire->in.from;
        bool text =
            *bytes >= 'a' && *bytes <= 'z' && length > 4 && bytes[3] >= ' '; /* a frame is shorter than 2^29 bytes */
        used = text ? floor_take_text(client, bytes, length) : floor_take_frame(client, bytes, length);
        wire_took(wire, used);
    }
    floor_answer_frames(client);
}

static void accept_all(struct connection *listener, uint32_t events)
{
    int fd;
    while (events && (fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct floor_client *client = calloc(1, sizeof *client);
        if (!client) exit(2);
        client->queue = -1;
        net_send_at_once(fd);
        wire_open(&client->wire, fd, serve);
    }
}

int main(int argc, char **argv)
{
    char host[HOST_BYTES];
    int port;
    if (argc < 2 || argc > 4 || sscanf(argv[1], "%63[^:]:%d", host, &port) != 2) {
        fprintf(stderr, "usage: broker_floor HOST:PORT [LOG [synced]]\n");
        return 2;
    }
    floor_open(argc > 2 ? argv[2] : NULL, argc > 3 && strcmp(argv[3], "synced") == 0);
    net_raise_file_limit();
    loop_open();
    struct connection listener = {.fd = net_listen_on(host, port), .on_ready = accept_all};
    loop_watch(&listener, EPOLLIN);
    for (;;) {
        loop_run_once(-1);
        floor_commit();
        wires_flush();
    }
}
