/* replay.c: what takes a fuzzer's place where there is none.
 *
 *     NAME_replay FOLDER...
 *
 * Gives the target every file of the folders, every beginning of each file (of a large one, some thousands), and copies
 * of it with a few bytes changed, always the same ones. Each input lies in memory of its very size, so that
 * AddressSanitizer sees a byte that is read too much. A folder without files is a failure.
 */
#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BEGINNINGS = 4096, CHANGED_COPIES = 200, LARGEST = 1 << 20 };

static size_t files, inputs;
static uint64_t random_state;

_Noreturn static void fail(const char *what, const char *path)
{
    fprintf(stderr, "%s: %s %s: %s\n", program_invocation_short_name, what, path, strerror(errno));
    exit(EXIT_FAILURE);
}

static size_t below(size_t limit)
{
    random_state = random_state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (size_t)(random_state >> 33) % limit;
}

static uint8_t *copy_of(const uint8_t *data, size_t size)
{
    uint8_t *copy = malloc(size > 0 ? size : 1);
    if (copy == NULL) {
        fail("no memory for", "an input");
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    return copy;
}

static void give(const uint8_t *data, size_t size)
{
    uint8_t *copy = copy_of(data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    inputs++;
}

/* The bytes that parsers tell apart. */
static uint8_t telling_byte(void)
{
    static const uint8_t bytes[] = "\r\n\t \0:;,=&?#%/\\\"'(){}[]*.+-09azAZ\x7F\x80\xC0\xFF";
    return bytes[below(sizeof(bytes) - 1)];
}

static void change(uint8_t *data, size_t *size)
{
    size_t at = below(*size), count = 1 + below(4);
    count = count < *size - at ? count : *size - at;
    switch (below(4)) {
    case 0:
        data[at] ^= (uint8_t)(1u << below(8));
        break;
    case 1:
        data[at] = telling_byte();
        break;
    case 2:
        memmove(data + at, data + at + count, *size - at - count);
        *size -= count;
        break;
    default: {
        size_t from = below(*size), room = *size - (at > from ? at : from);
        memmove(data + at, data + from, count < room ? count : room);
    }
    }
}

static void give_changed(const uint8_t *data, size_t size)
{
    uint8_t *copy = copy_of(data, size);
    size_t left = size;
    for (size_t changes = 1 + below(4); changes > 0 && left > 0; changes--) {
        change(copy, &left);
    }
    give(copy, left);
    free(copy);
}

static void replay_file(const char *path)
{
    static uint8_t data[LARGEST];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fail("cannot open", path);
    }
    size_t size = fread(data, 1, sizeof(data), file);
    if (ferror(file)) {
        fail("cannot read", path);
    }
    fclose(file);
    files++;
    give(data, size);
    for (size_t length = 0; length < size; length += 1 + size / BEGINNINGS) {
        give(data, length);
    }
    random_state = size;
    for (int i = 0; i < CHANGED_COPIES; i++) {
        give_changed(data, size);
    }
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void replay_folder(const char *folder)
{
    struct dirent **entries;
    int count = scandir(folder, &entries, visible, alphasort);
    if (count <= 0) {
        fail("no files in", folder);
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        replay_file(path);
        free(entries[i]);
    }
    free(entries);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        replay_folder(argv[i]);
    }
    printf("%s: %zu files, %zu inputs\n", program_invocation_short_name, files, inputs);
    return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
