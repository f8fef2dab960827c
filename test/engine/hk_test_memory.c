#include "hk_test_memory.h"

#include "hk_test.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* -- The allocator ------------------------------------------------------------------------------------------------- */

typedef struct block {
    alignas(max_align_t) struct block *next;
    struct block *previous;
    size_t size, request;
} block_t;

enum failing { NONE, ONE, ALL };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block_t blocks = {&blocks, &blocks, 0, 0};
static size_t block_count, bytes_in_use, requests;
static enum failing failing;
static size_t requests_until_failure;
static bool failed;

static bool fails_now(void)
{
    if (failing == NONE) {
        return false;
    }
    if (requests_until_failure > 0) {
        requests_until_failure--;
        return false;
    }
    if (failing == ONE) {
        failing = NONE;
    }
    failed = true;
    return true;
}

static void drop(block_t *block)
{
    block->previous->next = block->next;
    block->next->previous = block->previous;
    block_count--;
    bytes_in_use -= block->size;
    free(block);
}

static block_t *block_of(void *memory)
{
    return memory != NULL ? (block_t *)memory - 1 : NULL;
}

static block_t *new_block(size_t size)
{
    requests++;
    block_t *block = fails_now() || size > SIZE_MAX / 2 ? NULL : malloc(sizeof(block_t) + size);
    if (block == NULL) {
        return NULL;
    }
    *block = (block_t){&blocks, blocks.previous, size, requests};
    blocks.previous->next = block;
    blocks.previous = block;
    block_count++;
    bytes_in_use += size;
    /* valgrind tells better than garbage what was never written. */
    if (getenv("HK_TEST_UNFILLED") == NULL) {
        memset(block + 1, 0xA5, size);
    }
    return block;
}

static void *resize(void *context, void *memory, size_t size)
{
    (void)context;
    block_t *old = block_of(memory), *block = NULL;
    pthread_mutex_lock(&lock);
    if (size > 0) {
        block = new_block(size);
    }
    if (block != NULL && old != NULL) {
        memcpy(block + 1, old + 1, old->size < size ? old->size : size);
    }
    if (old != NULL && (block != NULL || size == 0)) {
        drop(old);
    }
    pthread_mutex_unlock(&lock);
    return block != NULL ? block + 1 : NULL;
}

const hk_alloc_t *hk_test_alloc(void)
{
    static const hk_alloc_t alloc = {resize, NULL};
    return &alloc;
}

size_t hk_test_blocks(void)
{
    return block_count;
}

size_t hk_test_bytes_in_use(void)
{
    return bytes_in_use;
}

size_t hk_test_requests(void)
{
    return requests;
}

size_t hk_test_oldest_block(void)
{
    return blocks.next->request;
}

static void set_failing(enum failing how, size_t n)
{
    failing = how;
    requests_until_failure = n;
    failed = false;
}

void hk_test_failing(size_t n)
{
    set_failing(ONE, n);
}

void hk_test_not_failing(void)
{
    failing = NONE;
}

bool hk_test_failed(void)
{
    return failed;
}

/* -- Turns --------------------------------------------------------------------------------------------------------- */

static struct {
    enum failing how;
    size_t n, blocks_before;
} turn;

void hk_test_begin_turns(void)
{
    turn.how = NONE;
    turn.blocks_before = block_count;
}

bool hk_test_turn(const char *file, int line)
{
    hk_test_not_failing();
    if (turn.how != NONE && block_count != turn.blocks_before) {
        hk_test_fail(file, line, "the block", "did not give back %zu of its allocations",
                     block_count - turn.blocks_before);
    }
    if (turn.how == NONE) {
        turn.how = ONE;
        turn.n = 0;
    } else if (failed) {
        turn.n++;
    } else if (turn.how == ONE) {
        turn.how = ALL;
        turn.n = 0;
    } else {
        hk_test_note("%s", "");
        return false;
    }
    hk_test_note("with allocation %zu failing%s", turn.n, turn.how == ALL ? " and all after it" : "");
    set_failing(turn.how, turn.n);
    return true;
}

/* -- Guarded and kept memory --------------------------------------------------------------------------------------- */

typedef struct region {
    struct region *next;
    char *memory, *at;
    size_t mapped; /* 0: from malloc() */
} region_t;

static region_t *regions;

static char *add_region(char *memory, char *at, size_t mapped)
{
    region_t *region = malloc(sizeof(*region));
    if (memory == NULL || region == NULL) {
        HK_FAIL("has no memory");
    }
    *region = (region_t){regions, memory, at, mapped};
    regions = region;
    return at;
}

static void drop_region(region_t **link)
{
    region_t *region = *link;
    *link = region->next;
    if (region->mapped > 0) {
        munmap(region->memory, region->mapped);
    } else {
        free(region->memory);
    }
    free(region);
}

char *hk_test_keep(size_t size)
{
    char *memory = malloc(size > 0 ? size : 1);
    return add_region(memory, memory, 0);
}

char *hk_test_guarded_room(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t usable = (size + page - 1) / page * page;
    char *memory = mmap(NULL, usable + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory + usable, page, PROT_NONE) != 0) {
        HK_FAIL("cannot map a guarded page");
    }
    return add_region(memory, memory + usable - size, usable + page);
}

hk_bytes_t hk_test_guarded(hk_bytes_t bytes)
{
    char *at = hk_test_guarded_room(bytes.length);
    if (bytes.length > 0) {
        memcpy(at, bytes.at, bytes.length);
        mprotect(regions->memory, (size_t)(at + bytes.length - regions->memory), PROT_READ);
    }
    return hk_bytes(at, bytes.length);
}

void hk_test_unguard(const void *at)
{
    region_t **link = &regions;
    while (*link != NULL && (*link)->at != at) {
        link = &(*link)->next;
    }
    if (*link == NULL) {
        HK_FAIL("gives back what was not guarded");
    }
    drop_region(link);
}

void hk_test_memory_begin(void)
{
    failing = NONE;
    failed = false;
    requests = 0;
}

void hk_test_memory_end(void)
{
    failing = NONE;
    while (blocks.next != &blocks) {
        drop(blocks.next);
    }
    while (regions != NULL) {
        drop_region(&regions);
    }
}
