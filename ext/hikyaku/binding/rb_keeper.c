#include "rb_broker.h"

#include <unistd.h>

/* What keeps a hub's log over a restart: opening, waiting, closing. */

/* --- opening
 * -----------------------------------------------------------------------------------------------------
 */

typedef struct opening {
    rb_hk_core_t *core;
    hk_keeper_options_t options;
    const hk_kept_t *kept; /* in hand */
    const hk_keeper_t *keeper;
    hk_keeper_t *opened;
    bool keyed;
    int raised;
} opening_t;

static void take_key(rb_hk_core_t *core, void *keeper)
{
    hk_hub_rekey(core->hub, hk_keeper_key(keeper));
}

static VALUE text_of(hk_bytes_t bytes)
{
    return rb_utf8_str_new(bytes.at, (long)bytes.length);
}

/* Yields [position, topics, data, id, type, retry, private]. */
static VALUE yield_kept(VALUE argument)
{
    const hk_kept_t *kept = ((opening_t *)argument)->kept;
    VALUE topics = rb_ary_new_capa((long)kept->topic_count);
    hk_bytes_t rest = kept->topics;
    for (size_t i = 0; i < kept->topic_count; i++) {
        rb_ary_push(topics, text_of(hk_kept_topic(&rest)));
    }
    return rb_yield_values(7, ULL2NUM(kept->position), topics, text_of(kept->data), rb_hk_text_or_nil(kept->id),
                           rb_hk_text_or_nil(kept->type), kept->retry_ms < 0 ? Qnil : LL2NUM(kept->retry_ms),
                           kept->is_private ? Qtrue : Qfalse);
}

/* Ruby may raise; the journal is to be closed all the same. */
static hk_status_t restore(void *context, const hk_keeper_t *keeper, const hk_kept_t *kept)
{
    opening_t *call = context;
    if (!call->keyed) {
        call->keyed = true;
        hk_hub_rekey(call->core->hub, hk_keeper_key(keeper));
    }
    call->kept = kept;
    rb_protect(yield_kept, (VALUE)call, &call->raised);
    return call->raised == 0 ? HK_OK : HK_CLOSED;
}

static void attach(rb_hk_core_t *core, void *argument)
{
    hk_keeper_t *keeper = argument;
    take_key(core, keeper);
    hk_hub_go_on_at(core->hub, hk_keeper_next(keeper));
    hk_hub_keep(core->hub, keeper);
    core->keeper = keeper;
}

/* _open_storage(folder, segment_bytes, synced, age in ms, now, wall) { … }:
 * nil, or [name of the status, what went wrong as rb_hk_trouble]. Before
 * anybody else knows the engine. */
static VALUE engine_open_storage(VALUE self, VALUE folder, VALUE segment_bytes, VALUE synced, VALUE age, VALUE now,
                                 VALUE wall)
{
    hk_journal_trouble_t trouble = {.text = ""};
    folder = rb_str_new_frozen(StringValue(folder));
    opening_t call = {
        .core = rb_hk_core_of(self),
        .options = {.path = StringValueCStr(folder),
                    .files = hk_files_default(),
                    .segment_bytes = NUM2UINT(segment_bytes),
                    .synced = RTEST(synced),
                    .age = NUM2LL(age),
                    .now = rb_hk_ns(now, 0),
                    .wall = NUM2ULL(wall),
                    .restore = restore},
    };
    call.options.context = &call;
    hk_status_t status = hk_keeper_open(hk_alloc_default(), &call.options, &call.opened, &trouble);
    RB_GC_GUARD(folder);
    if (call.raised != 0) {
        rb_jump_tag(call.raised);
    }
    if (status != HK_OK) {
        rb_hk_check(status == HK_NO_MEMORY ? HK_NO_MEMORY : HK_OK, "storage");
        return rb_assoc_new(rb_str_new_cstr(hk_status_name(status)), rb_hk_trouble(&trouble));
    }
    rb_hk_locked(call.core, attach, call.opened);
    rb_hk_check(
        hk_keeping_start(hk_alloc_default(), hk_sys_default(), call.opened, &call.core->lock, &call.core->keeping),
        "storage");
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
    hk_hub_keep(core->hub, NULL);
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
        hk_hub_keep(core->hub, NULL);
        hk_keeping_abandon(core->keeping);
        hk_keeper_drop_dead(core->keeper);
        core->keeper = NULL;
        core->keeping = NULL;
    }
}

void rb_hk_init_keeper(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_open_storage", engine_open_storage, 6);
    rb_define_private_method(engine_class, "_ticket", engine_ticket, 0);
    rb_define_private_method(engine_class, "_storage_trouble", engine_trouble, 0);
    rb_define_private_method(engine_class, "_await", engine_await, 1);
    rb_define_private_method(engine_class, "_close_storage", engine_close_storage, 1);
}
