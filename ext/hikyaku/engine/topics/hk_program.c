#include "hk_program.h"

#include "hk_program_private.h"

static bool has_target(uint8_t op)
{
    return op == HK_OP_JUMP || op == HK_OP_SPLIT;
}

static bool is_valid(const hk_program_t *program, size_t index)
{
    uint8_t op = hk_program_op(program, index), argument = hk_program_argument(program, index);
    uint16_t target = hk_program_target(program, index);
    if (op >= HK_OPS || (op == HK_OP_MATCH) != (index == program->instruction_count - 1u)) {
        return false;
    }
    if (op == HK_OP_SET ? argument >= program->set_count : op != HK_OP_BYTE && argument != 0) {
        return false;
    }
    return has_target(op) ? target < program->instruction_count : target == 0;
}

/* -- Shapes -------------------------------------------------------------------------------------------------------- */

static bool is(const hk_program_t *program, size_t index, uint8_t op, size_t target)
{
    return hk_program_op(program, index) == op && hk_program_target(program, index) == target;
}

/* Whether all bytes but one are in a set. */
static bool all_but_one(const hk_program_t *program, size_t set, uint8_t *excluded)
{
    size_t missing = 0;
    for (unsigned byte = 0; byte < 256; byte++) {
        if (!hk_program_in_set(program, set, (uint8_t)byte)) {
            *excluded = (uint8_t)byte;
            missing++;
        }
    }
    return missing == 1;
}

static void recognise(hk_program_t *program, char *literals)
{
    size_t count = program->instruction_count, bytes = 0;
    while (hk_program_op(program, bytes) == HK_OP_BYTE) {
        bytes++;
    }
    if (bytes > 0 && literals == NULL) {
        return;
    }
    if (bytes + 1 == count && literals != NULL) {
        program->shape = HK_PROGRAM_TEXT;
    } else if (bytes + 4 == count && is(program, bytes, HK_OP_SPLIT, count - 1) &&
               is(program, bytes + 1, HK_OP_ANY, 0) && is(program, bytes + 2, HK_OP_JUMP, bytes)) {
        program->shape = bytes > 0 ? HK_PROGRAM_PREFIX : HK_PROGRAM_ANYTHING;
    } else if (bytes > 0 && bytes + 3 == count && is(program, bytes, HK_OP_SET, 0) &&
               is(program, bytes + 1, HK_OP_SPLIT, bytes) &&
               all_but_one(program, hk_program_argument(program, bytes), &program->excluded)) {
        program->shape = HK_PROGRAM_SEGMENT;
    } else {
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        literals[i] = (char)hk_program_argument(program, i);
    }
    program->text = bytes > 0 ? hk_bytes(literals, bytes) : HK_BYTES("");
}

hk_status_t hk_program_load(hk_bytes_t bytes, char *literals, hk_program_t *program)
{
    const uint8_t *at = (const uint8_t *)bytes.at;
    if (bytes.length < HK_PROGRAM_HEADER_BYTES || at[0] != HK_PROGRAM_VERSION) {
        return HK_INVALID;
    }
    size_t sets = at[1], instructions = (size_t)at[2] << 8 | at[3];
    size_t sets_size = sets * HK_PROGRAM_SET_BYTES;
    if (instructions == 0 || instructions > HK_PROGRAM_MAX_INSTRUCTIONS ||
        bytes.length != HK_PROGRAM_HEADER_BYTES + sets_size + instructions * HK_PROGRAM_INSTRUCTION_BYTES) {
        return HK_INVALID;
    }
    hk_program_t loaded = {
        .shape = HK_PROGRAM_GENERAL,
        .instruction_count = (uint16_t)instructions,
        .set_count = (uint8_t)sets,
        .sets = at + HK_PROGRAM_HEADER_BYTES,
        .instructions = at + HK_PROGRAM_HEADER_BYTES + sets_size,
        .text = HK_BYTES(""),
    };
    for (size_t i = 0; i < instructions; i++) {
        if (!is_valid(&loaded, i)) {
            return HK_INVALID;
        }
    }
    recognise(&loaded, literals);
    *program = loaded;
    return HK_OK;
}
