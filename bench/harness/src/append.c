/* append: what the disk alone takes: so many times some bytes at the end of a file, and fdatasync().
 *
 *     append FOLDER BYTES COUNT
 *
 * Prints {"append_ms", "overwrite_ms"}: at the end of a file that grows, and over space that was written before,
 * where no metadata changes. */
#include "clock.h"
#include "samples.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, MOST = 1 << 20 };

static char bytes[MOST];

static void fail(const char *what)
{
    perror(what);
    exit(2);
}

static void write_synced(int fd, size_t size, int count, struct samples *samples)
{
    for (int i = 0; i < count; i++) {
        int64_t start = clock_ns();
        if (write(fd, bytes, size) != (ssize_t)size || fdatasync(fd)) fail("append");
        samples_add(samples, clock_ns() - start);
    }
}

int main(int argc, char **argv)
{
    long size = argc == 4 ? atol(argv[2]) : 0;
    int count = argc == 4 ? atoi(argv[3]) : 0;
    if (size < 1 || size > MOST || count < 1) {
        fprintf(stderr, "usage: append FOLDER BYTES COUNT\n");
        return 2;
    }
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s/appended", argv[1]);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) fail(path);
    memset(bytes, 'x', sizeof bytes);
    struct samples appended = {0}, overwritten = {0};
    write_synced(fd, (size_t)size, count, &appended);
    if (fsync(fd) || lseek(fd, 0, SEEK_SET)) fail("fsync");
    write_synced(fd, (size_t)size, count, &overwritten);
    unlink(path);
    printf("{\"append_ms\": ");
    samples_print_json(&appended, stdout);
    printf(", \"overwrite_ms\": ");
    samples_print_json(&overwritten, stdout);
    printf("}\n");
    return 0;
}
