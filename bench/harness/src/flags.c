#include "flags.h"

#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 64 };

static void print_help(const struct flags *flags)
{
    printf("usage: %s %s\n\n", flags->program, flags->usage);
    for (int i = 0; i < flags->count; i++) {
        const struct flag *flag = &flags->all[i];
        char name[64];
        snprintf(name, sizeof name, "--%s %s", flag->name, flag->value ? flag->value : "");
        printf("  %-30s%s\n", name, flag->help);
    }
    printf("\n%s", flags->more);
}

void flags_refuse(const struct flags *flags, const char *why)
{
    fprintf(stderr, "%s: %s (see %s --help)\n", flags->program, why, flags->program);
    exit(2);
}

static void set(const struct flag *flag, void *options, const char *value)
{
    void *at = (char *)options + flag->at;
    switch (flag->kind) {
    case FLAG_NUMBER: *(int *)at = atoi(value); break;
    case FLAG_REAL: *(double *)at = atof(value); break;
    case FLAG_SWITCH: *(bool *)at = true; break;
    case FLAG_TEXT: *(const char **)at = value; break;
    case FLAG_OWN: flag->set(options, value); break;
    }
}

void flags_parse(const struct flags *flags, void *options, int argc, char **argv)
{
    struct option names[MOST + 1] = {0};
    if (flags->count >= MOST) flags_refuse(flags, "the table of options is too long");
    for (int i = 0; i < flags->count; i++) {
        int value = flags->all[i].value ? required_argument : no_argument;
        names[i] = (struct option){flags->all[i].name, value, NULL, i + 1};
    }
    int help = flags->count + 1, number;
    names[flags->count] = (struct option){"help", no_argument, NULL, help};
    while ((number = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (number == help) {
            print_help(flags);
            exit(0);
        }
        if (number < 1 || number > help) exit(2); /* getopt has said what is wrong */
        set(&flags->all[number - 1], options, optarg);
    }
    if (optind < argc) flags_refuse(flags, "every option starts with --");
}
