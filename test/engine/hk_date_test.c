#include "hk_date.h"
#include "hk_test.h"

#include <string.h>
#include <time.h>

static const struct {
    int64_t seconds;
    const char *text;
} dates[] = {
    {784111777, "Sun, 06 Nov 1994 08:49:37 GMT"}, /* RFC 9110 */
    {0, "Thu, 01 Jan 1970 00:00:00 GMT"},
    {951782399, "Mon, 28 Feb 2000 23:59:59 GMT"},
    {951782400, "Tue, 29 Feb 2000 00:00:00 GMT"},
    {4107542400, "Mon, 01 Mar 2100 00:00:00 GMT"},
    {253402300799, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {253402300800, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {INT64_MAX, "Fri, 31 Dec 9999 23:59:59 GMT"},
    {-1, "Thu, 01 Jan 1970 00:00:00 GMT"},
};

HK_TEST(dates_are_written_as_http_has_them)
{
    for (size_t i = 0; i < sizeof(dates) / sizeof(dates[0]); i++) {
        char text[HK_DATE_BYTES];
        hk_date_write(dates[i].seconds, text);
        HK_CHECK_BYTES(dates[i].text, hk_bytes(text, sizeof(text)));
    }
}

/* A moment of every day of 800 years. */
HK_TEST(every_day_is_the_one_that_the_library_has)
{
    for (int64_t day = 0; day < 2 * 146097; day++) {
        time_t seconds = (time_t)(day * 86400 + day * 7919 % 86400);
        struct tm parts;
        char expected[HK_DATE_BYTES + 1], text[HK_DATE_BYTES];
        HK_CHECK(gmtime_r(&seconds, &parts) != NULL);
        HK_CHECK(strftime(expected, sizeof(expected), "%a, %d %b %Y %H:%M:%S GMT", &parts) == HK_DATE_BYTES);
        hk_date_write(seconds, text);
        HK_CHECK(memcmp(expected, text, sizeof(text)) == 0);
    }
}

HK_TEST(a_line_is_the_same_until_another_second_begins)
{
    hk_date_line_t line = {0};
    const int64_t second = 1000000000;
    HK_CHECK_BYTES("date: Thu, 01 Jan 1970 00:00:00 GMT\r\n", hk_bytes(hk_date_line(&line, 0), HK_DATE_LINE_BYTES));
    HK_CHECK_BYTES("date: Thu, 01 Jan 1970 00:00:05 GMT\r\n",
                   hk_bytes(hk_date_line(&line, 5 * second), HK_DATE_LINE_BYTES));
    line.text[6] = '-';
    HK_CHECK_BYTES("date: -hu, 01 Jan 1970 00:00:05 GMT\r\n",
                   hk_bytes(hk_date_line(&line, 6 * second - 1), HK_DATE_LINE_BYTES));
    HK_CHECK_BYTES("date: Thu, 01 Jan 1970 00:00:06 GMT\r\n",
                   hk_bytes(hk_date_line(&line, 6 * second), HK_DATE_LINE_BYTES));
}
