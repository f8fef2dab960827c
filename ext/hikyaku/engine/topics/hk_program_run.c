#include "hk_program_private.h"

void hk_program_space_init(hk_program_space_t *space, const hk_alloc_t *alloc)
{
    *space = (hk_program_space_t){.alloc = alloc};
}

void hk_program_space_release(hk_program_space_t *space)
{
    hk_alloc_free(space->alloc, space->states);
    hk_alloc_free(space->alloc, space->marks);
    hk_program_space_init(space, space->alloc);
}

hk_status_t hk_program_space_reserve(hk_program_space_t *space, size_t instructions)
{
    if (instructions <= space->capacity) {
        return HK_OK;
    }
    uint16_t *states = hk_alloc_zeroed(space->alloc, instructions, 3 * sizeof(*states));
    uint32_t *marks = hk_alloc_zeroed(space->alloc, instructions, sizeof(*marks));
    if (states == NULL || marks == NULL) {
        hk_alloc_free(space->alloc, states);
        hk_alloc_free(space->alloc, marks);
        return HK_NO_MEMORY;
    }
    hk_program_space_release(space);
    space->states = states;
    space->marks = marks;
    space->capacity = instructions;
    return HK_OK;
}

/* -- Running ------------------------------------------------------------------------------------------------------- */

typedef struct hk_run {
    const hk_program_t *program;
    uint32_t *marks;
    uint32_t stamp;
    uint16_t *current, *next, *pending;
    size_t current_count, next_count;
    uint64_t steps;
    bool at_start, at_end, matched;
} hk_run_t;

/* Adds a state and whatever it leads to without reading, and what those that read the byte lead to, to the next ones.
 * A state is marked when it is added to `pending`, so each is there once at most. */
static inline void add(hk_run_t *run, uint16_t first, uint8_t byte)
{
    if (run->marks[first] == run->stamp) {
        return;
    }
    const hk_program_t *program = run->program;
    size_t pending_count = 1;
    run->marks[first] = run->stamp;
    run->pending[0] = first;
    while (pending_count > 0) {
        uint16_t index = run->pending[--pending_count];
        bool reads = false, leads_on = false;
        run->steps++;
        switch (hk_program_op(program, index)) {
        case HK_OP_BYTE:
            reads = hk_program_argument(program, index) == byte;
            break;
        case HK_OP_SET:
            reads = hk_program_in_set(program, hk_program_argument(program, index), byte);
            break;
        case HK_OP_ANY:
            reads = true;
            break;
        case HK_OP_SPLIT:
            leads_on = true;
            /* fall through */
        case HK_OP_JUMP: {
            uint16_t target = hk_program_target(program, index);
            if (run->marks[target] != run->stamp) {
                run->marks[target] = run->stamp;
                run->pending[pending_count++] = target;
            }
            break;
        }
        case HK_OP_START:
            leads_on = run->at_start;
            break;
        case HK_OP_FINISH:
            leads_on = run->at_end;
            break;
        default:
            run->matched = run->at_end;
        }
        uint16_t following = (uint16_t)(index + 1);
        if (reads) {
            run->next[run->next_count++] = following;
        } else if (leads_on && run->marks[following] != run->stamp) {
            run->marks[following] = run->stamp;
            run->pending[pending_count++] = following;
        }
    }
}

/* Stamps for the offsets of one run that no mark of an earlier run equals. */
static uint32_t take_stamps(hk_program_space_t *space, size_t count)
{
    if (count > UINT32_MAX - space->stamp) {
        memset(space->marks, 0, space->capacity * sizeof(*space->marks));
        space->stamp = 0;
    }
    uint32_t first = space->stamp + 1;
    space->stamp += (uint32_t)count;
    return first;
}

static uint64_t allowed_steps(size_t length)
{
    uint64_t allowed = HK_PROGRAM_STEPS + (uint64_t)HK_PROGRAM_STEPS_A_BYTE * length;
    return allowed < HK_PROGRAM_MAX_STEPS ? allowed : HK_PROGRAM_MAX_STEPS;
}

static bool run_states(const hk_program_t *program, hk_program_space_t *space, hk_bytes_t text, uint32_t *steps)
{
    uint64_t allowed = allowed_steps(text.length);
    /* A run that goes on takes a step at each offset: it never has more offsets than allowed steps and one. */
    size_t offsets = text.length < HK_PROGRAM_MAX_STEPS ? text.length + 1 : HK_PROGRAM_MAX_STEPS + 1;
    hk_run_t run = {
        .program = program,
        .marks = space->marks,
        .stamp = take_stamps(space, offsets),
        .current = space->states,
        .next = space->states + space->capacity,
        .pending = space->states + 2 * space->capacity,
        .current_count = 1,
        .at_start = true,
    };
    run.current[0] = 0;
    bool matched = false;
    for (size_t offset = 0; run.current_count > 0; offset++, run.stamp++) {
        run.at_end = offset == text.length;
        uint8_t byte = run.at_end ? 0 : (uint8_t)text.at[offset];
        run.next_count = 0;
        for (size_t i = 0; i < run.current_count; i++) {
            add(&run, run.current[i], byte);
        }
        if (run.steps > allowed) {
            break;
        }
        if (run.at_end) {
            matched = run.matched;
            break;
        }
        uint16_t *swapped = run.current;
        run.current = run.next;
        run.current_count = run.next_count;
        run.next = swapped;
        run.at_start = false;
    }
    *steps = (uint32_t)run.steps;
    return matched;
}

bool hk_program_match(const hk_program_t *program, hk_program_space_t *space, hk_bytes_t text, uint32_t *steps)
{
    uint32_t taken = 0;
    bool matched = true;
    switch (program->shape) {
    case HK_PROGRAM_ANYTHING:
        break;
    case HK_PROGRAM_TEXT:
        matched = hk_bytes_equal(text, program->text);
        break;
    case HK_PROGRAM_PREFIX:
        matched = hk_bytes_start_with(text, program->text);
        break;
    case HK_PROGRAM_SEGMENT: {
        size_t start = program->text.length;
        matched = text.length > start && hk_bytes_start_with(text, program->text) &&
                  memchr(text.at + start, program->excluded, text.length - start) == NULL;
        break;
    }
    case HK_PROGRAM_GENERAL:
        matched = run_states(program, space, text, &taken);
    }
    if (steps != NULL) {
        *steps = taken;
    }
    return matched;
}
