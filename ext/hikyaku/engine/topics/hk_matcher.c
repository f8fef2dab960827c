#include "hk_matcher.h"

enum { MAX_PATTERN = 65535, LENGTH_BYTES = 4 };

static const hk_bytes_t none = {"", 0};

static size_t length_at(const char *at)
{
    const unsigned char *bytes = (const unsigned char *)at;
    return (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
}

/* Takes one program of several, each after its length, off `rest`. */
static bool take_program(hk_bytes_t *rest, hk_bytes_t *program)
{
    if (rest->length < LENGTH_BYTES || length_at(rest->at) > rest->length - LENGTH_BYTES) {
        return false;
    }
    *program = hk_bytes(rest->at + LENGTH_BYTES, length_at(rest->at));
    *rest = hk_bytes(program->at + program->length, rest->length - LENGTH_BYTES - program->length);
    return true;
}

static uint8_t programs_of(hk_matcher_kind_t kind)
{
    return kind == HK_MATCHER_URL ? HK_URL_PARTS : kind == HK_MATCHER_TEXT ? 1 : 0;
}

/* literals  a byte for each instruction. */
static bool load_programs(hk_matcher_t *matcher, hk_bytes_t rest, char *literals)
{
    for (size_t i = 0; i < matcher->program_count; i++) {
        hk_bytes_t bytes = rest;
        if (matcher->kind == HK_MATCHER_TEXT) {
            rest = none;
        } else if (!take_program(&rest, &bytes)) {
            return false;
        }
        hk_program_t *program = &matcher->programs[i];
        if (hk_program_load(bytes, literals, program) != HK_OK) {
            return false;
        }
        literals += program->text.length;
        if (program->shape == HK_PROGRAM_GENERAL && program->instruction_count > matcher->instructions) {
            matcher->instructions = program->instruction_count;
        }
    }
    return rest.length == 0;
}

/* The path says most often that a topic does not match. Where the origin is fixed its parts need not be asked. */
static void order_tests(hk_matcher_t *matcher)
{
    static const uint8_t order[] = {HK_URL_PATHNAME, HK_URL_SEARCH,   HK_URL_HASH, HK_URL_USERNAME,
                                    HK_URL_PASSWORD, HK_URL_PROTOCOL, HK_URL_PORT, HK_URL_HOSTNAME};
    size_t count = matcher->has_origin ? 5 : HK_URL_PARTS;
    for (size_t i = 0; i < count; i++) {
        if (matcher->programs[order[i]].shape != HK_PROGRAM_ANYTHING) {
            matcher->tests[matcher->test_count++] = order[i];
        }
    }
}

static hk_bytes_t copied(hk_bytes_t bytes, char **room)
{
    char *at = *room;
    if (bytes.length > 0) {
        memcpy(at, bytes.at, bytes.length);
    }
    *room += bytes.length;
    return hk_bytes(at, bytes.length);
}

hk_status_t hk_matcher_new(const hk_alloc_t *alloc, const hk_matcher_options_t *options, hk_matcher_t **matcher)
{
    if (options->pattern.length > MAX_PATTERN) {
        return HK_TOO_LARGE;
    }
    if (options->type.length > 0 && memchr(options->type.at, '\0', options->type.length) != NULL) {
        return HK_INVALID;
    }
    uint8_t program_count = programs_of(options->kind);
    size_t programs_size = program_count * sizeof(hk_program_t);
    size_t key_size = options->type.length + 1 + options->pattern.length;
    size_t bytes_size = key_size + options->origin.length + options->prefix.length;
    /* A literal has a byte for an instruction of its program, at most. */
    size_t literals_size = options->program.length / 4;
    size_t size = sizeof(hk_matcher_t) + programs_size + bytes_size + options->program.length + literals_size;
    hk_matcher_t *made = hk_alloc_new(alloc, size);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    *made = (hk_matcher_t){
        .references = 1,
        .kind = options->kind,
        .has_origin = options->has_origin,
        .close_on_gap = options->close_on_gap,
        .cost = options->cost,
        /* The pattern stands in its maker's tables, too. */
        .bytes = size + key_size + options->held,
        .program_count = program_count,
        .programs = (hk_program_t *)(made + 1),
        .alloc = alloc,
    };
    char *room = (char *)(made + 1) + programs_size;
    made->type = copied(options->type, &room);
    *room++ = '\0';
    made->pattern = copied(options->pattern, &room);
    made->key = hk_bytes(made->type.at, key_size);
    made->origin = copied(options->origin, &room);
    made->prefix = copied(options->prefix, &room);
    hk_bytes_t programs = copied(options->program, &room);
    if (!load_programs(made, programs, room)) {
        hk_alloc_free(alloc, made);
        return HK_INVALID;
    }
    if (made->kind == HK_MATCHER_URL) {
        order_tests(made);
    }
    *matcher = made;
    return HK_OK;
}

hk_matcher_t *hk_matcher_retain(hk_matcher_t *matcher)
{
    matcher->references++;
    return matcher;
}

void hk_matcher_release(hk_matcher_t *matcher)
{
    if (matcher != NULL && --matcher->references == 0) {
        hk_alloc_free(matcher->alloc, matcher);
    }
}

static bool match_url(const hk_matcher_t *matcher, hk_program_space_t *space, const hk_topic_t *topic)
{
    const hk_url_t *url = &topic->url;
    if (!topic->is_url || !hk_bytes_start_with(url->parts[HK_URL_PATHNAME], matcher->prefix) ||
        (matcher->has_origin && !hk_bytes_equal(url->origin, matcher->origin))) {
        return false;
    }
    for (size_t i = 0; i < matcher->test_count; i++) {
        uint8_t part = matcher->tests[i];
        if (!hk_program_match(&matcher->programs[part], space, url->parts[part], NULL)) {
            return false;
        }
    }
    return true;
}

bool hk_matcher_match(const hk_matcher_t *matcher, hk_program_space_t *space, const hk_topic_t *topic)
{
    hk_bytes_t value = hk_topic_value(topic);
    switch (matcher->kind) {
    case HK_MATCHER_ALL:
        return true;
    case HK_MATCHER_EXACT:
        return hk_bytes_equal(matcher->pattern, value);
    case HK_MATCHER_URL:
        return match_url(matcher, space, topic);
    case HK_MATCHER_TEXT:
        return hk_bytes_start_with(value, matcher->prefix) &&
               (hk_bytes_equal(matcher->pattern, value) || hk_program_match(&matcher->programs[0], space, value, NULL));
    }
    return false;
}
