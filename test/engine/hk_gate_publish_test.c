#include "hk_gate_support.h"

#define ROWS(rows) (sizeof(rows) / sizeof(*(rows)))
#define TOKEN "POST " HUB "|Authorization: Bearer t|" FORM
#define HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\n"

static setup_t set_up_with(hk_gate_options_t options, const char *publishes)
{
    setup_t setup = set_up(options);
    remember(setup.gate, TOKEN, HK_BYTES(HEAD), grant_of("", publishes, "press", HK_NEVER));
    return setup;
}

static hk_record_t *newest(setup_t setup)
{
    const hk_log_t *log = hk_hub_log(setup.hub);
    return hk_log_at(log, hk_log_head(log));
}

/* --- what is published -------------------------------------------------------------------------------------------- */

static const struct {
    const char *body, *frame, *id; /* "#": whatever the hub makes */
    bool is_private;
    size_t topics;
} published[] = {
    {"topic=/a&data=hello", "id: #\ndata: hello\n\n", "#", false, 1},
    {"topic=/a", "id: #\ndata: \n\n", "#", false, 1},
    {"&&data=hello&topic=%2Fa&", "id: #\ndata: hello\n\n", "#", false, 1},
    {"topic=/a&data=a+b%2Bc%0D%0Ad%C3%A9", "id: #\ndata: a b+c\ndata: d\xC3\xA9\n\n", "#", false, 1},
    {"topic=/a&data=%zz%4", "id: #\ndata: %zz%4\n\n", "#", false, 1},
    {"topic=/a&data=x&id=me&type=note&retry=0012", "event: note\nretry: 12\nid: me\ndata: x\n\n", "me", false, 1},
    {"topic=/a&id=&type=&retry=&data=", "id: #\ndata: \n\n", "#", false, 1},
    {"topic=/a&id&type&retry&data", "id: #\ndata: \n\n", "#", false, 1},
    {"topic=/a&retry=0", "retry: 0\nid: #\ndata: \n\n", "#", false, 1},
    {"topic=/a&retry=000000000000000999999999999", "retry: 999999999999\nid: #\ndata: \n\n", "#", false, 1},
    {"topic=/a&data=1&data=%FF&id=x&id=%23y&type=t&type=mercure&retry=1&retry=a",
     "event: t\nretry: 1\nid: x\ndata: 1\n\n", "x", false, 1},
    {"topic=/a&data=&data=x&id=&id=y", "id: #\ndata: \n\n", "#", false, 1},
    {"topic=/a&topic=/b&data=x", "id: #\ndata: x\n\n", "#", false, 2},
    {"topic=/b&topic=/b&topic=/b", "id: #\ndata: \n\n", "#", false, 3},
    {"topic=/a&private=on", "id: #\ndata: \n\n", "#", true, 1},
    {"topic=/a&private", "id: #\ndata: \n\n", "#", true, 1},
    {"topic=/a&Private=on&privates=on&xprivate=on", "id: #\ndata: \n\n", "#", false, 1},
    {"%74%6F%70%69%63=/a&d%61ta=x&%69%64=i&%70%72%69%76%61%74%65=", "id: i\ndata: x\n\n", "i", true, 1},
    {"topic=/a&other=%FF&%FF=x&%70%72%69%76%61%74%65%73=&a+long+name+with+spaces+in+it=x", "id: #\ndata: \n\n", "#",
     false, 1},
    {"topic=/a&type=Mercure", "event: Mercure\nid: #\ndata: \n\n", "#", false, 1},
    {"topic=/a&id=a%23b", "id: a#b\ndata: \n\n", "a#b", false, 1},
    {"topic=/a&id=12345678&type=12345678", "event: 12345678\nid: 12345678\ndata: \n\n", "12345678", false, 1},
    {"topic=https://example.com/of/32/bytes/", "id: #\ndata: \n\n", "#", false, 1},
};

/* The frame with the id that the hub made left out. */
static hk_bytes_t without_id(hk_bytes_t frame, hk_bytes_t id, char text[static 1000])
{
    char *found = memmem(frame.at, frame.length, id.at, id.length);
    HK_CHECK(found != NULL && id.length == HK_EVENT_ID_BYTES && id.at[0] == '#');
    size_t before = (size_t)(found - frame.at) + 1;
    memcpy(text, frame.at, before);
    memcpy(text + before, found + id.length, frame.length - before - id.length + 1);
    return hk_bytes(text, frame.length - id.length + 1);
}

HK_TEST(a_publish_whose_token_is_known_is_published_and_answered)
{
    for (size_t i = 0; i < ROWS(published); i++) {
        setup_t setup = set_up_with(gate_options(), "/a /b https://example.com/of/32/bytes/");
        hk_bytes_t body = hk_test_guarded(hk_test_text(published[i].body));
        hk_gate_answer_t answer = {0};
        hk_status_t status = serve(setup.gate, TOKEN, body, &answer);
        hk_test_note("the body %s", published[i].body);
        HK_CHECK_OK(status);
        HK_CHECK_EQUAL_INT(HK_GATE_PUBLISHED, answer.kind);
        hk_record_t *record = newest(setup);
        HK_CHECK(record != NULL && hk_log_head(hk_hub_log(setup.hub)) == 1);
        char text[1000];
        bool own = published[i].id[0] != '#';
        HK_CHECK_BYTES(published[i].frame, own ? record->frame : without_id(record->frame, record->id, text));
        HK_CHECK_BYTES(own ? hk_test_text(published[i].id) : record->id, answer.body);
        HK_CHECK_EQUAL_INT(published[i].is_private, record->is_private);
        HK_CHECK_EQUAL_UINT(published[i].topics, record->topic_count);
        sprintf(text, HEAD "content-length: %zu\r\n\r\n", answer.body.length);
        HK_CHECK_BYTES(hk_test_text(text), answer.head);
        HK_CHECK(answer.head.at + answer.head.length == answer.body.at);
        hk_test_unguard(body.at);
        tear_down(setup);
    }
}

/* --- what Ruby is asked ------------------------------------------------------------------------------------------- */

static const char *const asked[] = {
    "",
    "data=x",
    "Topic=/a",
    "topic",
    "topic=",
    "topic=*",
    "topic=%2A",
    "topic=/c",
    "topic=/a&topic=/c",
    "topic=/c&topic=/a",
    "topic=/a&topic=",
    "topic=" HUB,
    "topic=" HUB "/x",
    "topic=/a&topic=/a&topic=/a&topic=/a",
    "topic=https://example.com/of/33/bytes/1",
    "topic=/a%0A",
    "topic=/a%00",
    "topic=/a%7F",
    "topic=/a%FF",
    "topic=/%E2%80%8B",
    "topic=/a&data=%FF",
    "topic=/a&data=%C3",
    "topic=/a&data=%ED%A0%80",
    "topic=/a&data=%00%FF",
    "topic=/a&id=123456789",
    "topic=/a&id=%23a",
    "topic=/a&id=earliest",
    "topic=/a&id=e%61rliest",
    "topic=/a&id=a%0Ab",
    "topic=/a&id=a%0Db",
    "topic=/a&id=%00",
    "topic=/a&id=%7F",
    "topic=/a&id=%C3%A9",
    "topic=/a&type=123456789",
    "topic=/a&type=mercure",
    "topic=/a&type=mercur%65",
    "topic=/a&type=a%0Adata:x",
    "topic=/a&type=%C3%A9",
    "topic=/a&retry=a",
    "topic=/a&retry=1a",
    "topic=/a&retry=-1",
    "topic=/a&retry=+1",
    "topic=/a&retry=1.5",
    "topic=/a&retry=1%0A",
    "topic=/a&retry=%EF%BC%91",
    "topic=/a&retry=1000000000000",
    "topic=/a&retry=99999999999999999999999999",
    "topic=books",
    "topic=https://EXAMPLE.com/a",
};

HK_TEST(whatever_is_invalid_or_unusual_is_asked_and_publishes_nothing)
{
    setup_t setup = set_up_with(gate_options(), "/a *");
    setup_t narrow = set_up_with(gate_options(), "/a");
    for (size_t i = 0; i < ROWS(asked); i++) {
        hk_gate_answer_t answer = {0};
        hk_bytes_t body = hk_test_guarded(hk_test_text(asked[i]));
        bool denied = memmem(body.at, body.length, "/c", 2) != NULL;
        hk_status_t status = serve(denied ? narrow.gate : setup.gate, TOKEN, body, &answer);
        hk_test_note("the body %s", asked[i]);
        HK_CHECK_STATUS(HK_UNKNOWN, status);
        HK_CHECK(answer.head.at == NULL);
        hk_test_unguard(body.at);
    }
    hk_gate_stats_t stats;
    hk_gate_read_stats(setup.gate, &stats);
    HK_CHECK_EQUAL_UINT(0, stats.hits);
    HK_CHECK_EQUAL_UINT(0, stats.misses);
    HK_CHECK_EQUAL_UINT(0, hk_log_head(hk_hub_log(setup.hub)) + hk_log_head(hk_hub_log(narrow.hub)));
    tear_down(setup);
    tear_down(narrow);
}

HK_TEST(a_topic_that_Ruby_has_split_is_published_unless_it_is_reserved_or_no_text)
{
    static const struct {
        const char *topic, *body;
        bool reserved, published;
    } rows[] = {
        {"books", "topic=books", false, true},
        {"/caf\xC3\xA9", "topic=/caf%C3%A9", false, true},
        {"https://EXAMPLE.com" HUB, "topic=https://EXAMPLE.com" HUB, true, false},
        {"", "topic=", true, false},
        {"*", "topic=*", false, false},
        {"a\nb", "topic=a%0Ab", false, false},
        {"a\xE2\x80\x8E", "topic=a%E2%80%8E", false, false},
    };
    setup_t setup = set_up_with(gate_options(), "*");
    for (size_t i = 0; i < ROWS(rows); i++) {
        hk_topic_t *topic;
        hk_topics_t *topics = hk_hub_topics(setup.hub);
        HK_CHECK_OK(hk_topics_add(topics, hk_test_text(rows[i].topic), NULL, rows[i].reserved, &topic));
        hk_gate_answer_t answer;
        hk_status_t status = serve(setup.gate, TOKEN, hk_test_text(rows[i].body), &answer);
        hk_test_note("the body %s", rows[i].body);
        HK_CHECK_STATUS(rows[i].published ? HK_OK : HK_UNKNOWN, status);
    }
    tear_down(setup);
}

HK_TEST(the_body_must_be_a_form_that_is_whole_and_within_its_limit)
{
    static const struct {
        const char *type;
        bool is_form;
    } rows[] = {
        {"application/x-www-form-urlencoded", true},
        {"Application/X-WWW-Form-URLEncoded", true},
        {"application/x-www-form-urlencoded;charset=utf-8", true},
        {"application/x-www-form-urlencoded \t; charset=utf-8", true},
        {"application/x-www-form-urlencoded, text/plain", false},
        {"application/x-www-form-urlencoded charset=utf-8", false},
        {"application/x-www-form-urlencodedx", false},
        {"application/x-www-form-urlencode", false},
        {"xapplication/x-www-form-urlencoded", false},
        {"multipart/form-data; boundary=x", false},
        {"text/plain", false},
        {"", false},
    };
    setup_t setup = set_up(gate_options());
    hk_gate_answer_t answer;
    for (size_t i = 0; i < ROWS(rows); i++) {
        char lines[200];
        sprintf(lines, "POST " HUB "|Content-Type: %s", rows[i].type);
        remember(setup.gate, lines, HK_BYTES(HEAD), grant_of("", "*", "", HK_NEVER));
        HK_CHECK_STATUS(rows[i].is_form ? HK_OK : HK_UNKNOWN, serve(setup.gate, lines, HK_BYTES("topic=/a"), &answer));
    }
    remember(setup.gate, "POST " HUB, HK_BYTES(HEAD), grant_of("", "*", "", HK_NEVER));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, "POST " HUB, HK_BYTES("topic=/a"), &answer));
    tear_down(setup);

    setup = set_up_with(gate_options(), "*");
    char body[302] = "topic=/a&data=";
    memset(body + 14, 'x', sizeof(body) - 14);
    HK_CHECK_OK(serve(setup.gate, TOKEN, hk_bytes(body, 300), &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, hk_bytes(body, 301), &answer));
    request_t request;
    write_request(TOKEN, &request);
    hk_gate_request_t partial = {.head = &request.head, .body = hk_bytes(body, 300), .now = NOW, .wall = WALL};
    HK_CHECK_STATUS(HK_UNKNOWN, hk_gate_serve(setup.gate, &partial, &answer));
    HK_CHECK_EQUAL_UINT(1, hk_log_head(hk_hub_log(setup.hub)));
    tear_down(setup);
}

HK_TEST(each_answer_is_its_own)
{
    setup_t setup = set_up_with(gate_options(), "*");
    hk_gate_answer_t answer;
    HK_CHECK_OK(serve(setup.gate, TOKEN, HK_BYTES("topic=/a&id=first"), &answer));
    HK_CHECK_OK(serve(setup.gate, TOKEN, HK_BYTES("topic=/a&id=next"), &answer));
    HK_CHECK_BYTES(HEAD "content-length: 4\r\n\r\n", answer.head);
    HK_CHECK_BYTES("next", answer.body);
    tear_down(setup);
}

/* Of "/", one or more "a", and "b": see docs/topic-program.md. */
static const char general_program[] = "\1\0\0\5\1/\0\0\1a\0\0\5\0\0\1\1b\0\0\0\0\0\0";

HK_TEST(a_token_for_topics_of_any_pattern_publishes_them)
{
    setup_t setup = set_up(gate_options());
    hk_matcher_options_t pattern = {
        .type = HK_BYTES("uri_template"),
        .pattern = HK_BYTES("/{a}b"),
        .kind = HK_MATCHER_TEXT,
        .program = hk_bytes(general_program, sizeof(general_program) - 1),
    };
    hk_matcher_t *matcher;
    HK_CHECK_OK(hk_matcher_new(hk_test_alloc(), &pattern, &matcher));
    hk_grant_options_t granted = {.publishes = &matcher, .publish_count = 1, .expires_at = HK_NEVER};
    hk_grant_t *grant;
    HK_CHECK_OK(hk_grant_new(hk_test_alloc(), &granted, &grant));
    hk_matcher_release(matcher);
    remember(setup.gate, TOKEN, HK_BYTES(HEAD), grant);
    hk_gate_answer_t answer;
    HK_CHECK_OK(serve(setup.gate, TOKEN, HK_BYTES("topic=/aaab"), &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, HK_BYTES("topic=/aaa"), &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, HK_BYTES("topic=/ab&topic=/b"), &answer));
    tear_down(setup);
}

HK_TEST(a_hub_that_stops_still_publishes)
{
    setup_t setup = set_up_with(gate_options(), "*");
    request_t request;
    write_request(TOKEN, &request);
    hk_gate_request_t whole = {
        .head = &request.head, .body = HK_BYTES("topic=/a"), .body_is_whole = true, .stopping = true};
    hk_gate_answer_t answer;
    HK_CHECK_OK(hk_gate_serve(setup.gate, &whole, &answer));
    tear_down(setup);
}

HK_TEST(the_answer_says_whether_the_connection_stays_where_its_version_does_not)
{
    static const struct {
        const char *lines, *said;
    } rows[] = {
        {TOKEN, ""},
        {TOKEN "|Connection: keep-alive", ""},
        {TOKEN "|Connection: close", "connection: close\r\n"},
        {"POST " HUB " HTTP/1.0|Authorization: Bearer t|" FORM, ""},
        {"POST " HUB " HTTP/1.0|Authorization: Bearer t|" FORM "|Connection: keep-alive", "connection: keep-alive\r\n"},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        setup_t setup = set_up(gate_options());
        remember(setup.gate, rows[i].lines, HK_BYTES("H\r\n"), grant_of("", "*", "", HK_NEVER));
        hk_gate_answer_t answer;
        HK_CHECK_OK(serve(setup.gate, rows[i].lines, HK_BYTES("topic=/a&id=me"), &answer));
        char text[200];
        sprintf(text, "H\r\ncontent-length: 2\r\n%s\r\n", rows[i].said);
        HK_CHECK_BYTES(hk_test_text(text), answer.head);
        HK_CHECK_BYTES("me", answer.body);
        tear_down(setup);
    }
}

HK_TEST(the_number_of_topics_has_a_limit_of_its_own_whatever_is_asked_for)
{
    hk_gate_options_t options = gate_options();
    options.max_topics = SIZE_MAX;
    options.max_body_bytes = SIZE_MAX;
    setup_t setup = set_up_with(options, "*");
    hk_buf_t body;
    hk_buf_init(&body, hk_test_alloc());
    for (size_t i = 0; i < 65535; i++) {
        HK_CHECK_OK(hk_buf_append(&body, HK_BYTES("topic=/a&")));
    }
    hk_gate_answer_t answer;
    HK_CHECK_OK(serve(setup.gate, TOKEN, hk_buf_bytes(&body), &answer));
    HK_CHECK_EQUAL_UINT(65535, newest(setup)->topic_count);
    HK_CHECK_OK(hk_buf_append(&body, HK_BYTES("topic=/a")));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, hk_buf_bytes(&body), &answer));
    hk_buf_release(&body);
    tear_down(setup);
}

/* --- memory ------------------------------------------------------------------------------------------------------- */

HK_TEST(a_publish_allocates_nothing_but_its_record)
{
    setup_t setup = set_up_with(gate_options(), "/a /b");
    hk_bytes_t body = HK_BYTES("topic=/a&topic=%2Fb&data=a+b&id=x&type=y&retry=7");
    hk_gate_answer_t answer;
    for (size_t i = 0; i < 40; i++) {
        HK_CHECK_OK(serve(setup.gate, TOKEN, body, &answer));
    }
    size_t before = hk_test_requests();
    for (size_t i = 0; i < 8; i++) {
        HK_CHECK_OK(serve(setup.gate, TOKEN, body, &answer));
    }
    HK_CHECK_EQUAL_UINT(8, hk_test_requests() - before);
    tear_down(setup);
}

HK_TEST(topics_are_let_go_whatever_becomes_of_the_update)
{
    setup_t setup = set_up_with(gate_options(), "/a /b");
    hk_topic_t *topic;
    HK_CHECK_OK(hk_topics_find(hk_hub_topics(setup.hub), HK_BYTES("/a"), &topic));
    uint32_t before = topic->references;
    hk_gate_answer_t answer;
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, HK_BYTES("topic=/a&topic=/a&retry=x"), &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, HK_BYTES("topic=/a&topic=*"), &answer));
    HK_CHECK_EQUAL_UINT(before, topic->references);
    tear_down(setup);
}

HK_TEST(without_memory_nothing_is_published)
{
    HK_EACH_FAILING_ALLOCATION {
        setup_t setup;
        hk_gate_options_t options = gate_options();
        options.max_id_bytes = 200;
        if (try_set_up(&setup, hub_options(), options) == HK_OK) {
            char body[220] = "topic=%2Fa&data=x&id=";
            memset(body + 21, 'i', 199);
            hk_status_t status = try_remember(setup.gate, TOKEN, HK_BYTES(HEAD), grant_of("", "/a", "", HK_NEVER));
            hk_gate_answer_t answer = {0};
            if (status == HK_OK) {
                status = serve(setup.gate, TOKEN, hk_bytes(body, sizeof(body)), &answer);
            }
            HK_CHECK(status == HK_OK || (status == HK_NO_MEMORY && hk_test_failed()));
            HK_CHECK_EQUAL_UINT(status == HK_OK, hk_log_head(hk_hub_log(setup.hub)));
            HK_CHECK_EQUAL_UINT(status == HK_OK ? 199 : 0, answer.body.length);
            tear_down(setup);
        }
    }
}

HK_TEST(a_form_or_a_query_with_too_many_fields_is_asked)
{
    hk_gate_options_t options = gate_options();
    options.max_fields = 3;
    setup_t setup;
    HK_CHECK_STATUS(HK_OK, try_set_up(&setup, hub_options(), options));
    HK_CHECK_STATUS(HK_OK, try_remember(setup.gate, TOKEN, HK_BYTES(HEAD), grant_of("", "/a", "", HK_NEVER)));
    hk_gate_answer_t answer;
    HK_CHECK_STATUS(HK_OK, serve(setup.gate, TOKEN, HK_BYTES("topic=/a&x&data=1"), &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, HK_BYTES("topic=/a&x&data=1&"), &answer));
    HK_CHECK_STATUS(HK_UNKNOWN, serve(setup.gate, TOKEN, HK_BYTES("topic=/a&&&data=1"), &answer));
    tear_down(setup);
}
