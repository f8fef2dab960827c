/* hk_json.h: strings as JSON, with the bytes that Ruby's JSON.generate gives.
 *
 * Quotation mark, backslash and control characters below U+0020 are escaped, everything else is left as it is.
 */
#ifndef HK_JSON_H
#define HK_JSON_H

#include "hk_buf.h"
#include "hk_bytes.h"
#include "hk_status.h"

/* Appends a string with its quotation marks. Bytes that are not UTF-8 are replaced as in hk_json_scrub. HK_OK or
 * HK_NO_MEMORY (a part may have been appended). */
hk_status_t hk_json_string(hk_buf_t *out, hk_bytes_t text);

/* Appends text with U+FFFD for what is not UTF-8: one for each longest beginning of a character, one for each other
 * byte, as Ruby's String#scrub. HK_OK or HK_NO_MEMORY (a part may have been appended). */
hk_status_t hk_json_scrub(hk_buf_t *out, hk_bytes_t text);

#endif
