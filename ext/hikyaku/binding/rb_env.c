#include "rb_request.h"

/* The Rack environment of a request (Rack 3, SPEC), as Puma makes it: names and values are binary, a path is not
 * decoded, fields of one name are joined.
 *
 * Of a request whose decision may be remembered it holds nothing but what decides (see hk_gate.h): what Ruby is not
 * shown cannot have been decided by. */

enum { SHOWN = 128 /* more fields than a head may have: HK_HTTP1_HEADERS */ };

typedef struct shown {
    const hk_http1_request_t *head;
    bool partly;
    bool headers[SHOWN];
    hk_buf_t query, cookie;
    hk_status_t status;
} shown_t;

static void find_shown(rb_hk_core_t *core, void *argument)
{
    shown_t *call = argument;
    const hk_http1_request_t *head = call->head;
    for (size_t i = 0; i < head->header_count && i < SHOWN; i++) {
        call->headers[i] = hk_gate_shown_header(core->gate, head, head->headers[i].name);
    }
    call->status = hk_gate_shown_query(core->gate, head, &call->query);
    if (call->status == HK_OK) {
        call->status = hk_gate_shown_cookie(core->gate, head, &call->cookie);
    }
}

/* --- names ------------------------------------------------------------------------------------------------------- */

#define NAMES(X)                                                                                                       \
    X(method, "REQUEST_METHOD")                                                                                        \
    X(script_name, "SCRIPT_NAME")                                                                                      \
    X(path_info, "PATH_INFO")                                                                                          \
    X(query_string, "QUERY_STRING")                                                                                    \
    X(request_uri, "REQUEST_URI")                                                                                      \
    X(protocol, "SERVER_PROTOCOL")                                                                                     \
    X(server_name, "SERVER_NAME")                                                                                      \
    X(server_port, "SERVER_PORT")                                                                                      \
    X(remote_addr, "REMOTE_ADDR")                                                                                      \
    X(url_scheme, "rack.url_scheme")                                                                                   \
    X(input, "rack.input")                                                                                             \
    X(errors, "rack.errors")                                                                                           \
    X(content_type, "CONTENT_TYPE")                                                                                    \
    X(content_length, "CONTENT_LENGTH")                                                                                \
    X(cookie, "HTTP_COOKIE")                                                                                           \
    X(host, "HTTP_HOST")                                                                                               \
    X(transfer_encoding, "HTTP_TRANSFER_ENCODING")                                                                     \
    X(forwarded_proto, "HTTP_X_FORWARDED_PROTO")                                                                       \
    X(forwarded_scheme, "HTTP_X_FORWARDED_SCHEME")                                                                     \
    X(forwarded_ssl, "HTTP_X_FORWARDED_SSL")                                                                           \
    X(empty, "")                                                                                                       \
    X(get, "GET")                                                                                                      \
    X(post, "POST")                                                                                                    \
    X(http_10, "HTTP/1.0")                                                                                             \
    X(http_11, "HTTP/1.1")                                                                                             \
    X(http, "http")                                                                                                    \
    X(https, "https")                                                                                                  \
    X(localhost, "localhost")                                                                                          \
    X(port_80, "80")                                                                                                   \
    X(port_443, "443")

#define DECLARE(name, text) static VALUE text_##name;
NAMES(DECLARE)
#undef DECLARE

static VALUE string_io_class;

/* Fields that come with most requests: their names need not be made anew. */
static struct {
    const char *field, *name;
    VALUE string;
} common[] = {
    {"accept", "HTTP_ACCEPT", 0},
    {"accept-encoding", "HTTP_ACCEPT_ENCODING", 0},
    {"accept-language", "HTTP_ACCEPT_LANGUAGE", 0},
    {"authorization", "HTTP_AUTHORIZATION", 0},
    {"cache-control", "HTTP_CACHE_CONTROL", 0},
    {"connection", "HTTP_CONNECTION", 0},
    {"content-length", "CONTENT_LENGTH", 0},
    {"content-type", "CONTENT_TYPE", 0},
    {"cookie", "HTTP_COOKIE", 0},
    {"hikyaku-stream", "HTTP_HIKYAKU_STREAM", 0},
    {"host", "HTTP_HOST", 0},
    {"idempotency-key", "HTTP_IDEMPOTENCY_KEY", 0},
    {"last-event-id", "HTTP_LAST_EVENT_ID", 0},
    {"origin", "HTTP_ORIGIN", 0},
    {"referer", "HTTP_REFERER", 0},
    {"user-agent", "HTTP_USER_AGENT", 0},
    {"x-forwarded-for", "HTTP_X_FORWARDED_FOR", 0},
    {"x-forwarded-proto", "HTTP_X_FORWARDED_PROTO", 0},
};
enum { COMMON = sizeof(common) / sizeof(*common) };

static VALUE constant(const char *text)
{
    VALUE string = rb_interned_str_cstr(text);
    rb_gc_register_mark_object(string);
    return string;
}

/* "X-Custom" becomes "HTTP_X_CUSTOM". */
static VALUE name_of(hk_bytes_t field)
{
    for (size_t i = 0; i < COMMON; i++) {
        if (hk_bytes_equal_ignoring_case(field, hk_bytes(common[i].field, strlen(common[i].field)))) {
            return common[i].string;
        }
    }
    VALUE name = rb_str_new_cstr("HTTP_");
    rb_str_cat(name, field.at, (long)field.length);
    char *text = RSTRING_PTR(name);
    for (size_t i = sizeof("HTTP_") - 1; i < (size_t)RSTRING_LEN(name); i++) {
        if (text[i] == '-') {
            text[i] = '_';
        } else if (text[i] >= 'a' && text[i] <= 'z') {
            text[i] = (char)(text[i] - 'a' + 'A');
        }
    }
    return name;
}

/* --- fields ------------------------------------------------------------------------------------------------------ */

/* In the environment its name would be that of a field with a hyphen, which a proxy may have been told to remove. */
static bool poses(hk_bytes_t name)
{
    return memchr(name.at, '_', name.length) != NULL;
}

static void add_field(VALUE env, const hk_http1_header_t *header)
{
    VALUE name = name_of(header->name);
    VALUE earlier = rb_hash_lookup(env, name);
    if (NIL_P(earlier)) {
        rb_hash_aset(env, name, rb_hk_string(header->value));
    } else {
        rb_str_cat_cstr(earlier, ", ");
        rb_str_cat(earlier, header->value.at, (long)header->value.length);
    }
}

static void add_fields(VALUE env, const shown_t *shown)
{
    const hk_http1_request_t *head = shown->head;
    for (size_t i = 0; i < head->header_count; i++) {
        const hk_http1_header_t *header = &head->headers[i];
        bool is_shown = !shown->partly || (i < SHOWN && shown->headers[i]);
        if (is_shown && !poses(header->name)) {
            add_field(env, header);
        }
    }
    /* RFC 9112, section 3.2.2. */
    if (head->form == HK_HTTP1_ABSOLUTE) {
        rb_hash_aset(env, text_host, rb_hk_string(head->authority));
    }
    if (shown->partly && shown->cookie.length > 0) {
        rb_hash_aset(env, text_cookie, rb_hk_string(hk_buf_bytes(&shown->cookie)));
    }
}

/* --- the rest ---------------------------------------------------------------------------------------------------- */

static VALUE method_of(hk_bytes_t method)
{
    if (hk_bytes_equal(method, HK_BYTES("GET"))) {
        return text_get;
    }
    return hk_bytes_equal(method, HK_BYTES("POST")) ? text_post : rb_hk_string(method);
}

static void add_request_line(VALUE env, const shown_t *shown)
{
    const hk_http1_request_t *head = shown->head;
    hk_bytes_t path = head->form == HK_HTTP1_ASTERISK ? head->target : head->path;
    hk_bytes_t query = shown->partly ? hk_buf_bytes(&shown->query) : head->query;
    rb_hash_aset(env, text_method, method_of(head->method));
    rb_hash_aset(env, text_script_name, text_empty);
    rb_hash_aset(env, text_path_info, path.length == 0 ? rb_str_new_cstr("/") : rb_hk_string(path));
    rb_hash_aset(env, text_query_string, query.length == 0 ? text_empty : rb_hk_string(query));
    rb_hash_aset(env, text_protocol, head->minor == 0 ? text_http_10 : text_http_11);
    if (!shown->partly) {
        rb_hash_aset(env, text_request_uri, rb_hk_string(head->target));
    }
}

static hk_bytes_t said(VALUE env, VALUE name)
{
    VALUE value = rb_hash_lookup(env, name);
    return NIL_P(value) ? HK_BYTES("") : hk_bytes(RSTRING_PTR(value), (size_t)RSTRING_LEN(value));
}

static bool says(VALUE env, VALUE name, hk_bytes_t value)
{
    return hk_bytes_equal(said(env, name), value);
}

static void add_server(VALUE env)
{
    /* Of a list, the first is what the client used: "https,http". */
    bool secure = hk_bytes_start_with(said(env, text_forwarded_proto), HK_BYTES("https")) ||
                  says(env, text_forwarded_scheme, HK_BYTES("https")) || says(env, text_forwarded_ssl, HK_BYTES("on"));
    VALUE name = text_localhost, port = secure ? text_port_443 : text_port_80;
    VALUE host = rb_hash_lookup(env, text_host);
    if (!NIL_P(host) && RSTRING_LEN(host) > 0) {
        hk_bytes_t text = hk_bytes(RSTRING_PTR(host), (size_t)RSTRING_LEN(host));
        const char *end = text.length > 0 && text.at[0] == '[' ? memchr(text.at, ']', text.length) : text.at;
        const char *colon = end == NULL ? NULL : memchr(end, ':', text.length - (size_t)(end - text.at));
        size_t name_length = colon == NULL ? text.length : (size_t)(colon - text.at);
        name = rb_hk_string(hk_bytes(text.at, name_length));
        /* An empty port is none: RFC 3986, section 3.2.3. */
        if (colon != NULL && name_length + 1 < text.length) {
            port = rb_hk_string(hk_bytes(colon + 1, text.length - name_length - 1));
        }
        RB_GC_GUARD(host);
    }
    rb_hash_aset(env, text_server_name, name);
    rb_hash_aset(env, text_server_port, port);
    rb_hash_aset(env, text_url_scheme, secure ? text_https : text_http);
}

static void add_body(VALUE env, const rb_hk_request_t *request)
{
    hk_bytes_t body = hk_ask_body(request->ask);
    VALUE string = rb_hk_string(body);
    rb_hash_aset(env, text_input, rb_class_new_instance(1, &string, string_io_class));
    if (hk_ask_head(request->ask)->framing.kind != HK_HTTP1_CHUNKED) {
        return;
    }
    /* The chunks are joined: what is said of the body is what is there, or that it was too much. */
    size_t length = hk_ask_body_too_large(request->ask) ? request->driver->max_body_bytes + 1 : body.length;
    rb_hash_delete(env, text_transfer_encoding);
    rb_hash_aset(env, text_content_length, rb_sprintf("%" PRIuSIZE, length));
}

typedef struct build {
    rb_hk_request_t *request;
    shown_t shown;
} build_t;

static VALUE build(VALUE argument)
{
    build_t *call = (build_t *)argument;
    shown_t *shown = &call->shown;
    const hk_ask_t *ask = call->request->ask;
    if (shown->partly) {
        rb_hk_locked(call->request->driver->core, find_shown, shown);
        rb_hk_check(shown->status, "request");
    }
    VALUE env = rb_hash_new();
    add_request_line(env, shown);
    add_fields(env, shown);
    add_server(env);
    /* Who is not shown what proxies say is told what came of it. */
    hk_bytes_t address = shown->partly ? hk_ask_address(ask) : hk_ask_peer(ask);
    if (address.length > 0) {
        rb_hash_aset(env, text_remote_addr, rb_hk_text_or_nil(address));
    }
    add_body(env, call->request);
    rb_hash_aset(env, text_errors, rb_stderr);
    return env;
}

static VALUE release(VALUE argument)
{
    build_t *call = (build_t *)argument;
    hk_buf_release(&call->shown.query);
    hk_buf_release(&call->shown.cookie);
    call->request->readers--;
    return Qnil;
}

/* _env: a new Hash. */
static VALUE request_env(VALUE self)
{
    rb_hk_request_t *request = rb_hk_request_of(self);
    build_t call = {.request = request, .shown = {.head = hk_ask_head(request->ask)}};
    hk_buf_init(&call.shown.query, hk_alloc_default());
    hk_buf_init(&call.shown.cookie, hk_alloc_default());
    call.shown.partly = hk_ask_key(request->ask).length > 0;
    request->readers++;
    VALUE env = rb_ensure(build, (VALUE)&call, release, (VALUE)&call);
    RB_GC_GUARD(self);
    return env;
}

void rb_hk_init_env(VALUE request_class)
{
#define MAKE(name, text) text_##name = constant(text);
    NAMES(MAKE)
#undef MAKE
    for (size_t i = 0; i < COMMON; i++) {
        common[i].string = constant(common[i].name);
    }
    rb_require("stringio");
    string_io_class = rb_const_get(rb_cObject, rb_intern("StringIO"));
    rb_gc_register_mark_object(string_io_class);
    rb_define_private_method(request_class, "_env", request_env, 0);
}
