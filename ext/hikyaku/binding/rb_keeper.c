#include "rb_broker.h"

#include <ruby/thread.h>
#include <unistd.h>

/* What keeps a hub's log over a restart: opening, waiting, closing. */

/* --- opening
 * -----------------------------------------------------------------------------------------------------
 */

typedef struct opening {
    rb_hk_core_t *core;
    hk_keeper_options_t options;
    hk_keeper_t *opened;
    hk_journal_trouble_t trouble;
    hk_status_t status;
    bool keyed, done;
    rb_hk_reading_t reading;
} opening_t;

/* What is in hand, for which the GVL is taken: others may let go of matchers meanwhile. */
typedef struct restoring {
    opening_t *call;
    const uint8_t *before, *key;
    const hk_kept_t *kept;
    hk_position_t from, upto;
    hk_status_t status;
} restoring_t;

/* The first that is restored says with which key the ids begin. */
static void begin_with(opening_t *call, const uint8_t *key)
{
    if (!call->keyed) {
        call->keyed = true;
        hk_hub_rekey(call->core->hub, key);
    }
}

static VALUE text_of(hk_bytes_t bytes)
{
    return rb_utf8_str_new(bytes.at, (long)bytes.length);
}

/* Yields [position, topics, data, id, type, retry, private]. */
static VALUE yield_kept(VALUE argument)
{
    const hk_kept_t *kept = ((restoring_t *)argument)->kept;
    VALUE topics = rb_ary_new_capa((long)kept->topic_count);
    hk_bytes_t rest = kept->topics;
    for (size_t i = 0; i < kept->topic_count; i++) {
        rb_ary_push(topics, text_of(hk_kept_topic(&rest)));
    }
    return rb_yield_values(7, ULL2NUM(kept->position), topics, text_of(kept->data), rb_hk_text_or_nil(kept->id),
                           rb_hk_text_or_nil(kept->type), kept->retry_ms < 0 ? Qnil : LL2NUM(kept->retry_ms),
                           kept->is_private ? Qtrue : Qfalse);
}

static void *restore_with_gvl(void *argument)
{
    restoring_t *restoring = argument;
    begin_with(restoring->call, restoring->key);
    rb_protect(yield_kept, (VALUE)restoring, &restoring->call->reading.raised);
    return NULL;
}

/* Ruby may raise; the journal is to be closed all the same. */
static hk_status_t restore(void *context, const hk_keeper_t *keeper, const hk_kept_t *kept)
{
    opening_t *call = context;
    restoring_t restoring = {.call = call, .key = hk_keeper_key(keeper), .kept = kept};
    rb_thread_call_with_gvl(restore_with_gvl, &restoring);
    return call->reading.raised == 0 ? HK_OK : HK_CLOSED;
}

static void *lose_with_gvl(void *argument)
{
    restoring_t *restoring = argument;
    begin_with(restoring->call, restoring->before);
    bool same = memcmp(restoring->before, restoring->key, HK_LOG_KEY_BYTES) == 0;
    restoring->status =
        hk_hub_lose(restoring->call->core->hub, restoring->from, restoring->upto, same ? NULL : restoring->key);
    return NULL;
}

static hk_status_t lose(void *context, hk_position_t from, hk_position_t upto, const uint8_t *before,
                        const uint8_t *key)
{
    restoring_t restoring = {.call = context, .before = before, .key = key, .from = from, .upto = upto};
    rb_thread_call_with_gvl(lose_with_gvl, &restoring);
    return restoring.status;
}

static void *open_keeper(void *argument)
{
    opening_t *call = argument;
    call->status = hk_keeper_open(hk_alloc_default(), &call->options, &call->opened, &call->trouble);
    call->done = true;
    return NULL;
}

static void attach(rb_hk_core_t *core, void *argument)
{
    opening_t *call = argument;
    begin_with(call, hk_keeper_key(call->opened));
    hk_hub_go_on_at(core->hub, hk_keeper_next(call->opened));
    hk_hub_persist(core->hub, call->opened);
    core->keeper = call->opened;
}

/* _open_storage(folder, segment_bytes, synced, age in ms, now, wall, newest
 * position that was given, or nil, whether it is a copy, reading) { … }: nil, or [name
 * of the status, what went wrong as rb_hk_trouble]. Before anybody else knows the engine. */
static VALUE engine_open_storage(VALUE self, VALUE folder, VALUE segment_bytes, VALUE synced, VALUE age, VALUE now,
                                 VALUE wall, VALUE given, VALUE is_copy, VALUE reading)
{
    /* The journal looks at it again: the process may go elsewhere. */
    folder = rb_str_new_frozen(rb_file_expand_path(folder, Qnil));
    opening_t call = {
        .core = rb_hk_core_of(self),
        .options = {.path = StringValueCStr(folder),
                    .files = hk_files_default(),
                    .segment_bytes = NUM2UINT(segment_bytes),
                    .synced = RTEST(synced),
                    .age = NUM2LL(age),
                    .now = rb_hk_ns(now, 0),
                    .wall = NUM2ULL(wall),
                    .has_given = !NIL_P(given),
                    .given = NIL_P(given) ? 0 : NUM2ULL(given),
                    .is_copy = RTEST(is_copy),
                    .restore = restore,
                    .lose = lose},
        .reading = {.object = reading},
    };
    call.options.context = &call;
    call.options.reading = rb_hk_journal_reading(&call.reading);
    rb_hk_slowly(open_keeper, &call, &call.done);
    RB_GC_GUARD(folder);
    if (call.reading.raised != 0) {
        rb_jump_tag(call.reading.raised);
    }
    if (call.status != HK_OK) {
        rb_hk_check(call.status == HK_NO_MEMORY ? HK_NO_MEMORY : HK_OK, "storage");
        return rb_assoc_new(rb_str_new_cstr(hk_status_name(call.status)), rb_hk_trouble(&call.trouble));
    }
    rb_hk_locked(call.core, attach, &call);
    rb_hk_check(
        hk_keeping_start(hk_alloc_default(), hk_sys_default(), call.opened, &call.core->lock, &call.core->keeping),
        "storage");
    return Qnil;
}

/* _storage_findings: [the segment in which places did not verify, [[from, to,
 * how many are missing] …], what may be missing at the end: nil or [newest in
 * ms or nil, how many or nil, bytes of room]]. After _open_storage. */
static VALUE engine_findings(VALUE self)
{
    const hk_keeper_t *keeper = rb_hk_core_of(self)->keeper;
    const hk_journal_repair_t *repair = hk_keeper_repair(keeper);
    const hk_keeper_loss_t *loss = hk_keeper_loss(keeper);
    VALUE holes = rb_ary_new();
    for (size_t i = 0; i < repair->holes && i < HK_JOURNAL_HOLES; i++) {
        const hk_journal_hole_t *hole = &repair->first_holes[i];
        rb_ary_push(holes, rb_ary_new_from_args(3, ULL2NUM(hole->from), ULL2NUM(hole->to),
                                                ULL2NUM(hole->last + 1 - hole->first)));
    }
    VALUE tail = Qnil;
    if (loss->happened) {
        tail = rb_ary_new_from_args(3, loss->has_newest ? LL2NUM(loss->newest) : Qnil,
                                    loss->is_known ? ULL2NUM(loss->known) : Qnil, ULL2NUM(loss->room));
    }
    return rb_ary_new_from_args(3, ULL2NUM(repair->segment), holes, tail);
}

/* _storage_next: the position of the next event. */
static VALUE engine_storage_next(VALUE self)
{
    return ULL2NUM(hk_keeper_next(rb_hk_core_of(self)->keeper));
}

typedef struct watching {
    int fd;
    uint64_t offset;
    bool is_timed;
} watching_t;

static void watch(rb_hk_core_t *core, void *argument)
{
    const watching_t *call = argument;
    hk_keeper_watch(core->keeper, call->fd, call->offset, call->is_timed);
}

/* _watch(fd, offset, timed): the newest position is written there from now on, and when. */
static VALUE engine_watch(VALUE self, VALUE fd, VALUE offset, VALUE timed)
{
    watching_t call = {.fd = NUM2INT(fd), .offset = NUM2ULL(offset), .is_timed = RTEST(timed)};
    rb_hk_locked(rb_hk_core_of(self), watch, &call);
    return Qnil;
}

/* --- how safe
 * ----------------------------------------------------------------------------------------------------
 */

typedef struct looking {
    uint64_t ticket; /* 0: all is safe */
    hk_journal_trouble_t trouble;
    bool failed;
} looking_t;

static void look(rb_hk_core_t *core, void *argument)
{
    looking_t *call = argument;
    if (core->keeper != NULL) {
        uint64_t ticket = hk_keeper_ticket(core->keeper);
        const hk_journal_trouble_t *trouble = hk_keeper_trouble(core->keeper);
        call->ticket = hk_keeper_safe(core->keeper, ticket) ? 0 : ticket;
        call->failed = trouble != NULL;
        if (trouble != NULL) {
            call->trouble = *trouble;
        }
    }
}

/* _ticket: nil when all is as safe as it is to be. */
static VALUE engine_ticket(VALUE self)
{
    rb_hk_core_t *core = rb_hk_core_of(self);
    looking_t call = {.ticket = 0};
    if (core->keeper != NULL) {
        rb_hk_locked(core, look, &call);
    }
    return call.ticket == 0 ? Qnil : ULL2NUM(call.ticket);
}

/* _storage_trouble: nil, or what went wrong. */
static VALUE engine_trouble(VALUE self)
{
    looking_t call = {.failed = false};
    rb_hk_locked(rb_hk_core_of(self), look, &call);
    return call.failed ? rb_hk_trouble(&call.trouble) : Qnil;
}

/* _await(ticket): false when it never will be safe. */
static VALUE engine_await(VALUE self, VALUE ticket)
{
    rb_hk_core_t *core = rb_hk_core_of(self);
    uint64_t wanted = NUM2ULL(ticket);
    hk_status_t status = HK_AGAIN;
    while (status == HK_AGAIN && core->keeping != NULL) {
        core->awaiting++;
        status = rb_hk_await_kept(core->keeping, wanted);
        core->awaiting--;
        rb_thread_check_ints();
    }
    return status == HK_OK ? Qtrue : Qfalse;
}

/* --- the end
 * -----------------------------------------------------------------------------------------------------
 */

typedef struct ending {
    hk_keeper_t *keeper;
    hk_keeping_t *keeping;
    bool in_order;
    hk_status_t status;
} ending_t;

static void *nap(void *keeping)
{
    hk_keeping_interrupt(keeping);
    usleep(1000);
    return NULL;
}

static void *end(void *argument)
{
    ending_t *call = argument;
    hk_keeping_stop(call->keeping);
    if (call->in_order) {
        call->status = hk_keeper_close(call->keeper);
    } else {
        hk_keeper_drop_dead(call->keeper);
    }
    return NULL;
}

static void detach(rb_hk_core_t *core, void *argument)
{
    ending_t *call = argument;
    hk_hub_persist(core->hub, NULL);
    call->keeper = core->keeper;
    call->keeping = core->keeping;
    core->keeper = NULL;
    core->keeping = NULL;
}

/* _close_storage(in order): false when it has failed. */
static VALUE engine_close_storage(VALUE self, VALUE in_order)
{
    rb_hk_core_t *core = rb_hk_core_of(self);
    ending_t call = {.in_order = RTEST(in_order), .status = HK_OK};
    if (core->keeper != NULL) {
        rb_hk_locked(core, detach, &call);
        while (core->awaiting > 0) {
            rb_hk_without_gvl(nap, call.keeping);
        }
        rb_hk_without_gvl(end, &call);
    }
    return call.status == HK_OK ? Qtrue : Qfalse;
}

void rb_hk_keeper_drop(rb_hk_core_t *core)
{
    if (core->keeper != NULL) {
        hk_keeping_stop(core->keeping);
        hk_keeper_drop_dead(core->keeper);
    }
}

void rb_hk_keeper_abandon(rb_hk_core_t *core)
{
    if (core->keeper != NULL) {
        hk_hub_persist(core->hub, NULL);
        hk_keeping_abandon(core->keeping);
        hk_keeper_drop_dead(core->keeper);
        core->keeper = NULL;
        core->keeping = NULL;
    }
}

void rb_hk_init_keeper(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_open_storage", engine_open_storage, 9);
    rb_define_private_method(engine_class, "_storage_findings", engine_findings, 0);
    rb_define_private_method(engine_class, "_storage_next", engine_storage_next, 0);
    rb_define_private_method(engine_class, "_watch", engine_watch, 3);
    rb_define_private_method(engine_class, "_ticket", engine_ticket, 0);
    rb_define_private_method(engine_class, "_storage_trouble", engine_trouble, 0);
    rb_define_private_method(engine_class, "_await", engine_await, 1);
    rb_define_private_method(engine_class, "_close_storage", engine_close_storage, 1);
}
