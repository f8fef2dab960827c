/* hk_list.h: things in a row, of which any can leave.
 *
 * A doubly linked list whose links are part of what stands in it. The list is a link itself, before the first and
 * behind the last. Everything is O(1); nothing can fail.
 *
 *     typedef struct { hk_list_t link; ... } thing_t;
 *     thing_t *thing = HK_OWNER(hk_list_first(&list), thing_t, link);
 */
#ifndef HK_LIST_H
#define HK_LIST_H

#include <stdbool.h>
#include <stddef.h>

typedef struct hk_list {
    struct hk_list *next, *previous; /* NULL while the link stands in no list */
} hk_list_t;

/* The struct that a member belongs to. */
#define HK_OWNER(pointer, type, member) ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* An empty list. */
static inline void hk_list_init(hk_list_t *list)
{
    list->next = list->previous = list;
}

static inline bool hk_list_empty(const hk_list_t *list)
{
    return list->next == list;
}

/* Whether the link stands in a list. */
static inline bool hk_list_holds(const hk_list_t *link)
{
    return link->next != NULL;
}

/* Adds a link that stands in no list, behind the last. */
static inline void hk_list_append(hk_list_t *list, hk_list_t *link)
{
    link->next = list;
    link->previous = list->previous;
    list->previous->next = link;
    list->previous = link;
}

/* Takes a link out; harmless when it stands in no list. */
static inline void hk_list_remove(hk_list_t *link)
{
    if (hk_list_holds(link)) {
        link->previous->next = link->next;
        link->next->previous = link->previous;
        link->next = link->previous = NULL;
    }
}

/* Puts a link that stands in no list where another stands, which may be in none. */
static inline void hk_list_replace(hk_list_t *link, hk_list_t *by)
{
    if (hk_list_holds(link)) {
        *by = *link;
        by->next->previous = by->previous->next = by;
        link->next = link->previous = NULL;
    }
}

/* The first link, or NULL. */
static inline hk_list_t *hk_list_first(const hk_list_t *list)
{
    return hk_list_empty(list) ? NULL : list->next;
}

/* Takes out the first link, or NULL. */
static inline hk_list_t *hk_list_shift(hk_list_t *list)
{
    hk_list_t *first = hk_list_first(list);
    if (first != NULL) {
        hk_list_remove(first);
    }
    return first;
}

/* Moves all links of one list behind the last of another. */
static inline void hk_list_move(hk_list_t *from, hk_list_t *to)
{
    if (hk_list_empty(from)) {
        return;
    }
    from->next->previous = to->previous;
    to->previous->next = from->next;
    from->previous->next = to;
    to->previous = from->previous;
    hk_list_init(from);
}

#endif
