/* hk_gate_address.h: who a client is when proxies stand in between.
 *
 *     X-Forwarded-For: 203.0.113.7, 198.51.100.2, 10.0.0.3          the peer of the socket: 10.0.0.4
 *                      anybody may       ▲
 *                      have said so      └ the client: the nearest that is no trusted proxy
 */
#ifndef HK_GATE_ADDRESS_H
#define HK_GATE_ADDRESS_H

#include "hk_bytes.h"
#include "hk_gate.h"
#include "hk_http1.h"

#include <stddef.h>

/* The client's address, a slice of `peer` or of a header.
 *
 * networks  of the trusted proxies.
 * peer      what the socket says; empty (a Unix socket) is trusted, as is an empty hop. */
hk_bytes_t hk_gate_client(const hk_network_t *networks, size_t count, const hk_http1_header_t *headers,
                          size_t header_count, hk_bytes_t peer);

#endif
