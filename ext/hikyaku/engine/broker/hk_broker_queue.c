#include "hk_broker_private.h"

/* -- Finding, making, forgetting ----------------------------------------------------------------------------------- */

hk_queue_t *hk_queue_find(hk_broker_t *broker, uint8_t kind, hk_bytes_t name)
{
    char key[1 + HK_FRAME_NAME_MOST];
    key[0] = (char)kind;
    memcpy(key + 1, name.at, name.length);
    hk_map_node_t *node = hk_map_find(&broker->queues, hk_bytes(key, 1 + name.length));
    return node == NULL ? NULL : HK_OWNER(node, hk_queue_t, node);
}

/* A queue that nobody uses is forgotten early for one that somebody does. */
static bool make_room(hk_broker_t *broker)
{
    if (broker->queues.count < broker->options.max_queues || broker->replaying) {
        return true;
    }
    hk_list_t *longest_idle = hk_list_first(&broker->idle_queues);
    if (longest_idle != NULL) {
        hk_queue_forget(broker, HK_OWNER(longest_idle, hk_queue_t, idle));
    }
    return longest_idle != NULL;
}

hk_status_t hk_queue_get(hk_broker_t *broker, uint8_t kind, hk_bytes_t name, hk_queue_t **queue)
{
    hk_queue_t *found = hk_queue_find(broker, kind, name);
    if (found != NULL) {
        *queue = found;
        return HK_OK;
    }
    if (!make_room(broker)) {
        return HK_TOO_MANY;
    }
    hk_queue_t *made = hk_alloc_zeroed(broker->alloc, 1, sizeof(*made) + 1 + name.length);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->kind = kind;
    made->key[0] = (char)kind;
    memcpy(made->key + 1, name.at, name.length);
    made->key_length = (uint16_t)(1 + name.length);
    made->number = ++broker->last_queue_number;
    hk_list_init(&made->subscriptions);
    hk_list_init(&made->takers);
    hk_list_init(&made->aside);
    if (hk_map_add(&broker->queues, &made->node, hk_bytes(made->key, made->key_length)) != HK_OK) {
        hk_alloc_free(broker->alloc, made);
        return HK_NO_MEMORY;
    }
    hk_list_append(&broker->all_queues, &made->link);
    hk_queue_touch(broker, made);
    *queue = made;
    return HK_OK;
}

void hk_queue_touch(hk_broker_t *broker, hk_queue_t *queue)
{
    bool idle = hk_queue_messages(queue) == 0 && hk_list_empty(&queue->subscriptions);
    if (idle == hk_list_holds(&queue->idle)) {
        return;
    }
    if (idle) {
        queue->idle_since = broker->now;
        hk_list_append(&broker->idle_queues, &queue->idle);
    } else {
        hk_list_remove(&queue->idle);
    }
}

static void free_line(hk_broker_t *broker, hk_line_t *line)
{
    for (hk_message_t *message = line->first, *next; message != NULL; message = next) {
        next = message->next;
        hk_message_free(broker, message);
    }
    *line = (hk_line_t){0};
}

void hk_queue_clear(hk_queue_t *queue)
{
    memset(queue->lines, 0, sizeof(queue->lines));
    queue->suspects = queue->dead = (hk_line_t){0};
}

void hk_queue_free(hk_broker_t *broker, hk_queue_t *queue)
{
    for (int i = 0; i < HK_BROKER_LINES; i++) {
        free_line(broker, &queue->lines[i]);
    }
    free_line(broker, &queue->suspects);
    free_line(broker, &queue->dead);
    hk_map_remove(&broker->queues, &queue->node);
    hk_list_remove(&queue->link);
    hk_list_remove(&queue->idle);
    hk_list_remove(&queue->again);
    hk_alloc_free(broker->alloc, queue);
}

void hk_queue_forget(hk_broker_t *broker, hk_queue_t *queue)
{
    broker->queues_forgotten++;
    hk_queue_free(broker, queue);
}

/* -- Lines --------------------------------------------------------------------------------------------------------- */

void hk_line_append(hk_line_t *line, hk_message_t *message)
{
    message->next = NULL;
    if (line->last == NULL) {
        line->first = message;
    } else {
        line->last->next = message;
    }
    line->last = message;
}

static void shift(hk_line_t *line)
{
    line->first = line->first->next;
    if (line->first == NULL) {
        line->last = NULL;
    }
}

/* The lowest bit of `waiting` is the line that is served first. */
static int line_of(const hk_message_t *message, bool fresh)
{
    return 2 * (HK_BROKER_PRIORITIES - 1 - message->priority) + (fresh ? 1 : 0);
}

static bool before(const hk_message_t *a, const hk_message_t *b)
{
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

/* By priority and id; the search begins behind `from`, if that is not NULL and stands before it. */
static void insert(hk_line_t *line, hk_message_t *message, hk_message_t *from)
{
    if (line->last == NULL || before(line->last, message)) {
        hk_line_append(line, message);
        return;
    }
    hk_message_t **place = from != NULL && before(from, message) ? &from->next : &line->first;
    while (before(*place, message)) {
        place = &(*place)->next;
    }
    message->next = *place;
    *place = message;
}

/* Many come back together, in the order of their ids: each stands near the one before. */
static void put_back(hk_queue_t *queue, hk_message_t *message)
{
    int line = line_of(message, false);
    hk_message_t *near = queue->finger;
    insert(&queue->lines[line], message, near != NULL && near->priority == message->priority ? near : NULL);
    queue->finger = message;
    queue->waiting |= 1U << line;
}

void hk_queue_put(hk_message_t *message)
{
    hk_queue_t *queue = message->queue;
    message->state = HK_STATE_WAITS;
    queue->ready++;
    if (message->crashes > 0) {
        insert(&queue->suspects, message, NULL);
        return;
    }
    if (message->failures > 0 || message->returns > 0) {
        put_back(queue, message);
        return;
    }
    int line = line_of(message, true);
    hk_line_append(&queue->lines[line], message);
    queue->waiting |= 1U << line;
}

hk_status_t hk_queue_delay(hk_broker_t *broker, hk_message_t *message, int64_t due)
{
    hk_extra_t *extra = hk_message_extra(broker, message);
    if (extra == NULL || hk_heap_add(&broker->due, &extra->due, due) != HK_OK) {
        return HK_NO_MEMORY;
    }
    message->state = HK_STATE_DELAYED;
    message->queue->delayed++;
    return HK_OK;
}

static hk_message_t *first_of(hk_broker_t *broker, hk_queue_t *queue, hk_line_t *line)
{
    hk_message_t *message;
    while ((message = line->first) != NULL && message->state == HK_STATE_GONE) {
        queue->finger = NULL;
        shift(line);
        queue->gone--;
        hk_message_free(broker, message);
    }
    return message;
}

hk_message_t *hk_queue_first(hk_broker_t *broker, hk_queue_t *queue)
{
    while (queue->waiting != 0) {
        int line = __builtin_ctz(queue->waiting);
        hk_message_t *message =
            queue->gone == 0 ? queue->lines[line].first : first_of(broker, queue, &queue->lines[line]);
        if (message != NULL) {
            return message;
        }
        queue->waiting &= ~(1U << line);
    }
    return NULL;
}

hk_message_t *hk_queue_first_suspect(hk_broker_t *broker, hk_queue_t *queue)
{
    return queue->suspects.first == NULL ? NULL : first_of(broker, queue, &queue->suspects);
}

void hk_queue_shift(hk_queue_t *queue, hk_message_t *message)
{
    queue->ready--;
    queue->finger = queue->finger == message ? NULL : queue->finger;
    if (queue->suspects.first == message) {
        shift(&queue->suspects);
        return;
    }
    int line = __builtin_ctz(queue->waiting);
    shift(&queue->lines[line]);
    if (queue->lines[line].first == NULL) {
        queue->waiting &= ~(1U << line);
    }
}

void hk_queue_park(hk_queue_t *queue, hk_message_t *message)
{
    hk_queue_shift(queue, message);
    queue->ready++;
    insert(&queue->lines[HK_BROKER_LARGE], message, NULL);
}

void hk_queue_unpark(hk_broker_t *broker, hk_queue_t *queue, const hk_receiver_t *subscription)
{
    hk_message_t *message = queue->lines[HK_BROKER_LARGE].first;
    queue->lines[HK_BROKER_LARGE] = (hk_line_t){0};
    for (hk_message_t *next; message != NULL; message = next) {
        next = message->next;
        if (message->state == HK_STATE_GONE) {
            queue->gone--;
            hk_message_free(broker, message);
        } else if (hk_receiver_fits(subscription, message)) {
            put_back(queue, message);
        } else {
            hk_line_append(&queue->lines[HK_BROKER_LARGE], message);
        }
    }
}

static void sweep_line(hk_broker_t *broker, hk_line_t *line)
{
    hk_line_t kept = {0};
    for (hk_message_t *message = line->first, *next; message != NULL; message = next) {
        next = message->next;
        if (message->state == HK_STATE_GONE) {
            hk_message_free(broker, message);
        } else {
            hk_line_append(&kept, message);
        }
    }
    *line = kept;
}

void hk_queue_sweep(hk_broker_t *broker, hk_queue_t *queue)
{
    for (int i = 0; i < HK_BROKER_LINES; i++) {
        sweep_line(broker, &queue->lines[i]);
    }
    sweep_line(broker, &queue->suspects);
    queue->gone = 0;
    queue->finger = NULL;
}

void hk_queue_bury(hk_broker_t *broker, hk_message_t *message, uint8_t reason)
{
    hk_queue_t *queue = message->queue;
    if (message->extra != NULL) {
        hk_heap_remove(&broker->expiries, &message->extra->expires);
        message->extra->expiry = INT64_MAX;
    }
    message->state = HK_STATE_DEAD;
    message->reason = reason & 3U;
    hk_line_append(&queue->dead, message);
    queue->dead_count++;
}
