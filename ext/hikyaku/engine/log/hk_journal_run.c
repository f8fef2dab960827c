/* What a job does. Nothing here touches the journal: it may run in any thread. */
#include "hk_journal_private.h"

enum { ZEROS = 4096, ZERO_PARTS = 64 };

static const char zeros[ZEROS] = {0};

static bool failed(hk_job_t *job, const char *call)
{
    if (job->call == NULL) {
        job->call = call;
        job->error = job->files->error(job->files->context);
    }
    return true;
}

/* Whether a call that returned this has to be made again. */
static bool interrupted(const hk_job_t *job, int64_t result)
{
    return result < 0 && job->files->error(job->files->context) == EINTR;
}

static bool sync_failed(hk_job_t *job, int fd, int (*sync)(void *context, int fd), const char *call)
{
    int result;
    do {
        result = sync(job->files->context, fd);
    } while (interrupted(job, result));
    return result != 0 && failed(job, call);
}

/* A call that wrote nothing and says no error would be made for ever. */
static bool write_ended(hk_job_t *job, ssize_t result)
{
    (void)failed(job, "pwritev");
    job->error = result == 0 ? EIO : job->error;
    return true;
}

static bool write_failed(hk_job_t *job, const char *bytes, size_t size)
{
    for (uint64_t offset = 0; offset < size;) {
        struct iovec part = {.iov_base = (void *)(uintptr_t)(bytes + offset), .iov_len = size - offset};
        ssize_t count = job->files->write_at(job->files->context, job->fd, &part, 1, offset);
        if (count <= 0 && !interrupted(job, count)) {
            return write_ended(job, count);
        }
        offset += count > 0 ? (uint64_t)count : 0;
    }
    return false;
}

static bool fill_failed(hk_job_t *job)
{
    struct iovec parts[ZERO_PARTS];
    for (size_t i = 0; i < ZERO_PARTS; i++) {
        parts[i] = (struct iovec){.iov_base = (void *)(uintptr_t)zeros, .iov_len = ZEROS};
    }
    for (uint64_t offset = 0; offset < job->segment_bytes;) {
        uint64_t rest = job->segment_bytes - offset;
        int count = rest < (uint64_t)ZEROS * ZERO_PARTS ? (int)((rest + ZEROS - 1) / ZEROS) : ZERO_PARTS;
        /* After a short write the rest is no multiple of the page. */
        parts[0].iov_len = rest % ZEROS != 0 ? (size_t)(rest % ZEROS) : ZEROS;
        ssize_t done = job->files->write_at(job->files->context, job->fd, parts, count, offset);
        if (done <= 0 && !interrupted(job, done)) {
            return write_ended(job, done);
        }
        offset += done > 0 ? (uint64_t)done : 0;
    }
    return false;
}

static void close_file(hk_job_t *job)
{
    if (job->fd >= 0) {
        (void)job->files->close(job->files->context, job->fd);
        job->fd = -1;
    }
}

/* Creates a file of this name, in place of one that an attempt before may have left. */
static bool create_failed(hk_job_t *job)
{
    const hk_files_t *files = job->files;
    job->fd = files->create(files->context, job->dir, job->name);
    if (job->fd < 0 && files->error(files->context) == EEXIST) {
        if (files->unlink(files->context, job->dir, job->name) != 0) {
            return failed(job, "unlink");
        }
        job->fd = files->create(files->context, job->dir, job->name);
    }
    return job->fd < 0 && failed(job, "open");
}

static void discard(hk_job_t *job)
{
    close_file(job);
    (void)job->files->unlink(job->files->context, job->dir, job->name);
}

static void make_spare(hk_job_t *job)
{
    if (create_failed(job)) {
        return;
    }
    if (fill_failed(job) || sync_failed(job, job->fd, job->files->sync, "fsync")) {
        discard(job);
        return;
    }
}

static bool rename_failed(hk_job_t *job)
{
    return job->files->rename(job->files->context, job->dir, job->name, job->to) != 0 && failed(job, "rename");
}

static bool folder_failed(hk_job_t *job)
{
    return sync_failed(job, job->dir, job->files->sync, "fsync of the folder, for the sake");
}

static void begin_segment(hk_job_t *job)
{
    (void)(write_failed(job, job->header, sizeof(job->header)) ||
           sync_failed(job, job->fd, job->files->sync, "fsync") || rename_failed(job) || folder_failed(job));
}

/* A spare is open; without a descriptor for it the segment becomes none. */
static bool open_for_reuse_failed(hk_job_t *job)
{
    const hk_files_t *files = job->files;
    if (job->to[0] == 0) {
        return false;
    }
    job->fd = files->open(files->context, job->dir, job->name);
    if (job->fd < 0 && hk_journal_is_shortage(files->error(files->context))) {
        job->to[0] = 0;
        job->number = 0;
        return false;
    }
    return job->fd < 0 && failed(job, "open");
}

static void remove_segment(hk_job_t *job)
{
    if (open_for_reuse_failed(job)) {
        return;
    }
    if (job->to[0] == 0 ? job->files->unlink(job->files->context, job->dir, job->name) != 0 && failed(job, "unlink")
                        : rename_failed(job)) {
        close_file(job);
        return;
    }
    if (folder_failed(job)) {
        close_file(job);
    }
}

static void make_checkpoint(hk_job_t *job)
{
    if (create_failed(job)) {
        return;
    }
    if (write_failed(job, job->bytes, job->size) || sync_failed(job, job->fd, job->files->sync, "fsync")) {
        discard(job);
        return;
    }
    close_file(job);
    (void)(rename_failed(job) || folder_failed(job));
}

/* Somebody may have deleted what it is in, and the folder may stand elsewhere: the next start would not find it. */
static void sync_segment(hk_job_t *job)
{
    const hk_files_t *files = job->files;
    if (sync_failed(job, job->fd, files->sync_data, "fdatasync")) {
        return;
    }
    if (files->is_at(files->context, job->dir, job->path) == 0) {
        job->lost = HK_JOURNAL_FOLDER_LOST;
        job->name[0] = 0;
    } else if (files->linked(files->context, job->fd) == 0) {
        job->lost = HK_JOURNAL_SEGMENT_LOST;
    }
}

void hk_job_run(hk_job_t *job)
{
    int64_t begun = job->files->monotonic(job->files->context);
    switch (job->task) {
    case HK_TASK_SYNC:
        sync_segment(job);
        break;
    case HK_TASK_BEGIN:
        begin_segment(job);
        break;
    case HK_TASK_REMOVE:
        remove_segment(job);
        break;
    case HK_TASK_SPARE:
        make_spare(job);
        break;
    case HK_TASK_CHECKPOINT:
        make_checkpoint(job);
    }
    job->took = job->files->monotonic(job->files->context) - begun;
}
