#include "hk_test.h"

#include "hk_test_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOTE_LENGTH = 1000, SHOWN_BYTES = 400 };

static hk_test_t *tests, **last_test = &tests;
static const hk_test_t *current;
static jmp_buf end_of_test;
static pthread_t thread_of_tests;
static char note[NOTE_LENGTH];
static uint64_t random_state;
static bool random_was_used;

void hk_test_register(hk_test_t *test)
{
    *last_test = test;
    last_test = &test->next;
}

/* -- Saying what happened ------------------------------------------------------------------------------------------ */

static const char *below_root(const char *file)
{
    while (strncmp(file, "../", 3) == 0) {
        file += 3;
    }
    return file;
}

static void sentence_of(const hk_test_t *test, char sentence[static NOTE_LENGTH])
{
    snprintf(sentence, NOTE_LENGTH, "%s", test->name);
    for (char *at = sentence; *at != '\0'; at++) {
        *at = *at == '_' ? ' ' : *at;
    }
}

static uint64_t seed(void)
{
    const char *given = getenv("HK_TEST_SEED");
    return given != NULL ? strtoull(given, NULL, 0) : 1;
}

static void print_name(const char *what)
{
    char sentence[NOTE_LENGTH];
    sentence_of(current, sentence);
    printf("%s %s: %s\n", what, program_invocation_short_name, sentence);
}

static void print_context(void)
{
    if (note[0] != '\0') {
        printf("    %s\n", note);
    }
    if (random_was_used) {
        printf("    HK_TEST_SEED=%llu\n", (unsigned long long)seed());
    }
    fflush(stdout);
}

enum outcome { PASSED, FAILED, SKIPPED };

_Noreturn static void end_test(enum outcome outcome)
{
    if (!pthread_equal(pthread_self(), thread_of_tests)) {
        printf("    in another thread: the tests after this one did not run\n");
        fflush(stdout);
        _exit(EXIT_FAILURE);
    }
    longjmp(end_of_test, (int)outcome);
}

void hk_test_fail(const char *file, int line, const char *what, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_name("FAILED");
    printf("    %s:%d: %s ", below_root(file), line, what);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    print_context();
    end_test(FAILED);
}

void hk_test_skip(const char *reason)
{
    print_name("SKIPPED");
    printf("    %s\n", reason);
    end_test(SKIPPED);
}

void hk_test_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(note, sizeof(note), format, arguments);
    va_end(arguments);
}

/* -- Checks -------------------------------------------------------------------------------------------------------- */

void hk_test_check_int(const char *file, int line, const char *what, int64_t expected, int64_t actual)
{
    if (expected != actual) {
        hk_test_fail(file, line, what, "is %lld, not %lld", (long long)actual, (long long)expected);
    }
}

void hk_test_check_uint(const char *file, int line, const char *what, uint64_t expected, uint64_t actual)
{
    if (expected != actual) {
        hk_test_fail(file, line, what, "is %llu (0x%llx), not %llu (0x%llx)", (unsigned long long)actual,
                     (unsigned long long)actual, (unsigned long long)expected, (unsigned long long)expected);
    }
}

void hk_test_check_status(const char *file, int line, const char *what, hk_status_t expected, hk_status_t actual)
{
    if (expected != actual) {
        hk_test_fail(file, line, what, "is %s, not %s", hk_status_name(actual), hk_status_name(expected));
    }
}

static void show(hk_bytes_t bytes, char shown[static 4 * SHOWN_BYTES + 20])
{
    char *at = shown;
    for (size_t i = 0; i < bytes.length && i < SHOWN_BYTES; i++) {
        unsigned char byte = (unsigned char)bytes.at[i];
        const char *plain = byte == '\n'   ? "\\n"
                            : byte == '\r' ? "\\r"
                            : byte == '"'  ? "\\\""
                            : byte == '\\' ? "\\\\"
                                           : NULL;
        if (plain != NULL) {
            at += sprintf(at, "%s", plain);
        } else {
            at += sprintf(at, byte >= 0x20 && byte <= 0x7E ? "%c" : "\\x%02x", byte);
        }
    }
    strcpy(at, bytes.length > SHOWN_BYTES ? "…" : "");
}

void hk_test_check_bytes(const char *file, int line, const char *what, hk_bytes_t expected, hk_bytes_t actual)
{
    if (hk_bytes_equal(expected, actual)) {
        return;
    }
    size_t same = 0;
    while (same < expected.length && same < actual.length && expected.at[same] == actual.at[same]) {
        same++;
    }
    char shown_expected[4 * SHOWN_BYTES + 20], shown_actual[4 * SHOWN_BYTES + 20];
    show(expected, shown_expected);
    show(actual, shown_actual);
    hk_test_fail(file, line, what,
                 "is not as expected from byte %zu on\n      expected (%zu) \"%s\"\n      is       (%zu) \"%s\"", same,
                 expected.length, shown_expected, actual.length, shown_actual);
}

hk_bytes_t hk_test_bytes_of_bytes(hk_bytes_t bytes, size_t size)
{
    (void)size;
    return bytes;
}

hk_bytes_t hk_test_bytes_of_text(const char *text, size_t size)
{
    return hk_bytes(text, size == SIZE_MAX ? strlen(text) : size - 1);
}

/* -- Input --------------------------------------------------------------------------------------------------------- */

hk_bytes_t hk_test_text(const char *text)
{
    return hk_bytes(text, strlen(text));
}

hk_bytes_t hk_test_file(const char *path)
{
    char full[4096];
    snprintf(full, sizeof(full), "%s/%s", HK_TEST_ROOT, path);
    int descriptor = open(full, O_RDONLY | O_CLOEXEC);
    struct stat about;
    if (descriptor < 0 || fstat(descriptor, &about) != 0) {
        HK_FAIL("cannot read %s", path);
    }
    size_t size = (size_t)about.st_size, length = 0;
    char *memory = hk_test_keep(size);
    for (ssize_t count = 1; count > 0 && length < size; length += (size_t)count) {
        count = read(descriptor, memory + length, size - length);
        if (count < 0) {
            HK_FAIL("cannot read %s", path);
        }
    }
    close(descriptor);
    return hk_bytes(memory, length);
}

hk_bytes_t hk_test_field(hk_bytes_t *rest, char separator)
{
    const char *end = rest->length > 0 ? memchr(rest->at, separator, rest->length) : NULL;
    size_t length = end != NULL ? (size_t)(end - rest->at) : rest->length;
    hk_bytes_t field = hk_bytes(rest->at, length);
    size_t taken = end != NULL ? length + 1 : length;
    *rest = taken > 0 ? hk_bytes(rest->at + taken, rest->length - taken) : *rest;
    return field;
}

bool hk_test_line(hk_bytes_t *rest, hk_bytes_t *line)
{
    if (rest->length == 0) {
        return false;
    }
    *line = hk_test_field(rest, '\n');
    return true;
}

/* SplitMix64: every seed is a good one. */
uint64_t hk_test_random(void)
{
    random_was_used = true;
    random_state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t value = random_state;
    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

size_t hk_test_below(size_t limit)
{
    return (size_t)(hk_test_random() % limit);
}

/* -- Running ------------------------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    static const char crashed[] = "\nCRASHED in ", hung[] = "\nHANGS in ";
    bool hangs = number == SIGALRM;
    ssize_t written = write(STDOUT_FILENO, hangs ? hung : crashed, (hangs ? sizeof(hung) : sizeof(crashed)) - 1);
    if (current != NULL) {
        written += write(STDOUT_FILENO, current->name, strlen(current->name));
    }
    written += write(STDOUT_FILENO, "\n", 1);
    if (note[0] != '\0') {
        written += write(STDOUT_FILENO, note, strlen(note));
        written += write(STDOUT_FILENO, "\n", 1);
    }
    (void)written;
    if (hangs) {
        _exit(EXIT_FAILURE);
    }
    signal(number, SIG_DFL);
    raise(number);
}

static void watch_signals(void)
{
    signal(SIGALRM, on_signal);
/* The sanitizers say more than we could. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && !defined(HK_TEST_SANITIZED)
    signal(SIGSEGV, on_signal);
    signal(SIGBUS, on_signal);
    signal(SIGFPE, on_signal);
    signal(SIGABRT, on_signal);
#endif
}

static unsigned seconds_for_a_test(void)
{
    const char *given = getenv("HK_TEST_SECONDS");
    return given != NULL ? (unsigned)strtoul(given, NULL, 10) : 120;
}

static enum outcome run(const hk_test_t *test)
{
    current = test;
    note[0] = '\0';
    random_state = seed();
    random_was_used = false;
    hk_test_memory_begin();
    alarm(seconds_for_a_test());
    int outcome = setjmp(end_of_test);
    if (outcome == PASSED) {
        test->run();
        hk_test_not_failing();
        if (hk_test_blocks() > 0) {
            hk_test_fail(test->file, 0, "the test",
                         "did not give back %zu bytes in %zu blocks, the first of them request %zu",
                         hk_test_bytes_in_use(), hk_test_blocks(), hk_test_oldest_block());
        }
    }
    alarm(0);
    hk_test_memory_end();
    current = NULL;
    return (enum outcome)outcome;
}

static bool is_named(const hk_test_t *test, int count, char **words)
{
    char sentence[NOTE_LENGTH];
    sentence_of(test, sentence);
    for (int i = 0; i < count; i++) {
        if (words[i][0] != '\0' && strstr(test->name, words[i]) == NULL && strstr(sentence, words[i]) == NULL) {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    thread_of_tests = pthread_self();
    watch_signals();
    size_t outcomes[3] = {0};
    for (const hk_test_t *test = tests; test != NULL; test = test->next) {
        if (is_named(test, argc - 1, argv + 1)) {
            outcomes[run(test)]++;
        }
    }
    size_t total = outcomes[PASSED] + outcomes[FAILED] + outcomes[SKIPPED];
    printf("%s: %zu tests, %zu failed, %zu skipped\n", program_invocation_short_name, total, outcomes[FAILED],
           outcomes[SKIPPED]);
    /* A filter may leave nothing of this program; a program without tests is a mistake. */
    return outcomes[FAILED] == 0 && (total > 0 || argc > 1) ? EXIT_SUCCESS : EXIT_FAILURE;
}
