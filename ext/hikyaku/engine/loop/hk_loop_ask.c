#include "hk_loop_private.h"

/* An interrupt may come just before the waiting that it means. So who begins to wait soon after one, waits for a short
 * time only. */
#define INTERRUPT_ECHO HK_SECOND
#define SHORT_WAIT (50 * HK_MILLISECOND)

/* --- making ------------------------------------------------------------------------------------------------------- */

hk_bytes_t hk_loop_place(char **at, hk_bytes_t bytes)
{
    char *begin = *at;
    if (bytes.length > 0) {
        memcpy(begin, bytes.at, bytes.length);
    }
    *at += bytes.length;
    return hk_bytes(begin, bytes.length);
}

static hk_ask_t *make(hk_loop_t *loop, const hk_http_t *http, const hk_http1_request_t *request, const char *from,
                      hk_bytes_t address)
{
    size_t fields = request->header_count * sizeof(hk_http1_header_t);
    hk_bytes_t head = hk_bytes(from, http->head_bytes), key = hk_buf_bytes(&loop->key);
    hk_bytes_t body = hk_bytes(from + head.length, http->too_large ? 0 : http->body_bytes);
    hk_bytes_t peer = hk_bytes(http->peer, http->peer_length);
    size_t bytes = sizeof(hk_ask_t) + fields + head.length + body.length + key.length + address.length + peer.length;
    hk_ask_t *ask = hk_alloc_new(loop->alloc, bytes);
    if (ask == NULL) {
        return NULL;
    }
    hk_http1_header_t *headers = (hk_http1_header_t *)(void *)(ask + 1);
    char *at = (char *)headers + fields;
    *ask = (hk_ask_t){.head = *request, .too_large = http->too_large, .fd = -1, .bytes = bytes};
    if (fields > 0) {
        memcpy(headers, request->headers, fields);
    }
    ask->head.headers = headers;
    ask->head.header_capacity = request->header_count;
    hk_http1_request_moved(&ask->head, from, hk_loop_place(&at, head).at);
    ask->body = hk_loop_place(&at, body);
    ask->key = hk_loop_place(&at, key);
    ask->address = hk_loop_place(&at, address);
    ask->peer = hk_loop_place(&at, peer);
    return ask;
}

/* False: there are too many, or they hold too much. */
static bool enqueue(hk_loop_t *loop, hk_ask_t *ask)
{
    pthread_mutex_lock(&loop->mutex);
    bool fits = loop->ask_count < loop->options.max_asks &&
                (loop->ask_count == 0 || loop->ask_bytes + ask->bytes <= loop->options.max_held_bytes);
    if (fits) {
        loop->ask_count++;
        loop->ask_bytes += ask->bytes;
        hk_list_append(&loop->queue, &ask->wish.link);
        pthread_cond_signal(&loop->asked);
    }
    pthread_mutex_unlock(&loop->mutex);
    return fits;
}

hk_status_t hk_ask_make(hk_loop_t *loop, hk_connection_t *connection, const hk_http1_request_t *request,
                        const char *from)
{
    hk_http_t *http = connection->http;
    uint64_t epoch = 0;
    hk_buf_clear(&loop->key);
    hk_status_t status = hk_gate_key(loop->options.gate, request, &loop->key, &epoch);
    if (status != HK_OK) {
        return status;
    }
    hk_bytes_t peer = hk_bytes(http->peer, http->peer_length);
    hk_ask_t *ask = make(loop, http, request, from, hk_gate_address(loop->options.gate, request, peer));
    if (ask == NULL) {
        return HK_NO_MEMORY;
    }
    ask->epoch = epoch;
    ask->connection = connection;
    ask->fd = connection->watch.fd;
    if (!enqueue(loop, ask)) {
        hk_ask_free(loop, ask);
        return HK_TOO_MANY;
    }
    http->ask = ask;
    return HK_OK;
}

void hk_ask_leave(hk_loop_t *loop, hk_ask_t *ask)
{
    ask->connection = NULL;
    pthread_mutex_lock(&loop->mutex);
    ask->fd = -1;
    pthread_mutex_unlock(&loop->mutex);
}

void hk_ask_free(hk_loop_t *loop, hk_ask_t *ask)
{
    hk_alloc_free(loop->alloc, ask->answer);
    hk_alloc_free(loop->alloc, ask);
}

/* --- waiting, any thread ------------------------------------------------------------------------------------------ */

static int64_t end_of_wait(const hk_loop_t *loop, int64_t timeout)
{
    int64_t until = hk_wait_end(timeout), now = hk_wait_now();
    if (loop->interruptions > 0 && now - loop->interrupted_at < INTERRUPT_ECHO) {
        int64_t soon = hk_later(now, SHORT_WAIT);
        return soon < until ? soon : until;
    }
    return until;
}

/* With the mutex. */
static hk_status_t wait_for_first(hk_loop_t *loop, hk_list_t *queue, pthread_cond_t *filled, int64_t timeout,
                                  hk_list_t **link)
{
    uint64_t interruptions = loop->interruptions;
    int64_t until = 0;
    hk_status_t status = HK_OK;
    for (bool began = false; (*link = hk_list_shift(queue)) == NULL; began = true) {
        if (loop->closed_to_wishes) {
            return HK_CLOSED;
        }
        if (status != HK_OK || interruptions != loop->interruptions) {
            return HK_AGAIN;
        }
        if (!began) {
            until = end_of_wait(loop, timeout);
        }
        status = hk_wait_until(filled, &loop->mutex, until);
    }
    return HK_OK;
}

hk_status_t hk_loop_await(hk_loop_t *loop, hk_list_t *queue, pthread_cond_t *filled, hk_list_t *taken, int64_t timeout,
                          hk_list_t **link)
{
    pthread_mutex_lock(&loop->mutex);
    hk_status_t status = wait_for_first(loop, queue, filled, timeout, link);
    if (status == HK_OK) {
        hk_list_append(taken, *link);
    }
    pthread_mutex_unlock(&loop->mutex);
    return status;
}

hk_status_t hk_loop_next(hk_loop_t *loop, int64_t timeout, hk_ask_t **ask)
{
    hk_list_t *link;
    hk_status_t status = hk_loop_await(loop, &loop->queue, &loop->asked, &loop->taken, timeout, &link);
    if (status == HK_OK) {
        *ask = HK_OWNER(link, hk_ask_t, wish.link);
    }
    return status;
}

void hk_loop_interrupt_asks(hk_loop_t *loop)
{
    pthread_mutex_lock(&loop->mutex);
    loop->interruptions++;
    loop->interrupted_at = hk_wait_now();
    pthread_cond_broadcast(&loop->asked);
    pthread_cond_broadcast(&loop->greeted);
    pthread_mutex_unlock(&loop->mutex);
}

/* --- looking at one, any thread ----------------------------------------------------------------------------------- */

const hk_http1_request_t *hk_ask_head(const hk_ask_t *ask)
{
    return &ask->head;
}

hk_bytes_t hk_ask_body(const hk_ask_t *ask)
{
    return ask->body;
}

bool hk_ask_body_too_large(const hk_ask_t *ask)
{
    return ask->too_large;
}

hk_bytes_t hk_ask_address(const hk_ask_t *ask)
{
    return ask->address;
}

hk_bytes_t hk_ask_peer(const hk_ask_t *ask)
{
    return ask->peer;
}

hk_bytes_t hk_ask_key(const hk_ask_t *ask)
{
    return ask->key;
}

uint64_t hk_ask_epoch(const hk_ask_t *ask)
{
    return ask->epoch;
}
