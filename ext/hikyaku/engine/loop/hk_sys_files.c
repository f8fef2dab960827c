#include "hk_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static int file_open_folder(void *context, const char *path)
{
    (void)context;
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int file_create(void *context, int dir, const char *name)
{
    (void)context;
    return openat(dir, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
}

static int file_open(void *context, int dir, const char *name)
{
    (void)context;
    return openat(dir, name, O_RDWR | O_CLOEXEC);
}

static int file_lock(void *context, int dir, const char *name)
{
    (void)context;
    int fd = openat(dir, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return fd;
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static int64_t file_size(void *context, int fd)
{
    (void)context;
    struct stat status;
    return fstat(fd, &status) == 0 ? (int64_t)status.st_size : -1;
}

static int file_linked(void *context, int fd)
{
    (void)context;
    struct stat status;
    return fstat(fd, &status) == 0 ? status.st_nlink > 0 : -1;
}

static int file_is_at(void *context, int dir, const char *path)
{
    (void)context;
    struct stat open, named;
    if (fstat(dir, &open) != 0) {
        return -1;
    }
    if (stat(path, &named) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? 0 : -1;
    }
    return open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

static ssize_t file_read_at(void *context, int fd, void *bytes, size_t size, uint64_t offset)
{
    (void)context;
    return pread(fd, bytes, size, (off_t)offset);
}

static ssize_t file_write_at(void *context, int fd, const struct iovec *parts, int count, uint64_t offset)
{
    (void)context;
    return pwritev(fd, parts, count, (off_t)offset);
}

static int file_sync_data(void *context, int fd)
{
    (void)context;
    return fdatasync(fd);
}

static int file_sync(void *context, int fd)
{
    (void)context;
    return fsync(fd);
}

static int file_rename(void *context, int dir, const char *from, const char *to)
{
    (void)context;
    return renameat(dir, from, dir, to);
}

static int file_unlink(void *context, int dir, const char *name)
{
    (void)context;
    return unlinkat(dir, name, 0);
}

static int file_close(void *context, int fd)
{
    (void)context;
    return close(fd);
}

static int file_list(void *context, int dir, void (*visit)(void *visitor, const char *name), void *visitor)
{
    (void)context;
    /* A descriptor of its own: closedir closes it. */
    int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *folder = own < 0 ? NULL : fdopendir(own);
    if (folder == NULL) {
        int error = errno;
        if (own >= 0) {
            close(own);
        }
        errno = error;
        return -1;
    }
    errno = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            visit(visitor, entry->d_name);
        }
    }
    int error = errno;
    closedir(folder);
    errno = error;
    return error == 0 ? 0 : -1;
}

static int file_random(void *context, void *bytes, size_t size)
{
    (void)context;
    for (char *at = bytes; size > 0;) {
        ssize_t count = getrandom(at, size, 0);
        if (count < 0 && errno != EINTR) {
            return -1;
        }
        if (count > 0) {
            at += count;
            size -= (size_t)count;
        }
    }
    return 0;
}

static int file_error(void *context)
{
    (void)context;
    return errno;
}

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t file_monotonic(void *context)
{
    (void)context;
    return read_clock(CLOCK_MONOTONIC);
}

static int64_t file_wall(void *context)
{
    (void)context;
#ifdef CLOCK_REALTIME_COARSE
    return read_clock(CLOCK_REALTIME_COARSE);
#else
    return read_clock(CLOCK_REALTIME);
#endif
}

static const hk_files_t default_files = {
    .open_folder = file_open_folder,
    .create = file_create,
    .open = file_open,
    .lock = file_lock,
    .size = file_size,
    .linked = file_linked,
    .is_at = file_is_at,
    .read_at = file_read_at,
    .write_at = file_write_at,
    .sync_data = file_sync_data,
    .sync = file_sync,
    .rename = file_rename,
    .unlink = file_unlink,
    .close = file_close,
    .list = file_list,
    .random = file_random,
    .error = file_error,
    .monotonic = file_monotonic,
    .wall = file_wall,
};

const hk_files_t *hk_files_default(void)
{
    return &default_files;
}
