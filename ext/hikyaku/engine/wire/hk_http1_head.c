#include "hk_http1_private.h"

/* "HTTP/1.1" */
#define VERSION_BYTES 8

/* What requests and responses have in common while they are parsed. */
typedef struct head {
    const hk_http1_limits_t *limits;
    size_t leading_lines; /* that may precede */
    hk_http1_line_ends_t line_ends;
    bool folds;             /* a field may go on in the next line */
    size_t end;             /* of the head, once it is whole */
    bool start_line_is_new; /* it was not there at the last call */
} head_t;

static hk_status_t refuse(hk_http1_scan_t *scan, hk_http1_error_t error)
{
    scan->error = error;
    switch (error) {
    case HK_HTTP1_METHOD_TOO_LONG:
    case HK_HTTP1_TARGET_TOO_LONG:
    case HK_HTTP1_LINE_TOO_LONG:
    case HK_HTTP1_HEAD_TOO_LARGE:
    case HK_HTTP1_TOO_MANY_HEADERS:
        return HK_TOO_LARGE;
    default:
        return HK_INVALID;
    }
}

static size_t longest_start_line(const hk_http1_limits_t *limits)
{
    return hk_http1_plus(hk_http1_plus(limits->method_bytes, limits->target_bytes), VERSION_BYTES + 2);
}

/* Looks for the next line's end. HK_OK, or what parsing ends with for now. */
static hk_status_t find_line(const head_t *head, hk_bytes_t input, hk_http1_scan_t *scan, size_t *length, size_t *next)
{
    bool starts = scan->start_line == 0;
    hk_bytes_t rest = hk_bytes(input.at + scan->line, input.length - scan->line);
    size_t looked = scan->looked - scan->line, head_bytes = scan->line - scan->start;
    size_t longest = starts ? longest_start_line(head->limits) : head->limits->line_bytes;
    size_t budget = head->limits->head_bytes > head_bytes ? head->limits->head_bytes - head_bytes : 0;
    hk_http1_line_result_t result = hk_http1_find_line(rest, head->line_ends, &looked, longest, budget, length, next);
    scan->looked = scan->line + looked;
    switch (result) {
    case HK_HTTP1_LINE_FOUND:
        return HK_OK;
    case HK_HTTP1_LINE_UNFINISHED:
        return HK_AGAIN;
    case HK_HTTP1_LINE_LONG:
        return refuse(scan, starts ? HK_HTTP1_TARGET_TOO_LONG : HK_HTTP1_LINE_TOO_LONG);
    case HK_HTTP1_LINE_OVER:
        return refuse(scan, HK_HTTP1_HEAD_TOO_LARGE);
    default:
        return refuse(scan, HK_HTTP1_LINE_END);
    }
}

/* Looks on for the end of the head. */
static hk_status_t scan_head(head_t *head, hk_bytes_t input, hk_http1_scan_t *scan)
{
    size_t length, next;
    hk_status_t status = HK_AGAIN;
    while (input.length > 0 && (status = find_line(head, input, scan, &length, &next)) == HK_OK) {
        next += scan->line;
        if (scan->start_line > 0 && length == 0) {
            head->end = next;
            break;
        }
        if (scan->start_line == 0 && length > 0) {
            scan->start_line = length;
            scan->fields = next;
            head->start_line_is_new = true;
        } else if (length == 0) {
            if (head->leading_lines == 0 || next / 2 > head->leading_lines) {
                return refuse(scan, HK_HTTP1_START_LINE);
            }
            scan->start = next;
        }
        scan->line = scan->looked = next;
    }
    return status;
}

static hk_bytes_t start_line(hk_bytes_t input, const hk_http1_scan_t *scan)
{
    return hk_bytes(input.at + scan->start, scan->start_line);
}

/* Up to the empty line, at which the scan has stopped. */
static hk_bytes_t field_lines(hk_bytes_t input, const hk_http1_scan_t *scan)
{
    return hk_bytes(input.at + scan->fields, scan->line - scan->fields);
}

static hk_http1_error_t parse_version(const char *at, uint8_t *minor)
{
    if (memcmp(at, "HTTP/", 5) != 0 || !hk_http1_is(at[5], HK_HTTP1_DIGIT) || at[6] != '.' ||
        !hk_http1_is(at[7], HK_HTTP1_DIGIT)) {
        return HK_HTTP1_START_LINE;
    }
    if (at[5] != '1' || at[7] > '1') {
        return HK_HTTP1_VERSION;
    }
    *minor = (uint8_t)(at[7] - '0');
    return HK_HTTP1_NONE;
}

/* method SP request-target SP HTTP-version */
static hk_http1_error_t parse_request_line(hk_bytes_t line, const hk_http1_limits_t *limits,
                                           hk_http1_request_t *request)
{
    const char *at = line.at, *end = at + line.length;
    const char *after_method = hk_http1_skip(at, end, HK_HTTP1_IN_TOKEN);
    if (after_method == at || after_method == end || *after_method != ' ') {
        return HK_HTTP1_METHOD;
    }
    request->method = hk_bytes(at, (size_t)(after_method - at));
    if (request->method.length > limits->method_bytes) {
        return HK_HTTP1_METHOD_TOO_LONG;
    }
    const char *target = after_method + 1;
    const char *after_target = hk_http1_skip(target, end, HK_HTTP1_IN_TARGET);
    if (after_target < end && *after_target != ' ') {
        return HK_HTTP1_TARGET;
    }
    if (after_target == target || end - after_target != VERSION_BYTES + 1) {
        return HK_HTTP1_START_LINE;
    }
    request->target = hk_bytes(target, (size_t)(after_target - target));
    if (request->target.length > limits->target_bytes) {
        return HK_HTTP1_TARGET_TOO_LONG;
    }
    hk_http1_error_t error = parse_version(after_target + 1, &request->minor);
    return error != HK_HTTP1_NONE ? error : hk_http1_parse_target(request);
}

/* HTTP-version SP status-code [SP reason-phrase]: the specification wants the second space always, servers do not. */
static hk_http1_error_t parse_status_line(hk_bytes_t line, hk_http1_response_t *response)
{
    const char *at = line.at, *end = at + line.length;
    if (line.length < VERSION_BYTES + 1 || at[VERSION_BYTES] != ' ') {
        return HK_HTTP1_START_LINE;
    }
    hk_http1_error_t error = parse_version(at, &response->minor);
    if (error != HK_HTTP1_NONE) {
        return error;
    }
    uint64_t status;
    at += VERSION_BYTES + 1;
    const char *after = hk_http1_skip(at, end, HK_HTTP1_DIGIT);
    if (after - at != 3 || *at == '0' || (after < end && *after != ' ')) {
        return HK_HTTP1_STATUS_CODE;
    }
    hk_http1_number(hk_bytes(at, 3), 10, &status);
    response->status = (uint16_t)status;
    at = after < end ? after + 1 : end;
    response->reason = hk_bytes(at, (size_t)(end - at));
    return hk_http1_skip_text(at, end) == end ? HK_HTTP1_NONE : HK_HTTP1_REASON;
}

static hk_http1_error_t parse_fields(const head_t *head, hk_bytes_t lines, hk_http1_header_t *headers, size_t capacity,
                                     size_t *count, hk_http1_facts_t *facts)
{
    const char *at = lines.at, *end = at + lines.length;
    size_t parsed = 0;
    while (at < end) {
        if (parsed == capacity) {
            return HK_HTTP1_TOO_MANY_HEADERS;
        }
        hk_http1_error_t error = hk_http1_parse_field(at, end, &headers[parsed], &at);
        if (error == HK_HTTP1_NONE && head->folds) {
            error = hk_http1_parse_folds(end, head->limits->line_bytes, &headers[parsed], &at);
        }
        if (error != HK_HTTP1_NONE) {
            return error;
        }
        hk_http1_note_field(facts, &headers[parsed]);
        parsed++;
    }
    *count = parsed;
    return HK_HTTP1_NONE;
}

hk_status_t hk_http1_parse_request(hk_bytes_t input, const hk_http1_limits_t *limits, hk_http1_scan_t *scan,
                                   hk_http1_request_t *request, size_t *consumed)
{
    head_t head = {.limits = limits, .leading_lines = limits->leading_lines, .line_ends = HK_HTTP1_CRLF};
    hk_http1_request_t parsed = {.headers = request->headers, .header_capacity = request->header_capacity};
    hk_http1_facts_t facts = {.hosts = 0};
    hk_http1_error_t error = HK_HTTP1_NONE;
    hk_status_t status = scan_head(&head, input, scan);
    if (head.start_line_is_new || status == HK_OK) {
        error = parse_request_line(start_line(input, scan), limits, &parsed);
    }
    if (error == HK_HTTP1_NONE && status != HK_OK) {
        return status;
    }
    if (error == HK_HTTP1_NONE) {
        error = parse_fields(&head, field_lines(input, scan), parsed.headers, parsed.header_capacity,
                             &parsed.header_count, &facts);
    }
    if (error == HK_HTTP1_NONE) {
        error = hk_http1_conclude_request(&facts, &parsed);
    }
    if (error != HK_HTTP1_NONE) {
        return refuse(scan, error);
    }
    *request = parsed;
    *consumed = head.end;
    *scan = (hk_http1_scan_t){.error = HK_HTTP1_NONE};
    return HK_OK;
}

hk_status_t hk_http1_parse_response(hk_bytes_t input, const hk_http1_limits_t *limits, hk_bytes_t method,
                                    hk_http1_scan_t *scan, hk_http1_response_t *response, size_t *consumed)
{
    head_t head = {.limits = limits, .leading_lines = 0, .line_ends = HK_HTTP1_CRLF_OR_LF, .folds = true};
    hk_http1_response_t parsed = {.headers = response->headers, .header_capacity = response->header_capacity};
    hk_http1_facts_t facts = {.hosts = 0};
    hk_http1_error_t error = HK_HTTP1_NONE;
    hk_status_t status = scan_head(&head, input, scan);
    if (head.start_line_is_new || status == HK_OK) {
        error = parse_status_line(start_line(input, scan), &parsed);
    }
    if (error == HK_HTTP1_NONE && status != HK_OK) {
        return status;
    }
    if (error == HK_HTTP1_NONE) {
        error = parse_fields(&head, field_lines(input, scan), parsed.headers, parsed.header_capacity,
                             &parsed.header_count, &facts);
    }
    if (error == HK_HTTP1_NONE) {
        error = hk_http1_conclude_response(&facts, method, &parsed);
    }
    if (error != HK_HTTP1_NONE) {
        return refuse(scan, error);
    }
    *response = parsed;
    *consumed = head.end;
    *scan = (hk_http1_scan_t){.error = HK_HTTP1_NONE};
    return HK_OK;
}
