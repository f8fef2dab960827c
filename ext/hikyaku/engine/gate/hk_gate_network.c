#include "hk_gate_network.h"

#include <string.h>

static bool holds(const hk_network_t *network, const hk_ip_t *ip)
{
    size_t bytes = network->bits / 8, bits = network->bits % 8;
    return network->family == ip->family && memcmp(network->address, ip->address, bytes) == 0 &&
           (bits == 0 || (network->address[bytes] ^ ip->address[bytes]) >> (8 - bits) == 0);
}

bool hk_networks_hold(const hk_network_t *networks, size_t count, hk_bytes_t address)
{
    hk_ip_t ip;
    if (count == 0 || !hk_ip_parse(address, &ip)) {
        return false;
    }
    hk_ip_t plain = hk_ip_unmapped(ip);
    for (size_t i = 0; i < count; i++) {
        if (holds(&networks[i], &ip) || holds(&networks[i], &plain)) {
            return true;
        }
    }
    return false;
}
