#include "hk_feed.h"

enum { FEW_MEMBERS = 8 };

hk_status_t hk_feed_new(const hk_alloc_t *alloc, hk_position_t since, hk_feed_t **feed)
{
    hk_feed_t *made = hk_alloc_zeroed(alloc, 1, sizeof(*made));
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->alloc = alloc;
    made->since = since;
    made->positions = made->few;
    made->position_capacity = HK_FEED_FEW;
    made->members = &made->only;
    made->member_capacity = 1;
    *feed = made;
    return HK_OK;
}

void hk_feed_free(hk_feed_t *feed)
{
    if (feed == NULL) {
        return;
    }
    if (feed->positions != feed->few) {
        hk_alloc_free(feed->alloc, feed->positions);
    }
    if (feed->members != &feed->only) {
        hk_alloc_free(feed->alloc, feed->members);
    }
    hk_alloc_free(feed->alloc, feed);
}

/* -- Positions ----------------------------------------------------------------------------------------------------- */

/* How many positions are not after the cursor. */
static uint32_t count_until(const hk_feed_t *feed, hk_position_t cursor)
{
    uint32_t low = 0, high = feed->position_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (feed->positions[middle] <= cursor) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

hk_position_t hk_feed_after(const hk_feed_t *feed, hk_position_t cursor)
{
    if (feed->newest <= cursor) {
        return HK_POSITION_NONE;
    }
    if (feed->position_count < 2 || feed->positions[feed->position_count - 2] <= cursor) {
        return feed->newest;
    }
    return feed->positions[count_until(feed, cursor)];
}

hk_position_t hk_feed_until(const hk_feed_t *feed, hk_position_t cursor)
{
    if (feed->newest >= feed->since && feed->newest <= cursor) {
        return feed->newest;
    }
    if (feed->position_count >= 2 && feed->positions[feed->position_count - 2] <= cursor) {
        return feed->positions[feed->position_count - 2];
    }
    uint32_t count = count_until(feed, cursor);
    return count > 0 ? feed->positions[count - 1] : feed->since - 1;
}

static void forget(hk_feed_t *feed, uint32_t count)
{
    feed->since = feed->positions[count - 1] + 1;
    feed->position_count -= count;
    memmove(feed->positions, feed->positions + count, feed->position_count * sizeof(*feed->positions));
}

static bool grow(hk_feed_t *feed)
{
    uint32_t capacity = feed->position_capacity * 2;
    bool few = feed->positions == feed->few;
    hk_position_t *positions = hk_alloc_resize(feed->alloc, few ? NULL : feed->positions, capacity, sizeof(*positions));
    if (positions == NULL) {
        return false;
    }
    if (few) {
        memcpy(positions, feed->few, sizeof(feed->few));
    }
    feed->positions = positions;
    feed->position_capacity = capacity;
    return true;
}

bool hk_feed_append(hk_feed_t *feed, hk_position_t position, hk_position_t oldest)
{
    if (position == feed->newest) {
        return false;
    }
    if (feed->position_count == feed->position_capacity) {
        /* What the log has dropped is known to be lost without the feed. */
        uint32_t gone = count_until(feed, oldest - 1);
        if (gone >= feed->position_count / 2) {
            forget(feed, gone);
        } else if (feed->position_capacity >= HK_FEED_LIMIT || !grow(feed)) {
            forget(feed, feed->position_count / 2);
        }
    }
    feed->positions[feed->position_count++] = position;
    feed->newest = position;
    return true;
}

/* -- Members ------------------------------------------------------------------------------------------------------- */

static hk_status_t resize_members(hk_feed_t *feed, uint32_t capacity)
{
    bool only = feed->members == &feed->only;
    hk_member_t *members = hk_alloc_resize(feed->alloc, only ? NULL : feed->members, capacity, sizeof(*members));
    if (members == NULL) {
        return HK_NO_MEMORY;
    }
    if (only) {
        members[0] = feed->only;
    }
    feed->members = members;
    feed->member_capacity = capacity;
    return HK_OK;
}

hk_status_t hk_feed_link(hk_feed_t *feed, hk_member_t member, uint32_t *place)
{
    if (feed->member_count == feed->member_capacity) {
        uint32_t capacity = feed->member_capacity;
        if (resize_members(feed, capacity < FEW_MEMBERS ? FEW_MEMBERS : capacity + capacity / 2) != HK_OK) {
            return HK_NO_MEMORY;
        }
    }
    *place = feed->member_count++;
    feed->members[*place] = member;
    return HK_OK;
}

hk_member_t hk_feed_unlink(hk_feed_t *feed, uint32_t place)
{
    hk_member_t last = feed->members[--feed->member_count];
    if (place == feed->member_count) {
        last = (hk_member_t){NULL, 0};
    } else {
        feed->members[place] = last;
    }
    if (feed->member_capacity > FEW_MEMBERS && feed->member_count < feed->member_capacity / 4) {
        (void)resize_members(feed, feed->member_capacity / 2);
    }
    return last;
}
