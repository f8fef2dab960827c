/* hk_frames.h: events one behind the other, copied only where there are several. */
#ifndef HK_FRAMES_H
#define HK_FRAMES_H

#include "hk_buf.h"
#include "hk_bytes.h"

#include <stdint.h>

typedef struct hk_frames {
    hk_bytes_t bytes; /* of one: the record's own; of several: in `together` */
    uint32_t count;
} hk_frames_t;

/* Adds an event. False when they would be more than `max_bytes` together, or there is no memory for that: then they
 * are as they were. The first always fits.
 *
 * together  of these frames alone; what it holds is overwritten. */
static inline bool hk_frames_add(hk_frames_t *frames, hk_bytes_t frame, hk_buf_t *together, size_t max_bytes)
{
    if (frames->count == 0) {
        frames->bytes = frame;
        frames->count = 1;
        return true;
    }
    if (frames->bytes.length + frame.length > max_bytes) {
        return false;
    }
    if (frames->count == 1) {
        hk_buf_clear(together);
        if (hk_buf_reserve(together, frames->bytes.length + frame.length) != HK_OK) {
            return false;
        }
        (void)hk_buf_append(together, frames->bytes);
    }
    if (hk_buf_append(together, frame) != HK_OK) {
        return false;
    }
    frames->bytes = hk_buf_bytes(together);
    frames->count++;
    return true;
}

#endif
