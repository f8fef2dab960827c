#include "hk_http1_private.h"

/* Sixteen bytes a row; those from 0x80 on may stand in a target. */
const uint8_t hk_http1_byte_kinds[256] = {
    /* clang-format off */
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x07, 0x02, 0x01, 0x07, 0x03, 0x07, 0x07, 0x06, 0x06, 0x07, 0x07, 0x06, 0x07, 0x07, 0x02,
    0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x1F, 0x02, 0x06, 0x02, 0x06, 0x02, 0x02,
    0x02, 0x37, 0x37, 0x37, 0x37, 0x37, 0x37, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27,
    0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x02, 0x02, 0x02, 0x03, 0x07,
    0x03, 0x37, 0x37, 0x37, 0x37, 0x37, 0x37, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27,
    0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x27, 0x02, 0x03, 0x02, 0x07, 0x00,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02, 0x02,
    /* clang-format on */
};

#define EVERY_BYTE(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Whether one of eight bytes may be below 0x20 or 0x7F: never false where one is. */
static bool has_control(uint64_t eight)
{
    uint64_t below = (eight - EVERY_BYTE(0x20)) & ~eight;
    uint64_t deleted = eight ^ EVERY_BYTE(0x7F);
    uint64_t is_deleted = (deleted - EVERY_BYTE(0x01)) & ~deleted;
    return ((below | is_deleted) & EVERY_BYTE(0x80)) != 0;
}

const char *hk_http1_skip_text(const char *at, const char *end)
{
    for (;;) {
        uint64_t eight;
        while ((size_t)(end - at) >= sizeof(eight)) {
            memcpy(&eight, at, sizeof(eight));
            if (has_control(eight)) {
                break;
            }
            at += sizeof(eight);
        }
        const char *stop = (size_t)(end - at) > sizeof(eight) ? at + sizeof(eight) : end;
        for (; at < stop; at++) {
            unsigned char byte = (unsigned char)*at;
            if ((byte < 0x20 && byte != '\t') || byte == 0x7F) {
                return at;
            }
        }
        if (at == end) {
            return end;
        }
    }
}

static bool is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

/* Where a value is folded, its lines end within white space. */
static bool is_blank_or_fold(char byte)
{
    return is_blank(byte) || byte == '\r' || byte == '\n';
}

static hk_bytes_t without_blanks(const char *at, const char *end)
{
    while (at < end && is_blank_or_fold(*at)) {
        at++;
    }
    while (at < end && is_blank_or_fold(end[-1])) {
        end--;
    }
    return hk_bytes(at, (size_t)(end - at));
}

bool hk_http1_next_member(hk_bytes_t *list, hk_bytes_t *member)
{
    if (list->at == NULL) {
        return false;
    }
    const char *end = list->at + list->length;
    const char *comma = list->length > 0 ? memchr(list->at, ',', list->length) : NULL;
    *member = without_blanks(list->at, comma ? comma : end);
    *list = comma ? hk_bytes(comma + 1, (size_t)(end - comma - 1)) : hk_bytes(NULL, 0);
    return true;
}

static unsigned digit_of(char byte)
{
    return hk_http1_is(byte, HK_HTTP1_DIGIT) ? (unsigned)(byte - '0') : (unsigned)((byte | 0x20) - 'a') + 10;
}

bool hk_http1_number(hk_bytes_t digits, unsigned base, uint64_t *number)
{
    uint64_t value = 0;
    for (size_t i = 0; i < digits.length; i++) {
        unsigned digit = digit_of(digits.at[i]);
        if (value > (UINT64_MAX - digit) / base) {
            return false;
        }
        value = value * base + digit;
    }
    *number = value;
    return true;
}

hk_http1_line_result_t hk_http1_find_line(hk_bytes_t input, hk_http1_line_ends_t ends, size_t *looked, size_t longest,
                                          size_t budget, size_t *length, size_t *next)
{
    size_t within_longest = hk_http1_plus(longest, 2);
    size_t window = within_longest < budget ? within_longest : budget;
    size_t seen = input.length < window ? input.length : window;
    const char *end = seen > *looked ? memchr(input.at + *looked, '\n', seen - *looked) : NULL;
    if (end == NULL) {
        *looked = seen;
        if (seen < window) {
            return HK_HTTP1_LINE_UNFINISHED;
        }
        return within_longest <= budget ? HK_HTTP1_LINE_LONG : HK_HTTP1_LINE_OVER;
    }
    bool whole = end > input.at && end[-1] == '\r';
    if (!whole && ends == HK_HTTP1_CRLF) {
        return HK_HTTP1_LINE_MALFORMED;
    }
    *length = (size_t)(end - input.at) - (whole ? 1 : 0);
    if (*length > longest) {
        return HK_HTTP1_LINE_LONG;
    }
    *next = (size_t)(end - input.at) + 1;
    *looked = 0;
    return HK_HTTP1_LINE_FOUND;
}

/* The text from `at` to the end of its line. */
static hk_http1_error_t parse_text(const char *at, const char *end, hk_bytes_t *text, const char **next)
{
    const char *stop = hk_http1_skip_text(at, end);
    const char *line_end = stop < end && *stop == '\r' ? stop + 1 : stop;
    if (line_end == end || *line_end != '\n') {
        return HK_HTTP1_HEADER_VALUE;
    }
    *text = without_blanks(at, stop);
    *next = line_end + 1;
    return HK_HTTP1_NONE;
}

hk_http1_error_t hk_http1_parse_field(const char *at, const char *end, hk_http1_header_t *header, const char **next)
{
    if (is_blank(*at)) {
        return HK_HTTP1_FOLDED;
    }
    const char *colon = hk_http1_skip(at, end, HK_HTTP1_IN_TOKEN);
    if (colon == at || colon == end || *colon != ':') {
        return HK_HTTP1_HEADER_NAME;
    }
    header->name = hk_bytes(at, (size_t)(colon - at));
    return parse_text(colon + 1, end, &header->value, next);
}

static bool frames(hk_bytes_t name)
{
    return hk_http1_is_word(name, HK_BYTES("content-length")) || hk_http1_is_word(name, HK_BYTES("transfer-encoding"));
}

hk_http1_error_t hk_http1_parse_folds(const char *end, size_t longest, hk_http1_header_t *header, const char **next)
{
    size_t unfolded = header->name.length + 1 + header->value.length;
    while (*next < end && is_blank(**next)) {
        /* What frames the message stands on one line, or two readers might find its end in different places. */
        if (frames(header->name)) {
            return HK_HTTP1_FOLDED;
        }
        hk_bytes_t more;
        hk_http1_error_t error = parse_text(*next, end, &more, next);
        if (error != HK_HTTP1_NONE) {
            return error;
        }
        if (more.length == 0) {
            continue;
        }
        const char *from = header->value.length > 0 ? header->value.at : more.at;
        unfolded += more.length + (header->value.length > 0);
        header->value = hk_bytes(from, (size_t)(more.at + more.length - from));
        if (unfolded > longest) {
            return HK_HTTP1_LINE_TOO_LONG;
        }
    }
    return HK_HTTP1_NONE;
}

bool hk_http1_is_folded(hk_bytes_t value)
{
    return value.length > 0 && memchr(value.at, '\n', value.length) != NULL;
}

size_t hk_http1_unfold(char *value, size_t length)
{
    size_t kept = 0, blanks = 0; /* the white space before it, which has not been kept yet */
    bool folded = false;
    for (size_t i = 0; i < length; i++) {
        if (is_blank_or_fold(value[i])) {
            folded |= value[i] == '\n';
            blanks++;
            continue;
        }
        if (folded) {
            value[kept++] = ' ';
        } else {
            memmove(value + kept, value + i - blanks, blanks);
            kept += blanks;
        }
        value[kept++] = value[i];
        blanks = 0;
        folded = false;
    }
    return kept;
}
