/* hk_address_ip.h: IP addresses as text. */
#ifndef HK_ADDRESS_IP_H
#define HK_ADDRESS_IP_H

#include "hk_bytes.h"

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

/* An IPv4 address that is mapped to IPv6 (RFC 4291, section 2.5.5.2) as IPv4; any other as it is. */
hk_ip_t hk_ip_unmapped(hk_ip_t ip);

/* Whether an address as text is 127.x.x.x or ::1, mapped or not. */
bool hk_ip_is_loopback(hk_bytes_t address);

enum { HK_IP_CLIENT_BYTES = 32 };

/* Under which name a client is counted: an IPv4 address, also one that is mapped to IPv6, is itself; of an IPv6 address
 * it is the /64, in which one host takes as many addresses as it likes; other text is itself.
 *
 * Returns `address` or a slice of `room`. */
hk_bytes_t hk_ip_client(hk_bytes_t address, char room[static HK_IP_CLIENT_BYTES]);

#endif
