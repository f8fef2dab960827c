/* hk_sys.h: the system calls of the loop, as a struct of functions, so that a test can let the n-th one fail and set
 * the clock.
 *
 * Each behaves as the call that it is named for, errno included. `context` is handed to each of them.
 */
#ifndef HK_SYS_H
#define HK_SYS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct hk_sys {
    void *context;
    int (*epoll_create)(void *context); /* close-on-exec */
    int (*epoll_control)(void *context, int epoll, int operation, int fd, struct epoll_event *event);
    int (*epoll_wait)(void *context, int epoll, struct epoll_event *events, int count, int timeout_ms);
    int (*event_create)(void *context); /* eventfd, non-blocking, close-on-exec */
    ssize_t (*read)(void *context, int fd, void *bytes, size_t size);
    ssize_t (*write)(void *context, int fd, const void *bytes, size_t size);
    int (*accept)(void *context, int fd, struct sockaddr *address, socklen_t *length); /* non-blocking, close-on-exec */
    int (*peer)(void *context, int fd, struct sockaddr *address, socklen_t *length);   /* getpeername */
    pid_t (*process)(void *context, int fd); /* SO_PEERCRED: who has connected a Unix socket; -1 and errno */
    /* Neither waits, whether or not the socket is one that would: MSG_DONTWAIT. */
    ssize_t (*receive)(void *context, int fd, void *bytes, size_t size);
    ssize_t (*send)(void *context, int fd, const void *bytes, size_t size);                /* MSG_NOSIGNAL */
    ssize_t (*send_parts)(void *context, int fd, const struct iovec *parts, size_t count); /* sendmsg, as `send` */
    int (*set_option)(void *context, int fd, int level, int name, const void *value, socklen_t length);
    int (*set_nonblocking)(void *context, int fd);
    int (*duplicate)(void *context, int fd); /* close-on-exec */
    int (*shutdown)(void *context, int fd, int how);
    int (*close)(void *context, int fd);
    /* pthread_create, of a thread that takes no signals; -1 and errno. */
    int (*thread_create)(void *context, pthread_t *thread, void *(*run)(void *argument), void *argument);
    int64_t (*monotonic)(void *context); /* ns */
    int64_t (*wall)(void *context);      /* ns since 1970 */
} hk_sys_t;

/* The real ones. */
const hk_sys_t *hk_sys_default(void);

#endif
