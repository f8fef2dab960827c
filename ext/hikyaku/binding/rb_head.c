#include "rb_hk.h"

#include "hk_http1.h"

#include <ruby/encoding.h>

/* Hikyaku::HTTP::Parser::NativeHeadReader: heads of responses, by hk_http1. What Ruby makes of one in some 150 objects
 * are here the values, one array for each and nothing else: names come from the table of strings that Ruby has anyway. */

enum { ON_THE_STACK = HK_HTTP1_HEADERS, SHORT_NAME = 64 };

typedef struct head_reader {
    hk_http1_limits_t limits;
    size_t headers;
    hk_http1_scan_t scan;
} head_reader_t;

static const rb_data_type_t head_reader_type = {
    .wrap_struct_name = "Hikyaku::HTTP::Parser::NativeHeadReader",
    .function = {.dfree = RUBY_DEFAULT_FREE},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

static VALUE head_reader_alloc(VALUE class)
{
    head_reader_t *reader;
    VALUE self = TypedData_Make_Struct(class, head_reader_t, &head_reader_type, reader);
    reader->limits = hk_http1_default_limits;
    reader->headers = HK_HTTP1_HEADERS;
    return self;
}

/* _limit(method_bytes, target_bytes, line_bytes, head_bytes, headers): see Parser::Limits. */
static VALUE head_reader_limit(VALUE self, VALUE method, VALUE target, VALUE line, VALUE head, VALUE headers)
{
    head_reader_t *reader = rb_check_typeddata(self, &head_reader_type);
    reader->limits.method_bytes = NUM2SIZET(method);
    reader->limits.target_bytes = NUM2SIZET(target);
    reader->limits.line_bytes = NUM2SIZET(line);
    reader->limits.head_bytes = NUM2SIZET(head);
    reader->headers = NUM2SIZET(headers);
    return self;
}

static VALUE interned(const char *at, size_t length)
{
    return rb_enc_interned_str(at, (long)length, rb_ascii8bit_encoding());
}

/* In lower case: `name` itself where it is that already. */
static VALUE lower_name(VALUE name, hk_bytes_t text)
{
    size_t i = 0;
    while (i < text.length && !(text.at[i] >= 'A' && text.at[i] <= 'Z')) {
        i++;
    }
    if (i == text.length) {
        return name;
    }
    char small[SHORT_NAME];
    VALUE memory = 0;
    char *lower = text.length <= sizeof(small) ? small : rb_alloc_tmp_buffer(&memory, (long)text.length);
    for (i = 0; i < text.length; i++) {
        lower[i] = text.at[i] >= 'A' && text.at[i] <= 'Z' ? (char)(text.at[i] | 0x20) : text.at[i];
    }
    VALUE string = interned(lower, text.length);
    if (memory != 0) {
        ALLOCV_END(memory);
    }
    return string;
}

static VALUE value_of(hk_bytes_t value)
{
    VALUE string = rb_hk_string(value);
    if (hk_http1_is_folded(value)) {
        rb_str_set_len(string, (long)hk_http1_unfold(RSTRING_PTR(string), value.length));
    }
    return rb_obj_freeze(string);
}

static VALUE framing_of(const hk_http1_framing_t *framing)
{
    static const char *const names[] = {
        [HK_HTTP1_NO_BODY] = "none",
        [HK_HTTP1_LENGTH] = "length",
        [HK_HTTP1_CHUNKED] = "chunked",
        [HK_HTTP1_UNTIL_CLOSE] = "until_close",
    };
    return ID2SYM(rb_intern(names[framing->kind]));
}

static VALUE reason_of(hk_http1_error_t error)
{
    char name[64];
    const char *upper = hk_http1_error_name(error);
    size_t length = 0;
    for (; upper[length] != '\0' && length < sizeof(name); length++) {
        name[length] = upper[length] == '_' ? '_' : (char)(upper[length] | 0x20);
    }
    return ID2SYM(rb_intern2(name, (long)length));
}

/* What Parser::Response takes, in its order. */
static VALUE told(const hk_http1_response_t *response, size_t consumed)
{
    long count = (long)response->header_count;
    VALUE names = rb_ary_new_capa(count);
    VALUE fields = rb_ary_new_capa(count);
    for (long i = 0; i < count; i++) {
        const hk_http1_header_t *header = &response->headers[i];
        VALUE name = interned(header->name.at, header->name.length);
        rb_ary_push(names, name);
        rb_ary_push(fields, rb_obj_freeze(rb_assoc_new(lower_name(name, header->name), value_of(header->value))));
    }
    const hk_http1_framing_t *framing = &response->framing;
    VALUE length = framing->kind == HK_HTTP1_LENGTH ? ULL2NUM(framing->length) : Qnil;
    VALUE parts[] = {
        INT2FIX(response->status),
        interned(response->reason.at, response->reason.length),
        INT2FIX(response->minor),
        rb_obj_freeze(names),
        rb_obj_freeze(fields),
        framing_of(framing),
        length,
        response->keep_alive ? Qtrue : Qfalse,
        response->upgrade ? Qtrue : Qfalse,
        SIZET2NUM(consumed),
    };
    return rb_ary_new_from_values(sizeof(parts) / sizeof(parts[0]), parts);
}

/* _read(bytes, at, method): what Parser::Response takes; a Symbol, why it is refused; nil: the head is not whole.
 * bytes  of the connection; those from `at` on were not taken yet, and begin as at the last call for the same head
 * method of the request that is answered */
static VALUE head_reader_read(VALUE self, VALUE bytes, VALUE from, VALUE method)
{
    head_reader_t *reader = rb_check_typeddata(self, &head_reader_type);
    StringValue(bytes);
    StringValue(method);
    size_t at = NUM2SIZET(from);
    if (at > (size_t)RSTRING_LEN(bytes)) {
        rb_raise(rb_eIndexError, "there are only %ld bytes", RSTRING_LEN(bytes));
    }
    VALUE memory = 0;
    hk_http1_header_t small[ON_THE_STACK];
    size_t size = reader->headers * sizeof(hk_http1_header_t);
    hk_http1_header_t *headers = reader->headers <= ON_THE_STACK ? small : rb_alloc_tmp_buffer(&memory, (long)size);
    hk_http1_response_t response = {.headers = headers, .header_capacity = reader->headers};
    size_t consumed = 0;
    hk_bytes_t input = hk_bytes(RSTRING_PTR(bytes) + at, (size_t)RSTRING_LEN(bytes) - at);
    hk_bytes_t asked = hk_bytes(RSTRING_PTR(method), (size_t)RSTRING_LEN(method));
    hk_status_t status = hk_http1_parse_response(input, &reader->limits, asked, &reader->scan, &response, &consumed);
    VALUE result = status == HK_OK      ? told(&response, consumed)
                   : status == HK_AGAIN ? Qnil
                                        : reason_of(reader->scan.error);
    if (memory != 0) {
        ALLOCV_END(memory);
    }
    RB_GC_GUARD(bytes);
    RB_GC_GUARD(method);
    return result;
}

void rb_hk_init_head(VALUE module)
{
    VALUE parser = rb_define_class_under(rb_define_module_under(module, "HTTP"), "Parser", rb_cObject);
    VALUE reader = rb_define_class_under(parser, "NativeHeadReader", rb_cObject);
    rb_define_alloc_func(reader, head_reader_alloc);
    rb_define_private_method(reader, "_limit", head_reader_limit, 5);
    rb_define_private_method(reader, "_read", head_reader_read, 3);
}
