// Types of hikyaku-msgpack.js, which brings hikyaku.js along.
import {HikyakuEvent, ParserHandlers, State, StateDetail} from "./hikyaku.js";

/** Bytes are not what they should be. */
export class Malformed extends Error {}

/** A moment to the nanosecond. */
export class Timestamp extends Date {
  constructor(seconds: number | bigint, nanoseconds?: number);
  /** Of the second: 0 to 999,999,999. */
  nanoseconds: number;
}

/** What is read: integers beyond 2 ** 53 - 1 are BigInts, binary data is a Uint8Array, a moment a Timestamp. */
export type Value = null | boolean | number | bigint | string | Uint8Array | Timestamp | Value[] | {[key: string]: Value};

/**
 * The value that bytes are.
 * @param options.depth arrays and maps in one another; 100
 * @param options.items elements of arrays and entries of maps, all together; 250,000
 * @throws Malformed
 */
export function unpack(bytes: Uint8Array | ArrayBuffer, options?: {depth?: number; items?: number}): Value;

/**
 * The bytes of a value. As with JSON undefined is left out of objects, and nil elsewhere, and `toJSON` is asked.
 * @throws RangeError NaN, Infinity, a BigInt beyond 64 bits, or a value that contains itself
 * @throws TypeError a function or a symbol
 */
export function pack(value: unknown): Uint8Array;

/** Parses a MessagePack stream (docs/streams.md). */
export class MessagePackParser {
  /** @param options.limit bytes of one value; a larger one is left out */
  constructor(handlers: ParserHandlers, options?: {limit?: number});
  /** @throws Malformed */
  push(bytes: Uint8Array): void;
}

export interface MessagePackSourceOptions {
  onmessage?(event: HikyakuEvent): void;
  /** `caught-up` only where the hub says so. */
  onstate?(state: State, detail: StateDetail): void;
  /** The event after which to begin. */
  lastEventId?: string | null;
  /** An access token, or what gives one: it is asked for each connection. */
  token?: string | null | (() => string | Promise<string>);
  /** Send cookies to a hub of another origin. */
  withCredentials?: boolean;
  /** Closes it. */
  signal?: AbortSignal | null;
}

/** What EventSource is, for MessagePack: one connection of this page's own, made again by itself from the last event. */
export class MessagePackSource {
  constructor(url: string | URL, options?: MessagePackSourceOptions);
  readonly url: string;
  readonly state: State | null;
  /** It was closed, or the hub has refused. */
  readonly closed: boolean;
  /** From here the stream can be taken up again. */
  readonly lastEventId: string | null;
  close(): void;
}
