#include "template.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLE_BYTES = 3, DIGITS = 10 };

static const char *next_hole(const char *text)
{
    const char *t = strstr(text, "{t}"), *n = strstr(text, "{n}");
    if (!t || !n) return t ? t : n;
    return t < n ? t : n;
}

void template_compile(struct template *template, const char *text)
{
    *template = (struct template){.most = strlen(text) + TEMPLATE_PIECES * DIGITS};
    for (;;) {
        if (template->count == TEMPLATE_PIECES) {
            fprintf(stderr, "load: too many {t} and {n} in one text\n");
            exit(2);
        }
        const char *hole = next_hole(text);
        int i = template->count++;
        template->pieces[i].text = text;
        template->pieces[i].length = hole ? (size_t)(hole - text) : strlen(text);
        template->pieces[i].hole = hole ? hole[1] : '\0';
        if (!hole) return;
        text = hole + HOLE_BYTES;
    }
}

char *template_number(char *out, unsigned number)
{
    char digits[DIGITS];
    int count = 0;
    do digits[count++] = (char)('0' + number % 10);
    while (number /= 10);
    while (count) *out++ = digits[--count];
    return out;
}

char *template_fill(const struct template *template, int t, int n, char *out)
{
    for (int i = 0; i < template->count; i++) {
        memcpy(out, template->pieces[i].text, template->pieces[i].length);
        out += template->pieces[i].length;
        if (template->pieces[i].hole) out = template_number(out, (unsigned)(template->pieces[i].hole == 't' ? t : n));
    }
    return out;
}
