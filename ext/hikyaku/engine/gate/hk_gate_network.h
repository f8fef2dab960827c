/* hk_gate_network.h: the networks that IP addresses lie in. */
#ifndef HK_GATE_NETWORK_H
#define HK_GATE_NETWORK_H

#include "hk_address_ip.h"
#include "hk_bytes.h"
#include "hk_gate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether an address as text lies in one of the networks; what is no address lies in none. An IPv4 address that is
 * mapped to IPv6 lies in networks of both kinds. */
bool hk_networks_hold(const hk_network_t *networks, size_t count, hk_bytes_t address);

#endif
