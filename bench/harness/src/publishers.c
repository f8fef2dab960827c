/* publishers.c: the requests that publish, and their responses (HTTP/1.1). Requests are prepared in parts: a load
 * generator that is slower than the server would measure itself. */
#include "load.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_BYTES = 262144, BATCH_BYTES = 32768, LINE_BYTES = 4096, HOLE_BYTES = 3, DIGITS = 10, STATUS_AT = 9, GZIP_HEAD = 10 };

#define HOLE "{m}" /* the place of the marker in a line of --text-file */

struct publishers_tally publishers_tally;

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "%s\n", why);
    exit(3);
}

/* --- texts -------------------------------------------------------------------------------------------------------- */

static const char *next_hole(const char *text)
{
    const char *t = strstr(text, "{t}"), *n = strstr(text, "{n}");
    if (!t || !n) return t ? t : n;
    return t < n ? t : n;
}

void template_compile(struct template *template, const char *text)
{
    *template = (struct template){.max_bytes = strlen(text) + TEMPLATE_PIECES * DIGITS};
    for (const char *hole = text; hole; text = hole + HOLE_BYTES) {
        if (template->count == TEMPLATE_PIECES) flags_refuse("too many {t} and {n} in one text");
        hole = next_hole(text);
        int i = template->count++;
        template->pieces[i].text = text;
        template->pieces[i].length = hole ? (size_t)(hole - text) : strlen(text);
        template->pieces[i].hole = hole ? hole[1] : '\0';
    }
}

static char *write_number(char *out, unsigned number)
{
    char digits[DIGITS];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) *out++ = digits[--count];
    return out;
}

char *template_fill(const struct template *template, int t, int n, char *out)
{
    for (int i = 0; i < template->count; i++) {
        memcpy(out, template->pieces[i].text, template->pieces[i].length);
        out += template->pieces[i].length;
        if (template->pieces[i].hole) out = write_number(out, (unsigned)(template->pieces[i].hole == 't' ? t : n));
    }
    return out;
}

void lines_read(struct lines *lines, const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if ((lines->count & (lines->count - 1)) == 0) /* grow to the next power of two */
            lines->all = realloc(lines->all, (size_t)(lines->count ? lines->count * 2 : 1) * sizeof *lines->all);
        if (!lines->all || !(lines->all[lines->count++] = strdup(line))) fail("lines");
    }
    free(line);
    fclose(file);
    if (lines->count) return;
    fprintf(stderr, "%s: the file is empty\n", path);
    exit(2);
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static struct template path, prefix, warmup_prefix, suffix;
static char before_path[64], after_path[LOAD_TEXT + 256];
static struct lines texts;
static char *filler, *body;
static size_t largest, body_most, request_most; /* `largest`: bytes of a message */
static bool has_body;

static void prepare_requests(void)
{
    template_compile(&path, options.publish_path);
    template_compile(&prefix, options.publish_prefix);
    template_compile(&suffix, options.publish_suffix);
    template_compile(&warmup_prefix, options.warmup_prefix ? options.warmup_prefix : options.publish_prefix);
    has_body = strcmp(options.method, "GET") != 0;
    snprintf(before_path, sizeof before_path, "%.30s ", options.method);
    snprintf(after_path, sizeof after_path, " HTTP/1.1\r\nHost: %s:%d\r\n%s%s", options.host, options.publish_port,
             options.publish_headers, has_body ? "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: " : "\r\n");
    largest = (size_t)(options.size > options.warmup_size ? options.size : options.warmup_size);
    if (options.text_file) lines_read(&texts, options.text_file);
    for (int i = 0; i < texts.count; i++) {
        size_t length = strlen(texts.all[i]) + MARKER_BYTES;
        if (length > largest) largest = length;
        if (strstr(texts.all[i], HOLE)) continue;
        fprintf(stderr, "load: %s has a line without " HOLE "\n", options.text_file);
        exit(2);
    }
    body_most = (prefix.max_bytes > warmup_prefix.max_bytes ? prefix.max_bytes : warmup_prefix.max_bytes) + suffix.max_bytes + largest;
    request_most = sizeof before_path + path.max_bytes + sizeof after_path + body_most + 16;
    filler = malloc(largest);
    body = malloc(body_most);
    if (!filler || !body) fail("requests");
    memset(filler, 'x', largest);
}

static char *copy(char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return out + length;
}

static char *write_hex(char *out, uint64_t value, int count)
{
    for (int i = count - 1; i >= 0; i--, value >>= 4) out[i] = "0123456789abcdef"[value & 15];
    return out + count;
}

/* The marker that each message carries: @T<16 hexadecimal digits: nanoseconds><8 digits: number of the message>@ */
static char *write_marker(char *out, int64_t sent_ns, int message)
{
    out = write_hex(copy(out, "@T", 2), (uint64_t)sent_ns, 16);
    out = write_hex(out, (uint64_t)message, 8);
    return copy(out, "@", 1);
}

static size_t write_body(char *out, int message, int64_t sent_ns)
{
    int topic = message % options.message_topics, size = message < options.warmup ? options.warmup_size : options.size;
    char *end = template_fill(message < options.warmup ? &warmup_prefix : &prefix, topic, message, out);
    const char *text = texts.count ? texts.all[message % texts.count] : HOLE, *hole = strstr(text, HOLE);
    end = write_marker(copy(end, text, (size_t)(hole - text)), sent_ns, message);
    hole += sizeof HOLE - 1;
    end = texts.count ? copy(end, hole, strlen(hole)) : copy(end, filler, (size_t)size - MARKER_BYTES);
    return (size_t)(template_fill(&suffix, topic, message, end) - out);
}

static size_t write_request(char *out, int message, int64_t sent_ns)
{
    char *at = copy(out, before_path, strlen(before_path));
    at = template_fill(&path, message % options.message_topics, message, at);
    at = copy(at, after_path, strlen(after_path));
    if (!has_body) return (size_t)(at - out);
    size_t length = write_body(body, message, sent_ns);
    at = copy(write_number(at, (unsigned)length), "\r\n\r\n", 4);
    return (size_t)(copy(at, body, length) - out);
}

/* --- responses ---------------------------------------------------------------------------------------------------- */

/*     HEAD ─► BODY ────────────────────────────────────► DONE
 *       └───► SIZE ─► CHUNK ─► CHUNK_END ─► SIZE … ─► TRAILER ─► DONE     any ─► BROKEN */
enum response_state { HEAD, BODY, SIZE, CHUNK, CHUNK_END, TRAILER, DONE, BROKEN };

struct response {
    enum response_state state;
    int status;
    bool closes, chunked;
    char coding[16];
    size_t bytes, body_bytes;
    uint64_t print; /* FNV-1a of the body without the head of gzip, which may contain the time */
    size_t left;    /* bytes of the body or chunk */
    size_t used;    /* bytes in `line` */
    char line[LINE_BYTES];
};

static void begin_response(struct response *response)
{
    memset(response, 0, offsetof(struct response, line));
    response->print = 0xcbf29ce484222325ULL;
}

static void take_body(struct response *response, const char *bytes, size_t length)
{
    size_t skip = strcmp(response->coding, "gzip") == 0 ? GZIP_HEAD : 0;
    uint64_t print = response->print;
    for (size_t i = 0; options.same && i < length; i++)
        if (response->body_bytes + i >= skip) print = (print ^ (unsigned char)bytes[i]) * 0x100000001b3ULL;
    response->print = print;
    response->body_bytes += length;
    response->left -= length;
}

static const char *field_value(const char *line, const char *name)
{
    size_t length = strlen(name);
    if (strncasecmp(line, name, length) != 0 || line[length] != ':') return NULL;
    return line + length + 1 + strspn(line + length + 1, " ");
}

static void on_field(struct response *response, const char *line)
{
    const char *value;
    if ((value = field_value(line, "content-length"))) response->left = strtoul(value, NULL, 10);
    else if ((value = field_value(line, "transfer-encoding"))) response->chunked = true;
    else if ((value = field_value(line, "connection"))) response->closes = strncasecmp(value, "close", 5) == 0;
    else if ((value = field_value(line, "content-encoding"))) snprintf(response->coding, sizeof response->coding, "%.15s", value);
}

static void on_line(struct response *response)
{
    const char *line = response->line;
    char *end;
    switch (response->state) {
    case HEAD:
        if (!response->status) {
            response->status = strncmp(line, "HTTP/1.", 7) == 0 ? atoi(line + STATUS_AT) : 0;
            if (!response->status) response->state = BROKEN;
        } else if (*line) {
            on_field(response, line);
        } else {
            response->state = response->chunked ? SIZE : response->left ? BODY : DONE;
        }
        break;
    case SIZE:
        response->left = strtoul(line, &end, 16);
        response->state = end == line ? BROKEN : response->left ? CHUNK : TRAILER;
        break;
    case CHUNK_END: response->state = *line ? BROKEN : SIZE; break;
    case TRAILER: response->state = *line ? TRAILER : DONE; break;
    default: response->state = BROKEN;
    }
}

static size_t take_line(struct response *response, const char *bytes, size_t length)
{
    const char *end = memchr(bytes, '\n', length);
    size_t taken = end ? (size_t)(end - bytes) + 1 : length;
    if (response->used + taken >= LINE_BYTES) {
        response->state = BROKEN;
        return taken;
    }
    memcpy(response->line + response->used, bytes, taken);
    response->used += taken;
    if (!end) return taken;
    size_t whole = response->used - 1;
    if (whole > 0 && response->line[whole - 1] == '\r') whole--;
    response->line[whole] = '\0';
    response->used = 0;
    on_line(response);
    return taken;
}

/* Takes the bytes that belong to the response, and returns their number. */
static size_t take_response(struct response *response, const char *bytes, size_t length)
{
    size_t at = 0;
    while (at < length && response->state < DONE) {
        size_t left = length - at, taken = left < response->left ? left : response->left;
        if (response->state == BODY || response->state == CHUNK) {
            take_body(response, bytes + at, taken);
            if (response->left == 0) response->state = response->state == BODY ? DONE : CHUNK_END;
        } else {
            taken = take_line(response, bytes + at, left);
        }
        at += taken;
    }
    response->bytes += at;
    return at;
}

/* --- connections -------------------------------------------------------------------------------------------------- */

struct publisher {
    struct connection connection; /* first: the loop hands it back */
    bool blocked;                 /* the socket takes no more bytes */
    long waiting;                 /* responses to come */
    int message;                  /* the latest */
    int64_t sent_ns;
    char *out; /* bytes not sent yet: out_at to out_length */
    size_t out_at, out_length;
    struct response response;
};

static struct publisher *all;
static struct response first; /* which all others must equal, with --same */
static int turn;              /* the publisher whose turn it is */

static void on_ready(struct connection *connection, uint32_t events);

static void dial(struct publisher *p)
{
    int fd = net_dial(options.publish_port, NET_PUBLISHERS + (int)(p - all), 0);
    net_no_delay(fd);
    p->connection = (struct connection){.fd = fd, .on_ready = on_ready};
    p->blocked = false;
    begin_response(&p->response);
    publishers_tally.connects++;
    loop_watch(&p->connection, EPOLLIN);
}

static void send_waiting(struct publisher *p)
{
    while (p->out_at < p->out_length) {
        ssize_t sent = send(p->connection.fd, p->out + p->out_at, p->out_length - p->out_at, MSG_NOSIGNAL);
        if (sent < 0 && errno == EAGAIN) {
            if (!p->blocked) loop_change(&p->connection, EPOLLIN | EPOLLOUT);
            p->blocked = true;
            return;
        }
        if (sent < 0) {
            if (options.same && (errno == EPIPE || errno == ECONNRESET)) return; /* reading reports the close */
            give_up("a publisher lost its connection");
        }
        p->out_at += (size_t)sent;
    }
    p->out_at = p->out_length = 0;
    if (p->blocked) loop_change(&p->connection, EPOLLIN);
    p->blocked = false;
}

/* Servers close a connection after some hundred requests. A GET that was sent meanwhile is sent again. */
static void dial_again(struct publisher *p)
{
    if (p->waiting && (!options.same || p->response.bytes)) give_up(p->response.bytes ? "a response is cut off" : "the server closed the connection of a publisher");
    close(p->connection.fd);
    dial(p);
    p->out_at = 0;
    p->out_length = p->waiting ? write_request(p->out, p->message, p->sent_ns) : 0;
    send_waiting(p);
}

static bool equals_first(const struct response *response)
{
    if (!first.status) first = *response;
    return strcmp(response->coding, options.coding) == 0 && response->body_bytes == first.body_bytes && response->print == first.print;
}

static void count_response(struct publisher *p)
{
    const struct response *response = &p->response;
    struct publishers_tally *tally = &publishers_tally;
    bool refused = response->status < 200 || response->status > (options.same ? 200 : 299);
    bool wrong = !refused && options.same && !equals_first(response);
    if ((refused || wrong) && tally->refused + tally->wrong == 0)
        fprintf(stderr, "%s: HTTP/1.1 %d, coding \"%s\", %zu bytes of body\n", refused ? "publisher refused" : "not the expected response",
                response->status, response->coding, response->body_bytes);
    if (refused) tally->refused++;
    else if (wrong) tally->wrong++;
    else tally->accepted++;
    tally->bytes += (int64_t)response->bytes;
    tally->body_bytes = response->body_bytes;
    tally->last_ns = clock_ns();
    p->waiting--;
    if (!options.pipeline) samples_add(&tally->answer, tally->last_ns - p->sent_ns);
}

static void on_readable(struct publisher *p)
{
    static char bytes[READ_BYTES];
    ssize_t length = read(p->connection.fd, bytes, sizeof bytes);
    if (length < 0 && errno == EAGAIN) return;
    if (length <= 0) {
        dial_again(p);
        return;
    }
    for (size_t at = 0; at < (size_t)length;) {
        if (!p->waiting) give_up("a response without a request");
        at += take_response(&p->response, bytes + at, (size_t)length - at);
        if (p->response.state == BROKEN) give_up("not a response of HTTP/1.1");
        if (p->response.state != DONE) return;
        count_response(p);
        bool closes = p->response.closes;
        begin_response(&p->response);
        if (closes) {
            dial_again(p);
            return;
        }
    }
}

static void on_ready(struct connection *connection, uint32_t events)
{
    struct publisher *p = (struct publisher *)connection;
    if (events & EPOLLOUT) send_waiting(p);
    if (events & ~(uint32_t)EPOLLOUT) on_readable(p);
}

void publishers_open(void)
{
    prepare_requests();
    if (options.speak) return;
    all = calloc((size_t)options.publishers, sizeof *all);
    if (!all) fail("publishers");
    for (int i = 0; i < options.publishers; i++) {
        all[i].out = malloc(BATCH_BYTES + request_most);
        if (!all[i].out) fail("publishers");
        dial(&all[i]);
    }
}

static struct publisher *find_free(void)
{
    for (int i = 0; i < options.publishers; i++) {
        struct publisher *p = &all[(turn + i) % options.publishers];
        if (options.pipeline ? p->blocked : p->waiting > 0) continue;
        turn = (int)(p - all);
        return p;
    }
    return NULL;
}

/* A command has no response: it counts as accepted when it is sent. */
static bool speak(int message)
{
    int64_t now = clock_ns();
    if (!subscribers_speak(message, body, write_body(body, message, now))) return false;
    publishers_tally.sent++;
    publishers_tally.accepted++;
    publishers_tally.last_ns = now;
    return true;
}

bool publishers_send(int message)
{
    if (options.speak) return speak(message);
    struct publisher *p = find_free();
    if (!p) return false;
    p->message = message;
    p->sent_ns = clock_ns();
    p->out_length += write_request(p->out + p->out_length, message, p->sent_ns);
    p->waiting++;
    publishers_tally.sent++;
    if (!options.pipeline || p->out_length >= BATCH_BYTES) {
        send_waiting(p);
        turn = (turn + 1) % options.publishers;
    }
    return true;
}

void publishers_flush(void)
{
    for (int i = 0; i < options.publishers; i++)
        if (all[i].out_length && !all[i].blocked) send_waiting(&all[i]);
}

long publishers_waiting(void)
{
    const struct publishers_tally *tally = &publishers_tally;
    return tally->sent - tally->accepted - tally->refused - tally->wrong;
}

void publishers_reset(void)
{
    samples_clear(&publishers_tally.answer);
    publishers_tally = (struct publishers_tally){.last_ns = clock_ns(), .answer = publishers_tally.answer};
}
