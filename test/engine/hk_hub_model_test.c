#include "hk_hub_fixture.h"

/* A hub against a model of it: everything that was published, and for each reader what it should have got of that.
 *
 * Whatever is published, whoever comes, leaves, blocks, is passed by the ring, and wherever memory is missing: a reader
 * gets its own, in order, each once, whole; where something is left out it was told before. */

enum { TOPICS = 6, MOST_UPDATES = 4000, MOST_READERS = 400, MOST_OPEN = 30 };

static const char *const topics[TOPICS] = {"/a", "/b", "/c", "/d/1", "/d/2", "/e"};
static const char *const patterns[] = {"/a", "/b", "/c", "/d/*", "/d/2", "/*", "*", "/nobody"};

enum { PATTERNS = sizeof(patterns) / sizeof(*patterns) };

typedef struct update {
    unsigned topics; /* a bit for each */
    bool is_private;
    char id[HK_EVENT_ID_BYTES + 1];
} update_t;

typedef struct modelled {
    reader_t reader;
    unsigned matches, reads; /* topics */
    size_t from;             /* the first update that it may get */
    bool all;                /* it asked for all that is retained: what is lost at the beginning is not missing */
} modelled_t;

typedef struct model {
    fixture_t f;
    bool failing; /* allocations do, now and then */
    bool lossy;   /* the ring is small */
    size_t update_count, reader_count;
    update_t updates[MOST_UPDATES];
    modelled_t readers[MOST_READERS];
} model_t;

static unsigned matched_by(const char *pattern)
{
    unsigned found = 0;
    size_t length = strlen(pattern);
    for (unsigned i = 0; i < TOPICS; i++) {
        bool matches =
            pattern[length - 1] == '*' ? strncmp(pattern, topics[i], length - 1) == 0 : strcmp(pattern, topics[i]) == 0;
        found |= matches ? 1U << i : 0;
    }
    return found;
}

/* Up to `most` different patterns. */
static unsigned choose_patterns(char *list, size_t most)
{
    unsigned found = 0, chosen = 0;
    list[0] = '\0';
    for (size_t i = 0; i < most; i++) {
        size_t pattern = hk_test_below(PATTERNS);
        if ((chosen >> pattern & 1) == 0) {
            chosen |= 1U << pattern;
            strcat(list, list[0] != '\0' ? " " : "");
            strcat(list, patterns[pattern]);
            found |= matched_by(patterns[pattern]);
        }
    }
    return found;
}

/* -- What happens -------------------------------------------------------------------------------------------------- */

static void publish(model_t *m)
{
    update_t *update = &m->updates[m->update_count];
    char list[64] = "", data[400];
    size_t first = hk_test_below(TOPICS), second = hk_test_below(TOPICS);
    strcat(list, topics[first]);
    if (second != first && second % 2 == 0) {
        strcat(strcat(list, " "), topics[second]);
    } else {
        second = first;
    }
    size_t padding = hk_test_below(10) == 0 ? hk_test_below(300) : 0;
    int length = snprintf(data, sizeof(data), "%zu %.*s", m->update_count, (int)padding,
                          "......................................................................................."
                          "......................................................................................."
                          "......................................................................................."
                          ".......................................");
    *update = (update_t){.topics = 1U << first | 1U << second, .is_private = hk_test_below(4) == 0};
    hk_status_t status = fixture_try_publish(
        &m->f, list,
        (hk_log_update_t){.data = hk_bytes(data, (size_t)length), .retry_ms = -1, .is_private = update->is_private});
    HK_CHECK(status == HK_OK || (m->failing && status == HK_NO_MEMORY));
    if (status == HK_OK) {
        strcpy(update->id, m->f.id);
        m->update_count++;
    }
}

static void subscribe(model_t *m)
{
    modelled_t *reader = &m->readers[m->reader_count];
    char matches[200], reads[200];
    *reader = (modelled_t){.from = m->update_count};
    reader->matches = choose_patterns(matches, 1 + (hk_test_below(3) == 0 ? hk_test_below(4) : 0));
    reader->reads = choose_patterns(reads, hk_test_below(3));
    wish_t wish = {.matches = matches, .reads = reads, .room = 1 + hk_test_below(300)};
    size_t kind = hk_test_below(6);
    size_t known = m->update_count > 0 ? hk_test_below(m->update_count) : 0;
    if (kind == 0) {
        wish.cursor = "earliest";
    } else if (kind == 1) {
        wish.cursor = "urn:unknown";
    } else if (kind == 2 && m->update_count > 0) {
        wish.cursor = m->updates[known].id;
    } else if (kind == 3) {
        wish.room = ANY_ROOM;
    }
    hk_status_t status = fixture_try_subscribe(&m->f, &reader->reader, &wish);
    HK_CHECK(status == HK_OK || (m->failing && status == HK_NO_MEMORY));
    if (status != HK_OK) {
        return;
    }
    if (wish.cursor != NULL) {
        reader->all = strcmp(reader->reader.answer, "earliest") == 0;
        reader->from = reader->all ? 0 : known + 1;
        HK_CHECK(!reader->all || kind != 2 || m->lossy);
    }
    m->reader_count++;
}

static size_t open_readers(model_t *m)
{
    return fixture_stats(&m->f).subscribers;
}

static reader_t *somebody(model_t *m)
{
    if (m->reader_count == 0) {
        return NULL;
    }
    /* Mostly one of the newest: the others have left. */
    size_t among = m->reader_count < 2 * MOST_OPEN ? m->reader_count : 2 * MOST_OPEN;
    reader_t *reader = &m->readers[m->reader_count - 1 - hk_test_below(among)].reader;
    return reader->subscriber != NULL ? reader : NULL;
}

static void serve(model_t *m)
{
    bool more;
    m->f.max_bytes = 1 + hk_test_below(600);
    m->f.now += SECOND;
    hk_status_t status = fixture_serve(&m->f, hk_test_below(20), &more);
    HK_CHECK(status == HK_OK || (m->failing && status == HK_NO_MEMORY));
    HK_CHECK_OK(hk_hub_tick(m->f.hub, m->f.now));
}

static void step(model_t *m)
{
    reader_t *reader;
    switch (hk_test_below(12)) {
    case 0:
    case 1:
    case 2:
    case 3:
        publish(m);
        break;
    case 4:
        if (open_readers(m) < MOST_OPEN && m->reader_count < MOST_READERS) {
            subscribe(m);
        }
        break;
    case 5:
    case 6:
    case 7:
        if ((reader = somebody(m)) != NULL) {
            fixture_give_room(&m->f, reader, hk_test_below(5) == 0 ? ANY_ROOM : hk_test_below(400));
        }
        break;
    case 8:
        if (hk_test_below(4) == 0 && (reader = somebody(m)) != NULL) {
            fixture_unsubscribe(&m->f, reader);
        }
        break;
    default:
        serve(m);
    }
}

/* -- What was received --------------------------------------------------------------------------------------------- */

static bool is_for(const model_t *m, const modelled_t *reader, size_t i)
{
    const update_t *update = &m->updates[i];
    return (update->topics & reader->matches) != 0 && (!update->is_private || (update->topics & reader->reads) != 0);
}

/* The next that is for the reader, from one on. */
static size_t next_for(const model_t *m, const modelled_t *reader, size_t from)
{
    while (from < m->update_count && !is_for(m, reader, from)) {
        from++;
    }
    return from;
}

/* Takes an event off what was received: the number of the update, MOST_UPDATES for a gap. */
static bool take_event(const model_t *m, hk_bytes_t *rest, size_t *number)
{
    hk_bytes_t line;
    do {
        if (!hk_test_line(rest, &line)) {
            return false;
        }
        if (hk_bytes_equal(line, HK_BYTES(":"))) {
            hk_test_line(rest, &line);
        }
    } while (line.length == 0);
    bool gap = hk_bytes_equal(line, HK_BYTES("event: mercure"));
    if (gap && !hk_test_line(rest, &line)) {
        return false;
    }
    hk_bytes_t id = line;
    if (!hk_test_line(rest, &line) || rest->length == 0) {
        return false; /* a part of an event */
    }
    HK_CHECK(hk_bytes_start_with(id, HK_BYTES("id: ")) && hk_bytes_start_with(line, HK_BYTES("data: ")));
    *number = gap ? MOST_UPDATES : (size_t)strtoul(line.at + 6, NULL, 10);
    HK_CHECK(gap || *number < m->update_count);
    HK_CHECK(gap || hk_bytes_equal(hk_bytes(id.at + 4, id.length - 4), hk_test_text(m->updates[*number].id)));
    HK_CHECK(hk_test_line(rest, &line) && line.length == 0);
    return true;
}

static void check_reader(const model_t *m, const modelled_t *reader, bool to_the_end)
{
    hk_bytes_t rest = hk_buf_bytes(&reader->reader.received);
    size_t next = next_for(m, reader, reader->from), number;
    bool told = reader->all;
    while (take_event(m, &rest, &number)) {
        if (number == MOST_UPDATES) {
            HK_CHECK(m->lossy || reader->all);
            told = true;
            continue;
        }
        HK_CHECK(is_for(m, reader, number));
        HK_CHECK(number >= next);
        HK_CHECK(number == next || (told && m->lossy));
        told = false;
        next = next_for(m, reader, number + 1);
    }
    if (to_the_end) {
        HK_CHECK_EQUAL_UINT(0, rest.length);
        HK_CHECK(next == m->update_count || (told && m->lossy));
    }
}

static void check_all(model_t *m)
{
    for (size_t i = 0; i < m->reader_count; i++) {
        hk_test_note("reader %zu", i);
        if (m->readers[i].reader.subscriber != NULL) {
            fixture_give_room(&m->f, &m->readers[i].reader, ANY_ROOM);
        }
    }
    m->f.max_bytes = 65536;
    fixture_drain(&m->f);
    for (size_t i = 0; i < m->reader_count; i++) {
        hk_test_note("reader %zu", i);
        const modelled_t *reader = &m->readers[i];
        HK_CHECK_EQUAL_INT(HK_CLOSING_NOT, reader->reader.closing);
        check_reader(m, reader, reader->reader.subscriber != NULL);
    }
}

static void run(size_t history_bytes, bool lossy, bool failing)
{
    static model_t m;
    for (size_t round = 0; round < 6; round++) {
        m.update_count = m.reader_count = 0;
        m.lossy = lossy;
        m.failing = failing;
        hk_hub_options_t options = fixture_options();
        options.history_bytes = history_bytes;
        options.heartbeat = 20 * SECOND;
        fixture_begin(&m.f, &options);
        while (m.update_count < MOST_UPDATES / 2 - 1) {
            if (failing && hk_test_below(4) == 0) {
                hk_test_failing(hk_test_below(12));
            }
            step(&m);
            hk_test_not_failing();
            if (hk_test_below(400) == 0) {
                check_all(&m);
            }
        }
        check_all(&m);
        HK_CHECK(m.reader_count > 20);
        HK_CHECK_EQUAL_INT(lossy, fixture_stats(&m.f).gaps > 0);
        fixture_end(&m.f);
    }
}

HK_TEST(everyone_gets_exactly_its_own_in_order)
{
    run(100 << 20, false, false);
}

HK_TEST(whoever_the_ring_has_passed_is_told_and_gets_the_rest_in_order)
{
    run(20000, true, false);
}

HK_TEST(everyone_gets_exactly_its_own_wherever_memory_is_missing)
{
    run(100 << 20, false, true);
}

HK_TEST(whoever_the_ring_has_passed_is_told_wherever_memory_is_missing)
{
    run(20000, true, true);
}
