#include "hk_date.h"

#include <string.h>

#define DAY_SECONDS INT64_C(86400)
#define LAST_SECOND INT64_C(253402300799)
#define SECOND_NS INT64_C(1000000000)

typedef struct day {
    int year, month, day; /* January is 0, the first is 1 */
} day_t;

/* The Gregorian calendar repeats itself every 400 years of 146,097 days. Years are counted here from March, so that a
 * leap day is the last of its year, and the days before a month follow from its number alone. */
static day_t day_of(int64_t days)
{
    int64_t since = days + 719468 /* from 1 March of the year 0 to 1970 */, era = since / 146097;
    int64_t in_era = since % 146097;
    int64_t years = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
    int64_t in_year = in_era - (365 * years + years / 4 - years / 100);
    int64_t month = (5 * in_year + 2) / 153;
    return (day_t){
        .year = (int)(era * 400 + years + (month >= 10)),
        .month = (int)(month >= 10 ? month - 10 : month + 2),
        .day = (int)(in_year - (153 * month + 2) / 5 + 1),
    };
}

static void write_number(char *at, int number, int digits)
{
    for (int i = digits; i > 0; i--) {
        at[i - 1] = (char)('0' + number % 10);
        number /= 10;
    }
}

void hk_date_write(int64_t seconds, char text[HK_DATE_BYTES])
{
    seconds = seconds < 0 ? 0 : seconds > LAST_SECOND ? LAST_SECOND : seconds;
    int64_t days = seconds / DAY_SECONDS;
    int second = (int)(seconds % DAY_SECONDS);
    day_t day = day_of(days);
    memcpy(text, "Thu, 01 Jan 1970 00:00:00 GMT", HK_DATE_BYTES);
    memcpy(text, &"ThuFriSatSunMonTueWed"[3 * (days % 7)], 3);
    write_number(text + 5, day.day, 2);
    memcpy(text + 8, &"JanFebMarAprMayJunJulAugSepOctNovDec"[3 * day.month], 3);
    write_number(text + 12, day.year, 4);
    write_number(text + 17, second / 3600, 2);
    write_number(text + 20, second / 60 % 60, 2);
    write_number(text + 23, second % 60, 2);
}

const char *hk_date_line(hk_date_line_t *line, int64_t wall)
{
    int64_t second = wall / SECOND_NS;
    if (second != line->second || second == 0) {
        line->second = second;
        memcpy(line->text, "date: ", 6);
        hk_date_write(second, line->text + 6);
        memcpy(line->text + HK_DATE_LINE_BYTES - 2, "\r\n", 2);
    }
    return line->text;
}
