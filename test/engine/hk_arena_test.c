#include "hk_arena.h"

#include "hk_test.h"

HK_TEST(a_piece_goes_back_with_its_last_reference_and_is_used_again)
{
    hk_arena_t arena;
    hk_arena_init(&arena, hk_test_alloc(), 1000, 1);
    hk_piece_t *piece = hk_piece_new(&arena, 10), *other = hk_piece_new(&arena, 1000);
    HK_CHECK_EQUAL_UINT(1000, piece->size);
    HK_CHECK_EQUAL_UINT(2000, arena.bytes);
    piece->used = 7;
    HK_CHECK(hk_piece_retain(piece) == piece);
    hk_piece_release(piece);
    HK_CHECK_EQUAL_UINT(0, arena.idle_count);
    hk_piece_release(piece);
    hk_piece_release(other);
    HK_CHECK_EQUAL_UINT(1, arena.idle_count);
    HK_CHECK_EQUAL_UINT(1000, arena.bytes);
    size_t requests = hk_test_requests();
    HK_CHECK(hk_piece_new(&arena, 500) == piece);
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    HK_CHECK_EQUAL_UINT(0, piece->used);
    hk_piece_release(piece);
    hk_piece_release(NULL);
    hk_arena_release(&arena);
    HK_CHECK_EQUAL_UINT(0, arena.bytes);
}

HK_TEST(a_large_piece_is_not_kept)
{
    hk_arena_t arena;
    hk_arena_init(&arena, hk_test_alloc(), 1000, 4);
    hk_piece_t *piece = hk_piece_new(&arena, 1001);
    HK_CHECK_EQUAL_UINT(1001, piece->size);
    hk_piece_release(piece);
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
    HK_CHECK(hk_piece_new(&arena, (size_t)UINT32_MAX + 1) == NULL);
}

HK_TEST(an_evicted_piece_holds_no_bytes_and_leaves_its_list_when_it_goes)
{
    hk_arena_t arena;
    hk_list_t list;
    hk_list_init(&list);
    hk_arena_init(&arena, hk_test_alloc(), 1000, 4);
    hk_piece_t *piece = hk_piece_new(&arena, 10);
    hk_list_append(&list, &piece->link);
    hk_piece_evict(piece);
    hk_piece_evict(piece);
    HK_CHECK(piece->bytes == NULL);
    HK_CHECK_EQUAL_UINT(0, arena.bytes);
    hk_piece_release(piece);
    HK_CHECK(hk_list_empty(&list));
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
}

HK_TEST(an_arena_outlives_whoever_made_it_as_long_as_its_pieces)
{
    hk_arena_t *arena = hk_arena_new(hk_test_alloc(), 1000, 4);
    hk_piece_t *idle = hk_piece_new(arena, 10), *piece = hk_piece_new(arena, 10), *last = hk_piece_new(arena, 10);
    hk_piece_release(idle);
    hk_arena_free(arena);
    memset(piece->bytes, 'x', piece->size);
    hk_piece_release(piece);
    HK_CHECK(hk_test_blocks() > 0);
    hk_piece_evict(last);
    hk_piece_release(last);
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
    hk_arena_free(NULL);
    hk_arena_free(hk_arena_new(hk_test_alloc(), 1000, 4));
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
}

HK_TEST(without_memory_there_is_no_piece)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_arena_t *arena = hk_arena_new(hk_test_alloc(), 1000, 4);
        if (arena != NULL) {
            hk_piece_t *piece = hk_piece_new(arena, 10);
            HK_CHECK((piece == NULL) == hk_test_failed());
            HK_CHECK_EQUAL_UINT(piece != NULL ? 1000 : 0, arena->bytes);
            hk_piece_release(piece);
        }
        hk_arena_free(arena);
    }
}
