#include "hk_gate_private.h"

#include "hk_form.h"

/* What a parameter of the query is; those from CURSOR on are cursors, in the order in which they count. */
typedef enum parameter { DROPPED, DECIDES, CURSOR, OLD_CURSOR, OLD_HEADER_CURSOR, PARAMETERS } parameter_t;

/* Each byte of a name takes at most three: of a name whose first bytes decode to more than the longest that is known
 * ("authorization", "last_event_id", "Last-Event-ID": 13) nothing behind them matters. */
enum { LOOKED_AT = 3 * 14 };

static parameter_t parameter_of(const hk_gate_t *gate, hk_bytes_t name)
{
    char decoded[LOOKED_AT];
    if (hk_form_encoded(name)) {
        name.length = name.length < LOOKED_AT ? name.length : LOOKED_AT;
        name = hk_bytes(decoded, hk_form_decode(name, decoded));
    }
    hk_bytes_t beginning = hk_bytes(name.at, name.length < 5 ? name.length : 5);
    if (hk_bytes_equal_ignoring_case(beginning, HK_BYTES("match")) || hk_bytes_equal(name, HK_BYTES("topic")) ||
        hk_bytes_equal(name, HK_BYTES("authorization"))) {
        return DECIDES;
    }
    if (hk_bytes_equal(name, HK_BYTES("last_event_id"))) {
        return CURSOR;
    }
    if (gate->options.legacy && hk_bytes_equal(name, HK_BYTES("lastEventID"))) {
        return OLD_CURSOR;
    }
    if (gate->options.legacy && hk_bytes_equal(name, HK_BYTES("Last-Event-ID"))) {
        return OLD_HEADER_CURSOR;
    }
    return DROPPED;
}

/* Appends to a list that has room. */
static size_t put(char *out, size_t length, char separator, hk_bytes_t item)
{
    if (length > 0) {
        out[length++] = separator;
    }
    memcpy(out + length, item.at, item.length);
    return length + item.length;
}

size_t hk_gate_write_query(const hk_gate_t *gate, hk_bytes_t query, bool with_cursors, char *out)
{
    size_t length = 0;
    hk_bytes_t name, value;
    while (hk_form_next(&query, &name, &value)) {
        parameter_t parameter = parameter_of(gate, name);
        if (parameter == DECIDES || (with_cursors && parameter >= CURSOR)) {
            hk_bytes_t pair = hk_bytes(name.at, (size_t)(value.at + value.length - name.at));
            length = put(out, length, '&', pair);
        }
    }
    return length;
}

bool hk_gate_query_cursor(const hk_gate_t *gate, hk_bytes_t query, hk_bytes_t *cursor)
{
    hk_bytes_t firsts[PARAMETERS] = {{NULL, 0}}, name, value;
    while (hk_form_next(&query, &name, &value)) {
        parameter_t parameter = parameter_of(gate, name);
        if (parameter >= CURSOR && firsts[parameter].at == NULL) {
            firsts[parameter] = value;
        }
    }
    const hk_bytes_t *sent = NULL;
    for (parameter_t parameter = CURSOR; parameter < PARAMETERS; parameter++) {
        if (firsts[parameter].at != NULL && (sent == NULL || sent->length == 0)) {
            sent = &firsts[parameter];
        }
    }
    if (sent != NULL) {
        *cursor = *sent;
    }
    return sent != NULL;
}

/* As String#strip. */
static hk_bytes_t stripped(hk_bytes_t text)
{
    while (text.length > 0 && memchr("\0\t\n\v\f\r ", text.at[0], 7) != NULL) {
        text = hk_bytes(text.at + 1, text.length - 1);
    }
    while (text.length > 0 && memchr("\0\t\n\v\f\r ", text.at[text.length - 1], 7) != NULL) {
        text.length--;
    }
    return text;
}

static bool has_token(const hk_gate_t *gate, hk_bytes_t pair)
{
    const char *equals = pair.length > 0 ? memchr(pair.at, '=', pair.length) : NULL;
    if (equals == NULL) {
        return false;
    }
    hk_bytes_t name = stripped(hk_bytes(pair.at, (size_t)(equals - pair.at)));
    for (size_t i = 0; i < gate->options.cookie_name_count; i++) {
        if (hk_bytes_equal(name, gate->options.cookie_names[i])) {
            return true;
        }
    }
    return false;
}

size_t hk_gate_write_cookie(const hk_gate_t *gate, hk_bytes_t cookie, char *out)
{
    size_t length = 0;
    while (cookie.length > 0) {
        const char *mark = memchr(cookie.at, ';', cookie.length);
        hk_bytes_t pair = hk_bytes(cookie.at, mark != NULL ? (size_t)(mark - cookie.at) : cookie.length);
        size_t taken = pair.length + (mark != NULL);
        cookie = hk_bytes(cookie.at + taken, cookie.length - taken);
        if (has_token(gate, pair)) {
            length = put(out, length, ';', stripped(pair));
        }
    }
    return length;
}
