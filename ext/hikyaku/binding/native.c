#include "rb_hk.h"

RUBY_FUNC_EXPORTED void Init_native(void);

void Init_native(void)
{
    VALUE module = rb_define_module("Hikyaku");
    rb_hk_init_fork();
    rb_hk_init_engine(rb_define_class_under(module, "Hub", rb_cObject));
    rb_hk_init_trim(rb_define_class_under(rb_define_module_under(module, "HTTP"), "Proxy", rb_cObject));
    rb_hk_init_broker(module);
    rb_hk_init_reactor(rb_define_class_under(module, "Server", rb_cObject));
    rb_hk_init_crc32c(module);
    rb_hk_init_head(module);
    rb_hk_init_plain(module);
    rb_hk_init_unpack(module);
}
