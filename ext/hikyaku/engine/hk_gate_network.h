/* hk_gate_network.h: IP addresses as text, and the networks that they lie in. */
#ifndef HK_GATE_NETWORK_H
#define HK_GATE_NETWORK_H

#include "hk_bytes.h"
#include "hk_gate.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hk_ip {
    uint8_t family;      /* 4 or 6 */
    uint8_t address[16]; /* of family 4 the first four bytes */
} hk_ip_t;

/* Reads an address: IPv4 without leading zeros; IPv6, in brackets or not, with a zone ("%eth0", dropped) or not. An
 * IPv4 address that is written as IPv6 ("::ffff:10.0.0.1") stays one of family 6, as in Ruby's IPAddr. False: it is no
 * address, or a network. */
bool hk_ip_parse(hk_bytes_t text, hk_ip_t *ip);

/* Whether an address as text is 127.x.x.x or ::1. */
bool hk_ip_is_loopback(hk_bytes_t address);

/* Whether an address as text lies in one of the networks; what is no address lies in none. */
bool hk_networks_hold(const hk_network_t *networks, size_t count, hk_bytes_t address);

#endif
