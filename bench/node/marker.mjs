// The 27 bytes that each message carries: harness/src/marker.h. The clock is the one that the load generator in C has.
const MARKER = /@T([0-9a-f]{16})([0-9a-f]{8})@/g
export const MARKER_BYTES = 27

const hex = (number, digits) => number.toString(16).padStart(digits, "0")

export const now = () => Number(process.hrtime.bigint()) // nanoseconds; exact for the first hundred days of a machine

export const write = (message, size) => `@T${hex(now(), 16)}${hex(message, 8)}@`.padEnd(size, "x")

export function* read(text) {
  for (const [, sent, message] of text.matchAll(MARKER)) yield { sent: parseInt(sent, 16), message: parseInt(message, 16) }
}
