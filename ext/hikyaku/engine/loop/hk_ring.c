#include "hk_ring.h"

#include <errno.h>
#include <stdbool.h>

#if defined(__has_include) && __has_include(<linux/io_uring.h>)
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* One mapping for both queues; completions are never dropped; IORING_OP_SEND exists (Linux 5.7). */
#define NEEDED (IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL)

struct hk_ring {
    const hk_alloc_t *alloc;
    int fd;
    char *queues; /* MAP_FAILED: not mapped */
    size_t queue_bytes;
    struct io_uring_sqe *sqes; /* MAP_FAILED: not mapped */
    size_t sqe_bytes;
    const struct io_uring_cqe *cqes;
    _Atomic uint32_t *submission_tail, *completion_head, *completion_tail;
    uint32_t submission_mask, completion_mask;
};

static void *map(const hk_ring_t *ring, size_t size, off_t offset)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, offset);
}

static void *at(const hk_ring_t *ring, uint32_t offset)
{
    return ring->queues + offset;
}

static bool map_queues(hk_ring_t *ring, const struct io_uring_params *params)
{
    size_t submissions = params->sq_off.array + params->sq_entries * sizeof(uint32_t);
    size_t completions = params->cq_off.cqes + params->cq_entries * sizeof(*ring->cqes);
    ring->queue_bytes = submissions > completions ? submissions : completions;
    ring->sqe_bytes = params->sq_entries * sizeof(*ring->sqes);
    ring->queues = map(ring, ring->queue_bytes, IORING_OFF_SQ_RING);
    ring->sqes = map(ring, ring->sqe_bytes, IORING_OFF_SQES);
    if ((void *)ring->queues == MAP_FAILED || (void *)ring->sqes == MAP_FAILED) {
        return false;
    }
    uint32_t *order = at(ring, params->sq_off.array);
    for (uint32_t i = 0; i < params->sq_entries; i++) {
        order[i] = i;
    }
    ring->submission_tail = at(ring, params->sq_off.tail);
    ring->submission_mask = params->sq_entries - 1;
    ring->completion_head = at(ring, params->cq_off.head);
    ring->completion_tail = at(ring, params->cq_off.tail);
    ring->completion_mask = params->cq_entries - 1;
    ring->cqes = at(ring, params->cq_off.cqes);
    return true;
}

static bool set_up(hk_ring_t *ring)
{
    struct io_uring_params params = {.flags = 0};
    ring->fd = (int)syscall(SYS_io_uring_setup, HK_RING_SENDS, &params);
    if (ring->fd < 0) {
        return false;
    }
    if ((params.features & NEEDED) != NEEDED) {
        errno = ENOSYS;
        return false;
    }
    return map_queues(ring, &params);
}

hk_status_t hk_ring_open(const hk_alloc_t *alloc, hk_ring_t **ring)
{
    hk_ring_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->queues = MAP_FAILED;
    made->sqes = MAP_FAILED;
    if (!set_up(made)) {
        int error = errno;
        hk_ring_close(made);
        errno = error;
        return HK_SYSTEM;
    }
    *ring = made;
    return HK_OK;
}

void hk_ring_abandon(hk_ring_t *ring)
{
    if (ring == NULL) {
        return;
    }
    if ((void *)ring->sqes != MAP_FAILED) {
        munmap(ring->sqes, ring->sqe_bytes);
    }
    if ((void *)ring->queues != MAP_FAILED) {
        munmap(ring->queues, ring->queue_bytes);
    }
    hk_alloc_free(ring->alloc, ring);
}

void hk_ring_close(hk_ring_t *ring)
{
    if (ring != NULL && ring->fd >= 0) {
        close(ring->fd);
    }
    hk_ring_abandon(ring);
}

static void submit(hk_ring_t *ring, const int *fds, size_t count, hk_bytes_t bytes)
{
    uint32_t tail = atomic_load_explicit(ring->submission_tail, memory_order_relaxed);
    for (size_t i = 0; i < count; i++, tail++) {
        struct io_uring_sqe *sqe = &ring->sqes[tail & ring->submission_mask];
        memset(sqe, 0, sizeof(*sqe));
        sqe->opcode = IORING_OP_SEND;
        sqe->fd = fds[i];
        sqe->addr = (uintptr_t)bytes.at;
        sqe->len = (uint32_t)bytes.length;
        sqe->msg_flags = MSG_DONTWAIT | MSG_NOSIGNAL;
        sqe->user_data = i;
    }
    atomic_store_explicit(ring->submission_tail, tail, memory_order_release);
}

/* How many completions it found. */
static size_t reap(hk_ring_t *ring, ssize_t *sent)
{
    uint32_t head = atomic_load_explicit(ring->completion_head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(ring->completion_tail, memory_order_acquire);
    size_t count = tail - head;
    for (; head != tail; head++) {
        const struct io_uring_cqe *cqe = &ring->cqes[head & ring->completion_mask];
        sent[cqe->user_data] = cqe->res;
    }
    atomic_store_explicit(ring->completion_head, head, memory_order_release);
    return count;
}

size_t hk_ring_send(hk_ring_t *ring, const int *fds, size_t count, hk_bytes_t bytes, ssize_t *sent)
{
    size_t submitted = 0, completed = 0;
    bool refused = false;
    int error = 0;
    submit(ring, fds, count, bytes);
    while (completed < submitted || (submitted < count && !refused)) {
        long consumed = syscall(SYS_io_uring_enter, ring->fd, refused ? 0 : count - submitted,
                                (refused ? submitted : count) - completed, IORING_ENTER_GETEVENTS, NULL, 0);
        if (consumed > 0) {
            submitted += (size_t)consumed;
        } else if (consumed == 0 || errno != EINTR) {
            refused = true;
            error = consumed == 0 ? EBUSY : errno;
        }
        completed += reap(ring, sent);
    }
    errno = error;
    return completed;
}

#else

hk_status_t hk_ring_open(const hk_alloc_t *alloc, hk_ring_t **ring)
{
    (void)alloc;
    *ring = NULL;
    errno = ENOSYS;
    return HK_SYSTEM;
}

void hk_ring_close(hk_ring_t *ring)
{
    (void)ring;
}

void hk_ring_abandon(hk_ring_t *ring)
{
    (void)ring;
}

size_t hk_ring_send(hk_ring_t *ring, const int *fds, size_t count, hk_bytes_t bytes, ssize_t *sent)
{
    (void)ring, (void)fds, (void)count, (void)bytes, (void)sent;
    errno = ENOSYS;
    return 0;
}

#endif
