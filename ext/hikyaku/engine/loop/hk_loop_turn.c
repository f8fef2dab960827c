#include "hk_loop_broker_private.h"

static void attend(hk_loop_t *loop, hk_watch_t *watch, uint32_t events)
{
    switch ((hk_watch_kind_t)watch->kind) {
    case HK_WATCH_WAKE:
        break;
    case HK_WATCH_LISTENER:
        if (watch->armed != 0) {
            hk_listener_accept(loop, HK_OWNER(watch, hk_listener_t, watch));
        }
        break;
    case HK_WATCH_CONNECTION:
        hk_connection_attend(loop, HK_OWNER(watch, hk_connection_t, watch), events);
        break;
    }
}

static bool has_budget(const hk_loop_t *loop)
{
    return loop->budget > 0 && (loop->brokerage == NULL || loop->brokerage->budget > 0);
}

/* What is not attended to now is in the next turn, before others. */
static void attend_to_sockets(hk_loop_t *loop)
{
    loop->budget = HK_TURN_BYTES;
    if (loop->brokerage != NULL) {
        loop->brokerage->budget = HK_SESSIONS_BYTES;
    }
    while (loop->event_at < loop->event_count && has_budget(loop)) {
        const struct epoll_event *event = &loop->events[loop->event_at++];
        attend(loop, event->data.ptr, event->events);
        if (loop->locked && hk_lock_wanted(loop->options.lock)) {
            hk_loop_unlock(loop);
        }
    }
}

static void serve_hub(hk_loop_t *loop)
{
    hk_hub_t *hub = loop->options.hub;
    if (hub == NULL) {
        return;
    }
    hk_loop_lock(loop);
    if (loop->next_tick <= loop->now) {
        (void)hk_hub_tick(hub, loop->now);
    }
    if (loop->serve_at <= loop->now && hk_hub_ready(hub)) {
        hk_streams_serve(loop);
    }
}

/* Whether there is more to do at once. */
static void look_ahead(hk_loop_t *loop)
{
    const hk_brokerage_t *brokerage = loop->brokerage;
    hk_hub_t *hub = loop->options.hub;
    loop->more = brokerage != NULL && (brokerage->touched || brokerage->more);
    if (hub != NULL) {
        hk_loop_lock(loop);
        loop->more = loop->more || (loop->serve_at <= loop->now && hk_hub_ready(hub));
        loop->next_tick = hk_hub_next_tick(hub);
    }
    hk_loop_unlock(loop);
    hk_loop_unlock_broker(loop);
}

static void show_stats(hk_loop_t *loop)
{
    hk_loop_stats_t *stats = &loop->stats;
    uint64_t ns = (uint64_t)(loop->sys->monotonic(loop->sys->context) - loop->now);
    stats->turns++;
    stats->turn_ns += ns;
    stats->connections = loop->connection_count + loop->refused_count;
    pthread_mutex_lock(&loop->mutex);
    stats->longest_turn_ns = ns > loop->shown.longest_turn_ns ? ns : loop->shown.longest_turn_ns;
    loop->shown = *stats;
    pthread_mutex_unlock(&loop->mutex);
}

hk_status_t hk_loop_turn(hk_loop_t *loop)
{
    hk_status_t status = hk_loop_wait(loop);
    if (status != HK_OK) {
        return status;
    }
    loop->now = loop->sys->monotonic(loop->sys->context);
    loop->wall = 0;
    attend_to_sockets(loop);
    hk_wishes_take(loop);
    hk_loop_pass_time(loop);
    serve_hub(loop);
    hk_brokerage_turn(loop);
    hk_loop_wind_up(loop);
    look_ahead(loop);
    if (loop->event_at == loop->event_count) {
        hk_connections_bury(loop);
    }
    show_stats(loop);
    return loop->ended ? HK_OK : HK_AGAIN;
}
