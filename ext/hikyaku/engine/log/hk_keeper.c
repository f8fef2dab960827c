#include "hk_keeper.h"

#include "hk_buf.h"
#include "hk_topic.h"

#include <string.h>

enum {
    UPDATE = 16,
    KEY = 17,
    PRIVATE = 1,
    HEAD_BYTES = 40,
    KEY_BYTES = HK_LOG_KEY_BYTES + 8,
    /* Marks of when what was published, of which there are never more than that in the span of an age. */
    MARKS = 512,
    LEAST_SPAN = 1000, /* ms that share a mark */
    /* What a record takes beside its bytes, generously. */
    MARGIN = 1024
};

typedef struct end {
    uint64_t segment;
    hk_position_t newest; /* that stands in it */
} end_t;

typedef struct mark {
    hk_position_t newest; /* of its span */
    int64_t since;        /* ms since 1970 */
} mark_t;

struct hk_keeper {
    const hk_alloc_t *alloc;
    const hk_files_t *files;
    hk_journal_t *journal;
    uint32_t segment_bytes;
    hk_keeper_options_t options;
    uint8_t key[HK_LOG_KEY_BYTES];
    bool has_key;
    bool begun; /* its first segment */
    hk_position_t next;
    hk_keeper_loss_t loss;
    int watermark; /* -1: none */
    uint64_t watermark_at;
    bool watermark_is_timed;
    int64_t ahead; /* ms: what `wall` is ahead of `now` */
    hk_buf_t body; /* within one call */
    end_t *ends;   /* of the segments that are needed, the oldest first */
    size_t end_count, end_capacity;
    mark_t marks[MARKS]; /* a ring */
    size_t mark_first, mark_count;
    uint64_t at;   /* in the current segment: where the newest record ends */
    bool half_way; /* it was told of that this segment is half full */
    hk_position_t young_from;
    void (*rouse)(void *context); /* NULL: nobody does the jobs but who asks for them */
    void *rouse_context;
};

/* --- numbers ------------------------------------------------------------------------------------------------------ */

static char *put(char *at, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (char)(value >> (8 * i));
    }
    return at + bytes;
}

static uint64_t get(const char **at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) {
        value |= (uint64_t)(uint8_t)(*at)[i] << (8 * i);
    }
    *at += bytes;
    return value;
}

/* --- what is young ------------------------------------------------------------------------------------------------ */

static int64_t wall_of(const hk_keeper_t *keeper, int64_t now)
{
    return now / 1000000 + keeper->ahead;
}

static int64_t span_of(const hk_keeper_t *keeper)
{
    int64_t span = keeper->options.age / (MARKS / 2);
    return span > LEAST_SPAN ? span : LEAST_SPAN;
}

/* A clock that was set back makes no mark: what comes is as young as what was there. */
static void note_time(hk_keeper_t *keeper, hk_position_t position, int64_t wall)
{
    if (keeper->options.age <= 0) {
        return;
    }
    mark_t *newest = &keeper->marks[(keeper->mark_first + keeper->mark_count + MARKS - 1) % MARKS];
    if (keeper->mark_count > 0 && (wall < newest->since + span_of(keeper) || keeper->mark_count == MARKS)) {
        newest->newest = position;
        return;
    }
    keeper->marks[(keeper->mark_first + keeper->mark_count) % MARKS] = (mark_t){position, wall};
    keeper->mark_count++;
}

hk_position_t hk_keeper_young_from(hk_keeper_t *keeper, int64_t now)
{
    int64_t limit = wall_of(keeper, now) - keeper->options.age - span_of(keeper);
    while (keeper->mark_count > 0 && keeper->marks[keeper->mark_first].since <= limit) {
        keeper->young_from = keeper->marks[keeper->mark_first].newest + 1;
        keeper->mark_first = (keeper->mark_first + 1) % MARKS;
        keeper->mark_count--;
    }
    return keeper->young_from;
}

/* --- which segments are needed ------------------------------------------------------------------------------------ */

static hk_status_t reserve_end(hk_keeper_t *keeper)
{
    if (keeper->end_count < keeper->end_capacity) {
        return HK_OK;
    }
    size_t capacity = keeper->end_capacity > 0 ? 2 * keeper->end_capacity : 16;
    end_t *ends = hk_alloc_resize(keeper->alloc, keeper->ends, capacity, sizeof(*ends));
    if (ends == NULL) {
        return HK_NO_MEMORY;
    }
    keeper->ends = ends;
    keeper->end_capacity = capacity;
    return HK_OK;
}

/* There is room: see reserve_end. */
static void note(hk_keeper_t *keeper, uint64_t segment, hk_position_t position, int64_t wall)
{
    if (keeper->end_count == 0 || keeper->ends[keeper->end_count - 1].segment != segment) {
        keeper->ends[keeper->end_count++].segment = segment;
    }
    keeper->ends[keeper->end_count - 1].newest = position;
    keeper->next = position + 1;
    note_time(keeper, position, wall);
}

void hk_keeper_retain(hk_keeper_t *keeper, hk_position_t from)
{
    size_t gone = 0;
    while (gone < keeper->end_count && keeper->ends[gone].newest < from &&
           keeper->ends[gone].segment != hk_journal_current(keeper->journal) &&
           hk_journal_drop(keeper->journal, keeper->ends[gone].segment) != HK_NO_MEMORY) {
        gone++;
    }
    if (gone > 0) {
        keeper->end_count -= gone;
        memmove(keeper->ends, keeper->ends + gone, keeper->end_count * sizeof(*keeper->ends));
    }
}

/* --- opening ------------------------------------------------------------------------------------------------------ */

hk_bytes_t hk_kept_topic(hk_bytes_t *topics)
{
    const char *at = topics->at;
    size_t length = (size_t)get(&at, 4);
    *topics = hk_bytes(at + length, topics->length - 4 - length);
    return hk_bytes(at, length);
}

/* HK_INVALID: it is longer or shorter than it says. */
static hk_status_t read_update(const hk_journal_record_t *record, hk_kept_t *kept, int64_t *wall)
{
    const char *at = record->body.at, *end = at + record->body.length;
    if (record->body.length < HEAD_BYTES) {
        return HK_INVALID;
    }
    *kept = (hk_kept_t){.position = get(&at, 8), .is_private = (record->flags & PRIVATE) != 0};
    *wall = (int64_t)get(&at, 8);
    kept->retry_ms = (int64_t)get(&at, 8);
    kept->topic_count = (size_t)get(&at, 2);
    size_t id = (size_t)get(&at, 2), type = (size_t)get(&at, 2);
    at += 2;
    size_t data = (size_t)get(&at, 4);
    at += 4;
    const char *topics = at;
    for (size_t i = 0; i < kept->topic_count; i++) {
        if (end - at < 4) {
            return HK_INVALID;
        }
        size_t length = (size_t)get(&at, 4);
        if ((size_t)(end - at) < length) {
            return HK_INVALID;
        }
        at += length;
    }
    kept->topics = hk_bytes(topics, (size_t)(at - topics));
    if (kept->topic_count == 0 || (size_t)(end - at) != id + type + data) {
        return HK_INVALID;
    }
    kept->id = hk_bytes(at, id);
    kept->type = hk_bytes(at + id, type);
    kept->data = hk_bytes(at + id + type, data);
    return HK_OK;
}

/* Updates up to this position are missing. */
static hk_status_t miss(hk_keeper_t *keeper, hk_position_t upto, const uint8_t *before)
{
    const hk_keeper_options_t *options = &keeper->options;
    hk_position_t from = keeper->next;
    keeper->next = upto + 1;
    return options->lose != NULL ? options->lose(options->context, from, upto, before, keeper->key) : HK_OK;
}

static hk_status_t make_key(hk_keeper_t *keeper)
{
    if (keeper->files->random(keeper->files->context, keeper->key, sizeof(keeper->key)) != 0) {
        return HK_SYSTEM;
    }
    keeper->has_key = true;
    return HK_OK;
}

static hk_status_t replay_update(hk_keeper_t *keeper, const hk_journal_record_t *record)
{
    hk_kept_t kept;
    int64_t wall;
    hk_status_t status = read_update(record, &kept, &wall);
    if (status == HK_OK && !keeper->has_key) {
        status = make_key(keeper);
    }
    if (status == HK_OK) {
        status = reserve_end(keeper);
    }
    if (status == HK_OK && kept.position > keeper->next) {
        status = miss(keeper, kept.position - 1, keeper->key);
    }
    if (status == HK_OK) {
        note(keeper, record->segment, kept.position, wall);
        keeper->loss.has_newest = true;
        keeper->loss.newest = wall;
        status = keeper->options.restore(keeper->options.context, keeper, &kept);
    }
    return status;
}

/* With another key the position before the next is nobody's but the gap's. */
static hk_status_t replay_key(hk_keeper_t *keeper, const hk_journal_record_t *record)
{
    const char *at = record->body.at + HK_LOG_KEY_BYTES;
    hk_position_t next = get(&at, 8);
    uint8_t before[HK_LOG_KEY_BYTES];
    memcpy(before, keeper->has_key ? keeper->key : (const uint8_t *)record->body.at, sizeof(before));
    keeper->next = keeper->has_key ? keeper->next : next;
    keeper->has_key = true;
    memcpy(keeper->key, record->body.at, sizeof(keeper->key));
    return next > keeper->next ? miss(keeper, next - 1, before) : HK_OK;
}

static hk_status_t replay(void *context, const hk_journal_record_t *record)
{
    hk_keeper_t *keeper = context;
    if (record->type == KEY && record->body.length >= KEY_BYTES) {
        return replay_key(keeper, record);
    }
    return record->type == UPDATE ? replay_update(keeper, record) : HK_OK;
}

/* Where the end may be missing, what comes has other ids than what is missing. */
static hk_status_t begin_again(hk_keeper_t *keeper, const hk_journal_t *journal)
{
    const hk_keeper_options_t *options = &keeper->options;
    const hk_journal_repair_t *repair = hk_journal_repair(journal);
    if (!keeper->has_key) {
        return make_key(keeper);
    }
    if (options->has_given ? options->given < keeper->next : repair->in_order && !options->is_copy) {
        return HK_OK;
    }
    keeper->loss.happened = true;
    keeper->loss.is_known = options->has_given;
    keeper->loss.known = options->has_given ? options->given - keeper->next + 1 : 0;
    keeper->loss.room = repair->open_end;
    uint8_t before[HK_LOG_KEY_BYTES];
    memcpy(before, keeper->key, sizeof(before));
    hk_status_t status = make_key(keeper);
    return status == HK_OK ? miss(keeper, keeper->next, before) : status;
}

/* First in every segment, and twice: a damaged byte must not give updates the ids of another key. */
static hk_status_t begin(void *context, hk_journal_t *journal)
{
    hk_keeper_t *keeper = context;
    if (!keeper->begun) {
        hk_status_t status = begin_again(keeper, journal);
        if (status != HK_OK) {
            return status;
        }
        keeper->begun = true;
    }
    char body[KEY_BYTES];
    memcpy(body, keeper->key, sizeof(keeper->key));
    put(body + sizeof(keeper->key), keeper->next, 8);
    hk_bytes_t part = hk_bytes(body, sizeof(body));
    hk_journal_record_t record;
    hk_status_t status = hk_journal_append(journal, KEY, 0, &part, 1, true, &record);
    return status == HK_OK ? hk_journal_append(journal, KEY, 0, &part, 1, true, &record) : status;
}

hk_status_t hk_keeper_open(const hk_alloc_t *alloc, const hk_keeper_options_t *options, hk_keeper_t **keeper,
                           hk_journal_trouble_t *trouble)
{
    hk_keeper_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->files = options->files;
    made->options = *options;
    made->segment_bytes = options->segment_bytes > 0 ? options->segment_bytes : HK_JOURNAL_SEGMENT_USUAL;
    made->next = 1;
    made->watermark = -1;
    made->ahead = (int64_t)options->wall - options->now / 1000000;
    hk_buf_init(&made->body, alloc);
    hk_journal_options_t wanted = {.path = options->path,
                                   .files = options->files,
                                   .segment_bytes = options->segment_bytes,
                                   .wall = options->wall,
                                   .begin = begin,
                                   .replay = replay,
                                   .context = made,
                                   .reading = options->reading};
    hk_status_t status = hk_journal_open(alloc, &wanted, &made->journal, trouble);
    if (status != HK_OK) {
        hk_alloc_free(alloc, made->ends);
        hk_alloc_free(alloc, made);
        return status;
    }
    *keeper = made;
    return HK_OK;
}

static void release(hk_keeper_t *keeper)
{
    hk_buf_release(&keeper->body);
    hk_alloc_free(keeper->alloc, keeper->ends);
    hk_alloc_free(keeper->alloc, keeper);
}

hk_status_t hk_keeper_close(hk_keeper_t *keeper)
{
    if (keeper == NULL) {
        return HK_OK;
    }
    hk_status_t status = hk_journal_close(keeper->journal);
    release(keeper);
    return status;
}

void hk_keeper_drop_dead(hk_keeper_t *keeper)
{
    if (keeper != NULL) {
        hk_journal_drop_dead(keeper->journal);
        release(keeper);
    }
}

/* --- keeping ------------------------------------------------------------------------------------------------------ */

/* All but the data, which is not copied twice. */
static hk_status_t write_head(hk_keeper_t *keeper, hk_position_t position, const hk_log_update_t *update, int64_t wall)
{
    size_t size = HEAD_BYTES + update->id.length + update->type.length;
    for (size_t i = 0; i < update->topic_count; i++) {
        size += 4 + hk_topic_value(update->topics[i]).length;
    }
    hk_buf_clear(&keeper->body);
    if (hk_buf_reserve(&keeper->body, size) != HK_OK) {
        return HK_NO_MEMORY;
    }
    char *at = hk_buf_end(&keeper->body);
    at = put(at, position, 8);
    at = put(at, (uint64_t)wall, 8);
    at = put(at, update->retry_ms < 0 ? UINT64_MAX : (uint64_t)update->retry_ms, 8);
    at = put(at, update->topic_count, 2);
    at = put(at, update->id.length, 2);
    at = put(at, update->type.length, 4);
    at = put(at, update->data.length, 8);
    hk_buf_grew(&keeper->body, HEAD_BYTES);
    for (size_t i = 0; i < update->topic_count; i++) {
        hk_bytes_t topic = hk_topic_value(update->topics[i]);
        char length[4];
        put(length, topic.length, 4);
        (void)hk_buf_append(&keeper->body, hk_bytes(length, 4));
        (void)hk_buf_append(&keeper->body, topic);
    }
    (void)hk_buf_append(&keeper->body, update->id);
    (void)hk_buf_append(&keeper->body, update->type);
    return HK_OK;
}

/* A sync that somebody waits for, a segment that is begun, or the next one, which is made while half of this one is
 * left: of that it is told once. */
static bool has_work(hk_keeper_t *keeper)
{
    bool half_way = keeper->at > keeper->segment_bytes / 2;
    bool news = half_way && !keeper->half_way;
    keeper->half_way = half_way;
    return news || keeper->options.synced ||
           hk_journal_written(keeper->journal) != hk_journal_appended(keeper->journal);
}

static void tell(const hk_keeper_t *keeper)
{
    if (keeper->rouse != NULL) {
        keeper->rouse(keeper->rouse_context);
    }
}

/* Where there is room for another segment, it is a matter of time. */
static hk_status_t refuse(const hk_keeper_t *keeper, hk_status_t status)
{
    if (status == HK_TOO_LARGE && !hk_journal_full(keeper->journal)) {
        tell(keeper);
        return HK_AGAIN;
    }
    return status == HK_INVALID ? HK_TOO_LARGE : status;
}

/* Where it cannot be written the next process may take the journal for whole that a loss of power cut: not without
 * having been started in the same run of the kernel. */
static void mark(const hk_keeper_t *keeper, hk_position_t position)
{
    if (keeper->watermark >= 0) {
        const hk_files_t *files = keeper->files;
        char bytes[16];
        put(put(bytes, position, 8), keeper->watermark_is_timed ? (uint64_t)files->wall(files->context) : 0, 8);
        struct iovec part = {.iov_base = bytes, .iov_len = sizeof(bytes)};
        (void)files->write_at(files->context, keeper->watermark, &part, 1, keeper->watermark_at);
    }
}

hk_status_t hk_keeper_append(hk_keeper_t *keeper, hk_position_t position, const hk_log_update_t *update, int64_t now)
{
    if (update->id.length > UINT16_MAX || update->type.length > UINT16_MAX || update->data.length > UINT32_MAX) {
        return HK_TOO_LARGE;
    }
    int64_t wall = wall_of(keeper, now);
    hk_status_t status = write_head(keeper, position, update, wall);
    if (status == HK_OK) {
        status = reserve_end(keeper);
    }
    if (status != HK_OK) {
        return status;
    }
    hk_bytes_t parts[] = {hk_buf_bytes(&keeper->body), update->data};
    hk_journal_record_t record;
    status = hk_journal_append(keeper->journal, UPDATE, update->is_private ? PRIVATE : 0, parts, 2, false, &record);
    if (status != HK_OK) {
        return refuse(keeper, status);
    }
    note(keeper, record.segment, position, wall);
    keeper->at = record.offset + record.body.length;
    if (keeper->options.synced) {
        hk_journal_want_sync(keeper->journal, record.position);
    }
    status = hk_journal_write(keeper->journal, (uint64_t)wall);
    mark(keeper, position);
    if (has_work(keeper)) {
        tell(keeper);
    }
    return status;
}

void hk_keeper_rouse_with(hk_keeper_t *keeper, void (*rouse)(void *context), void *context)
{
    keeper->rouse = rouse;
    keeper->rouse_context = context;
}

/* --- how safe ----------------------------------------------------------------------------------------------------- */

uint64_t hk_keeper_safe_up_to(const hk_keeper_t *keeper)
{
    return keeper->options.synced ? hk_journal_synced(keeper->journal) : hk_journal_written(keeper->journal);
}

uint64_t hk_keeper_ticket(const hk_keeper_t *keeper)
{
    return hk_journal_appended(keeper->journal);
}

bool hk_keeper_safe(const hk_keeper_t *keeper, uint64_t ticket)
{
    return hk_keeper_safe_up_to(keeper) >= ticket;
}

bool hk_keeper_prompt(const hk_keeper_t *keeper, size_t bytes)
{
    return !keeper->options.synced && hk_journal_written(keeper->journal) == hk_journal_appended(keeper->journal) &&
           keeper->at > 0 && keeper->at + bytes + MARGIN < keeper->segment_bytes;
}

/* --- jobs, and looking in ----------------------------------------------------------------------------------------- */

hk_job_t *hk_keeper_job(hk_keeper_t *keeper, hk_lane_t lane)
{
    return hk_journal_job(keeper->journal, lane);
}

hk_status_t hk_keeper_done(hk_keeper_t *keeper, hk_job_t *job)
{
    hk_status_t status = hk_journal_done(keeper->journal, job);
    int64_t wall = keeper->ahead + keeper->files->monotonic(keeper->files->context) / 1000000;
    return status == HK_OK ? hk_journal_write(keeper->journal, (uint64_t)wall) : status;
}

const uint8_t *hk_keeper_key(const hk_keeper_t *keeper)
{
    return keeper->key;
}

hk_position_t hk_keeper_next(const hk_keeper_t *keeper)
{
    return keeper->next;
}

const hk_keeper_loss_t *hk_keeper_loss(const hk_keeper_t *keeper)
{
    return &keeper->loss;
}

const hk_journal_repair_t *hk_keeper_repair(const hk_keeper_t *keeper)
{
    return hk_journal_repair(keeper->journal);
}

void hk_keeper_watch(hk_keeper_t *keeper, int fd, uint64_t offset, bool is_timed)
{
    keeper->watermark = fd;
    keeper->watermark_at = offset;
    keeper->watermark_is_timed = is_timed;
}

const hk_journal_trouble_t *hk_keeper_trouble(const hk_keeper_t *keeper)
{
    return hk_journal_trouble(keeper->journal);
}

void hk_keeper_read_stats(hk_keeper_t *keeper, hk_journal_stats_t *stats)
{
    hk_journal_read_stats(keeper->journal, stats);
}
