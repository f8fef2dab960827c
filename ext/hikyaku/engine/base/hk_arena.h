/* hk_arena.h: memory for bytes that come in order and go in about the same order.
 *
 *     piece: [ refs │ used ▒▒▒▒▒▒▒▒▒▒▒▒░░░░ size ]
 *
 * Bytes are laid one behind the other into pieces; a piece goes back when nobody refers to it any more and it is no
 * longer the one that is being filled. Pieces of the usual size are kept for the next use, some of them.
 */
#ifndef HK_ARENA_H
#define HK_ARENA_H

#include "hk_alloc.h"
#include "hk_list.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct hk_arena hk_arena_t;

typedef struct hk_piece {
    hk_list_t link; /* whoever keeps lists of pieces; a piece leaves its list when it goes back */
    hk_arena_t *arena;
    char *bytes; /* NULL: given back early (hk_piece_evict); they stand on the disk */
    uint32_t references;
    uint32_t used, size;
    uint64_t segment; /* the journal's: where it stands on the disk. 0: nowhere */
    uint32_t offset;  /* of its first byte in that segment */
} hk_piece_t;

struct hk_arena {
    const hk_alloc_t *alloc;
    uint32_t piece_bytes;
    uint32_t idle_count, idle_limit;
    hk_list_t idle;
    size_t bytes;  /* of all pieces that have their bytes, idle ones too */
    size_t pieces; /* that somebody refers to */
    bool orphaned; /* hk_arena_free was called: it goes with its last piece */
};

/* An empty arena without memory, which must not be moved. idle_limit: pieces that are kept for the next use. */
void hk_arena_init(hk_arena_t *arena, const hk_alloc_t *alloc, uint32_t piece_bytes, uint32_t idle_limit);

/* Gives the idle pieces back; all others must be gone. */
void hk_arena_release(hk_arena_t *arena);

/* An arena that outlives whoever made it for as long as somebody refers to a piece of it. NULL: there is no memory. */
hk_arena_t *hk_arena_new(const hk_alloc_t *alloc, uint32_t piece_bytes, uint32_t idle_limit);

/* Gives the idle pieces back, and the arena, now or with the last of its pieces. NULL is allowed. */
void hk_arena_free(hk_arena_t *arena);

/* A piece of at least `size` bytes with one reference, or NULL: there is no memory. */
hk_piece_t *hk_piece_new(hk_arena_t *arena, size_t size);

static inline hk_piece_t *hk_piece_retain(hk_piece_t *piece)
{
    piece->references++;
    return piece;
}

/* Lets go of a piece; it goes back with the last reference. NULL is allowed. */
void hk_piece_release(hk_piece_t *piece);

/* Gives the bytes back although somebody refers to the piece: they can be read from the disk. Harmless when it was done
 * before. */
void hk_piece_evict(hk_piece_t *piece);

#endif
