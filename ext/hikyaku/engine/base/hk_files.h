/* hk_files.h: the system calls of the journal, as a struct of functions, so that a test can let the n-th one fail,
 * record what was done, and replay what a power cut would have left of it.
 *
 * Each behaves as the call that it is named for, errno included; names are relative to the folder `dir`, which is a
 * descriptor. `context` is handed to each of them. Any thread may call them, two never for one descriptor but
 * `sync_data` beside `write_at`.
 */
#ifndef HK_FILES_H
#define HK_FILES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct hk_files {
    void *context;
    int (*open_folder)(void *context, const char *path);     /* a descriptor; the folder must exist */
    int (*create)(void *context, int dir, const char *name); /* O_CREAT | O_EXCL | O_RDWR, 0600 */
    int (*open)(void *context, int dir, const char *name);   /* O_RDWR */
    int (*lock)(void *context, int dir, const char *name);   /* creates it, flock(LOCK_EX | LOCK_NB); its descriptor */
    int64_t (*size)(void *context, int fd);                  /* fstat; -1 */
    int (*linked)(void *context, int fd);                    /* fstat: whether the file still has a name; -1 */
    /* stat and fstat: whether the path leads to this folder; -1: that cannot be told. */
    int (*is_at)(void *context, int dir, const char *path);
    ssize_t (*read_at)(void *context, int fd, void *bytes, size_t size, uint64_t offset);
    ssize_t (*write_at)(void *context, int fd, const struct iovec *parts, int count, uint64_t offset); /* pwritev */
    int (*sync_data)(void *context, int fd);                                                           /* fdatasync */
    int (*sync)(void *context, int fd); /* fsync, of a folder too */
    int (*rename)(void *context, int dir, const char *from, const char *to);
    int (*unlink)(void *context, int dir, const char *name);
    int (*close)(void *context, int fd);
    /* Calls `visit` for each name in the folder but "." and "..", in any order. 0 or -1. */
    int (*list)(void *context, int dir, void (*visit)(void *visitor, const char *name), void *visitor);
    /* Random bytes. 0 or -1. */
    int (*random)(void *context, void *bytes, size_t size);
    int (*error)(void *context);         /* errno, of the calling thread */
    int64_t (*monotonic)(void *context); /* ns; any thread */
    int64_t (*wall)(void *context);      /* ns since 1970, by the clock of files' times; any thread */
} hk_files_t;

/* The real ones. Of the loop's layer: hk_sys_files.c. */
const hk_files_t *hk_files_default(void);

#endif
