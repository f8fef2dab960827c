/* pin: runs a program on one core, so that the server and the load never share one.
 *
 *     pin CORE PROGRAM [ARGUMENTS] */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: pin CORE PROGRAM [ARGUMENTS]\n");
        return 2;
    }
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET((size_t)atoi(argv[1]), &cores);
    if (sched_setaffinity(0, sizeof cores, &cores)) perror("pin: the program runs on any core");
    execvp(argv[2], argv + 2);
    perror(argv[2]);
    return 127;
}
