#include "rb_hk.h"

#include <math.h>
#include <ruby/encoding.h>

/* Reads one value in MessagePack, exactly as Hikyaku::Codec::MessagePack::Reader does, and says nothing of what is wrong: that one is asked then, which
 * reads it once more and knows what and where. Nothing is made of a count or a length before so many bytes are there. */

typedef struct {
    const uint8_t *at, *end;
    long levels; /* of arrays and maps that may still be entered */
    long items;  /* that they may still have, all together */
    bool failed;
} unpack_t;

enum { TIMESTAMP = 0xff };

static VALUE value_of(unpack_t *unpack);

static VALUE fail(unpack_t *unpack)
{
    unpack->failed = true;
    return Qnil;
}

/* Where so many bytes begin; NULL if they are not there. */
static const uint8_t *take(unpack_t *unpack, uint64_t count)
{
    const uint8_t *begin = unpack->at;
    if (unpack->failed || count > (uint64_t)(unpack->end - begin)) {
        fail(unpack);
        return NULL;
    }
    unpack->at = begin + count;
    return begin;
}

static uint64_t number(unpack_t *unpack, unsigned width)
{
    const uint8_t *bytes = take(unpack, width);
    uint64_t read = 0;
    for (unsigned i = 0; bytes != NULL && i < width; i++) {
        read = read << 8 | bytes[i];
    }
    return read;
}

static VALUE integer(unpack_t *unpack, unsigned width)
{
    unsigned shift = 64 - 8 * width;
    return LL2NUM((int64_t)(number(unpack, width) << shift) >> shift);
}

static VALUE real(unpack_t *unpack, unsigned width)
{
    uint64_t bits = number(unpack, width);
    double read;
    if (width == 4) {
        uint32_t narrow_bits = (uint32_t)bits;
        float narrow;
        memcpy(&narrow, &narrow_bits, sizeof narrow);
        read = (double)narrow;
    } else {
        memcpy(&read, &bits, sizeof read);
    }
    return isfinite(read) ? DBL2NUM(read) : fail(unpack);
}

/* Where text begins; NULL if it is none. */
static const char *take_text(unpack_t *unpack, uint64_t length)
{
    const char *bytes = (const char *)take(unpack, length);
    if (bytes != NULL && !hk_bytes_utf8(hk_bytes(bytes, (size_t)length))) {
        fail(unpack);
        return NULL;
    }
    return bytes;
}

static VALUE text(unpack_t *unpack, uint64_t length)
{
    const char *bytes = take_text(unpack, length);
    return bytes == NULL ? Qnil : rb_utf8_str_new(bytes, (long)length);
}

static VALUE binary(unpack_t *unpack, uint64_t length)
{
    const uint8_t *bytes = take(unpack, length);
    return bytes == NULL ? Qnil : rb_str_new((const char *)bytes, (long)length);
}

/* Ruby makes a Time of it, or nil. */
static VALUE extension(unpack_t *unpack, uint64_t length)
{
    if (number(unpack, 1) != TIMESTAMP || length > 12) {
        return fail(unpack);
    }
    VALUE bytes = binary(unpack, length);
    VALUE time = unpack->failed ? Qnil : rb_yield(bytes);
    return NIL_P(time) ? fail(unpack) : time;
}

/* Every entry has a byte at least. */
static bool enter(unpack_t *unpack, uint64_t count)
{
    if (unpack->failed || count > (uint64_t)(unpack->end - unpack->at) || count > (uint64_t)unpack->items ||
        unpack->levels == 0) {
        fail(unpack);
        return false;
    }
    unpack->items -= (long)count;
    unpack->levels--;
    return true;
}

static VALUE array(unpack_t *unpack, uint64_t count)
{
    if (!enter(unpack, count)) {
        return Qnil;
    }
    VALUE array = rb_ary_new_capa((long)count);
    for (; count > 0 && !unpack->failed; count--) {
        rb_ary_push(array, value_of(unpack));
    }
    unpack->levels++;
    return array;
}

/* Text alone, and not twice. The same key of many maps is one object. */
static VALUE key(unpack_t *unpack)
{
    uint64_t first = number(unpack, 1);
    uint64_t length = first & 0x1f;
    if (first >= 0xd9 && first <= 0xdb) {
        length = number(unpack, 1u << (first - 0xd9));
    } else if (first < 0xa0 || first > 0xbf) {
        return fail(unpack);
    }
    const char *bytes = take_text(unpack, length);
    return bytes == NULL ? Qnil : rb_enc_interned_str(bytes, (long)length, rb_utf8_encoding());
}

static VALUE map(unpack_t *unpack, uint64_t count)
{
    if (!enter(unpack, count)) {
        return Qnil;
    }
    VALUE map = rb_hash_new();
    for (size_t size = 1; size <= count && !unpack->failed; size++) {
        VALUE name = key(unpack);
        VALUE value = unpack->failed ? Qnil : value_of(unpack);
        if (!unpack->failed) {
            rb_hash_aset(map, name, value);
            unpack->failed = RHASH_SIZE(map) != size;
        }
    }
    unpack->levels++;
    return map;
}

static VALUE other(unpack_t *unpack, unsigned first)
{
    switch (first) {
    case 0xc0:
        return Qnil;
    case 0xc2:
        return Qfalse;
    case 0xc3:
        return Qtrue;
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return binary(unpack, number(unpack, 1u << (first - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9:
        return extension(unpack, number(unpack, 1u << (first - 0xc7)));
    case 0xca:
    case 0xcb:
        return real(unpack, 4u << (first - 0xca));
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return ULL2NUM(number(unpack, 1u << (first - 0xcc)));
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        return integer(unpack, 1u << (first - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8:
        return extension(unpack, 1u << (first - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb:
        return text(unpack, number(unpack, 1u << (first - 0xd9)));
    case 0xdc:
    case 0xdd:
        return array(unpack, number(unpack, 2u << (first - 0xdc)));
    case 0xde:
    case 0xdf:
        return map(unpack, number(unpack, 2u << (first - 0xde)));
    default:
        return fail(unpack);
    }
}

static VALUE value_of(unpack_t *unpack)
{
    if (unpack->at == unpack->end) {
        return fail(unpack);
    }
    unsigned first = *unpack->at++;
    if (first < 0x80) {
        return INT2FIX(first);
    }
    if (first >= 0xe0) {
        return INT2FIX((int)first - 0x100);
    }
    if (first >= 0xc0) {
        return other(unpack, first);
    }
    if (first >= 0xa0) {
        return text(unpack, first & 0x1f);
    }
    return first >= 0x90 ? array(unpack, first & 0x0f) : map(unpack, first & 0x0f);
}

/* Hikyaku::Codec::Unpacker.unpack(bytes, levels, items) { |bytes of a timestamp| a Time, or nil }: the value; or Unpacker itself, if the bytes are not exactly
 * one. Nobody else may have the string: while the block runs, other threads do. */
static VALUE unpack_bytes(VALUE self, VALUE bytes, VALUE levels, VALUE items)
{
    StringValue(bytes);
    const uint8_t *begin = (const uint8_t *)RSTRING_PTR(bytes);
    unpack_t unpack = {
        .at = begin, .end = begin + RSTRING_LEN(bytes), .levels = NUM2LONG(levels), .items = NUM2LONG(items)};
    VALUE value = value_of(&unpack);
    RB_GC_GUARD(bytes);
    return unpack.failed || unpack.at != unpack.end ? self : value;
}

void rb_hk_init_unpack(VALUE module)
{
    VALUE unpacker = rb_define_module_under(rb_define_module_under(module, "Codec"), "Unpacker");
    rb_define_singleton_method(unpacker, "unpack", unpack_bytes, 3);
}
