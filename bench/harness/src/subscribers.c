/* subscribers.c: event streams over HTTP/1.1, or Action Cable (actioncable-v1-json over a WebSocket, RFC 6455). */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zlib.h>

enum { READ_BYTES = 65536, HEAD_BYTES = 4095, REQUEST_BYTES = 65536, UPGRADED = 101, FRAME_HEAD_BYTES = 14, SHORTEST_HEAD = 12 };

/*  CONNECTING ── request sent ─► WAITING ── head with 200 ──────────────────► READY, or STALLED
 *       │                           └── 101, welcome ─► ASKED ── confirmed ─► READY
 *       └────────── error, end, other status, refused ────────────────────────┴──► DEAD  */
enum state { CONNECTING, WAITING, ASKED, READY, STALLED, DEAD };

/* The sum of fingerprints tells a duplicate that hides a loss. */
struct received {
    long count;
    uint64_t sum;
};

struct topic {
    long live; /* streams that are read */
    struct received expected;
};

struct subscriber {
    struct connection connection; /* first: the loop hands it back */
    enum state state;
    int index, topic;
    struct received received;
    z_stream *inflate; /* with --gzip, once READY */
    char *head;    /* until READY: all that has arrived, NUL bytes replaced */
    unsigned char tail_length;
    char tail[MARKER_BYTES]; /* the end of the bytes read, which may begin a marker */
};

struct subscribers_tally subscribers_tally;

static struct subscriber *all;
static struct topic *topics;
static struct template command, paths[LOAD_PATHS], stalled_path, form;
static struct lines own_headers;
static uint32_t first_counted;
static int64_t read_ns;

/* --- gzip --------------------------------------------------------------------------------------------------------- */

static void on_text(struct subscriber *s, const char *bytes, size_t length);

static void inflate_free(struct subscriber *s)
{
    if (s->inflate) inflateEnd(s->inflate);
    free(s->inflate);
    s->inflate = NULL;
}

/* False when the bytes are not gzip, or the stream has ended. */
static bool on_gzip(struct subscriber *s, const char *bytes, size_t length)
{
    static char out[READ_BYTES];
    z_stream *stream = s->inflate;
    if (!stream) {
        s->inflate = stream = calloc(1, sizeof *stream);
        if (!stream || inflateInit2(stream, 15 + 16) != Z_OK) fail("zlib");
    }
    if (length == 0) return true;
    stream->next_in = (unsigned char *)(size_t)bytes;
    stream->avail_in = (unsigned)length;
    do {
        stream->next_out = (unsigned char *)out;
        stream->avail_out = READ_BYTES;
        int status = inflate(stream, Z_SYNC_FLUSH);
        if (status != Z_OK && status != Z_BUF_ERROR) return false;
        if (stream->avail_out < READ_BYTES) on_text(s, out, READ_BYTES - stream->avail_out);
    } while (stream->avail_in > 0 || stream->avail_out == 0);
    return true;
}

/* --- streams ------------------------------------------------------------------------------------------------------ */

static void add(struct received *received, uint32_t message)
{
    uint64_t print = (message + 1ULL) * 0x9e3779b97f4a7c15ULL;
    received->sum += print ^ print >> 29;
    received->count++;
}

static void die(struct subscriber *s)
{
    if (s->state == READY || s->state == STALLED) subscribers_tally.ready--;
    if (s->state == READY) topics[s->topic].live--;
    if (s->state == STALLED) subscribers_tally.stalled--;
    s->state = DEAD;
    subscribers_tally.dead++;
    free(s->head);
    s->head = NULL;
    inflate_free(s);
    close(s->connection.fd);
}

/* One of each `subscribers / stalled`, so that they are spread over the order of the server. */
static bool is_to_stall(int index)
{
    long long i = index, stalled = options.stalled, among = options.subscribers;
    return (i + 1) * stalled / among > i * stalled / among;
}

static void send_bytes(struct subscriber *s, const char *bytes, size_t length)
{
    subscribers_tally.bytes_out += (int64_t)length;
    if (net_send_all(s->connection.fd, bytes, length)) die(s);
}

/* False while the connection is not established. */
static bool request_stream(struct subscriber *s)
{
    static char request[REQUEST_BYTES];
    char path[LOAD_TEXT], body[LOAD_TEXT], fields[512] = "Accept: text/event-stream\r\n";
    int error = net_dial_error(s->connection.fd);
    bool stalls = is_to_stall(s->index) && options.stalled_path;
    *template_fill(stalls ? &stalled_path : &paths[s->index % options.subscribe_path_count], s->topic, s->index, path) = '\0';
    *template_fill(&form, s->topic, s->index, body) = '\0';
    if (options.cable) /* the client does not check the answer to the key */
        strcpy(fields, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                       "Sec-WebSocket-Protocol: actioncable-v1-json, actioncable-unsupported\r\n");
    else if (options.subscribe_body)
        snprintf(fields, sizeof fields, "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %zu\r\n", strlen(body));
    else if (options.gzip) strcat(fields, "Accept-Encoding: gzip\r\n");
    const char *own = own_headers.count ? own_headers.all[s->index % own_headers.count] : "";
    int length = snprintf(request, sizeof request, "%s %s HTTP/1.1\r\nHost: %s:%d\r\n%s%s%s%s\r\n%s", options.subscribe_body ? "POST" : "GET",
                          path, options.host, options.port, fields, options.subscribe_headers, own, *own ? "\r\n" : "", body);
    ssize_t sent = error ? -1 : send(s->connection.fd, request, (size_t)length, MSG_NOSIGNAL);
    if (!error && sent < 0 && errno == EAGAIN) return false;
    s->state = WAITING;
    if (sent < 0) {
        die(s);
    } else {
        subscribers_tally.bytes_out += sent;
        send_bytes(s, request + sent, (size_t)(length - sent));
    }
    return true;
}

static void stand(struct subscriber *s)
{
    free(s->head);
    s->head = NULL;
    subscribers_tally.ready++;
    if (is_to_stall(s->index)) {
        s->state = STALLED;
        subscribers_tally.stalled++;
        loop_change(&s->connection, 0);
    } else {
        s->state = READY;
        topics[s->topic].live++;
    }
}

static void refuse(struct subscriber *s)
{
    if (subscribers_tally.dead == 0) fprintf(stderr, "subscriber refused: %.300s\n", s->head);
    die(s);
}

/* --- Action Cable ------------------------------------------------------------------------------------------------- */

/* A client masks its frames. The mask need not be secret here. */
static void send_frame(struct subscriber *s, const char *text, size_t length)
{
    static uint32_t mask;
    char *frame = malloc(length + FRAME_HEAD_BYTES), *at = frame;
    if (!frame) fail("frame");
    mask = mask * 1664525 + 1013904223;
    int bytes = length < 126 ? 0 : length <= UINT16_MAX ? 2 : 8;
    *at++ = (char)0x81; /* final, text */
    *at++ = (char)(0x80 | (bytes == 0 ? length : bytes == 2 ? 126u : 127u));
    while (bytes--) *at++ = (char)(length >> (8 * bytes));
    memcpy(at, &mask, sizeof mask);
    const char *key = at;
    at += sizeof mask;
    for (size_t i = 0; i < length; i++) *at++ = (char)(text[i] ^ key[i % sizeof mask]);
    send_bytes(s, frame, (size_t)(at - frame));
    free(frame);
}

/* A command before the welcome may be lost. */
static void on_cable(struct subscriber *s)
{
    char text[LOAD_TEXT];
    if (strstr(s->head, "\"reject_subscription\"") || strstr(s->head, "\"type\":\"disconnect\"")) {
        refuse(s);
    } else if (strstr(s->head, "\"confirm_subscription\"")) {
        stand(s);
    } else if (strstr(s->head, "\"welcome\"") && s->state == WAITING) {
        s->state = ASKED;
        send_frame(s, text, (size_t)(template_fill(&command, s->topic, s->index, text) - text));
    }
}

/* --- reading ------------------------------------------------------------------------------------------------------ */

/* Returns how many of the bytes belong to the head. */
static size_t on_head(struct subscriber *s, const char *bytes, size_t length)
{
    if (!s->head && !(s->head = calloc(1, HEAD_BYTES + 1))) fail("head");
    size_t before = strlen(s->head), used = before;
    for (size_t i = 0; i < length && used < HEAD_BYTES; i++) s->head[used++] = bytes[i] ? bytes[i] : ' ';
    const char *end = strstr(s->head, "\r\n\r\n"), *coding = strcasestr(s->head, "\r\ncontent-encoding: gzip\r\n");
    int status = end && end - s->head >= SHORTEST_HEAD ? atoi(s->head + 9) : 0;
    size_t whole = end ? (size_t)(end + 4 - s->head) : before + length, taken = whole > before ? whole - before : 0;
    if (options.cable && status == UPGRADED) on_cable(s);
    else if (!options.cable && status == 200 && (!options.gzip || (coding && coding < end))) stand(s);
    else if (status) refuse(s);
    return taken;
}

static uint64_t hex(const char *digits, int count)
{
    uint64_t value = 0;
    for (int i = 0; i < count; i++) value = value * 16 + (uint64_t)(digits[i] <= '9' ? digits[i] - '0' : (digits[i] | 32) - 'a' + 10);
    return value;
}

static void on_marker(struct subscriber *s, const char *marker)
{
    int64_t sent_ns = (int64_t)hex(marker + 2, 16);
    uint32_t message = (uint32_t)hex(marker + 18, 8);
    if (message < first_counted) return;
    add(&s->received, message);
    subscribers_tally.delivered++;
    subscribers_tally.last_ns = read_ns;
    if ((int)message % options.message_topics != s->topic) subscribers_tally.misdirected++;
    samples_add(&subscribers_tally.latency, read_ns - sent_ns);
}

/* Finds the markers, however the bytes were cut: what may begin one is kept for the next read. */
static void on_text(struct subscriber *s, const char *bytes, size_t length)
{
    static char joined[READ_BYTES + MARKER_BYTES];
    memcpy(joined, s->tail, s->tail_length);
    memcpy(joined + s->tail_length, bytes, length);
    const char *at = joined, *end = joined + s->tail_length + length;
    while (end - at >= MARKER_BYTES) {
        const char *start = memchr(at, '@', (size_t)(end - at) - MARKER_BYTES + 1);
        bool is_marker = start && start[1] == 'T' && start[MARKER_BYTES - 1] == '@';
        if (is_marker) on_marker(s, start);
        at = !start ? end - MARKER_BYTES + 1 : is_marker ? start + MARKER_BYTES : start + 1;
    }
    s->tail_length = (unsigned char)(end - at);
    memcpy(s->tail, at, s->tail_length);
}

static void on_readable(struct subscriber *s)
{
    static char bytes[READ_BYTES];
    ssize_t length = read(s->connection.fd, bytes, sizeof bytes);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        die(s);
        return;
    }
    read_ns = clock_ns();
    subscribers_tally.bytes += length;
    size_t head = s->state == READY ? 0 : on_head(s, bytes, (size_t)length), rest = (size_t)length - head;
    if (s->state != READY) return;
    if (!options.gzip) on_text(s, bytes + head, rest);
    else if (!on_gzip(s, bytes + head, rest)) die(s);
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct subscriber *s = (struct subscriber *)connection;
    if (s->state == STALLED) die(s); /* the loop reports only errors of it */
    else if (s->state == CONNECTING && request_stream(s) && s->state == WAITING) loop_change(connection, EPOLLIN);
    else if (s->state != CONNECTING && s->state != DEAD && events) on_readable(s);
}

/* On the loopback a connection is mostly established at once. */
static void open_one(int index)
{
    struct subscriber *s = &all[index];
    s->index = index;
    s->topic = index % options.topics;
    int fd = net_dial(options.port, index, is_to_stall(index) ? options.receive_buffer : 0);
    s->connection = (struct connection){.fd = fd, .on_ready = on_ready};
    bool asked = request_stream(s);
    if (s->state != DEAD) loop_watch(&s->connection, asked ? EPOLLIN : EPOLLOUT);
}

static void compile(struct template *template, const char *text)
{
    template_compile(template, text ? text : "");
    if (template->max_bytes >= LOAD_TEXT) flags_refuse("a path, form or command is too long");
}

bool subscribers_open(void)
{
    for (int i = 0; i < options.subscribe_path_count; i++) compile(&paths[i], options.subscribe_paths[i]);
    compile(&stalled_path, options.stalled_path);
    compile(&form, options.subscribe_body);
    compile(&command, options.cable);
    if (options.subscribe_header_file) lines_read(&own_headers, options.subscribe_header_file);
    all = calloc((size_t)options.subscribers + 1, sizeof *all);
    topics = calloc((size_t)options.topics, sizeof *topics);
    if (!all || !topics) fail("subscribers");
    const struct subscribers_tally *tally = &subscribers_tally;
    int64_t deadline = clock_ns() + options.timeout_s * 1000000000LL;
    int opened = 0;
    while (tally->ready + tally->dead < options.subscribers) {
        if (clock_ns() > deadline) return false;
        while (opened < options.subscribers && opened - tally->ready - tally->dead < options.window) open_one(opened++);
        loop_run_once(100);
    }
    return true;
}

long subscribers_expect(int message)
{
    struct topic *topic = &topics[message % options.message_topics];
    add(&topic->expected, (uint32_t)message);
    return topic->live;
}

bool subscribers_speak(int message, const char *text, size_t length)
{
    for (int i = 0; i < options.subscribers; i++) {
        struct subscriber *s = &all[(message + i) % options.subscribers];
        if (s->state != READY) continue;
        send_frame(s, text, length);
        return true;
    }
    return false;
}

long subscribers_wrong(void)
{
    long wrong = 0;
    for (int i = 0; i < options.subscribers; i++) {
        const struct received *got = &all[i].received, *due = &topics[all[i].topic].expected;
        if (all[i].state == READY && (got->count != due->count || got->sum != due->sum)) wrong++;
    }
    return wrong;
}

void subscribers_reset(int first_message)
{
    struct subscribers_tally *tally = &subscribers_tally;
    tally->delivered = tally->misdirected = tally->bytes = tally->bytes_out = 0;
    tally->last_ns = clock_ns();
    samples_clear(&tally->latency);
    first_counted = (uint32_t)first_message;
    for (int i = 0; i < options.subscribers; i++) all[i].received = (struct received){0};
    for (int i = 0; i < options.topics; i++) topics[i].expected = (struct received){0};
}
