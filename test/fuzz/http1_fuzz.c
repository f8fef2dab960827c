/* http1_fuzz.c: requests and responses, cut otherwise than whole, must come to what they come to whole.
 *
 *     kind and cut, one byte │ messages
 */
#include "../engine/http1_outcome.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct text {
    char *at;
    size_t length;
} text_t;

static text_t text_of(const outcome_task_t *task, hk_bytes_t input)
{
    text_t text = {NULL, 0};
    FILE *out = open_memstream(&text.at, &text.length);
    if (out == NULL) {
        abort();
    }
    outcome_of(out, task, input);
    fclose(out);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const methods[] = {"GET", "HEAD", "CONNECT", "GET"};
    if (size < 1) {
        return 0;
    }
    hk_bytes_t input = hk_bytes((const char *)data + 1, size - 1);
    outcome_task_t task = outcome_task(data[0] & 1);
    task.method = hk_bytes(methods[data[0] >> 1 & 3], strlen(methods[data[0] >> 1 & 3]));
    if (data[0] & 8) {
        /* Small enough for a fuzzer to reach. */
        task.limits = (hk_http1_limits_t){1, 5, 20, 30, 100, 10, 30};
        task.headers = 3;
    }
    text_t whole = text_of(&task, input);
    task.first = 1 + data[0] / 16;
    task.step = 1 + data[0] % 3;
    /* Each window in a block of its own end, so that a byte read too much is seen. */
    task.room_size = input.length;
    task.room = input.length > 0 ? malloc(input.length) : NULL;
    text_t cut = text_of(&task, input);
    if (whole.length != cut.length || memcmp(whole.at, cut.at, cut.length) != 0) {
        fprintf(stderr, "whole:\n%s\ncut:\n%s\n", whole.at, cut.at);
        abort();
    }
    free(whole.at);
    free(cut.at);
    free(task.room);
    return 0;
}
