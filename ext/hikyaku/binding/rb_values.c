#include "rb_hk.h"

#include <math.h>

hk_bytes_t rb_hk_bytes(VALUE *string)
{
    if (NIL_P(*string)) {
        return hk_bytes(NULL, 0);
    }
    StringValue(*string);
    *string = rb_str_new_frozen(*string);
    return hk_bytes(RSTRING_PTR(*string), (size_t)RSTRING_LEN(*string));
}

int64_t rb_hk_ns(VALUE seconds, int64_t absent)
{
    if (NIL_P(seconds)) {
        return absent;
    }
    double ns = NUM2DBL(seconds) * 1e9;
    if (isnan(ns)) {
        rb_hk_fail(rb_eArgError, "seconds must be a number");
    }
    if (ns >= (double)(HK_NEVER / 2)) {
        return absent == HK_NEVER ? HK_NEVER : HK_NEVER / 2;
    }
    return ns <= (double)(-HK_NEVER / 2) ? -HK_NEVER / 2 : (int64_t)llround(ns);
}

VALUE rb_hk_seconds(int64_t ns)
{
    return DBL2NUM((double)ns / 1e9);
}

VALUE rb_hk_string(hk_bytes_t bytes)
{
    return rb_str_new(bytes.at, (long)bytes.length);
}

VALUE rb_hk_text_or_nil(hk_bytes_t text)
{
    return text.length == 0 ? Qnil : rb_utf8_str_new(text.at, (long)text.length);
}

static VALUE release(VALUE buf)
{
    hk_buf_release((hk_buf_t *)buf);
    return Qnil;
}

VALUE rb_hk_releasing(hk_buf_t *buf, VALUE (*make)(VALUE argument), VALUE argument)
{
    return rb_ensure(make, argument, release, (VALUE)buf);
}

static VALUE make_string(VALUE buf)
{
    return rb_hk_string(hk_buf_bytes((hk_buf_t *)buf));
}

VALUE rb_hk_string_of(hk_buf_t *buf)
{
    return rb_hk_releasing(buf, make_string, (VALUE)buf);
}

hk_url_t rb_hk_url(VALUE array, VALUE kept[HK_URL_PARTS + 1])
{
    Check_Type(array, T_ARRAY);
    hk_url_t url;
    for (int i = 0; i <= HK_URL_PARTS; i++) {
        kept[i] = rb_ary_entry(array, i);
        hk_bytes_t *part = i < HK_URL_PARTS ? &url.parts[i] : &url.origin;
        *part = rb_hk_bytes(&kept[i]);
    }
    return url;
}

void rb_hk_copy_exactly(VALUE string, const char *name, void *bytes, size_t size)
{
    hk_bytes_t value = rb_hk_bytes(&string);
    if (value.length != size) {
        rb_raise(rb_eArgError, "%s must have %" PRIuSIZE " bytes", name, size);
    }
    memcpy(bytes, value.at, size);
    RB_GC_GUARD(string);
}

VALUE rb_hk_option(VALUE hash, const char *name)
{
    Check_Type(hash, T_HASH);
    return rb_hash_lookup(hash, ID2SYM(rb_intern(name)));
}

size_t rb_hk_size_option(VALUE hash, const char *name)
{
    VALUE value = rb_hk_option(hash, name);
    return NIL_P(value) ? 0 : NUM2SIZET(value);
}
