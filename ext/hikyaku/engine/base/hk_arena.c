#include "hk_arena.h"

void hk_arena_init(hk_arena_t *arena, const hk_alloc_t *alloc, uint32_t piece_bytes, uint32_t idle_limit)
{
    *arena = (hk_arena_t){.alloc = alloc, .piece_bytes = piece_bytes, .idle_limit = idle_limit};
    hk_list_init(&arena->idle);
}

static void free_piece(hk_piece_t *piece)
{
    hk_arena_t *arena = piece->arena;
    if (piece->bytes != NULL) {
        arena->bytes -= piece->size;
        hk_alloc_free(arena->alloc, piece->bytes);
    }
    hk_alloc_free(arena->alloc, piece);
}

void hk_arena_release(hk_arena_t *arena)
{
    for (hk_list_t *link; (link = hk_list_shift(&arena->idle)) != NULL;) {
        free_piece(HK_OWNER(link, hk_piece_t, link));
    }
    arena->idle_count = 0;
}

hk_arena_t *hk_arena_new(const hk_alloc_t *alloc, uint32_t piece_bytes, uint32_t idle_limit)
{
    hk_arena_t *arena = hk_alloc_new(alloc, sizeof(*arena));
    if (arena != NULL) {
        hk_arena_init(arena, alloc, piece_bytes, idle_limit);
    }
    return arena;
}

void hk_arena_free(hk_arena_t *arena)
{
    if (arena == NULL) {
        return;
    }
    hk_arena_release(arena);
    if (arena->pieces == 0) {
        hk_alloc_free(arena->alloc, arena);
    } else {
        arena->orphaned = true;
    }
}

static hk_piece_t *make_piece(hk_arena_t *arena, uint32_t size)
{
    hk_piece_t *piece = hk_alloc_zeroed(arena->alloc, 1, sizeof(*piece));
    char *bytes = hk_alloc_new(arena->alloc, size);
    if (piece == NULL || bytes == NULL) {
        hk_alloc_free(arena->alloc, piece);
        hk_alloc_free(arena->alloc, bytes);
        return NULL;
    }
    piece->arena = arena;
    piece->bytes = bytes;
    piece->size = size;
    arena->bytes += size;
    return piece;
}

hk_piece_t *hk_piece_new(hk_arena_t *arena, size_t size)
{
    if (size > UINT32_MAX) {
        return NULL;
    }
    hk_piece_t *piece;
    hk_list_t *link = size <= arena->piece_bytes ? hk_list_shift(&arena->idle) : NULL;
    if (link != NULL) {
        arena->idle_count--;
        piece = HK_OWNER(link, hk_piece_t, link);
        piece->used = 0;
        piece->segment = 0;
        piece->offset = 0;
    } else {
        piece = make_piece(arena, size > arena->piece_bytes ? (uint32_t)size : arena->piece_bytes);
    }
    if (piece != NULL) {
        piece->references = 1;
        arena->pieces++;
    }
    return piece;
}

void hk_piece_release(hk_piece_t *piece)
{
    if (piece == NULL || --piece->references > 0) {
        return;
    }
    hk_arena_t *arena = piece->arena;
    hk_list_remove(&piece->link);
    arena->pieces--;
    if (piece->bytes != NULL && piece->size == arena->piece_bytes && arena->idle_count < arena->idle_limit &&
        !arena->orphaned) {
        hk_list_append(&arena->idle, &piece->link);
        arena->idle_count++;
    } else {
        free_piece(piece);
    }
    if (arena->orphaned && arena->pieces == 0) {
        hk_alloc_free(arena->alloc, arena);
    }
}

void hk_piece_evict(hk_piece_t *piece)
{
    if (piece->bytes != NULL) {
        piece->arena->bytes -= piece->size;
        hk_alloc_free(piece->arena->alloc, piece->bytes);
        piece->bytes = NULL;
    }
}
