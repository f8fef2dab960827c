#include "hk_address_ip.h"

#include <stdio.h>
#include <string.h>

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static int hexadecimal(char byte)
{
    if (is_digit(byte)) {
        return byte - '0';
    }
    char letter = (char)(byte | 0x20);
    return letter >= 'a' && letter <= 'f' ? letter - 'a' + 10 : -1;
}

static hk_bytes_t from(hk_bytes_t text, size_t at)
{
    return hk_bytes(text.at + at, text.length - at);
}

static bool parse_ipv4(hk_bytes_t text, uint8_t address[static 4])
{
    size_t at = 0;
    for (size_t i = 0; i < 4; i++) {
        if (i > 0 && (at == text.length || text.at[at++] != '.')) {
            return false;
        }
        size_t start = at;
        unsigned number = 0;
        while (at < text.length && is_digit(text.at[at]) && number <= UINT8_MAX) {
            number = number * 10 + (unsigned)(text.at[at++] - '0');
        }
        bool leading_zero = at - start > 1 && text.at[start] == '0';
        if (at == start || leading_zero || number > UINT8_MAX) {
            return false;
        }
        address[i] = (uint8_t)number;
    }
    return at == text.length;
}

/* One to four digits; how many, or 0. */
static size_t parse_group(hk_bytes_t text, uint8_t group[static 2])
{
    unsigned number = 0;
    size_t at = 0;
    while (at < text.length && hexadecimal(text.at[at]) >= 0) {
        if (at == 4) {
            return 0;
        }
        number = number << 4 | (unsigned)hexadecimal(text.at[at++]);
    }
    group[0] = (uint8_t)(number >> 8);
    group[1] = (uint8_t)(number & 0xFF);
    return at;
}

/* Moves what stands behind "::" to the end. */
static void open_gap(uint8_t address[static 16], size_t gap, size_t length)
{
    memmove(address + 16 - (length - gap), address + gap, length - gap);
    memset(address + gap, 0, 16 - length);
}

static bool parse_ipv6(hk_bytes_t text, uint8_t address[static 16])
{
    size_t length = 0, gap = SIZE_MAX;
    if (hk_bytes_start_with(text, HK_BYTES("::"))) {
        gap = 0;
        text = from(text, 2);
    }
    while (text.length > 0) {
        if (length <= 12 && parse_ipv4(text, address + length)) {
            length += 4;
            break;
        }
        size_t digits = length < 16 ? parse_group(text, address + length) : 0;
        if (digits == 0) {
            return false;
        }
        length += 2;
        text = from(text, digits);
        if (gap == SIZE_MAX && hk_bytes_start_with(text, HK_BYTES("::"))) {
            gap = length;
            text = from(text, 2);
        } else if (text.length > 0) {
            if (text.at[0] != ':' || text.length == 1) {
                return false;
            }
            text = from(text, 1);
        }
    }
    if (gap == SIZE_MAX) {
        return length == 16;
    }
    if (length > 14) {
        return false;
    }
    open_gap(address, gap, length);
    return true;
}

static bool is_word(hk_bytes_t text)
{
    for (size_t i = 0; i < text.length; i++) {
        char letter = (char)(text.at[i] | 0x20);
        if (!is_digit(text.at[i]) && !(letter >= 'a' && letter <= 'z') && text.at[i] != '_') {
            return false;
        }
    }
    return text.length > 0;
}

/* Takes brackets and zone off, which only IPv6 has: whether there were any. */
static bool unwrap(hk_bytes_t *text)
{
    bool wrapped = text->length >= 2 && text->at[0] == '[' && text->at[text->length - 1] == ']';
    if (wrapped) {
        *text = hk_bytes(text->at + 1, text->length - 2);
    }
    const char *mark = text->length > 0 ? memrchr(text->at, '%', text->length) : NULL;
    if (mark != NULL && is_word(from(*text, (size_t)(mark - text->at) + 1))) {
        text->length = (size_t)(mark - text->at);
        wrapped = true;
    }
    return wrapped;
}

bool hk_ip_parse(hk_bytes_t text, hk_ip_t *ip)
{
    hk_ip_t parsed = {.family = 4};
    bool is_ipv6 = unwrap(&text);
    if (text.length == 0) {
        return false;
    }
    if (is_ipv6 || !parse_ipv4(text, parsed.address)) {
        parsed.family = 6;
        if (!parse_ipv6(text, parsed.address)) {
            return false;
        }
    }
    *ip = parsed;
    return true;
}

hk_ip_t hk_ip_unmapped(hk_ip_t ip)
{
    static const uint8_t mapped[12] = {[10] = 0xFF, [11] = 0xFF};
    if (ip.family == 6 && memcmp(ip.address, mapped, sizeof(mapped)) == 0) {
        hk_ip_t plain = {.family = 4};
        memcpy(plain.address, ip.address + 12, 4);
        return plain;
    }
    return ip;
}

bool hk_ip_is_loopback(hk_bytes_t address)
{
    static const uint8_t loopback[16] = {[15] = 1};
    hk_ip_t ip;
    if (!hk_ip_parse(address, &ip)) {
        return false;
    }
    ip = hk_ip_unmapped(ip);
    return ip.family == 4 ? ip.address[0] == 127 : memcmp(ip.address, loopback, sizeof(loopback)) == 0;
}

hk_bytes_t hk_ip_client(hk_bytes_t address, char room[static HK_IP_CLIENT_BYTES])
{
    hk_ip_t ip;
    if (!hk_ip_parse(address, &ip)) {
        return address;
    }
    ip = hk_ip_unmapped(ip);
    const uint8_t *at = ip.address;
    int length = ip.family == 4 ? snprintf(room, HK_IP_CLIENT_BYTES, "%u.%u.%u.%u", at[0], at[1], at[2], at[3])
                                : snprintf(room, HK_IP_CLIENT_BYTES, "%x:%x:%x:%x::/64", at[0] << 8 | at[1],
                                           at[2] << 8 | at[3], at[4] << 8 | at[5], at[6] << 8 | at[7]);
    return hk_bytes(room, (size_t)length);
}
