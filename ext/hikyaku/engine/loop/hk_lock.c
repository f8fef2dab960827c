#include "hk_lock.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Looks at the lock before sleeping: less than what it costs to be woken. */
enum { LOOKS = 100 };

/* Who sleeps is woken by the last bits of its ticket, so that a turn wakes one of few waiters, not all. */
static uint32_t bit_of(uint32_t ticket)
{
    return UINT32_C(1) << (ticket % 32);
}

static void sleep_while(_Atomic uint32_t *serving, uint32_t seen, uint32_t bit)
{
    syscall(SYS_futex, serving, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, seen, NULL, NULL, bit);
}

static void wake(_Atomic uint32_t *serving, uint32_t bit)
{
    syscall(SYS_futex, serving, FUTEX_WAKE_BITSET | FUTEX_PRIVATE_FLAG, INT_MAX, NULL, NULL, bit);
}

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

hk_status_t hk_lock_init(hk_lock_t *lock)
{
    atomic_init(&lock->next, 0);
    atomic_init(&lock->serving, 0);
    return HK_OK;
}

void hk_lock_release(hk_lock_t *lock)
{
    (void)lock;
}

void hk_lock_take(hk_lock_t *lock)
{
    uint32_t ticket = atomic_fetch_add(&lock->next, 1), serving;
    for (unsigned looks = 0; (serving = atomic_load(&lock->serving)) != ticket; looks++) {
        if (looks < LOOKS) {
            relax();
        } else {
            sleep_while(&lock->serving, serving, bit_of(ticket));
        }
    }
}

bool hk_lock_try(hk_lock_t *lock)
{
    uint32_t ticket = atomic_load(&lock->serving);
    return atomic_compare_exchange_strong(&lock->next, &ticket, ticket + 1);
}

/* Whoever draws a ticket after the look at `next` sees the new `serving` before it sleeps on the old. */
void hk_lock_give(hk_lock_t *lock)
{
    uint32_t serving = atomic_load(&lock->serving) + 1;
    atomic_store(&lock->serving, serving);
    if (atomic_load(&lock->next) != serving) {
        wake(&lock->serving, bit_of(serving));
    }
}

bool hk_lock_wanted(hk_lock_t *lock)
{
    return atomic_load(&lock->next) - atomic_load(&lock->serving) > 1;
}
