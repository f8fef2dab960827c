/* hk_test.h: tests of the engine in C.
 *
 * A file test/engine/hk_THING_test.c is a program of its own: it needs no main and no list of its tests.
 *
 *     #include "hk_test.h"
 *     #include "hk_thing.h"
 *
 *     HK_TEST(a_name_is_a_sentence_about_behaviour)
 *     {
 *         hk_thing_t thing;
 *         hk_thing_init(&thing, hk_test_alloc());
 *         HK_CHECK_OK(hk_thing_add(&thing, HK_BYTES("one")));
 *         HK_CHECK_BYTES("one", hk_thing_first(&thing));
 *         hk_thing_release(&thing);
 *     }
 *
 * The first check that fails ends its test; the next test runs. A test fails as well when it keeps memory of
 * hk_test_alloc(), when it crashes, and when it takes longer than HK_TEST_SECONDS (120).
 *
 * In ext/hikyaku/engine:
 *
 *     make check                                            every program; make asan, make tsan, make valgrind
 *     make check TESTS=hk_thing_test NAME='about behaviour' those tests whose name holds the words
 *     make check TESTS=… SOURCES='hk_status.c …' BUILD=…    without files that somebody else is working on
 *
 * Tests run in the order of the file, in one process and one thread.
 */
#ifndef HK_TEST_H
#define HK_TEST_H

#include "hk_alloc.h"
#include "hk_bytes.h"
#include "hk_status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* -- Tests --------------------------------------------------------------------------------------------------------- */

typedef struct hk_test {
    const char *name, *file;
    void (*run)(void);
    struct hk_test *next;
} hk_test_t;

void hk_test_register(hk_test_t *test);

#define HK_TEST(name)                                                                                                  \
    static void test_##name(void);                                                                                     \
    __attribute__((constructor)) static void register_##name(void)                                                     \
    {                                                                                                                  \
        static hk_test_t test = {#name, __FILE__, test_##name, NULL};                                                  \
        hk_test_register(&test);                                                                                       \
    }                                                                                                                  \
    static void test_##name(void)

/* Ends the test; it is listed with the reason as one that did not run. For what a machine may lack, say IPv6. */
_Noreturn void hk_test_skip(const char *reason);

/* What is shown when a check fails from here to the end of the test or to the next note: which row of a table, which
 * byte. As printf. */
__attribute__((format(printf, 1, 2))) void hk_test_note(const char *format, ...);

/* -- Checks -----------------------------------------------------------------------------------------------------------
 *
 * Each takes what is expected first and evaluates its arguments once. A check that fails in another thread than that
 * of the test ends the whole program.
 */

#define HK_CHECK(condition) ((condition) ? (void)0 : hk_test_fail(__FILE__, __LINE__, #condition, "is not so"))

/* Integers that fit into int64_t. */
#define HK_CHECK_EQUAL_INT(expected, actual)                                                                           \
    hk_test_check_int(__FILE__, __LINE__, #actual, (int64_t)(expected), (int64_t)(actual))

/* Integers that fit into uint64_t: sizes, hashes. */
#define HK_CHECK_EQUAL_UINT(expected, actual)                                                                          \
    hk_test_check_uint(__FILE__, __LINE__, #actual, (uint64_t)(expected), (uint64_t)(actual))

/* `expected`: a string literal (which may hold zeros), a C string or hk_bytes_t; `actual`: hk_bytes_t. */
#define HK_CHECK_BYTES(expected, actual)                                                                               \
    hk_test_check_bytes(__FILE__, __LINE__, #actual, HK_TEST_BYTES(expected), (actual))

#define HK_CHECK_STATUS(expected, actual) hk_test_check_status(__FILE__, __LINE__, #actual, (expected), (actual))

#define HK_CHECK_OK(actual) HK_CHECK_STATUS(HK_OK, actual)

/* Fails. As printf. */
#define HK_FAIL(...) hk_test_fail(__FILE__, __LINE__, "the test", __VA_ARGS__)

/* -- Memory -----------------------------------------------------------------------------------------------------------
 *
 * The allocator counts, fills what it gives with 0xA5 and moves whatever is resized. Several threads may use it.
 */

const hk_alloc_t *hk_test_alloc(void);

/* How many blocks, and bytes in them, were taken from hk_test_alloc() in this test and not given back. */
size_t hk_test_blocks(void);
size_t hk_test_bytes_in_use(void);

/* How many times hk_test_alloc() was asked for memory in this test: a path that allocates nothing does not raise it. */
size_t hk_test_requests(void);

/* The request after the next `n` fails, and none after it. */
void hk_test_failing(size_t n);

/* Requests work again. */
void hk_test_not_failing(void);

/* Whether a request was made to fail since hk_test_failing(), or in this turn of HK_EACH_FAILING_ALLOCATION. */
bool hk_test_failed(void);

/* Runs a block with the first request for memory failing, then with the second, … until nothing failed in it; and all
 * of that again with every request failing from the n-th on. The block must have given back, each time, what it took.
 *
 *     HK_EACH_FAILING_ALLOCATION
 *     {
 *         hk_thing_t thing;
 *         hk_thing_init(&thing, hk_test_alloc());
 *         hk_status_t status = hk_thing_add(&thing, HK_BYTES("one"));
 *         HK_CHECK_STATUS(hk_test_failed() ? HK_NO_MEMORY : HK_OK, status);
 *         hk_thing_release(&thing);
 *     }
 *
 * No `break` or `return` in the block, and none within another. */
#define HK_EACH_FAILING_ALLOCATION for (hk_test_begin_turns(); hk_test_turn(__FILE__, __LINE__);)

/* -- Input --------------------------------------------------------------------------------------------------------- */

/* The bytes right before a page that must not be touched, and not to be written to: reading one byte too much is a
 * crash. Borrowed until hk_test_unguard or the end of the test. */
hk_bytes_t hk_test_guarded(hk_bytes_t bytes);

/* As hk_test_guarded, `size` bytes to be written. */
char *hk_test_guarded_room(size_t size);

void hk_test_unguard(const void *at);

/* A C string as bytes. */
hk_bytes_t hk_test_text(const char *text);

/* A file below the root of the project, "test/vectors/…". Borrowed until the end of the test. */
hk_bytes_t hk_test_file(const char *path);

/* Takes the first line off `rest`, without its line feed; false when nothing is left. */
bool hk_test_line(hk_bytes_t *rest, hk_bytes_t *line);

/* Takes what comes before `separator` off `rest`, or all of it. */
hk_bytes_t hk_test_field(hk_bytes_t *rest, char separator);

/* A number at random, and one below `limit` (1 and more). The same in each run; the environment's HK_TEST_SEED, shown
 * when a test fails that used them, gives others. */
uint64_t hk_test_random(void);
size_t hk_test_below(size_t limit);

/* -- What the macros use ------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 4, 5))) _Noreturn void hk_test_fail(const char *file, int line, const char *what,
                                                                  const char *format, ...);
void hk_test_check_int(const char *file, int line, const char *what, int64_t expected, int64_t actual);
void hk_test_check_uint(const char *file, int line, const char *what, uint64_t expected, uint64_t actual);
void hk_test_check_bytes(const char *file, int line, const char *what, hk_bytes_t expected, hk_bytes_t actual);
void hk_test_check_status(const char *file, int line, const char *what, hk_status_t expected, hk_status_t actual);
void hk_test_begin_turns(void);
bool hk_test_turn(const char *file, int line);

hk_bytes_t hk_test_bytes_of_bytes(hk_bytes_t bytes, size_t size);
hk_bytes_t hk_test_bytes_of_text(const char *text, size_t size);

/* An array's size counts its last zero; a pointer's says nothing. */
#define HK_TEST_BYTES(value)                                                                                           \
    _Generic((value), hk_bytes_t                                                                                       \
             : hk_test_bytes_of_bytes, default                                                                         \
             : hk_test_bytes_of_text)((value), __builtin_types_compatible_p(__typeof__(value), char *) ||              \
                                                       __builtin_types_compatible_p(__typeof__(value), const char *)   \
                                                   ? SIZE_MAX                                                          \
                                                   : sizeof(value))

#endif
