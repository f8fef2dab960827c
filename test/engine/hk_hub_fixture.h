/* hk_hub_fixture.h: a hub with readers, for tests.
 *
 *     fixture_t f;
 *     reader_t reader;
 *     fixture_begin(&f, NULL);
 *     fixture_subscribe(&f, &reader, &(wish_t){.matches = "/a /b"});
 *     fixture_publish(&f, "/a", "one");
 *     HK_CHECK_BYTES("one", fixture_data(&f, &reader));
 *     fixture_end(&f);
 *
 * Lists are words with blanks between them. A pattern is the text that it selects, "*" selects everything, and one that
 * ends in "*" whatever begins with what is before it. Readers accept everything unless they are given less room.
 */
#ifndef HK_HUB_FIXTURE_H
#define HK_HUB_FIXTURE_H

#include "hk_hub.h"
#include "hk_sse.h"
#include "hk_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND INT64_C(1000000000)

enum { MOST_WORDS = 64, MOST_CLOSED = 64, ANY_ROOM = 1 << 30 };

typedef struct reader {
    hk_subscriber_t *subscriber; /* NULL when it has left */
    hk_buf_t received;
    hk_buf_t data;
    size_t room;
    size_t writes; /* how many times it was given bytes */
    bool broken;   /* its connection is */
    hk_closing_t closing;
    char answer[64];
    struct reader *next;
} reader_t;

typedef struct fixture {
    hk_hub_t *hub;
    int64_t now;
    size_t max_bytes;
    reader_t *readers;
    reader_t *closed[MOST_CLOSED];
    size_t closed_count;
    char id[80]; /* of the last publish */
} fixture_t;

/* -- Hubs and grants ----------------------------------------------------------------------------------------------- */

static inline hk_hub_options_t fixture_options(void)
{
    hk_hub_options_t options = {.history_bytes = 1 << 20,
                                .comparable_path = HK_BYTES("/.well-known/mercure"),
                                .topic_table_bytes = 1 << 16,
                                .log_key = "sixteen bytes...",
                                .secret = {1, 2}};
    options.hub_url.parts[HK_URL_PROTOCOL] = HK_BYTES("https");
    options.hub_url.parts[HK_URL_HOSTNAME] = HK_BYTES("hub.example.com");
    options.hub_url.parts[HK_URL_PATHNAME] = HK_BYTES("/.well-known/mercure");
    options.hub_url.origin = HK_BYTES("https://hub.example.com");
    return options;
}

/* options  NULL: fixture_options(). */
static inline hk_status_t fixture_try(fixture_t *f, const hk_hub_options_t *options)
{
    hk_hub_options_t usual = fixture_options();
    *f = (fixture_t){.now = 1000 * SECOND, .max_bytes = 65536};
    return hk_hub_new(hk_test_alloc(), options != NULL ? options : &usual, &f->hub);
}

static inline void fixture_begin(fixture_t *f, const hk_hub_options_t *options)
{
    HK_CHECK_OK(fixture_try(f, options));
}

static inline void reader_release(reader_t *reader)
{
    hk_buf_release(&reader->received);
    hk_buf_release(&reader->data);
}

/* Readers that are still there leave without a word. */
static inline void fixture_end(fixture_t *f)
{
    for (reader_t *reader = f->readers; reader != NULL; reader = reader->next) {
        reader_release(reader);
    }
    hk_hub_free(f->hub);
}

static inline size_t fixture_words(const char *list, hk_bytes_t words[MOST_WORDS])
{
    hk_bytes_t rest = hk_test_text(list != NULL ? list : "");
    size_t count = 0;
    while (rest.length > 0) {
        HK_CHECK(count < MOST_WORDS);
        words[count++] = hk_test_field(&rest, ' ');
    }
    return count;
}

/* What a program for a text and anything behind it is: docs/topic-program.md. It begins with a START, so that it is run,
 * not recognised. */
static inline size_t fixture_program(hk_bytes_t text, uint8_t *program)
{
    uint8_t split = (uint8_t)(text.length + 1), count = (uint8_t)(text.length + 5);
    uint8_t *at = program;
    memcpy(at, (uint8_t[]){1, 0, 0, count, 6, 0, 0, 0}, 8);
    at += 8;
    for (size_t i = 0; i < text.length; i++, at += 4) {
        memcpy(at, (uint8_t[]){1, (uint8_t)text.at[i], 0, 0}, 4);
    }
    memcpy(at, (uint8_t[]){5, 0, 0, (uint8_t)(split + 3), 3, 0, 0, 0, 4, 0, 0, split, 0, 0, 0, 0}, 16);
    return (size_t)(at + 16 - program);
}

/* What a pattern before which "$" stands costs: a topic takes it long. */
enum { FIXTURE_COST = 10000 };

/* A pattern before which "!" stands closes readers that lose something of it. */
static inline hk_status_t fixture_matcher(hk_bytes_t pattern, hk_matcher_t **matcher)
{
    uint8_t program[1024];
    bool closes = pattern.at[0] == '!', costs = pattern.at[0] == '$';
    if (closes || costs) {
        pattern = hk_bytes(pattern.at + 1, pattern.length - 1);
    }
    hk_matcher_options_t options = {
        .type = HK_BYTES("exact"), .pattern = pattern, .kind = HK_MATCHER_EXACT, .close_on_gap = closes};
    options.cost = costs ? FIXTURE_COST : 0;
    if (hk_bytes_equal(pattern, HK_BYTES("*"))) {
        options.kind = HK_MATCHER_ALL;
    } else if (pattern.at[pattern.length - 1] == '*') {
        hk_bytes_t text = hk_bytes(pattern.at, pattern.length - 1);
        options.type = HK_BYTES("uri_template");
        options.kind = HK_MATCHER_TEXT;
        options.prefix = text;
        options.program = hk_bytes((char *)program, fixture_program(text, program));
    }
    return hk_matcher_new(hk_test_alloc(), &options, matcher);
}

static inline void fixture_release(hk_matcher_t **matchers, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        hk_matcher_release(matchers[i]);
    }
}

static inline hk_status_t fixture_matchers(const char *list, hk_matcher_t **matchers, size_t *count)
{
    hk_bytes_t words[MOST_WORDS];
    size_t word_count = fixture_words(list, words);
    for (size_t i = 0; i < word_count; i++) {
        hk_status_t status = fixture_matcher(words[i], &matchers[i]);
        if (status != HK_OK) {
            fixture_release(matchers, i);
            return status;
        }
    }
    *count = word_count;
    return HK_OK;
}

typedef struct wish {
    const char *matches, *reads, *cursor, *address, *subject;
    bool announced, tentative, changeable, naming;
    hk_stream_form_t form;
    hk_stream_coding_t coding;
    bool shut;          /* it has no room, not even for a byte */
    size_t room;        /* 0: any */
    int64_t expires_in; /* 0: never */
    hk_grant_t *grant;  /* instead of matches, reads and subject */
} wish_t;

static inline hk_announcement_t fixture_announcement(void)
{
    return (hk_announcement_t){.topic_head = HK_BYTES("/.well-known/mercure/subscriptions/exact/%2Fa/"),
                               .path_head = HK_BYTES("/.well-known/mercure/subscriptions/exact/%2Fa/"),
                               .parts = {HK_BYTES("{\"id\":\"/.well-known/mercure/subscriptions/exact/%2Fa/"),
                                         HK_BYTES("\",\"subscriber\":\""), HK_BYTES("\",\"active\":"), HK_BYTES("}")},
                               .type = HK_BYTES("mercure")};
}

static inline hk_status_t fixture_grant(const wish_t *wish, hk_grant_t **grant)
{
    hk_matcher_t *matches[MOST_WORDS], *reads[MOST_WORDS];
    size_t match_count = 0, read_count = 0;
    hk_grant_subscription_t subscriptions[MOST_WORDS];
    hk_status_t status = fixture_matchers(wish->matches, matches, &match_count);
    if (status == HK_OK) {
        status = fixture_matchers(wish->reads, reads, &read_count);
    }
    for (size_t i = 0; i < match_count; i++) {
        subscriptions[i] = (hk_grant_subscription_t){matches[i], wish->announced, fixture_announcement()};
    }
    hk_grant_options_t options = {.subscriptions = subscriptions,
                                  .subscription_count = match_count,
                                  .reads = reads,
                                  .read_count = read_count,
                                  .subject = hk_test_text(wish->subject != NULL ? wish->subject : ""),
                                  .expires_at = HK_NEVER};
    if (status == HK_OK) {
        status = hk_grant_new(hk_test_alloc(), &options, grant);
    }
    fixture_release(matches, match_count);
    fixture_release(reads, read_count);
    return status;
}

/* -- Publishing ---------------------------------------------------------------------------------------------------- */

static inline hk_status_t fixture_try_publish(fixture_t *f, const char *topics, hk_log_update_t update)
{
    hk_bytes_t words[MOST_WORDS], id;
    hk_topic_t *found[MOST_WORDS];
    size_t word_count = fixture_words(topics, words);
    hk_status_t status = HK_OK;
    size_t count = 0;
    while (status == HK_OK && count < word_count) {
        status = hk_topics_find(hk_hub_topics(f->hub), words[count], &found[count]);
        if (status == HK_OK) {
            hk_topic_retain(found[count++]);
        }
    }
    update.topics = found;
    update.topic_count = count;
    if (status == HK_OK) {
        status = hk_hub_publish(f->hub, &update, f->now, &id);
    }
    if (status == HK_OK) {
        HK_CHECK(id.length < sizeof(f->id));
        memcpy(f->id, id.at, id.length);
        f->id[id.length] = '\0';
    }
    for (size_t i = 0; i < count; i++) {
        hk_topic_release(found[i]);
    }
    return status;
}

static inline void fixture_publish(fixture_t *f, const char *topics, const char *data)
{
    HK_CHECK_OK(fixture_try_publish(f, topics, (hk_log_update_t){.data = hk_test_text(data), .retry_ms = -1}));
}

static inline void fixture_publish_privately(fixture_t *f, const char *topics, const char *data)
{
    HK_CHECK_OK(fixture_try_publish(f, topics,
                                    (hk_log_update_t){.data = hk_test_text(data), .retry_ms = -1, .is_private = true}));
}

/* -- Subscribing --------------------------------------------------------------------------------------------------- */

/* `reader` must live until the end of the fixture, wherever it was. Its connection comes at once. */
static inline hk_status_t fixture_try_subscribe(fixture_t *f, reader_t *reader, const wish_t *wish)
{
    hk_grant_t *grant = wish->grant;
    hk_bytes_t answer;
    *reader = (reader_t){.room = wish->shut ? 0 : wish->room > 0 ? wish->room : ANY_ROOM};
    hk_buf_init(&reader->received, hk_alloc_default());
    hk_buf_init(&reader->data, hk_alloc_default());
    hk_status_t status = grant != NULL ? HK_OK : fixture_grant(wish, &grant);
    if (status != HK_OK) {
        return status;
    }
    hk_subscribe_t subscribe = {.grant = grant,
                                .has_cursor = wish->cursor != NULL,
                                .cursor = hk_test_text(wish->cursor != NULL ? wish->cursor : ""),
                                .address = hk_test_text(wish->address != NULL ? wish->address : ""),
                                .expires_in = wish->expires_in != 0 ? wish->expires_in : HK_NEVER,
                                .now = f->now,
                                .tentative = wish->tentative,
                                .changeable = wish->changeable,
                                .naming = wish->naming,
                                .form = wish->form,
                                .coding = wish->coding,
                                .connection = reader};
    status = hk_hub_subscribe(f->hub, &subscribe, &reader->subscriber, &answer);
    if (grant != wish->grant) {
        hk_grant_release(grant);
    }
    if (status != HK_OK) {
        reader->subscriber = NULL;
        return status;
    }
    HK_CHECK(answer.length < sizeof(reader->answer));
    memcpy(reader->answer, answer.at, answer.length);
    reader->next = f->readers;
    f->readers = reader;
    hk_hub_writable(f->hub, reader->subscriber);
    return HK_OK;
}

static inline void fixture_subscribe(fixture_t *f, reader_t *reader, const wish_t *wish)
{
    HK_CHECK_OK(fixture_try_subscribe(f, reader, wish));
}

/* Gives a reader's stream what a wish says. */
static inline hk_status_t fixture_try_change(fixture_t *f, reader_t *reader, const wish_t *wish)
{
    hk_grant_t *grant = wish->grant;
    hk_bytes_t answer;
    hk_status_t status = grant != NULL ? HK_OK : fixture_grant(wish, &grant);
    if (status != HK_OK) {
        return status;
    }
    hk_change_t change = {.grant = grant,
                          .has_cursor = wish->cursor != NULL,
                          .cursor = hk_test_text(wish->cursor != NULL ? wish->cursor : ""),
                          .expires_in = wish->expires_in != 0 ? wish->expires_in : HK_NEVER,
                          .now = f->now};
    status = hk_hub_change(f->hub, &reader->subscriber, &change, &answer);
    if (grant != wish->grant) {
        hk_grant_release(grant);
    }
    if (status == HK_OK) {
        HK_CHECK(answer.length < sizeof(reader->answer));
        memset(reader->answer, 0, sizeof(reader->answer));
        memcpy(reader->answer, answer.at, answer.length);
    }
    return status;
}

static inline void fixture_change(fixture_t *f, reader_t *reader, const wish_t *wish)
{
    HK_CHECK_OK(fixture_try_change(f, reader, wish));
}

static inline void fixture_unsubscribe(fixture_t *f, reader_t *reader)
{
    hk_hub_unsubscribe(f->hub, reader->subscriber, f->now);
    reader->subscriber = NULL;
}

/* Its socket accepts so many bytes again. */
static inline void fixture_give_room(fixture_t *f, reader_t *reader, size_t room)
{
    reader->room = room;
    if (reader->subscriber != NULL && hk_subscriber_blocked(reader->subscriber)) {
        hk_hub_writable(f->hub, reader->subscriber);
    }
}

/* -- Delivering ---------------------------------------------------------------------------------------------------- */

static inline ptrdiff_t fixture_accept(reader_t *reader, hk_bytes_t bytes)
{
    size_t count = bytes.length < reader->room ? bytes.length : reader->room;
    reader->writes++;
    if (reader->broken) {
        return -1;
    }
    if (reader->room != ANY_ROOM) {
        reader->room -= count;
    }
    HK_CHECK_OK(hk_buf_append(&reader->received, hk_bytes(bytes.at, count)));
    return (ptrdiff_t)count;
}

static inline ptrdiff_t fixture_deliver_to_one(fixture_t *f, hk_subscriber_t *subscriber, hk_bytes_t bytes)
{
    reader_t *reader = hk_subscriber_connection(subscriber);
    HK_CHECK(reader->subscriber == subscriber);
    if (bytes.at != NULL) {
        return fixture_accept(reader, bytes);
    }
    reader->closing = hk_subscriber_closing(subscriber);
    HK_CHECK(reader->closing != HK_CLOSING_NOT);
    HK_CHECK(f->closed_count < MOST_CLOSED);
    f->closed[f->closed_count++] = reader;
    return 0;
}

static inline void fixture_deliver(void *context, hk_subscriber_t *const *recipients, size_t count, hk_bytes_t bytes,
                                   ptrdiff_t *accepted)
{
    HK_CHECK(count > 0 && count <= HK_MAX_RECIPIENTS);
    HK_CHECK(count == 1 || bytes.at != NULL);
    for (size_t i = 0; i < count; i++) {
        accepted[i] = fixture_deliver_to_one(context, recipients[i], bytes);
    }
}

/* Hands out to at most `limit`. Whoever had to be closed leaves. */
static inline hk_status_t fixture_serve(fixture_t *f, size_t limit, bool *more)
{
    f->closed_count = 0;
    hk_status_t status = hk_hub_serve(f->hub, limit, f->max_bytes, f->now, fixture_deliver, f, more);
    for (size_t i = 0; i < f->closed_count; i++) {
        fixture_unsubscribe(f, f->closed[i]);
    }
    return status;
}

static inline void fixture_drain(fixture_t *f)
{
    bool more = true;
    for (size_t steps = 0; more; steps++) {
        HK_CHECK(steps < 100000);
        HK_CHECK_OK(fixture_serve(f, 7, &more));
    }
    HK_CHECK(!hk_hub_ready(f->hub));
}

/* The data of all events that a reader has received, with blanks between them; everything is handed out before. */
static inline hk_bytes_t fixture_data(fixture_t *f, reader_t *reader)
{
    fixture_drain(f);
    hk_bytes_t rest = hk_buf_bytes(&reader->received), line;
    hk_buf_clear(&reader->data);
    while (hk_test_line(&rest, &line)) {
        if (hk_bytes_start_with(line, HK_BYTES("data: "))) {
            HK_CHECK_OK(hk_buf_append(&reader->data, hk_bytes(" ", reader->data.length > 0)));
            HK_CHECK_OK(hk_buf_append(&reader->data, hk_bytes(line.at + 6, line.length - 6)));
        }
    }
    return hk_buf_bytes(&reader->data);
}

static inline hk_hub_stats_t fixture_stats(const fixture_t *f)
{
    hk_hub_stats_t stats;
    hk_hub_read_stats(f->hub, &stats);
    return stats;
}

#endif
