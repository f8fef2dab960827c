/* rb_request.h: a request that Ruby answers. */
#ifndef RB_REQUEST_H
#define RB_REQUEST_H

#include "rb_hk.h"

typedef struct rb_hk_request {
    rb_hk_driver_t *driver;
    hk_ask_t *ask;  /* NULL when it is answered */
    size_t readers; /* who has slices of it: it must not be answered meanwhile */
} rb_hk_request_t;

/* A request that nobody has answered; raises IOError for another. */
rb_hk_request_t *rb_hk_request_of(VALUE request);

#endif
