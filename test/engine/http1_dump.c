/* http1_dump.c: what messages and forms come to.
 *
 * In, six fields each time:
 *
 *     "request", "response" or "form"; the method of the requests that responses answer; how many bytes arrive at first
 *     and how many then, "0" is all; limits, "head_bytes=100,headers=2" or ""; the bytes
 *
 * Out, the text of http1_outcome.h and a line with a dot.
 */
#include "dump.h"
#include "http1_outcome.h"

static size_t number_of(hk_bytes_t field)
{
    char digits[20] = "";
    if (field.length >= sizeof(digits)) {
        dump_fail("a number is too long");
    }
    memcpy(digits, field.at, field.length);
    return strtoul(digits, NULL, 10);
}

static void set_limits(outcome_task_t *task, hk_bytes_t limits)
{
    while (limits.length > 0) {
        const char *comma = memchr(limits.at, ',', limits.length);
        size_t length = comma != NULL ? (size_t)(comma - limits.at) : limits.length;
        if (!outcome_set_limit(task, hk_bytes(limits.at, length))) {
            dump_fail("there is no such limit");
        }
        length += comma != NULL;
        limits = hk_bytes(limits.at + length, limits.length - length);
    }
}

int main(void)
{
    hk_bytes_t kind;
    while (dump_take(&kind)) {
        outcome_task_t task = outcome_task(hk_bytes_equal(kind, HK_BYTES("response")));
        task.method = dump_field();
        task.first = number_of(dump_field());
        task.step = number_of(dump_field());
        set_limits(&task, dump_field());
        hk_bytes_t bytes = dump_field();
        if (hk_bytes_equal(kind, HK_BYTES("form"))) {
            outcome_of_form(stdout, bytes);
        } else {
            outcome_of(stdout, &task, bytes);
        }
        puts(".");
    }
    return EXIT_SUCCESS;
}
