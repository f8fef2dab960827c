#include "hk_test.h"

#include "hk_capability.h"

static const uint64_t secret[2] = {1, 2}, other_secret[2] = {1, 3};

HK_TEST(a_capability_leads_back_to_its_number_and_looks_like_no_other)
{
    hk_capability_keys_t keys, others;
    hk_capability_init(&keys, secret);
    hk_capability_init(&others, other_secret);
    char before[HK_CAPABILITY_BYTES] = {0};
    for (uint64_t i = 0; i < 2000; i++) {
        uint64_t number = i < 1000 ? i : hk_test_random(), found = 0;
        char capability[HK_CAPABILITY_BYTES];
        hk_capability_write(&keys, number, capability);
        hk_bytes_t bytes = hk_bytes(capability, sizeof(capability));
        HK_CHECK_OK(hk_capability_read(&keys, bytes, &found));
        HK_CHECK_EQUAL_UINT(number, found);
        HK_CHECK_STATUS(HK_NOT_FOUND, hk_capability_read(&others, bytes, &found));
        size_t same = 0;
        for (size_t j = 0; j < sizeof(capability); j++) {
            same += capability[j] == before[j];
        }
        HK_CHECK(same < 10);
        memcpy(before, capability, sizeof(before));
    }
}

HK_TEST(what_differs_in_one_bit_is_no_capability)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    hk_capability_keys_t keys;
    hk_capability_init(&keys, secret);
    char capability[HK_CAPABILITY_BYTES];
    hk_capability_write(&keys, 7, capability);
    for (size_t i = 0; i < sizeof(capability); i++) {
        char digit = capability[i];
        for (unsigned bit = 0; bit < 6; bit++) {
            uint64_t found = 77;
            capability[i] = digits[(size_t)(strchr(digits, digit) - digits) ^ (size_t)1 << bit];
            HK_CHECK_STATUS(HK_NOT_FOUND, hk_capability_read(&keys, hk_bytes(capability, sizeof(capability)), &found));
            HK_CHECK_EQUAL_UINT(77, found);
        }
        capability[i] = digit;
    }
}

HK_TEST(what_has_not_the_form_is_no_capability)
{
    hk_capability_keys_t keys;
    uint64_t found;
    char text[HK_CAPABILITY_BYTES + 1];
    hk_capability_init(&keys, secret);
    hk_capability_write(&keys, 7, text);
    text[HK_CAPABILITY_BYTES] = 'A';
    HK_CHECK_OK(hk_capability_read(&keys, hk_bytes(text, HK_CAPABILITY_BYTES), &found));
    for (size_t length = 0; length <= sizeof(text); length++) {
        if (length != HK_CAPABILITY_BYTES) {
            HK_CHECK_STATUS(HK_NOT_FOUND, hk_capability_read(&keys, hk_bytes(text, length), &found));
        }
    }
    for (size_t i = 0; i < HK_CAPABILITY_BYTES; i++) {
        char digit = text[i];
        for (int byte = -128; byte < 128; byte++) {
            text[i] = (char)byte;
            HK_CHECK_EQUAL_INT(text[i] == digit,
                               hk_capability_read(&keys, hk_bytes(text, HK_CAPABILITY_BYTES), &found) == HK_OK);
        }
        text[i] = digit;
    }
}
