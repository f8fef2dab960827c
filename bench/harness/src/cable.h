/* cable.h: a client's side of Action Cable's protocol (actioncable-v1-json) over a WebSocket (RFC 6455):
 *
 *     GET, Upgrade ──► 101, {"type":"welcome"} ──► {"command":"subscribe", …} ──► {…, "type":"confirm_subscription"}
 *
 * A command before the welcome may be lost. */
#ifndef BENCH_CABLE_H
#define BENCH_CABLE_H

#include <stddef.h>

enum cable_word { CABLE_NOTHING, CABLE_WELCOME, CABLE_CONFIRMED, CABLE_REFUSED };

enum { CABLE_FRAME_BYTES = 14 }; /* before the text of a frame, at most */

/* The fields of the request by which a connection becomes a WebSocket. */
extern const char cable_upgrade[];

/* The furthest that the server has come, by all that it has sent so far, with a NUL behind it and none in it. */
enum cable_word cable_last_word(const char *text);

/* Writes a frame with this text, masked as a client's are, to `out`, which has room for CABLE_FRAME_BYTES more than the
 * text has. Returns its length. */
size_t cable_frame(char *out, const char *text, size_t length);

#endif
