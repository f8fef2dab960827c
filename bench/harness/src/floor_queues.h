/* floor_queues.h: queues of a broker that does no more than it must: messages in order, a receiver each, one log
 * for all.
 *
 *     put ──► log ──► the receiver, if it has credit, straight from what was read
 *                └──► else a copy, until it has
 */
#ifndef BENCH_FLOOR_QUEUES_H
#define BENCH_FLOOR_QUEUES_H

#include "wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct floor_client {
    struct wire wire; /* first: the loop hands it back */
    void (*deliver)(struct floor_client *client, uint64_t id, const char *bytes, size_t length);
    long credit;
    int queue;                   /* that it receives from or puts into; -1: none */
    uint64_t delivery, freed;    /* frames: the last that was pushed; up to which all are freed */
    uint64_t sent_from, sent_to; /* frames: ids of SENDs that are not answered yet */
    uint64_t sent_value;         /* the first one's message */
    uint64_t subscription;       /* its number */
};

/* Nothing is logged unless a file is given. With `synced`, floor_commit waits for the disk. */
void floor_open(const char *log, bool synced);

/* The queue of a name: the number behind its last dot. */
int floor_queue(const char *name, size_t length);

/* Takes a message; its id. */
uint64_t floor_put(int queue, const char *bytes, size_t length);

/* `client` receives from a queue, so many messages more than before. */
void floor_receive(struct floor_client *client, int queue, long credit);

/* The message, or all messages up to it, is done with. */
void floor_free(uint64_t id);

/* Its queue has no receiver any more. */
void floor_leave(struct floor_client *client);

/* One write of what the turn has logged. */
void floor_commit(void);

/* --- what the floor speaks: the length of the first request, or 0 while it is not all there */

size_t floor_take_text(struct floor_client *client, char *bytes, size_t length);
size_t floor_take_frame(struct floor_client *client, char *bytes, size_t length);

/* At the end of a read: one ACK for the SENDs that it has brought. */
void floor_answer_frames(struct floor_client *client);

#endif
