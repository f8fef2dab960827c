#include "lines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *path)
{
    perror(path);
    exit(2);
}

static void add(struct lines *lines, const char *line)
{
    if ((lines->count & (lines->count - 1)) == 0) { /* room for the next power of two */
        size_t room = lines->count ? (size_t)lines->count * 2 : 1;
        lines->all = realloc(lines->all, room * sizeof *lines->all);
    }
    if (!lines->all || !(lines->all[lines->count++] = strdup(line))) fail("lines");
}

void lines_read(struct lines *lines, const char *path)
{
    *lines = (struct lines){0};
    FILE *file = fopen(path, "r");
    if (!file) fail(path);
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 0) {
        line[strcspn(line, "\r\n")] = '\0';
        add(lines, line);
    }
    free(line);
    fclose(file);
    if (lines->count == 0) {
        fprintf(stderr, "%s: there is no line in it\n", path);
        exit(2);
    }
}
