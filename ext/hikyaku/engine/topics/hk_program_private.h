/* hk_program_private.h: the bytes of a program, for those who have checked that it is one. */
#ifndef HK_PROGRAM_PRIVATE_H
#define HK_PROGRAM_PRIVATE_H

#include "hk_program.h"

enum {
    HK_PROGRAM_VERSION = 1,
    HK_PROGRAM_HEADER_BYTES = 4,
    HK_PROGRAM_SET_BYTES = 32,
    HK_PROGRAM_INSTRUCTION_BYTES = 4,
    HK_PROGRAM_MAX_INSTRUCTIONS = 16384,
    HK_PROGRAM_STEPS = 1024,
    HK_PROGRAM_STEPS_A_BYTE = 32,
    HK_PROGRAM_MAX_STEPS = 65536
};

enum { HK_OP_MATCH, HK_OP_BYTE, HK_OP_SET, HK_OP_ANY, HK_OP_JUMP, HK_OP_SPLIT, HK_OP_START, HK_OP_FINISH, HK_OPS };

static inline uint8_t hk_program_op(const hk_program_t *program, size_t index)
{
    return program->instructions[index * HK_PROGRAM_INSTRUCTION_BYTES];
}

static inline uint8_t hk_program_argument(const hk_program_t *program, size_t index)
{
    return program->instructions[index * HK_PROGRAM_INSTRUCTION_BYTES + 1];
}

static inline uint16_t hk_program_target(const hk_program_t *program, size_t index)
{
    const uint8_t *at = program->instructions + index * HK_PROGRAM_INSTRUCTION_BYTES + 2;
    return (uint16_t)(at[0] << 8 | at[1]);
}

static inline bool hk_program_in_set(const hk_program_t *program, size_t set, uint8_t byte)
{
    return program->sets[set * HK_PROGRAM_SET_BYTES + (byte >> 3)] >> (byte & 7) & 1;
}

#endif
