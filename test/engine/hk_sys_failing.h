/* hk_sys_failing.h: the real system calls, but for a clock that stands still, the one that fails, and a look at what
 * was called.
 *
 *     hk_sys_failing_t calls;
 *     hk_sys_failing_init(&calls);
 *     options.sys = &calls.sys;
 *     calls.fail_at = 7, calls.error = ENOMEM;          the seventh call from now on fails, once
 *
 * Several threads may use it.
 */
#ifndef HK_SYS_FAILING_H
#define HK_SYS_FAILING_H

#include "hk_sys.h"

#include <stdatomic.h>
#include <stdbool.h>

typedef enum hk_call {
    HK_CALL_EPOLL_CREATE,
    HK_CALL_EPOLL_CONTROL,
    HK_CALL_EPOLL_WAIT,
    HK_CALL_EVENT_CREATE,
    HK_CALL_READ,
    HK_CALL_WRITE,
    HK_CALL_ACCEPT,
    HK_CALL_PEER,
    HK_CALL_PROCESS,
    HK_CALL_RECEIVE,
    HK_CALL_SEND,
    HK_CALL_SEND_PARTS,
    HK_CALL_SET_OPTION,
    HK_CALL_SET_NONBLOCKING,
    HK_CALL_DUPLICATE,
    HK_CALL_SHUTDOWN,
    HK_CALL_CLOSE,
    HK_CALL_THREAD_CREATE,
    HK_CALLS
} hk_call_t;

typedef struct hk_sys_failing {
    hk_sys_t sys;
    _Atomic int64_t now, wall; /* ns; the test moves them */
    bool never_waits;          /* epoll_wait returns at once */
    atomic_bool quiet;         /* such a call found nothing, and would have waited */
    atomic_int timeout_ms;     /* that epoll_wait was last given */

    atomic_long fail_at; /* calls until the one that fails; 0: none does */
    int error;           /* its errno */
    atomic_bool failed;
    hk_call_t failed_call;
    bool always[HK_CALLS]; /* every call of the kind fails, with `errors` */
    int errors[HK_CALLS];
    atomic_long counts[HK_CALLS];
    long send_limit; /* bytes that one send takes; 0: any number */
} hk_sys_failing_t;

/* now: 1,000 s. wall: some day in 2023. */
void hk_sys_failing_init(hk_sys_failing_t *calls);

/* Calls of all kinds, but the clocks. */
long hk_sys_failing_count(const hk_sys_failing_t *calls);

/* "epoll_wait" */
const char *hk_call_name(hk_call_t call);

/* Descriptors that the process has open. */
int hk_open_files(void);

#endif
