#include "hk_http1_private.h"

/* The longest number below 2^64 has so many digits. */
#define CONTENT_LENGTH_DIGITS 20

static void note_connection(hk_http1_facts_t *facts, hk_bytes_t list)
{
    hk_bytes_t member;
    while (hk_http1_next_member(&list, &member)) {
        facts->close |= hk_http1_is_word(member, HK_BYTES("close"));
        facts->keep_alive |= hk_http1_is_word(member, HK_BYTES("keep-alive"));
        facts->upgrades |= hk_http1_is_word(member, HK_BYTES("upgrade"));
    }
}

static void note_transfer_encoding(hk_http1_facts_t *facts, hk_bytes_t list)
{
    hk_bytes_t member;
    facts->coded = true;
    while (hk_http1_next_member(&list, &member)) {
        const char *end = member.at + member.length;
        bool token = member.length > 0 && hk_http1_skip(member.at, end, HK_HTTP1_IN_TOKEN) == end;
        facts->chunked_last = hk_http1_is_word(member, HK_BYTES("chunked"));
        facts->codings_malformed |= !token;
        facts->codings++;
        facts->identities += hk_http1_is_word(member, HK_BYTES("identity"));
        facts->chunked += facts->chunked_last;
    }
}

static void note_content_length(hk_http1_facts_t *facts, hk_bytes_t value)
{
    hk_bytes_t list = value, member;
    while (hk_http1_next_member(&list, &member)) {
        if (facts->lengths == 0) {
            facts->length = member;
        }
        facts->lengths_differ |= !hk_bytes_equal(member, facts->length);
        facts->lengths++;
    }
    facts->content_lengths++;
    facts->content_length = value;
}

void hk_http1_note_field(hk_http1_facts_t *facts, const hk_http1_header_t *header)
{
    switch (header->name.length) {
    case 4:
        if (hk_http1_is_word(header->name, HK_BYTES("host"))) {
            facts->hosts++;
            facts->host = header->value;
        }
        break;
    case 6:
        if (hk_http1_is_word(header->name, HK_BYTES("expect"))) {
            facts->expect_continue |= hk_http1_is_word(header->value, HK_BYTES("100-continue"));
        }
        break;
    case 7:
        facts->upgrade |= header->value.length > 0 && hk_http1_is_word(header->name, HK_BYTES("upgrade"));
        break;
    case 10:
        if (hk_http1_is_word(header->name, HK_BYTES("connection"))) {
            note_connection(facts, header->value);
        }
        break;
    case 14:
        if (hk_http1_is_word(header->name, HK_BYTES("content-length"))) {
            note_content_length(facts, header->value);
        }
        break;
    case 17:
        if (hk_http1_is_word(header->name, HK_BYTES("transfer-encoding"))) {
            note_transfer_encoding(facts, header->value);
        }
        break;
    default:
        break;
    }
}

/* RFC 9112, section 6.1: what has to do with codings in HTTP/1.0 is faulty. Section 6.3, rule 4: a request that does
 * not end with chunked is malformed; a response would last until the connection is closed, but nobody sends one on
 * purpose. */
static hk_http1_error_t check_codings(const hk_http1_facts_t *facts, uint8_t minor)
{
    if (facts->content_lengths > 0) {
        return HK_HTTP1_FRAMING_CONFLICT;
    }
    if (minor == 0 || facts->codings_malformed || !facts->chunked_last || facts->chunked > 1) {
        return HK_HTTP1_TRANSFER_ENCODING;
    }
    return facts->codings > 1 ? HK_HTTP1_TRANSFER_ENCODING_UNKNOWN : HK_HTTP1_NONE;
}

/* What the framing fields say, whoever sent them; without any there is no body. */
static hk_http1_error_t frame(const hk_http1_facts_t *facts, uint8_t minor, hk_http1_framing_t *framing)
{
    *framing = (hk_http1_framing_t){HK_HTTP1_NO_BODY, 0};
    if (facts->coded) {
        framing->kind = HK_HTTP1_CHUNKED;
        return check_codings(facts, minor);
    }
    if (facts->content_lengths == 0) {
        return HK_HTTP1_NONE;
    }
    if (facts->content_lengths > 1) {
        return HK_HTTP1_CONTENT_LENGTH_REPEATED;
    }
    hk_bytes_t digits = facts->content_length;
    const char *end = digits.at + digits.length;
    framing->kind = HK_HTTP1_LENGTH;
    bool number = digits.length > 0 && digits.length <= CONTENT_LENGTH_DIGITS &&
                  hk_http1_skip(digits.at, end, HK_HTTP1_DIGIT) == end && hk_http1_number(digits, 10, &framing->length);
    return number ? HK_HTTP1_NONE : HK_HTTP1_CONTENT_LENGTH;
}

static bool has_body(hk_http1_framing_t framing)
{
    return framing.kind == HK_HTTP1_CHUNKED || framing.length > 0;
}

static bool keeps_alive(const hk_http1_facts_t *facts, uint8_t minor)
{
    return !facts->close && (minor == 1 || facts->keep_alive);
}

/* RFC 9110, section 8.6: a length that is said several times, always the same, in fields or in a list, is said once.
 * Nobody reads it differently, as long as it is passed on so. */
static void say_length_once(hk_http1_facts_t *facts, hk_http1_response_t *response)
{
    if (facts->lengths < 2 || facts->lengths_differ) {
        return;
    }
    size_t kept = 0;
    bool said = false;
    for (size_t i = 0; i < response->header_count; i++) {
        hk_http1_header_t header = response->headers[i];
        if (hk_http1_is_word(header.name, HK_BYTES("content-length"))) {
            if (said) {
                continue;
            }
            said = true;
            header.value = facts->length;
        }
        response->headers[kept++] = header;
    }
    response->header_count = kept;
    facts->content_length = facts->length;
    facts->content_lengths = facts->lengths = 1;
}

/* Some servers say identity where there is no coding, as RFC 2616 had it. */
static bool says_nothing(const hk_http1_facts_t *facts, const hk_http1_response_t *response)
{
    return response->minor == 1 && response->status / 100 != 1 && facts->codings == 1 && facts->identities == 1 &&
           facts->content_lengths == 0;
}

hk_http1_error_t hk_http1_conclude_request(const hk_http1_facts_t *facts, hk_http1_request_t *request)
{
    if (facts->hosts != 1 && (facts->hosts > 1 || request->minor == 1)) {
        return facts->hosts > 1 ? HK_HTTP1_HOST_REPEATED : HK_HTTP1_HOST_MISSING;
    }
    /* Empty where the target has no authority (RFC 9112, section 3.2). */
    if (facts->hosts == 1 && facts->host.length > 0 && !hk_http1_valid_authority(facts->host, false)) {
        return HK_HTTP1_HOST;
    }
    if (request->form == HK_HTTP1_ORIGIN || request->form == HK_HTTP1_ASTERISK) {
        request->authority = facts->host;
    }
    hk_http1_error_t error = frame(facts, request->minor, &request->framing);
    if (error != HK_HTTP1_NONE) {
        return error;
    }
    if (request->form == HK_HTTP1_AUTHORITY && has_body(request->framing)) {
        return HK_HTTP1_BODY_FORBIDDEN;
    }
    request->keep_alive = keeps_alive(facts, request->minor);
    request->expect_continue = facts->expect_continue && request->minor == 1 && has_body(request->framing);
    request->upgrade = facts->upgrade && facts->upgrades && request->minor == 1;
    return HK_HTTP1_NONE;
}

/* RFC 9112, section 6.3. */
hk_http1_error_t hk_http1_conclude_response(hk_http1_facts_t *facts, hk_bytes_t method, hk_http1_response_t *response)
{
    uint16_t status = response->status;
    bool tunnel = status / 100 == 2 && hk_bytes_equal(method, HK_BYTES("CONNECT"));
    response->interim = status / 100 == 1 && status != 101;
    response->upgrade = status == 101 || tunnel;
    response->keep_alive = keeps_alive(facts, response->minor);
    response->framing = (hk_http1_framing_t){HK_HTTP1_NO_BODY, 0};
    if (tunnel) {
        return HK_HTTP1_NONE;
    }
    if (status == 101 && (!facts->upgrade || !facts->upgrades || response->minor == 0)) {
        return HK_HTTP1_UPGRADE_MISSING;
    }
    say_length_once(facts, response);
    hk_http1_framing_t framing = {HK_HTTP1_NO_BODY, 0};
    hk_http1_error_t error = says_nothing(facts, response) ? HK_HTTP1_NONE : frame(facts, response->minor, &framing);
    if (error != HK_HTTP1_NONE) {
        return error;
    }
    if (status == 204 && facts->coded) {
        /* It has no body, whatever its fields say; but who says how it is sent may send one: nothing that follows is
         * believed. */
        response->keep_alive = false;
        return HK_HTTP1_NONE;
    }
    if (status / 100 == 1 || status == 204) {
        return has_body(framing) ? HK_HTTP1_BODY_FORBIDDEN : HK_HTTP1_NONE;
    }
    if (status == 304 || hk_bytes_equal(method, HK_BYTES("HEAD"))) {
        return HK_HTTP1_NONE;
    }
    if (framing.kind == HK_HTTP1_NO_BODY) {
        framing.kind = HK_HTTP1_UNTIL_CLOSE;
        response->keep_alive = false;
    }
    response->framing = framing;
    return HK_HTTP1_NONE;
}
