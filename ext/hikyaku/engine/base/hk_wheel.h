/* hk_wheel.h: things that come round again and again, within a span of time that all share.
 *
 * Time is cut into slots, the slots stand in a circle as long as the span: filing and removing are O(1), however many
 * there are. A thing never comes late, and at most a slot early.
 *
 *     slots   ... 17   18   19   20   21 ...       a slot is due when it begins
 *                      │         │
 *                   turned     a b c
 */
#ifndef HK_WHEEL_H
#define HK_WHEEL_H

#include "hk_alloc.h"
#include "hk_list.h"
#include "hk_status.h"

#include <stdint.h>

typedef struct hk_wheel {
    const hk_alloc_t *alloc;
    hk_list_t *slots;
    hk_list_t due; /* what was filed in slots that have begun */
    size_t slot_count, count;
    int64_t slot;     /* ns */
    int64_t turned;   /* the first slot that has not begun, as far as is known */
    int64_t earliest; /* nothing is filed in a slot before this one */
} hk_wheel_t;

/* An empty wheel, which must not be moved.
 *
 * span  ns: nothing is filed further ahead.
 * slot  ns, above 0.
 *
 * HK_OK or HK_NO_MEMORY. */
hk_status_t hk_wheel_init(hk_wheel_t *wheel, const hk_alloc_t *alloc, int64_t span, int64_t slot);

/* Gives the memory back, not the links. Harmless for a wheel of zeros. */
void hk_wheel_release(hk_wheel_t *wheel);

/* Files a link that stands in no slot. Amortised O(1).
 *
 * at  at least a slot later than `now`, else it comes with the next slot; further ahead than the span: it comes early.
 */
void hk_wheel_file(hk_wheel_t *wheel, hk_list_t *link, int64_t at, int64_t now);

/* Takes a link out; harmless when it stands in no slot. */
void hk_wheel_remove(hk_wheel_t *wheel, hk_list_t *link);

/* Takes out what is due and calls `due` for each, which may file it again. O(slots passed + what is due). */
void hk_wheel_turn(hk_wheel_t *wheel, int64_t now, void (*due)(void *context, hk_list_t *link), void *context);

/* When the next slot with something in it begins; INT64_MAX: nothing is filed. */
int64_t hk_wheel_next(const hk_wheel_t *wheel);

#endif
