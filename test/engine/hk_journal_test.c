#include "hk_journal_fixture.h"

static hk_replayed_t replayed;

HK_TEST(what_was_synced_is_replayed_in_order)
{
    hk_disk_t *disk = hk_disk_new();
    hk_journal_t *journal;
    uint32_t sums[300];
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    for (uint64_t i = 0; i < 300; i++) {
        HK_CHECK_OK(append_seeded(journal, i, (size_t)(i * 7), false, &sums[i], NULL));
        HK_CHECK_OK(sync_journal(journal));
        HK_CHECK_EQUAL_UINT(i + 1, hk_journal_synced(journal));
    }
    HK_CHECK(hk_journal_current(journal) > 3);
    hk_journal_drop_dead(journal);
    HK_CHECK_OK(open_on(disk, &replayed, &journal, NULL));
    HK_CHECK_EQUAL_UINT(300, replayed.count);
    for (uint64_t i = 0; i < 300; i++) {
        HK_CHECK_EQUAL_UINT(i + 1, replayed.positions[i]);
        HK_CHECK_EQUAL_UINT(sums[i], replayed.sums[i]);
    }
    HK_CHECK_OK(hk_journal_close(journal));
    HK_CHECK_EQUAL_UINT(0, hk_disk_open_count(disk));
    hk_disk_free(disk);
}
