/* lane_driver: what one or two lanes of bench/link do, without a clock. Arguments are milliseconds, bits a second and shares:
 *
 *     lane_driver BITS DELAY JITTER LOSS QUEUE SETUP IDLE SEED TURN FACTOR < packets
 *
 * Each line of the input is a packet, "AT LENGTH LANE" (0 or 1: both share the line), at rising times. For each that comes out it prints
 * "NUMBER LANE AT", in the order of its lane; and at the end "dropped N lost N" of either lane. */
#include "lane.h"

#include <stdio.h>
#include <stdlib.h>

enum { LANES = 2, ARGUMENTS = 11, MOST_LENGTH = 65536 };

static int64_t nanoseconds(const char *milliseconds)
{
    return (int64_t)(atof(milliseconds) * 1e6);
}

static void drain(struct lane *lane, int name)
{
    struct packet *packet;
    while ((packet = lane_take(lane, INT64_MAX))) {
        printf("%d %d %.6f\n", *(int *)packet->bytes, name, (double)packet->at / 1e6);
        free(packet);
    }
}

int main(int argc, char **argv)
{
    if (argc != ARGUMENTS) return 2;
    struct line line = {.setup_ns = nanoseconds(argv[6]), .idle_ns = nanoseconds(argv[7])};
    struct lane_settings settings = {.bits_per_second = atof(argv[1]),
                                     .delay_ns = nanoseconds(argv[2]),
                                     .jitter_ns = nanoseconds(argv[3]),
                                     .loss = atof(argv[4]),
                                     .most_bytes = atof(argv[5]),
                                     .seed = (uint64_t)atoll(argv[8]),
                                     .line = &line};
    struct lane lanes[LANES];
    for (int i = 0; i < LANES; i++) lane_open(&lanes[i], &settings);
    static int packet[MOST_LENGTH / sizeof(int)];
    double at, turn = atof(argv[9]);
    int length, lane;
    while (scanf("%lf %d %d", &at, &length, &lane) == 3) {
        if (turn > 0 && at >= turn) {
            for (int i = 0; i < LANES; i++) lane_turn(&lanes[i], (int64_t)(turn * 1e6), atof(argv[10]));
            turn = 0;
        }
        lane_put(&lanes[lane], (int64_t)(at * 1e6), packet, (size_t)length);
        packet[0]++;
    }
    for (int i = 0; i < LANES; i++) drain(&lanes[i], i);
    for (int i = 0; i < LANES; i++) printf("dropped %ld lost %ld\n", lanes[i].counts.dropped, lanes[i].counts.lost);
    return 0;
}
