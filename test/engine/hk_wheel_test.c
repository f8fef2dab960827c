#include "hk_test.h"

#include "hk_wheel.h"

enum { MOST = 64 };

typedef struct thing {
    hk_list_t link;
    int64_t at, came;
} thing_t;

typedef struct record {
    hk_wheel_t *wheel;
    int64_t now, again; /* filed again so much later; 0: not */
    size_t count;
} record_t;

static void came(void *context, hk_list_t *link)
{
    record_t *record = context;
    thing_t *thing = HK_OWNER(link, thing_t, link);
    thing->came = record->now;
    record->count++;
    if (record->again > 0) {
        thing->at = record->now + record->again;
        hk_wheel_file(record->wheel, &thing->link, thing->at, record->now);
    }
}

static void file(hk_wheel_t *wheel, thing_t *thing, int64_t at, int64_t now)
{
    thing->at = at;
    thing->came = -1;
    hk_wheel_file(wheel, &thing->link, at, now);
}

HK_TEST(an_empty_wheel_has_nothing_to_come)
{
    hk_wheel_t wheel;
    record_t record = {.wheel = &wheel, .now = 5};
    HK_CHECK_OK(hk_wheel_init(&wheel, hk_test_alloc(), 100, 10));
    HK_CHECK_EQUAL_INT(INT64_MAX, hk_wheel_next(&wheel));
    hk_wheel_turn(&wheel, 1000, came, &record);
    HK_CHECK_EQUAL_UINT(0, record.count);
    hk_wheel_release(&wheel);
    hk_wheel_release(&wheel);
}

HK_TEST(a_thing_comes_when_its_slot_begins)
{
    hk_wheel_t wheel;
    thing_t early = {.at = 0}, late = {.at = 0};
    record_t record = {.wheel = &wheel};
    HK_CHECK_OK(hk_wheel_init(&wheel, hk_test_alloc(), 100, 10));
    file(&wheel, &late, 1058, 1000);
    file(&wheel, &early, 1031, 1000);
    HK_CHECK_EQUAL_INT(1030, hk_wheel_next(&wheel));
    record.now = 1029;
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_UINT(0, record.count);
    record.now = 1030;
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_INT(1030, early.came);
    HK_CHECK(!hk_list_holds(&early.link));
    HK_CHECK_EQUAL_INT(1050, hk_wheel_next(&wheel));
    hk_wheel_remove(&wheel, &late.link);
    hk_wheel_remove(&wheel, &late.link);
    HK_CHECK_EQUAL_INT(INT64_MAX, hk_wheel_next(&wheel));
    hk_wheel_release(&wheel);
}

HK_TEST(what_is_filed_again_comes_again_whatever_was_missed)
{
    hk_wheel_t wheel;
    thing_t things[MOST] = {{.at = 0}};
    record_t record = {.wheel = &wheel, .again = 90};
    HK_CHECK_OK(hk_wheel_init(&wheel, hk_test_alloc(), 100, 10));
    for (size_t i = 0; i < MOST; i++) {
        file(&wheel, &things[i], 1010 + (int64_t)i, 1000);
    }
    record.now = 5000; /* nobody looked for much longer than the span */
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_UINT(MOST, record.count);
    HK_CHECK_EQUAL_INT(5090, hk_wheel_next(&wheel));
    record.now = 5089;
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_UINT(MOST, record.count);
    record.now = 5090;
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_UINT(2 * MOST, record.count);
    hk_wheel_release(&wheel);
}

HK_TEST(however_seldom_the_wheel_is_turned_what_is_filed_within_the_span_does_not_come_early)
{
    hk_wheel_t wheel;
    thing_t old = {.at = 0}, gone = {.at = 0}, new = {.at = 0};
    record_t record = {.wheel = &wheel};
    HK_CHECK_OK(hk_wheel_init(&wheel, hk_test_alloc(), 100, 10));
    file(&wheel, &old, 1020, 1000);
    file(&wheel, &gone, 1025, 1000);
    file(&wheel, &new, 1195, 1095);
    HK_CHECK_EQUAL_INT(1020, hk_wheel_next(&wheel));
    hk_wheel_remove(&wheel, &gone.link);
    HK_CHECK_EQUAL_INT(1020, hk_wheel_next(&wheel));
    record.now = 1189;
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_INT(1189, old.came);
    HK_CHECK_EQUAL_UINT(1, record.count);
    HK_CHECK_EQUAL_INT(1190, hk_wheel_next(&wheel));
    file(&wheel, &old, 1200, 1189);
    file(&wheel, &gone, 1290, 1205);
    hk_wheel_remove(&wheel, &old.link);
    hk_wheel_remove(&wheel, &new.link);
    HK_CHECK_EQUAL_INT(1290, hk_wheel_next(&wheel));
    hk_wheel_remove(&wheel, &gone.link);
    HK_CHECK_EQUAL_INT(INT64_MAX, hk_wheel_next(&wheel));
    hk_wheel_release(&wheel);
}

HK_TEST(what_lies_too_far_ahead_comes_early_and_what_lies_behind_comes_next)
{
    hk_wheel_t wheel;
    thing_t far = {.at = 0}, past = {.at = 0};
    record_t record = {.wheel = &wheel};
    HK_CHECK_OK(hk_wheel_init(&wheel, hk_test_alloc(), 100, 10));
    file(&wheel, &far, INT64_MAX, 1000);
    HK_CHECK_EQUAL_INT(1120, hk_wheel_next(&wheel));
    file(&wheel, &past, 3, 1000);
    HK_CHECK_EQUAL_INT(1010, hk_wheel_next(&wheel));
    record.now = 1120;
    hk_wheel_turn(&wheel, record.now, came, &record);
    HK_CHECK_EQUAL_UINT(2, record.count);
    hk_wheel_release(&wheel);
}

HK_TEST(at_random_nothing_comes_late_nor_more_than_a_slot_early)
{
    hk_wheel_t wheel;
    thing_t things[MOST] = {{.at = 0}};
    record_t record = {.wheel = &wheel, .now = -300};
    HK_CHECK_OK(hk_wheel_init(&wheel, hk_test_alloc(), 200, 10));
    for (size_t round = 0; round < 5000; round++) {
        thing_t *thing = &things[hk_test_below(MOST)];
        if (hk_list_holds(&thing->link)) {
            hk_wheel_remove(&wheel, &thing->link);
        } else {
            file(&wheel, thing, record.now + 10 + (int64_t)hk_test_below(190), record.now);
        }
        if (hk_test_below(3) == 0) {
            int64_t before = record.now;
            record.now += (int64_t)hk_test_below(40);
            hk_wheel_turn(&wheel, record.now, came, &record);
            for (size_t i = 0; i < MOST; i++) {
                bool held = hk_list_holds(&things[i].link);
                HK_CHECK(!held || things[i].at > record.now);
                HK_CHECK(held || things[i].came <= before || things[i].at - things[i].came < 10);
            }
            HK_CHECK(hk_wheel_next(&wheel) > record.now);
        }
    }
    hk_wheel_release(&wheel);
}

HK_TEST(without_memory_there_is_no_wheel)
{
    HK_EACH_FAILING_ALLOCATION {
        hk_wheel_t wheel = {0};
        hk_status_t status = hk_wheel_init(&wheel, hk_test_alloc(), 100, 10);
        HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
        hk_wheel_release(&wheel);
    }
}
