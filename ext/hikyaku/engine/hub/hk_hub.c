#include "hk_hub_state.h"

static hk_status_t make_parts(hk_hub_t *hub, const hk_hub_options_t *options)
{
    hk_topics_options_t topics = {.hub = options->hub_url,
                                  .comparable_path = options->comparable_path,
                                  .max_bytes = options->topic_table_bytes,
                                  .secret = {options->secret[0], options->secret[1]}};
    hk_log_options_t log = {.capacity = options->history_bytes, .secret = {options->secret[0], options->secret[1]}};
    memcpy(log.key, options->log_key, sizeof(log.key));
    hk_status_t status = hk_topics_new(hub->alloc, &topics, &hub->topics);
    if (status == HK_OK) {
        status = hk_topic_new(hub->alloc, HK_BYTES(""), &options->hub_url, true, &hub->home);
    }
    if (status == HK_OK) {
        status = hk_log_new(hub->alloc, &log, &hub->log);
    }
    if (status == HK_OK) {
        status = hk_index_new(hub->alloc, options->secret, &hub->index);
    }
    if (status == HK_OK) {
        status = hk_control_new(hub->alloc, HK_SSE_HEARTBEAT, &hub->comment.control);
    }
    if (status == HK_OK) {
        status = hk_control_new(hub->alloc, HK_SSE_CAUGHT_UP, &hub->word);
    }
    return status == HK_OK ? hk_hub_start_timing(hub, options->heartbeat, options->max_lifetime) : status;
}

/* Ids and chances come from secrets of their own: one says nothing about the other. */
static void derive(const uint64_t secret[2], hk_bytes_t name, uint64_t derived[2])
{
    derived[0] = hk_hash(secret, name);
    uint64_t other[2] = {secret[1], secret[0] ^ derived[0]};
    derived[1] = hk_hash(other, name);
}

hk_status_t hk_hub_new(const hk_alloc_t *alloc, const hk_hub_options_t *options, hk_hub_t **hub)
{
    hk_hub_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->announces = options->announces;
    made->max_subscribers = options->max_subscribers;
    made->max_of_address = options->max_of_address;
    made->max_cost = options->max_cost;
    made->max_cost_of_address = options->max_cost_of_address;
    made->max_cost_beside = options->max_cost_beside;
    hk_program_space_init(&made->space, alloc);
    hk_map_init(&made->feeds, alloc, options->secret);
    hk_map_init(&made->addresses, alloc, options->secret);
    hk_roster_init(&made->roster, alloc);
    hk_list_init(&made->ready);
    hk_list_init(&made->scanning);
    hk_list_init(&made->dirty);
    hk_list_init(&made->untold);
    hk_map_init(&made->coming, alloc, options->secret);
    made->allowance = HK_HUB_STEPS;
    hk_buf_init(&made->batch_bytes, alloc);
    hk_buf_init(&made->gathered, alloc);
    hk_buf_init(&made->scratch, alloc);
    hk_heap_init(&made->deadlines, alloc);
    derive(options->secret, HK_BYTES("subscribers"), made->id_secret);
    derive(options->secret, HK_BYTES("chance"), made->chance);
    hk_capability_init(&made->capabilities, options->secret);
    hk_status_t status = make_parts(made, options);
    if (status != HK_OK) {
        hk_hub_free(made);
        return status;
    }
    *hub = made;
    return HK_OK;
}

void hk_hub_free(hk_hub_t *hub)
{
    if (hub == NULL) {
        return;
    }
    for (hk_subscriber_t *subscriber; (subscriber = hk_roster_next(&hub->roster, NULL)) != NULL;) {
        hk_hub_forget(hub, subscriber);
    }
    hk_hub_keep_silent(hub);
    hk_map_release(&hub->coming);
    hk_hub_free_coding(hub);
    hk_control_release(hub->alloc, hub->comment.control);
    hk_control_release(hub->alloc, hub->word);
    hk_record_release(hub->answered);
    hk_wheel_release(&hub->beats);
    hk_heap_release(&hub->deadlines);
    hk_buf_release(&hub->scratch);
    hk_buf_release(&hub->gathered);
    hk_buf_release(&hub->batch_bytes);
    hk_roster_release(&hub->roster);
    hk_map_release(&hub->addresses);
    hk_map_release(&hub->feeds);
    hk_program_space_release(&hub->space);
    hk_index_free(hub->index);
    hk_log_free(hub->log);
    hk_topic_release(hub->home);
    hk_topics_free(hub->topics);
    hk_alloc_free(hub->alloc, hub);
}

hk_topics_t *hk_hub_topics(hk_hub_t *hub)
{
    return hub->topics;
}

void hk_hub_rekey(hk_hub_t *hub, const uint8_t key[HK_LOG_KEY_BYTES])
{
    uint64_t secret[2];
    memcpy(secret, key, sizeof(secret));
    hk_log_rekey(hub->log, key);
    hk_capability_init(&hub->capabilities, secret);
}

const hk_log_t *hk_hub_log(const hk_hub_t *hub)
{
    return hub->log;
}

hk_program_space_t *hk_hub_space(hk_hub_t *hub)
{
    return &hub->space;
}

hk_status_t hk_hub_reserve(hk_hub_t *hub, const hk_grant_t *grant)
{
    return hk_program_space_reserve(&hub->space, grant->instructions);
}

uint64_t hk_hub_chance(hk_hub_t *hub, uint64_t limit)
{
    uint64_t number = hub->chances++;
    return hk_hash(hub->chance, hk_bytes((const char *)&number, sizeof(number))) % limit;
}

hk_subscriber_t *hk_hub_find(hk_hub_t *hub, uint64_t serial)
{
    return hk_roster_find(&hub->roster, serial);
}

/* RFC 9562, section 5.4: a version 4 UUID, all bits of which but six are the keyed hash of a number that was never used
 * before. So nothing has to be kept of it. */
void hk_hub_id_of(const hk_hub_t *hub, uint64_t serial, char id[HK_SUBSCRIBER_ID_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t bytes[16];
    for (uint64_t half = 0; half < 2; half++) {
        uint64_t name[2] = {serial, half};
        uint64_t hash = hk_hash(hub->id_secret, hk_bytes((const char *)name, sizeof(name)));
        memcpy(bytes + 8 * half, &hash, sizeof(hash));
    }
    bytes[6] = (uint8_t)(0x40 | (bytes[6] & 0x0F));
    bytes[8] = (uint8_t)(0x80 | (bytes[8] & 0x3F));
    memcpy(id, "urn:uuid:", 9);
    char *at = id + 9;
    for (size_t i = 0; i < sizeof(bytes); i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10) {
            *at++ = '-';
        }
        *at++ = digits[bytes[i] >> 4];
        *at++ = digits[bytes[i] & 15];
    }
}

void hk_subscriber_id(const hk_hub_t *hub, const hk_subscriber_t *subscriber, char id[HK_SUBSCRIBER_ID_BYTES])
{
    hk_hub_id_of(hub, subscriber->serial, id);
}

/* 500 to 1,500 ms for a few, up to 21,500 ms for many. */
uint32_t hk_hub_reconnection_delay(hk_hub_t *hub)
{
    uint64_t half = hub->roster.count / 2;
    return (uint32_t)(500 + hk_hub_chance(hub, 1000 + (half < 20000 ? half : 20000)));
}
