/* hk_test_memory.h: what the harness itself knows of a test's memory. Tests include hk_test.h. */
#ifndef HK_TEST_MEMORY_H
#define HK_TEST_MEMORY_H

#include <stddef.h>

/* Nothing is counted and nothing fails. */
void hk_test_memory_begin(void);

/* Gives back whatever the test kept, so that the next begins with nothing. */
void hk_test_memory_end(void);

/* The number of the request that the oldest block in use came from, from 1. */
size_t hk_test_oldest_block(void);

/* `size` bytes until the end of the test, not counted. */
char *hk_test_keep(size_t size);

#endif
