#include "hk_test.h"

#include "hk_alloc.h"

HK_TEST(the_default_allocator_gives_resizes_and_takes)
{
    const hk_alloc_t *alloc = hk_alloc_default();
    char *memory = hk_alloc_new(alloc, 10);
    HK_CHECK(memory != NULL);
    memcpy(memory, "0123456789", 10);
    memory = hk_alloc_resize(alloc, memory, 10000, 2);
    HK_CHECK(memory != NULL);
    HK_CHECK_BYTES("0123456789", hk_bytes(memory, 10));
    HK_CHECK(hk_alloc_resize(alloc, memory, 0, 2) == NULL);
    hk_alloc_free(alloc, NULL);
}

HK_TEST(zeroed_memory_is_zero_to_its_last_byte)
{
    char *memory = hk_alloc_zeroed(hk_test_alloc(), 13, 77);
    for (size_t i = 0; i < 13 * 77; i++) {
        HK_CHECK_EQUAL_INT(0, memory[i]);
    }
    hk_alloc_free(hk_test_alloc(), memory);
}

HK_TEST(a_product_that_overflows_is_no_memory_and_asks_for_none)
{
    char *memory = hk_alloc_new(hk_test_alloc(), 1);
    *memory = 'a';
    static const size_t factors[][2] = {
        {SIZE_MAX, 2}, {2, SIZE_MAX}, {SIZE_MAX / 8 + 1, 8}, {(size_t)1 << 32, (size_t)1 << 32}};
    for (size_t i = 0; i < sizeof(factors) / sizeof(*factors); i++) {
        HK_CHECK(hk_alloc_zeroed(hk_test_alloc(), factors[i][0], factors[i][1]) == NULL);
        HK_CHECK(hk_alloc_resize(hk_test_alloc(), memory, factors[i][0], factors[i][1]) == NULL);
    }
    HK_CHECK_EQUAL_UINT(1, hk_test_requests());
    HK_CHECK_EQUAL_INT('a', *memory);
    hk_alloc_free(hk_test_alloc(), memory);
}

HK_TEST(nothing_can_be_allocated_and_is_not_the_lack_of_memory)
{
    void *none = hk_alloc_new(hk_test_alloc(), 0), *zeroed = hk_alloc_zeroed(hk_test_alloc(), 0, 8);
    HK_CHECK(none != NULL && zeroed != NULL);
    hk_alloc_free(hk_test_alloc(), none);
    hk_alloc_free(hk_test_alloc(), zeroed);
}

HK_TEST(no_memory_is_null_and_leaves_what_is_there)
{
    HK_EACH_FAILING_ALLOCATION {
        char *memory = hk_alloc_new(hk_test_alloc(), 4);
        if (memory != NULL) {
            memcpy(memory, "1234", 4);
            char *larger = hk_alloc_resize(hk_test_alloc(), memory, 8, 1);
            memory = larger != NULL ? larger : memory;
            HK_CHECK_BYTES("1234", hk_bytes(memory, 4));
        }
        hk_alloc_free(hk_test_alloc(), memory);
        char *zeroed = hk_alloc_zeroed(hk_test_alloc(), 2, 2);
        HK_CHECK(zeroed == NULL || zeroed[3] == 0);
        hk_alloc_free(hk_test_alloc(), zeroed);
    }
}

HK_TEST(every_status_has_a_name_and_a_text)
{
    HK_CHECK_BYTES("HK_OK", hk_test_text(hk_status_name(HK_OK)));
    HK_CHECK_BYTES("HK_TOO_MANY_OF_ADDRESS", hk_test_text(hk_status_name(HK_TOO_MANY_OF_ADDRESS)));
    HK_CHECK_BYTES("done", hk_test_text(hk_status_text(HK_OK)));
    HK_CHECK_BYTES("a system call failed; errno says why", hk_test_text(hk_status_text(HK_SYSTEM)));
}
