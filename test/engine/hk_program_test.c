#include "hk_program.h"
#include "hk_test.h"

enum { MATCH, BYTE, SET, ANY, JUMP, SPLIT, START, FINISH };
enum { ROOM = 4 + 32 * 255 + 4 * 16385, MANY = 1100 };

typedef struct instruction {
    uint8_t op, argument;
    uint16_t target;
} instruction_t;

/* The bytes of a program: sets, each the bytes that are in it, and instructions. */
static hk_bytes_t assemble(const hk_bytes_t *sets, size_t set_count, const instruction_t *instructions, size_t count)
{
    static uint8_t bytes[ROOM];
    memset(bytes, 0, sizeof(bytes));
    bytes[0] = 1;
    bytes[1] = (uint8_t)set_count;
    bytes[2] = (uint8_t)(count >> 8);
    bytes[3] = (uint8_t)count;
    uint8_t *at = bytes + 4;
    for (size_t i = 0; i < set_count; i++, at += 32) {
        for (size_t j = 0; j < sets[i].length; j++) {
            uint8_t byte = (uint8_t)sets[i].at[j];
            at[byte >> 3] = (uint8_t)(at[byte >> 3] | 1 << (byte & 7));
        }
    }
    for (size_t i = 0; i < count; i++, at += 4) {
        at[0] = instructions[i].op;
        at[1] = instructions[i].argument;
        at[2] = (uint8_t)(instructions[i].target >> 8);
        at[3] = (uint8_t)instructions[i].target;
    }
    return hk_bytes((char *)bytes, (size_t)(at - bytes));
}

#define ASSEMBLE(...)                                                                                                  \
    assemble(NULL, 0, (const instruction_t[]){__VA_ARGS__}, sizeof((const instruction_t[]){__VA_ARGS__}) / 4)

static char literals[ROOM];

static hk_program_t load(hk_bytes_t bytes)
{
    hk_program_t program;
    HK_CHECK_OK(hk_program_load(bytes, literals, &program));
    return program;
}

static bool match(const hk_program_t *program, hk_bytes_t text, uint32_t *steps)
{
    hk_program_space_t space;
    hk_program_space_init(&space, hk_test_alloc());
    HK_CHECK_OK(hk_program_space_reserve(&space, program->instruction_count));
    bool matches = hk_program_match(program, &space, hk_test_guarded(text), steps);
    hk_program_space_release(&space);
    return matches;
}

static bool match_text(const hk_program_t *program, const char *text)
{
    return match(program, hk_test_text(text), NULL);
}

/* -- Shapes -------------------------------------------------------------------------------------------------------- */

/* All bytes but some. */
static hk_bytes_t all_but(const char *missing, size_t count)
{
    char bytes[256];
    size_t length = 0;
    for (int byte = 0; byte < 256; byte++) {
        if (memchr(missing, byte, count) == NULL) {
            bytes[length++] = (char)byte;
        }
    }
    return hk_test_guarded(hk_bytes(bytes, length));
}

HK_TEST(a_fixed_text_is_compared)
{
    hk_program_t program = load(ASSEMBLE({BYTE, 'a', 0}, {BYTE, 0, 0}, {MATCH, 0, 0}));
    HK_CHECK(program.shape == HK_PROGRAM_TEXT);
    HK_CHECK_BYTES("a\0", program.text);
    uint32_t steps = 99;
    HK_CHECK(match(&program, HK_BYTES("a\0"), &steps));
    HK_CHECK_EQUAL_UINT(0, steps);
    HK_CHECK(!match(&program, HK_BYTES("a"), NULL) && !match(&program, HK_BYTES("a\0a"), NULL) &&
             !match(&program, HK_BYTES("b\0"), NULL));
    program = load(ASSEMBLE({MATCH, 0, 0}));
    HK_CHECK(program.shape == HK_PROGRAM_TEXT);
    HK_CHECK(match_text(&program, "") && !match_text(&program, "a"));
}

HK_TEST(anything_and_a_text_before_anything_are_recognised)
{
    hk_program_t program = load(ASSEMBLE({SPLIT, 0, 3}, {ANY, 0, 0}, {JUMP, 0, 0}, {MATCH, 0, 0}));
    HK_CHECK(program.shape == HK_PROGRAM_ANYTHING);
    HK_CHECK(match_text(&program, "") && match_text(&program, "a"));
    program = load(ASSEMBLE({BYTE, 'a', 0}, {SPLIT, 0, 4}, {ANY, 0, 0}, {JUMP, 0, 1}, {MATCH, 0, 0}));
    HK_CHECK(program.shape == HK_PROGRAM_PREFIX);
    HK_CHECK(match_text(&program, "a") && match_text(&program, "abc"));
    HK_CHECK(!match_text(&program, "") && !match_text(&program, "ba"));
}

HK_TEST(a_text_before_one_component_is_recognised)
{
    hk_bytes_t sets[] = {HK_BYTES("x"), all_but("/", 1)};
    hk_bytes_t bytes =
        assemble(sets, 2, (instruction_t[]){{BYTE, 'a', 0}, {SET, 1, 0}, {SPLIT, 0, 1}, {MATCH, 0, 0}}, 4);
    hk_program_t program = load(bytes);
    HK_CHECK(program.shape == HK_PROGRAM_SEGMENT);
    HK_CHECK_EQUAL_INT('/', program.excluded);
    HK_CHECK(match_text(&program, "ab") && match_text(&program, "abc\xFF"));
    HK_CHECK(!match_text(&program, "") && !match_text(&program, "a") && !match_text(&program, "bb"));
    HK_CHECK(!match_text(&program, "a/") && !match_text(&program, "ab/c"));
}

HK_TEST(what_looks_like_a_shape_and_is_none_is_run)
{
    hk_bytes_t one = all_but("/", 1), two = all_but("/.", 2), all = all_but("", 0);
    const struct {
        hk_bytes_t *set;
        instruction_t instructions[6];
        size_t count;
        const char *yes, *no;
    } rows[] = {
        {&one, {{SET, 0, 0}, {SPLIT, 0, 0}, {MATCH, 0, 0}}, 3, "a", ""},
        {&two, {{BYTE, 'a', 0}, {SET, 0, 0}, {SPLIT, 0, 1}, {MATCH, 0, 0}}, 4, "ab", "a."},
        {&all, {{BYTE, 'a', 0}, {SET, 0, 0}, {SPLIT, 0, 1}, {MATCH, 0, 0}}, 4, "a/", "a"},
        {&one, {{BYTE, 'a', 0}, {SET, 0, 0}, {SPLIT, 0, 0}, {MATCH, 0, 0}}, 4, "abac", "abc"},
        {&one, {{BYTE, 'a', 0}, {SET, 0, 0}, {JUMP, 0, 3}, {MATCH, 0, 0}}, 4, "ab", "abc"},
        {NULL, {{BYTE, 'a', 0}, {SPLIT, 0, 4}, {ANY, 0, 0}, {JUMP, 0, 0}, {MATCH, 0, 0}}, 5, "axa", "axx"},
        {NULL, {{BYTE, 'a', 0}, {SPLIT, 0, 3}, {ANY, 0, 0}, {JUMP, 0, 1}, {MATCH, 0, 0}}, 5, NULL, "b"},
        {NULL, {{SPLIT, 0, 3}, {ANY, 0, 0}, {SPLIT, 0, 0}, {MATCH, 0, 0}}, 4, "xyz", NULL},
        {NULL, {{START, 0, 0}, {BYTE, 'a', 0}, {FINISH, 0, 0}, {MATCH, 0, 0}}, 4, "a", "aa"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        hk_program_t program = load(assemble(rows[i].set, rows[i].set != NULL, rows[i].instructions, rows[i].count));
        HK_CHECK(program.shape == HK_PROGRAM_GENERAL);
        HK_CHECK(rows[i].yes == NULL || match_text(&program, rows[i].yes));
        HK_CHECK(rows[i].no == NULL || !match_text(&program, rows[i].no));
    }
}

HK_TEST(without_memory_for_literals_only_anything_is_recognised)
{
    hk_program_t program;
    HK_CHECK_OK(hk_program_load(ASSEMBLE({SPLIT, 0, 3}, {ANY, 0, 0}, {JUMP, 0, 0}, {MATCH, 0, 0}), NULL, &program));
    HK_CHECK(program.shape == HK_PROGRAM_ANYTHING);
    HK_CHECK_OK(hk_program_load(ASSEMBLE({BYTE, 'a', 0}, {MATCH, 0, 0}), NULL, &program));
    HK_CHECK(program.shape == HK_PROGRAM_GENERAL);
    uint32_t steps;
    HK_CHECK(match(&program, HK_BYTES("a"), &steps));
    HK_CHECK_EQUAL_UINT(2, steps);
    HK_CHECK_OK(hk_program_load(ASSEMBLE({BYTE, 'a', 0}, {SPLIT, 0, 4}, {ANY, 0, 0}, {JUMP, 0, 1}, {MATCH, 0, 0}), NULL,
                                &program));
    HK_CHECK(program.shape == HK_PROGRAM_GENERAL && match_text(&program, "ab") && !match_text(&program, "b"));
    HK_CHECK_OK(hk_program_load(ASSEMBLE({MATCH, 0, 0}), NULL, &program));
    HK_CHECK(program.shape == HK_PROGRAM_GENERAL && match_text(&program, "") && !match_text(&program, "a"));
}

/* -- Loading ------------------------------------------------------------------------------------------------------- */

HK_TEST(bytes_that_are_no_program_are_refused)
{
    static const struct {
        const char *bytes;
        size_t length;
    } rows[] = {
#define ROW(literal) {literal, sizeof(literal) - 1}
        ROW(""),
        ROW("\1"),
        ROW("\1\0\0"),
        ROW("\1\0\0\1"),
        ROW("\1\0\0\0"),
        ROW("\1\0\0\1\0\0\0"),
        ROW("\1\0\0\1\0\0\0\0\0"),
        ROW("\0\0\0\1\0\0\0\0"),
        ROW("\2\0\0\1\0\0\0\0"),
        ROW("\1\1\0\1\0\0\0\0"),
        ROW("\1\0\0\2\0\0\0\0"),
        /* The last is no MATCH; a MATCH before it. */
        ROW("\1\0\0\1\1a\0\0"),
        ROW("\1\0\0\2\0\0\0\0\0\0\0\0"),
        /* An operation, a set, a target that does not exist. */
        ROW("\1\0\0\2\10\0\0\0\0\0\0\0"),
        ROW("\1\0\0\2\377\0\0\0\0\0\0\0"),
        ROW("\1\0\0\2\2\0\0\0\0\0\0\0"),
        ROW("\1\0\0\2\4\0\0\2\0\0\0\0"),
        ROW("\1\0\0\2\5\0\0\2\0\0\0\0"),
        ROW("\1\0\0\2\5\0\1\0\0\0\0\0"),
        /* What says nothing is not 0. */
        ROW("\1\0\0\1\0\1\0\0"),
        ROW("\1\0\0\1\0\0\0\1"),
        ROW("\1\0\0\2\1a\0\1\0\0\0\0"),
        ROW("\1\0\0\2\3\1\0\0\0\0\0\0"),
        ROW("\1\0\0\2\4\1\0\1\0\0\0\0"),
        ROW("\1\0\0\2\6\0\1\0\0\0\0\0"),
        ROW("\1\0\0\2\7\1\0\0\0\0\0\0"),
#undef ROW
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        hk_test_note("row %zu", i);
        hk_program_t program = {.instruction_count = 77};
        hk_bytes_t bytes = hk_test_guarded(hk_bytes(rows[i].bytes, rows[i].length));
        HK_CHECK_STATUS(HK_INVALID, hk_program_load(bytes, literals, &program));
        HK_CHECK_EQUAL_UINT(77, program.instruction_count);
    }
    hk_program_t program;
    HK_CHECK_STATUS(HK_INVALID, hk_program_load(hk_bytes(NULL, 0), literals, &program));
    hk_bytes_t set = HK_BYTES("a");
    HK_CHECK_STATUS(HK_INVALID, hk_program_load(assemble(&set, 1, (instruction_t[]){{SET, 1, 0}, {MATCH, 0, 0}}, 2),
                                                NULL, &program));
}

HK_TEST(programs_may_be_as_large_as_the_format_allows_and_no_larger)
{
    static instruction_t instructions[16385];
    static hk_bytes_t sets[255];
    for (size_t i = 0; i < 16385; i++) {
        instructions[i] = (instruction_t){SET, (uint8_t)(i % 255), 0};
    }
    hk_program_t program;
    instructions[16384] = (instruction_t){MATCH, 0, 0};
    HK_CHECK_STATUS(HK_INVALID, hk_program_load(assemble(sets, 255, instructions, 16385), NULL, &program));
    instructions[16383] = (instruction_t){MATCH, 0, 0};
    HK_CHECK_OK(hk_program_load(assemble(sets, 255, instructions, 16384), NULL, &program));
    HK_CHECK_EQUAL_UINT(16384, program.instruction_count);
}

/* -- Limits -------------------------------------------------------------------------------------------------------- */

HK_TEST(a_run_may_take_just_so_many_steps)
{
    static instruction_t instructions[MANY];
    static const struct {
        size_t count;
        bool matches;
    } rows[] = {{1023, true}, {1024, true}, {1025, false}, {1100, false}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        size_t count = rows[i].count;
        for (size_t at = 0; at < count; at++) {
            instructions[at] = (instruction_t){SPLIT, 0, (uint16_t)(at + 1)};
        }
        instructions[count - 1] = (instruction_t){MATCH, 0, 0};
        hk_program_t program = load(assemble(NULL, 0, instructions, count));
        uint32_t steps;
        HK_CHECK(match(&program, HK_BYTES(""), &steps) == rows[i].matches);
        HK_CHECK_EQUAL_UINT(count, steps);
    }
}

HK_TEST(no_run_may_take_more_than_65536_steps)
{
    static char text[20000];
    memset(text, 'a', sizeof(text));
    uint32_t steps;
    /* Four steps for each byte, and four beside that. */
    hk_program_t program = load(ASSEMBLE({JUMP, 0, 1}, {SPLIT, 0, 4}, {BYTE, 'a', 0}, {JUMP, 0, 1}, {MATCH, 0, 0}));
    HK_CHECK(match(&program, hk_bytes(text, 16383), &steps));
    HK_CHECK_EQUAL_UINT(65536, steps);
    HK_CHECK(!match(&program, hk_bytes(text, 16384), &steps));
    HK_CHECK_EQUAL_UINT(65540, steps);
    HK_CHECK(!match(&program, hk_bytes(text, sizeof(text)), &steps));
    HK_CHECK_EQUAL_UINT(65540, steps);
    program = load(ASSEMBLE({JUMP, 0, 1}, {JUMP, 0, 2}, {SPLIT, 0, 5}, {BYTE, 'a', 0}, {JUMP, 0, 2}, {MATCH, 0, 0}));
    HK_CHECK(!match(&program, hk_bytes(text, 16383), &steps));
    HK_CHECK_EQUAL_UINT(65537, steps);
}

HK_TEST(texts_of_any_length_match_simple_shapes)
{
    static char text[200000];
    memset(text, 'a', sizeof(text));
    hk_bytes_t sets[] = {all_but("/", 1)};
    hk_program_t program =
        load(assemble(sets, 1, (instruction_t[]){{BYTE, 'a', 0}, {SET, 0, 0}, {SPLIT, 0, 1}, {MATCH, 0, 0}}, 4));
    HK_CHECK(match(&program, hk_bytes(text, sizeof(text)), NULL));
    program = load(ASSEMBLE({BYTE, 'a', 0}, {SPLIT, 0, 4}, {ANY, 0, 0}, {JUMP, 0, 1}, {MATCH, 0, 0}));
    HK_CHECK(match(&program, hk_bytes(text, sizeof(text)), NULL));
}

/* -- A simple runner ----------------------------------------------------------------------------------------------- */

typedef struct simple {
    const instruction_t *instructions;
    const hk_bytes_t *sets;
    hk_bytes_t text;
    size_t offset, steps;
    bool added[16];
} simple_t;

static void add_simply(simple_t *run, size_t index)
{
    if (run->added[index]) {
        return;
    }
    run->added[index] = true;
    run->steps++;
    instruction_t instruction = run->instructions[index];
    if (instruction.op == JUMP || instruction.op == SPLIT) {
        add_simply(run, instruction.target);
    }
    if (instruction.op == SPLIT || (instruction.op == START && run->offset == 0) ||
        (instruction.op == FINISH && run->offset == run->text.length)) {
        add_simply(run, index + 1);
    }
}

static bool reads_simply(const simple_t *run, instruction_t instruction, char byte)
{
    switch (instruction.op) {
    case BYTE:
        return instruction.argument == (uint8_t)byte;
    case SET:
        return memchr(run->sets[instruction.argument].at, byte, run->sets[instruction.argument].length) != NULL;
    default:
        return instruction.op == ANY;
    }
}

static bool run_simply(simple_t *run, size_t count, size_t *steps)
{
    bool next[16] = {true};
    size_t allowed = 1024 + 32 * run->text.length;
    for (run->offset = 0;; run->offset++) {
        memset(run->added, 0, sizeof(run->added));
        for (size_t i = 0; i < count; i++) {
            if (next[i]) {
                add_simply(run, i);
            }
        }
        *steps = run->steps;
        if (run->steps > allowed || run->offset == run->text.length) {
            return run->steps <= allowed && run->added[count - 1];
        }
        bool any = false;
        memset(next, 0, sizeof(next));
        for (size_t i = 0; i < count; i++) {
            if (run->added[i] && reads_simply(run, run->instructions[i], run->text.at[run->offset])) {
                any = next[i + 1] = true;
            }
        }
        if (!any) {
            return false;
        }
    }
}

HK_TEST(random_programs_run_as_a_simpler_runner_runs_them)
{
    hk_bytes_t sets[] = {HK_BYTES("ab"), HK_BYTES("bc")};
    hk_program_space_t space;
    hk_program_space_init(&space, hk_test_alloc());
    HK_CHECK_OK(hk_program_space_reserve(&space, 16));
    size_t matched = 0;
    for (size_t i = 0; i < 20000; i++) {
        instruction_t instructions[16];
        size_t count = 1 + hk_test_below(12);
        for (size_t at = 0; at < count; at++) {
            uint8_t op = (uint8_t)(1 + hk_test_below(hk_test_below(3) == 0 ? 7 : 5));
            uint8_t argument = (uint8_t)(op == BYTE ? 'a' + hk_test_below(3) : op == SET ? hk_test_below(2) : 0);
            uint16_t target = (uint16_t)(op == JUMP || op == SPLIT ? hk_test_below(count) : 0);
            instructions[at] = at == count - 1 ? (instruction_t){MATCH, 0, 0} : (instruction_t){op, argument, target};
        }
        hk_bytes_t bytes = assemble(sets, 2, instructions, count);
        hk_program_t counted, program = load(bytes);
        HK_CHECK_OK(hk_program_load(bytes, NULL, &counted));
        for (size_t j = 0; j < 8; j++) {
            char text[10];
            size_t length = hk_test_below(sizeof(text));
            for (size_t at = 0; at < length; at++) {
                text[at] = (char)('a' + hk_test_below(3));
            }
            simple_t simple = {.instructions = instructions, .sets = sets, .text = {text, length}};
            size_t expected;
            uint32_t steps;
            bool matches = run_simply(&simple, count, &expected);
            HK_CHECK(hk_program_match(&counted, &space, simple.text, &steps) == matches);
            HK_CHECK_EQUAL_UINT(counted.shape == HK_PROGRAM_GENERAL ? expected : 0, steps);
            HK_CHECK(hk_program_match(&program, &space, simple.text, NULL) == matches);
            matched += matches;
        }
    }
    HK_CHECK(matched > 5000 && matched < 100000);
    hk_program_space_release(&space);
}

/* -- Space --------------------------------------------------------------------------------------------------------- */

HK_TEST(marks_of_earlier_runs_are_never_taken_for_new_ones)
{
    hk_program_t program = load(ASSEMBLE({BYTE, 'a', 0}, {SPLIT, 0, 0}, {BYTE, 'b', 0}, {SPLIT, 0, 0}, {MATCH, 0, 0}));
    hk_program_space_t space;
    hk_program_space_init(&space, hk_test_alloc());
    HK_CHECK_OK(hk_program_space_reserve(&space, 5));
    for (uint32_t left = 0; left < 40; left++) {
        /* What was marked when the stamps were young last time must not count when they are young again. */
        memset(space.marks, 0, 5 * sizeof(*space.marks));
        space.stamp = 0;
        HK_CHECK(hk_program_match(&program, &space, HK_BYTES("ab"), NULL));
        space.stamp = UINT32_MAX - left;
        if (left > 0) {
            memset(space.marks, 0, 5 * sizeof(*space.marks));
        }
        for (size_t i = 0; i < 20; i++) {
            uint32_t steps;
            HK_CHECK(hk_program_match(&program, &space, HK_BYTES("ab"), &steps));
            HK_CHECK_EQUAL_UINT(7, steps);
            HK_CHECK(hk_program_match(&program, &space, HK_BYTES("aabab"), &steps));
            HK_CHECK_EQUAL_UINT(16, steps);
            HK_CHECK(!hk_program_match(&program, &space, HK_BYTES("aaba"), NULL));
        }
        HK_CHECK(space.stamp < 400);
    }
    hk_program_space_release(&space);
}

HK_TEST(space_grows_and_never_shrinks)
{
    hk_program_space_t space;
    hk_program_space_init(&space, hk_test_alloc());
    HK_CHECK_OK(hk_program_space_reserve(&space, 0));
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
    HK_CHECK_OK(hk_program_space_reserve(&space, 100));
    size_t requests = hk_test_requests();
    HK_CHECK_OK(hk_program_space_reserve(&space, 100));
    HK_CHECK_OK(hk_program_space_reserve(&space, 10));
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    HK_CHECK_EQUAL_UINT(100, space.capacity);
    hk_program_space_release(&space);
    HK_CHECK_EQUAL_UINT(0, space.capacity);
}

HK_TEST(without_memory_a_space_stays_as_it_is)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_program_space_t space;
        hk_program_space_init(&space, hk_test_alloc());
        size_t capacity = 0;
        for (size_t wanted = 5; wanted < 50; wanted += 20) {
            hk_status_t status = hk_program_space_reserve(&space, wanted);
            HK_CHECK(status == HK_OK || (status == HK_NO_MEMORY && hk_test_failed()));
            capacity = status == HK_OK ? wanted : capacity;
            HK_CHECK_EQUAL_UINT(capacity, space.capacity);
        }
        hk_program_space_release(&space);
    }
}
