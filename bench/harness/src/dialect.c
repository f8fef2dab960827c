#include "dialect.h"

#include <string.h>

static const struct dialect *const all[] = {&dialect_hikyaku, &dialect_beanstalkd, &dialect_redis, &dialect_nats,
                                            &dialect_amqp};

const struct dialect *dialect_named(const char *name)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->name, name) == 0) return all[i];
    return NULL;
}
