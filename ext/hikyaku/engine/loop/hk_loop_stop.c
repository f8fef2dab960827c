#include "hk_loop_broker_private.h"

/* Of the time that a stop may take, what remains for closing streams, however much there is still to send; at most
 * half. */
#define PARTING (2 * HK_SECOND)
#define GRACE HK_SECOND

static void close_phase(hk_loop_t *loop, hk_phase_t phase)
{
    for (hk_list_t *first; (first = hk_list_first(&loop->phases[phase])) != NULL;) {
        hk_connection_close(loop, HK_OWNER(first, hk_connection_t, link));
    }
}

void hk_loop_close_all(hk_loop_t *loop)
{
    hk_listeners_close(loop);
    for (size_t phase = 0; phase < HK_PHASES; phase++) {
        close_phase(loop, (hk_phase_t)phase);
    }
}

/* Whoever has not begun a request yet will not get an answer. */
static void close_unbegun(hk_loop_t *loop)
{
    hk_list_t *heads = &loop->phases[HK_PHASE_HEAD];
    close_phase(loop, HK_PHASE_IDLE);
    for (hk_list_t *link = heads->next, *next; link != heads; link = next) {
        hk_connection_t *connection = HK_OWNER(link, hk_connection_t, link);
        next = link->next;
        if (connection->http->in.length == 0) {
            hk_connection_close(loop, connection);
        }
    }
}

static void begin(hk_loop_t *loop)
{
    int64_t time = loop->options.drain_timeout > 0 ? loop->options.drain_timeout : 0;
    int64_t parting = time / 2 < PARTING ? time / 2 : PARTING;
    loop->stopping = true;
    hk_brokerage_drain(loop);
    loop->end_at = hk_later(loop->now, time);
    loop->stop_at = loop->end_at - parting;
    hk_listeners_close(loop);
    close_unbegun(loop);
}

static bool hub_ready(hk_loop_t *loop)
{
    if (loop->options.hub == NULL) {
        return false;
    }
    hk_loop_lock(loop);
    return hk_hub_ready(loop->options.hub);
}

/* No request is on its way to an answer, and nothing has to be handed out, nor waits for room in a socket; no session
 * has anything in hand. */
static bool has_finished(hk_loop_t *loop)
{
    pthread_mutex_lock(&loop->mutex);
    bool asks = loop->ask_count > 0 || !hk_list_empty(&loop->inbox);
    pthread_mutex_unlock(&loop->mutex);
    return !asks && hk_list_empty(&loop->phases[HK_PHASE_HEAD]) && hk_list_empty(&loop->phases[HK_PHASE_BODY]) &&
           hk_list_empty(&loop->phases[HK_PHASE_ASKED]) && hk_list_empty(&loop->phases[HK_PHASE_FLUSH]) &&
           hk_list_empty(&loop->phases[HK_PHASE_BLOCKED]) && hk_brokerage_drained(loop) && !hub_ready(loop);
}

/* Everybody has gone, or the time is over; who has to be told of the end is told all the same, unless that takes
 * much longer. */
static bool has_ended(hk_loop_t *loop)
{
    if (loop->connection_count + loop->refused_count == 0) {
        return true;
    }
    return loop->now >= loop->end_at && (!hub_ready(loop) || loop->now >= hk_later(loop->end_at, GRACE));
}

static void part(hk_loop_t *loop)
{
    loop->parted = true;
    loop->stop_at = loop->end_at;
    hk_clients_part(loop);
    if (loop->options.hub != NULL) {
        hk_loop_lock(loop);
        hk_hub_shutdown(loop->options.hub);
    }
}

/* Of a journal nothing may be out when others close it; then the loop waits for that alone. */
static void end(hk_loop_t *loop)
{
    hk_loop_close_all(loop);
    loop->stop_at = HK_NEVER;
    if (hk_brokerage_end(loop)) {
        hk_wishes_end(loop);
        loop->ended = true;
    }
}

void hk_loop_wind_up(hk_loop_t *loop)
{
    if (!loop->stopping) {
        if (!atomic_load(&loop->stop_wanted)) {
            return;
        }
        begin(loop);
    }
    if (!loop->parted && (loop->now >= loop->stop_at || has_finished(loop))) {
        part(loop);
    }
    if (loop->parted && has_ended(loop)) {
        end(loop);
    }
}
