#include "hk_test.h"

#include "hk_buf.h"
#include "http1_outcome.h"

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* -- The vectors of test/vectors/http1_*.txt ----------------------------------------------------------------------- */

typedef struct vector {
    hk_bytes_t name;
    outcome_task_t task;
    char bytes[4000], expected[8000];
    size_t length, expected_length;
} vector_t;

static void add(char *to, size_t *length, size_t size, hk_bytes_t bytes)
{
    HK_CHECK(bytes.length <= size - *length);
    memcpy(to + *length, bytes.at, bytes.length);
    *length += bytes.length;
}

static void unescape(vector_t *vector, hk_bytes_t text)
{
    for (size_t i = 0; i < text.length; i++) {
        char byte = text.at[i];
        if (byte == '\\') {
            char escape = text.at[++i];
            byte = escape == 'r' ? '\r' : escape == 'n' ? '\n' : escape == 't' ? '\t' : '\\';
            if (escape == 'x') {
                char digits[] = {text.at[i + 1], text.at[i + 2], '\0'};
                byte = (char)strtoul(digits, NULL, 16);
                i += 2;
            }
        }
        add(vector->bytes, &vector->length, sizeof(vector->bytes), hk_bytes(&byte, 1));
    }
}

/* Takes the next vector off `rest`; false when there is none. */
static bool next_vector(hk_bytes_t *rest, vector_t *vector)
{
    hk_bytes_t line;
    *vector = (vector_t){.task = outcome_task(false)};
    while (hk_test_line(rest, &line)) {
        hk_bytes_t key = hk_test_field(&line, ' ');
        if (key.length == 0 && vector->name.length > 0) {
            return true;
        }
        if (hk_bytes_equal(key, HK_BYTES("name"))) {
            vector->name = line;
        } else if (hk_bytes_equal(key, HK_BYTES("kind"))) {
            vector->task.responses = hk_bytes_equal(hk_test_field(&line, ' '), HK_BYTES("response"));
            vector->task.method = line.length > 0 ? line : vector->task.method;
        } else if (hk_bytes_equal(key, HK_BYTES("limits"))) {
            while (line.length > 0) {
                HK_CHECK(outcome_set_limit(&vector->task, hk_test_field(&line, ',')));
            }
        } else if (hk_bytes_equal(key, HK_BYTES("send"))) {
            unescape(vector, line);
        } else if (hk_bytes_equal(key, HK_BYTES("="))) {
            add(vector->expected, &vector->expected_length, sizeof(vector->expected), line);
            add(vector->expected, &vector->expected_length, sizeof(vector->expected), HK_BYTES("\n"));
        }
    }
    return vector->name.length > 0;
}

/* The text of an outcome; borrowed until the next call. */
static hk_bytes_t outcome(const outcome_task_t *task, hk_bytes_t input)
{
    static char text[64000];
    FILE *out = fmemopen(text, sizeof(text), "w");
    HK_CHECK(out != NULL);
    outcome_of(out, task, input);
    long length = ftell(out);
    fclose(out);
    return hk_bytes(text, (size_t)length);
}

static size_t each_vector(const char *path, void (*check)(vector_t *vector))
{
    static vector_t vector;
    hk_bytes_t rest = hk_test_file(path);
    size_t count = 0;
    while (next_vector(&rest, &vector)) {
        hk_test_note("%.*s", (int)vector.name.length, vector.name.at);
        check(&vector);
        count++;
    }
    return count;
}

static void check_whole(vector_t *vector)
{
    vector->task.room = hk_test_guarded_room(sizeof(vector->bytes));
    vector->task.room_size = sizeof(vector->bytes);
    HK_CHECK_BYTES(hk_bytes(vector->expected, vector->expected_length),
                   outcome(&vector->task, hk_bytes(vector->bytes, vector->length)));
    hk_test_unguard(vector->task.room);
}

static void check_cut(vector_t *vector)
{
    vector->task.room = hk_test_guarded_room(sizeof(vector->bytes));
    vector->task.room_size = sizeof(vector->bytes);
    for (size_t first = 1; first < vector->length; first++) {
        for (size_t step = 0; step < 3; step++) {
            vector->task.first = first;
            vector->task.step = step;
            HK_CHECK_BYTES(hk_bytes(vector->expected, vector->expected_length),
                           outcome(&vector->task, hk_bytes(vector->bytes, vector->length)));
        }
    }
    hk_test_unguard(vector->task.room);
}

HK_TEST(requests_come_to_what_their_vectors_say)
{
    HK_CHECK(each_vector("test/vectors/http1_requests.txt", check_whole) > 200);
}

HK_TEST(responses_come_to_what_their_vectors_say)
{
    HK_CHECK(each_vector("test/vectors/http1_responses.txt", check_whole) > 60);
}

HK_TEST(bodies_come_to_what_their_vectors_say)
{
    HK_CHECK(each_vector("test/vectors/http1_bodies.txt", check_whole) > 70);
}

HK_TEST(limits_are_kept_to_the_byte)
{
    HK_CHECK(each_vector("test/vectors/http1_limits.txt", check_whole) > 30);
}

HK_TEST(vectors_come_to_the_same_cut_at_every_byte)
{
    each_vector("test/vectors/http1_requests.txt", check_cut);
    each_vector("test/vectors/http1_responses.txt", check_cut);
    each_vector("test/vectors/http1_bodies.txt", check_cut);
    each_vector("test/vectors/http1_limits.txt", check_cut);
}

/* A copy of the vector's bytes with some changed, cut at random, comes to what it comes to whole. */
static void check_changed(vector_t *vector)
{
    static const char telling[] = "\r\n\t :;,=\"\\0a/\x7F\xFF#+-";
    for (int turn = 0; turn < 20 && vector->length > 0; turn++) {
        char bytes[sizeof(vector->bytes)], whole[64000];
        memcpy(bytes, vector->bytes, vector->length);
        for (size_t changes = 1 + hk_test_below(3); changes > 0; changes--) {
            bytes[hk_test_below(vector->length)] = telling[hk_test_below(sizeof(telling))];
        }
        hk_bytes_t input = hk_bytes(bytes, vector->length);
        vector->task.first = vector->task.step = 0;
        hk_bytes_t text = outcome(&vector->task, input);
        size_t length = text.length;
        memcpy(whole, text.at, length);
        vector->task.first = 1 + hk_test_below(vector->length);
        vector->task.step = 1 + hk_test_below(5);
        HK_CHECK_BYTES(hk_bytes(whole, length), outcome(&vector->task, input));
    }
}

HK_TEST(malformed_messages_come_to_the_same_however_they_are_cut)
{
    each_vector("test/vectors/http1_requests.txt", check_changed);
    each_vector("test/vectors/http1_responses.txt", check_changed);
    each_vector("test/vectors/http1_bodies.txt", check_changed);
}

/* -- The calls ----------------------------------------------------------------------------------------------------- */

#define HOST "Host: a\r\n"

/* A call with room for four fields, its results filled so that it shows whether they were touched. */
typedef struct call {
    hk_http1_header_t headers[4];
    hk_http1_scan_t scan;
    hk_http1_request_t request;
    size_t consumed;
} call_t;

static void begin(call_t *call)
{
    memset(call, 0x5A, sizeof(*call));
    call->scan = (hk_http1_scan_t){0};
    call->request.headers = call->headers;
    call->request.header_capacity = COUNT(call->headers);
}

static hk_status_t parse(call_t *call, hk_bytes_t input)
{
    return hk_http1_parse_request(input, &hk_http1_default_limits, &call->scan, &call->request, &call->consumed);
}

HK_TEST(results_are_untouched_unless_the_head_is_whole_and_well)
{
    static const struct {
        hk_bytes_t input;
        hk_status_t status;
        hk_http1_error_t error;
    } cases[] = {
        {{NULL, 0}, HK_AGAIN, HK_HTTP1_NONE},
        {HK_BYTES("GET / HTTP/1.1\r\nHost: a\r\n"), HK_AGAIN, HK_HTTP1_NONE},
        {HK_BYTES("GET / HTTP/1.1\r\nHost: a\r\nX : b\r\n\r\n"), HK_INVALID, HK_HTTP1_HEADER_NAME},
        {HK_BYTES("GET / HTTP/1.1\r\n\r\n"), HK_INVALID, HK_HTTP1_HOST_MISSING},
        {HK_BYTES("GET / HTTP/1.1\r\nHost: a\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n"), HK_TOO_LARGE,
         HK_HTTP1_TOO_MANY_HEADERS},
        {HK_BYTES("A2345678901234567890123456789012345 / HTTP/1.1\r\n"), HK_TOO_LARGE, HK_HTTP1_METHOD_TOO_LONG},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        call_t call, before;
        begin(&call);
        before = call;
        hk_test_note("case %zu", i);
        HK_CHECK_STATUS(cases[i].status, parse(&call, cases[i].input));
        HK_CHECK_EQUAL_INT(cases[i].error, call.scan.error);
        HK_CHECK(memcmp(&before.request, &call.request, sizeof(call.request)) == 0);
        HK_CHECK_EQUAL_UINT(before.consumed, call.consumed);
    }
}

HK_TEST(slices_point_into_the_input)
{
    call_t call;
    hk_bytes_t input = hk_test_guarded(HK_BYTES("\r\nPOST /a?b HTTP/1.1\r\nHost: c:1\r\nContent-Length: 2\r\n\r\nhi"));
    begin(&call);
    HK_CHECK_OK(parse(&call, input));
    HK_CHECK_EQUAL_UINT(input.length - 2, call.consumed);
    HK_CHECK(call.request.method.at == input.at + 2);
    HK_CHECK_BYTES("POST", call.request.method);
    HK_CHECK_BYTES("/a?b", call.request.target);
    HK_CHECK(call.request.path.at == call.request.target.at);
    HK_CHECK_BYTES("/a", call.request.path);
    HK_CHECK(call.request.query.at == call.request.path.at + 3);
    HK_CHECK_BYTES("b", call.request.query);
    HK_CHECK(call.request.authority.at == call.headers[0].value.at);
    HK_CHECK_BYTES("c:1", call.request.authority);
    HK_CHECK_EQUAL_UINT(2, call.request.header_count);
    HK_CHECK_BYTES("Content-Length", call.headers[1].name);
}

HK_TEST(an_empty_query_is_there_and_no_query_is_not)
{
    call_t call;
    begin(&call);
    HK_CHECK_OK(parse(&call, HK_BYTES("GET /? HTTP/1.1\r\n" HOST "\r\n")));
    HK_CHECK(call.request.query.at != NULL && call.request.query.length == 0);
    HK_CHECK_OK(parse(&call, HK_BYTES("GET / HTTP/1.1\r\n" HOST "\r\n")));
    HK_CHECK(call.request.query.at == NULL && call.request.query.length == 0);
}

HK_TEST(a_scan_is_clear_for_the_next_message)
{
    call_t call;
    begin(&call);
    HK_CHECK_STATUS(HK_AGAIN, parse(&call, HK_BYTES("\r\nGET / HTTP/1.1\r\nHo")));
    HK_CHECK_EQUAL_UINT(2, call.scan.start);
    HK_CHECK_OK(parse(&call, HK_BYTES("\r\nGET / HTTP/1.1\r\n" HOST "\r\n")));
    HK_CHECK_EQUAL_UINT(0, call.scan.start + call.scan.line + call.scan.looked);
    HK_CHECK_OK(parse(&call, HK_BYTES("GET / HTTP/1.1\r\n" HOST "\r\n")));
}

HK_TEST(a_head_that_dribbles_in_is_looked_through_once)
{
    static char head[60000];
    size_t length = (size_t)sprintf(head, "GET / HTTP/1.1\r\n" HOST "X: ");
    memset(head + length, 'a', 30000);
    length += 30000;
    length += (size_t)sprintf(head + length, "\r\n\r\n");
    call_t call;
    begin(&call);
    for (size_t arrived = 1; arrived < length; arrived++) {
        HK_CHECK_STATUS(HK_AGAIN, parse(&call, hk_bytes(head, arrived)));
        HK_CHECK_EQUAL_UINT(arrived, call.scan.looked);
    }
    HK_CHECK_OK(parse(&call, hk_bytes(head, length)));
    HK_CHECK_EQUAL_UINT(30000, call.headers[1].value.length);
}

HK_TEST(bytes_that_were_looked_at_are_not_read_again)
{
    static char head[] = "GET / HTTP/1.1\r\n" HOST "X: abc";
    call_t call;
    begin(&call);
    HK_CHECK_STATUS(HK_AGAIN, parse(&call, hk_bytes(head, sizeof(head) - 1)));
    head[sizeof(head) - 3] = '\n';
    HK_CHECK_STATUS(HK_AGAIN, parse(&call, hk_bytes(head, sizeof(head) - 1)));
}

HK_TEST(slices_follow_bytes_that_have_moved)
{
    static const char text[] = "GET /a?b HTTP/1.1\r\nHost: c\r\nX: d\r\n\r\n";
    char here[sizeof(text)], there[sizeof(text)];
    memcpy(here, text, sizeof(text));
    call_t call;
    begin(&call);
    HK_CHECK_OK(parse(&call, hk_bytes(here, sizeof(text) - 1)));
    memcpy(there, here, sizeof(text));
    memset(here, '!', sizeof(here));
    hk_http1_request_moved(&call.request, here, there);
    HK_CHECK_BYTES("GET", call.request.method);
    HK_CHECK_BYTES("/a?b", call.request.target);
    HK_CHECK_BYTES("/a", call.request.path);
    HK_CHECK_BYTES("b", call.request.query);
    HK_CHECK_BYTES("c", call.request.authority);
    HK_CHECK_BYTES("X", call.headers[1].name);
    HK_CHECK_BYTES("d", call.headers[1].value);
    hk_bytes_t without = HK_BYTES("GET / HTTP/1.0\r\n\r\n");
    HK_CHECK_OK(parse(&call, without));
    hk_http1_request_moved(&call.request, without.at, there);
    HK_CHECK(call.request.query.at == NULL && call.request.authority.at == NULL);

    hk_http1_header_t header;
    hk_http1_response_t response = {.headers = &header, .header_capacity = 1};
    char answer[] = "HTTP/1.1 204 None\r\nX: y\r\n\r\n", moved[sizeof(answer)];
    memcpy(moved, answer, sizeof(answer));
    HK_CHECK_OK(hk_http1_parse_response(hk_bytes(answer, sizeof(answer) - 1), &hk_http1_default_limits, HK_BYTES("GET"),
                                        &call.scan, &response, &call.consumed));
    hk_http1_response_moved(&response, answer, moved);
    HK_CHECK(response.reason.at == moved + 13 && header.value.at == moved + 22);
}

HK_TEST(fields_are_found_in_any_case)
{
    static const hk_http1_header_t headers[] = {
        {HK_BYTES("Cookie"), HK_BYTES("a")}, {HK_BYTES("X-Y"), HK_BYTES("b")}, {HK_BYTES("cookie"), HK_BYTES("c")}};
    HK_CHECK(hk_http1_header_find(headers, 3, HK_BYTES("COOKIE")) == &headers[0]);
    HK_CHECK(hk_http1_header_find(headers, 3, HK_BYTES("x-y")) == &headers[1]);
    HK_CHECK(hk_http1_header_find(headers, 3, HK_BYTES("x-z")) == NULL);
    HK_CHECK(hk_http1_header_find(headers, 3, HK_BYTES("x-")) == NULL);
    HK_CHECK(hk_http1_header_find(NULL, 0, HK_BYTES("x-y")) == NULL);
    HK_CHECK_EQUAL_UINT(2, hk_http1_header_count(headers, 3, HK_BYTES("Cookie")));
    HK_CHECK_EQUAL_UINT(0, hk_http1_header_count(headers, 3, HK_BYTES("")));
}

HK_TEST(pipelined_requests_are_taken_from_one_buffer)
{
    static const char sent[] = "POST /1 HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\none"
                               "GET /2 HTTP/1.1\r\n" HOST "\r\n"
                               "POST /3 HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n5\r\nthree\r\n0\r\n\r\n";
    hk_buf_t in, seen;
    hk_buf_init(&in, hk_test_alloc());
    hk_buf_init(&seen, hk_test_alloc());
    hk_http1_body_t body = {0};
    bool in_body = false;
    call_t call;
    begin(&call);
    for (size_t i = 0; i < sizeof(sent) - 1; i++) {
        HK_CHECK_OK(hk_buf_append(&in, hk_bytes(&sent[i], 1)));
        for (;;) {
            hk_bytes_t data = hk_bytes(NULL, 0);
            size_t consumed;
            hk_status_t status;
            if (in_body) {
                status = hk_http1_body_next(&body, hk_buf_bytes(&in), &hk_http1_default_limits, &data, &consumed);
            } else {
                status = parse(&call, hk_buf_bytes(&in));
                consumed = call.consumed;
            }
            if (status == HK_AGAIN) {
                break;
            }
            HK_CHECK_OK(status);
            if (!in_body) {
                HK_CHECK_OK(hk_buf_append(&seen, call.request.target));
                hk_http1_body_init(&body, call.request.framing);
            }
            HK_CHECK_OK(hk_buf_append(&seen, data));
            hk_buf_consume(&in, consumed);
            in_body = !hk_http1_body_ended(&body);
        }
    }
    HK_CHECK_BYTES("/1one/2/3three", hk_buf_bytes(&seen));
    HK_CHECK_EQUAL_UINT(0, hk_buf_bytes(&in).length);
    hk_buf_release(&in);
    hk_buf_release(&seen);
}

/* -- Bodies -------------------------------------------------------------------------------------------------------- */

static hk_http1_body_t body_of(hk_http1_framing_kind_t kind, uint64_t length)
{
    hk_http1_body_t body;
    hk_http1_body_init(&body, (hk_http1_framing_t){kind, length});
    return body;
}

static hk_status_t next_piece(hk_http1_body_t *body, hk_bytes_t input, hk_bytes_t *data, size_t *consumed)
{
    return hk_http1_body_next(body, input, &hk_http1_default_limits, data, consumed);
}

HK_TEST(a_body_of_nothing_has_ended)
{
    hk_http1_body_t none = body_of(HK_HTTP1_NO_BODY, 0), empty = body_of(HK_HTTP1_LENGTH, 0);
    HK_CHECK(hk_http1_body_ended(&none) && hk_http1_body_ended(&empty));
    HK_CHECK_OK(hk_http1_body_close(&none));
}

HK_TEST(a_body_of_a_length_takes_no_byte_of_the_next_message)
{
    hk_http1_body_t body = body_of(HK_HTTP1_LENGTH, 5);
    hk_bytes_t data = HK_BYTES("untouched");
    size_t consumed = 77;
    HK_CHECK_STATUS(HK_AGAIN, next_piece(&body, hk_bytes(NULL, 0), &data, &consumed));
    HK_CHECK_BYTES("untouched", data);
    HK_CHECK_EQUAL_UINT(77, consumed);
    HK_CHECK_OK(next_piece(&body, HK_BYTES("ab"), &data, &consumed));
    HK_CHECK_BYTES("ab", data);
    HK_CHECK(!hk_http1_body_ended(&body));
    hk_bytes_t input = HK_BYTES("cdeGET /");
    HK_CHECK_OK(next_piece(&body, input, &data, &consumed));
    HK_CHECK_BYTES("cde", data);
    HK_CHECK(data.at == input.at);
    HK_CHECK_EQUAL_UINT(3, consumed);
    HK_CHECK(hk_http1_body_ended(&body));
}

HK_TEST(chunks_are_slices_of_the_input)
{
    hk_http1_body_t body = body_of(HK_HTTP1_CHUNKED, 0);
    hk_bytes_t input = hk_test_guarded(HK_BYTES("3;a=b\r\none\r\n4\r\nfour\r\n0\r\nX: y\r\n\r\nGET"));
    hk_bytes_t data;
    size_t consumed;
    HK_CHECK_OK(next_piece(&body, input, &data, &consumed));
    HK_CHECK_BYTES("one", data);
    HK_CHECK(data.at == input.at + 7);
    HK_CHECK_EQUAL_UINT(10, consumed);
    input = hk_bytes(input.at + consumed, input.length - consumed);
    HK_CHECK_OK(next_piece(&body, input, &data, &consumed));
    HK_CHECK_BYTES("four", data);
    HK_CHECK_EQUAL_UINT(9, consumed);
    input = hk_bytes(input.at + consumed, input.length - consumed);
    HK_CHECK_OK(next_piece(&body, input, &data, &consumed));
    HK_CHECK_BYTES("", data);
    HK_CHECK_EQUAL_UINT(input.length - 3, consumed);
    HK_CHECK(hk_http1_body_ended(&body));
    HK_CHECK_OK(hk_http1_body_close(&body));
}

HK_TEST(framing_that_is_whole_is_consumed_though_nothing_follows_it)
{
    hk_http1_body_t body = body_of(HK_HTTP1_CHUNKED, 0);
    hk_bytes_t data;
    size_t consumed = 77;
    HK_CHECK_STATUS(HK_AGAIN, next_piece(&body, HK_BYTES("3\r"), &data, &consumed));
    HK_CHECK_EQUAL_UINT(77, consumed);
    HK_CHECK_OK(next_piece(&body, HK_BYTES("3\r\n"), &data, &consumed));
    HK_CHECK_BYTES("", data);
    HK_CHECK_EQUAL_UINT(3, consumed);
    HK_CHECK_OK(next_piece(&body, HK_BYTES("one\r"), &data, &consumed));
    HK_CHECK_EQUAL_UINT(3, consumed);
    HK_CHECK_STATUS(HK_AGAIN, next_piece(&body, HK_BYTES("\r"), &data, &consumed));
    HK_CHECK_OK(next_piece(&body, HK_BYTES("\r\n0\r\nX"), &data, &consumed));
    HK_CHECK_EQUAL_UINT(5, consumed);
    HK_CHECK_STATUS(HK_AGAIN, next_piece(&body, HK_BYTES("X: y\r"), &data, &consumed));
    HK_CHECK_OK(next_piece(&body, HK_BYTES("X: y\r\n\r\n"), &data, &consumed));
    HK_CHECK(hk_http1_body_ended(&body));
}

HK_TEST(a_body_until_close_ends_with_the_connection)
{
    hk_http1_body_t body = body_of(HK_HTTP1_UNTIL_CLOSE, 0);
    hk_bytes_t data;
    size_t consumed;
    HK_CHECK_OK(next_piece(&body, HK_BYTES("HTTP/1.1 200 OK\r\n\r\n"), &data, &consumed));
    HK_CHECK_BYTES("HTTP/1.1 200 OK\r\n\r\n", data);
    HK_CHECK(!hk_http1_body_ended(&body));
    HK_CHECK_OK(hk_http1_body_close(&body));
    HK_CHECK(hk_http1_body_ended(&body));
}

HK_TEST(a_body_that_is_cut_off_is_malformed)
{
    hk_http1_body_t bodies[] = {body_of(HK_HTTP1_LENGTH, 1), body_of(HK_HTTP1_CHUNKED, 0)};
    for (size_t i = 0; i < COUNT(bodies); i++) {
        HK_CHECK_STATUS(HK_INVALID, hk_http1_body_close(&bodies[i]));
        HK_CHECK_EQUAL_INT(HK_HTTP1_TRUNCATED, bodies[i].error);
    }
}

HK_TEST(sizes_of_64_bits_are_counted_down)
{
    hk_http1_body_t body = body_of(HK_HTTP1_CHUNKED, 0);
    hk_bytes_t data;
    size_t consumed;
    HK_CHECK_OK(next_piece(&body, HK_BYTES("FFFFFFFFFFFFFFFF\r\nab"), &data, &consumed));
    HK_CHECK_BYTES("ab", data);
    HK_CHECK_EQUAL_UINT(UINT64_MAX - 2, body.left);
    body = body_of(HK_HTTP1_LENGTH, UINT64_MAX);
    HK_CHECK_OK(next_piece(&body, HK_BYTES("abc"), &data, &consumed));
    HK_CHECK_EQUAL_UINT(UINT64_MAX - 3, body.left);
}

HK_TEST(what_is_too_large_is_told_from_what_is_malformed)
{
    static const struct {
        hk_bytes_t input;
        hk_status_t status;
        hk_http1_error_t error;
    } cases[] = {
        {HK_BYTES("123456789\r\n"), HK_TOO_LARGE, HK_HTTP1_CHUNK_LINE_TOO_LONG},
        {HK_BYTES("0\r\nX: 123456789012\r\n"), HK_TOO_LARGE, HK_HTTP1_LINE_TOO_LONG},
        {HK_BYTES("0\r\nX: 1\r\nX: 1\r\nX: 1\r\nX: 1\r\n"), HK_TOO_LARGE, HK_HTTP1_TRAILERS_TOO_LARGE},
        {HK_BYTES("x\r\n"), HK_INVALID, HK_HTTP1_CHUNK_SIZE},
    };
    hk_http1_limits_t limits = hk_http1_default_limits;
    limits.chunk_line_bytes = 8;
    limits.line_bytes = 10;
    limits.trailer_bytes = 20;
    for (size_t i = 0; i < COUNT(cases); i++) {
        hk_http1_body_t body = body_of(HK_HTTP1_CHUNKED, 0);
        hk_bytes_t data;
        size_t consumed;
        hk_test_note("case %zu", i);
        HK_CHECK_STATUS(cases[i].status, hk_http1_body_next(&body, cases[i].input, &limits, &data, &consumed));
        HK_CHECK_EQUAL_INT(cases[i].error, body.error);
    }
}

/* -- Limits and errors --------------------------------------------------------------------------------------------- */

HK_TEST(limits_without_bounds_do_not_overflow)
{
    hk_http1_limits_t limits;
    memset(&limits, 0xFF, sizeof(limits));
    call_t call;
    begin(&call);
    hk_bytes_t head = HK_BYTES("\r\nGET /a HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    HK_CHECK_OK(hk_http1_parse_request(head, &limits, &call.scan, &call.request, &call.consumed));
    hk_http1_body_t body = body_of(HK_HTTP1_CHUNKED, 0);
    hk_bytes_t data;
    HK_CHECK_OK(hk_http1_body_next(&body, HK_BYTES("0\r\nX: y\r\n\r\n"), &limits, &data, &call.consumed));
    HK_CHECK(hk_http1_body_ended(&body));
    limits = hk_http1_default_limits;
    limits.method_bytes = SIZE_MAX;
    HK_CHECK_OK(hk_http1_parse_request(head, &limits, &call.scan, &call.request, &call.consumed));
}

HK_TEST(every_error_has_a_name_a_text_and_a_status_that_refuses)
{
    for (int error = HK_HTTP1_NONE + 1; error <= HK_HTTP1_TRUNCATED; error++) {
        int status = hk_http1_error_status((hk_http1_error_t)error);
        HK_CHECK(status == 400 || status == 414 || status == 431 || status == 501 || status == 505);
        HK_CHECK(strlen(hk_http1_error_text((hk_http1_error_t)error)) > 10);
    }
    HK_CHECK_BYTES("TARGET_TOO_LONG", hk_test_text(hk_http1_error_name(HK_HTTP1_TARGET_TOO_LONG)));
    HK_CHECK_EQUAL_INT(414, hk_http1_error_status(HK_HTTP1_TARGET_TOO_LONG));
}

HK_TEST(each_byte_is_allowed_in_a_value_only_if_it_is_no_control)
{
    /* At each place of a long value, as eight bytes are looked at together. */
    for (int byte = 0; byte < 256; byte++) {
        for (size_t at = 0; at < 20; at++) {
            char head[] = "GET / HTTP/1.0\r\nX:01234567890123456789\r\n\r\n";
            head[18 + at] = (char)byte;
            call_t call;
            begin(&call);
            hk_test_note("byte %d at %zu", byte, at);
            hk_bytes_t input = hk_bytes(head, sizeof(head) - 1);
            bool allowed = byte == '\t' || (byte >= 0x20 && byte != 0x7F);
            HK_CHECK_STATUS(allowed ? HK_OK : HK_INVALID, parse(&call, input));
        }
    }
}

HK_TEST(each_byte_is_allowed_in_names_methods_and_targets_as_the_specification_says)
{
    static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    for (int byte = 0; byte < 256; byte++) {
        bool in_token = byte != 0 && strchr(token, byte) != NULL,
             in_target = byte > 0x20 && byte != 0x7F && byte != '#';
        char name[] = "GET / HTTP/1.0\r\nX?Y: 1\r\n\r\n", method[] = "G?T / HTTP/1.0\r\n\r\n";
        char target[] = "GET /?x HTTP/1.0\r\n\r\n";
        name[17] = method[1] = target[5] = (char)byte;
        call_t call;
        hk_test_note("byte %d", byte);
        begin(&call);
        hk_status_t status = parse(&call, hk_bytes(name, sizeof(name) - 1));
        HK_CHECK_STATUS(in_token || byte == ':' ? HK_OK : HK_INVALID, status);
        begin(&call);
        status = parse(&call, hk_bytes(method, sizeof(method) - 1));
        HK_CHECK_STATUS(in_token ? HK_OK : HK_INVALID, status);
        begin(&call);
        status = parse(&call, hk_bytes(target, sizeof(target) - 1));
        HK_CHECK_STATUS(in_target ? HK_OK : HK_INVALID, status);
    }
}
