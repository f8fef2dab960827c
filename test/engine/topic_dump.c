/* topic_dump.c: what the engine makes of topics.
 *
 * In: the hub's URL (nine fields), its comparable path, then topics. Out, for each topic: a line "unknown", or "url"
 * and "reserved" or "free", the eight parts and the origin, in hexadecimal, with spaces between them.
 */
#include "dump.h"

static void print_hex(hk_bytes_t bytes)
{
    putchar(' ');
    for (size_t i = 0; i < bytes.length; i++) {
        printf("%02x", (unsigned char)bytes.at[i]);
    }
}

static void print_topic(hk_topics_t *topics, const hk_url_t *hub, hk_bytes_t value)
{
    hk_topic_t *topic;
    hk_url_t split;
    hk_status_t status = hk_topics_find(topics, value, &topic);
    if (status != hk_topic_split(value, hub, &split)) {
        dump_fail("the table does not agree with the splitter");
    }
    if (status != HK_OK) {
        puts("unknown");
        return;
    }
    fputs(topic->reserved ? "url reserved" : "url free", stdout);
    for (size_t part = 0; part < HK_URL_PARTS; part++) {
        if (!hk_bytes_equal(topic->url.parts[part], split.parts[part])) {
            dump_fail("the topic's part is not what was split");
        }
        print_hex(topic->url.parts[part]);
    }
    print_hex(topic->url.origin);
    putchar('\n');
}

int main(void)
{
    hk_topics_options_t options = {.hub = dump_url(), .max_bytes = 1 << 20, .secret = {1, 2}};
    options.comparable_path = dump_field();
    hk_topics_t *topics;
    if (hk_topics_new(DUMP_ALLOC, &options, &topics) != HK_OK) {
        dump_fail("no memory");
    }
    hk_bytes_t value;
    while (dump_take(&value)) {
        print_topic(topics, &options.hub, value);
        free((char *)(uintptr_t)value.at);
    }
    hk_topics_free(topics);
    return EXIT_SUCCESS;
}
