/* lane.h: one direction of a link. Packets leave one after another at a rate, some are lost, and the others are under way for
 * some time. Free of input and output; time is an argument, in nanoseconds.
 *
 *     put ──► waits, at most so many bytes, until the line is there ──► leaves at the rate ──► lost? ──► under way ──► take
 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What both directions share: a line that is given up when nothing has used it for a while, as in a mobile network. The packet
 * that comes then waits until it is there again, and what follows waits behind it. In the beginning there is none. */
struct line {
    int64_t setup_ns;   /* how long that takes; 0: the line is always there */
    int64_t idle_ns;    /* after which it is given up */
    int64_t there_at;   /* when it was, or will be, set up */
    int64_t used_until; /* when the last packet has left, in either direction */
    bool was_used;
};

struct lane_settings {
    double bits_per_second; /* 0: as fast as they come */
    int64_t delay_ns;
    int64_t jitter_ns; /* more, at random up to this; what would overtake comes out with what it would have overtaken */
    double loss;       /* the share of packets that leave and do not arrive */
    double most_bytes; /* that wait; what comes beyond is dropped */
    uint64_t seed;     /* of what is lost, and of the jitter */
    struct line *line; /* NULL: it is always there */
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

/* From now on it is so many times as fast, for what waits as well. */
void lane_turn(struct lane *lane, int64_t now, double factor);

/* When the next packet comes out; INT64_MAX when there is none. */
int64_t lane_next(const struct lane *lane);

/* A packet that has come out by now, to be freed; NULL when there is none. */
struct packet *lane_take(struct lane *lane, int64_t now);

#endif
