#include "hk_loop_private.h"

#include <errno.h>
#include <limits.h>

/* Waits that may fail one after the other before it is believed that none will ever work again. */
enum { MOST_FAILURES = 64 };

/* Times that a call is tried which must not fail. */
enum { TRIES = 100 };

/* --- what is watched ---------------------------------------------------------------------------------------------- */

static int control(hk_loop_t *loop, int operation, hk_watch_t *watch, uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = watch};
    return loop->sys->epoll_control(loop->sys->context, loop->epoll, operation, watch->fd, &event);
}

bool hk_watch_add(hk_loop_t *loop, hk_watch_t *watch)
{
    bool added = control(loop, EPOLL_CTL_ADD, watch, EPOLLIN) == 0;
    watch->armed = added ? EPOLLIN : 0;
    return added;
}

bool hk_watch_arm(hk_loop_t *loop, hk_watch_t *watch, uint32_t events)
{
    if (watch->armed == events) {
        return true;
    }
    if (control(loop, EPOLL_CTL_MOD, watch, events) != 0) {
        return false;
    }
    watch->armed = (uint8_t)events;
    return true;
}

/* Where somebody else has the same socket, closing it does not end the watching. */
void hk_watch_end(hk_loop_t *loop, hk_watch_t *watch)
{
    for (int i = 0; i < TRIES && control(loop, EPOLL_CTL_DEL, watch, 0) != 0; i++) {
        if (errno == EBADF || errno == ENOENT) {
            break;
        }
    }
    watch->armed = 0;
}

/* The event is told of by edge, so that nobody has to read it. */
hk_status_t hk_loop_open_epoll(hk_loop_t *loop)
{
    loop->epoll = loop->sys->epoll_create(loop->sys->context);
    if (loop->epoll < 0) {
        return HK_SYSTEM;
    }
    loop->waker = (hk_watch_t){.fd = loop->sys->event_create(loop->sys->context), .kind = HK_WATCH_WAKE};
    if (loop->waker.fd >= 0 && control(loop, EPOLL_CTL_ADD, &loop->waker, EPOLLIN | EPOLLET) == 0) {
        return HK_OK;
    }
    int error = errno;
    if (loop->waker.fd >= 0) {
        loop->sys->close(loop->sys->context, loop->waker.fd);
    }
    loop->sys->close(loop->sys->context, loop->epoll);
    errno = error;
    return HK_SYSTEM;
}

/* --- waiting ------------------------------------------------------------------------------------------------------ */

static int milliseconds(int64_t due, int64_t now)
{
    if (due == HK_NEVER) {
        return -1;
    }
    int64_t left = due <= now ? 0 : (due - now - 1) / HK_MILLISECOND + 1;
    return left > INT_MAX ? INT_MAX : (int)left;
}

/* `sleeping` is said before `roused` is asked, whoever rouses does it the other way round: one of them sees the
 * other. */
static int timeout_of(hk_loop_t *loop)
{
    if (loop->more) {
        return 0;
    }
    int timeout = milliseconds(hk_loop_next_due(loop), loop->sys->monotonic(loop->sys->context));
    if (timeout != 0) {
        atomic_store(&loop->sleeping, true);
        if (atomic_load(&loop->roused)) {
            timeout = 0;
        }
    }
    return timeout;
}

hk_status_t hk_loop_wait(hk_loop_t *loop)
{
    if (loop->event_at < loop->event_count) {
        atomic_store(&loop->roused, false);
        return HK_OK;
    }
    int timeout = timeout_of(loop);
    atomic_store(&loop->at_rest, true);
    int count = loop->sys->epoll_wait(loop->sys->context, loop->epoll, loop->events, HK_EVENTS, timeout);
    int error = errno;
    atomic_store(&loop->at_rest, false);
    atomic_store(&loop->sleeping, false);
    atomic_store(&loop->roused, false);
    loop->event_at = 0;
    loop->event_count = count > 0 ? count : 0;
    loop->failures = count < 0 && error != EINTR ? loop->failures + 1 : 0;
    errno = error;
    return loop->failures < MOST_FAILURES ? HK_OK : HK_SYSTEM;
}

/* --- being woken, any thread -------------------------------------------------------------------------------------- */

void hk_loop_wake(hk_loop_t *loop)
{
    static const uint64_t one = 1;
    atomic_store(&loop->roused, true);
    if (!atomic_exchange(&loop->sleeping, false)) {
        return;
    }
    for (int i = 0; i < TRIES; i++) {
        if (loop->sys->write(loop->sys->context, loop->waker.fd, &one, sizeof(one)) >= 0 || errno != EINTR) {
            return;
        }
    }
}

void hk_loop_interrupt(hk_loop_t *loop)
{
    atomic_store(&loop->interrupted, true);
    hk_loop_wake(loop);
}
