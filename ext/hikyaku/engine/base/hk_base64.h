/* hk_base64.h: the digits of base64url (RFC 4648, section 5). */
#ifndef HK_BASE64_H
#define HK_BASE64_H

/* The digit of a value from 0 to 63. */
static inline char hk_base64_digit(unsigned value)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    return digits[value & 63];
}

/* The value of a digit; -1: it is none. */
static inline int hk_base64_value(char digit)
{
    if (digit >= 'A' && digit <= 'Z') {
        return digit - 'A';
    }
    if (digit >= 'a' && digit <= 'z') {
        return digit - 'a' + 26;
    }
    if (digit >= '0' && digit <= '9') {
        return digit - '0' + 52;
    }
    return digit == '-' ? 62 : digit == '_' ? 63 : -1;
}

#endif
