#include "rb_hk.h"

#include <errno.h>

static VALUE class_for(hk_status_t status)
{
    switch (status) {
    case HK_NO_MEMORY:
        return rb_eNoMemError;
    case HK_INVALID:
    case HK_TOO_LARGE:
        return rb_eArgError;
    case HK_CLOSED:
        return rb_eIOError;
    default:
        return rb_eRuntimeError;
    }
}

void rb_hk_check(hk_status_t status, const char *doing)
{
    if (status == HK_OK) {
        return;
    }
    if (status == HK_SYSTEM && errno != 0) {
        rb_sys_fail(doing);
    }
    rb_raise(class_for(status), "%s: %s", doing, hk_status_text(status));
}

void rb_hk_fail(VALUE error_class, const char *message)
{
    rb_raise(error_class, "%s", message);
}
