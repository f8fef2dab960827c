/* hk_roster.h: gives subscribers numbers, finds them by these, and has them in the order in which they came.
 *
 * A number names one subscriber and, when that has left, nobody. It holds the subscriber's place, its stream's form and
 * coding, and how many came before: 24, 2 and 38 bits. So of a stream whose subscriber is gone it is known still how to
 * end it.
 */
#ifndef HK_ROSTER_H
#define HK_ROSTER_H

#include "hk_alloc.h"
#include "hk_hub.h"
#include "hk_list.h"
#include "hk_status.h"

#include <stdint.h>

/* Who sits there, or, with the lowest bit set, which place is free next. */
typedef union hk_seat {
    hk_subscriber_t *subscriber;
    uintptr_t next_free;
} hk_seat_t;

typedef struct hk_roster {
    const hk_alloc_t *alloc;
    hk_seat_t *seats;
    size_t seat_count, capacity, free;
    hk_list_t all; /* who is there, first come first */
    size_t count;
    uint64_t arrivals;
} hk_roster_t;

/* An empty roster without memory, which must not be moved. */
void hk_roster_init(hk_roster_t *roster, const hk_alloc_t *alloc);

/* Gives the table back, not the subscribers. */
void hk_roster_release(hk_roster_t *roster);

/* Gives a subscriber its number, which is not 0. Amortised O(1). HK_OK or HK_NO_MEMORY. */
hk_status_t hk_roster_add(hk_roster_t *roster, hk_subscriber_t *subscriber);

/* The form and the coding of a stream, whether its subscriber is gone or not. */
void hk_roster_form(uint64_t serial, hk_stream_form_t *form, hk_stream_coding_t *coding);

/* Gives a subscriber's number and place to another object, which has the number already. O(1). */
void hk_roster_replace(hk_roster_t *roster, hk_subscriber_t *subscriber, hk_subscriber_t *by);

/* Forgets a subscriber that is there. O(1). */
void hk_roster_remove(hk_roster_t *roster, hk_subscriber_t *subscriber);

/* O(1). NULL: it is gone. */
hk_subscriber_t *hk_roster_find(const hk_roster_t *roster, uint64_t serial);

/* Who came after a subscriber, or first of all (NULL). NULL: nobody. O(1). */
hk_subscriber_t *hk_roster_next(const hk_roster_t *roster, const hk_subscriber_t *subscriber);

#endif
