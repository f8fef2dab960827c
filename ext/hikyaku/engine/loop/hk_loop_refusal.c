#include "hk_loop_private.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct title {
    int status;
    const char *text;
} title_t;

static const char *title_of(int status)
{
    static const title_t titles[] = {
        {400, "Bad Request"},
        {408, "Request Timeout"},
        {414, "URI Too Long"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {501, "Not Implemented"},
        {503, "Service Unavailable"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++) {
        if (titles[i].status == status) {
            return titles[i].text;
        }
    }
    return titles[0].text;
}

/* RFC 9457. */
hk_bytes_t hk_refusal_write(const hk_refusal_t *refusal, char room[HK_REFUSAL_BYTES])
{
    const char *title = title_of(refusal->status);
    char retry[48] = "", body[384];
    if (refusal->retry_after > 0) {
        snprintf(retry, sizeof(retry), "retry-after: %" PRIu64 "\r\n", refusal->retry_after);
    }
    int length =
        snprintf(body, sizeof(body), "{\"type\":\"about:blank\",\"title\":\"%s\",\"status\":%d,\"detail\":\"%s\"}",
                 title, refusal->status, refusal->detail);
    int written = snprintf(room, HK_REFUSAL_BYTES,
                           "HTTP/1.1 %d %s\r\n"
                           "%.*s"
                           "content-type: application/problem+json\r\n"
                           "content-length: %d\r\n"
                           "cache-control: no-store\r\n"
                           "x-content-type-options: nosniff\r\n"
                           "%s"
                           "connection: close\r\n"
                           "\r\n"
                           "%s",
                           refusal->status, title, (int)refusal->date.length, refusal->date.at, length, retry,
                           refusal->head_only ? "" : body);
    return hk_bytes(room, (size_t)written);
}

hk_bytes_t hk_loop_date(hk_loop_t *loop)
{
    hk_loop_lock(loop);
    return hk_gate_date(loop->options.gate, hk_loop_wall(loop));
}

void hk_http_refuse(hk_loop_t *loop, hk_connection_t *connection, const hk_refusal_t *refusal)
{
    char room[HK_REFUSAL_BYTES];
    hk_refusal_t dated = *refusal;
    dated.date = hk_loop_date(loop);
    hk_http_say(loop, connection, hk_refusal_write(&dated, room));
    if (connection->http->then != HK_THEN_DROP) {
        connection->http->then = HK_THEN_LINGER;
    }
}
