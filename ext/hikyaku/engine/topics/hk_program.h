/* hk_program.h: runs topic programs (docs/topic-program.md) in linear time.
 *
 * A program is bytes; it is checked once (hk_program_load) and then run any number of times. Simple shapes (a fixed
 * text, a text and anything behind it, a text and one component behind it) are recognised when it is loaded and decided
 * by comparison; all others run all their states together.
 */
#ifndef HK_PROGRAM_H
#define HK_PROGRAM_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdint.h>

typedef enum hk_program_shape {
    HK_PROGRAM_ANYTHING, /* SPLIT ANY JUMP alone */
    HK_PROGRAM_TEXT,     /* only BYTEs */
    HK_PROGRAM_PREFIX,   /* BYTEs, then anything */
    HK_PROGRAM_SEGMENT,  /* one BYTE or more, then one or more bytes of a set of all but one */
    HK_PROGRAM_GENERAL
} hk_program_shape_t;

/* A program as it lies in somebody's bytes, which must outlive it. */
typedef struct hk_program {
    hk_program_shape_t shape;
    uint16_t instruction_count;
    uint8_t set_count;
    const uint8_t *sets;         /* 32 bytes each */
    const uint8_t *instructions; /* 4 bytes each */
    hk_bytes_t text;             /* of the simple shapes; may lie in memory that hk_program_load was given */
    uint8_t excluded;            /* HK_PROGRAM_SEGMENT: the byte that is not in the set */
} hk_program_t;

/* Where programs run: the states that are open, and which were added at an offset already. Shared by any number of
 * programs, one run after the other. */
typedef struct hk_program_space {
    const hk_alloc_t *alloc;
    uint16_t *states; /* three lists of `capacity`: the states of this offset, of the next, and what is not looked at */
    uint32_t *marks;  /* the stamp of the offset at which an instruction was added last */
    uint32_t stamp;
    size_t capacity; /* instructions */
} hk_program_space_t;

/* An empty space without memory. */
void hk_program_space_init(hk_program_space_t *space, const hk_alloc_t *alloc);

/* Gives the memory back; the space is empty and can be used again. */
void hk_program_space_release(hk_program_space_t *space);

/* Makes room for programs of so many instructions; it never shrinks. HK_OK, or HK_NO_MEMORY (unchanged). */
hk_status_t hk_program_space_reserve(hk_program_space_t *space, size_t instructions);

/* Checks a program's bytes and recognises its shape.
 *
 * bytes     one whole program; borrowed for as long as the program is used.
 * literals  room for at least as many bytes as the program has instructions, which keeps the text of simple shapes;
 *           may be NULL, then no shape but HK_PROGRAM_ANYTHING is recognised.
 *
 * HK_OK; HK_INVALID: another version, an operation, set or target that does not exist, an argument or target that says
 * nothing and is not 0, a MATCH that is not the last instruction or a last one that is none, lengths that disagree. */
hk_status_t hk_program_load(hk_bytes_t bytes, char *literals, hk_program_t *program);

/* Whether the whole text matches. O(text) for simple shapes, else O(instructions x text) with the limit on steps of
 * docs/topic-program.md: beyond it the text does not match.
 *
 * space  reserved for the program's instructions; simple shapes need none.
 * steps  how many steps it took, 0 for simple shapes; may be NULL. */
bool hk_program_match(const hk_program_t *program, hk_program_space_t *space, hk_bytes_t text, uint32_t *steps);

#endif
