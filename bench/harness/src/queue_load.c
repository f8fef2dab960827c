/* queue_load: S senders and R receivers at one broker, from one thread: what M messages cost it, and how long they
 * took.
 *
 *     sender ── SEND ──► broker ── PUSH ──► receiver       queue by queue in turn; R receivers, a queue each
 *            ◄── ACK ──         ◄── FREE ──
 *
 * Without receivers the messages stay where they are; without senders those that wait are received. */
#include "clients.h"
#include "clock.h"
#include "loop.h"
#include "net.h"
#include "queue_options.h"
#include "queue_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static struct queue_options options;

static struct usage usage_now(void)
{
    return process_usage(options.pids, options.pid_count);
}

static void turn(int timeout_ms)
{
    loop_run_once(timeout_ms);
    wires_flush();
}

static void rest(void)
{
    int64_t end = clock_ns() + options.settle_ms * 1000000LL;
    while (clock_ns() < end) turn(10);
}

static long done_so_far(void)
{
    return options.receivers ? clients_tally.freed : clients_tally.answered;
}

static bool all_done(long count)
{
    const struct clients_tally *tally = &clients_tally;
    bool answered = options.senders == 0 || tally->answered == count;
    return answered && (options.receivers == 0 || tally->freed >= count);
}

/* Sends what is to be sent, and waits until it is acknowledged and freed. False when time is up. */
static bool exchange(long count)
{
    int64_t deadline = clock_ns() + options.timeout_s * 1000000000LL;
    while (!all_done(count)) {
        if (clock_ns() > deadline) {
            fprintf(stderr, "time is up: not all messages are there\n");
            return false;
        }
        clients_send();
        wires_flush();
        turn(options.rate > 0 ? 0 : 100); /* with a rate it does not sleep: a timer is late by more than a tick */
    }
    return true;
}

/* Sends for so many seconds, and counts what is done in each. */
static void sustain(struct queue_report *report)
{
    int64_t start = clock_ns(), end = start + (int64_t)(options.seconds * 1e9);
    long before = 0;
    for (int64_t now = start; now < end && clients_tally.sent < options.messages; now = clock_ns()) {
        while (now >= start + (report->whole_seconds + 1) * 1000000000LL && report->whole_seconds < QUEUE_SECONDS) {
            report->done_each_second[report->whole_seconds++] = done_so_far() - before;
            before = done_so_far();
        }
        clients_send();
        wires_flush();
        turn(100);
    }
    clients_stop();
    options.messages = (int)clients_tally.sent;
}

static void measure(struct queue_report *report)
{
    if (options.senders) clients_begin(options.warmup, options.messages);
    report->before = usage_now();
    int64_t start = clock_ns();
    if (options.seconds > 0) sustain(report);
    exchange(options.messages);
    report->seconds = (double)(clock_ns() - start) / 1e9;
    report->delivery_seconds = (double)(clients_tally.last_ns - start) / 1e9;
    report->after = usage_now();
}

static bool is_whole(void)
{
    const struct clients_tally *tally = &clients_tally;
    bool received = options.receivers == 0 || (clients_lost() == 0 && tally->freed == options.messages);
    return all_done(options.messages) && received && tally->misdirected == 0 && tally->wrong == 0;
}

int main(int argc, char **argv)
{
    queue_options_parse(&options, argc, argv);
    alarm((unsigned)(4 * options.timeout_s + (int)options.seconds + 2 * options.settle_ms / 1000 +
                     60)); /* a broker that hangs must not hold it */
    net_raise_file_limit();
    loop_open();

    struct queue_report report = {.options = &options, .idle = usage_now(), .before = usage_now()};
    int64_t start = clock_ns();
    if (!clients_open(&options)) wire_fail("queue_load", "time is up: not all clients are ready", 37);
    report.connect_seconds = (double)(clock_ns() - start) / 1e9;
    if (options.senders) rest();
    if (options.warmup) {
        clients_begin(0, options.warmup);
        exchange(options.warmup);
    }
    measure(&report);
    report.ready_seconds = (double)(clients_tally.ready_ns - start) / 1e9;
    report.first_seconds = (double)(clients_tally.first_ns - start) / 1e9;

    queue_report_print_line(&report, stderr);
    queue_report_print_json(&report, stdout);
    return is_whole() ? 0 : 1;
}
