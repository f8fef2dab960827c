#include "hk_broker_producer_private.h"
#include "hk_broker_record.h"
#include "hk_broker_store_private.h"

enum {
    PIECES_IDLE = 16,
    IDENTITIES_USUAL = 10000,
    /* Of a segment: its header, BOOT, END, the name of the queue, the fields and words of the message, DROPPED. */
    BESIDE_MESSAGE = 2560
};

static uint32_t segment_of(uint32_t bytes)
{
    return bytes == 0 ? HK_JOURNAL_SEGMENT_USUAL : bytes;
}

/* -- Opening ------------------------------------------------------------------------------------------------------- */

static void usual32(uint32_t *option, uint32_t usual)
{
    *option = *option == 0 ? usual : *option;
}

uint32_t hk_broker_identities_most(uint32_t segment_bytes)
{
    return segment_of(segment_bytes) / 2 / HK_RECORD_PRODUCER_MOST;
}

uint32_t hk_broker_message_most(uint32_t segment_bytes, uint32_t identities)
{
    return segment_of(segment_bytes) - BESIDE_MESSAGE - identities * HK_RECORD_PRODUCER_MOST;
}

static void set_usual(hk_broker_options_t *options)
{
    usual32(&options->max_frame, 1024 * 1024);
    usual32(&options->heartbeat_least, 1000);
    usual32(&options->heartbeat_most, 60 * 1000);
    usual32(&options->window_messages, 4096);
    usual32(&options->window_bytes, 8 * 1024 * 1024);
    usual32(&options->lease, 30 * 1000);
    usual32(&options->lease_most, 12 * 60 * 60 * 1000);
    usual32(&options->max_queues, 100000);
    usual32(&options->max_identities, IDENTITIES_USUAL);
    uint32_t most = options->path == NULL ? UINT32_MAX : hk_broker_identities_most(options->segment_bytes);
    options->max_identities = options->max_identities < most ? options->max_identities : most;
    usual32(&options->max_sessions, 10000);
    usual32(&options->max_subscriptions, 1024);
    usual32(&options->queue_idle, 60 * 60);
    usual32(&options->producer_idle, 7 * 24 * 60 * 60);
    options->max_failures = options->max_failures == 0 ? 20 : options->max_failures;
    options->max_crashes = options->max_crashes == 0 ? 3 : options->max_crashes;
    options->max_memory = options->max_memory == 0 ? (size_t)1024 * 1024 * 1024 : options->max_memory;
    if (options->path == NULL || options->level > HK_LEVEL_SYNCED) {
        options->level = options->path == NULL ? HK_LEVEL_MEMORY : HK_LEVEL_SYNCED;
    }
}

static hk_broker_t *make(const hk_alloc_t *alloc, const hk_broker_options_t *options, int64_t now, uint64_t wall)
{
    hk_broker_t *broker = hk_alloc_zeroed(alloc, 1, sizeof(*broker));
    hk_arena_t *arena = hk_arena_new(alloc, HK_BROKER_PIECE_BYTES, PIECES_IDLE);
    if (broker == NULL || arena == NULL) {
        hk_alloc_free(alloc, broker);
        hk_arena_free(arena);
        return NULL;
    }
    broker->alloc = alloc;
    broker->options = *options;
    set_usual(&broker->options);
    broker->arena = arena;
    hk_slab_init(&broker->messages, alloc, sizeof(hk_message_t));
    hk_slab_init(&broker->extras, alloc, sizeof(hk_extra_t));
    hk_slab_init(&broker->deliveries, alloc, sizeof(hk_delivery_t));
    hk_slab_init(&broker->acks, alloc, sizeof(hk_ack_t));
    hk_map_init(&broker->queues, alloc, options->secret);
    hk_map_init(&broker->producers, alloc, options->secret);
    hk_list_t *lists[] = {&broker->all_queues,    &broker->idle_queues,    &broker->again,
                          &broker->all_producers, &broker->idle_producers, &broker->sessions,
                          &broker->ready,         &broker->asking,         &broker->asked};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        hk_list_init(lists[i]);
    }
    hk_heap_init(&broker->due, alloc);
    hk_heap_init(&broker->expiries, alloc);
    hk_heap_init(&broker->leases, alloc);
    hk_heap_init(&broker->odd_leases, alloc);
    hk_heap_init(&broker->timers, alloc);
    hk_buf_init(&broker->freed, alloc);
    hk_buf_init(&broker->freed_in, alloc);
    hk_buf_init(&broker->scratch, alloc);
    broker->now = now;
    broker->wall = wall;
    broker->next_id = broker->next_session = 1;
    broker->disk_retry = broker->again_at = INT64_MAX;
    return broker;
}

static hk_status_t open_journal(hk_broker_t *broker, hk_journal_trouble_t *trouble)
{
    hk_journal_options_t options = {.path = broker->options.path,
                                    .files = broker->options.files,
                                    .segment_bytes = broker->options.segment_bytes,
                                    .image_bytes = hk_broker_image_most(broker),
                                    .wall = broker->wall,
                                    .begin = hk_store_begin,
                                    .replay = hk_broker_replay,
                                    .context = broker,
                                    .reading = broker->options.reading};
    hk_status_t status = hk_replay_init(broker);
    if (status == HK_OK) {
        status = hk_journal_open(broker->alloc, &options, &broker->journal, trouble);
    }
    if (status == HK_OK) {
        status = hk_replay_end(broker);
    }
    if (status != HK_OK) {
        return status;
    }
    /* Ids are given out only when it is on the disk which were given out before. */
    broker->wants_sync = true;
    status = hk_broker_commit(broker, broker->wall);
    for (hk_job_t *job; status == HK_OK && (job = hk_broker_job(broker, HK_LANE_SYNC)) != NULL;) {
        hk_job_run(job);
        status = hk_broker_done(broker, job);
    }
    if (status == HK_SYSTEM && trouble != NULL && hk_journal_trouble(broker->journal) != NULL) {
        *trouble = *hk_journal_trouble(broker->journal);
    }
    return status;
}

hk_status_t hk_broker_open(const hk_alloc_t *alloc, const hk_broker_options_t *options, int64_t now, uint64_t wall,
                           hk_broker_t **broker, hk_journal_trouble_t *trouble)
{
    hk_broker_t *made = make(alloc, options, now, wall);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    hk_status_t status = options->path == NULL ? hk_store_boot(made, false) : open_journal(made, trouble);
    if (status != HK_OK) {
        hk_broker_drop_dead(made);
        return status;
    }
    *broker = made;
    return HK_OK;
}

/* -- Closing ------------------------------------------------------------------------------------------------------- */

static void free_session(hk_session_t *session)
{
    hk_broker_t *broker = session->broker;
    hk_session_clear_output(session);
    hk_broker_forget_acks(session);
    hk_heap_remove(&broker->timers, &session->timer);
    hk_list_remove(&session->link);
    hk_list_remove(&session->ready);
    hk_list_remove(&session->asking);
    hk_buf_release(&session->in);
    hk_alloc_free(broker->alloc, session->parts);
    hk_alloc_free(broker->alloc, session->slots);
    hk_alloc_free(broker->alloc, session->rights);
    hk_alloc_free(broker->alloc, session->hello_text);
    hk_alloc_free(broker->alloc, session->address_text);
    hk_alloc_free(broker->alloc, session);
    broker->session_count--;
}

static void end_subscriptions(hk_session_t *session)
{
    for (hk_list_t *link; (link = hk_list_first(&session->subscriptions)) != NULL;) {
        hk_receiver_end(HK_OWNER(link, hk_receiver_t, link));
    }
}

static void free_acks(hk_broker_t *broker)
{
    for (int level = 0; level < 3; level++) {
        for (hk_ack_t *ack = broker->waiting[level].first; ack != NULL; ack = ack->next) {
            hk_alloc_free(broker->alloc, ack->refused);
        }
    }
}

/* Nothing comes back, nothing is written: messages that are out go with their deliveries. */
static void free_out(hk_session_t *session)
{
    hk_broker_t *broker = session->broker;
    session->phase = HK_SESSION_ENDED;
    for (uint32_t i = 0; i < session->slot_count; i++) {
        for (hk_delivery_t *delivery; (delivery = session->slots[i]) != NULL;) {
            hk_message_t *message = hk_delivery_end(broker, delivery);
            hk_message_free(broker, message);
        }
    }
    end_subscriptions(session);
}

static void visit_delayed(void *context, void *item)
{
    hk_broker_t *broker = context;
    hk_message_t *message = item;
    if (message->queue != NULL && (message->state == HK_STATE_DELAYED || broker->replaying)) {
        if (message->extra != NULL) {
            hk_message_drop_extra(broker, message);
        }
        hk_piece_release(message->piece);
        message->queue = NULL;
    }
}

void hk_broker_drop_dead(hk_broker_t *broker)
{
    const hk_alloc_t *alloc = broker->alloc;
    for (hk_list_t *link; (link = hk_list_first(&broker->sessions)) != NULL;) {
        hk_session_t *session = HK_OWNER(link, hk_session_t, link);
        free_out(session);
        free_session(session);
    }
    hk_replay_release(broker);
    hk_slab_walk(&broker->messages);
    while (hk_slab_step(&broker->messages, visit_delayed, broker)) {
    }
    for (hk_list_t *link; (link = hk_list_first(&broker->all_queues)) != NULL;) {
        if (broker->replaying) {
            hk_queue_clear(HK_OWNER(link, hk_queue_t, link));
        }
        hk_queue_free(broker, HK_OWNER(link, hk_queue_t, link));
    }
    for (hk_list_t *link; (link = hk_list_first(&broker->all_producers)) != NULL;) {
        hk_producer_free(broker, HK_OWNER(link, hk_producer_t, link));
    }
    free_acks(broker);
    hk_ledger_release(broker);
    if (broker->journal != NULL) {
        hk_journal_drop_dead(broker->journal);
    }
    hk_piece_release(broker->filling);
    hk_arena_free(broker->arena);
    hk_slab_release(&broker->messages);
    hk_slab_release(&broker->extras);
    hk_slab_release(&broker->deliveries);
    hk_slab_release(&broker->acks);
    hk_map_release(&broker->queues);
    hk_map_release(&broker->producers);
    hk_heap_release(&broker->due);
    hk_heap_release(&broker->expiries);
    hk_heap_release(&broker->leases);
    hk_heap_release(&broker->odd_leases);
    hk_heap_release(&broker->timers);
    hk_buf_release(&broker->freed);
    hk_buf_release(&broker->freed_in);
    hk_buf_release(&broker->scratch);
    hk_alloc_free(alloc, broker);
}

static void write_down(void *context, void *item)
{
    hk_broker_t *broker = context;
    hk_message_t *message = item;
    if (message->queue == NULL || message->state == HK_STATE_GONE || hk_message_recorded(message) ||
        broker->close_status != HK_OK) {
        return;
    }
    hk_piece_t *piece = message->piece;
    hk_bytes_t content = hk_bytes(piece->bytes + message->offset, message->bytes);
    hk_status_t status = hk_store_enqueue(broker, message, content, 0, NULL, false);
    if (status == HK_OK) {
        hk_piece_release(piece);
    } else if (status == HK_SYSTEM) {
        broker->close_status = status;
    }
}

hk_status_t hk_broker_close(hk_broker_t *broker, int64_t now, uint64_t wall)
{
    hk_broker_at(broker, now, wall);
    broker->closing = broker->draining = true;
    for (hk_list_t *link; (link = hk_list_first(&broker->sessions)) != NULL;) {
        hk_session_t *session = HK_OWNER(link, hk_session_t, link);
        session->drained = true;
        hk_broker_disconnect(broker, session, now, wall);
    }
    hk_status_t status = HK_OK;
    if (broker->journal != NULL) {
        if (!broker->failed) {
            hk_slab_walk(&broker->messages);
            while (hk_slab_step(&broker->messages, write_down, broker)) {
                if (hk_journal_write(broker->journal, wall) != HK_OK) {
                    broker->close_status = HK_SYSTEM;
                }
            }
            hk_list_t *idle = &broker->idle_producers;
            for (hk_list_t *link = idle->next; link != idle; link = link->next) {
                (void)hk_store_producer(broker, HK_OWNER(link, hk_producer_t, idle), HK_PRODUCER_WHOLE);
            }
            (void)hk_store_flush_freed(broker);
            (void)hk_store_boot(broker, true);
        }
        hk_journal_t *journal = broker->journal;
        broker->journal = NULL;
        hk_status_t closed = hk_journal_close(journal);
        status = closed == HK_OK && broker->close_status == HK_OK && !broker->failed ? HK_OK : HK_SYSTEM;
    }
    hk_broker_drop_dead(broker);
    return status;
}

/* -- Sessions ------------------------------------------------------------------------------------------------------ */

hk_session_t *hk_broker_connect(hk_broker_t *broker, hk_bytes_t address, void *context, int64_t now)
{
    hk_broker_at(broker, now, broker->wall);
    if (broker->session_count >= broker->options.max_sessions) {
        return NULL;
    }
    hk_session_t *session = hk_alloc_zeroed(broker->alloc, 1, sizeof(*session));
    char *text = hk_alloc_new(broker->alloc, address.length + 1);
    if (session == NULL || text == NULL) {
        hk_alloc_free(broker->alloc, session);
        hk_alloc_free(broker->alloc, text);
        return NULL;
    }
    if (address.length > 0) {
        memcpy(text, address.at, address.length);
    }
    session->broker = broker;
    session->context = context;
    session->serial = ++broker->last_serial;
    session->address_text = text;
    session->address = hk_bytes(text, address.length);
    session->until = UINT64_MAX;
    session->heard = session->said = now;
    hk_buf_init(&session->in, broker->alloc);
    hk_buf_init(&session->out, broker->alloc);
    hk_list_init(&session->acks);
    hk_list_init(&session->subscriptions);
    if (hk_heap_add(&broker->timers, &session->timer, now + HK_BROKER_HELLO_MS * HK_MS) != HK_OK) {
        hk_alloc_free(broker->alloc, text);
        hk_alloc_free(broker->alloc, session);
        return NULL;
    }
    hk_list_append(&broker->sessions, &session->link);
    broker->session_count++;
    return session;
}

void hk_session_finish(hk_session_t *session)
{
    session->phase = HK_SESSION_ENDED;
    hk_list_remove(&session->asking);
    hk_session_return_all(session);
    end_subscriptions(session);
    if (session->producer != NULL) {
        hk_producer_leave(session);
    }
}

void hk_broker_disconnect(hk_broker_t *broker, hk_session_t *session, int64_t now, uint64_t wall)
{
    hk_broker_at(broker, now, wall);
    hk_session_finish(session);
    free_session(session);
}

/* -- The disk ------------------------------------------------------------------------------------------------------ */

void hk_broker_fail(hk_broker_t *broker)
{
    if (broker->failed) {
        return;
    }
    broker->failed = true;
    const hk_journal_trouble_t *trouble = hk_journal_trouble(broker->journal);
    if (trouble != NULL) {
        broker->trouble = *trouble;
    } else {
        memcpy(broker->trouble.text, "a message cannot be read back", sizeof("a message cannot be read back"));
    }
    for (hk_list_t *link = broker->sessions.next; link != &broker->sessions; link = link->next) {
        /* What was out stays out: a message that comes back would be taken from the same disk. */
        hk_session_t *session = HK_OWNER(link, hk_session_t, link);
        if (session->phase != HK_SESSION_ENDED) {
            hk_session_complain(session, &(hk_complaint_t){.code = HK_CODE_FAILED,
                                                           .scope = HK_SCOPE_CONNECTION,
                                                           .sentence = "the storage has failed: what was not "
                                                                       "acknowledged is in doubt"});
            session->phase = HK_SESSION_ENDED;
        }
    }
}

hk_status_t hk_broker_commit(hk_broker_t *broker, uint64_t wall)
{
    broker->wall = wall;
    if (broker->journal == NULL) {
        return HK_OK;
    }
    if (broker->failed) {
        return HK_SYSTEM;
    }
    hk_status_t status = hk_store_flush_freed(broker);
    uint64_t appended = hk_journal_appended(broker->journal);
    if (status == HK_OK) {
        hk_broker_stamp(broker, appended);
        hk_ledger_drop(broker);
    }
    if (broker->wants_sync) {
        hk_journal_want_sync(broker->journal, appended);
        broker->wants_sync = false;
    }
    hk_journal_keep_image(broker->journal, hk_broker_image_most(broker));
    if (status == HK_SYSTEM || hk_journal_write(broker->journal, wall) != HK_OK) {
        hk_broker_fail(broker);
        return HK_SYSTEM;
    }
    hk_broker_acknowledge(broker, HK_LEVEL_WRITTEN, hk_journal_written(broker->journal));
    hk_broker_acknowledge(broker, HK_LEVEL_SYNCED, hk_journal_synced(broker->journal));
    return HK_OK;
}

hk_job_t *hk_broker_job(hk_broker_t *broker, hk_lane_t lane)
{
    return broker->journal == NULL ? NULL : hk_journal_job(broker->journal, lane);
}

hk_status_t hk_broker_done(hk_broker_t *broker, hk_job_t *job)
{
    if (hk_journal_done(broker->journal, job) != HK_OK) {
        hk_broker_fail(broker);
        return HK_SYSTEM;
    }
    if (broker->failed) {
        return HK_SYSTEM;
    }
    hk_broker_acknowledge(broker, HK_LEVEL_WRITTEN, hk_journal_written(broker->journal));
    hk_broker_acknowledge(broker, HK_LEVEL_SYNCED, hk_journal_synced(broker->journal));
    return HK_OK;
}

const hk_journal_trouble_t *hk_broker_trouble(const hk_broker_t *broker)
{
    return broker->failed ? &broker->trouble : NULL;
}

/* -- The end ------------------------------------------------------------------------------------------------------- */

void hk_broker_drain(hk_broker_t *broker, uint32_t retry_after_ms)
{
    if (broker->draining) {
        return;
    }
    broker->draining = true;
    broker->retry_after = retry_after_ms;
    for (hk_list_t *link = broker->sessions.next; link != &broker->sessions; link = link->next) {
        hk_session_t *session = HK_OWNER(link, hk_session_t, link);
        hk_session_review(session);
        if (session->phase != HK_SESSION_OPEN) {
            continue;
        }
        hk_session_flush(session);
        char *at = hk_session_lay(session, 24);
        if (at != NULL) {
            hk_frame_put_header(at, 24, HK_FRAME_DRAIN, 0, 0, 0);
            hk_frame_put32(at + 16, retry_after_ms);
            hk_frame_put32(at + 20, 0);
        }
    }
}

bool hk_broker_drained(const hk_broker_t *broker)
{
    for (const hk_list_t *link = broker->sessions.next; link != &broker->sessions; link = link->next) {
        const hk_session_t *session = HK_OWNER(link, hk_session_t, link);
        if (session->out_count > 0 || session->unanswered > 0) {
            return false;
        }
    }
    return true;
}

/* -- Looking in ---------------------------------------------------------------------------------------------------- */

static uint64_t oldest_ms(const hk_queue_t *queue, uint64_t wall)
{
    uint64_t oldest = UINT64_MAX;
    for (int i = -1; i < HK_BROKER_LINES; i++) {
        const hk_message_t *message = i < 0 ? queue->suspects.first : queue->lines[i].first;
        while (message != NULL && message->state == HK_STATE_GONE) {
            message = message->next;
        }
        if (message != NULL && message->sent < oldest) {
            oldest = message->sent;
        }
    }
    return oldest == UINT64_MAX || oldest > wall ? 0 : wall - oldest;
}

void hk_queue_read_stats(const hk_queue_t *queue, uint64_t wall, hk_queue_stats_t *stats)
{
    uint64_t receivers = 0;
    for (const hk_list_t *link = queue->subscriptions.next; link != &queue->subscriptions; link = link->next) {
        receivers++;
    }
    *stats = (hk_queue_stats_t){.name = hk_queue_name(queue),
                                .kind = queue->kind,
                                .ready = queue->ready,
                                .delayed = queue->delayed,
                                .out = queue->out,
                                .dead = queue->dead_count,
                                .bytes = queue->bytes,
                                .oldest_ms = oldest_ms(queue, wall),
                                .receivers = receivers,
                                .sent = queue->sent,
                                .freed = queue->freed,
                                .redelivered = queue->redelivered,
                                .failed = queue->failed,
                                .crashed = queue->crashed,
                                .expired = queue->expired};
}

void hk_broker_each_queue(hk_broker_t *broker, uint64_t wall,
                          void (*visit)(void *context, const hk_queue_stats_t *stats), void *context)
{
    for (hk_list_t *link = broker->all_queues.next; link != &broker->all_queues; link = link->next) {
        hk_queue_stats_t stats;
        hk_queue_read_stats(HK_OWNER(link, hk_queue_t, link), wall, &stats);
        visit(context, &stats);
    }
}

void hk_broker_read_stats(hk_broker_t *broker, hk_broker_stats_t *stats)
{
    hk_broker_stats_t *own = &broker->stats;
    own->sessions = broker->session_count;
    own->queues = broker->queues.count;
    own->identities = broker->remembered;
    own->memory_bytes = hk_broker_memory(broker);
    own->index_bytes = hk_broker_index(broker);
    own->ready = own->delayed = own->out = own->dead = 0;
    for (hk_list_t *link = broker->all_queues.next; link != &broker->all_queues; link = link->next) {
        const hk_queue_t *queue = HK_OWNER(link, hk_queue_t, link);
        own->ready += queue->ready;
        own->delayed += queue->delayed;
        own->out += queue->out;
        own->dead += queue->dead_count;
    }
    if (broker->journal != NULL) {
        hk_journal_read_stats(broker->journal, &own->journal);
    }
    *stats = *own;
}
