/* Lets a process stand still before each read of a segment of a journal: loaded by LD_PRELOAD, pread() connects to the Unix
 * socket HIKYAKU_TEST_READS and waits there for a byte; where nobody listens, it goes on. See paused_reads.rb. */
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static bool is_segment(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof(path) - 1);
    path[length > 0 ? length : 0] = 0;
    return strstr(path, "/journal-") != NULL;
}

static void wait_for_leave(void)
{
    const char *path = getenv("HIKYAKU_TEST_READS");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char leave;
    if (path == NULL) {
        return;
    }
    snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", path);
    int gate = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(gate, (struct sockaddr *)&address, sizeof(address)) == 0) {
        /* Signals may come meanwhile. */
        while (read(gate, &leave, 1) < 0 && errno == EINTR) {
        }
    }
    close(gate);
}

ssize_t pread(int fd, void *bytes, size_t size, off_t offset)
{
    static ssize_t (*real)(int, void *, size_t, off_t);
    real = real != NULL ? real : (ssize_t(*)(int, void *, size_t, off_t))dlsym(RTLD_NEXT, "pread");
    if (is_segment(fd)) {
        wait_for_leave();
    }
    return real(fd, bytes, size, offset);
}

ssize_t pread64(int fd, void *bytes, size_t size, off64_t offset)
{
    return pread(fd, bytes, size, (off_t)offset);
}
