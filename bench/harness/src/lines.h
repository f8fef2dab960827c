/* lines.h: a text file, line by line. */
#ifndef BENCH_LINES_H
#define BENCH_LINES_H

struct lines {
    char **all; /* without their line feeds */
    int count;
};

/* Reads them all; exits with a message when the file cannot be read or is empty. */
void lines_read(struct lines *lines, const char *path);

#endif
