/* matcher_dump.c: what programs and matchers of the engine say.
 *
 * In, each beginning with a field of one letter:
 *
 *     P  program, text                                     runs a program
 *     M  type, pattern, kind ("all" "exact" "url" "text"), program, "origin" or "", origin, prefix
 *     T  value, "url" or "", and then nine fields          asks the last M
 *
 * Out, a line each: of P "invalid", or the verdict and steps of the program without shapes, and the verdict with them;
 * of M its status; of T the verdict.
 */
#include "dump.h"
#include "hk_matcher.h"

static hk_program_space_t space;

static void reserve(size_t instructions)
{
    if (hk_program_space_reserve(&space, instructions) != HK_OK) {
        dump_fail("no memory");
    }
}

static void run_program(void)
{
    hk_bytes_t bytes = dump_field(), text = dump_field();
    hk_program_t counted, shaped;
    char *literals = malloc(bytes.length + 1);
    if (hk_program_load(bytes, NULL, &counted) != HK_OK || hk_program_load(bytes, literals, &shaped) != HK_OK) {
        puts("invalid");
        return;
    }
    reserve(counted.instruction_count);
    uint32_t steps;
    bool matches = hk_program_match(&counted, &space, text, &steps);
    printf("%d %u %d\n", matches, steps, hk_program_match(&shaped, &space, text, NULL));
}

static hk_matcher_kind_t kind_of(hk_bytes_t name)
{
    return hk_bytes_equal(name, HK_BYTES("all"))     ? HK_MATCHER_ALL
           : hk_bytes_equal(name, HK_BYTES("exact")) ? HK_MATCHER_EXACT
           : hk_bytes_equal(name, HK_BYTES("url"))   ? HK_MATCHER_URL
                                                     : HK_MATCHER_TEXT;
}

static void make_matcher(hk_matcher_t **matcher)
{
    hk_matcher_options_t options = {.type = dump_field()};
    options.pattern = dump_field();
    options.kind = kind_of(dump_field());
    options.program = dump_field();
    options.has_origin = dump_field().length > 0;
    options.origin = dump_field();
    options.prefix = dump_field();
    hk_matcher_release(*matcher);
    *matcher = NULL;
    puts(hk_status_name(hk_matcher_new(DUMP_ALLOC, &options, matcher)));
    if (*matcher != NULL) {
        reserve((*matcher)->instructions);
    }
}

static void ask_matcher(const hk_matcher_t *matcher)
{
    hk_bytes_t value = dump_field();
    bool is_url = dump_field().length > 0;
    hk_url_t url = dump_url();
    hk_topic_t *topic;
    if (matcher == NULL || hk_topic_new(DUMP_ALLOC, value, is_url ? &url : NULL, false, &topic) != HK_OK) {
        dump_fail("no matcher, or no memory");
    }
    printf("%d\n", hk_matcher_match(matcher, &space, topic));
    hk_topic_release(topic);
}

int main(void)
{
    hk_program_space_init(&space, DUMP_ALLOC);
    hk_matcher_t *matcher = NULL;
    hk_bytes_t letter;
    while (dump_take(&letter)) {
        switch (*letter.at) {
        case 'P':
            run_program();
            break;
        case 'M':
            make_matcher(&matcher);
            break;
        default:
            ask_matcher(matcher);
        }
    }
    hk_matcher_release(matcher);
    return EXIT_SUCCESS;
}
