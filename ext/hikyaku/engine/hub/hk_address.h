/* hk_address.h: counts the subscribers of each client, by the name that hk_ip_client gives its address, and what the
 * patterns cost that they brought. */
#ifndef HK_ADDRESS_H
#define HK_ADDRESS_H

#include "hk_bytes.h"
#include "hk_map.h"
#include "hk_status.h"

#include <stdint.h>

/* An address that somebody has; shared by all who have it. */
typedef struct hk_address {
    hk_map_node_t node;
    uint32_t count;
    uint32_t cost; /* of matching the patterns that came from it first, as long as anybody uses them */
    char bytes[];
} hk_address_t;

static inline hk_bytes_t hk_address_bytes(const hk_address_t *address)
{
    return address->node.key;
}

/* One more at an address.
 *
 * limit  how many it may have; 0: any number.
 *
 * HK_OK; HK_TOO_MANY_OF_ADDRESS; HK_NO_MEMORY. */
hk_status_t hk_address_enter(hk_map_t *addresses, hk_bytes_t bytes, uint32_t limit, hk_address_t **address);

/* One less. */
void hk_address_leave(hk_map_t *addresses, hk_address_t *address);

/* Takes back what a pattern that came from it cost. */
void hk_address_refund(hk_map_t *addresses, hk_address_t *address, uint32_t cost);

#endif
