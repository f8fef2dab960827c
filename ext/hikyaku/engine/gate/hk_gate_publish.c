#include "hk_gate_private.h"

#include "hk_form.h"

/* As Hikyaku::Hub::Update. */
enum { RETRY_DIGITS = 12 };

/* What a form says; the first value of each field, raw. */
typedef struct fields {
    hk_bytes_t data, id, type, retry; /* `at` is NULL when not sent */
    bool is_private;
    size_t topic_count;
} fields_t;

/* --- fields ------------------------------------------------------------------------------------------------------- */

static bool is_form(hk_bytes_t type)
{
    static const hk_bytes_t form = {"application/x-www-form-urlencoded", 33};
    if (type.length < form.length || !hk_bytes_equal_ignoring_case(hk_bytes(type.at, form.length), form)) {
        return false;
    }
    size_t at = form.length;
    while (at < type.length && (type.at[at] == ' ' || type.at[at] == '\t')) {
        at++;
    }
    return at == type.length || type.at[at] == ';';
}

bool hk_gate_publishable(const hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked)
{
    size_t max_fields = gate->options.max_fields;
    return request->body_is_whole && request->body.length <= gate->options.max_body_bytes &&
           is_form(asked->values[HK_GATE_CONTENT_TYPE]) &&
           (max_fields == 0 || !hk_form_exceeds(request->body, max_fields));
}

static void keep_first(hk_bytes_t *field, hk_bytes_t value)
{
    if (field->at == NULL) {
        *field = value;
    }
}

/* HK_OK; HK_UNKNOWN: not certainly a topic that may be published; HK_NO_MEMORY. */
static hk_status_t add_topic(hk_gate_t *gate, hk_bytes_t raw, size_t *count)
{
    if (*count >= gate->options.max_topics) {
        return HK_UNKNOWN;
    }
    if (*count == gate->topic_capacity) {
        size_t capacity = *count > 0 ? 2 * *count : 8;
        hk_topic_t **topics = hk_alloc_resize(gate->alloc, gate->topics, capacity, sizeof(*topics));
        if (topics == NULL) {
            return HK_NO_MEMORY;
        }
        gate->topics = topics;
        gate->topic_capacity = capacity;
    }
    hk_bytes_t value = hk_gate_decode(gate, raw);
    if (value.length > gate->options.max_topic_bytes || !hk_gate_text(value) || hk_bytes_equal(value, HK_BYTES("*"))) {
        return HK_UNKNOWN;
    }
    hk_topic_t *topic;
    hk_status_t status = hk_topics_find(hk_hub_topics(gate->hub), value, &topic);
    if (status != HK_OK) {
        return status;
    }
    if (topic->reserved) {
        return HK_UNKNOWN;
    }
    gate->topics[(*count)++] = hk_topic_retain(topic);
    return HK_OK;
}

static hk_status_t take(hk_gate_t *gate, hk_bytes_t name, hk_bytes_t value, fields_t *fields)
{
    char decoded[3 * sizeof("private")];
    if (hk_form_encoded(name)) {
        /* Longer than every way to write the longest name that is known. */
        if (name.length > sizeof(decoded)) {
            return HK_OK;
        }
        name = hk_bytes(decoded, hk_form_decode(name, decoded));
    }
    if (hk_bytes_equal(name, HK_BYTES("topic"))) {
        return add_topic(gate, value, &fields->topic_count);
    }
    if (hk_bytes_equal(name, HK_BYTES("data"))) {
        keep_first(&fields->data, value);
    } else if (hk_bytes_equal(name, HK_BYTES("id"))) {
        keep_first(&fields->id, value);
    } else if (hk_bytes_equal(name, HK_BYTES("type"))) {
        keep_first(&fields->type, value);
    } else if (hk_bytes_equal(name, HK_BYTES("retry"))) {
        keep_first(&fields->retry, value);
    } else if (hk_bytes_equal(name, HK_BYTES("private"))) {
        fields->is_private = true;
    }
    return HK_OK;
}

/* --- what the fields mean ----------------------------------------------------------------------------------------- */

static bool is_id(hk_bytes_t id, size_t max_bytes)
{
    return id.length <= max_bytes && hk_bytes_printable(id) && !hk_bytes_start_with(id, HK_BYTES("#")) &&
           !hk_bytes_equal(id, HK_BYTES("earliest"));
}

static bool is_type(hk_bytes_t type, size_t max_bytes)
{
    return type.length <= max_bytes && hk_bytes_printable(type) && !hk_bytes_equal(type, HK_BYTES("mercure"));
}

/* Negative: none. False when they are no digits, or too many. */
static bool read_retry(hk_bytes_t digits, int64_t *ms)
{
    *ms = digits.length == 0 ? -1 : 0;
    size_t count = 0;
    for (size_t i = 0; i < digits.length; i++) {
        if (digits.at[i] < '0' || digits.at[i] > '9') {
            return false;
        }
        count += count > 0 || digits.at[i] != '0';
        if (count > RETRY_DIGITS) {
            return false;
        }
        *ms = *ms * 10 + (digits.at[i] - '0');
    }
    return true;
}

/* HK_OK, or HK_UNKNOWN: Ruby says what is wrong, if anything is. */
static hk_status_t understand(hk_gate_t *gate, const fields_t *fields, const hk_grant_t *grant, hk_log_update_t *update)
{
    *update = (hk_log_update_t){
        .topics = gate->topics,
        .topic_count = fields->topic_count,
        .data = hk_gate_decode(gate, fields->data),
        .id = hk_gate_decode(gate, fields->id),
        .type = hk_gate_decode(gate, fields->type),
        .is_private = fields->is_private,
    };
    bool valid = update->topic_count > 0 && is_id(update->id, gate->options.max_id_bytes) &&
                 is_type(update->type, gate->options.max_type_bytes) &&
                 read_retry(hk_gate_decode(gate, fields->retry), &update->retry_ms) && hk_bytes_utf8(update->data);
    return valid && hk_grant_publishes(grant, hk_hub_space(gate->hub), update->topics, update->topic_count)
               ? HK_OK
               : HK_UNKNOWN;
}

/* --- the answer --------------------------------------------------------------------------------------------------- */

/* As Server::Native::Response: what goes without saying in the request's version is not said. */
static hk_bytes_t connection_of(const hk_http1_request_t *head)
{
    if (head->minor == 0) {
        return head->keep_alive ? HK_BYTES("connection: keep-alive\r\n") : HK_BYTES("");
    }
    return head->keep_alive ? HK_BYTES("") : HK_BYTES("connection: close\r\n");
}

/* Head and body are one run of bytes. There is room for them before anything is published. */
static hk_status_t publish(hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_entry_t *entry,
                           const hk_log_update_t *update, hk_gate_answer_t *answer)
{
    hk_bytes_t connection = connection_of(request->head), length = HK_BYTES("content-length: "), id;
    size_t id_length = update->id.length > 0 ? update->id.length : HK_EVENT_ID_BYTES;
    hk_buf_t *out = &gate->answer;
    hk_status_t status = hk_gate_begin(gate, entry->head, request->wall);
    if (status == HK_OK) {
        status = hk_buf_reserve(out, length.length + connection.length + 24 + id_length);
    }
    if (status == HK_OK && !hk_hub_prompt(gate->hub, request->body.length)) {
        return HK_UNKNOWN;
    }
    if (status == HK_OK && hk_hub_takes_long(gate->hub, update->topics, update->topic_count)) {
        return HK_UNKNOWN;
    }
    if (status == HK_OK) {
        status = hk_hub_publish(gate->hub, update, request->now, &id);
    }
    if (status == HK_AGAIN || status == HK_TOO_LARGE || status == HK_SYSTEM) {
        /* It could not be kept; Ruby says so. */
        return HK_UNKNOWN;
    }
    if (status != HK_OK) {
        return status;
    }
    (void)hk_buf_append(out, length);
    (void)hk_buf_append_number(out, id.length);
    (void)hk_buf_append(out, HK_BYTES("\r\n"));
    (void)hk_buf_append(out, connection);
    (void)hk_buf_append(out, HK_BYTES("\r\n"));
    size_t head_length = out->length;
    (void)hk_buf_append(out, id);
    hk_bytes_t written = hk_buf_bytes(out);
    *answer = (hk_gate_answer_t){
        .kind = HK_GATE_PUBLISHED,
        .head = hk_bytes(written.at, head_length),
        .body = hk_bytes(written.at + head_length, written.length - head_length),
    };
    return HK_OK;
}

hk_status_t hk_gate_publish(hk_gate_t *gate, const hk_gate_request_t *request, const hk_gate_asked_t *asked,
                            const hk_gate_entry_t *entry, hk_gate_answer_t *answer)
{
    (void)asked;
    hk_buf_clear(&gate->decoded);
    hk_status_t status = hk_buf_reserve(&gate->decoded, request->body.length);
    fields_t fields = {.topic_count = 0};
    hk_bytes_t rest = request->body, name, value;
    while (status == HK_OK && hk_form_next(&rest, &name, &value)) {
        status = take(gate, name, value, &fields);
    }
    hk_log_update_t update;
    if (status == HK_OK) {
        status = understand(gate, &fields, entry->grant, &update);
    }
    if (status == HK_OK) {
        status = publish(gate, request, entry, &update, answer);
    }
    for (size_t i = 0; i < fields.topic_count; i++) {
        hk_topic_release(gate->topics[i]);
    }
    return status;
}
