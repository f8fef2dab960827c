#include "hk_sys_failing.h"

#include <dirent.h>
#include <errno.h>

/* Whether this call fails; then errno says why. */
static bool fails(hk_sys_failing_t *calls, hk_call_t call)
{
    atomic_fetch_add(&calls->counts[call], 1);
    if (calls->always[call]) {
        errno = calls->errors[call];
        return true;
    }
    if (atomic_load(&calls->fail_at) == 0 || atomic_fetch_sub(&calls->fail_at, 1) != 1) {
        return false;
    }
    calls->failed_call = call;
    atomic_store(&calls->failed, true);
    errno = calls->error;
    return true;
}

static int failing_epoll_create(void *context)
{
    return fails(context, HK_CALL_EPOLL_CREATE) ? -1 : hk_sys_default()->epoll_create(NULL);
}

static int failing_epoll_control(void *context, int epoll, int operation, int fd, struct epoll_event *event)
{
    return fails(context, HK_CALL_EPOLL_CONTROL) ? -1
                                                 : hk_sys_default()->epoll_control(NULL, epoll, operation, fd, event);
}

static int failing_epoll_wait(void *context, int epoll, struct epoll_event *events, int count, int timeout_ms)
{
    hk_sys_failing_t *calls = context;
    atomic_store(&calls->timeout_ms, timeout_ms);
    if (fails(calls, HK_CALL_EPOLL_WAIT)) {
        return -1;
    }
    int got = hk_sys_default()->epoll_wait(NULL, epoll, events, count, calls->never_waits ? 0 : timeout_ms);
    atomic_store(&calls->quiet, got == 0 && timeout_ms != 0);
    return got;
}

static int failing_event_create(void *context)
{
    return fails(context, HK_CALL_EVENT_CREATE) ? -1 : hk_sys_default()->event_create(NULL);
}

static ssize_t failing_read(void *context, int fd, void *bytes, size_t size)
{
    return fails(context, HK_CALL_READ) ? -1 : hk_sys_default()->read(NULL, fd, bytes, size);
}

static ssize_t failing_write(void *context, int fd, const void *bytes, size_t size)
{
    return fails(context, HK_CALL_WRITE) ? -1 : hk_sys_default()->write(NULL, fd, bytes, size);
}

static int failing_accept(void *context, int fd, struct sockaddr *address, socklen_t *length)
{
    return fails(context, HK_CALL_ACCEPT) ? -1 : hk_sys_default()->accept(NULL, fd, address, length);
}

static int failing_peer(void *context, int fd, struct sockaddr *address, socklen_t *length)
{
    return fails(context, HK_CALL_PEER) ? -1 : hk_sys_default()->peer(NULL, fd, address, length);
}

static pid_t failing_process(void *context, int fd)
{
    return fails(context, HK_CALL_PROCESS) ? -1 : hk_sys_default()->process(NULL, fd);
}

static ssize_t failing_receive(void *context, int fd, void *bytes, size_t size)
{
    return fails(context, HK_CALL_RECEIVE) ? -1 : hk_sys_default()->receive(NULL, fd, bytes, size);
}

static ssize_t failing_send(void *context, int fd, const void *bytes, size_t size)
{
    hk_sys_failing_t *calls = context;
    if (calls->send_limit > 0 && size > (size_t)calls->send_limit) {
        size = (size_t)calls->send_limit;
    }
    return fails(calls, HK_CALL_SEND) ? -1 : hk_sys_default()->send(NULL, fd, bytes, size);
}

static ssize_t failing_send_parts(void *context, int fd, const struct iovec *parts, size_t count)
{
    hk_sys_failing_t *calls = context;
    if (fails(calls, HK_CALL_SEND_PARTS)) {
        return -1;
    }
    if (calls->send_limit > 0) {
        size_t size = parts->iov_len < (size_t)calls->send_limit ? parts->iov_len : (size_t)calls->send_limit;
        return hk_sys_default()->send(NULL, fd, parts->iov_base, size);
    }
    return hk_sys_default()->send_parts(NULL, fd, parts, count);
}

static int failing_set_option(void *context, int fd, int level, int name, const void *value, socklen_t length)
{
    return fails(context, HK_CALL_SET_OPTION) ? -1 : hk_sys_default()->set_option(NULL, fd, level, name, value, length);
}

static int failing_set_nonblocking(void *context, int fd)
{
    return fails(context, HK_CALL_SET_NONBLOCKING) ? -1 : hk_sys_default()->set_nonblocking(NULL, fd);
}

static int failing_duplicate(void *context, int fd)
{
    return fails(context, HK_CALL_DUPLICATE) ? -1 : hk_sys_default()->duplicate(NULL, fd);
}

static int failing_shutdown(void *context, int fd, int how)
{
    return fails(context, HK_CALL_SHUTDOWN) ? -1 : hk_sys_default()->shutdown(NULL, fd, how);
}

/* Linux closes the descriptor whatever it returns. */
static int failing_close(void *context, int fd)
{
    bool failed = fails(context, HK_CALL_CLOSE);
    int error = errno;
    int result = hk_sys_default()->close(NULL, fd);
    errno = failed ? error : errno;
    return failed ? -1 : result;
}

static int failing_thread_create(void *context, pthread_t *thread, void *(*run)(void *argument), void *argument)
{
    return fails(context, HK_CALL_THREAD_CREATE) ? -1 : hk_sys_default()->thread_create(NULL, thread, run, argument);
}

static int64_t failing_monotonic(void *context)
{
    return atomic_load(&((hk_sys_failing_t *)context)->now);
}

static int64_t failing_wall(void *context)
{
    return atomic_load(&((hk_sys_failing_t *)context)->wall);
}

void hk_sys_failing_init(hk_sys_failing_t *calls)
{
    *calls = (hk_sys_failing_t){.sys = {.context = calls,
                                        .epoll_create = failing_epoll_create,
                                        .epoll_control = failing_epoll_control,
                                        .epoll_wait = failing_epoll_wait,
                                        .event_create = failing_event_create,
                                        .read = failing_read,
                                        .write = failing_write,
                                        .accept = failing_accept,
                                        .peer = failing_peer,
                                        .process = failing_process,
                                        .receive = failing_receive,
                                        .send = failing_send,
                                        .send_parts = failing_send_parts,
                                        .set_option = failing_set_option,
                                        .set_nonblocking = failing_set_nonblocking,
                                        .duplicate = failing_duplicate,
                                        .shutdown = failing_shutdown,
                                        .close = failing_close,
                                        .thread_create = failing_thread_create,
                                        .monotonic = failing_monotonic,
                                        .wall = failing_wall},
                                .now = INT64_C(1000000000000),
                                .wall = INT64_C(1700000000000000000)};
}

long hk_sys_failing_count(const hk_sys_failing_t *calls)
{
    long sum = 0;
    for (size_t call = 0; call < HK_CALLS; call++) {
        sum += atomic_load(&calls->counts[call]);
    }
    return sum;
}

const char *hk_call_name(hk_call_t call)
{
    static const char *const names[HK_CALLS] = {
        "epoll_create", "epoll_control", "epoll_wait", "event_create", "read",       "write",      "accept",
        "peer",         "process",       "receive",    "send",         "send_parts", "set_option", "set_nonblocking",
        "duplicate",    "shutdown",      "close",      "thread_create"};
    return call < HK_CALLS ? names[call] : "?";
}

int hk_open_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;
    while (folder != NULL && readdir(folder) != NULL) {
        count++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return count;
}
