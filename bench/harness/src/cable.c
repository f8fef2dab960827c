#include "cable.h"

#include <stdint.h>
#include <string.h>

enum { FINAL_TEXT = 0x81, MASKED = 0x80, IN_TWO_BYTES = 126, IN_EIGHT_BYTES = 127, MASK_BYTES = 4 };

/* Nobody looks at the answer to the key: the server is known. */
const char cable_upgrade[] = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                             "Sec-WebSocket-Protocol: actioncable-v1-json, actioncable-unsupported\r\n";

enum cable_word cable_last_word(const char *text)
{
    if (strstr(text, "\"reject_subscription\"") || strstr(text, "\"type\":\"disconnect\"")) return CABLE_REFUSED;
    if (strstr(text, "\"confirm_subscription\"")) return CABLE_CONFIRMED;
    return strstr(text, "\"welcome\"") ? CABLE_WELCOME : CABLE_NOTHING;
}

static char *write_length(char *at, size_t length)
{
    int bytes = length < IN_TWO_BYTES ? 0 : length <= UINT16_MAX ? 2 : 8;
    size_t first = bytes == 0 ? length : bytes == 2 ? IN_TWO_BYTES : IN_EIGHT_BYTES;
    *at++ = (char)(MASKED | first);
    while (bytes--) *at++ = (char)(length >> (8 * bytes));
    return at;
}

/* The mask differs from frame to frame, as the server must undo any; it need not be a secret here. */
static void write_mask(char *mask)
{
    static uint32_t last;
    last = last * 1664525 + 1013904223;
    memcpy(mask, &last, MASK_BYTES);
}

size_t cable_frame(char *out, const char *text, size_t length)
{
    *out = (char)FINAL_TEXT;
    char *mask = write_length(out + 1, length), *at = mask + MASK_BYTES;
    write_mask(mask);
    for (size_t i = 0; i < length; i++) *at++ = (char)(text[i] ^ mask[i % MASK_BYTES]);
    return (size_t)(at - out);
}
