/* counting_client PORT COUNT: opens COUNT event streams, which are read as they come, and looks whether each brings the
 * events "data: 0", "data: 1", … each once and in order.
 *
 * The request is read from standard input up to an empty line of its own ("."), then one command a line:
 *
 *     count     answered with "LEAST MOST WRONG ENDED": events of the stream with the fewest and with the most, events
 *               that were not the next one, streams that have ended
 *
 * "open" is printed when all streams have begun. The end of the input ends the program. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    IN_FLIGHT = 256, /* connections that have not begun */
    LINE = 64,
    INPUT = 65536
};

struct stream {
    int fd;
    int events;
    int line_length;
    bool begun, in_body, ended;
    char line[LINE];
};

static struct stream *streams;
static int count, opened, begun, ended, wrong, loop;
static char request[INPUT];
static size_t request_length;
static struct sockaddr_in address = {.sin_family = AF_INET};

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void read_request(void)
{
    char line[INPUT];
    while (fgets(line, sizeof line, stdin) && strcmp(line, ".\n") != 0) {
        size_t length = strlen(line) - 1;
        if (request_length + length + 2 > sizeof request) exit(1);
        memcpy(request + request_length, line, length);
        memcpy(request + request_length + length, "\r\n", 2);
        request_length += length + 2;
    }
}

static void open_one(void)
{
    struct stream *stream = &streams[opened++];
    stream->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (stream->fd < 0) fail("socket");
    if (connect(stream->fd, (struct sockaddr *)&address, sizeof address) != 0) fail("connect");
    if (write(stream->fd, request, request_length) != (ssize_t)request_length) fail("write");
    fcntl(stream->fd, F_SETFL, O_NONBLOCK);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = stream};
    if (epoll_ctl(loop, EPOLL_CTL_ADD, stream->fd, &event) != 0) fail("epoll_ctl");
}

static void take_line(struct stream *stream)
{
    stream->line[stream->line_length] = 0;
    if (!stream->in_body) {
        if (stream->line_length > 1) return;
        stream->in_body = true;
    } else if (!stream->begun) {
        stream->begun = true;
        begun++;
    }
    if (strncmp(stream->line, "data: ", 6) != 0) return;
    if (atoi(stream->line + 6) == stream->events) {
        stream->events++;
    } else {
        wrong++;
    }
}

static void end_one(struct stream *stream)
{
    if (!stream->begun) {
        printf("refused %d: %s\n", begun, stream->line);
        exit(1);
    }
    close(stream->fd);
    stream->ended = true;
    ended++;
}

static void read_one(struct stream *stream)
{
    char bytes[INPUT];
    ssize_t got;
    while ((got = read(stream->fd, bytes, sizeof bytes)) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            if (bytes[i] == '\n') {
                take_line(stream);
                stream->line_length = 0;
            } else if (stream->line_length < LINE - 1) {
                stream->line[stream->line_length++] = bytes[i];
            }
        }
        if ((size_t)got < sizeof bytes) return;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR)) end_one(stream);
}

static void print_counts(void)
{
    int least = streams[0].events, most = least;
    for (int i = 0; i < count; i++) {
        if (streams[i].events < least) least = streams[i].events;
        if (streams[i].events > most) most = streams[i].events;
    }
    printf("%d %d %d %d\n", least, most, wrong, ended);
}

static bool read_commands(void)
{
    char bytes[256];
    ssize_t got = read(STDIN_FILENO, bytes, sizeof bytes);
    if (got <= 0) return false;
    for (ssize_t i = 0; i < got; i++) {
        if (bytes[i] == '\n') print_counts();
    }
    return true;
}

static void run(void)
{
    struct epoll_event events[256];
    bool said = false;
    for (;;) {
        while (opened < count && opened - begun < IN_FLIGHT) open_one();
        int ready = epoll_wait(loop, events, 256, -1);
        for (int i = 0; i < ready; i++) {
            if (events[i].data.ptr) {
                read_one(events[i].data.ptr);
            } else if (!read_commands()) {
                return;
            }
        }
        if (begun == count && !said) {
            said = true;
            puts("open");
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    address.sin_port = htons((uint16_t)atoi(argv[1]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    count = atoi(argv[2]);
    streams = calloc((size_t)count, sizeof *streams);
    if (!streams) return 1;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    loop = epoll_create1(0);
    if (loop < 0) fail("epoll_create1");
    read_request();
    struct epoll_event input = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(loop, EPOLL_CTL_ADD, STDIN_FILENO, &input) != 0) fail("epoll_ctl");
    run();
    return 0;
}
