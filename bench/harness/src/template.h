/* template.h: a text with holes for numbers, taken apart once so that filling it costs next to nothing:
 *
 *     "topic=https://example.com/shelves/{t}/{n}&data="      {t} a topic's number, {n} a message's or subscriber's */
#ifndef BENCH_TEMPLATE_H
#define BENCH_TEMPLATE_H

#include <stddef.h>

enum { TEMPLATE_PIECES = 9 };

struct template {
    struct {
        const char *text;
        size_t length;
        char hole; /* what follows the text: 't', 'n', or 0 for nothing */
    } pieces[TEMPLATE_PIECES];
    int count;
    size_t most; /* bytes that it can ever fill */
};

/* Keeps pointers into `text`. Exits with a message when there are too many holes. */
void template_compile(struct template *template, const char *text);

/* Writes the text to `out`, which has room for template->most bytes, and says where it ended. No NUL is added. */
char *template_fill(const struct template *template, int t, int n, char *out);

/* Writes a number in decimal digits and says where it ended. */
char *template_number(char *out, unsigned number);

#endif
