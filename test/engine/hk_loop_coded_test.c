#include "hk_coded_reader.h"
#include "hk_loop_fixture.h"

/* Streams of another form and compressed ones, as a loop carries them. */

#define PACK_HEAD "HTTP/1.1 200 OK\r\ncontent-type: application/vnd.msgpack\r\nvary: Accept, Accept-Encoding\r\n"
#define GZIP_HEAD "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-encoding: gzip\r\n"
#define ASKED "GET " HUB "?match=/a"

/* A client that sends a request about which was decided before, hears the head, and then what is appended. */
static int begin_stream(rig_t *rig, const char *field, hk_bytes_t head, hk_buf_t *opening)
{
    char lines[200], request[200];
    snprintf(lines, sizeof(lines), ASKED "|Host: example.com|%s", field);
    snprintf(request, sizeof(request), ASKED " HTTP/1.1\r\nHost: example.com\r\n%s\r\n\r\n", field);
    remember(rig->gate, lines, head, grant_of("/a", "", "somebody", HK_NEVER));
    int client = rig_client(rig);
    rig_say(rig, client, request);
    hk_bytes_t heard = rig_heard(rig, client);
    HK_CHECK_EQUAL_INT(0, rig->asked);
    HK_CHECK(hk_bytes_start_with(heard, head));
    HK_CHECK_BYTES("\r\n", hk_bytes(heard.at + head.length, 2));
    HK_CHECK_OK(hk_buf_append(opening, hk_bytes(heard.at + head.length + 2, heard.length - head.length - 2)));
    return client;
}

HK_TEST(a_stream_of_message_pack_begins_with_a_heartbeat_and_ends_with_a_number)
{
    rig_t rig;
    hk_buf_t opening;
    rig_begin(&rig, NULL);
    hk_buf_init(&opening, hk_alloc_default());
    int client = begin_stream(&rig, "Accept: application/vnd.msgpack", HK_BYTES(PACK_HEAD), &opening);
    HK_CHECK_BYTES("\xC0", hk_buf_bytes(&opening));
    hk_buf_release(&opening);
    rig_publish(&rig, "/a", "one");
    hk_bytes_t heard = rig_heard(&rig, client);
    HK_CHECK(memmem(heard.at, heard.length, "\xC0\xA3one", 5) != NULL);
    HK_CHECK_EQUAL_UINT(1, hk_hub_disconnect(rig.hub, HK_BYTES("somebody")));
    heard = rig_heard(&rig, client);
    HK_CHECK_EQUAL_UINT(3, heard.length);
    HK_CHECK_EQUAL_INT('\xCD', heard.at[0]);
    HK_CHECK(rig_is_closed(&rig, client));
    rig_end(&rig);
}

static uint64_t subscriber_that_has_gone(rig_t *rig, hk_stream_form_t form, hk_stream_coding_t coding)
{
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    hk_grant_t *grant = grant_of("/a", "", "somebody", HK_NEVER);
    hk_subscribe_t subscribe = {.grant = grant, .form = form, .coding = coding};
    HK_CHECK_OK(hk_hub_subscribe(rig->hub, &subscribe, &subscriber, &answer));
    hk_grant_release(grant);
    uint64_t serial = hk_subscriber_serial(subscriber);
    hk_hub_unsubscribe(rig->hub, subscriber, 0);
    return serial;
}

/* What a client gets whose subscriber is gone before its socket comes. */
static hk_bytes_t turned_away(rig_t *rig, hk_stream_form_t form, hk_stream_coding_t coding)
{
    int client, server;
    uint64_t serial = subscriber_that_has_gone(rig, form, coding);
    rig_pair(rig, &client, &server);
    HK_CHECK_OK(hk_loop_attach(rig->loop, server, serial));
    hk_bytes_t heard = rig_heard(rig, client);
    HK_CHECK(rig_is_closed(rig, client));
    return heard;
}

HK_TEST(who_has_gone_before_its_socket_came_is_told_when_to_come_back_in_the_form_of_its_stream)
{
    rig_t rig;
    rig_begin(&rig, NULL);
    HK_CHECK(hk_bytes_start_with(turned_away(&rig, HK_STREAM_EVENTS, HK_STREAM_IDENTITY), HK_BYTES("retry: ")));
    hk_bytes_t heard = turned_away(&rig, HK_STREAM_MESSAGE_PACK, HK_STREAM_IDENTITY);
    HK_CHECK_EQUAL_UINT(3, heard.length);
    HK_CHECK_EQUAL_INT('\xCD', heard.at[0]);
    for (unsigned form = 0; form < 2 && hk_gzip_available(); form++) {
        hk_buf_t said;
        hk_buf_init(&said, hk_alloc_default());
        HK_CHECK(coded_inflate(turned_away(&rig, (hk_stream_form_t)form, HK_STREAM_GZIP), &said));
        HK_CHECK(form == HK_STREAM_EVENTS ? hk_bytes_start_with(hk_buf_bytes(&said), HK_BYTES("retry: "))
                                          : said.length == 3 && hk_buf_bytes(&said).at[0] == '\xCD');
        hk_buf_release(&said);
    }
    rig_end(&rig);
}

#ifdef HK_HAVE_ZLIB

HK_TEST(a_compressed_stream_whose_subscriber_is_gone_behind_its_head_says_when_to_come_back_and_ends_in_order)
{
    rig_t rig;
    hk_buf_t said;
    rig_begin(&rig, NULL);
    hk_buf_init(&said, hk_alloc_default());
    uint64_t serial = subscriber_that_has_gone(&rig, HK_STREAM_EVENTS, HK_STREAM_GZIP);
    int client = rig_client(&rig);
    rig_say(&rig, client, "GET /hold HTTP/1.1\r\nHost: example.com\r\n\r\n");
    HK_CHECK_OK(hk_loop_answer_stream(rig.loop, rig.held[0], HK_BYTES(GZIP_HEAD "\r\n"), serial));
    rig.held[0] = NULL;
    hk_bytes_t heard = rig_heard(&rig, client);
    size_t head = sizeof(GZIP_HEAD "\r\n") - 1;
    HK_CHECK(hk_bytes_start_with(heard, HK_BYTES(GZIP_HEAD "\r\n")));
    HK_CHECK(coded_inflate(hk_bytes(heard.at + head, heard.length - head), &said));
    HK_CHECK(hk_bytes_start_with(hk_buf_bytes(&said), HK_BYTES("retry: ")));
    HK_CHECK(rig_is_closed(&rig, client));
    hk_buf_release(&said);
    rig_end(&rig);
}

HK_TEST(a_compressed_stream_begins_with_a_comment_and_ends_in_order)
{
    rig_t rig;
    hk_buf_t all, said;
    rig_begin(&rig, NULL);
    hk_buf_init(&all, hk_alloc_default());
    hk_buf_init(&said, hk_alloc_default());
    int client = begin_stream(&rig, "Accept-Encoding: gzip", HK_BYTES(GZIP_HEAD), &all);
    HK_CHECK(hk_bytes_start_with(hk_buf_bytes(&all), HK_GZIP_HEAD));
    HK_CHECK(!coded_inflate(hk_buf_bytes(&all), &said));
    HK_CHECK_BYTES(":\n\n", hk_buf_bytes(&said));
    for (size_t i = 0; i < 3; i++) {
        rig_publish(&rig, "/a", "one");
        HK_CHECK_OK(hk_buf_append(&all, rig_heard(&rig, client)));
    }
    hk_buf_clear(&said);
    HK_CHECK(!coded_inflate(hk_buf_bytes(&all), &said));
    hk_hub_disconnect(rig.hub, HK_BYTES("somebody"));
    HK_CHECK_OK(hk_buf_append(&all, rig_heard(&rig, client)));
    hk_buf_clear(&said);
    HK_CHECK(coded_inflate(hk_buf_bytes(&all), &said));
    hk_bytes_t text = hk_buf_bytes(&said);
    HK_CHECK(memmem(text.at, text.length, "data: one\n\nretry: ", 18) != NULL);
    hk_buf_release(&all);
    hk_buf_release(&said);
    rig_end(&rig);
}

#endif
