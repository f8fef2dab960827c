/* hk_form.h: application/x-www-form-urlencoded, of bodies and of query components alike.
 *
 * URL Living Standard, section "application/x-www-form-urlencoded parsing"; what does not decode to UTF-8 is left as it
 * is, so that the caller can refuse it. The same pairs and bytes as Hikyaku::Web::URLEncodedForm.
 *
 *     while (hk_form_next(&rest, &name, &value)) ...       "a=1&&b" gives (a, 1) and (b, "")
 *
 * Slices are raw: hk_form_decode decodes them into memory of the caller, if hk_form_encoded says that this is needed.
 */
#ifndef HK_FORM_H
#define HK_FORM_H

#include "hk_bytes.h"

#include <stdbool.h>
#include <stddef.h>

/* Takes the next pair from the beginning of `rest`; pairs of no bytes are skipped. False when there is none: nothing
 * but `rest`, which is empty then, is changed. */
bool hk_form_next(hk_bytes_t *rest, hk_bytes_t *name, hk_bytes_t *value);

/* Whether a form has more than so many fields, empty ones included. */
bool hk_form_exceeds(hk_bytes_t form, size_t max_fields);

/* Whether decoding can change the bytes: false means that they can be used as they are. */
bool hk_form_encoded(hk_bytes_t raw);

/* Decodes: '+' is a space, '%' with two hexadecimal digits a byte, everything else itself.
 *
 * decoded  has room for raw.length bytes; may be raw.at.
 *
 * Returns how many bytes were written, at most raw.length. */
size_t hk_form_decode(hk_bytes_t raw, char *decoded);

#endif
