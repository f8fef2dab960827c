#include "hk_loop_broker_private.h"

static int64_t gives_up_at(const hk_loop_t *loop, const hk_connection_t *connection)
{
    return hk_later(connection->since, loop->patience[connection->phase]);
}

/* Who has sent a part of a request is told; nobody else waits for anything. */
static void tell_late(hk_loop_t *loop, hk_connection_t *connection)
{
    loop->stats.timed_out_heads++;
    if (connection->http->in.length == 0) {
        hk_connection_close(loop, connection);
        return;
    }
    hk_refusal_t refusal = {.status = 408, .detail = "the request took too long to arrive"};
    hk_http_refuse(loop, connection, &refusal);
    hk_http_settle(loop, connection);
}

static void give_up(hk_loop_t *loop, hk_connection_t *connection)
{
    switch ((hk_phase_t)connection->phase) {
    case HK_PHASE_HEAD:
    case HK_PHASE_BODY:
        tell_late(loop, connection);
        return;
    case HK_PHASE_IDLE:
        loop->stats.timed_out_idle++;
        break;
    case HK_PHASE_HELLO:
        loop->stats.timed_out_hellos++;
        break;
    case HK_PHASE_FLUSH:
    case HK_PHASE_BLOCKED:
    case HK_PHASE_STALLED:
        loop->stats.timed_out_writes++;
        break;
    default:
        break;
    }
    hk_connection_close(loop, connection);
}

static void give_up_late(hk_loop_t *loop, hk_list_t *connections)
{
    for (int i = 0; i < HK_LATE; i++) {
        hk_list_t *first = hk_list_first(connections);
        hk_connection_t *connection = first != NULL ? HK_OWNER(first, hk_connection_t, link) : NULL;
        if (connection == NULL || gives_up_at(loop, connection) > loop->now) {
            return;
        }
        give_up(loop, connection);
    }
}

void hk_loop_pass_time(hk_loop_t *loop)
{
    for (size_t phase = 0; phase < HK_PHASES; phase++) {
        if (loop->patience[phase] != HK_NEVER) {
            give_up_late(loop, &loop->phases[phase]);
        }
    }
    if (loop->accept_at <= loop->now) {
        hk_listeners_resume(loop);
    }
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t hk_loop_next_due(const hk_loop_t *loop)
{
    int64_t due = sooner(loop->next_tick, loop->accept_at);
    for (size_t phase = 0; phase < HK_PHASES; phase++) {
        const hk_list_t *first = hk_list_first(&loop->phases[phase]);
        if (first != NULL) {
            due = sooner(due, gives_up_at(loop, HK_OWNER(first, hk_connection_t, link)));
        }
    }
    if (loop->serve_at > loop->now) {
        due = sooner(due, loop->serve_at);
    }
    if (loop->brokerage != NULL) {
        due = sooner(due, sooner(loop->brokerage->next_tick, loop->brokerage->jobs.retry_at));
    }
    return sooner(due, loop->stop_at);
}
