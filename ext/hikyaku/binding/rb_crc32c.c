#include "rb_hk.h"

#include "hk_crc32c.h"

/* Asked for once: in a virtual machine to ask the processor can cost more than the checksum of a record. */
static hk_crc32c_t *crc32c;

/* Hikyaku::Log::CRC32C.native(crc, bytes): the checksum of both, one behind the other. */
static VALUE native(VALUE self, VALUE before, VALUE bytes)
{
    StringValue(bytes);
    uint32_t crc = crc32c(NUM2UINT(before), RSTRING_PTR(bytes), (size_t)RSTRING_LEN(bytes));
    RB_GC_GUARD(bytes);
    return UINT2NUM(crc);
}

void rb_hk_init_crc32c(VALUE module)
{
    crc32c = hk_crc32c_best();
    VALUE log = rb_define_module_under(module, "Log");
    rb_define_singleton_method(rb_define_module_under(log, "CRC32C"), "native", native, 2);
}
