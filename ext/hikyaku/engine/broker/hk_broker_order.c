#include "hk_broker_private.h"

enum {
    FEW = 256, /* are merged: their order needs no memory */
    BITS = 11,
    DIGITS = 1 << BITS
};

typedef struct {
    uint64_t id;
    hk_message_t *message;
} slot_t;

static hk_message_t *merge(hk_message_t *a, hk_message_t *b)
{
    hk_message_t *first = NULL, **end = &first;
    while (a != NULL && b != NULL) {
        hk_message_t **less = a->id < b->id ? &a : &b;
        *end = *less;
        end = &(*less)->next;
        *less = (*less)->next;
    }
    *end = a != NULL ? a : b;
    return first;
}

static hk_message_t *merged(hk_message_t *messages)
{
    /* sorted[i]: nothing, or 2 to the i of them. */
    hk_message_t *sorted[64] = {NULL};
    while (messages != NULL) {
        hk_message_t *run = messages;
        messages = messages->next;
        run->next = NULL;
        int i = 0;
        for (; sorted[i] != NULL; i++) {
            run = merge(sorted[i], run);
            sorted[i] = NULL;
        }
        sorted[i] = run;
    }
    hk_message_t *all = NULL;
    for (int i = 0; i < 64; i++) {
        all = merge(sorted[i], all);
    }
    return all;
}

/* Digit by digit, the lowest first; each pass reads one half of the slots in a row, and fills the other. */
static const slot_t *passed(slot_t *from, slot_t *to, size_t count, uint64_t least, uint64_t span)
{
    for (unsigned shift = 0; shift < 64 && span >> shift != 0; shift += BITS) {
        size_t starts[DIGITS] = {0};
        for (size_t i = 0; i < count; i++) {
            starts[((from[i].id - least) >> shift) & (DIGITS - 1)]++;
        }
        size_t start = 0;
        for (size_t digit = 0; digit < DIGITS; digit++) {
            size_t these = starts[digit];
            starts[digit] = start;
            start += these;
        }
        for (size_t i = 0; i < count; i++) {
            to[starts[((from[i].id - least) >> shift) & (DIGITS - 1)]++] = from[i];
        }
        slot_t *read = from;
        from = to;
        to = read;
    }
    return from;
}

hk_message_t *hk_messages_sorted(const hk_alloc_t *alloc, hk_message_t *messages)
{
    size_t count = 0;
    uint64_t least = UINT64_MAX, most = 0, before = 0;
    bool in_order = true;
    for (const hk_message_t *message = messages; message != NULL; message = message->next) {
        count++;
        in_order = in_order && message->id >= before;
        before = message->id;
        least = message->id < least ? message->id : least;
        most = message->id > most ? message->id : most;
    }
    if (in_order) {
        return messages;
    }
    slot_t *slots = count < FEW ? NULL : hk_alloc_resize(alloc, NULL, count, 2 * sizeof(*slots));
    if (slots == NULL) {
        return merged(messages);
    }
    size_t filled = 0;
    for (hk_message_t *message = messages; message != NULL; message = message->next) {
        slots[filled++] = (slot_t){message->id, message};
    }
    const slot_t *sorted = passed(slots, slots + count, count, least, most - least);
    hk_message_t *first = NULL, **end = &first;
    for (size_t i = 0; i < count; i++) {
        *end = sorted[i].message;
        end = &sorted[i].message->next;
    }
    *end = NULL;
    hk_alloc_free(alloc, slots);
    return first;
}
