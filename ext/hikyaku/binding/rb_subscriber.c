#include "rb_hk.h"

/* Subscribers: coming, going, and what Ruby may know of one. */

static const struct {
    hk_closing_t closing;
    const char *name;
} reasons[] = {
    {HK_CLOSING_HUNG_UP, "hung_up"},   {HK_CLOSING_OVERRUN, "overrun"},   {HK_CLOSING_EXPIRED, "expired"},
    {HK_CLOSING_LIFETIME, "lifetime"}, {HK_CLOSING_SHUTDOWN, "shutdown"}, {HK_CLOSING_DISCONNECTED, "disconnected"},
};
enum { REASONS = sizeof(reasons) / sizeof(*reasons) };

static VALUE symbol_of(hk_closing_t closing)
{
    for (size_t i = 0; i < REASONS; i++) {
        if (reasons[i].closing == closing) {
            return ID2SYM(rb_intern(reasons[i].name));
        }
    }
    return Qnil;
}

static hk_closing_t closing_of(VALUE symbol)
{
    ID id = SYM2ID(symbol);
    for (size_t i = 0; i < REASONS; i++) {
        if (rb_intern(reasons[i].name) == id) {
            return reasons[i].closing;
        }
    }
    rb_raise(rb_eArgError, "%" PRIsVALUE " is no reason to close a stream", symbol);
}

VALUE rb_hk_too_costly(hk_status_t status)
{
    return ID2SYM(rb_intern(status == HK_TOO_COSTLY ? "cost" : "cost_of_address"));
}

/* --- coming ------------------------------------------------------------------------------------------------------ */

typedef struct subscribe {
    hk_subscribe_t wanted;
    rb_hk_part_t *part;
    uint64_t serial;
    hk_buf_t answer;
    hk_status_t status;
} subscribe_t;

static void subscribe(rb_hk_core_t *core, void *argument)
{
    subscribe_t *call = argument;
    hk_subscriber_t *subscriber;
    hk_bytes_t answer;
    call->wanted.grant = call->part->grant;
    call->status = hk_hub_subscribe(core->hub, &call->wanted, &subscriber, &answer);
    if (call->status != HK_OK) {
        return;
    }
    call->status = hk_buf_append(&call->answer, answer);
    if (call->status == HK_OK) {
        call->serial = hk_subscriber_serial(subscriber);
    } else {
        hk_hub_unsubscribe(core->hub, subscriber, call->wanted.now);
    }
}

static VALUE subscribed(VALUE argument)
{
    subscribe_t *call = (subscribe_t *)argument;
    return rb_assoc_new(ULL2NUM(call->serial), rb_hk_text_or_nil(hk_buf_bytes(&call->answer)));
}

/* _subscribe(grant, last_event_id, address, expires_in, now, changeable, naming, packed, compressed): [serial, answer];
 * :total or :address where there are too many, :cost or :cost_of_address where the patterns cost too much. */
static VALUE engine_subscribe(VALUE self, VALUE grant, VALUE cursor, VALUE address, VALUE expires_in, VALUE now,
                              VALUE changeable, VALUE naming, VALUE packed, VALUE compressed)
{
    subscribe_t call = {
        .wanted = {.has_cursor = !NIL_P(cursor),
                   .cursor = rb_hk_bytes(&cursor),
                   .address = rb_hk_bytes(&address),
                   .expires_in = rb_hk_ns(expires_in, HK_NEVER),
                   .now = rb_hk_ns(now, 0),
                   .changeable = RTEST(changeable),
                   .naming = RTEST(naming),
                   .form = RTEST(packed) ? HK_STREAM_MESSAGE_PACK : HK_STREAM_EVENTS,
                   .coding = RTEST(compressed) ? HK_STREAM_GZIP : HK_STREAM_IDENTITY},
        .part = rb_hk_grant_part(grant),
    };
    hk_buf_init(&call.answer, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), subscribe, &call);
    RB_GC_GUARD(cursor);
    RB_GC_GUARD(address);
    RB_GC_GUARD(grant);
    if (call.status == HK_TOO_MANY) {
        return ID2SYM(rb_intern("total"));
    }
    if (call.status == HK_TOO_MANY_OF_ADDRESS) {
        return ID2SYM(rb_intern("address"));
    }
    if (call.status == HK_TOO_COSTLY || call.status == HK_TOO_COSTLY_OF_ADDRESS) {
        return rb_hk_too_costly(call.status);
    }
    rb_hk_check(call.status, "subscribe");
    return rb_hk_releasing(&call.answer, subscribed, (VALUE)&call);
}

typedef struct resolve {
    rb_hk_part_t *part;
    hk_bytes_t cursor;
    hk_buf_t answer;
    hk_position_t position;
    hk_status_t status;
} resolve_t;

static void resolve(rb_hk_core_t *core, void *argument)
{
    resolve_t *call = argument;
    const hk_log_t *log = hk_hub_log(core->hub);
    hk_bytes_t answer;
    hk_hub_resolve(core->hub, call->part->grant, call->cursor, &answer);
    if (call->cursor.length == 0) {
        call->position = hk_log_head(log);
    } else if (!hk_bytes_equal(answer, call->cursor) || hk_log_find(log, answer, &call->position) != HK_OK) {
        call->position = hk_log_first(log) - 1;
    }
    call->status = hk_buf_append(&call->answer, answer);
}

static VALUE resolved(VALUE argument)
{
    resolve_t *call = (resolve_t *)argument;
    return rb_assoc_new(ULL2NUM(call->position), rb_hk_text_or_nil(hk_buf_bytes(&call->answer)));
}

/* _resolve(cursor, grant): [position, answer] */
static VALUE engine_resolve(VALUE self, VALUE cursor, VALUE grant)
{
    resolve_t call = {.part = rb_hk_grant_part(grant), .cursor = rb_hk_bytes(&cursor)};
    hk_buf_init(&call.answer, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), resolve, &call);
    RB_GC_GUARD(cursor);
    RB_GC_GUARD(grant);
    rb_hk_check(call.status, "resolve");
    return rb_hk_releasing(&call.answer, resolved, (VALUE)&call);
}

typedef struct cursor {
    rb_hk_part_t *part;
    hk_buf_t id;
    hk_status_t status;
} cursor_t;

static void read_cursor(rb_hk_core_t *core, void *argument)
{
    cursor_t *call = argument;
    call->status = hk_buf_append(&call->id, hk_hub_cursor(core->hub, call->part->grant));
}

static VALUE cursor_string(VALUE argument)
{
    return rb_hk_text_or_nil(hk_buf_bytes((hk_buf_t *)argument));
}

/* _cursor(grant): a String */
static VALUE engine_cursor(VALUE self, VALUE grant)
{
    cursor_t call = {.part = rb_hk_grant_part(grant)};
    hk_buf_init(&call.id, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), read_cursor, &call);
    RB_GC_GUARD(grant);
    rb_hk_check(call.status, "cursor");
    return rb_hk_releasing(&call.id, cursor_string, (VALUE)&call.id);
}

/* --- what is known of one ---------------------------------------------------------------------------------------- */

typedef struct state {
    uint64_t serial;
    int64_t now;
    bool leaves;
    bool found, blocked, within_event;
    hk_position_t cursor;
    hk_closing_t closing;
    char id[HK_SUBSCRIBER_ID_BYTES];
    uint64_t tag;
    hk_buf_t text; /* what is on its way to it alone, then its address */
    size_t control_length;
    hk_status_t status;
} state_t;

static void read_state(rb_hk_core_t *core, void *argument)
{
    state_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    call->found = subscriber != NULL;
    if (!call->found) {
        return;
    }
    call->blocked = hk_subscriber_blocked(subscriber);
    call->within_event = hk_subscriber_within_event(subscriber);
    call->cursor = hk_subscriber_cursor(subscriber);
    call->closing = hk_subscriber_closing(subscriber);
    hk_subscriber_id(core->hub, subscriber, call->id);
    call->tag = hk_subscriber_grant(subscriber)->tag;
    if (call->leaves) {
        hk_hub_unsubscribe(core->hub, subscriber, call->now);
        return;
    }
    call->status = hk_buf_append(&call->text, hk_subscriber_control(subscriber));
    call->control_length = call->text.length;
    if (call->status == HK_OK) {
        call->status = hk_buf_append(&call->text, hk_subscriber_address(subscriber));
    }
}

static VALUE state_array(VALUE argument)
{
    state_t *call = (state_t *)argument;
    hk_bytes_t text = hk_buf_bytes(&call->text);
    VALUE id = rb_str_freeze(rb_utf8_str_new(call->id, HK_SUBSCRIBER_ID_BYTES));
    VALUE control = Qnil, address = Qnil;
    if (call->control_length > 0) {
        control = rb_hk_string(hk_bytes(text.at, call->control_length));
    }
    if (text.length > call->control_length) {
        address = rb_hk_text_or_nil(hk_bytes(text.at + call->control_length, text.length - call->control_length));
    }
    return rb_ary_new_from_args(8, id, symbol_of(call->closing), ULL2NUM(call->cursor), call->blocked ? Qtrue : Qfalse,
                                call->within_event ? Qtrue : Qfalse, control, ULL2NUM(call->tag), address);
}

static VALUE state_of(VALUE self, state_t *call)
{
    hk_buf_init(&call->text, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), read_state, call);
    if (call->status != HK_OK) {
        hk_buf_release(&call->text);
        rb_hk_check(call->status, "subscriber");
    }
    return call->found ? rb_hk_releasing(&call->text, state_array, (VALUE)call) : Qnil;
}

/* _state(serial): [id, closing, cursor, blocked, within_event, control, tag of the grant, address]; nil: it is gone. */
static VALUE engine_state(VALUE self, VALUE serial)
{
    state_t call = {.serial = NUM2ULL(serial)};
    return state_of(self, &call);
}

/* _unsubscribe(serial, now): its last state, without control and address; nil: it was gone. */
static VALUE engine_unsubscribe(VALUE self, VALUE serial, VALUE now)
{
    state_t call = {.serial = NUM2ULL(serial), .now = rb_hk_ns(now, 0), .leaves = true};
    return state_of(self, &call);
}

/* --- what is done to one ----------------------------------------------------------------------------------------- */

typedef struct tell {
    uint64_t serial;
    hk_bytes_t bytes;
    hk_closing_t closing;
    hk_status_t status;
} tell_t;

static void tell(rb_hk_core_t *core, void *argument)
{
    tell_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    if (subscriber != NULL) {
        call->status = hk_hub_control(core->hub, subscriber, call->bytes);
    }
}

/* _control(serial, bytes) */
static VALUE engine_control(VALUE self, VALUE serial, VALUE bytes)
{
    tell_t call = {.serial = NUM2ULL(serial), .bytes = rb_hk_bytes(&bytes)};
    rb_hk_locked(rb_hk_core_of(self), tell, &call);
    RB_GC_GUARD(bytes);
    rb_hk_check(call.status, "control");
    return Qnil;
}

typedef struct farewell {
    uint64_t serial;
    hk_bytes_t last;
    bool found;
    hk_buf_t bytes;
    hk_status_t status;
} farewell_t;

static void bid_farewell(rb_hk_core_t *core, void *argument)
{
    farewell_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    call->found = subscriber != NULL;
    if (call->found) {
        call->status = hk_hub_farewell(core->hub, subscriber, call->last, &call->bytes);
    }
}

/* _farewell(serial, last): a String; nil: it is gone. */
static VALUE engine_farewell(VALUE self, VALUE serial, VALUE last)
{
    farewell_t call = {.serial = NUM2ULL(serial), .last = rb_hk_bytes(&last)};
    hk_buf_init(&call.bytes, hk_alloc_default());
    rb_hk_locked(rb_hk_core_of(self), bid_farewell, &call);
    RB_GC_GUARD(last);
    if (call.status != HK_OK) {
        hk_buf_release(&call.bytes);
        rb_hk_check(call.status, "farewell");
    }
    return call.found ? rb_hk_string_of(&call.bytes) : Qnil;
}

/* _compresses: whether there is zlib. */
static VALUE engine_compresses(VALUE self)
{
    (void)self;
    return hk_gzip_available() ? Qtrue : Qfalse;
}

static void close_one(rb_hk_core_t *core, void *argument)
{
    tell_t *call = argument;
    hk_subscriber_t *subscriber = hk_hub_find(core->hub, call->serial);
    if (subscriber != NULL) {
        hk_hub_close(core->hub, subscriber, call->closing);
    }
}

/* _close(serial, reason) */
static VALUE engine_close(VALUE self, VALUE serial, VALUE reason)
{
    Check_Type(reason, T_SYMBOL);
    tell_t call = {.serial = NUM2ULL(serial), .closing = closing_of(reason)};
    rb_hk_locked(rb_hk_core_of(self), close_one, &call);
    return Qnil;
}

typedef struct disconnect {
    hk_bytes_t subject;
    size_t count;
} disconnect_t;

static void disconnect(rb_hk_core_t *core, void *argument)
{
    disconnect_t *call = argument;
    call->count = hk_hub_disconnect(core->hub, call->subject);
}

/* _disconnect(subject): how many are closed. */
static VALUE engine_disconnect(VALUE self, VALUE subject)
{
    disconnect_t call = {.subject = rb_hk_bytes(&subject)};
    rb_hk_locked(rb_hk_core_of(self), disconnect, &call);
    RB_GC_GUARD(subject);
    return SIZET2NUM(call.count);
}

typedef struct expel {
    const uint64_t *tags;
    size_t tag_count, count;
} expel_t;

static void expel(rb_hk_core_t *core, void *argument)
{
    expel_t *call = argument;
    call->count = hk_hub_expel(core->hub, call->tags, call->tag_count);
}

/* _expel(tags): how many are closed. */
static VALUE engine_expel(VALUE self, VALUE tags)
{
    Check_Type(tags, T_ARRAY);
    VALUE room;
    expel_t call = {.tag_count = (size_t)RARRAY_LEN(tags)};
    uint64_t *numbers = rb_alloc_tmp_buffer2(&room, RARRAY_LEN(tags) + 1, sizeof(*numbers));
    for (size_t i = 0; i < call.tag_count; i++) {
        numbers[i] = NUM2ULL(rb_ary_entry(tags, (long)i));
    }
    call.tags = numbers;
    rb_hk_locked(rb_hk_core_of(self), expel, &call);
    ALLOCV_END(room);
    return SIZET2NUM(call.count);
}

static void end_hub(rb_hk_core_t *core, void *argument)
{
    (void)argument;
    hk_hub_shutdown(core->hub);
}

/* _shutdown */
static VALUE engine_shutdown(VALUE self)
{
    rb_hk_locked(rb_hk_core_of(self), end_hub, NULL);
    return Qnil;
}

void rb_hk_init_subscriber(VALUE engine_class)
{
    rb_define_private_method(engine_class, "_subscribe", engine_subscribe, 9);
    rb_define_private_method(engine_class, "_farewell", engine_farewell, 2);
    rb_define_private_method(engine_class, "_compresses", engine_compresses, 0);
    rb_define_private_method(engine_class, "_resolve", engine_resolve, 2);
    rb_define_private_method(engine_class, "_cursor", engine_cursor, 1);
    rb_define_private_method(engine_class, "_state", engine_state, 1);
    rb_define_private_method(engine_class, "_unsubscribe", engine_unsubscribe, 2);
    rb_define_private_method(engine_class, "_control", engine_control, 2);
    rb_define_private_method(engine_class, "_close", engine_close, 2);
    rb_define_private_method(engine_class, "_disconnect", engine_disconnect, 1);
    rb_define_private_method(engine_class, "_expel", engine_expel, 1);
    rb_define_private_method(engine_class, "_shutdown", engine_shutdown, 0);
}
