#include "hk_address.h"

#include "hk_address_ip.h"

static hk_status_t add(hk_map_t *addresses, hk_bytes_t bytes, hk_address_t **address)
{
    hk_address_t *made = hk_alloc_new(addresses->alloc, sizeof(*made) + bytes.length);
    if (made == NULL) {
        return HK_NO_MEMORY;
    }
    made->count = 0;
    made->cost = 0;
    memcpy(made->bytes, bytes.at, bytes.length);
    if (hk_map_add(addresses, &made->node, hk_bytes(made->bytes, bytes.length)) != HK_OK) {
        hk_alloc_free(addresses->alloc, made);
        return HK_NO_MEMORY;
    }
    *address = made;
    return HK_OK;
}

hk_status_t hk_address_enter(hk_map_t *addresses, hk_bytes_t bytes, uint32_t limit, hk_address_t **address)
{
    char room[HK_IP_CLIENT_BYTES];
    bytes = hk_ip_client(bytes, room);
    hk_address_t *found = (hk_address_t *)hk_map_find(addresses, bytes);
    if (found != NULL && limit > 0 && found->count >= limit) {
        return HK_TOO_MANY_OF_ADDRESS;
    }
    if (found == NULL && add(addresses, bytes, &found) != HK_OK) {
        return HK_NO_MEMORY;
    }
    found->count++;
    *address = found;
    return HK_OK;
}

static void free_unused(hk_map_t *addresses, hk_address_t *address)
{
    if (address->count == 0 && address->cost == 0) {
        hk_map_remove(addresses, &address->node);
        hk_alloc_free(addresses->alloc, address);
    }
}

void hk_address_leave(hk_map_t *addresses, hk_address_t *address)
{
    address->count--;
    free_unused(addresses, address);
}

void hk_address_refund(hk_map_t *addresses, hk_address_t *address, uint32_t cost)
{
    address->cost -= cost;
    free_unused(addresses, address);
}
