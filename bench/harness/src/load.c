/* load: opens N event streams to one server, publishes M messages to it over HTTP, and says what that cost
 * the server and how long the messages took. */
#include "clock.h"
#include "loop.h"
#include "memory.h"
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

static void rest(int milliseconds)
{
    int64_t end = clock_ns() + milliseconds * 1000000LL;
    while (clock_ns() < end) loop_run_once(10);
}

static struct report_connect connect_phase(void)
{
    struct report_connect phase = {.before = usage_now()};
    int64_t start = clock_ns();
    if (!subscribers_open(&options)) fprintf(stderr, "time is up: not all subscribers are connected\n");
    phase.seconds = (double)(clock_ns() - start) / 1e9;
    phase.bytes_in = subscribers_tally.bytes;
    phase.bytes_out = subscribers_tally.bytes_out;
    say("connected");
    rest(options.settle_ms);
    phase.after = usage_now();
    return phase;
}

static bool due(int sent, int64_t start)
{
    return options.rate == 0 || (double)(clock_ns() - start) / 1e9 * options.rate >= sent;
}

enum { BURST = 64 }; /* messages between two looks at what has come */

static bool all_have_the_last(const struct report_publish *phase)
{
    return subscribers_tally.delivered >= phase->expected && publishers_waiting() == 0;
}

/* Whether the next, after so many, waits for nobody: with --sync the first of those that leave together waits for all. */
static bool may_leave(const struct report_publish *phase, int sent)
{
    return !options.sync || sent % options.together != 0 || all_have_the_last(phase);
}

/* Publishes what can be published now, from message `first`, and says how many. */
static int publish_some(struct report_publish *phase, int first, int most, int sent_before, int64_t start)
{
    int sent = 0;
    if (most > BURST) most = BURST;
    while (sent < most && may_leave(phase, sent_before + sent) && due(sent_before + sent, start) &&
           publishers_send(first + sent)) {
        bool unread = options.warmup_prefix && first + sent < options.warmup;
        if (!unread) phase->expected += subscribers_expect(first + sent);
        sent++;
    }
    if (options.pipeline) publishers_flush();
    return sent;
}

/* Publishes `count` messages, or for so many seconds, and waits until all have what they are to have. The first of
 * them has the number `first`. */
static struct report_publish publish_phase(int first, int count, double seconds)
{
    subscribers_reset(first);
    publishers_reset();
    struct report_publish phase = {.before = usage_now()};
    int64_t start = clock_ns(), deadline = start + options.timeout_s * 1000000000LL;
    int64_t stop = start + (int64_t)(seconds * 1e9);
    long dead = subscribers_tally.dead;
    int sent = 0;
    if (seconds > 0) count = INT32_MAX - first;
    while (sent < count || !all_have_the_last(&phase)) {
        if (clock_ns() > deadline || subscribers_tally.dead > dead) {
            const char *why = subscribers_tally.dead > dead ? "a stream ended" : "time is up";
            fprintf(stderr, "%s: not all messages are delivered\n", why);
            break;
        }
        if (seconds > 0 && clock_ns() > stop) count = sent;
        int now = publish_some(&phase, first + sent, count - sent, sent, start);
        sent += now;
        loop_run_once(now == BURST ? 0 : options.rate > 0 && sent < count ? 1 : 100);
    }
    phase.messages = sent;
    phase.delivery_seconds = (double)(subscribers_tally.last_ns - start) / 1e9;
    phase.answer_seconds = (double)(publishers_tally.last_ns - start) / 1e9;
    phase.after = usage_now();
    return phase;
}

/* A server that neither answers nor closes must not hold the benchmark for ever. */
static void limit_the_time(void)
{
    alarm((unsigned)(4 * options.timeout_s + (2 * options.settle_ms + options.linger_ms) / 1000 + 60));
}

static bool is_whole(const struct report *report)
{
    const struct subscribers_tally *got = &subscribers_tally;
    return got->ready == options.subscribers && got->dead == 0 && got->delivered == report->publish.expected &&
           got->misdirected == 0 && report->wrong == 0 && publishers_tally.refused == 0 && publishers_waiting() == 0;
}

int main(int argc, char **argv)
{
    options_parse(&options, argc, argv);
    net_set_host(options.host);
    limit_the_time();
    net_raise_file_limit();
    loop_open();

    struct report report = {.options = &options, .connect = connect_phase()};
    publishers_open(&options);
    rest(options.settle_ms);
    struct report_publish warmup = publish_phase(0, options.warmup, 0);
    say("publishing");
    report.publish = publish_phase(options.warmup, options.messages, options.seconds);
    say("published");
    report.before_publishing = warmup.before;
    report.wrong = subscribers_wrong();
    report.send_buffer = options.stalled ? memory_send_buffer(options.port) : 0;

    rest(options.linger_ms);
    report_print_line(&report, stderr);
    report_print_json(&report, stdout);
    return is_whole(&report) ? 0 : 1;
}
