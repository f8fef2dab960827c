#include "hk_gate_address.h"
#include "hk_gate_network.h"
#include "hk_test.h"

#include <stdio.h>

#define ROWS(rows) (sizeof(rows) / sizeof(*(rows)))

/* 10.0.0.0/8, 192.0.2.128/25, 2001:db8::/33, ::1/128, ::ffff:172.16.0.0/108 */
static const hk_network_t networks[] = {
    {4, 8, {10}},
    {4, 25, {192, 0, 2, 128}},
    {6, 33, {0x20, 0x01, 0x0d, 0xb8}},
    {6, 128, {[15] = 1}},
    {6, 108, {[10] = 0xff, [11] = 0xff, [12] = 172, [13] = 16}},
};

/* --- addresses ---------------------------------------------------------------------------------------------------- */

static const struct {
    const char *text, *bytes; /* in hexadecimal; NULL: no address */
} addresses[] = {
    {"0.0.0.0", "00000000"},
    {"10.20.30.255", "0a141eff"},
    {"::", "00000000000000000000000000000000"},
    {"::1", "00000000000000000000000000000001"},
    {"[::1]", "00000000000000000000000000000001"},
    {"1::", "00010000000000000000000000000000"},
    {"1:2:3:4:5:6:7:8", "00010002000300040005000600070008"},
    {"1:2:3:4:5:6:7::", "00010002000300040005000600070000"},
    {"::2:3:4:5:6:7:8", "00000002000300040005000600070008"},
    {"1:2::7:8", "00010002000000000000000000070008"},
    {"2001:DB8::Ab", "20010db80000000000000000000000ab"},
    {"fe80::1%eth0", "fe800000000000000000000000000001"},
    {"[fe80::1%eth_0]", "fe800000000000000000000000000001"},
    {"::ffff:10.0.0.1", "00000000000000000000ffff0a000001"},
    {"::10.0.0.1", "0000000000000000000000000a000001"},
    {"64:ff9b::1.2.3.4", "0064ff9b000000000000000001020304"},
    {"1:2:3:4:5:6:7.8.9.10", "0001000200030004000500060708090a"},
    {"1:2:3:4:5::7.8.9.10", "0001000200030004000500000708090a"},
    {"1.2.3.4::", NULL},
    {"1:2:3:4:5:6:7:8.9.10.11", NULL},
    {"1:2:3:4:5:6:7:8:9", NULL},
    {"1:2:3:4:5:6:7:8::", NULL},
    {"1:2:3:4:5:6:7", NULL},
    {"1:2:3:4::5:6:7:8", NULL},
    {"1::2::3", NULL},
    {":::", NULL},
    {":", NULL},
    {":1", NULL},
    {"1:", NULL},
    {"1:2:3:4:5:6:7:", NULL},
    {":1:2:3:4:5:6:7:8", NULL},
    {"1:2:3:4:5:6:7:8:", NULL},
    {"1::2:", NULL},
    {"12345::", NULL},
    {"g::", NULL},
    {"::1.2.3", NULL},
    {"::1.2.3.4:5", NULL},
    {"::01.2.3.4", NULL},
    {"", NULL},
    {"1.2.3", NULL},
    {"1.2.3.4.5", NULL},
    {"1.2.3.256", NULL},
    {"1.2.3.4294967300", NULL},
    {"1.2.3.", NULL},
    {".1.2.3", NULL},
    {"1..2.3", NULL},
    {"01.2.3.4", NULL},
    {"1.2.3.04", NULL},
    {"1.2.3.4 ", NULL},
    {" 1.2.3.4", NULL},
    {"+1.2.3.4", NULL},
    {"1.2.3.4:80", NULL},
    {"[1.2.3.4]", NULL},
    {"1.2.3.4%eth0", NULL},
    {"[::1", NULL},
    {"::1]", NULL},
    {"[::1]:80", NULL},
    {"[]", NULL},
    {"[[::1]]", NULL},
    {"%eth0", NULL},
    {"::1%", NULL},
    {"::1%e-0", NULL},
    {"10.0.0.0/8", NULL},
    {"::/0", NULL},
    {"unknown", NULL},
    {"_hidden", NULL},
};

HK_TEST(addresses_are_read_as_Ruby_reads_them)
{
    for (size_t i = 0; i < ROWS(addresses); i++) {
        hk_test_note("the address \"%s\"", addresses[i].text);
        hk_bytes_t text = hk_test_guarded(hk_test_text(addresses[i].text));
        hk_ip_t ip = {0};
        bool is_address = hk_ip_parse(text, &ip);
        HK_CHECK_EQUAL_INT(addresses[i].bytes != NULL, is_address);
        if (is_address) {
            char hexadecimal[33] = "";
            for (size_t j = 0; j < (ip.family == 4 ? 4 : 16); j++) {
                sprintf(hexadecimal + 2 * j, "%02x", ip.address[j]);
            }
            HK_CHECK_BYTES(addresses[i].bytes, hk_test_text(hexadecimal));
        } else {
            HK_CHECK_EQUAL_INT(0, ip.family);
        }
        hk_test_unguard(text.at);
    }
}

static const struct {
    const char *address;
    bool held;
} members[] = {
    {"10.0.0.1", true},
    {"10.255.255.255", true},
    {"11.0.0.1", false},
    {"9.255.255.255", false},
    {"192.0.2.128", true},
    {"192.0.2.127", false},
    {"192.0.3.128", false},
    {"2001:db8::1", true},
    {"2001:db8:7fff::", true},
    {"2001:db8:8000::", false},
    {"::1", true},
    {"[::1]", true},
    {"::1%lo", true},
    {"::2", false},
    {"::", false},
    {"::ffff:10.0.0.1", true},
    {"::10.0.0.1", false},
    {"::ffff:172.16.0.1", true},
    {"172.16.0.1", false},
    {"a00::", false},
    {"10.0.0.0/8", false},
    {"", false},
    {"localhost", false},
};

HK_TEST(an_address_lies_in_networks_of_its_own_family_alone_unless_it_is_IPv4_mapped_to_IPv6)
{
    for (size_t i = 0; i < ROWS(members); i++) {
        hk_test_note("the address %s", members[i].address);
        hk_bytes_t address = hk_test_text(members[i].address);
        HK_CHECK_EQUAL_INT(members[i].held, hk_networks_hold(networks, ROWS(networks), address));
        HK_CHECK(!hk_networks_hold(networks, 0, address));
    }
    static const hk_network_t all[] = {{4, 0, {0}}, {6, 0, {0}}};
    HK_CHECK(hk_networks_hold(&all[0], 1, HK_BYTES("203.0.113.1")));
    HK_CHECK(!hk_networks_hold(&all[0], 1, HK_BYTES("::1")));
    HK_CHECK(hk_networks_hold(&all[1], 1, HK_BYTES("::1")));
    HK_CHECK(!hk_networks_hold(all, 2, HK_BYTES("none")));
}

/* --- hops --------------------------------------------------------------------------------------------------------- */

static const struct {
    const char *peer, *first, *second; /* what X-Forwarded-For says, in two lines; NULL: none */
    const char *client;
} hops[] = {
    {"203.0.113.9", NULL, NULL, "203.0.113.9"},
    {"203.0.113.9", "198.51.100.1", NULL, "203.0.113.9"},
    {"", NULL, NULL, ""},
    {"", "198.51.100.1", NULL, "198.51.100.1"},
    {"10.0.0.1", NULL, NULL, "10.0.0.1"},
    {"10.0.0.1", "198.51.100.1", NULL, "198.51.100.1"},
    {"10.0.0.1", "1.1.1.1, 198.51.100.1", NULL, "198.51.100.1"},
    {"10.0.0.1", "1.1.1.1,198.51.100.1 ,\t10.0.0.2", NULL, "198.51.100.1"},
    {"10.0.0.1", "10.0.0.3, 10.0.0.2", NULL, "10.0.0.3"},
    {"10.0.0.1", "::1, 2001:db8::5", NULL, "::1"},
    {"10.0.0.1", "1.1.1.1, unknown, 10.0.0.2", NULL, "unknown"},
    {"10.0.0.1", "1.1.1.1, ::ffff:10.0.0.2", NULL, "1.1.1.1"},
    {"::ffff:10.0.0.1", "198.51.100.1", NULL, "198.51.100.1"},
    {"10.0.0.1", "1.1.1.1, 10.0.0.0/8", NULL, "10.0.0.0/8"},
    {"10.0.0.1", "1.1.1.1, 10.0.0.2:80", NULL, "10.0.0.2:80"},
    {"10.0.0.1", "", NULL, "10.0.0.1"},
    {"10.0.0.1", ",", NULL, "10.0.0.1"},
    {"10.0.0.1", ",,,", NULL, "10.0.0.1"},
    {"10.0.0.1", "198.51.100.1,,", NULL, "198.51.100.1"},
    {"10.0.0.1", "198.51.100.1, , ", NULL, "198.51.100.1"},
    {"10.0.0.1", "198.51.100.1, ,10.0.0.2", NULL, "198.51.100.1"},
    {"10.0.0.1", ",10.0.0.2", NULL, ""},
    {"10.0.0.1", " ,", NULL, ""},
    {"10.0.0.1", "1.1.1.1", "198.51.100.1", "198.51.100.1"},
    {"10.0.0.1", "1.1.1.1, 198.51.100.1", "10.0.0.2", "198.51.100.1"},
    {"10.0.0.1", "198.51.100.1", "", "198.51.100.1"},
};

HK_TEST(the_client_is_the_nearest_hop_that_is_no_trusted_proxy)
{
    for (size_t i = 0; i < ROWS(hops); i++) {
        hk_test_note("%s behind %s", hops[i].peer, hops[i].first != NULL ? hops[i].first : "nothing");
        hk_http1_header_t headers[] = {{HK_BYTES("Via"), HK_BYTES("10.0.0.9")},
                                       {HK_BYTES("X-Forwarded-For"), HK_BYTES("")},
                                       {HK_BYTES("Forwarded-For"), HK_BYTES("10.0.0.8")},
                                       {HK_BYTES("x-forwarded-FOR"), HK_BYTES("")}};
        size_t count = 1;
        if (hops[i].first != NULL) {
            headers[1].value = hk_test_text(hops[i].first);
            count = 3;
        }
        if (hops[i].second != NULL) {
            headers[3].value = hk_test_text(hops[i].second);
            count = 4;
        }
        hk_bytes_t peer = hk_test_text(hops[i].peer);
        HK_CHECK_BYTES(hops[i].client, hk_gate_client(networks, ROWS(networks), headers, count, peer));
    }
}

HK_TEST(a_client_without_trusted_proxies_is_the_peer)
{
    hk_http1_header_t header = {HK_BYTES("X-Forwarded-For"), HK_BYTES("1.2.3.4, 10.0.0.1")};
    HK_CHECK_BYTES("10.0.0.1", hk_gate_client(NULL, 0, &header, 1, HK_BYTES("10.0.0.1")));
    HK_CHECK_BYTES("10.0.0.1", hk_gate_client(NULL, 0, &header, 1, HK_BYTES("")));
}

HK_TEST(a_client_is_counted_by_its_IPv4_address_or_its_IPv6_network)
{
    static const struct {
        const char *address, *client;
    } rows[] = {
        {"192.0.2.1", "192.0.2.1"},
        {"::ffff:192.0.2.1", "192.0.2.1"},
        {"[::FFFF:c000:201]", "192.0.2.1"},
        {"::192.0.2.1", "0:0:0:0::/64"},
        {"2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
        {"[2001:DB8:1:2::1%eth0]", "2001:db8:1:2::/64"},
        {"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "ffff:ffff:ffff:ffff::/64"},
        {"1.2.3.4:80", "1.2.3.4:80"},
        {"unknown", "unknown"},
        {"", ""},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        char room[HK_IP_CLIENT_BYTES];
        HK_CHECK_BYTES(rows[i].client, hk_ip_client(hk_test_text(rows[i].address), room));
    }
    HK_CHECK(hk_ip_is_loopback(HK_BYTES("127.1.2.3")));
    HK_CHECK(hk_ip_is_loopback(HK_BYTES("::ffff:127.0.0.1")));
    HK_CHECK(hk_ip_is_loopback(HK_BYTES("0:0:0:0:0:0:0:1")));
    HK_CHECK(!hk_ip_is_loopback(HK_BYTES("::2")));
    HK_CHECK(!hk_ip_is_loopback(HK_BYTES("127.0.0.1.example")));
    HK_CHECK(hk_networks_hold(networks, ROWS(networks), HK_BYTES("::ffff:10.0.0.1")));
}
