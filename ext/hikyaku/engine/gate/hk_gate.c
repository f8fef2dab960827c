#include "hk_gate_private.h"

#include "hk_form.h"

/* An update's topics are counted in 16 bits. */
enum { MOST_TOPICS = UINT16_MAX };

/* --- making one --------------------------------------------------------------------------------------------------- */

/* What a gate keeps of its options lies behind it, in one block: names, networks, bytes. */
static size_t size_of(const hk_gate_options_t *options)
{
    size_t size = sizeof(hk_gate_t) + options->cookie_name_count * sizeof(hk_bytes_t) +
                  options->trusted_proxy_count * sizeof(hk_network_t) + options->path.length;
    for (size_t i = 0; i < options->cookie_name_count; i++) {
        size += options->cookie_names[i].length;
    }
    return size;
}

static hk_bytes_t copied(hk_bytes_t text, char **room)
{
    char *at = *room;
    if (text.length > 0) {
        memcpy(at, text.at, text.length);
    }
    *room += text.length;
    return hk_bytes(at, text.length);
}

static void copy_options(hk_gate_t *gate, const hk_gate_options_t *options)
{
    hk_bytes_t *names = (hk_bytes_t *)(gate + 1);
    hk_network_t *networks = (hk_network_t *)(names + options->cookie_name_count);
    char *room = (char *)(networks + options->trusted_proxy_count);
    gate->options = *options;
    gate->options.path = copied(options->path, &room);
    for (size_t i = 0; i < options->cookie_name_count; i++) {
        names[i] = copied(options->cookie_names[i], &room);
    }
    for (size_t i = 0; i < options->trusted_proxy_count; i++) {
        networks[i] = options->trusted_proxies[i];
    }
    gate->options.cookie_names = names;
    gate->options.trusted_proxies = networks;
    if (options->max_topics > MOST_TOPICS) {
        gate->options.max_topics = MOST_TOPICS;
    }
}

hk_status_t hk_gate_new(const hk_alloc_t *alloc, const hk_gate_options_t *options, hk_hub_t *hub, hk_gate_t **gate)
{
    hk_gate_t *made = hk_alloc_zeroed(alloc, 1, size_of(options));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->hub = hub;
    copy_options(made, options);
    hk_gate_table_init(&made->table, alloc, options->max_table_bytes, options->secret);
    hk_buf_init(&made->key, alloc);
    hk_buf_init(&made->decoded, alloc);
    hk_buf_init(&made->answer, alloc);
    *gate = made;
    return HK_OK;
}

void hk_gate_free(hk_gate_t *gate)
{
    if (gate == NULL) {
        return;
    }
    hk_gate_table_release(&gate->table);
    hk_buf_release(&gate->key);
    hk_buf_release(&gate->decoded);
    hk_buf_release(&gate->answer);
    hk_alloc_free(gate->alloc, gate->topics);
    hk_alloc_free(gate->alloc, gate);
}

/* --- answering ---------------------------------------------------------------------------------------------------- */

hk_bytes_t hk_gate_decode(hk_gate_t *gate, hk_bytes_t raw)
{
    if (!hk_form_encoded(raw)) {
        return raw;
    }
    char *room = hk_buf_end(&gate->decoded);
    size_t length = hk_form_decode(raw, room);
    hk_buf_grew(&gate->decoded, length);
    return hk_bytes(room, length);
}

hk_bytes_t hk_gate_date(hk_gate_t *gate, int64_t wall)
{
    return gate->options.dates ? hk_bytes(hk_date_line(&gate->date, wall), HK_DATE_LINE_BYTES) : HK_BYTES("");
}

hk_status_t hk_gate_begin(hk_gate_t *gate, hk_bytes_t head, int64_t wall)
{
    const char *end = head.length > 0 ? memchr(head.at, '\n', head.length) : NULL;
    size_t line = end != NULL ? (size_t)(end - head.at) + 1 : 0;
    hk_bytes_t date = hk_gate_date(gate, wall);
    hk_buf_t *out = &gate->answer;
    hk_buf_clear(out);
    hk_status_t status = hk_buf_reserve(out, head.length + date.length);
    if (status == HK_OK) {
        (void)hk_buf_append(out, hk_bytes(head.at, line));
        (void)hk_buf_append(out, date);
        (void)hk_buf_append(out, hk_bytes(head.at + line, head.length - line));
    }
    return status;
}

/* The decision about a request, or NULL. */
static hk_gate_entry_t *decision_at(hk_gate_t *gate, int64_t wall)
{
    hk_gate_entry_t *entry = hk_gate_table_find(&gate->table, hk_buf_bytes(&gate->key));
    if (entry != NULL && entry->grant->expires_at != HK_NEVER && entry->grant->expires_at <= wall) {
        hk_gate_table_remove(&gate->table, entry);
        return NULL;
    }
    return entry;
}

static hk_status_t serve(hk_gate_t *gate, const hk_gate_request_t *request, hk_gate_answer_t *answer)
{
    hk_gate_asked_t asked;
    hk_gate_ask(gate, request->head, &asked);
    if (!asked.has_key || !(asked.publishes ? hk_gate_publishable : hk_gate_subscribable)(gate, request, &asked)) {
        return HK_UNKNOWN;
    }
    hk_buf_clear(&gate->key);
    hk_status_t status = hk_gate_write_key(gate, &asked, &gate->key);
    if (status != HK_OK) {
        return status;
    }
    hk_gate_entry_t *entry = decision_at(gate, request->wall);
    if (entry == NULL) {
        gate->misses++;
        return HK_UNKNOWN;
    }
    return (asked.publishes ? hk_gate_publish : hk_gate_subscribe)(gate, request, &asked, entry, answer);
}

hk_status_t hk_gate_serve(hk_gate_t *gate, const hk_gate_request_t *request, hk_gate_answer_t *answer)
{
    hk_status_t status = serve(gate, request, answer);
    gate->hits += status == HK_OK;
    gate->asks += status == HK_UNKNOWN;
    return status;
}

/* --- remembering -------------------------------------------------------------------------------------------------- */

/* The value of a field of a head; empty: it has none. */
static hk_bytes_t field_of_head(hk_bytes_t head, hk_bytes_t name)
{
    for (const char *end; (end = head.length > 0 ? memchr(head.at, '\n', head.length) : NULL) != NULL;) {
        size_t length = (size_t)(end - head.at), begin = name.length + 1;
        if (length > begin && head.at[name.length] == ':' &&
            hk_bytes_equal_ignoring_case(hk_bytes(head.at, name.length), name)) {
            while (length > begin && (head.at[length - 1] == '\r' || head.at[length - 1] == ' ')) {
                length--;
            }
            while (length > begin && head.at[begin] == ' ') {
                begin++;
            }
            return hk_bytes(head.at + begin, length - begin);
        }
        head = hk_bytes(end + 1, head.length - (size_t)(end + 1 - head.at));
    }
    return HK_BYTES("");
}

static void read_form(hk_gate_entry_t *entry)
{
    hk_bytes_t type = field_of_head(entry->head, HK_BYTES("content-type"));
    hk_bytes_t coding = field_of_head(entry->head, HK_BYTES("content-encoding"));
    bool packed = hk_bytes_equal(type, HK_BYTES("application/vnd.msgpack"));
    bool compressed = hk_bytes_equal(coding, HK_BYTES("gzip"));
    entry->form = packed ? HK_STREAM_MESSAGE_PACK : HK_STREAM_EVENTS;
    entry->coding = compressed ? HK_STREAM_GZIP : HK_STREAM_IDENTITY;
}

hk_status_t hk_gate_remember(hk_gate_t *gate, const hk_decision_t *decision)
{
    if (decision->epoch != gate->epoch || decision->key.length == 0) {
        return HK_OK;
    }
    hk_status_t status = hk_hub_reserve(gate->hub, decision->grant);
    if (status != HK_OK) {
        return status;
    }
    status = hk_gate_table_add(&gate->table, decision->key, decision->head, decision->grant);
    hk_gate_entry_t *entry = status == HK_OK ? hk_gate_table_find(&gate->table, decision->key) : NULL;
    if (entry != NULL) {
        read_form(entry);
    }
    return status;
}

void hk_gate_forget(hk_gate_t *gate, hk_bytes_t subject)
{
    gate->epoch++;
    hk_gate_table_forget(&gate->table, subject);
}

void hk_gate_read_stats(const hk_gate_t *gate, hk_gate_stats_t *stats)
{
    *stats = (hk_gate_stats_t){
        .hits = gate->hits,
        .misses = gate->misses,
        .asks = gate->asks,
        .decisions = hk_gate_table_count(&gate->table),
        .bytes = hk_gate_table_bytes(&gate->table),
    };
}
