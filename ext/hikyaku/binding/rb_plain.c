#include "rb_hk.h"

#include <math.h>
#include <ruby/encoding.h>

/* What Hikyaku::Codec::Plain does before a packer that believes all it is given may have an object: goes through it, and asks Ruby about what is not
 * plain. Most often there is little of that or nothing. What holds something that Ruby made anew is copied, everything else stays the same object. */

typedef struct {
    long levels;  /* of containers that may still be entered */
    bool compact; /* for MessagePack: it has moments, and no integers beyond 64 bits */
    bool asks;    /* Ruby's block; otherwise it is only seen whether there is anything to ask */
    bool failed;  /* there was */
} walk_t;

typedef struct {
    walk_t *walk;
    VALUE source;
    VALUE copy; /* the source, until a value has changed */
    bool symbols;
    bool strings; /* kinds of keys so far */
    bool odd;     /* a key that Ruby must see */
} hash_walk_t;

static ID compare_by_identity_p;

#ifndef RSTRING_FSTR /* a Ruby that does not tell: every hash is asked */
#define RSTRING_FSTR 0
#endif

/* Indexes of encodings; Ruby's functions that tell them cost more than the rest of a look at a string. */
static int utf8, us_ascii;

static VALUE plain_of(VALUE value, walk_t *walk);

static VALUE ask(VALUE value, walk_t *walk)
{
    if (!walk->asks) {
        walk->failed = true;
        return value;
    }
    return rb_yield_values(2, value, LONG2NUM(walk->levels));
}

static bool is_exactly(VALUE value, VALUE class)
{
    return RBASIC_CLASS(value) == class;
}

static bool is_text(VALUE string)
{
    int encoding = RB_ENCODING_GET_INLINED(string);
    if (encoding != utf8 && encoding != us_ascii) {
        return false;
    }
    int range = RB_ENC_CODERANGE(string);
    if (range == RUBY_ENC_CODERANGE_UNKNOWN) {
        range = rb_enc_str_coderange(string);
    }
    return range != RUBY_ENC_CODERANGE_BROKEN;
}

/* A hash that compares objects may have two keys that are the same text. Of what Ruby keeps once for all, as it does of nearly all keys, there are no two. */
static bool may_be_twice(VALUE key, VALUE hash)
{
    return !RB_FL_TEST_RAW(key, RSTRING_FSTR) && RTEST(rb_funcallv(hash, compare_by_identity_p, 0, NULL));
}

/* Two keys of different kinds may be the same text. */
static bool is_key(VALUE key, hash_walk_t *hash)
{
    if (RB_TYPE_P(key, T_STRING)) {
        hash->strings = true;
        return !hash->symbols && is_exactly(key, rb_cString) && is_text(key) && !may_be_twice(key, hash->source);
    }
    hash->symbols = true;
    return !hash->strings && RB_SYMBOL_P(key) && is_text(rb_sym2str(key));
}

static int pair(VALUE key, VALUE value, VALUE argument)
{
    hash_walk_t *hash = (hash_walk_t *)argument;
    if (!is_key(key, hash)) {
        hash->odd = true;
        return ST_STOP;
    }
    VALUE plain = plain_of(value, hash->walk);
    if (plain != value) {
        if (hash->copy == hash->source) {
            hash->copy = rb_hash_dup(hash->source);
        }
        rb_hash_aset(hash->copy, key, plain);
    }
    return hash->walk->failed ? ST_STOP : ST_CONTINUE;
}

static VALUE plain_of_hash(VALUE source, walk_t *walk)
{
    if (!is_exactly(source, rb_cHash) || walk->levels == 0) {
        return ask(source, walk);
    }
    hash_walk_t hash = {.walk = walk, .source = source, .copy = source};
    walk->levels--;
    rb_hash_foreach(source, pair, (VALUE)&hash);
    walk->levels++;
    return hash.odd ? ask(source, walk) : hash.copy;
}

static VALUE plain_of_array(VALUE source, walk_t *walk)
{
    if (!is_exactly(source, rb_cArray) || walk->levels == 0) {
        return ask(source, walk);
    }
    VALUE copy = source;
    walk->levels--;
    for (long i = 0; i < RARRAY_LEN(source) && !walk->failed; i++) {
        VALUE value = RARRAY_AREF(source, i);
        VALUE plain = plain_of(value, walk);
        if (plain != value) {
            if (copy == source) {
                copy = rb_ary_dup(source);
            }
            rb_ary_store(copy, i, plain);
        }
    }
    walk->levels++;
    return copy;
}

/* From -2^63 to 2^64 - 1. */
static bool fits(VALUE bignum)
{
    int zero_bits;
    size_t size = rb_absint_size(bignum, &zero_bits);
    if (size < 8 || (size == 8 && (zero_bits > 0 || RBIGNUM_POSITIVE_P(bignum)))) {
        return true;
    }
    return size == 8 && rb_absint_singlebit_p(bignum);
}

static VALUE plain_of(VALUE value, walk_t *walk)
{
    bool plain;
    switch (rb_type(value)) {
    case T_NIL:
    case T_TRUE:
    case T_FALSE:
    case T_FIXNUM:
        return value;
    case T_HASH:
        return plain_of_hash(value, walk);
    case T_ARRAY:
        return plain_of_array(value, walk);
    case T_STRING:
        plain = is_exactly(value, rb_cString) && is_text(value);
        break;
    case T_SYMBOL:
        plain = is_text(rb_sym2str(value));
        break;
    case T_FLOAT:
        plain = isfinite(RFLOAT_VALUE(value));
        break;
    case T_BIGNUM:
        plain = !walk->compact || fits(value);
        break;
    case T_DATA:
        plain = walk->compact && is_exactly(value, rb_cTime);
        break;
    default:
        plain = false;
    }
    return plain ? value : ask(value, walk);
}

/* Hikyaku::Codec::Plain.native(object, levels, compact) { |value, levels| a plain one } */
static VALUE native(VALUE self, VALUE object, VALUE levels, VALUE compact)
{
    walk_t walk = {.levels = NUM2LONG(levels), .compact = RTEST(compact), .asks = true};
    return plain_of(object, &walk);
}

/* Hikyaku::Codec::Plain.native?(object, levels, compact): whether nothing would be asked */
static VALUE is_native(VALUE self, VALUE object, VALUE levels, VALUE compact)
{
    walk_t walk = {.levels = NUM2LONG(levels), .compact = RTEST(compact)};
    plain_of(object, &walk);
    return walk.failed ? Qfalse : Qtrue;
}

void rb_hk_init_plain(VALUE module)
{
    utf8 = rb_utf8_encindex();
    us_ascii = rb_usascii_encindex();
    compare_by_identity_p = rb_intern("compare_by_identity?");
    VALUE plain = rb_define_module_under(rb_define_module_under(module, "Codec"), "Plain");
    rb_define_singleton_method(plain, "native", native, 3);
    rb_define_singleton_method(plain, "native?", is_native, 3);
}
