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

static void print_connect_json(const struct report_connect *phase, FILE *out)
{
    double ready = (double)subscribers_tally.ready;
    fprintf(out,
            "\"connect\": {\"seconds\": %.4f, \"per_second\": %.1f, \"cpu_us_each\": %.2f, \"rss_kb_each\": %.3f}",
            phase->seconds, per(ready, phase->seconds), per(cpu_us(phase->before, phase->after), ready),
            per(rss_kb(phase->before, phase->after), ready));
}

static void print_publish_json(const struct report_publish *phase, FILE *out)
{
    double accepted = (double)publishers_tally.accepted;
    fprintf(out,
            "\"publish\": {\"accepted\": %ld, \"refused\": %ld, \"per_second\": %.1f, \"cpu_us_each\": %.3f, "
            "\"answer_ms\": ",
            publishers_tally.accepted, publishers_tally.refused, per(accepted, phase->answer_seconds),
            per(cpu_us(phase->before, phase->after), accepted));
    samples_print_json(&publishers_tally.answer, out);
    fprintf(out, "}");
}

static void print_delivery_json(const struct report_publish *phase, FILE *out)
{
    double delivered = (double)subscribers_tally.delivered;
    fprintf(out,
            "\"delivery\": {\"expected\": %ld, \"delivered\": %ld, \"lost\": %ld, \"misdirected\": %ld, "
            "\"seconds\": %.4f, \"per_second\": %.1f, \"bytes_each\": %.1f, \"cpu_us_each\": %.4f, "
            "\"latency_ms\": ",
            phase->expected, subscribers_tally.delivered, phase->expected - subscribers_tally.delivered,
            subscribers_tally.misdirected, phase->delivery_seconds, per(delivered, phase->delivery_seconds),
            per((double)subscribers_tally.bytes, delivered),
            per(cpu_us(phase->before, phase->after), delivered));
    samples_print_json(&subscribers_tally.latency, out);
    fprintf(out, "}");
}

void report_print_json(const struct report *report, FILE *out)
{
    const struct options *o = report->options;
    fprintf(out,
            "{\"subscribers\": %ld, \"dead\": %ld, \"messages\": %d, \"publishers\": %d, \"topics\": %d, "
            "\"message_bytes\": %d, \"sync\": %s, \"rss_mb\": %.2f, ",
            subscribers_tally.ready, subscribers_tally.dead, o->messages, o->publishers, o->topics, o->size,
            o->sync ? "true" : "false", (double)report->publish.after.rss_bytes / 1048576);
    print_connect_json(&report->connect, out);
    fprintf(out, ", ");
    print_publish_json(&report->publish, out);
    fprintf(out, ", ");
    print_delivery_json(&report->publish, out);
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
