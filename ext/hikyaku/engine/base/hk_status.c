#include "hk_status.h"

const char *hk_status_name(hk_status_t status)
{
    switch (status) {
#define HK_STATUS_CASE(name, text)                                                                                     \
    case HK_##name:                                                                                                    \
        return "HK_" #name;
        HK_STATUS_LIST(HK_STATUS_CASE)
#undef HK_STATUS_CASE
    }
    return "HK_?";
}

const char *hk_status_text(hk_status_t status)
{
    switch (status) {
#define HK_STATUS_CASE(name, text)                                                                                     \
    case HK_##name:                                                                                                    \
        return text;
        HK_STATUS_LIST(HK_STATUS_CASE)
#undef HK_STATUS_CASE
    }
    return "not a status";
}
