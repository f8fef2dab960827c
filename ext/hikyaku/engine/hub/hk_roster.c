#include "hk_roster.h"

#include "hk_subscriber.h"

enum { PLACE_BITS = 24, FORM_BIT = PLACE_BITS, CODING_BIT, ARRIVAL_BIT, SMALLEST = 16 };

#define PLACES ((size_t)1 << PLACE_BITS)
#define NO_SEAT PLACES

void hk_roster_init(hk_roster_t *roster, const hk_alloc_t *alloc)
{
    *roster = (hk_roster_t){.alloc = alloc, .free = NO_SEAT};
    hk_list_init(&roster->all);
}

void hk_roster_release(hk_roster_t *roster)
{
    hk_alloc_free(roster->alloc, roster->seats);
    hk_roster_init(roster, roster->alloc);
}

static bool taken(hk_seat_t seat)
{
    return (seat.next_free & 1) == 0;
}

static hk_status_t add_seat(hk_roster_t *roster)
{
    if (roster->seat_count == roster->capacity) {
        size_t half = roster->capacity / 2;
        size_t capacity = half < SMALLEST ? SMALLEST * 2 : roster->capacity + half;
        hk_seat_t *seats = hk_alloc_resize(roster->alloc, roster->seats, capacity, sizeof(*seats));
        if (seats == NULL) {
            return HK_NO_MEMORY;
        }
        roster->seats = seats;
        roster->capacity = capacity;
    }
    if (roster->seat_count == PLACES) {
        return HK_NO_MEMORY;
    }
    roster->free = roster->seat_count;
    roster->seats[roster->seat_count++].next_free = NO_SEAT << 1 | 1;
    return HK_OK;
}

static uint64_t form_of(hk_subscriber_t *subscriber)
{
    if (!hk_subscriber_is(subscriber, HK_SUBSCRIBER_CODED)) {
        return 0;
    }
    const hk_coded_t *coded = hk_subscriber_coded(subscriber);
    return (uint64_t)coded->form << FORM_BIT | (uint64_t)coded->coding << CODING_BIT;
}

hk_status_t hk_roster_add(hk_roster_t *roster, hk_subscriber_t *subscriber)
{
    if (roster->free == NO_SEAT && add_seat(roster) != HK_OK) {
        return HK_NO_MEMORY;
    }
    size_t place = roster->free;
    roster->free = (size_t)(roster->seats[place].next_free >> 1);
    roster->seats[place].subscriber = subscriber;
    hk_list_append(&roster->all, &subscriber->came);
    roster->count++;
    subscriber->serial = ++roster->arrivals << ARRIVAL_BIT | form_of(subscriber) | place;
    return HK_OK;
}

void hk_roster_form(uint64_t serial, hk_stream_form_t *form, hk_stream_coding_t *coding)
{
    *form = (hk_stream_form_t)(serial >> FORM_BIT & 1);
    *coding = (hk_stream_coding_t)(serial >> CODING_BIT & 1);
}

void hk_roster_replace(hk_roster_t *roster, hk_subscriber_t *subscriber, hk_subscriber_t *by)
{
    roster->seats[(size_t)by->serial & (PLACES - 1)].subscriber = by;
    hk_list_replace(&subscriber->came, &by->came);
}

void hk_roster_remove(hk_roster_t *roster, hk_subscriber_t *subscriber)
{
    size_t place = (size_t)subscriber->serial & (PLACES - 1);
    roster->seats[place].next_free = (uintptr_t)roster->free << 1 | 1;
    roster->free = place;
    hk_list_remove(&subscriber->came);
    roster->count--;
}

hk_subscriber_t *hk_roster_find(const hk_roster_t *roster, uint64_t serial)
{
    size_t place = (size_t)serial & (PLACES - 1);
    if (place >= roster->seat_count || !taken(roster->seats[place])) {
        return NULL;
    }
    hk_subscriber_t *subscriber = roster->seats[place].subscriber;
    return subscriber->serial == serial ? subscriber : NULL;
}

hk_subscriber_t *hk_roster_next(const hk_roster_t *roster, const hk_subscriber_t *subscriber)
{
    const hk_list_t *next = subscriber != NULL ? subscriber->came.next : roster->all.next;
    return next != &roster->all ? HK_OWNER(next, hk_subscriber_t, came) : NULL;
}
