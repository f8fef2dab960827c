/* append: the time of write() and fdatasync() on this disk, without a broker.
 *
 *     append FOLDER BYTES COUNT
 *
 * Prints {"append_ms", "overwrite_ms"}: at the end of a growing file, and over space that was written before, where no
 * metadata changes. */
#include "bench.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_BYTES = 1 << 20 };

static char bytes[MAX_BYTES];

static void write_synced(int fd, size_t size, int count, const char *name, const char *end)
{
    struct samples samples = {0};
    for (int i = 0; i < count; i++) {
        int64_t start = clock_ns();
        if (write(fd, bytes, size) != (ssize_t)size || fdatasync(fd)) fail("append");
        samples_add(&samples, clock_ns() - start);
    }
    printf("%s: ", name);
    samples_print_json(&samples, stdout);
    printf("%s", end);
}

int main(int argc, char **argv)
{
    long size = argc == 4 ? atol(argv[2]) : 0;
    int count = argc == 4 ? atoi(argv[3]) : 0;
    if (size < 1 || size > MAX_BYTES || count < 1) {
        fprintf(stderr, "usage: append FOLDER BYTES COUNT\n");
        return 2;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/appended", argv[1]);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) fail(path);
    memset(bytes, 'x', sizeof bytes);
    write_synced(fd, (size_t)size, count, "{\"append_ms\"", ", ");
    if (fsync(fd) || lseek(fd, 0, SEEK_SET)) fail("fsync");
    write_synced(fd, (size_t)size, count, "\"overwrite_ms\"", "}\n");
    return unlink(path);
}
