#include "hk_gate_support.h"

#include "hk_form.h"

#define ROWS(rows) (sizeof(rows) / sizeof(*(rows)))

static const char TOKENS[] = "mercureAuthorization=t1; __Secure-mercure_access_token=t2";

/* --- what is in a key --------------------------------------------------------------------------------------------- */

static const struct {
    const char *one, *other;
} same[] = {
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|User-Agent: x|Accept-Language: de|X-Forwarded-Proto: https"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Host: other.example|Referer: https://evil.example/"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|X-Forwarded-For: 10.0.0.1|Content-Type: text/plain"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Last-Event-ID: 7"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Last-Event-ID: 7|Last-Event-ID: 8"},
    {"GET " HUB "?match=/a", "GET " HUB "?last_event_id=7&match=/a"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&l%61st_event_id=7"},
    {"GET " HUB "?match=/a", "GET " HUB "?x=1&match=/a&y&=&==&mat=/b&atopic=c&Topic=d&Authorization=e"},
    {"GET " HUB "?match=/a", "GET " HUB "?&&match=/a&"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Content-Length: 0"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Referer: a|Referer: b|Connection: close"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Last_Event_ID: 7|Idempotency_Key: k|Authorization_: a"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Cookie: session=1; theme=dark"},
    {"GET " HUB "?match=/a",
     "GET " HUB "?match=/a|Cookie: mercureauthorization=1; xmercureAuthorization=2; mercureAuthorization"},
    {"GET " HUB, "GET " HUB "?"},
    {"GET " HUB "|Authorization: Bearer a", "GET " HUB "|AUTHORIZATION:   Bearer a  "},
    {"GET " HUB "|Cookie: mercureAuthorization=a", "GET " HUB "|cookie: x=1;mercureAuthorization=a ;y=2"},
    {"GET " HUB "|Cookie: mercureAuthorization=a", "GET " HUB "|Cookie: ;;\t mercureAuthorization=a;;"},
    {"POST " HUB "|" FORM, "POST " HUB "|" FORM "|User-Agent: x|Content-Length: 12|X-Forwarded-For: 10.0.0.1"},
    {"POST " HUB "|" FORM, "POST " HUB "|" FORM "|Accept: application/vnd.msgpack|Accept-Encoding: gzip"},
    {"POST " HUB "|" FORM, "POST " HUB "|" FORM "|Transfer-Encoding: chunked|Expect: 100-continue|Last-Event-ID: 1"},
};

static const struct {
    const char *one, *other;
} different[] = {
    {"GET " HUB "?match=/a", "POST " HUB},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Accept: application/vnd.msgpack"},
    {"GET " HUB "?match=/a|Accept: text/event-stream", "GET " HUB "?match=/a|Accept: application/vnd.msgpack"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Accept-Encoding: gzip"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a|Accept-Encoding:"},
    {"GET " HUB "?match=/a|Accept: gzip", "GET " HUB "?match=/a|Accept-Encoding: gzip"},
    {"GET " HUB, "POST " HUB},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/b"},
    {"GET " HUB "?match=/a", "GET " HUB},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&match=/a"},
    {"GET " HUB "?match=/a&match=/b", "GET " HUB "?match=/b&match=/a"},
    {"GET " HUB "?match=/a", "GET " HUB "?match_urlpattern=/a"},
    {"GET " HUB "?match=/a", "GET " HUB "?MATCH=/a"},
    {"GET " HUB "?match=/a", "GET " HUB "?matching=/a"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&match"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&match="},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&%6Datch=/b"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&MATCH=/b"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&matching=/b"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&%6D%61%74%63%68%5F%75%72%6C%70%61%74%74%65%72%6E=/b"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=%2Fa"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&topic=/b"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&%74%6F%70%69%63=/b"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&authorization=t"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a&%61%75%74%68%6F%72%69%7A%61%74%69%6F%6E=t"},
    {"GET " HUB "?match=/a", "GET " HUB "?match=/a HTTP/1.0"},
    {"GET " HUB "|Authorization: Bearer a", "GET " HUB "|Authorization: Bearer A"},
    {"GET " HUB "|Authorization: Bearer a", "GET " HUB},
    {"GET " HUB "|Authorization:", "GET " HUB},
    {"GET " HUB "|Origin: https://a.example", "GET " HUB "|Origin: https://b.example"},
    {"GET " HUB "|Origin:", "GET " HUB},
    {"GET " HUB "|Authorization: ab|Origin: c", "GET " HUB "|Authorization: a|Origin: bc"},
    {"GET " HUB "|Authorization: a", "GET " HUB "|Origin: a"},
    {"POST " HUB "|Origin: ab|Host: c", "POST " HUB "|Origin: a|Host: bc"},
    {"GET " HUB "|Cookie: mercureAuthorization=a", "GET " HUB "|Authorization: mercureAuthorization=a"},
    {"GET " HUB "|Cookie: mercureAuthorization=a", "GET " HUB "|Cookie: mercureAuthorization=b"},
    {"GET " HUB "|Cookie: mercureAuthorization=a", "GET " HUB "|Cookie: __Secure-mercure_access_token=a"},
    {"GET " HUB "|Cookie: mercureAuthorization=", "GET " HUB},
    {"GET " HUB "|Cookie: mercureAuthorization=a; mercureAuthorization=b",
     "GET " HUB "|Cookie: mercureAuthorization=b; mercureAuthorization=a"},
    {"GET " HUB "|Cookie: mercureAuthorization=a",
     "GET " HUB "|Cookie: mercureAuthorization=a; mercureAuthorization=a"},
    {"GET " HUB "|Cookie: mercureAuthorization=a", "GET " HUB "|Cookie: mercureAuthorization=\"a\""},
    {"POST " HUB "|" FORM, "POST " HUB},
    {"POST " HUB "|" FORM, "POST " HUB "|" FORM "; charset=utf-8"},
    {"POST " HUB "|" FORM, "POST " HUB " HTTP/1.0|" FORM},
    {"POST " HUB "|" FORM, "POST " HUB "|" FORM "|Host: other.example"},
    {"POST " HUB "|" FORM, "POST " HUB "|" FORM "|Referer: https://example.com/"},
    {"POST " HUB "|Referer: a", "POST " HUB "|Referer: b"},
    {"POST " HUB "|Referer: a", "POST " HUB "|Origin: a"},
    {"POST " HUB "|Authorization: a", "POST " HUB "|Authorization: b"},
    {"POST " HUB "|Cookie: mercureAuthorization=a", "POST " HUB "|Cookie: mercureAuthorization=b"},
};

static const char *const keyless[] = {
    "HEAD " HUB "?match=/a",
    "QUERY " HUB "?match=/a",
    "OPTIONS " HUB,
    "DELETE " HUB,
    "get " HUB,
    "GETS " HUB,
    "GET /",
    "GET " HUB "/",
    "GET " HUB "/subscriptions",
    "GET /.well-known/mercur%65",
    "GET /.well-known/Mercure",
    "GET /./.well-known/mercure",
    "GET //.well-known/mercure",
    "GET http://example.com" HUB,
    "POST http://example.com" HUB,
    "GET " HUB "|Content-Length: 1",
    "GET " HUB "|Transfer-Encoding: chunked",
    "GET " HUB "|Idempotency-Key: k",
    "GET " HUB "|Authorization: a|Authorization: a",
    "GET " HUB "|Cookie: mercureAuthorization=a|Cookie: b=c",
    "GET " HUB "|Cookie: b=c|Cookie: mercureAuthorization=a",
    "GET " HUB "|Origin: a|origin: a",
    "POST " HUB "?",
    "POST " HUB "?match=/a",
    "POST " HUB "?authorization=a",
    "POST " HUB "|Idempotency-Key: k",
    "POST " HUB "|idempotency-key:",
    "POST " HUB "|Hikyaku-Idempotency: m",
    "POST " HUB "|Referer: a|Referer: b",
    "POST " HUB "|" FORM "|" FORM,
};

HK_TEST(requests_with_the_same_deciding_values_have_the_same_key)
{
    setup_t setup = set_up(gate_options());
    hk_buf_t one, other;
    hk_buf_init(&one, hk_test_alloc());
    hk_buf_init(&other, hk_test_alloc());
    uint64_t epoch;
    for (size_t i = 0; i < ROWS(same); i++) {
        key_of(setup.gate, same[i].one, &one, &epoch);
        key_of(setup.gate, same[i].other, &other, &epoch);
        HK_CHECK(one.length > 0);
        HK_CHECK_BYTES(hk_buf_bytes(&one), hk_buf_bytes(&other));
    }
    hk_buf_release(&one);
    hk_buf_release(&other);
    tear_down(setup);
}

HK_TEST(requests_with_different_deciding_values_have_different_keys)
{
    setup_t setup = set_up(gate_options());
    hk_buf_t one, other;
    hk_buf_init(&one, hk_test_alloc());
    hk_buf_init(&other, hk_test_alloc());
    uint64_t epoch;
    for (size_t i = 0; i < ROWS(different); i++) {
        key_of(setup.gate, different[i].one, &one, &epoch);
        key_of(setup.gate, different[i].other, &other, &epoch);
        HK_CHECK(one.length > 0 && other.length > 0);
        HK_CHECK(!hk_bytes_equal(hk_buf_bytes(&one), hk_buf_bytes(&other)));
    }
    hk_buf_release(&one);
    hk_buf_release(&other);
    tear_down(setup);
}

HK_TEST(what_is_unusual_has_no_key)
{
    setup_t setup = set_up(gate_options());
    hk_buf_t key;
    hk_buf_init(&key, hk_test_alloc());
    for (size_t i = 0; i < ROWS(keyless); i++) {
        uint64_t epoch = 77;
        key_of(setup.gate, keyless[i], &key, &epoch);
        HK_CHECK_EQUAL_UINT(0, key.length);
        HK_CHECK_EQUAL_UINT(0, epoch);
    }
    hk_buf_release(&key);
    tear_down(setup);
}

HK_TEST(names_that_only_old_clients_send_are_cursors_for_a_legacy_hub_alone)
{
    static const char *const old[] = {"GET " HUB "?match=/a&lastEventID=1", "GET " HUB "?match=/a&Last-Event-ID=1"};
    hk_buf_t query;
    hk_buf_init(&query, hk_test_alloc());
    for (size_t legacy = 0; legacy < 2; legacy++) {
        hk_gate_options_t options = gate_options();
        options.legacy = legacy == 1;
        setup_t setup = set_up(options);
        for (size_t i = 0; i < ROWS(old); i++) {
            request_t request;
            write_request(old[i], &request);
            hk_buf_clear(&query);
            HK_CHECK_OK(hk_gate_shown_query(setup.gate, &request.head, &query));
            HK_CHECK_BYTES(legacy == 1 ? strchr(old[i], '?') + 1 : "match=/a", hk_buf_bytes(&query));
        }
        tear_down(setup);
    }
    hk_buf_release(&query);
}

HK_TEST(a_key_is_appended_and_says_in_which_epoch_it_was_asked)
{
    setup_t setup = set_up(gate_options());
    request_t request;
    write_request("GET " HUB "?match=/a", &request);
    hk_buf_t key;
    hk_buf_init(&key, hk_test_alloc());
    HK_CHECK_OK(hk_buf_append(&key, HK_BYTES("before")));
    uint64_t epoch, later;
    HK_CHECK_OK(hk_gate_key(setup.gate, &request.head, &key, &epoch));
    HK_CHECK(key.length > 6 && hk_bytes_start_with(hk_buf_bytes(&key), HK_BYTES("before")));
    hk_gate_forget(setup.gate, HK_BYTES("nobody"));
    HK_CHECK_OK(hk_gate_key(setup.gate, &request.head, &key, &later));
    HK_CHECK_EQUAL_UINT(epoch + 1, later);
    hk_buf_release(&key);
    tear_down(setup);
}

/* --- what Ruby is shown ------------------------------------------------------------------------------------------- */

static const struct {
    const char *request, *query, *cookie, *headers; /* the names of those that are shown, in their order */
} shown[] = {
    {"GET " HUB "?match=/a&x=1&last_event_id=7&topic=b&%6Datch=c|Host: a", "match=/a&last_event_id=7&topic=b&%6Datch=c",
     "", ""},
    {"GET " HUB "?%6C%61%73%74%5F%65%76%65%6E%74%5F%69%64=1&%6C%61%73%74%5F%65%76%65%6E%74%5F%69%64%78=2",
     "%6C%61%73%74%5F%65%76%65%6E%74%5F%69%64=1", "", ""},
    {"GET " HUB "?a|Authorization: t|Origin: o|Last-Event-ID: 1|Referer: r|User-Agent: u|X-Forwarded-For: 1.2.3.4", "",
     "", "Authorization Origin Last-Event-ID"},
    {"GET " HUB "|Accept: a/b|Accept-Encoding: gzip|Accept-Language: de", "", "", "Accept Accept-Encoding"},
    {"GET " HUB "|Last-Event-ID: 1|last-event-id: 2|Last_Event_ID: 3", "", "", "Last-Event-ID last-event-id"},
    {"GET " HUB "|Cookie: a=b; mercureAuthorization = x y ;c; __Secure-mercure_access_token=\"q\"", "",
     "mercureAuthorization = x y;__Secure-mercure_access_token=\"q\"", ""},
    {"GET " HUB "|Hikyaku-Stream: 1|hikyaku_stream: 1|Hikyaku-Streams: 1", "", "", "Hikyaku-Stream"},
    {"POST " HUB "|Hikyaku-Stream: 1", "", "", "Host"},
    {"GET " HUB "|Cookie: a=b", "", "", ""},
    {"GET " HUB "|Cookie:", "", "", ""},
    {"POST " HUB "|Host: h|" FORM
     "|Origin: o|Referer: r|Authorization: t|Last-Event-ID: 1|Content-Length: 3|Accept: */*",
     "", "", "Host Content-Type Origin Referer Authorization"},
    {"POST " HUB "|Transfer-Encoding: chunked|Cookie: mercureAuthorization=1|Via: x", "", "mercureAuthorization=1",
     "Host"},
};

HK_TEST(Ruby_is_shown_what_decides_and_cursors_and_nothing_else)
{
    setup_t setup = set_up(gate_options());
    hk_buf_t query, cookie, headers;
    hk_buf_init(&query, hk_test_alloc());
    hk_buf_init(&cookie, hk_test_alloc());
    hk_buf_init(&headers, hk_test_alloc());
    for (size_t i = 0; i < ROWS(shown); i++) {
        request_t request;
        write_request(shown[i].request, &request);
        hk_buf_clear(&query);
        hk_buf_clear(&cookie);
        hk_buf_clear(&headers);
        HK_CHECK_OK(hk_gate_shown_query(setup.gate, &request.head, &query));
        HK_CHECK_OK(hk_gate_shown_cookie(setup.gate, &request.head, &cookie));
        for (size_t j = 0; j < request.head.header_count; j++) {
            if (hk_gate_shown_header(setup.gate, &request.head, request.fields[j].name)) {
                HK_CHECK_OK(hk_buf_append(&headers, headers.length > 0 ? HK_BYTES(" ") : HK_BYTES("")));
                HK_CHECK_OK(hk_buf_append(&headers, request.fields[j].name));
            }
        }
        HK_CHECK_BYTES(shown[i].query, hk_buf_bytes(&query));
        HK_CHECK_BYTES(shown[i].cookie, hk_buf_bytes(&cookie));
        HK_CHECK_BYTES(shown[i].headers, hk_buf_bytes(&headers));
    }
    hk_buf_release(&query);
    hk_buf_release(&cookie);
    hk_buf_release(&headers);
    tear_down(setup);
}

/* --- keys and what is shown say the same -------------------------------------------------------------------------- */

static const char *const pieces[] = {
    "match=/a",
    "match=/b",
    "Match=/a",
    "%6Datch=/a",
    "ma%74ch_x=%",
    "topic=a",
    "t%6fpic=a",
    "authorization=a",
    "last_event_id=1",
    "last_event_id=2",
    "last%5fevent_id",
    "lastEventID=3",
    "x=1",
    "y=match",
    "",
    "=",
    "mat",
    "+match=a",
};
static const char *const lines[] = {
    "Authorization: a",
    "Authorization: b",
    "authorization:",
    "Origin: a",
    "Origin: b",
    "Host: a",
    "Host: b",
    "Referer: a",
    "referer: b",
    "Content-Type: a",
    "Content-Type: b",
    "Last-Event-ID: 1",
    "Last-Event-ID: 2",
    "X-Forwarded-For: 1",
    "Cookie: mercureAuthorization=a",
    "Cookie: x=1; mercureAuthorization=a",
    "Cookie: mercureAuthorization=b;x",
    "Cookie: mercureAuthorization=a; mercureAuthorization=b",
    "Cookie: x=1",
    "User-Agent: a",
    "Idempotency-Key: a",
};

static void random_request(char *text)
{
    bool subscribes = hk_test_below(2) == 0;
    text += sprintf(text, "%s " HUB, subscribes ? "GET" : "POST");
    if (subscribes && hk_test_below(4) > 0) {
        *text++ = '?';
        for (size_t count = hk_test_below(4); count > 0; count--) {
            text += sprintf(text, "%s%s", pieces[hk_test_below(ROWS(pieces))], count > 1 ? "&" : "");
        }
    }
    if (hk_test_below(8) == 0) {
        text += sprintf(text, " HTTP/1.0");
    }
    bool has_host = false;
    for (size_t count = hk_test_below(4); count > 0; count--) {
        const char *line = lines[hk_test_below(ROWS(lines))];
        if (strncmp(line, "Host", 4) != 0 || !has_host) {
            text += sprintf(text, "|%s", line);
            has_host = has_host || strncmp(line, "Host", 4) == 0;
        }
    }
}

static bool is_cursor(hk_bytes_t name)
{
    char decoded[100];
    HK_CHECK(name.length <= sizeof(decoded));
    name = hk_bytes(decoded, hk_form_decode(name, decoded));
    return hk_bytes_equal(name, HK_BYTES("last_event_id")) || hk_bytes_equal(name, HK_BYTES("lastEventID"));
}

/* Everything that Ruby sees of a request but the cursors, as text. */
static hk_bytes_t view_of(hk_gate_t *gate, const request_t *request, char text[static 1000])
{
    static const char *const names[] = {"authorization", "origin", "host", "referer", "content-type", "user-agent"};
    hk_buf_t shown_query, shown_cookie;
    hk_buf_init(&shown_query, hk_test_alloc());
    hk_buf_init(&shown_cookie, hk_test_alloc());
    HK_CHECK_OK(hk_gate_shown_query(gate, &request->head, &shown_query));
    HK_CHECK_OK(hk_gate_shown_cookie(gate, &request->head, &shown_cookie));
    char *at = text;
    at += sprintf(at, "%.*s %d?", (int)request->head.method.length, request->head.method.at, request->head.minor);
    hk_bytes_t rest = hk_buf_bytes(&shown_query), name, value;
    while (hk_form_next(&rest, &name, &value)) {
        if (!is_cursor(name)) {
            at += sprintf(at, "%.*s&", (int)(value.at + value.length - name.at), name.at);
        }
    }
    at += sprintf(at, "\ncookie %.*s\n", (int)shown_cookie.length, hk_buf_bytes(&shown_cookie).at);
    for (size_t i = 0; i < ROWS(names); i++) {
        for (size_t j = 0; j < request->head.header_count; j++) {
            const hk_http1_header_t *field = &request->fields[j];
            if (hk_bytes_equal_ignoring_case(field->name, hk_test_text(names[i])) &&
                hk_gate_shown_header(gate, &request->head, field->name)) {
                at += sprintf(at, "%s %.*s\n", names[i], (int)field->value.length, field->value.at);
            }
        }
    }
    hk_buf_release(&shown_query);
    hk_buf_release(&shown_cookie);
    return hk_bytes(text, (size_t)(at - text));
}

enum { REQUESTS = 1500 };

HK_TEST(two_requests_have_one_key_if_and_only_if_Ruby_is_shown_the_same)
{
    static char texts[REQUESTS][500], views[REQUESTS][1000];
    static hk_bytes_t view[REQUESTS];
    static hk_buf_t keys[REQUESTS];
    hk_gate_options_t options = gate_options();
    options.legacy = true;
    setup_t setup = set_up(options);
    size_t pairs = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        random_request(texts[i]);
        uint64_t epoch;
        hk_buf_init(&keys[i], hk_test_alloc());
        key_of(setup.gate, texts[i], &keys[i], &epoch);
        request_t request;
        write_request(texts[i], &request);
        view[i] = view_of(setup.gate, &request, views[i]);
        for (size_t j = 0; keys[i].length > 0 && j < i; j++) {
            if (keys[j].length > 0) {
                bool equal = hk_bytes_equal(hk_buf_bytes(&keys[i]), hk_buf_bytes(&keys[j]));
                hk_test_note("%s\n    %s", texts[i], texts[j]);
                HK_CHECK_EQUAL_INT(hk_bytes_equal(view[i], view[j]), equal);
                pairs += equal;
            }
        }
    }
    HK_CHECK(pairs > 1000);
    for (size_t i = 0; i < REQUESTS; i++) {
        hk_buf_release(&keys[i]);
    }
    tear_down(setup);
}

HK_TEST(without_memory_keys_and_what_is_shown_are_left_alone)
{
    HK_EACH_FAILING_ALLOCATION {
        setup_t setup;
        hk_status_t status = try_set_up(&setup, hub_options(), gate_options());
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        if (status == HK_OK) {
            request_t request;
            char cookie[200];
            sprintf(cookie, "GET " HUB "?match=/a|Cookie: %s", TOKENS);
            write_request(cookie, &request);
            hk_buf_t buf;
            hk_buf_init(&buf, hk_test_alloc());
            uint64_t epoch = 9;
            status = hk_gate_key(setup.gate, &request.head, &buf, &epoch);
            HK_CHECK_EQUAL_UINT(status == HK_OK ? 0 : 9, epoch);
            HK_CHECK((status == HK_OK) == (buf.length > 0));
            hk_buf_release(&buf);
            status = hk_gate_shown_query(setup.gate, &request.head, &buf);
            HK_CHECK_BYTES(status == HK_OK ? "match=/a" : "", hk_buf_bytes(&buf));
            hk_buf_release(&buf);
            status = hk_gate_shown_cookie(setup.gate, &request.head, &buf);
            HK_CHECK((status == HK_OK) == (buf.length > 0));
            hk_buf_release(&buf);
            tear_down(setup);
        }
    }
}
