/* hk_date.h: the time as HTTP writes it.
 *
 * RFC 9110, section 5.6.7 (IMF-fixdate): "Sun, 06 Nov 1994 08:49:37 GMT".
 */
#ifndef HK_DATE_H
#define HK_DATE_H

#include <stdint.h>

enum { HK_DATE_BYTES = 29, HK_DATE_LINE_BYTES = HK_DATE_BYTES + 8 /* "date: ", "\r\n" */ };

/* Writes a date.
 *
 * seconds  since 1970, UTC, of the years 1970 to 9999; others are taken for the nearest of those.
 * text     no NUL is written. */
void hk_date_write(int64_t seconds, char text[HK_DATE_BYTES]);

/* A line of a head, "date: …", which is written anew when another second has begun. */
typedef struct hk_date_line {
    int64_t second; /* 0: nothing is written yet */
    char text[HK_DATE_LINE_BYTES];
} hk_date_line_t;

/* ns since 1970. The text; borrowed until the next call. */
const char *hk_date_line(hk_date_line_t *line, int64_t wall);

#endif
