/* load: opens N event streams to one server, publishes M messages to it over HTTP, and says what that cost
 * the server and how long the messages took. */
#include "clock.h"
#include "loop.h"
#include "net.h"
#include "options.h"
#include "process.h"
#include "publishers.h"
#include "report.h"
#include "subscribers.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct options options;

/* For a program that has something else to do in the meantime. */
static void say(const char *phase)
{
    fprintf(stderr, "%s\n", phase);
    fflush(stderr);
}

static struct usage usage_now(void)
{
    return process_usage(options.pids, options.pid_count);
}

static void rest(void)
{
    int64_t end = clock_ns() + options.settle_ms * 1000000LL;
    while (clock_ns() < end) loop_run_once(10);
}

static struct report_connect connect_phase(void)
{
    struct report_connect phase = {.before = usage_now()};
    int64_t start = clock_ns();
    if (!subscribers_open(&options)) fprintf(stderr, "time is up: not all subscribers are connected\n");
    phase.seconds = (double)(clock_ns() - start) / 1e9;
    say("connected");
    rest();
    phase.after = usage_now();
    return phase;
}

static bool due(int sent, int64_t start)
{
    return options.rate == 0 || (double)(clock_ns() - start) / 1e9 * options.rate >= sent;
}

/* Publishes `count` messages, numbered from `first`, and waits until all have what they are to have. */
static struct report_publish publish_phase(int first, int count)
{
    subscribers_reset(first);
    publishers_reset();
    struct report_publish phase = {.before = usage_now()};
    int64_t start = clock_ns(), deadline = start + options.timeout_s * 1000000000LL;
    int sent = 0;
    while (sent < count || subscribers_tally.delivered < phase.expected || publishers_waiting()) {
        if (clock_ns() > deadline) {
            fprintf(stderr, "time is up: not all messages are delivered\n");
            break;
        }
        bool idle = subscribers_tally.delivered >= phase.expected && publishers_waiting() == 0;
        while (sent < count && (idle || !options.sync) && due(sent, start)) {
            long receivers = subscribers_of_message(first + sent);
            if (!publishers_send(first + sent)) break;
            phase.expected += receivers;
            sent++;
            idle = false;
        }
        loop_run_once(options.rate > 0 && sent < count ? 1 : 100);
    }
    phase.delivery_seconds = (double)(subscribers_tally.last_ns - start) / 1e9;
    phase.answer_seconds = (double)(publishers_tally.last_ns - start) / 1e9;
    phase.after = usage_now();
    return phase;
}

int main(int argc, char **argv)
{
    options_parse(&options, argc, argv);
    net_raise_file_limit();
    loop_open();

    struct report report = {.options = &options, .connect = connect_phase()};
    publishers_open(&options);
    rest();
    publish_phase(0, options.warmup);
    say("publishing");
    report.publish = publish_phase(options.warmup, options.messages);

    report_print_line(&report, stderr);
    report_print_json(&report, stdout);
    bool whole = subscribers_tally.delivered == report.publish.expected && subscribers_tally.dead == 0 &&
                 subscribers_tally.misdirected == 0 && publishers_tally.refused == 0;
    return whole ? 0 : 1;
}
