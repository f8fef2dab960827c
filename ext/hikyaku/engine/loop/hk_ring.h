/* hk_ring.h: sends the same bytes to many sockets in one system call, with io_uring where the kernel has it.
 *
 *     send()     kernel ◄─ ─► loop, once for each socket
 *     hk_ring    the loop writes HK_RING_SENDS requests to shared memory; one io_uring_enter() carries them out
 *
 * Each request completes within the call: MSG_DONTWAIT makes a full socket fail with EAGAIN instead of waiting for
 * room. Used by one thread at a time.
 */
#ifndef HK_RING_H
#define HK_RING_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <sys/types.h>

enum { HK_RING_SENDS = 64 }; /* in one system call */

typedef struct hk_ring hk_ring_t;

/* HK_OK; HK_NO_MEMORY; HK_SYSTEM with errno: ENOSYS where the kernel has no io_uring, EPERM or EACCES where it is
 * forbidden, as in most containers. */
hk_status_t hk_ring_open(const hk_alloc_t *alloc, hk_ring_t **ring);

/* NULL is allowed. */
void hk_ring_close(hk_ring_t *ring);

/* As hk_ring_close, in a forked child: the descriptor stays open, as it is the parent's. */
void hk_ring_abandon(hk_ring_t *ring);

/* Sends `bytes` to each of at most HK_RING_SENDS sockets.
 *
 * sent  for each what send() returns, or the negative errno.
 *
 * How many of the first were sent to. Fewer than `count`: the kernel refuses, errno says why, and the ring must be
 * closed. */
size_t hk_ring_send(hk_ring_t *ring, const int *fds, size_t count, hk_bytes_t bytes, ssize_t *sent);

#endif
