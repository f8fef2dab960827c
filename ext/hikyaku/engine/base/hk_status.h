/* hk_status.h: how every function of the engine says what became of it.
 *
 * A function that can fail returns hk_status_t; its results come last among its parameters and are untouched unless
 * it returns HK_OK.
 */
#ifndef HK_STATUS_H
#define HK_STATUS_H

#define HK_STATUS_LIST(X)                                                                                              \
    X(OK, "done")                                                                                                      \
    X(AGAIN, "more input is needed, or the socket is full")                                                            \
    X(NO_MEMORY, "out of memory; nothing was changed")                                                                 \
    X(INVALID, "the input is malformed")                                                                               \
    X(TOO_LARGE, "the input is larger than its limit")                                                                 \
    X(NOT_FOUND, "there is no such thing")                                                                             \
    X(UNKNOWN, "the engine cannot tell: whoever decides must be asked")                                                \
    X(TOO_MANY, "the hub holds as many connections as it may")                                                         \
    X(TOO_MANY_OF_ADDRESS, "the address holds as many connections as it may")                                          \
    X(TOO_COSTLY, "matching the patterns of all subscribers would cost too much")                                      \
    X(TOO_COSTLY_OF_ADDRESS, "matching the patterns of the address would cost too much")                               \
    X(CLOSED, "the other side is gone, or this side is closed")                                                        \
    X(SYSTEM, "a system call failed; errno says why")

typedef enum hk_status {
#define HK_STATUS_ENUM(name, text) HK_##name,
    HK_STATUS_LIST(HK_STATUS_ENUM)
#undef HK_STATUS_ENUM
} hk_status_t;

/* The name of a status, "HK_OK"; for tests and logs. */
const char *hk_status_name(hk_status_t status);

/* What a status means, in words. */
const char *hk_status_text(hk_status_t status);

#endif
