#include "report.h"

#include "publishers.h"
#include "subscribers.h"

static double per(double amount, double count)
{
    return count > 0 ? amount / count : 0;
}

static double cpu_us(struct usage before, struct usage after)
{
    return (double)(after.cpu_ns - before.cpu_ns) / 1e3;
}

static double rss_kb(struct usage before, struct usage after)
{
    return (double)(after.rss_bytes - before.rss_bytes) / 1024;
}

/* The share of a core that somebody used in so many seconds. */
static double busy(int64_t before_ns, int64_t after_ns, double seconds)
{
    return per((double)(after_ns - before_ns) / 1e9, seconds);
}

static void begin(FILE *out, const char *name)
{
    fprintf(out, "\"%s\": {", name);
}

static void count(FILE *out, const char *name, long value)
{
    fprintf(out, "\"%s\": %ld, ", name, value);
}

static void number(FILE *out, const char *name, double value)
{
    fprintf(out, "\"%s\": %.4f, ", name, value);
}

static void last_number(FILE *out, const char *name, double value)
{
    fprintf(out, "\"%s\": %.4f}", name, value);
}

static void last_samples(FILE *out, const char *name, struct samples *samples)
{
    fprintf(out, "\"%s\": ", name);
    samples_print_json(samples, out);
    fprintf(out, "}");
}

static void print_memory_json(const struct report *report, FILE *out)
{
    struct usage before = report->before_publishing, after = report->publish.after;
    begin(out, "memory");
    number(out, "rss_kb", (double)after.rss_bytes / 1024);
    number(out, "rss_growth_kb", rss_kb(before, after));
    number(out, "tcp_growth_kb", (double)(after.tcp_bytes - before.tcp_bytes) / 1024);
    last_number(out, "send_buffer_kb", (double)report->send_buffer / 1024);
}

static void print_connect_json(const struct report_connect *phase, FILE *out)
{
    double ready = (double)subscribers_tally.ready;
    begin(out, "connect");
    number(out, "seconds", phase->seconds);
    number(out, "per_second", per(ready, phase->seconds));
    number(out, "cpu_us_each", per(cpu_us(phase->before, phase->after), ready));
    number(out, "rss_kb_each", per(rss_kb(phase->before, phase->after), ready));
    number(out, "bytes_in_each", per((double)phase->bytes_in, ready));
    number(out, "bytes_out_each", per((double)phase->bytes_out, ready));
    number(out, "server_busy", busy(phase->before.cpu_ns, phase->after.cpu_ns, phase->seconds));
    last_number(out, "load_busy", busy(phase->before.own_ns, phase->after.own_ns, phase->seconds));
}

static void print_publish_json(const struct report_publish *phase, FILE *out)
{
    double accepted = (double)publishers_tally.accepted;
    double seconds = phase->answer_seconds > phase->delivery_seconds ? phase->answer_seconds : phase->delivery_seconds;
    begin(out, "publish");
    count(out, "accepted", publishers_tally.accepted);
    count(out, "refused", publishers_tally.refused);
    count(out, "unanswered", publishers_waiting());
    number(out, "per_second", per(accepted, phase->answer_seconds));
    number(out, "cpu_us_each", per(cpu_us(phase->before, phase->after), accepted));
    number(out, "server_busy", busy(phase->before.cpu_ns, phase->after.cpu_ns, seconds));
    number(out, "load_busy", busy(phase->before.own_ns, phase->after.own_ns, seconds));
    last_samples(out, "answer_ms", &publishers_tally.answer);
}

static void print_delivery_json(const struct report *report, FILE *out)
{
    const struct report_publish *phase = &report->publish;
    double delivered = (double)subscribers_tally.delivered;
    begin(out, "delivery");
    count(out, "expected", phase->expected);
    count(out, "delivered", subscribers_tally.delivered);
    count(out, "lost", phase->expected - subscribers_tally.delivered);
    count(out, "misdirected", subscribers_tally.misdirected);
    count(out, "wrong", report->wrong);
    number(out, "seconds", phase->delivery_seconds);
    number(out, "per_second", per(delivered, phase->delivery_seconds));
    number(out, "bytes_each", per((double)subscribers_tally.bytes, delivered));
    number(out, "cpu_us_each", per(cpu_us(phase->before, phase->after), delivered));
    last_samples(out, "latency_ms", &subscribers_tally.latency);
}

void report_print_json(const struct report *report, FILE *out)
{
    const struct options *o = report->options;
    fprintf(out, "{");
    count(out, "subscribers", subscribers_tally.ready);
    count(out, "dead", subscribers_tally.dead);
    count(out, "stalled", subscribers_tally.stalled);
    count(out, "messages", report->publish.messages);
    count(out, "publishers", o->publishers);
    count(out, "topics", o->topics);
    count(out, "message_bytes", o->size);
    fprintf(out, "\"sync\": %s, ", o->sync ? "true" : "false");
    print_memory_json(report, out);
    fprintf(out, ", ");
    print_connect_json(&report->connect, out);
    fprintf(out, ", ");
    print_publish_json(&report->publish, out);
    fprintf(out, ", ");
    print_delivery_json(report, out);
    fprintf(out, "}\n");
}

void report_print_line(const struct report *report, FILE *out)
{
    const struct report_publish *phase = &report->publish;
    fprintf(out, "%ld subscribers in %.2f s, %ld of %ld deliveries in %.2f s, %.2f us of CPU each; ",
            subscribers_tally.ready, report->connect.seconds, subscribers_tally.delivered, phase->expected,
            phase->delivery_seconds,
            per(cpu_us(phase->before, phase->after), (double)subscribers_tally.delivered));
    samples_print_line(&subscribers_tally.latency, "latency", out);
    fprintf(out, "\n");
}
