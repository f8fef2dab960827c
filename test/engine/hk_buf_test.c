#include "hk_test.h"

#include "hk_buf.h"

HK_TEST(a_buffer_without_bytes_has_no_memory)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    HK_CHECK_EQUAL_UINT(0, hk_buf_bytes(&buf).length);
    HK_CHECK_OK(hk_buf_append(&buf, hk_bytes(NULL, 0)));
    HK_CHECK_OK(hk_buf_reserve(&buf, 0));
    hk_buf_consume(&buf, 7);
    hk_buf_clear(&buf);
    HK_CHECK_EQUAL_UINT(0, hk_test_requests());
    hk_buf_release(&buf);
}

HK_TEST(what_is_appended_at_the_end_is_consumed_from_the_beginning)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("one\0")));
    HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("two")));
    HK_CHECK_BYTES("one\0two", hk_buf_bytes(&buf));
    hk_buf_consume(&buf, 4);
    HK_CHECK_BYTES("two", hk_buf_bytes(&buf));
    hk_buf_consume(&buf, 4);
    HK_CHECK_BYTES("", hk_buf_bytes(&buf));
    hk_buf_release(&buf);
}

HK_TEST(numbers_are_appended_in_decimal)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    static const uint64_t numbers[] = {0, 9, 10, 1234567890, UINT64_MAX};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
        HK_CHECK_OK(hk_buf_append_number(&buf, numbers[i]));
        HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES(" ")));
    }
    HK_CHECK_BYTES("0 9 10 1234567890 18446744073709551615 ", hk_buf_bytes(&buf));
    hk_buf_release(&buf);
}

HK_TEST(what_was_reserved_can_be_written_to_the_last_byte)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    for (size_t size = 1; size < 300; size++) {
        HK_CHECK_OK(hk_buf_reserve(&buf, size));
        memset(hk_buf_end(&buf), (int)size, size);
        hk_buf_grew(&buf, size);
        HK_CHECK_EQUAL_UINT(size * (size + 1) / 2, hk_buf_bytes(&buf).length);
        HK_CHECK(buf.start + buf.length <= buf.capacity);
    }
    hk_buf_release(&buf);
}

HK_TEST(what_was_reserved_is_appended_without_asking_for_memory)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    HK_CHECK_OK(hk_buf_reserve(&buf, 1000));
    size_t requests = hk_test_requests();
    for (int i = 0; i < 500; i++) {
        HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("ab")));
    }
    hk_buf_clear(&buf);
    HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("again")));
    HK_CHECK_BYTES("again", hk_buf_bytes(&buf));
    HK_CHECK_EQUAL_UINT(requests, hk_test_requests());
    hk_buf_release(&buf);
    HK_CHECK_EQUAL_UINT(0, hk_test_blocks());
    HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("and again")));
    hk_buf_release(&buf);
}

HK_TEST(a_buffer_that_grows_byte_by_byte_asks_for_memory_seldom)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    for (int i = 0; i < 100000; i++) {
        HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("a")));
    }
    HK_CHECK(hk_test_requests() < 20);
    hk_buf_release(&buf);
}

HK_TEST(bytes_that_pass_through_leave_the_memory_as_small_as_what_waits)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    for (int i = 0; i < 1000; i++) {
        HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("0123456789")));
    }
    for (int i = 0; i < 100000; i++) {
        hk_buf_consume(&buf, 10);
        HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("0123456789")));
    }
    HK_CHECK_EQUAL_UINT(10000, hk_buf_bytes(&buf).length);
    HK_CHECK(hk_test_bytes_in_use() <= 40000);
    hk_buf_release(&buf);
}

HK_TEST(a_size_that_overflows_is_no_memory)
{
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    HK_CHECK_OK(hk_buf_append(&buf, HK_BYTES("here")));
    static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 3, SIZE_MAX - 4, SIZE_MAX / 2 + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        HK_CHECK_STATUS(HK_NO_MEMORY, hk_buf_reserve(&buf, sizes[i]));
    }
    HK_CHECK_BYTES("here", hk_buf_bytes(&buf));
    hk_buf_release(&buf);
}

HK_TEST(random_operations_do_as_a_naive_buffer_does)
{
    enum { LIMIT = 3000 };
    char model[2 * LIMIT + 100];
    size_t length = 0;
    hk_buf_t buf;
    hk_buf_init(&buf, hk_test_alloc());
    for (int i = 0; i < 20000; i++) {
        if (hk_test_below(2) == 0 && length < LIMIT) {
            char bytes[100];
            size_t count = hk_test_below(sizeof(bytes));
            memset(bytes, 'a' + (int)hk_test_below(26), count);
            HK_CHECK_OK(hk_buf_append(&buf, hk_bytes(bytes, count)));
            memcpy(model + length, bytes, count);
            length += count;
        } else {
            size_t count = hk_test_below(hk_test_below(50) == 0 ? LIMIT : 100), taken = count < length ? count : length;
            hk_buf_consume(&buf, count);
            memmove(model, model + taken, length - taken);
            length -= taken;
        }
        HK_CHECK_BYTES(hk_bytes(model, length), hk_buf_bytes(&buf));
    }
    hk_buf_release(&buf);
}

HK_TEST(without_memory_the_buffer_is_as_it_was)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_buf_t buf;
        hk_buf_init(&buf, hk_test_alloc());
        size_t length = 0;
        for (int i = 0; i < 60; i++) {
            hk_bytes_t before = hk_buf_bytes(&buf);
            hk_status_t status =
                i % 2 == 0 ? hk_buf_append(&buf, HK_BYTES("0123456789")) : hk_buf_append_number(&buf, 1234567890);
            if (status == HK_OK) {
                length += 10;
            } else {
                HK_CHECK_STATUS(HK_NO_MEMORY, status);
                HK_CHECK(hk_buf_bytes(&buf).at == before.at && hk_buf_bytes(&buf).length == before.length);
            }
            HK_CHECK_EQUAL_UINT(length, hk_buf_bytes(&buf).length);
            if (i % 7 == 6 && length > 0) {
                hk_buf_consume(&buf, 10);
                length -= 10;
            }
        }
        hk_buf_release(&buf);
    }
}
