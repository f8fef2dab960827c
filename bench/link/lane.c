#include "lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_UNDER_WAY = 200000 }; /* packets: a link without a rate must not take all memory */

static const double NS = 1e9;
static const double BITS = 8;

void lane_open(struct lane *lane, const struct lane_settings *settings)
{
    *lane = (struct lane){.settings = *settings, .random = settings->seed ? settings->seed : 1};
}

/* In [0, 1): xorshift64*, Vigna. */
static double draw(struct lane *lane)
{
    lane->random ^= lane->random >> 12;
    lane->random ^= lane->random << 25;
    lane->random ^= lane->random >> 27;
    return (double)((lane->random * 2685821657736338717ULL) >> 11) / 9007199254740992.0;
}

static int64_t later(int64_t one, int64_t other)
{
    return one > other ? one : other;
}

/* When the line is ready for a packet that arrives now. */
static int64_t line_ask(struct line *line, int64_t now)
{
    if (!line || line->setup_ns == 0) return now;
    bool is_idle = !line->was_used || now - later(line->used_until, line->there_at) >= line->idle_ns;
    if (is_idle) line->there_at = now + line->setup_ns;
    line->was_used = true;
    return later(now, line->there_at);
}

static int64_t time_to_leave(const struct lane *lane, size_t length)
{
    double rate = lane->settings.bits_per_second;
    return rate > 0 ? (int64_t)((double)length * BITS * NS / rate) : 0;
}

/* Bytes that have not left by `from`. */
static double waiting(const struct lane *lane, int64_t from)
{
    return lane->free_at > from ? (double)(lane->free_at - from) * lane->settings.bits_per_second / BITS / NS : 0;
}

static void append(struct lane *lane, int64_t at, const void *bytes, size_t length)
{
    struct packet *packet = malloc(sizeof *packet + length);
    if (!packet) {
        perror("lane");
        exit(2);
    }
    packet->next = NULL;
    packet->at = at;
    packet->length = length;
    memcpy(packet->bytes, bytes, length);
    if (lane->last) lane->last->next = packet;
    else lane->first = packet;
    lane->last = packet;
    lane->under_way++;
}

/* When a packet that has left arrives: never before an earlier one. */
static int64_t arrival(struct lane *lane)
{
    int64_t at = lane->free_at + lane->settings.delay_ns;
    if (lane->settings.jitter_ns > 0) at += (int64_t)(draw(lane) * (double)lane->settings.jitter_ns);
    return lane->newest = later(at, lane->newest);
}

void lane_put(struct lane *lane, int64_t now, const void *bytes, size_t length)
{
    lane->counts.packets++;
    lane->counts.bytes += (long)length;
    struct line *line = lane->settings.line;
    int64_t from = line_ask(line, now);
    bool is_full = lane->settings.bits_per_second > 0 && waiting(lane, from) + (double)length > lane->settings.most_bytes;
    if (is_full || lane->under_way == MOST_UNDER_WAY) {
        lane->counts.dropped++;
        return;
    }
    lane->free_at = later(lane->free_at, from) + time_to_leave(lane, length);
    if (line) line->used_until = later(line->used_until, lane->free_at);
    if (draw(lane) < lane->settings.loss) lane->counts.lost++; /* it has used the line nevertheless */
    else append(lane, arrival(lane), bytes, length);
}

void lane_turn(struct lane *lane, int64_t now, double factor)
{
    lane->settings.bits_per_second *= factor;
    if (lane->free_at <= now) return;
    lane->free_at = now + (int64_t)((double)(lane->free_at - now) / factor);
    lane->newest = 0;
    for (struct packet *packet = lane->first; packet; packet = packet->next) {
        int64_t left = packet->at - lane->settings.delay_ns; /* but for the jitter */
        if (left > now) packet->at = now + (int64_t)((double)(left - now) / factor) + lane->settings.delay_ns;
        lane->newest = packet->at = later(packet->at, lane->newest);
    }
}

int64_t lane_next(const struct lane *lane)
{
    return lane->first ? lane->first->at : INT64_MAX;
}

struct packet *lane_take(struct lane *lane, int64_t now)
{
    struct packet *packet = lane->first;
    if (!packet || packet->at > now) return NULL;
    lane->first = packet->next;
    if (!lane->first) lane->last = NULL;
    lane->under_way--;
    lane->counts.delivered++;
    return packet;
}
