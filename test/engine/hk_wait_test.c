#include "hk_test.h"
#include "hk_wait.h"

typedef struct place {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    int things;
} place_t;

static void *fill(void *argument)
{
    place_t *place = argument;
    pthread_mutex_lock(&place->mutex);
    place->things++;
    pthread_cond_signal(&place->filled);
    pthread_mutex_unlock(&place->mutex);
    return NULL;
}

HK_TEST(a_wait_ends_when_something_has_happened_or_when_its_time_has_come)
{
    static const int64_t timeouts[] = {-1, 0, 1000000, INT64_C(3600000000000), INT64_MAX};
    for (size_t i = 0; i < sizeof(timeouts) / sizeof(timeouts[0]); i++) {
        hk_test_note("case %zu", i);
        place_t place = {0};
        pthread_t thread;
        HK_CHECK_OK(hk_wait_init(&place.mutex, &place.filled, &place.emptied));
        int64_t until = hk_wait_end(timeouts[i]);
        HK_CHECK_EQUAL_INT(0, pthread_create(&thread, NULL, fill, &place));
        pthread_mutex_lock(&place.mutex);
        hk_status_t status = HK_OK;
        while (place.things == 0 && status == HK_OK) {
            status = hk_wait_until(&place.filled, &place.mutex, until);
        }
        HK_CHECK(place.things == 1 || hk_wait_now() >= until);
        HK_CHECK(place.things == 1 || status == HK_AGAIN);
        pthread_mutex_unlock(&place.mutex);
        HK_CHECK_EQUAL_INT(0, pthread_join(thread, NULL));
        hk_wait_release(&place.mutex, &place.filled, &place.emptied);
    }
}

HK_TEST(a_wait_whose_end_is_past_does_not_last)
{
    place_t place = {0};
    HK_CHECK_OK(hk_wait_init(&place.mutex, &place.filled, &place.emptied));
    pthread_mutex_lock(&place.mutex);
    HK_CHECK_STATUS(HK_AGAIN, hk_wait_until(&place.filled, &place.mutex, hk_wait_now()));
    HK_CHECK_STATUS(HK_AGAIN, hk_wait_until(&place.emptied, &place.mutex, 1));
    pthread_mutex_unlock(&place.mutex);
    hk_wait_release(&place.mutex, &place.filled, &place.emptied);
}

HK_TEST(the_end_of_a_wait_is_counted_from_now_and_never_where_it_cannot_be_counted)
{
    HK_CHECK_EQUAL_INT(HK_NEVER, hk_wait_end(-1));
    HK_CHECK_EQUAL_INT(HK_NEVER, hk_wait_end(INT64_MAX));
    int64_t before = hk_wait_now(), until = hk_wait_end(5), after = hk_wait_now();
    HK_CHECK(until >= before + 5 && until <= after + 5);
}
