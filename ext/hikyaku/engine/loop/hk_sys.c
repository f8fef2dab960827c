#include "hk_sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static int sys_epoll_create(void *context)
{
    (void)context;
    return epoll_create1(EPOLL_CLOEXEC);
}

static int sys_epoll_control(void *context, int epoll, int operation, int fd, struct epoll_event *event)
{
    (void)context;
    return epoll_ctl(epoll, operation, fd, event);
}

static int sys_epoll_wait(void *context, int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    (void)context;
    return epoll_wait(epoll, events, count, timeout_ms);
}

static int sys_event_create(void *context)
{
    (void)context;
    return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static ssize_t sys_read(void *context, int fd, void *bytes, size_t size)
{
    (void)context;
    return read(fd, bytes, size);
}

static ssize_t sys_write(void *context, int fd, const void *bytes, size_t size)
{
    (void)context;
    return write(fd, bytes, size);
}

static int sys_accept(void *context, int fd, struct sockaddr *address, socklen_t *length)
{
    (void)context;
    return accept4(fd, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static int sys_peer(void *context, int fd, struct sockaddr *address, socklen_t *length)
{
    (void)context;
    return getpeername(fd, address, length);
}

static pid_t sys_process(void *context, int fd)
{
    (void)context;
    struct ucred who = {.pid = -1};
    socklen_t length = sizeof(who);
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 ? who.pid : -1;
}

static ssize_t sys_receive(void *context, int fd, void *bytes, size_t size)
{
    (void)context;
    return recv(fd, bytes, size, MSG_DONTWAIT);
}

/* In a process of several threads the C library's send() makes itself a point of cancellation, twice in each call: a
 * hundredth of what a delivery costs. */
static ssize_t sys_send(void *context, int fd, const void *bytes, size_t size)
{
    (void)context;
#ifdef SYS_sendto
    return syscall(SYS_sendto, fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL, NULL, 0);
#else
    return send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
#endif
}

static ssize_t sys_send_parts(void *context, int fd, const struct iovec *parts, size_t count)
{
    (void)context;
    struct msghdr message = {.msg_iov = (struct iovec *)(uintptr_t)parts, .msg_iovlen = count};
#ifdef SYS_sendmsg
    return syscall(SYS_sendmsg, fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
#else
    return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
#endif
}

static int sys_set_option(void *context, int fd, int level, int name, const void *value, socklen_t length)
{
    (void)context;
    return setsockopt(fd, level, name, value, length);
}

static int sys_set_nonblocking(void *context, int fd)
{
    (void)context;
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? flags : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static int sys_duplicate(void *context, int fd)
{
    (void)context;
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static int sys_shutdown(void *context, int fd, int how)
{
    (void)context;
    return shutdown(fd, how);
}

static int sys_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}

static int sys_thread_create(void *context, pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    (void)context;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run, argument);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return error == 0 ? 0 : -1;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

static int64_t sys_monotonic(void *context)
{
    (void)context;
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t sys_wall(void *context)
{
    (void)context;
    return read_clock(CLOCK_REALTIME);
}

const hk_sys_t *hk_sys_default(void)
{
    static const hk_sys_t sys = {
        .epoll_create = sys_epoll_create,
        .epoll_control = sys_epoll_control,
        .epoll_wait = sys_epoll_wait,
        .event_create = sys_event_create,
        .read = sys_read,
        .write = sys_write,
        .accept = sys_accept,
        .peer = sys_peer,
        .process = sys_process,
        .receive = sys_receive,
        .send = sys_send,
        .send_parts = sys_send_parts,
        .set_option = sys_set_option,
        .set_nonblocking = sys_set_nonblocking,
        .duplicate = sys_duplicate,
        .shutdown = sys_shutdown,
        .close = sys_close,
        .thread_create = sys_thread_create,
        .monotonic = sys_monotonic,
        .wall = sys_wall,
    };
    return &sys;
}
