/* A wall clock that a test sets while a process runs, and that no other process sees: loaded by LD_PRELOAD, it shifts what the
 * process is told of CLOCK_REALTIME by the nanoseconds that stand in the file HIKYAKU_TEST_CLOCK. Clocks that only go forward
 * are left alone. See shifted_clock.rb. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

static const _Atomic int64_t *shift;

static __attribute__((constructor)) void begin(void)
{
    const char *path = getenv("HIKYAKU_TEST_CLOCK");
    int file = path == NULL ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    void *page = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(*shift), PROT_READ, MAP_SHARED, file, 0);
    if (page == MAP_FAILED) {
        fputs("FATAL: HIKYAKU_TEST_CLOCK is no file that can be read\n", stderr);
        _exit(97);
    }
    close(file);
    shift = page;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, clock, now);
    /* Other libraries may begin, and ask for the time, before this one does. */
    if (status == 0 && shift != NULL && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t ns = (int64_t)now->tv_sec * SECOND + now->tv_nsec + atomic_load(shift);
        now->tv_sec = (time_t)(ns / SECOND);
        now->tv_nsec = (long)(ns % SECOND);
    }
    return status;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec time;
    (void)zone;
    int status = clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return status;
}

time_t time(time_t *at)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at != NULL) {
        *at = now.tv_sec;
    }
    return now.tv_sec;
}
