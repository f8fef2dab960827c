#include "hk_coded_reader.h"
#include "hk_hub_fixture.h"

/* Whoever has a stream in another form, or a compressed one, reads the events that one beside it reads who has not. */

enum { PAIRS = 16, STEPS = 700 };

typedef struct pair {
    reader_t plain, coded;
    wish_t wish;
} pair_t;

static const char *const matches[] = {"/a", "/a", "/a", "*", "/b", "/a /b", "/b /a", "/c*", "/b /c*"};
static const char *const topics[] = {"/a", "/a", "/b", "/c/1", "/d", "/a /b"};

#define ONE_OF(list) ((list)[hk_test_below(sizeof(list) / sizeof((list)[0]))])

static wish_t any_wish(const fixture_t *f)
{
    wish_t wish = {.matches = ONE_OF(matches), .changeable = true};
    wish.reads = hk_test_below(3) == 0 ? ONE_OF(matches) : NULL;
    wish.cursor = hk_test_below(3) > 0 ? NULL : hk_test_below(2) == 0 && f->id[0] != '\0' ? f->id : "earliest";
    return wish;
}

static void come(fixture_t *f, pair_t *pair)
{
    pair->wish = any_wish(f);
    fixture_subscribe(f, &pair->plain, &pair->wish);
    unsigned kind = 1 + (unsigned)hk_test_below(hk_gzip_available() ? 3 : 1);
    pair->wish.form = (kind & 1) != 0 ? HK_STREAM_MESSAGE_PACK : HK_STREAM_EVENTS;
    pair->wish.coding = (kind & 2) != 0 ? HK_STREAM_GZIP : HK_STREAM_IDENTITY;
    fixture_subscribe(f, &pair->coded, &pair->wish);
}

static void publish(fixture_t *f)
{
    static char data[100001];
    size_t length = hk_test_below(30) == 0 ? hk_test_below(100000) : hk_test_below(400);
    bool noise = hk_test_below(3) == 0;
    for (size_t i = 0; i < length; i++) {
        data[i] = (char)(noise ? 'A' + hk_test_random() % 50 : (i * i / 7) % 11 == 0 ? '\n' : 'a' + i % 9);
    }
    HK_CHECK_OK(fixture_try_publish(f, ONE_OF(topics),
                                    (hk_log_update_t){.data = hk_bytes(data, length),
                                                      .type = hk_test_below(4) == 0 ? HK_BYTES("note") : HK_BYTES(""),
                                                      .retry_ms = hk_test_below(20) == 0 ? 700 : -1,
                                                      .is_private = hk_test_below(4) == 0}));
}

static void check(fixture_t *f, pair_t *pair)
{
    coded_stream_t plain, coded;
    fixture_give_room(f, &pair->plain, ANY_ROOM);
    fixture_give_room(f, &pair->coded, ANY_ROOM);
    fixture_drain(f);
    coded_read(&plain, hk_buf_bytes(&pair->plain.received), HK_STREAM_EVENTS, HK_STREAM_IDENTITY);
    coded_read(&coded, hk_buf_bytes(&pair->coded.received), pair->wish.form, pair->wish.coding);
    coded_check_same(hk_buf_bytes(&plain.events), &coded.events);
    HK_CHECK_EQUAL_UINT(plain.words, coded.words);
    HK_CHECK(!coded.ended);
    coded_release(&plain);
    coded_release(&coded);
}

/* It ends in order, which a client sees by the sum of all that it was told. */
static void leave(fixture_t *f, pair_t *pair)
{
    hk_buf_t farewell;
    check(f, pair);
    hk_buf_init(&farewell, hk_alloc_default());
    HK_CHECK_OK(hk_hub_farewell(f->hub, pair->coded.subscriber, HK_BYTES("retry: 5\n\n"), &farewell));
    HK_CHECK_OK(hk_buf_append(&pair->coded.received, hk_buf_bytes(&farewell)));
    hk_buf_release(&farewell);
    coded_stream_t coded;
    coded_read(&coded, hk_buf_bytes(&pair->coded.received), pair->wish.form, pair->wish.coding);
    HK_CHECK_EQUAL_INT(pair->wish.coding == HK_STREAM_GZIP, coded.ended);
    coded_release(&coded);
    fixture_unsubscribe(f, &pair->plain);
    fixture_unsubscribe(f, &pair->coded);
}

static void step(fixture_t *f, pair_t *pair)
{
    bool more;
    switch (hk_test_below(11)) {
    case 0:
        HK_CHECK_OK(hk_hub_control(f->hub, pair->coded.subscriber, HK_SSE_HEARTBEAT));
        break;
    case 1:
        fixture_give_room(f, &pair->coded, hk_test_below(3000));
        break;
    case 2:
        fixture_give_room(f, &pair->coded, ANY_ROOM);
        break;
    case 3:
        HK_CHECK_OK(fixture_serve(f, 1 + hk_test_below(20), &more));
        break;
    case 4:
        fixture_drain(f);
        break;
    default:
        publish(f);
    }
}

static void change(fixture_t *f, pair_t *pair)
{
    check(f, pair);
    wish_t wish = any_wish(f);
    fixture_change(f, &pair->plain, &wish);
    fixture_change(f, &pair->coded, &wish);
}

/* Only those are told that are not behind. */
static void tell(fixture_t *f, pair_t *present[PAIRS])
{
    for (size_t i = 0; i < PAIRS; i++) {
        fixture_give_room(f, &present[i]->coded, ANY_ROOM);
    }
    fixture_drain(f);
    HK_CHECK_OK(hk_hub_notify(f->hub, HK_BYTES("/a"), HK_BYTES("event: told\ndata: x\n\n"), NULL));
    fixture_drain(f);
}

HK_TEST(random_readers_read_what_others_read_who_have_plain_streams)
{
    for (size_t round = 0; round < 6; round++) {
        /* Those that left are still the fixture's until its end. */
        static pair_t pairs[PAIRS + STEPS];
        pair_t *present[PAIRS];
        size_t used = 0;
        fixture_t f;
        hk_hub_options_t options = fixture_options();
        options.history_bytes = (size_t)1 << 30;
        fixture_begin(&f, &options);
        for (size_t i = 0; i < PAIRS; i++) {
            present[i] = &pairs[used++];
            come(&f, present[i]);
        }
        for (size_t i = 0; i < STEPS; i++) {
            hk_test_note("round %zu, step %zu", round, i);
            pair_t **pair = &present[hk_test_below(PAIRS)];
            if (hk_test_below(25) == 0) {
                leave(&f, *pair);
                *pair = &pairs[used++];
                come(&f, *pair);
            } else if (hk_test_below(40) == 0) {
                change(&f, *pair);
            } else if (hk_test_below(60) == 0) {
                tell(&f, present);
            } else {
                step(&f, *pair);
            }
        }
        for (size_t i = 0; i < PAIRS; i++) {
            leave(&f, present[i]);
        }
        fixture_end(&f);
    }
}
