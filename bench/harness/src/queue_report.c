#include "queue_report.h"

#include "clients.h"

static double per(double amount, double count)
{
    return count > 0 ? amount / count : 0;
}

/* Messages that did all that they were to do in this run. */
static double done(const struct queue_report *report)
{
    if (report->options->receivers == 0) return (double)clients_tally.answered;
    return (double)clients_tally.freed;
}

static double broker_us(const struct queue_report *report)
{
    return (double)(report->after.cpu_ns - report->before.cpu_ns) / 1e3;
}

static double load_us(const struct queue_report *report)
{
    return (double)(report->after.own_ns - report->before.own_ns) / 1e3;
}

static void number(FILE *out, const char *name, double value)
{
    fprintf(out, "\"%s\": %.4f, ", name, value);
}

static void count(FILE *out, const char *name, long value)
{
    fprintf(out, "\"%s\": %ld, ", name, value);
}

static void print_shape(const struct queue_options *o, FILE *out)
{
    count(out, "messages", o->messages);
    count(out, "senders", o->senders);
    count(out, "receivers", o->receivers);
    count(out, "window", o->window);
    count(out, "message_bytes", o->size);
}

static void print_faults(const struct queue_report *report, FILE *out)
{
    const struct clients_tally *tally = &clients_tally;
    count(out, "unanswered", report->options->senders ? report->options->messages - tally->answered : 0);
    count(out, "lost", report->options->receivers ? clients_lost() : 0);
    count(out, "wrong", tally->wrong);
    count(out, "misdirected", tally->misdirected);
}

static void print_each_second(const struct queue_report *report, FILE *out)
{
    if (report->options->seconds <= 0) return;
    fprintf(out, "\"done_each_second\": [");
    for (int i = 0; i < report->whole_seconds; i++) fprintf(out, "%s%ld", i ? ", " : "", report->done_each_second[i]);
    fprintf(out, "], ");
}

void queue_report_print_json(const struct queue_report *report, FILE *out)
{
    fprintf(out, "{");
    print_shape(report->options, out);
    print_faults(report, out);
    print_each_second(report, out);
    number(out, "connect_seconds", report->connect_seconds);
    number(out, "ready_seconds", report->ready_seconds);
    number(out, "first_seconds", clients_tally.received ? report->first_seconds : 0);
    fprintf(out, "\"memory\": {");
    number(out, "rss_kb", (double)report->after.rss_bytes / 1024);
    fprintf(out, "\"rss_growth_kb\": %.4f}, ", (double)(report->after.rss_bytes - report->idle.rss_bytes) / 1024);
    fprintf(out, "\"run\": {");
    number(out, "seconds", report->seconds);
    number(out, "delivery_seconds", clients_tally.received ? report->delivery_seconds : 0);
    number(out, "per_second", per(done(report), report->seconds));
    number(out, "cpu_us_each", per(broker_us(report), done(report)));
    number(out, "load_us_each", per(load_us(report), done(report)));
    number(out, "server_busy", per(broker_us(report) / 1e6, report->seconds));
    fprintf(out, "\"load_busy\": %.4f}, ", per(load_us(report) / 1e6, report->seconds));
    fprintf(out, "\"answer_ms\": ");
    samples_print_json(&clients_tally.answer, out);
    fprintf(out, ", \"latency_ms\": ");
    samples_print_json(&clients_tally.latency, out);
    fprintf(out, "}\n");
}

void queue_report_print_line(const struct queue_report *report, FILE *out)
{
    fprintf(out, "%.0f messages in %.2f s, %.0f a second, %.2f us of CPU each (load %.2f); ", done(report),
            report->seconds, per(done(report), report->seconds), per(broker_us(report), done(report)),
            per(load_us(report), done(report)));
    samples_print_line(&clients_tally.latency, "latency", out);
    fprintf(out, "\n");
}
