#include "hk_json.h"

#include <stdint.h>

/* A character, or as much of one as is there. */
typedef struct piece {
    size_t length;
    bool whole;
} piece_t;

/* Unicode, table 3-7: what may follow the first byte of a character. */
static piece_t piece_at(const unsigned char *at, size_t left)
{
    unsigned char first = at[0], low = 0x80, high = 0xBF;
    size_t size = first < 0x80 ? 1 : first >= 0xC2 && first <= 0xDF ? 2 : first >= 0xE0 && first <= 0xEF ? 3 : 4;
    if (size == 4 && !(first >= 0xF0 && first <= 0xF4)) {
        return (piece_t){1, false};
    }
    if (first == 0xE0) {
        low = 0xA0;
    } else if (first == 0xED) {
        high = 0x9F;
    } else if (first == 0xF0) {
        low = 0x90;
    } else if (first == 0xF4) {
        high = 0x8F;
    }
    size_t length = 1;
    while (length < size && length < left && at[length] >= low && at[length] <= high) {
        length++;
        low = 0x80;
        high = 0xBF;
    }
    return (piece_t){length, length == size};
}

static hk_status_t append_replacement(hk_buf_t *out)
{
    return hk_buf_append(out, HK_BYTES("\xEF\xBF\xBD"));
}

hk_status_t hk_json_scrub(hk_buf_t *out, hk_bytes_t text)
{
    const unsigned char *at = (const unsigned char *)text.at;
    hk_status_t status = hk_buf_reserve(out, text.length);
    for (size_t i = 0, kept = 0; status == HK_OK && i <= text.length;) {
        piece_t piece = i < text.length ? piece_at(at + i, text.length - i) : (piece_t){1, false};
        if (!piece.whole) {
            status = hk_buf_append(out, hk_bytes(text.at + kept, i - kept));
            if (status == HK_OK && i < text.length) {
                status = append_replacement(out);
            }
            kept = i + piece.length;
        }
        i += piece.length;
    }
    return status;
}

/* Room for an escape. */
typedef struct escape {
    char bytes[6];
    size_t length;
} escape_t;

static escape_t escape_of(unsigned char byte)
{
    static const char digits[] = "0123456789abcdef";
    static const char letters[] = "btn\0fr";
    if (byte == '"' || byte == '\\') {
        return (escape_t){{'\\', (char)byte}, 2};
    }
    if (byte >= '\b' && byte <= '\r' && byte != '\v') {
        return (escape_t){{'\\', letters[byte - '\b']}, 2};
    }
    return (escape_t){{'\\', 'u', '0', '0', digits[byte >> 4], digits[byte & 15]}, 6};
}

static hk_status_t append_piece(hk_buf_t *out, const char *at, piece_t piece)
{
    unsigned char first = (unsigned char)*at;
    if (!piece.whole) {
        return append_replacement(out);
    }
    if (first >= 0x20 && first != '"' && first != '\\') {
        return hk_buf_append(out, hk_bytes(at, piece.length));
    }
    escape_t escape = escape_of(first);
    return hk_buf_append(out, hk_bytes(escape.bytes, escape.length));
}

hk_status_t hk_json_string(hk_buf_t *out, hk_bytes_t text)
{
    hk_status_t status = hk_buf_append(out, HK_BYTES("\""));
    for (size_t i = 0; status == HK_OK && i < text.length;) {
        piece_t piece = piece_at((const unsigned char *)text.at + i, text.length - i);
        status = append_piece(out, text.at + i, piece);
        i += piece.length;
    }
    return status == HK_OK ? hk_buf_append(out, HK_BYTES("\"")) : status;
}
