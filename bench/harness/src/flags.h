/* flags.h: the options of a program from a table, each `--name VALUE` or `--name`; --help prints the table. */
#ifndef BENCH_FLAGS_H
#define BENCH_FLAGS_H

#include <stdbool.h>
#include <stddef.h>

enum flag_kind { FLAG_NUMBER, FLAG_REAL, FLAG_SWITCH, FLAG_TEXT, FLAG_OWN };

struct flag {
    const char *name;
    enum flag_kind kind;
    size_t at;                                    /* of its member: an int, a double, a bool or a const char * */
    const char *value, *help;                     /* what its value is called; NULL for a switch */
    void (*set)(void *options, const char *text); /* FLAG_OWN: what is done with it */
};

struct flags {
    const char *program, *usage; /* "load", "--port PORT [options]" */
    const char *more;            /* below the table */
    const struct flag *all;
    int count; /* at most 63 */
};

/* Sets the members of `options` that are named; prints the help and exits 0; on a mistake says which, and exits 2. */
void flags_parse(const struct flags *flags, void *options, int argc, char **argv);

/* Says why, where help is to be had, and exits 2. */
_Noreturn void flags_refuse(const struct flags *flags, const char *why);

#endif
