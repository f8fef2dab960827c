/* topic_program_fuzz.c: programs that nobody compiled, and the texts that they are run over.
 *
 * The input is a program and, behind it, a text. It is also taken as the eight programs of a matcher.
 */
#include "hk_matcher.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool so)
{
    if (!so) {
        abort();
    }
}

static uint32_t allowed(size_t length)
{
    return length < 2016 ? (uint32_t)(1024 + 32 * length) : 65536;
}

static void run(hk_bytes_t bytes, hk_bytes_t text)
{
    hk_program_t counted, shaped;
    char *literals = malloc(bytes.length > 0 ? bytes.length : 1);
    bool loads = hk_program_load(bytes, literals, &shaped) == HK_OK;
    check(loads == (hk_program_load(bytes, NULL, &counted) == HK_OK));
    if (loads) {
        hk_program_space_t space;
        hk_program_space_init(&space, hk_alloc_default());
        check(hk_program_space_reserve(&space, counted.instruction_count) == HK_OK);
        uint32_t steps;
        bool matches = hk_program_match(&counted, &space, text, &steps);
        check(steps <= allowed(text.length) + counted.instruction_count);
        check(steps > allowed(text.length) || hk_program_match(&shaped, &space, text, NULL) == matches);
        hk_program_space_release(&space);
    }
    free(literals);
}

static void match(hk_bytes_t programs, hk_matcher_kind_t kind)
{
    hk_matcher_options_t options = {
        .type = HK_BYTES("x"), .pattern = HK_BYTES("x"), .kind = kind, .program = programs, .prefix = HK_BYTES("/")};
    hk_url_t hub = {.parts[HK_URL_PROTOCOL] = HK_BYTES("https"), .origin = HK_BYTES("https://")}, url;
    hk_topic_t *topic;
    hk_matcher_t *matcher;
    check(hk_topic_split(HK_BYTES("/aa/bb"), &hub, &url) == HK_OK);
    check(hk_topic_new(hk_alloc_default(), HK_BYTES("/aa/bb"), &url, false, &topic) == HK_OK);
    if (hk_matcher_new(hk_alloc_default(), &options, &matcher) == HK_OK) {
        hk_program_space_t space;
        hk_program_space_init(&space, hk_alloc_default());
        check(hk_program_space_reserve(&space, matcher->instructions) == HK_OK);
        hk_matcher_match(matcher, &space, topic);
        hk_program_space_release(&space);
        hk_matcher_release(matcher);
    }
    hk_topic_release(topic);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hk_bytes_t input = hk_bytes((const char *)data, size);
    size_t length = size < 4 ? size : 4 + 32 * (size_t)data[1] + 4 * ((size_t)data[2] << 8 | data[3]);
    length = length < size ? length : size;
    /* In memory of its very size, so that a byte that is read too much is seen. */
    char *program = malloc(length > 0 ? length : 1);
    if (length > 0) {
        memcpy(program, data, length);
    }
    run(hk_bytes(program, length), hk_bytes(input.at + length, size - length));
    free(program);
    match(input, HK_MATCHER_URL);
    match(input, HK_MATCHER_TEXT);
    return 0;
}
