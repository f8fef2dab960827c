#include "rb_hk.h"

static ID id_value, id_url, id_reserved, id_components, id_origin;

typedef struct topic {
    hk_bytes_t value;
    bool known; /* `url`, `is_url` and `reserved` are Ruby's word on it */
    bool is_url, reserved;
    hk_url_t url;
    hk_topic_t *found;
} topic_t;

/* So often patterns may come while topics are looked at. */
enum { TRIES = 3 };

typedef struct publish {
    rb_hk_core_t *core;
    hk_log_update_t update;
    int64_t now;
    topic_t *topics;
    hk_topic_t **found;
    size_t count;
    hk_position_t position; /* HK_POSITION_NONE; else it is published again, there */
    size_t unknown;         /* how many topics Ruby must be asked about; nothing was
                     published then */
    char id[HK_EVENT_ID_BYTES];
    hk_status_t status;
    bool hurries; /* it is published however long that takes */
    bool waits;   /* the topics are to be looked at before; nothing was published then */
    hk_topic_t *looked_at;
    hk_index_survey_t survey;
} publish_t;

static hk_status_t find(hk_topics_t *table, const topic_t *topic, hk_topic_t **found)
{
    hk_status_t status = hk_topics_find(table, topic->value, found);
    if (status != HK_UNKNOWN || !topic->known) {
        return status;
    }
    return hk_topics_add(table, topic->value, topic->is_url ? &topic->url : NULL, topic->reserved, found);
}

static void publish_known(rb_hk_core_t *core, publish_t *call)
{
    if (call->position != HK_POSITION_NONE) {
        call->status = hk_hub_restore(core->hub, call->position, &call->update);
        return;
    }
    hk_bytes_t id;
    call->status = hk_hub_publish(core->hub, &call->update, call->now, &id);
    if (call->status == HK_OK && call->update.id.length == 0) {
        memcpy(call->id, id.at, HK_EVENT_ID_BYTES);
    }
}

static void publish(rb_hk_core_t *core, void *argument)
{
    publish_t *call = argument;
    size_t kept = 0;
    call->unknown = 0;
    call->status = HK_OK;
    for (size_t i = 0; i < call->count && call->status == HK_OK; i++) {
        hk_topic_t *topic = NULL;
        hk_status_t status = find(hk_hub_topics(core->hub), &call->topics[i], &topic);
        call->topics[i].found = topic;
        if (status == HK_OK) {
            call->found[kept++] = hk_topic_retain(topic);
        } else if (status == HK_UNKNOWN) {
            call->unknown++;
        } else {
            call->status = status;
        }
    }
    if (call->status != HK_OK) {
        call->unknown = 0;
    } else if (call->unknown == 0 && !call->hurries && call->position == HK_POSITION_NONE &&
               hk_hub_takes_long(core->hub, call->found, call->count)) {
        call->waits = true;
        return;
    } else if (call->unknown == 0) {
        publish_known(core, call);
    }
    while (kept > 0) {
        hk_topic_release(call->found[--kept]);
    }
}

/* What Ruby knows of a topic that the engine cannot tell by itself. */
static void learn(VALUE ruby_topic, topic_t *topic, VALUE kept[HK_URL_PARTS + 1])
{
    VALUE url = rb_funcallv(ruby_topic, id_url, 0, NULL);
    topic->reserved = RTEST(rb_funcallv(ruby_topic, id_reserved, 0, NULL));
    topic->is_url = !NIL_P(url);
    if (topic->is_url) {
        VALUE parts = rb_ary_dup(rb_funcallv(url, id_components, 0, NULL));
        rb_ary_push(parts, rb_funcallv(url, id_origin, 0, NULL));
        topic->url = rb_hk_url(parts, kept);
    }
    topic->known = true;
}

static void learn_unknown(VALUE ruby_topics, publish_t *call, VALUE *kept)
{
    for (size_t i = 0; i < call->count; i++) {
        if (call->topics[i].found == NULL && !call->topics[i].known) {
            learn(rb_ary_entry(ruby_topics, (long)i), &call->topics[i], kept + i * (HK_URL_PARTS + 1));
        }
    }
}

static void look_at(rb_hk_core_t *core, void *argument)
{
    publish_t *call = argument;
    call->status = hk_hub_look_at(core->hub, call->looked_at, &call->survey);
}

static void forget_found(rb_hk_core_t *core, void *argument)
{
    (void)core;
    publish_t *call = argument;
    for (size_t i = 0; i < call->count; i++) {
        hk_topic_release(call->found[i]);
    }
    hk_hub_stop_looking(&call->survey);
    call->waits = false;
}

static VALUE look_at_all(VALUE argument)
{
    publish_t *call = (publish_t *)argument;
    for (size_t i = 0; i < call->count; i++) {
        call->looked_at = call->found[i];
        do {
            rb_hk_locked(call->core, look_at, call);
        } while (call->status == HK_AGAIN);
    }
    return Qnil;
}

static VALUE forget_all(VALUE argument)
{
    publish_t *call = (publish_t *)argument;
    rb_hk_locked(call->core, forget_found, call);
    return Qnil;
}

/* Publishes, or says what is to be asked before. What would keep others from the hub for long is found out in pieces;
 * patterns may come meanwhile, but not for ever. */
static void publish_in_time(rb_hk_core_t *core, publish_t *call)
{
    call->core = core;
    for (unsigned tries = 0; tries <= TRIES; tries++) {
        call->hurries = tries == TRIES;
        rb_hk_locked(core, publish, call);
        if (!call->waits) {
            return;
        }
        rb_ensure(look_at_all, (VALUE)call, forget_all, (VALUE)call);
    }
}

/* _publish(data, topics, id, type, retry_after, private, now, position): the event id; nil: not now; false: it could not
 * be kept. position: nil, or where what was kept is published again. */
static VALUE engine_publish(VALUE self, VALUE data, VALUE ruby_topics, VALUE id, VALUE type, VALUE retry_after,
                            VALUE private, VALUE now, VALUE position)
{
    Check_Type(ruby_topics, T_ARRAY);
    rb_hk_core_t *core = rb_hk_core_of(self);
    size_t count = (size_t)RARRAY_LEN(ruby_topics);
    VALUE values_memory, topics_memory, found_memory, kept_memory = 0;
    VALUE *values = RB_HK_TEMPORARY(VALUE, values_memory, count + 1);
    topic_t *topics = RB_HK_TEMPORARY(topic_t, topics_memory, count + 1);
    hk_topic_t **found = RB_HK_TEMPORARY(hk_topic_t *, found_memory, count + 1);
    for (size_t i = 0; i < count; i++) {
        values[i] = rb_funcallv(rb_ary_entry(ruby_topics, (long)i), id_value, 0, NULL);
        topics[i] = (topic_t){.value = rb_hk_bytes(&values[i])};
    }
    publish_t call = {
        .update = {.topics = found,
                   .topic_count = count,
                   .data = rb_hk_bytes(&data),
                   .id = rb_hk_bytes(&id),
                   .type = rb_hk_bytes(&type),
                   .retry_ms = NIL_P(retry_after) ? -1 : NUM2LL(retry_after),
                   .is_private = RTEST(private)},
        .now = rb_hk_ns(now, 0),
        .topics = topics,
        .found = found,
        .count = count,
        .position = NIL_P(position) ? HK_POSITION_NONE : NUM2ULL(position),
    };
    publish_in_time(core, &call);
    if (call.unknown > 0) {
        VALUE *kept = RB_HK_TEMPORARY(VALUE, kept_memory, count * (HK_URL_PARTS + 1));
        for (size_t i = 0; i < count * (HK_URL_PARTS + 1); i++) {
            kept[i] = Qnil;
        }
        while (call.unknown > 0) {
            learn_unknown(ruby_topics, &call, kept);
            publish_in_time(core, &call);
        }
        ALLOCV_END(kept_memory);
    }
    ALLOCV_END(values_memory);
    ALLOCV_END(topics_memory);
    ALLOCV_END(found_memory);
    RB_GC_GUARD(data);
    RB_GC_GUARD(type);
    if (core->keeper != NULL && (call.status == HK_SYSTEM || call.status == HK_TOO_LARGE)) {
        return Qfalse;
    }
    if (core->keeper != NULL && call.status == HK_AGAIN) {
        return Qnil;
    }
    rb_hk_check(call.status, "publish");
    return NIL_P(id) || RSTRING_LEN(id) == 0 ? rb_str_freeze(rb_utf8_str_new(call.id, HK_EVENT_ID_BYTES)) : id;
}

typedef struct notify {
    hk_bytes_t topic, frame;
    size_t count;
    hk_status_t status;
} notify_t;

static void notify(rb_hk_core_t *core, void *argument)
{
    notify_t *call = argument;
    call->status = hk_hub_notify(core->hub, call->topic, call->frame, &call->count);
}

/* _notify(topic, frame): how many subscribers of exactly this topic there are.
 */
static VALUE engine_notify(VALUE self, VALUE topic, VALUE frame)
{
    notify_t call = {.topic = rb_hk_bytes(&topic), .frame = rb_hk_bytes(&frame)};
    rb_hk_locked(rb_hk_core_of(self), notify, &call);
    RB_GC_GUARD(topic);
    RB_GC_GUARD(frame);
    rb_hk_check(call.status, "notify");
    return SIZET2NUM(call.count);
}

typedef struct watched {
    hk_bytes_t topic;
    bool watched;
} watched_t;

static void watched(rb_hk_core_t *core, void *argument)
{
    watched_t *call = argument;
    call->watched = hk_hub_watched(core->hub, call->topic);
}

/* _watched(topic) */
static VALUE engine_watched(VALUE self, VALUE topic)
{
    watched_t call = {.topic = rb_hk_bytes(&topic)};
    rb_hk_locked(rb_hk_core_of(self), watched, &call);
    RB_GC_GUARD(topic);
    return call.watched ? Qtrue : Qfalse;
}

void rb_hk_init_publish(VALUE engine_class)
{
    id_value = rb_intern("value");
    id_url = rb_intern("url");
    id_reserved = rb_intern("reserved?");
    id_components = rb_intern("components");
    id_origin = rb_intern("origin");
    rb_define_private_method(engine_class, "_publish", engine_publish, 8);
    rb_define_private_method(engine_class, "_notify", engine_notify, 2);
    rb_define_private_method(engine_class, "_watched", engine_watched, 1);
}
