#include "rb_hk.h"

/* Matchers and grants as the engine has them: made from what Ruby has compiled, held by Ruby objects. */

void rb_hk_part_free(rb_hk_part_t *part)
{
    hk_matcher_release(part->matcher);
    hk_grant_release(part->grant);
    hk_alloc_free(hk_alloc_default(), part);
}

/* About what Ruby keeps of what was compiled: the object and its part with what the allocator needs, and a place in a
 * table; and of a grant the Grant with its arrays. */
enum { COMPILED_BYTES = 200, GRANT_BYTES = 700 };

/* References are counted under the hub's lock, for which the garbage collector does not wait. */
static void compiled_free(void *data)
{
    rb_hk_part_t *part = data;
    if (part != NULL) {
        rb_hk_core_t *core = part->core;
        part->next = core->unused;
        core->unused = part;
        rb_hk_core_drop(core);
    }
}

static size_t compiled_size(const void *data)
{
    const rb_hk_part_t *part = data;
    size_t bytes = sizeof(*part);
    if (part->grant != NULL) {
        bytes += part->grant->bytes;
    }
    if (part->matcher != NULL) {
        bytes += part->matcher->bytes;
    }
    return bytes;
}

static const rb_data_type_t compiled_type = {
    .wrap_struct_name = "Hikyaku::Hub::NativeEngine::Compiled",
    .function = {.dmark = NULL, .dfree = compiled_free, .dsize = compiled_size},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY | RUBY_TYPED_WB_PROTECTED,
};

static VALUE compiled_class;

rb_hk_part_t *rb_hk_part_of(VALUE compiled)
{
    return rb_check_typeddata(compiled, &compiled_type);
}

rb_hk_part_t *rb_hk_grant_part(VALUE compiled)
{
    rb_hk_part_t *part = rb_hk_part_of(compiled);
    if (part->grant == NULL) {
        rb_hk_fail(rb_eTypeError, "this is no compiled grant");
    }
    return part;
}

static VALUE compiled_new(rb_hk_core_t *core, rb_hk_part_t **part)
{
    VALUE compiled = TypedData_Wrap_Struct(compiled_class, &compiled_type, NULL);
    *part = hk_alloc_zeroed(hk_alloc_default(), 1, sizeof(**part));
    rb_hk_check(*part != NULL ? HK_OK : HK_NO_MEMORY, "compile");
    (*part)->core = rb_hk_core_hold(core);
    DATA_PTR(compiled) = *part;
    return compiled;
}

static hk_matcher_t *matcher_of(VALUE compiled)
{
    hk_matcher_t *matcher = rb_hk_part_of(compiled)->matcher;
    if (matcher == NULL) {
        rb_hk_fail(rb_eTypeError, "this is no compiled matcher");
    }
    return matcher;
}

static hk_matcher_kind_t kind_of(VALUE symbol)
{
    ID id = SYM2ID(symbol);
    if (id == rb_intern("all")) {
        return HK_MATCHER_ALL;
    }
    if (id == rb_intern("exact")) {
        return HK_MATCHER_EXACT;
    }
    return id == rb_intern("url") ? HK_MATCHER_URL : HK_MATCHER_TEXT;
}

/* _matcher(type, pattern, kind, program, origin, prefix, cost, held, close_on_gap): see hk_matcher_options_t. */
static VALUE engine_matcher(VALUE self, VALUE type, VALUE pattern, VALUE kind, VALUE program, VALUE origin,
                            VALUE prefix, VALUE cost, VALUE held, VALUE close_on_gap)
{
    rb_hk_part_t *part;
    VALUE compiled = compiled_new(rb_hk_core_of(self), &part);
    hk_matcher_options_t options = {
        .type = rb_hk_bytes(&type),
        .pattern = rb_hk_bytes(&pattern),
        .kind = kind_of(kind),
        .program = rb_hk_bytes(&program),
        .has_origin = !NIL_P(origin),
        .origin = rb_hk_bytes(&origin),
        .prefix = rb_hk_bytes(&prefix),
        .cost = NUM2UINT(cost),
        .held = (uint32_t)(NUM2UINT(held) + COMPILED_BYTES),
        .close_on_gap = RTEST(close_on_gap),
    };
    rb_hk_check(hk_matcher_new(hk_alloc_default(), &options, &part->matcher), "matcher");
    RB_GC_GUARD(type);
    RB_GC_GUARD(pattern);
    RB_GC_GUARD(program);
    RB_GC_GUARD(origin);
    RB_GC_GUARD(prefix);
    return compiled;
}

enum { ANNOUNCEMENT_STRINGS = 7 }; /* as hk_announcement_t */

static void read_subscription(VALUE pair, hk_grant_subscription_t *subscription, VALUE kept[ANNOUNCEMENT_STRINGS])
{
    VALUE announcement = rb_ary_entry(pair, 1);
    *subscription = (hk_grant_subscription_t){.matcher = matcher_of(rb_ary_entry(pair, 0))};
    if (NIL_P(announcement)) {
        return;
    }
    Check_Type(announcement, T_ARRAY);
    hk_announcement_t *parts = &subscription->announcement;
    hk_bytes_t *places[ANNOUNCEMENT_STRINGS] = {&parts->topic_head, &parts->path_head, &parts->parts[0],
                                                &parts->parts[1],   &parts->parts[2],  &parts->parts[3],
                                                &parts->type};
    for (long i = 0; i < ANNOUNCEMENT_STRINGS; i++) {
        kept[i] = rb_ary_entry(announcement, i);
        *places[i] = rb_hk_bytes(&kept[i]);
    }
    subscription->announced = true;
}

static size_t read_matchers(VALUE array, hk_matcher_t **matchers)
{
    long count = RARRAY_LEN(array);
    for (long i = 0; i < count; i++) {
        matchers[i] = matcher_of(rb_ary_entry(array, i));
    }
    return (size_t)count;
}

typedef struct make_grant {
    const hk_grant_options_t *options;
    hk_grant_t *grant;
    hk_status_t status;
} make_grant_t;

static void make_grant(rb_hk_core_t *core, void *argument)
{
    make_grant_t *call = argument;
    hk_grant_t *grant;
    call->status = hk_grant_new(hk_alloc_default(), call->options, &grant);
    if (call->status != HK_OK) {
        return;
    }
    call->status = hk_hub_reserve(core->hub, grant);
    if (call->status == HK_OK) {
        call->grant = grant;
    } else {
        hk_grant_release(grant);
    }
}

/* _grant(tag, [[matcher, announcement or nil], …], reads, publishes, subject, expires_at) */
static VALUE engine_grant(VALUE self, VALUE tag, VALUE subscriptions, VALUE reads, VALUE publishes, VALUE subject,
                          VALUE expires_at)
{
    Check_Type(subscriptions, T_ARRAY);
    Check_Type(reads, T_ARRAY);
    Check_Type(publishes, T_ARRAY);
    rb_hk_core_t *core = rb_hk_core_of(self);
    rb_hk_part_t *part;
    VALUE compiled = compiled_new(core, &part);
    size_t count = (size_t)RARRAY_LEN(subscriptions);
    VALUE kept_memory, listed_memory, matchers_memory;
    VALUE *kept = RB_HK_TEMPORARY(VALUE, kept_memory, count * ANNOUNCEMENT_STRINGS + 1);
    hk_grant_subscription_t *listed = RB_HK_TEMPORARY(hk_grant_subscription_t, listed_memory, count + 1);
    hk_matcher_t **matchers =
        RB_HK_TEMPORARY(hk_matcher_t *, matchers_memory, RARRAY_LEN(reads) + RARRAY_LEN(publishes) + 1);
    for (size_t i = 0; i < count * ANNOUNCEMENT_STRINGS; i++) {
        kept[i] = Qnil;
    }
    for (size_t i = 0; i < count; i++) {
        read_subscription(rb_ary_entry(subscriptions, (long)i), &listed[i], kept + i * ANNOUNCEMENT_STRINGS);
    }
    size_t read_count = read_matchers(reads, matchers);
    hk_grant_options_t options = {
        .subscriptions = listed,
        .subscription_count = count,
        .reads = matchers,
        .read_count = read_count,
        .publishes = matchers + read_count,
        .publish_count = read_matchers(publishes, matchers + read_count),
        .subject = rb_hk_bytes(&subject),
        .expires_at = rb_hk_ns(expires_at, HK_NEVER),
        .tag = NUM2ULL(tag),
        .held = GRANT_BYTES + COMPILED_BYTES,
    };
    make_grant_t call = {.options = &options};
    rb_hk_locked(core, make_grant, &call);
    rb_hk_check(call.status, "grant");
    part->grant = call.grant;
    ALLOCV_END(kept_memory);
    ALLOCV_END(listed_memory);
    ALLOCV_END(matchers_memory);
    RB_GC_GUARD(subscriptions);
    RB_GC_GUARD(reads);
    RB_GC_GUARD(publishes);
    RB_GC_GUARD(subject);
    return compiled;
}

typedef struct let_go {
    rb_hk_part_t *const *parts;
    size_t count;
    bool *held;
} let_go_t;

static bool is_held(const rb_hk_part_t *part)
{
    if (part->grant != NULL) {
        return part->grant->references > 1;
    }
    return part->matcher != NULL && part->matcher->references > 1;
}

static void let_go(rb_hk_core_t *core, void *argument)
{
    (void)core;
    let_go_t *call = argument;
    for (size_t i = 0; i < call->count; i++) {
        rb_hk_part_t *part = call->parts[i];
        call->held[i] = is_held(part);
        if (!call->held[i]) {
            hk_matcher_release(part->matcher);
            hk_grant_release(part->grant);
            part->matcher = NULL;
            part->grant = NULL;
        }
    }
}

/* _let_go([compiled, …]): which of them somebody beside the Ruby object holds, in an Array of booleans; the others are
 * freed, and their objects of no use any more. */
static VALUE engine_let_go(VALUE self, VALUE array)
{
    Check_Type(array, T_ARRAY);
    size_t count = (size_t)RARRAY_LEN(array);
    VALUE parts_memory, held_memory;
    rb_hk_part_t **parts = RB_HK_TEMPORARY(rb_hk_part_t *, parts_memory, count + 1);
    bool *held = RB_HK_TEMPORARY(bool, held_memory, count + 1);
    for (size_t i = 0; i < count; i++) {
        parts[i] = rb_hk_part_of(rb_ary_entry(array, (long)i));
    }
    let_go_t call = {.parts = parts, .count = count, .held = held};
    rb_hk_locked(rb_hk_core_of(self), let_go, &call);
    VALUE answers = rb_ary_new_capa((long)count);
    for (size_t i = 0; i < count; i++) {
        rb_ary_push(answers, held[i] ? Qtrue : Qfalse);
    }
    ALLOCV_END(parts_memory);
    ALLOCV_END(held_memory);
    RB_GC_GUARD(array);
    return answers;
}

void rb_hk_init_compiled(VALUE engine_class)
{
    compiled_class = rb_define_class_under(engine_class, "Compiled", rb_cObject);
    rb_gc_register_mark_object(compiled_class);
    rb_undef_alloc_func(compiled_class);
    rb_define_private_method(engine_class, "_matcher", engine_matcher, 9);
    rb_define_private_method(engine_class, "_grant", engine_grant, 6);
    rb_define_private_method(engine_class, "_let_go", engine_let_go, 1);
}
