/* shaper: a link between two networks: a TUN device in each, and between them a rate, a delay, jitter, loss, and a line that is released
 * when it is idle. It needs root, and no kernel module but tun.
 *
 *     shaper --left NETWORK --right NETWORK --device NAME [--up BITS] [--down BITS] [--delay MS] [--loss SHARE] …
 *
 * Up is from left to right. Prints "ready" when the devices exist; its parent gives them addresses. On TERM it prints
 * one JSON object, the fate of the packets of either direction, and ends. A rate is that of IP packets. */
#include "bench.h"
#include "lane.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { PACKET_BYTES = 65536, BURST = 64, SIDES = 2, MOST_NAME = 15 };

static const double QUEUE_SECONDS = 0.25; /* of the rate: what waits at most, unless said */
static const double LEAST_QUEUE = 100000; /* bytes */

struct options {
    const char *left, *right, *device;
    double up, down; /* bits a second; 0: no limit */
    double delay_ms, jitter_ms, loss, queue;
    double setup_ms, idle_ms;
    double turn_ms, factor;
    int seed;
};

static const struct flag table[] = {
    TEXT("left", left, "NETWORK", "a network namespace by its name"),
    TEXT("right", right, "NETWORK", "another"),
    TEXT("device", device, "NAME", "of the device in each (shaped)"),
    REAL("up", up, "BITS", "a second, from left to right (no limit)"),
    REAL("down", down, "BITS", "a second, from right to left (no limit)"),
    REAL("delay", delay_ms, "MS", "of delay, either way (0)"),
    REAL("jitter", jitter_ms, "MS", "more, at random up to this, without overtaking (0)"),
    REAL("loss", loss, "SHARE", "of the packets, either way (0)"),
    REAL("queue", queue, "BYTES", "that wait at most (a quarter of a second, at least 100,000)"),
    REAL("setup", setup_ms, "MS", "that an idle line takes to be there again, with --idle (0)"),
    REAL("idle", idle_ms, "MS", "without a packet, either way, until the line is released"),
    REAL("turn", turn_ms, "MS", "after the first packet the rates change, with --factor (never)"),
    REAL("factor", factor, "TIMES", "as fast as before, from then on"),
    NUMBER("seed", seed, "N", "of losses and jitter (1)"),
};

static volatile sig_atomic_t is_over;

static void on_term(int signal)
{
    (void)signal;
    is_over = 1;
}

static void enter(const char *network)
{
    char path[256];
    snprintf(path, sizeof path, "/var/run/netns/%.200s", network);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || setns(fd, CLONE_NEWNET)) fail(path);
    close(fd);
}

/* The device belongs to the network in which it is opened, and exists until it is closed. */
static int open_device(const char *network, const char *name)
{
    enter(network);
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) fail("/dev/net/tun");
    struct ifreq request = {.ifr_flags = IFF_TUN | IFF_NO_PI};
    memcpy(request.ifr_name, name, strlen(name));
    if (ioctl(fd, TUNSETIFF, &request)) fail(name);
    return fd;
}

static int64_t nanoseconds(double milliseconds)
{
    return (int64_t)(milliseconds * 1e6);
}

static void check(const struct options *o)
{
    if (!o->left || !o->right) flags_refuse("--left and --right name two networks");
    if (strlen(o->device) < 1 || strlen(o->device) > MOST_NAME) flags_refuse("--device has 1 to 15 letters");
    if (o->up < 0 || o->down < 0 || o->delay_ms < 0 || o->jitter_ms < 0) flags_refuse("rates, delay and jitter cannot be negative");
    if (o->setup_ms < 0 || o->idle_ms < 0) flags_refuse("--setup and --idle cannot be negative");
    if ((o->setup_ms > 0) != (o->idle_ms > 0)) flags_refuse("--setup and --idle go together");
    if (o->turn_ms < 0 || o->factor < 0) flags_refuse("--turn and --factor cannot be negative");
    if ((o->turn_ms > 0) != (o->factor > 0)) flags_refuse("--turn and --factor go together");
    if (o->loss < 0 || o->loss > 1) flags_refuse("--loss is 0 to 1");
}

static void open_lane(struct lane *lane, const struct options *o, double rate, struct line *line, uint64_t seed)
{
    double most = rate / 8 * QUEUE_SECONDS;
    if (most < LEAST_QUEUE) most = LEAST_QUEUE;
    struct lane_settings settings = {.bits_per_second = rate,
                                     .delay_ns = nanoseconds(o->delay_ms),
                                     .jitter_ns = nanoseconds(o->jitter_ms),
                                     .loss = o->loss,
                                     .most_bytes = o->queue > 0 ? o->queue : most,
                                     .seed = seed,
                                     .line = line};
    lane_open(lane, &settings);
}

/* Reads packets, at most a burst. */
static void take_in(struct lane *lane, int fd)
{
    static unsigned char bytes[PACKET_BYTES];
    for (int i = 0; i < BURST; i++) {
        ssize_t length = read(fd, bytes, sizeof bytes);
        if (length <= 0) return;
        lane_put(lane, clock_ns(), bytes, (size_t)length);
    }
}

/* Writes the packets that are due. A device that is down refuses them: they count as lost. */
static void give_out(struct lane *lane, int fd)
{
    struct packet *packet;
    while ((packet = lane_take(lane, clock_ns()))) {
        ssize_t written = write(fd, packet->bytes, packet->length);
        if (written < 0 && errno == EBADF) fail("write");
        free(packet);
    }
}

static void wait_for_either(const int fds[SIDES], int64_t next)
{
    struct pollfd ready[SIDES] = {{.fd = fds[0], .events = POLLIN}, {.fd = fds[1], .events = POLLIN}};
    int64_t left = next == INT64_MAX ? 1000000000 : next - clock_ns();
    if (left < 0) left = 0;
    struct timespec timeout = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
    ppoll(ready, SIDES, &timeout, NULL);
}

/* A link does not wait for a core. Without this priority it is late on a busy machine. */
static void be_prompt(void)
{
    struct sched_param priority = {.sched_priority = 1};
    prctl(PR_SET_TIMERSLACK, 1UL);
    if (sched_setscheduler(0, SCHED_FIFO, &priority)) perror("shaper: it has no priority");
}

static void print_counts(const char *name, const struct lane_counts *counts, const char *end)
{
    printf("\"%s\": {\"packets\": %ld, \"bytes\": %ld, \"dropped\": %ld, \"lost\": %ld, \"delivered\": %ld}%s", name,
           counts->packets, counts->bytes, counts->dropped, counts->lost, counts->delivered, end);
}

int main(int argc, char **argv)
{
    struct options options = {.device = "shaped", .seed = 1};
    flags_parse("shaper", table, sizeof table / sizeof *table, &options, argc, argv);
    check(&options);
    struct sigaction action = {.sa_handler = on_term};
    sigaction(SIGTERM, &action, NULL);
    be_prompt();

    struct line line = {.setup_ns = nanoseconds(options.setup_ms), .idle_ns = nanoseconds(options.idle_ms)};
    struct lane up, down;
    open_lane(&up, &options, options.up, &line, (uint64_t)options.seed * 2 + 1);
    open_lane(&down, &options, options.down, &line, (uint64_t)options.seed * 2 + 2);
    int fds[SIDES] = {open_device(options.left, options.device), open_device(options.right, options.device)};
    printf("ready\n");
    fflush(stdout);

    int64_t turn_at = INT64_MAX;
    while (!is_over) {
        if (turn_at == INT64_MAX && options.turn_ms > 0 && up.counts.packets > 0) turn_at = clock_ns() + nanoseconds(options.turn_ms);
        if (turn_at <= clock_ns()) {
            lane_turn(&up, clock_ns(), options.factor);
            lane_turn(&down, clock_ns(), options.factor);
            options.turn_ms = 0;
            turn_at = INT64_MAX;
        }
        int64_t next = lane_next(&up) < lane_next(&down) ? lane_next(&up) : lane_next(&down);
        wait_for_either(fds, next < turn_at ? next : turn_at);
        take_in(&up, fds[0]);
        take_in(&down, fds[1]);
        give_out(&up, fds[1]);
        give_out(&down, fds[0]);
    }
    printf("{");
    print_counts("up", &up.counts, ", ");
    print_counts("down", &down.counts, "}\n");
    return 0;
}
