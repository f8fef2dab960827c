/* dialects.c: how the load generator speaks to each broker. */
#include "queue_load.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

static int name_of(unsigned queue, char *out)
{
    return snprintf(out, QUEUE_TEXT, "%s.%u", options.prefix, queue);
}

static void put_message(struct client *client, const struct message *message, const char *end)
{
    size_t size = (size_t)options.size;
    char *out = wire_extend(&client->wire, size);
    memcpy(out, message, sizeof *message);
    memset(out + sizeof *message, 'x', size - sizeof *message);
    wire_put(&client->wire, end, strlen(end));
}

static bool begins(const char *line, const char *word)
{
    return strncmp(line, word, strlen(word)) == 0;
}

/* The length of a line with its CR LF; 0 while it is incomplete. */
static size_t line_length(const char *bytes, size_t length)
{
    const char *end = memmem(bytes, length, "\r\n", 2);
    return end ? (size_t)(end - bytes) + 2 : 0;
}

/* --- Hikyaku: SEND -> ACK; PUSH -> FREE -> ACK. One FREE acknowledges all PUSHes of a read, at the level of the messages. With
 *     --ack-pushes and --free-each each PUSH gets an ACK and a FREE of its own. ----------------------------------------- */

enum { HELLO_ID = 1, SUBSCRIBE_ID, FREE_ID, FIRST_SEND_ID = 16 };
enum { SUBSCRIPTION = 1, PRIORITY = 4, OF_CLIENT = 1, SECRET = 1, MAX_FRAME = 16777216 };

static void hikyaku_greet(struct client *client)
{
    char identity[QUEUE_TEXT];
    struct timeval now;
    gettimeofday(&now, NULL);
    const char *secret = options.secret ? options.secret : "";
    size_t known = client->receives && options.per_client ? (size_t)name_of((unsigned)client->index, identity) : 0;
    size_t length = FRAME_HELLO_BYTES + known + strlen(secret);
    char *frame = frame_begin(&client->wire, length, FRAME_HELLO, 0, HELLO_ID, FRAME_HELLO_BYTES);
    memcpy(frame + 16, FRAME_MAGIC, 8);
    frame_put(frame + 24, 2, 1);
    frame_put(frame + 26, 2, 1);
    frame_put(frame + 32, 4, MAX_FRAME);
    frame_put(frame + 40, 8, known ? (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_usec / 1000 : 0); /* the epoch */
    frame[48] = *secret ? SECRET : 0;
    frame_put(frame + 50, 2, known);
    frame_put(frame + 52, 2, strlen(secret));
    memcpy(frame + FRAME_HELLO_BYTES, identity, known);
    memcpy(frame + FRAME_HELLO_BYTES + known, secret, strlen(secret));
}

static void hikyaku_subscribe(struct client *client)
{
    char name[QUEUE_TEXT];
    bool own = options.per_client;
    size_t named = own ? 0 : (size_t)name_of((unsigned)client->index, name);
    char *frame = frame_begin(&client->wire, FRAME_SUBSCRIBE_BYTES + named, FRAME_SUBSCRIBE, 0, SUBSCRIBE_ID, FRAME_SUBSCRIBE_BYTES);
    frame_put(frame + 6, 2, SUBSCRIPTION);
    frame_put(frame + 16, 4, (uint64_t)options.credit);
    frame[28] = own ? OF_CLIENT : 0;
    frame_put(frame + 30, 2, named);
    memcpy(frame + FRAME_SUBSCRIBE_BYTES, name, named);
}

static void hikyaku_send(struct client *client, const struct message *message)
{
    char name[QUEUE_TEXT];
    size_t named = (size_t)name_of(message->queue, name), fixed = FRAME_SEND_BYTES + named;
    char *frame = frame_begin(&client->wire, fixed, FRAME_SEND, 0, FIRST_SEND_ID + (uint64_t)client->sent - 1, FRAME_SEND_BYTES);
    frame_put(frame, 4, fixed + (size_t)options.size);
    frame[32] = PRIORITY;
    frame[33] = (char)options.level;
    frame_put(frame + 34, 2, named);
    frame[38] = options.per_client ? OF_CLIENT : 0;
    memcpy(frame + FRAME_SEND_BYTES, name, named);
    put_message(client, message, "");
}

static void hikyaku_free(struct client *client, uint64_t first, uint64_t last)
{
    char *frame = frame_begin(&client->wire, FRAME_FREE_BYTES, FRAME_FREE, (unsigned)options.level + 1, FREE_ID, FRAME_FREE_BYTES);
    frame_put(frame + 16, 8, first);
    frame_put(frame + 24, 8, last);
}

static void hikyaku_on_ack(struct client *client, const char *frame, size_t length)
{
    if (length < FRAME_ACK_BYTES) wire_fail("hikyaku: a short ACK", "", 0);
    uint64_t id = frame_get(frame + 8, 8), last = frame[5] & FRAME_RANGE ? frame_get(frame + 32, 8) : id;
    switch (frame[16]) {
    case FRAME_HELLO:
        if (!(frame[34] >> options.level & 1)) wire_fail("hikyaku", "this broker has not that level", 30);
        if (client->receives) hikyaku_subscribe(client);
        else client_ready(client);
        break;
    case FRAME_SUBSCRIBE: client_ready(client); break;
    case FRAME_SEND:
        if (frame[17] < options.level) wire_fail("hikyaku", "acknowledged at a lower level", 29);
        client_answered(client, (long)(id - FIRST_SEND_ID), (long)(last - id + 1));
        break;
    case FRAME_FREE: client_freed((long)frame_get(frame + 20, 4)); break;
    default: break;
    }
}

static void hikyaku_on_push(struct client *client, const char *frame, size_t length)
{
    size_t before = FRAME_PUSH_BYTES + (size_t)frame_get(frame + 44, 2);
    if (length < before) wire_fail("hikyaku: a short PUSH", "", 0);
    uint64_t delivery = frame_get(frame + 8, 8);
    client_received(client, frame + before, length - before);
    if (options.ack_pushes) frame_begin(&client->wire, FRAME_HEAD, FRAME_ACK, 0, delivery, FRAME_HEAD);
    if (options.free_each) hikyaku_free(client, delivery, delivery);
    else client->serial = delivery;
}

static size_t hikyaku_take(struct client *client, char *bytes, size_t available)
{
    if (available < FRAME_HEAD) return 0;
    size_t length = frame_get(bytes, 4);
    char what[64];
    if (length < FRAME_HEAD || length > MAX_FRAME) wire_fail("hikyaku: a wrong length", bytes, FRAME_HEAD);
    if (available < length) return 0;
    switch (bytes[4]) {
    case FRAME_PUSH: hikyaku_on_push(client, bytes, length); break;
    case FRAME_ACK: hikyaku_on_ack(client, bytes, length); break;
    case FRAME_PING: frame_begin(&client->wire, FRAME_HEAD, FRAME_ACK, 0, frame_get(bytes + 8, 8), FRAME_HEAD); break;
    case FRAME_ERROR:
        snprintf(what, sizeof what, "hikyaku: ERROR %u", (unsigned)frame_get(bytes + 16, 2));
        wire_fail(what, bytes + FRAME_ERROR_BYTES, length - FRAME_ERROR_BYTES);
    default: wire_fail("hikyaku: an unexpected frame", bytes + 4, 1);
    }
    return length;
}

static void hikyaku_settle(struct client *client)
{
    if (client->serial) hikyaku_free(client, 0, client->serial);
    client->serial = 0;
}

/* --- beanstalkd 1.12: use and put -> INSERTED; reserve -> RESERVED; delete -> DELETED. The next reserve leaves with the delete.
 *     A connection reserves one message at a time. ----------------------------------------------------------------------- */

static void beanstalkd_greet(struct client *client)
{
    if (client->receives) wire_print(&client->wire, "watch %s.%d\r\nignore default\r\nreserve\r\n", options.prefix, client->index);
    else client_ready(client);
}

static void beanstalkd_send(struct client *client, const struct message *message)
{
    wire_print(&client->wire, "use %s.%u\r\nput 1 0 600 %d\r\n", options.prefix, message->queue, options.size);
    put_message(client, message, "\r\n");
}

static size_t beanstalkd_take(struct client *client, char *bytes, size_t length)
{
    size_t head = line_length(bytes, length), size;
    unsigned long long id;
    if (!head) return 0;
    if (begins(bytes, "RESERVED ")) {
        if (sscanf(bytes, "RESERVED %llu %zu", &id, &size) != 2) wire_fail("beanstalkd", bytes, head);
        if (length < head + size + 2) return 0;
        client_received(client, bytes + head, size);
        wire_print(&client->wire, "delete %llu\r\nreserve\r\n", id);
        return head + size + 2;
    }
    if (begins(bytes, "INSERTED ")) client_answered_next(client);
    else if (begins(bytes, "DELETED")) client_freed(1);
    else if (begins(bytes, "WATCHING 1")) client_ready(client);
    else if (!begins(bytes, "USING ") && !begins(bytes, "WATCHING ")) wire_fail("beanstalkd", bytes, head);
    return head;
}

/* --- Redis 7 streams: XADD -> id; XREADGROUP COUNT window BLOCK 0 -> entries; XACK and XDEL of them all, and the next
 *     XREADGROUP with them. ---------------------------------------------------------------------------------------------- */

enum { TEXTS = 65536 }; /* bulk strings of one reply */

static struct {
    char *at;
    size_t length;
} texts[TEXTS];
static int text_count;

static void redis_greet(struct client *client)
{
    if (!client->receives) client_ready(client);
    else wire_print(&client->wire, "XGROUP CREATE %s.%d g 0 MKSTREAM\r\nXREADGROUP GROUP g c COUNT %d BLOCK 0 STREAMS %s.%d >\r\n",
                    options.prefix, client->index, options.window, options.prefix, client->index);
}

static void redis_send(struct client *client, const struct message *message)
{
    char name[QUEUE_TEXT];
    int named = name_of(message->queue, name);
    wire_print(&client->wire, "*5\r\n$4\r\nXADD\r\n$%d\r\n%s\r\n$1\r\n*\r\n$1\r\nd\r\n$%d\r\n", named, name, options.size);
    put_message(client, message, "\r\n");
}

/* The length of one value, however deep, or 0 while it is incomplete; collects its strings. */
static size_t redis_walk(char *bytes, size_t length)
{
    size_t used = line_length(bytes, length);
    if (!used) return 0;
    long count = atol(bytes + 1);
    if (*bytes == '$' && count >= 0) {
        size_t size = (size_t)count;
        if (length < used + size + 2) return 0;
        if (text_count == TEXTS) wire_fail("redis", "too many entries", 16);
        texts[text_count].at = bytes + used;
        texts[text_count++].length = size;
        return used + size + 2;
    }
    for (long i = 0; *bytes == '*' && i < count; i++) {
        size_t inner = redis_walk(bytes + used, length - used);
        if (!inner) return 0;
        used += inner;
    }
    return used;
}

static void redis_put_text(struct client *client, int i)
{
    wire_print(&client->wire, "$%zu\r\n%.*s\r\n", texts[i].length, (int)texts[i].length, texts[i].at);
}

/* The strings are the stream's name, then of each entry: id, "d", payload. */
static void redis_on_entries(struct client *client)
{
    int entries = (text_count - 1) / 3;
    for (int i = 0; i < entries; i++) client_received(client, texts[3 + i * 3].at, texts[3 + i * 3].length);
    for (int command = 0; command < 2; command++) {
        wire_print(&client->wire, "*%d\r\n$4\r\n%s\r\n", 3 - command + entries, command ? "XDEL" : "XACK");
        redis_put_text(client, 0);
        if (!command) wire_print(&client->wire, "$1\r\ng\r\n");
        for (int i = 0; i < entries; i++) redis_put_text(client, 1 + i * 3);
    }
    wire_print(&client->wire, "XREADGROUP GROUP g c COUNT %d BLOCK 0 STREAMS %.*s >\r\n", options.window, (int)texts[0].length, texts[0].at);
}

static size_t redis_take(struct client *client, char *bytes, size_t length)
{
    text_count = 0;
    size_t used = redis_walk(bytes, length);
    if (!used) return 0;
    switch (*bytes) {
    case '+': client_ready(client); break;
    case '$': client_answered_next(client); break;
    case ':': /* of XACK, then of XDEL */
        if (client->state) client_freed(atol(bytes + 1));
        client->state = !client->state;
        break;
    case '*':
        if (text_count) redis_on_entries(client);
        break;
    default:
        /* Redis listens before it has loaded its file. A receiver repeats its two commands when both were refused. */
        if (!begins(bytes, "-LOADING") || client->ready) wire_fail("redis", bytes, used);
        if (++client->count % 2 == 0) redis_greet(client);
    }
    return used;
}

/* --- NATS JetStream 2.9: PUB with a reply subject -> PubAck; a push consumer for each queue; explicit +ACK, which is not itself
 *     confirmed; one work-queue stream. ---------------------------------------------------------------------------------- */

enum { NATS_FIELDS = 6, NATS_LINE = 512, NATS_PENDING = 1000 };

/* The first receiver makes the stream and all consumers; without receivers the first sender makes the stream. */
static void nats_greet(struct client *client)
{
    char text[NATS_LINE];
    const char *prefix = options.prefix;
    wire_print(&client->wire, "CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true,\"no_responders\":true}\r\nSUB %s.%d 1\r\n",
               client->receives ? "_d" : "_a", client->index);
    if (client->index != 0 || client->receives != (options.receivers > 0)) {
        wire_print(&client->wire, "PING\r\n");
        return;
    }
    int length = snprintf(text, sizeof text,
                          "{\"name\":\"%s\",\"subjects\":[\"%s.*\"],\"retention\":\"workqueue\",\"storage\":\"%s\","
                          "\"discard\":\"old\",\"max_consumers\":-1,\"max_msgs\":-1,\"max_bytes\":-1,\"num_replicas\":1}",
                          prefix, prefix, options.storage);
    wire_print(&client->wire, "SUB _s 2\r\nPUB $JS.API.STREAM.CREATE.%s _s %d\r\n%s\r\n", prefix, length, text);
}

static void nats_make_consumers(struct client *client)
{
    char text[NATS_LINE];
    const char *prefix = options.prefix;
    for (int i = 0; i < options.receivers; i++) {
        int length = snprintf(text, sizeof text,
                              "{\"stream_name\":\"%s\",\"config\":{\"durable_name\":\"c%d\",\"deliver_subject\":\"_d.%d\","
                              "\"filter_subject\":\"%s.%d\",\"ack_policy\":\"explicit\",\"deliver_policy\":\"all\","
                              "\"replay_policy\":\"instant\",\"max_ack_pending\":%d,\"ack_wait\":60000000000}}",
                              prefix, i, i, prefix, i, NATS_PENDING);
        wire_print(&client->wire, "PUB $JS.API.CONSUMER.DURABLE.CREATE.%s.c%d _s %d\r\n%s\r\n", prefix, i, length, text);
    }
}

static void nats_send(struct client *client, const struct message *message)
{
    wire_print(&client->wire, "PUB %s.%u _a.%d %d\r\n", options.prefix, message->queue, client->index, options.size);
    put_message(client, message, "\r\n");
}

/* A response of JetStream's interface: to the stream, then to each consumer. */
static void nats_on_made(struct client *client, const char *body, size_t length)
{
    bool stream = memmem(body, length, "stream_create", 13);
    if (stream && client->receives) nats_make_consumers(client);
    else if (stream || ++client->count == options.receivers) wire_print(&client->wire, "PING\r\n");
}

/* MSG subject subscription reply length */
static size_t nats_take_message(struct client *client, const char *bytes, size_t head, size_t length)
{
    char line[NATS_LINE], *fields[NATS_FIELDS], *rest = NULL;
    int count = 0;
    if (head > NATS_LINE) wire_fail("nats", bytes, head);
    memcpy(line, bytes, head - 2);
    line[head - 2] = '\0';
    for (char *field = strtok_r(line, " ", &rest); field && count < NATS_FIELDS; field = strtok_r(NULL, " ", &rest)) fields[count++] = field;
    if (count < 4) wire_fail("nats", bytes, head);
    size_t size = strtoul(fields[count - 1], NULL, 10);
    const char *body = bytes + head;
    bool made = strcmp(fields[2], "2") == 0;
    if (length < head + size + 2) return 0;
    if ((made || !client->receives) && memmem(body, size, "\"error\"", 7)) wire_fail("nats", body, size);
    if (made) {
        nats_on_made(client, body, size);
    } else if (client->receives) {
        client_received(client, body, size);
        wire_print(&client->wire, "PUB %s 4\r\n+ACK\r\n", fields[3]);
        client_freed(1);
    } else {
        client_answered_next(client);
    }
    return head + size + 2;
}

static size_t nats_take(struct client *client, char *bytes, size_t length)
{
    size_t head = line_length(bytes, length);
    if (!head) return 0;
    if (begins(bytes, "MSG")) return nats_take_message(client, bytes, head, length);
    if (*bytes == 'H' || *bytes == '-') wire_fail("nats", bytes, head);
    if (begins(bytes, "PING")) wire_print(&client->wire, "PONG\r\n");
    else if (begins(bytes, "PONG")) client_ready(client);
    return head; /* also INFO and +OK */
}

/* --- AMQP 0-9-1 (RabbitMQ): basic.publish, persistent, with confirms; basic.deliver with a prefetch of the credit; one basic.ack
 *     for all deliveries of a read; durable queues. Numbers are big-endian. ---------------------------------------------- */

enum { AMQP_METHOD = 1, AMQP_HEADER = 2, AMQP_BODY = 3, AMQP_END = 0xCE, AMQP_FRAME_MAX = 131072, AMQP_CHANNELS = 10 };

static void amqp_put(struct client *client, uint64_t value, int bytes)
{
    char *at = wire_extend(&client->wire, (size_t)bytes);
    for (int i = bytes - 1; i >= 0; i--, value >>= 8) at[i] = (char)value;
}

static uint64_t amqp_get(const char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | (unsigned char)at[i];
    return value;
}

/* A frame from a format: a digit is the width of a number, s a short string. */
static void amqp_frame(struct client *client, int type, int channel, const char *format, ...)
{
    struct buffer *out = &client->wire.out;
    amqp_put(client, (uint64_t)type, 1);
    amqp_put(client, (uint64_t)channel, 2);
    amqp_put(client, 0, 4);
    size_t began = out->to - out->from;
    va_list arguments;
    va_start(arguments, format);
    for (; *format; format++) {
        if (*format == 's') {
            const char *text = va_arg(arguments, const char *);
            amqp_put(client, strlen(text), 1);
            wire_put(&client->wire, text, strlen(text));
        } else {
            amqp_put(client, (uint64_t)va_arg(arguments, long), *format - '0');
        }
    }
    va_end(arguments);
    uint64_t length = out->to - out->from - began;
    for (int i = 1; i <= 4; i++, length >>= 8) out->bytes[out->from + began - (size_t)i] = (char)length;
    amqp_put(client, AMQP_END, 1);
}

static void amqp_greet(struct client *client)
{
    wire_put(&client->wire, "AMQP\0\0\x09\x01", 8);
}

static void amqp_send(struct client *client, const struct message *message)
{
    char name[QUEUE_TEXT];
    name_of(message->queue, name);
    amqp_frame(client, AMQP_METHOD, 1, "222ss1", 60L, 40L, 0L, "", name, 0L);                    /* basic.publish */
    amqp_frame(client, AMQP_HEADER, 1, "22821", 60L, 0L, (long)options.size, 0x1000L, 2L); /* delivery mode: persistent */
    amqp_put(client, AMQP_BODY, 1);
    amqp_put(client, 1, 2);
    amqp_put(client, (uint64_t)options.size, 4);
    put_message(client, message, "\xCE");
}

/* A receiver declares its queue, a sender all of them: there may be no receivers. */
static void amqp_declare(struct client *client)
{
    char name[QUEUE_TEXT];
    int from = client->receives ? client->index : 0, to = client->receives ? from + 1 : options.queues;
    client->count = to - from;
    for (int queue = from; queue < to; queue++) {
        name_of((unsigned)queue, name);
        amqp_frame(client, AMQP_METHOD, 1, "222s14", 50L, 10L, 0L, name, 2L, 0L); /* queue.declare, durable */
    }
}

static void amqp_on_declared(struct client *client)
{
    char name[QUEUE_TEXT];
    if (--client->count > 0) return;
    if (!client->receives) {
        amqp_frame(client, AMQP_METHOD, 1, "221", 85L, 10L, 0L); /* confirm.select */
        return;
    }
    name_of((unsigned)client->index, name);
    amqp_frame(client, AMQP_METHOD, 1, "22421", 60L, 10L, 0L, (long)(options.credit < 65535 ? options.credit : 65535), 0L); /* basic.qos */
    amqp_frame(client, AMQP_METHOD, 1, "222ss14", 60L, 20L, 0L, name, "", 0L, 0L);                                       /* basic.consume */
}

static void amqp_on_method(struct client *client, const char *bytes, size_t length)
{
    long tag = length >= 13 ? (long)amqp_get(bytes + 4, 8) : 0;
    switch (amqp_get(bytes, 2) * 1000 + amqp_get(bytes + 2, 2)) {
    case 10010: /* connection.start: start-ok with an empty table, PLAIN, guest */
        amqp_frame(client, AMQP_METHOD, 0, "224s4111111111111s", 10L, 11L, 0L, "PLAIN", 12L, 0L, (long)'g', (long)'u', (long)'e', (long)'s',
                   (long)'t', 0L, (long)'g', (long)'u', (long)'e', (long)'s', (long)'t', "en_US");
        break;
    case 10030: /* connection.tune */
        amqp_frame(client, AMQP_METHOD, 0, "22242", 10L, 31L, (long)AMQP_CHANNELS, (long)AMQP_FRAME_MAX, 0L);
        amqp_frame(client, AMQP_METHOD, 0, "22ss1", 10L, 40L, "/", "", 0L);
        break;
    case 10041: amqp_frame(client, AMQP_METHOD, 1, "22s", 20L, 10L, ""); break; /* connection.open-ok: channel.open */
    case 20011: amqp_declare(client); break;                                    /* channel.open-ok */
    case 50011: amqp_on_declared(client); break;                                /* queue.declare-ok */
    case 60021:
    case 85011: client_ready(client); break; /* basic.consume-ok, confirm.select-ok */
    case 60060: client->serial = amqp_get(bytes + 5 + (unsigned char)bytes[4], 8); break; /* basic.deliver */
    case 60080: /* basic.ack: one message, or all up to it */
        if (bytes[12] & 1) client_answered_up_to(client, tag - 1);
        else client_answered(client, tag - 1, 1);
        break;
    case 10050:
    case 20040:
    case 60120: wire_fail("amqp", bytes, length); /* connection.close, channel.close, basic.nack */
    default: break;
    }
}

static size_t amqp_take(struct client *client, char *bytes, size_t available)
{
    size_t length = available < 7 ? 0 : amqp_get(bytes + 3, 4);
    if (available < length + 8) return 0;
    if (*bytes == AMQP_METHOD) amqp_on_method(client, bytes + 7, length);
    if (*bytes == AMQP_BODY) {
        client_received(client, bytes + 7, length);
        client->count = (long)client->serial; /* complete: the next delivery may be cut */
        client->state++;
    }
    return length + 8;
}

static void amqp_settle(struct client *client)
{
    if (!client->state) return;
    amqp_frame(client, AMQP_METHOD, 1, "2281", 60L, 80L, client->count, 1L); /* basic.ack, all up to it */
    client_freed(client->state);
    client->state = 0;
}

const struct dialect dialects[] = {
    {"hikyaku", hikyaku_greet, hikyaku_send, hikyaku_take, hikyaku_settle},
    {"beanstalkd", beanstalkd_greet, beanstalkd_send, beanstalkd_take, NULL},
    {"redis", redis_greet, redis_send, redis_take, NULL},
    {"nats", nats_greet, nats_send, nats_take, NULL},
    {"amqp", amqp_greet, amqp_send, amqp_take, amqp_settle},
};
const int dialect_count = sizeof dialects / sizeof *dialects;
