/* hk_disk.h: a disk behind hk_files_t that forgets what was not synced.
 *
 *     hk_disk_t *disk = hk_disk_new();
 *     options.files = &disk->files;
 *     ...
 *     hk_disk_t *after = hk_disk_cut(disk, disk->count, seed);     what a power cut now would leave of it
 *
 * Every change is recorded. A power cut after so many of them keeps, of each file, what was there when it was last
 * synced, and of every 512 bytes written since an older or a newer state, by chance; of the folder what was there when
 * it was last synced, and each later creation, renaming and removal, or not. seed: 0 keeps nothing that was not synced,
 * 1 everything, others choose.
 *
 * One call can be made to fail, and writes to be short. Needs nothing but the C library: fuzz targets use it, too. Not
 * thread-safe.
 */
#ifndef HK_DISK_H
#define HK_DISK_H

#include "hk_files.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HK_DISK_SECTOR = 512, HK_DISK_FDS = 64, HK_DISK_FOLDER = 1000, HK_DISK_LOCK = 1001, HK_DISK_NAME = 48 };

typedef struct hk_disk_file {
    char *bytes;
    size_t size;
} hk_disk_file_t;

typedef struct hk_disk_entry {
    char name[HK_DISK_NAME];
    size_t file;
} hk_disk_entry_t;

typedef enum hk_disk_kind {
    HK_DISK_CREATED,
    HK_DISK_WROTE,
    HK_DISK_SYNCED,
    HK_DISK_RENAMED,
    HK_DISK_UNLINKED,
    HK_DISK_SYNCED_FOLDER
} hk_disk_kind_t;

typedef struct hk_disk_change {
    hk_disk_kind_t kind;
    size_t file;
    char name[HK_DISK_NAME], to[HK_DISK_NAME];
    size_t offset, size;
    char *bytes;
} hk_disk_change_t;

typedef struct hk_disk {
    hk_files_t files;
    hk_disk_file_t *contents; /* every file that there ever was */
    size_t content_count;
    hk_disk_entry_t *entries;
    size_t entry_count;
    hk_disk_change_t *changes;
    size_t count;
    size_t first_entry_count; /* what the folder and the files held at the beginning */
    hk_disk_entry_t *first_entries;
    hk_disk_file_t *first_contents;
    size_t first_content_count;
    size_t open[HK_DISK_FDS]; /* file + 1 */
    bool locked, moved;       /* moved: its path leads elsewhere */
    uint64_t random_state;
    int64_t now;

    long fail_at;  /* calls until the one that fails; 0: none does */
    int error;     /* its errno; 0: a write that takes half, an EINTR for others */
    bool fails_on; /* and all of its kind after it */
    bool failed;   /* it did */
    const char *failed_call;
    const char *random_bytes; /* the next ones; NULL: any */
    size_t room;              /* bytes that may still be added to files; SIZE_MAX: any number */
    size_t write_most;        /* bytes that one write takes; 0: any number */
    long calls;
} hk_disk_t;

static inline void hk_disk_check(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "hk_disk: %s\n", what);
        abort();
    }
}

static inline void *hk_disk_grow(void *items, size_t count, size_t size)
{
    void *grown = (count & (count - 1)) == 0 ? realloc(items, (count > 0 ? 2 * count : 1) * size) : items;
    hk_disk_check(grown != NULL, "no memory");
    return grown;
}

static inline void *hk_disk_copy(const void *bytes, size_t size)
{
    void *copy = malloc(size > 0 ? size : 1);
    hk_disk_check(copy != NULL, "no memory");
    if (size > 0) {
        memcpy(copy, bytes, size);
    }
    return copy;
}

static inline uint64_t hk_disk_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9e3779b97f4a7c15;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
}

/* -- Files and names ----------------------------------------------------------------------------------------------- */

static inline hk_disk_entry_t *hk_disk_entry(const hk_disk_t *disk, const char *name)
{
    for (size_t i = 0; i < disk->entry_count; i++) {
        if (strcmp(disk->entries[i].name, name) == 0) {
            return &disk->entries[i];
        }
    }
    return NULL;
}

/* A file by its name, to be looked at or damaged; NULL: there is none. */
static inline hk_disk_file_t *hk_disk_file(const hk_disk_t *disk, const char *name)
{
    const hk_disk_entry_t *entry = hk_disk_entry(disk, name);
    return entry != NULL ? &disk->contents[entry->file] : NULL;
}

static inline void hk_disk_forget_name(hk_disk_t *disk, const char *name)
{
    hk_disk_entry_t *entry = hk_disk_entry(disk, name);
    if (entry != NULL) {
        *entry = disk->entries[--disk->entry_count];
    }
}

static inline void hk_disk_set_name(hk_disk_t *disk, const char *name, size_t file)
{
    hk_disk_forget_name(disk, name);
    disk->entries = hk_disk_grow(disk->entries, disk->entry_count, sizeof(*disk->entries));
    hk_disk_entry_t *entry = &disk->entries[disk->entry_count++];
    snprintf(entry->name, sizeof(entry->name), "%s", name);
    entry->file = file;
}

static inline size_t hk_disk_add_content(hk_disk_t *disk, const void *bytes, size_t size)
{
    disk->contents = hk_disk_grow(disk->contents, disk->content_count, sizeof(*disk->contents));
    disk->contents[disk->content_count] = (hk_disk_file_t){hk_disk_copy(bytes, size), size};
    return disk->content_count++;
}

static inline void hk_disk_resize(hk_disk_file_t *file, size_t size)
{
    file->bytes = realloc(file->bytes, size > 0 ? size : 1);
    hk_disk_check(file->bytes != NULL, "no memory");
    if (size > file->size) {
        memset(file->bytes + file->size, 0, size - file->size);
    }
    file->size = size;
}

static inline hk_disk_change_t *hk_disk_changed(hk_disk_t *disk, hk_disk_kind_t kind, size_t file)
{
    disk->changes = hk_disk_grow(disk->changes, disk->count, sizeof(*disk->changes));
    hk_disk_change_t *change = &disk->changes[disk->count++];
    *change = (hk_disk_change_t){.kind = kind, .file = file};
    return change;
}

static inline hk_disk_file_t *hk_disk_of(hk_disk_t *disk, int fd, size_t *file)
{
    hk_disk_check(fd >= 0 && fd < HK_DISK_FDS && disk->open[fd] > 0, "a descriptor that is not open");
    *file = disk->open[fd] - 1;
    return &disk->contents[*file];
}

/* -- The calls ----------------------------------------------------------------------------------------------------- */

/* Whether this call is the one that fails. */
static inline bool hk_disk_fails(hk_disk_t *disk, const char *call)
{
    disk->calls++;
    bool again = disk->fails_on && disk->failed && strcmp(disk->failed_call, call) == 0;
    if (again || (disk->fail_at > 0 && --disk->fail_at == 0)) {
        disk->failed = true;
        disk->failed_call = call;
        errno = disk->error != 0 ? disk->error : EINTR;
        return true;
    }
    return false;
}

static inline int hk_disk_open_fd(hk_disk_t *disk, size_t file)
{
    for (int fd = 0; fd < HK_DISK_FDS; fd++) {
        if (disk->open[fd] == 0) {
            disk->open[fd] = file + 1;
            return fd;
        }
    }
    errno = EMFILE;
    return -1;
}

static inline int hk_disk_call_open_folder(void *context, const char *path)
{
    (void)path;
    return hk_disk_fails(context, "open_folder") ? -1 : HK_DISK_FOLDER;
}

static inline int hk_disk_call_create(void *context, int dir, const char *name)
{
    hk_disk_t *disk = context;
    hk_disk_check(dir == HK_DISK_FOLDER, "another folder");
    if (hk_disk_fails(disk, "create")) {
        return -1;
    }
    if (hk_disk_entry(disk, name) != NULL) {
        errno = EEXIST;
        return -1;
    }
    size_t file = hk_disk_add_content(disk, "", 0);
    hk_disk_set_name(disk, name, file);
    snprintf(hk_disk_changed(disk, HK_DISK_CREATED, file)->name, HK_DISK_NAME, "%s", name);
    return hk_disk_open_fd(disk, file);
}

static inline int hk_disk_call_open(void *context, int dir, const char *name)
{
    hk_disk_t *disk = context;
    hk_disk_check(dir == HK_DISK_FOLDER, "another folder");
    if (hk_disk_fails(disk, "open")) {
        return -1;
    }
    const hk_disk_entry_t *entry = hk_disk_entry(disk, name);
    if (entry == NULL) {
        errno = ENOENT;
        return -1;
    }
    return hk_disk_open_fd(disk, entry->file);
}

static inline int hk_disk_call_lock(void *context, int dir, const char *name)
{
    hk_disk_t *disk = context;
    (void)dir;
    (void)name;
    if (hk_disk_fails(disk, "lock")) {
        return -1;
    }
    if (disk->locked) {
        errno = EWOULDBLOCK;
        return -1;
    }
    disk->locked = true;
    return HK_DISK_LOCK;
}

static inline int64_t hk_disk_call_size(void *context, int fd)
{
    size_t file;
    return hk_disk_fails(context, "size") ? -1 : (int64_t)hk_disk_of(context, fd, &file)->size;
}

static inline int hk_disk_call_linked(void *context, int fd)
{
    hk_disk_t *disk = context;
    size_t file;
    hk_disk_of(disk, fd, &file);
    for (size_t i = 0; i < disk->entry_count; i++) {
        if (disk->entries[i].file == file) {
            return 1;
        }
    }
    return 0;
}

static inline int hk_disk_call_is_at(void *context, int dir, const char *path)
{
    const hk_disk_t *disk = context;
    (void)dir;
    (void)path;
    return !disk->moved;
}

static inline ssize_t hk_disk_call_read_at(void *context, int fd, void *bytes, size_t size, uint64_t offset)
{
    size_t at;
    const hk_disk_file_t *file = hk_disk_of(context, fd, &at);
    if (hk_disk_fails(context, "read")) {
        return -1;
    }
    size_t rest = offset < file->size ? file->size - offset : 0;
    size = size < rest ? size : rest;
    if (size > 0) {
        memcpy(bytes, file->bytes + offset, size);
    }
    return (ssize_t)size;
}

static inline ssize_t hk_disk_call_write_at(void *context, int fd, const struct iovec *parts, int count,
                                            uint64_t offset)
{
    hk_disk_t *disk = context;
    size_t at, size = 0, done = 0;
    hk_disk_file_t *file = hk_disk_of(disk, fd, &at);
    for (int i = 0; i < count; i++) {
        size += parts[i].iov_len;
    }
    if (hk_disk_fails(disk, "write")) {
        if (disk->error != 0 || size < 2) {
            return -1;
        }
        size /= 2;
    }
    size = disk->write_most > 0 && size > disk->write_most ? disk->write_most : size;
    size_t grown = offset + size > file->size ? offset + size - file->size : 0;
    if (grown > disk->room) {
        if (offset + size - (grown - disk->room) <= offset) {
            errno = ENOSPC;
            return -1;
        }
        size -= grown - disk->room;
        grown = disk->room;
    }
    disk->room -= disk->room == SIZE_MAX ? 0 : grown;
    if (grown > 0) {
        hk_disk_resize(file, offset + size);
    }
    hk_disk_change_t *change = hk_disk_changed(disk, HK_DISK_WROTE, at);
    change->offset = offset;
    change->size = size;
    change->bytes = hk_disk_copy("", 0);
    change->bytes = realloc(change->bytes, size > 0 ? size : 1);
    for (int i = 0; i < count && done < size; i++) {
        size_t part = parts[i].iov_len < size - done ? parts[i].iov_len : size - done;
        memcpy(change->bytes + done, parts[i].iov_base, part);
        done += part;
    }
    memcpy(file->bytes + offset, change->bytes, size);
    return (ssize_t)size;
}

static inline int hk_disk_call_sync_data(void *context, int fd)
{
    if (hk_disk_fails(context, "sync_data")) {
        return -1;
    }
    size_t file;
    hk_disk_of(context, fd, &file);
    hk_disk_changed(context, HK_DISK_SYNCED, file);
    return 0;
}

static inline int hk_disk_call_sync(void *context, int fd)
{
    if (hk_disk_fails(context, fd == HK_DISK_FOLDER ? "sync of the folder" : "sync")) {
        return -1;
    }
    size_t file = 0;
    if (fd != HK_DISK_FOLDER) {
        hk_disk_of(context, fd, &file);
    }
    hk_disk_changed(context, fd == HK_DISK_FOLDER ? HK_DISK_SYNCED_FOLDER : HK_DISK_SYNCED, file);
    return 0;
}

static inline int hk_disk_call_rename(void *context, int dir, const char *from, const char *to)
{
    hk_disk_t *disk = context;
    (void)dir;
    if (hk_disk_fails(disk, "rename")) {
        return -1;
    }
    const hk_disk_entry_t *entry = hk_disk_entry(disk, from);
    if (entry == NULL) {
        errno = ENOENT;
        return -1;
    }
    size_t file = entry->file;
    hk_disk_change_t *change = hk_disk_changed(disk, HK_DISK_RENAMED, file);
    snprintf(change->name, HK_DISK_NAME, "%s", from);
    snprintf(change->to, HK_DISK_NAME, "%s", to);
    hk_disk_forget_name(disk, from);
    hk_disk_set_name(disk, to, file);
    return 0;
}

static inline int hk_disk_call_unlink(void *context, int dir, const char *name)
{
    hk_disk_t *disk = context;
    (void)dir;
    if (hk_disk_fails(disk, "unlink")) {
        return -1;
    }
    const hk_disk_entry_t *entry = hk_disk_entry(disk, name);
    if (entry == NULL) {
        errno = ENOENT;
        return -1;
    }
    disk->room += disk->room == SIZE_MAX ? 0 : disk->contents[entry->file].size;
    snprintf(hk_disk_changed(disk, HK_DISK_UNLINKED, entry->file)->name, HK_DISK_NAME, "%s", name);
    hk_disk_forget_name(disk, name);
    return 0;
}

/* Never fails: the real one says no error that anybody acts on. */
static inline int hk_disk_call_close(void *context, int fd)
{
    hk_disk_t *disk = context;
    if (fd == HK_DISK_LOCK) {
        disk->locked = false;
    } else if (fd != HK_DISK_FOLDER) {
        size_t file;
        hk_disk_of(disk, fd, &file);
        disk->open[fd] = 0;
    }
    return 0;
}

static inline int hk_disk_call_list(void *context, int dir, void (*visit)(void *visitor, const char *name),
                                    void *visitor)
{
    hk_disk_t *disk = context;
    (void)dir;
    if (hk_disk_fails(disk, "list")) {
        return -1;
    }
    for (size_t i = disk->entry_count; i > 0; i--) {
        visit(visitor, disk->entries[i - 1].name);
    }
    return 0;
}

static inline int hk_disk_call_random(void *context, void *bytes, size_t size)
{
    hk_disk_t *disk = context;
    if (hk_disk_fails(disk, "random")) {
        return -1;
    }
    for (size_t i = 0; i < size; i++) {
        bool chosen = disk->random_bytes != NULL;
        ((char *)bytes)[i] = chosen ? *disk->random_bytes++ : (char)hk_disk_random(&disk->random_state);
    }
    return 0;
}

static inline int hk_disk_call_error(void *context)
{
    (void)context;
    return errno;
}

static inline int64_t hk_disk_call_monotonic(void *context)
{
    return ((hk_disk_t *)context)->now += 1000;
}

/* The disk's files have no times. */
static inline int64_t hk_disk_call_wall(void *context)
{
    (void)context;
    return 1700000000000000000;
}

/* -- Disks --------------------------------------------------------------------------------------------------------- */

static inline hk_disk_t *hk_disk_new(void)
{
    hk_disk_t *disk = calloc(1, sizeof(*disk));
    hk_disk_check(disk != NULL, "no memory");
    disk->files = (hk_files_t){
        .context = disk,
        .open_folder = hk_disk_call_open_folder,
        .create = hk_disk_call_create,
        .open = hk_disk_call_open,
        .lock = hk_disk_call_lock,
        .size = hk_disk_call_size,
        .linked = hk_disk_call_linked,
        .is_at = hk_disk_call_is_at,
        .read_at = hk_disk_call_read_at,
        .write_at = hk_disk_call_write_at,
        .sync_data = hk_disk_call_sync_data,
        .sync = hk_disk_call_sync,
        .rename = hk_disk_call_rename,
        .unlink = hk_disk_call_unlink,
        .close = hk_disk_call_close,
        .list = hk_disk_call_list,
        .random = hk_disk_call_random,
        .error = hk_disk_call_error,
        .monotonic = hk_disk_call_monotonic,
        .wall = hk_disk_call_wall,
    };
    disk->room = SIZE_MAX;
    return disk;
}

/* How many descriptors are open, the lock's too. */
static inline size_t hk_disk_open_count(const hk_disk_t *disk)
{
    size_t count = disk->locked;
    for (size_t fd = 0; fd < HK_DISK_FDS; fd++) {
        count += disk->open[fd] > 0;
    }
    return count;
}

/* What is there now counts as synced, and changes are recorded from here on. */
static inline void hk_disk_settle(hk_disk_t *disk)
{
    for (size_t i = 0; i < disk->count; i++) {
        free(disk->changes[i].bytes);
    }
    for (size_t i = 0; i < disk->first_content_count; i++) {
        free(disk->first_contents[i].bytes);
    }
    free(disk->first_contents);
    free(disk->first_entries);
    disk->count = 0;
    free(disk->changes);
    disk->changes = NULL;
    disk->first_entry_count = disk->entry_count;
    disk->first_entries = hk_disk_copy(disk->entries, disk->entry_count * sizeof(*disk->entries));
    disk->first_content_count = disk->content_count;
    disk->first_contents = hk_disk_copy(disk->contents, disk->content_count * sizeof(*disk->contents));
    for (size_t i = 0; i < disk->content_count; i++) {
        disk->first_contents[i].bytes = hk_disk_copy(disk->contents[i].bytes, disk->contents[i].size);
    }
}

static inline void hk_disk_free(hk_disk_t *disk)
{
    if (disk == NULL) {
        return;
    }
    hk_disk_settle(disk);
    for (size_t i = 0; i < disk->content_count; i++) {
        free(disk->contents[i].bytes);
        free(disk->first_contents[i].bytes);
    }
    free(disk->contents);
    free(disk->first_contents);
    free(disk->entries);
    free(disk->first_entries);
    free(disk);
}

/* Puts a file there, in place of another of this name. */
static inline void hk_disk_put(hk_disk_t *disk, const char *name, const void *bytes, size_t size)
{
    hk_disk_set_name(disk, name, hk_disk_add_content(disk, bytes, size));
}

/* -- A power cut --------------------------------------------------------------------------------------------------- */

static inline bool hk_disk_keeps(uint64_t seed, uint64_t *state)
{
    return seed == 1 || (seed > 1 && (hk_disk_random(state) & 1) != 0);
}

/* Of what is written behind the last sync, each sector by itself is kept or lost. */
static inline void hk_disk_rewrite(hk_disk_file_t *file, const hk_disk_change_t *change, bool synced, uint64_t seed,
                                   uint64_t *state)
{
    size_t end = change->offset + change->size;
    if (end > file->size && (synced || hk_disk_keeps(seed, state))) {
        hk_disk_resize(file, end);
    }
    for (size_t at = change->offset; at < end;) {
        size_t next = (at / HK_DISK_SECTOR + 1) * HK_DISK_SECTOR;
        next = next < end ? next : end;
        if (next <= file->size && (synced || hk_disk_keeps(seed, state))) {
            memcpy(file->bytes + at, change->bytes + (at - change->offset), next - at);
        }
        at = next;
    }
}

static inline void hk_disk_rename_again(hk_disk_t *disk, const hk_disk_change_t *change)
{
    switch (change->kind) {
    case HK_DISK_CREATED:
        hk_disk_set_name(disk, change->name, change->file);
        break;
    case HK_DISK_RENAMED:
        hk_disk_forget_name(disk, change->name);
        hk_disk_set_name(disk, change->to, change->file);
        break;
    case HK_DISK_UNLINKED:
        hk_disk_forget_name(disk, change->name);
        break;
    default:
        break;
    }
}

/* The disk as a power cut after the first `count` changes leaves it. */
static inline hk_disk_t *hk_disk_cut(const hk_disk_t *disk, size_t count, uint64_t seed)
{
    hk_disk_t *after = hk_disk_new();
    uint64_t state = seed * 1000003 + count;
    after->random_state = state;
    size_t *synced = calloc(disk->content_count + 1, sizeof(*synced)), folder = 0;
    hk_disk_check(synced != NULL, "no memory");
    for (size_t i = 0; i < count; i++) {
        if (disk->changes[i].kind == HK_DISK_SYNCED) {
            synced[disk->changes[i].file] = i;
        } else if (disk->changes[i].kind == HK_DISK_SYNCED_FOLDER) {
            folder = i;
        }
    }
    for (size_t i = 0; i < disk->content_count; i++) {
        const hk_disk_file_t *first = i < disk->first_content_count ? &disk->first_contents[i] : NULL;
        hk_disk_add_content(after, first != NULL ? first->bytes : "", first != NULL ? first->size : 0);
    }
    for (size_t i = 0; i < disk->first_entry_count; i++) {
        hk_disk_set_name(after, disk->first_entries[i].name, disk->first_entries[i].file);
    }
    for (size_t i = 0; i < count; i++) {
        const hk_disk_change_t *change = &disk->changes[i];
        if (change->kind == HK_DISK_WROTE) {
            hk_disk_rewrite(&after->contents[change->file], change, i < synced[change->file], seed, &state);
        } else if (i < folder || hk_disk_keeps(seed, &state)) {
            hk_disk_rename_again(after, change);
        }
    }
    free(synced);
    hk_disk_settle(after);
    return after;
}

#endif
