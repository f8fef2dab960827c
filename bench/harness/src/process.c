#include "process.h"

#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void gone(pid_t pid)
{
    fprintf(stderr, "process %d is gone: its figures cannot be read\n", (int)pid);
    exit(3);
}

/* The scheduler's own count for the thread group: finer than the ticks of /proc/PID/stat, and unlike the sum
 * of /proc/PID/task/N/schedstat it loses no thread that ended between two readings. */
static int64_t cpu_ns(pid_t pid)
{
    clockid_t clock;
    struct timespec t;
    if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &t)) gone(pid);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t own_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int64_t rss_bytes(pid_t pid)
{
    char path[64];
    long total, resident = 0;
    snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
    FILE *file = fopen(path, "r");
    if (!file || fscanf(file, "%ld %ld", &total, &resident) != 2) gone(pid);
    fclose(file);
    return (int64_t)resident * sysconf(_SC_PAGESIZE);
}

struct usage process_usage(const pid_t *pids, int count)
{
    struct usage usage = {.own_ns = own_ns(), .tcp_bytes = memory_of_tcp()};
    for (int i = 0; i < count; i++) {
        usage.cpu_ns += cpu_ns(pids[i]);
        usage.rss_bytes += rss_bytes(pids[i]);
    }
    return usage;
}
