#include "hk_hub_fixture.h"
#include "hk_replay_filter.h"

/* Streams that are changed at random against a model of them, which has sets of events instead of cursors and layers.
 *
 * Whatever is published, read, blocked and changed, and wherever memory is missing: each event that is to come comes,
 * in order, whole; what was sent is sent again only where it may be. As test/support/modelled_stream.rb. */

enum { TOPICS = 5, PATTERNS = 6, MOST_UPDATES = 300, MOST_READERS = 8, MOST_HAD = HK_REPLAY_FILTER_RANGES + 1 };

static const char *const topics[TOPICS] = {"/a", "/b", "/c", "/d/1", "/d/2"};
static const char *const patterns[PATTERNS] = {"/a", "/b", "/c", "/d/1", "/d/*", "*"};
static const unsigned selected[PATTERNS] = {1, 2, 4, 8, 8 | 16, 31};

typedef struct update {
    unsigned topics; /* a bit for each */
    bool is_private;
    char id[80];
} update_t;

/* What had been sent when the stream went back. */
typedef struct had {
    hk_position_t to;
    bool positions[MOST_UPDATES + 1];
} had_t;

typedef struct modelled {
    reader_t reader;
    bool present[PATTERNS];
    hk_beginning_t beginnings[PATTERNS];
    unsigned reads; /* topics */
    hk_position_t position, within, resumes_at;
    bool sent[MOST_UPDATES + 1];
    had_t had[MOST_HAD];
    size_t had_count, seen, rewinds;
} modelled_t;

typedef struct model {
    fixture_t f;
    bool failing;
    update_t updates[MOST_UPDATES + 1]; /* by position */
    size_t update_count;
    modelled_t readers[MOST_READERS];
    size_t reader_count;
} model_t;

/* -- What is to come ----------------------------------------------------------------------------------------------- */

static bool admits(const model_t *m, const modelled_t *r, hk_position_t position)
{
    const update_t *update = &m->updates[position];
    return !update->is_private || (update->topics & r->reads) != 0;
}

/* What one of its matchers selects, from where it is listened to or else from where it is known what was sent. */
static bool selects(const model_t *m, const modelled_t *r, hk_position_t position, bool listened)
{
    for (size_t i = 0; i < PATTERNS; i++) {
        hk_position_t begins = listened ? r->beginnings[i].from : r->beginnings[i].since;
        if (r->present[i] && begins < position && (selected[i] & m->updates[position].topics) != 0) {
            return true;
        }
    }
    return false;
}

static bool was_had(const modelled_t *r, hk_position_t position)
{
    for (size_t i = 0; i < r->had_count; i++) {
        if (position <= r->had[i].to && r->had[i].positions[position]) {
            return true;
        }
    }
    return false;
}

/* The next that is to come, from a position on; one more than there are: none. */
static hk_position_t due(const model_t *m, const modelled_t *r, hk_position_t from)
{
    while (from <= m->update_count && (!selects(m, r, from, true) || !admits(m, r, from) || was_had(r, from))) {
        from++;
    }
    return from;
}

static hk_position_t standing(const modelled_t *r)
{
    return r->within == 0 ? r->position : r->resumes_at != HK_POSITION_NONE ? r->resumes_at : r->within;
}

/* -- What has come ------------------------------------------------------------------------------------------------- */

static void take(const model_t *m, modelled_t *r, hk_position_t position)
{
    if (r->within != 0) {
        HK_CHECK_EQUAL_UINT(r->within, position);
        r->position = standing(r);
        r->within = 0;
        r->resumes_at = HK_POSITION_NONE;
        return;
    }
    HK_CHECK_EQUAL_UINT(due(m, r, r->position + 1), position);
    r->sent[position] = true;
    r->position = position;
}

static void follow(const model_t *m, modelled_t *r)
{
    hk_bytes_t all = hk_buf_bytes(&r->reader.received);
    for (;;) {
        hk_bytes_t rest = hk_bytes(all.at + r->seen, all.length - r->seen);
        const char *end = rest.length > 0 ? memmem(rest.at, rest.length, "\n\n", 2) : NULL;
        if (end == NULL) {
            break;
        }
        hk_bytes_t block = hk_bytes(rest.at, (size_t)(end - rest.at));
        r->seen += block.length + 2;
        const char *data = memmem(block.at, block.length, "\ndata: ", 7);
        bool is_gap = hk_bytes_start_with(block, HK_BYTES("event: mercure"));
        HK_CHECK(data != NULL || block.at[0] == ':');
        if (data != NULL && !is_gap) {
            take(m, r, strtoul(data + 7, NULL, 10));
        }
    }
    if (r->seen < all.length && all.at[r->seen] == 'i' && r->within == 0) {
        r->within = due(m, r, r->position + 1);
        HK_CHECK(r->within <= m->update_count);
        r->sent[r->within] = true;
    }
}

static void follow_all(model_t *m)
{
    for (size_t i = 0; i < m->reader_count; i++) {
        hk_test_note("reader %zu of %zu, %zu updates", i, m->reader_count, m->update_count);
        follow(m, &m->readers[i]);
    }
}

/* -- What happens -------------------------------------------------------------------------------------------------- */

static void choose(char *list, const bool chosen[PATTERNS])
{
    list[0] = '\0';
    size_t first = hk_test_below(PATTERNS);
    for (size_t i = 0; i < PATTERNS; i++) {
        size_t pattern = (first + i) % PATTERNS;
        if (chosen[pattern]) {
            strcat(strcat(list, list[0] != '\0' ? " " : ""), patterns[pattern]);
        }
    }
}

static unsigned choose_reads(char *list)
{
    size_t topic = hk_test_below(2 * TOPICS);
    strcpy(list, topic < TOPICS ? topics[topic] : "/a");
    return topic < TOPICS ? 1U << topic : 1;
}

static void publish(model_t *m)
{
    if (m->update_count == MOST_UPDATES) {
        return;
    }
    size_t first = hk_test_below(TOPICS), second = hk_test_below(2 * TOPICS);
    char list[40], data[80];
    sprintf(list, "%s%s%s", topics[first], second < TOPICS && second != first ? " " : "",
            second < TOPICS && second != first ? topics[second] : "");
    sprintf(data, "%zu %.*s", m->update_count + 1, (int)hk_test_below(40), "........................................");
    hk_log_update_t update = {.data = hk_test_text(data), .retry_ms = -1, .is_private = hk_test_below(4) == 0};
    hk_status_t status = fixture_try_publish(&m->f, list, update);
    HK_CHECK(status == HK_OK || (m->failing && status == HK_NO_MEMORY));
    if (status == HK_OK) {
        update_t *known = &m->updates[++m->update_count];
        *known =
            (update_t){.topics = 1U << first | (second < TOPICS ? 1U << second : 0), .is_private = update.is_private};
        strcpy(known->id, m->f.id);
    }
}

static void subscribe(model_t *m)
{
    if (m->reader_count == MOST_READERS) {
        return;
    }
    modelled_t *r = &m->readers[m->reader_count];
    char matches[80], reads[40];
    memset(r, 0, sizeof(*r));
    r->position = m->update_count;
    r->resumes_at = HK_POSITION_NONE;
    for (size_t i = 0; i < PATTERNS; i++) {
        r->present[i] = hk_test_below(4) == 0;
        r->beginnings[i] = (hk_beginning_t){r->position, r->position};
    }
    r->present[hk_test_below(PATTERNS)] = true;
    r->reads = choose_reads(reads);
    choose(matches, r->present);
    wish_t wish = {.matches = matches, .reads = reads, .room = 1 + hk_test_below(120), .changeable = true};
    hk_status_t status = fixture_try_subscribe(&m->f, &r->reader, &wish);
    HK_CHECK(status == HK_OK || (m->failing && status == HK_NO_MEMORY));
    m->reader_count += status == HK_OK;
}

static void go_back(const model_t *m, modelled_t *r, hk_position_t here, hk_position_t from)
{
    size_t left = 0;
    for (size_t i = 0; i < r->had_count; i++) {
        if (r->had[i].to > here) {
            r->had[left++] = r->had[i];
        }
    }
    r->had_count = left;
    had_t *had = &r->had[r->had_count++];
    HK_CHECK(r->had_count <= HK_REPLAY_FILTER_RANGES);
    memset(had, 0, sizeof(*had));
    had->to = here;
    for (hk_position_t i = 1; i <= here; i++) {
        had->positions[i] = r->sent[i] && admits(m, r, i) && selects(m, r, i, false);
    }
    for (size_t i = 0; i < PATTERNS; i++) {
        r->beginnings[i].from = r->beginnings[i].from < here ? here : r->beginnings[i].from;
    }
    r->rewinds++;
    if (r->within != 0) {
        r->resumes_at = from;
    } else {
        r->position = from;
    }
}

/* What a change makes of the model. */
static void adopt(const model_t *m, modelled_t *r, const bool wanted[PATTERNS], unsigned reads, hk_position_t from,
                  bool goes_back)
{
    hk_position_t here = standing(r);
    if (goes_back) {
        go_back(m, r, here, from);
    }
    for (size_t i = 0; i < PATTERNS; i++) {
        hk_beginning_t *beginning = &r->beginnings[i];
        if (reads != r->reads && beginning->since < here) {
            beginning->since = here;
        }
        if (wanted[i] && !r->present[i]) {
            *beginning = (hk_beginning_t){from, from};
        }
        r->present[i] = wanted[i];
    }
    r->reads = reads;
}

static bool is_full(const modelled_t *r)
{
    size_t count = 0;
    for (size_t i = 0; i < r->had_count; i++) {
        count += r->had[i].to > standing(r);
    }
    return count >= HK_REPLAY_FILTER_RANGES;
}

static void change(model_t *m, modelled_t *r)
{
    bool wanted[PATTERNS] = {false}, adds = false;
    char matches[80], reads[40] = "";
    follow(m, r);
    if (r->within == 0) {
        hk_position_t cursor = hk_subscriber_cursor(r->reader.subscriber);
        HK_CHECK(cursor >= r->position && due(m, r, r->position + 1) > cursor);
        r->position = cursor;
    }
    for (size_t i = 0; i < PATTERNS; i++) {
        wanted[i] = hk_test_below(3) == 0 || (r->present[i] && hk_test_below(3) > 0);
    }
    wanted[hk_test_below(PATTERNS)] = true;
    unsigned read = choose_reads(reads);
    choose(matches, wanted);
    for (size_t i = 0; i < PATTERNS; i++) {
        adds = adds || (wanted[i] && !r->present[i]);
    }
    size_t kind = hk_test_below(10), known = m->update_count > 0 ? 1 + hk_test_below(m->update_count) : 0;
    wish_t wish = {.matches = matches, .reads = reads};
    hk_position_t from = m->update_count;
    if (kind < 2) {
        wish.cursor = kind == 0 ? "earliest" : "urn:unknown";
        from = 0;
    } else if (kind < 8 && known > 0) {
        wish.cursor = m->updates[known].id;
        from = known;
    }
    bool goes_back = adds && from < standing(r);
    hk_status_t status = fixture_try_change(&m->f, &r->reader, &wish);
    if (status == HK_OK) {
        HK_CHECK(!goes_back || !is_full(r));
        adopt(m, r, wanted, read, from, goes_back);
    } else {
        HK_CHECK((status == HK_TOO_MANY && goes_back && is_full(r)) || (m->failing && status == HK_NO_MEMORY));
    }
}

static void serve(model_t *m)
{
    bool more;
    m->f.max_bytes = 1 + hk_test_below(300);
    hk_status_t status = fixture_serve(&m->f, hk_test_below(20), &more);
    HK_CHECK(status == HK_OK || (m->failing && status == HK_NO_MEMORY));
    HK_CHECK_EQUAL_UINT(m->reader_count, fixture_stats(&m->f).subscribers);
}

static void step(model_t *m)
{
    modelled_t *r = m->reader_count > 0 ? &m->readers[hk_test_below(m->reader_count)] : NULL;
    size_t kind = hk_test_below(16);
    if (kind < 5) {
        publish(m);
    } else if (kind < 6) {
        subscribe(m);
    } else if (kind < 9 && r != NULL) {
        change(m, r);
    } else if (kind < 12 && r != NULL) {
        fixture_give_room(&m->f, &r->reader, hk_test_below(150));
    } else {
        serve(m);
    }
}

static void run(size_t rounds, bool failing)
{
    static model_t m;
    size_t rewinds = 0;
    for (size_t round = 0; round < rounds; round++) {
        m.update_count = m.reader_count = 0;
        m.failing = failing;
        fixture_begin(&m.f, NULL);
        for (size_t i = 0; i < 700; i++) {
            if (failing && hk_test_below(4) == 0) {
                hk_test_failing(hk_test_below(12));
            }
            step(&m);
            hk_test_not_failing();
            follow_all(&m);
        }
        m.f.max_bytes = 65536;
        for (size_t i = 0; i < m.reader_count; i++) {
            fixture_give_room(&m.f, &m.readers[i].reader, ANY_ROOM);
        }
        fixture_drain(&m.f);
        follow_all(&m);
        for (size_t i = 0; i < m.reader_count; i++) {
            modelled_t *r = &m.readers[i];
            hk_test_note("reader %zu at the end", i);
            HK_CHECK(r->within == 0 && due(&m, r, r->position + 1) > m.update_count);
            rewinds += r->rewinds;
        }
        fixture_end(&m.f);
    }
    HK_CHECK(rewinds > 10 * rounds);
}

HK_TEST(everyone_gets_what_it_should_in_order_and_nothing_twice)
{
    run(60, false);
}

HK_TEST(everyone_gets_what_it_should_wherever_memory_is_missing)
{
    run(60, true);
}
