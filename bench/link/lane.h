/* lane.h: one direction of a link. Packets leave one after another at a rate, some are lost, and the others arrive after a delay.
 * It does no input and output; time is an argument, in nanoseconds.
 *
 *     put ──► waits, at most so many bytes, until the line is there ──► leaves at the rate ──► lost? ──► under way ──► take
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line that both directions share, and that is released when it is idle, as in a mobile network. The next packet waits until it is set
 * up again, and the following packets wait behind it. There is no line in the beginning. */
struct line {
    int64_t setup_ns;   /* time to set it up; 0: the line always exists */
    int64_t idle_ns;    /* idle time after which it is released */
    int64_t there_at;   /* when it was, or will be, set up */
    int64_t used_until; /* when the last packet has left, in either direction */
    bool was_used;
};

struct lane_settings {
    double bits_per_second; /* 0: as fast as they come */
    int64_t delay_ns;
    int64_t jitter_ns; /* random further delay, up to this; a packet does not overtake another */
    double loss;       /* share of the packets */
    double most_bytes; /* that wait; further packets are dropped */
    uint64_t seed;     /* of losses and jitter */
    struct line *line; /* NULL: it always exists */
};

struct lane_counts {
    long packets, bytes;          /* that were put */
    long dropped, lost, delivered; /* what became of the packets */
};

struct packet {
    struct packet *next;
    int64_t at; /* when it comes out */
    size_t length;
    unsigned char bytes[];
};

struct lane {
    struct lane_settings settings;
    struct lane_counts counts;
    struct packet *first, *last;
    long under_way;
    int64_t free_at; /* when the last packet has left */
    int64_t newest;  /* when the last packet comes out */
    uint64_t random;
};

void lane_open(struct lane *lane, const struct lane_settings *settings);

/* Puts a packet in. */
void lane_put(struct lane *lane, int64_t now, const void *bytes, size_t length);

/* Multiplies the rate from now on, also for waiting packets. */
void lane_turn(struct lane *lane, int64_t now, double factor);

/* When the next packet comes out; INT64_MAX when there is none. */
int64_t lane_next(const struct lane *lane);

/* A packet that has come out by now, to be freed; NULL when there is none. */
struct packet *lane_take(struct lane *lane, int64_t now);

#endif
