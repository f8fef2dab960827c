// MessagePack in the browser: values, and streams of a hub that has them (docs/streams.md).
//
//     import {MessagePackSource, pack, unpack} from "hikyaku-msgpack";
//
//     new MessagePackSource("/.well-known/mercure?match=/books/1", {onmessage: ({id, type, data}) => show(data)});
//     const books = unpack(await (await fetch("/books.msgpack")).arrayBuffer());
//
// What is what:
//
//     integers          numbers; a BigInt where a number would not hold it exactly (beyond 2 ** 53 - 1). Both are written as integers, to 64 bits
//     floats            numbers. JavaScript does not know 1.0 from 1: a number that is whole is written as an integer, and -0 as a float
//     NaN, Infinity     refused, when they are written and when they are read: no format for others has them
//     binary            Uint8Array
//     timestamps        Timestamp: a Date that also knows its nanoseconds. Any Date is written as one
//     text              strings. One with half a surrogate pair is no text, and refused
//     maps              objects with text for keys. Other keys, and a key that comes twice, are refused. A Map is written as one, and a Set as an array
//     other extensions  refused
//
// MessagePackParser does for MessagePack what EventParser does for event streams, and tells the same.

import {EventParser, LIMITS, pauseAfter} from "hikyaku";

const SECOND = 1_000;
const TIMES = Object.freeze({
  answer: 30 * SECOND, // in which the hub answers
  silence: 60 * SECOND, // without a byte: the connection is dead; hubs say nil earlier
  leastRetry: SECOND / 10, // whatever the hub says
  longestRetry: 3_600 * SECOND,
});
const DEPTH = 100; // of arrays and maps in one another
const ITEMS = 250_000; // elements of arrays and entries of maps, all together

// Half a pair: UTF-8 has nothing for it.
const LONE = /\p{Surrogate}/u;

const TIMESTAMP = -1;
const BILLION = 1_000_000_000;

// Bytes are not what they should be.
export class Malformed extends Error {
  name = "Malformed";
}

// A moment to the nanosecond: what a Date has no place for are the `nanoseconds` of the second, 0 to 999,999,999.
export class Timestamp extends Date {
  nanoseconds;

  constructor(seconds, nanoseconds = 0) {
    super(Number(seconds) * SECOND + Math.floor(nanoseconds / 1_000_000));
    this.nanoseconds = nanoseconds;
  }
}

// ---- heads -----------------------------------------------------------------------------------------------------------

// What a first byte says. `digits`: bytes of the count or length behind it; `number`: that itself, where there are none. `values`: how many
// values follow for each of the count; 0 where it is a length. `besides`: bytes that follow whatever the length.
const HEADS = Array.from({length: 256}, (_, first) => {
  const sizes = {0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8, 0xd4: 2, 0xd5: 3, 0xd6: 5, 0xd7: 9, 0xd8: 17};
  const known = (number, values = 0) => ({digits: 0, number, values, besides: 0});
  const told = (digits, values = 0, besides = 0) => ({digits, number: 0, values, besides});
  if (first === 0xc1) return null;
  if (first >= 0x80 && first < 0x90) return known(first & 15, 2);
  if (first >= 0x90 && first < 0xa0) return known(first & 15, 1);
  if (first >= 0xa0 && first < 0xc0) return known(first & 31);
  if (first >= 0xc4 && first <= 0xc6) return told(1 << (first - 0xc4));
  if (first >= 0xc7 && first <= 0xc9) return told(1 << (first - 0xc7), 0, 1);
  if (first >= 0xd9 && first <= 0xdb) return told(1 << (first - 0xd9));
  if (first === 0xdc || first === 0xdd) return told(2 << (first - 0xdc), 1);
  if (first === 0xde || first === 0xdf) return told(2 << (first - 0xde), 2);
  return known(sizes[first] ?? 0);
});

const viewOf = (bytes) => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
const isText = (first) => (first >= 0xa0 && first < 0xc0) || (first >= 0xd9 && first <= 0xdb);
const isArray = (first) => (first >= 0x90 && first < 0xa0) || first === 0xdc || first === 0xdd;

// The head at a place: where it ends, how many bytes belong to it, and how many values. null: it is not there as a whole.
function headAt(view, at, size) {
  if (at >= size) return null;
  const head = HEADS[view.getUint8(at)];
  if (!head) throw new Malformed(`0xC1 begins no value, at byte ${at}`);
  const {digits, values, besides} = head;
  const end = at + 1 + digits;
  if (end > size) return null;
  const number = digits === 0 ? head.number : digits === 1 ? view.getUint8(at + 1) : digits === 2 ? view.getUint16(at + 1) : view.getUint32(at + 1);
  return {end, length: (values === 0 ? number : 0) + besides, values: values * number};
}

// ---- values ----------------------------------------------------------------------------------------------------------

// Reads one value, exactly. Nothing is made of a count or a length before so many bytes are there.
class Reader {
  #bytes;
  #view;
  #at = 0;
  #items;
  #text = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});

  constructor(bytes, items) {
    this.#bytes = bytes;
    this.#view = viewOf(bytes);
    this.#items = items;
  }

  whole(depth) {
    const value = this.#value(depth);
    if (this.#at < this.#bytes.length) this.#refuse("there is more behind the value", this.#at);
    return value;
  }

  #refuse(what, at) {
    throw new Malformed(`MessagePack: ${what} at byte ${at}`);
  }

  #value(depth) {
    const at = this.#at;
    const size = this.#bytes.length;
    const head = headAt(this.#view, at, size) ?? this.#refuse("a value is expected, and there is not so much,", at);
    const {end, length, values} = head;
    if (length + values > size - end) this.#refuse(`${length + values} bytes are expected, and there are only ${size - end} more,`, end);
    const first = this.#bytes[at];
    if ((this.#items -= isArray(first) ? values : values / 2) < 0) this.#refuse("there are more items than are read", at);
    this.#at = end + length;
    if (first < 0x80) return first;
    if (first >= 0xe0) return first - 256;
    if (isText(first)) return this.#decoded(end, length);
    if (isArray(first)) return this.#array(values, depth, at);
    if (first < 0x90 || first >= 0xde) return this.#map(values / 2, depth, at);
    return this.#scalar(first, end, length);
  }

  #scalar(first, at, length) {
    const view = this.#view;
    switch (first) {
      case 0xc0: return null;
      case 0xc2: return false;
      case 0xc3: return true;
      case 0xca: return this.#finite(view.getFloat32(at), at);
      case 0xcb: return this.#finite(view.getFloat64(at), at);
      case 0xcc: return view.getUint8(at);
      case 0xcd: return view.getUint16(at);
      case 0xce: return view.getUint32(at);
      case 0xcf: return exact(view.getBigUint64(at));
      case 0xd0: return view.getInt8(at);
      case 0xd1: return view.getInt16(at);
      case 0xd2: return view.getInt32(at);
      case 0xd3: return exact(view.getBigInt64(at));
      case 0xc4: case 0xc5: case 0xc6: return this.#bytes.slice(at, at + length);
      default: return this.#extension(at, length - 1);
    }
  }

  #finite(number, at) {
    return Number.isFinite(number) ? number : this.#refuse("there is a number that is none or endless", at - 1);
  }

  #decoded(at, length) {
    try {
      return this.#text.decode(this.#bytes.subarray(at, at + length));
    } catch {
      return this.#refuse("there is text that is no UTF-8", at);
    }
  }

  #array(count, depth, at) {
    if (depth === 0) this.#refuse("it is nested too deep", at);
    const array = [];
    for (; count > 0; count -= 1) array.push(this.#value(depth - 1));
    return array;
  }

  #map(count, depth, at) {
    if (depth === 0) this.#refuse("it is nested too deep", at);
    const map = {};
    for (; count > 0; count -= 1) {
      const place = this.#at;
      const first = this.#bytes[place];
      if (!isText(first)) this.#refuse("there is a key that is no text", place);
      const key = this.#value(0);
      if (Object.hasOwn(map, key)) this.#refuse("there is a key for the second time", place);
      // An assignment to __proto__ would be none.
      Object.defineProperty(map, key, {value: this.#value(depth - 1), writable: true, enumerable: true, configurable: true});
    }
    return map;
  }

  #extension(at, length) {
    const type = this.#view.getInt8(at);
    if (type !== TIMESTAMP) this.#refuse(`there is the extension type ${type}, which is not known,`, at);
    const moment = this.#moment(at + 1, length);
    return moment && moment.nanoseconds < BILLION && !Number.isNaN(moment.getTime()) ? moment : this.#refuse("there is a timestamp that is none", at);
  }

  #moment(at, length) {
    const view = this.#view;
    if (length === 4) return new Timestamp(view.getUint32(at));
    if (length === 12) return new Timestamp(view.getBigInt64(at + 4), view.getUint32(at));
    if (length !== 8) return null;
    const both = view.getBigUint64(at);
    return new Timestamp(both & 0x3ffffffffn, Number(both >> 34n));
  }
}

const exact = (integer) => (Number.isSafeInteger(Number(integer)) ? Number(integer) : integer);

class Writer {
  #bytes = new Uint8Array(256);
  #view = viewOf(this.#bytes);
  #size = 0;
  #text = new TextEncoder();

  get bytes() {
    return this.#bytes.slice(0, this.#size);
  }

  // Makes room, and returns where it is.
  #room(count) {
    const at = this.#size;
    this.#size += count;
    if (this.#size > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(this.#size, 2 * this.#bytes.length));
      larger.set(this.#bytes);
      this.#bytes = larger;
      this.#view = viewOf(larger);
    }
    return at;
  }

  #byte(byte) {
    const at = this.#room(1);
    this.#bytes[at] = byte;
  }

  #raw(bytes) {
    const at = this.#room(bytes.length);
    this.#bytes.set(bytes, at);
  }

  // A head of up to 8, 16 or 32 bits for a length or a count; `firsts` are their first bytes, 0 where there is none.
  #head(number, [short, medium, long]) {
    if (short && number < 0x100) return this.#raw([short, number]);
    const at = this.#room(number < 0x10000 ? 3 : 5);
    this.#bytes[at] = number < 0x10000 ? medium : long;
    if (number < 0x10000) this.#view.setUint16(at + 1, number);
    else if (number < 0x100000000) this.#view.setUint32(at + 1, number);
    else throw new RangeError("MessagePack: something is longer than 4 GiB");
  }

  value(value, depth) {
    if (depth < 0) throw new RangeError("MessagePack: it is nested too deep, or contains itself");
    switch (typeof value) {
      case "undefined": return this.#byte(0xc0);
      case "boolean": return this.#byte(value ? 0xc3 : 0xc2);
      case "number": return this.#number(value);
      case "bigint": return this.#integer(value);
      case "string": return this.#string(value);
      case "object": return this.#object(value, depth);
      default: throw new TypeError(`MessagePack has no ${typeof value}`);
    }
  }

  #number(number) {
    if (!Number.isFinite(number)) throw new RangeError(`MessagePack: ${number} is no number for others: give null, or text`);
    if (Number.isSafeInteger(number) && !Object.is(number, -0)) return this.#integer(number);
    const at = this.#room(9);
    this.#bytes[at] = 0xcb;
    this.#view.setFloat64(at + 1, number);
  }

  // A number or a BigInt, in as few bytes as can be.
  #integer(integer) {
    const small = Number(integer);
    if (small >= -32 && small < 0x80) return this.#byte(small & 0xff);
    const wanted = small < 0
      ? [[0xd0, 1, -0x80], [0xd1, 2, -0x8000], [0xd2, 4, -0x80000000]].find(([, , least]) => small >= least)
      : [[0xcc, 1, 0x100], [0xcd, 2, 0x10000], [0xce, 4, 0x100000000]].find(([, , limit]) => small < limit);
    if (!wanted) return this.#long(BigInt(integer));
    const [first, size] = wanted;
    const at = this.#room(1 + size);
    this.#bytes[at] = first;
    if (size === 1) this.#view.setUint8(at + 1, small);
    else if (size === 2) this.#view.setUint16(at + 1, small);
    else this.#view.setUint32(at + 1, small);
  }

  #long(integer) {
    if (integer < -(2n ** 63n) || integer >= 2n ** 64n) throw new RangeError("MessagePack has integers of 64 bits at most: give larger ones as text");
    const at = this.#room(9);
    this.#bytes[at] = integer < 0n ? 0xd3 : 0xcf;
    this.#view.setBigUint64(at + 1, BigInt.asUintN(64, integer));
  }

  #string(text) {
    if (LONE.test(text)) throw new TypeError("MessagePack: there is text with half a surrogate pair, which is no UTF-8: see String.prototype.toWellFormed");
    const bytes = this.#text.encode(text);
    if (bytes.length < 32) this.#byte(0xa0 | bytes.length);
    else this.#head(bytes.length, [0xd9, 0xda, 0xdb]);
    this.#raw(bytes);
  }

  #object(object, depth) {
    if (object === null) return this.#byte(0xc0);
    if (object instanceof Date) return this.#moment(object);
    if (object instanceof ArrayBuffer || ArrayBuffer.isView(object)) return this.#binary(object);
    if (typeof object.toJSON === "function") return this.value(object.toJSON(), depth - 1);
    if (Array.isArray(object)) return this.#array(object, depth);
    if (object instanceof Set) return this.#array([...object], depth);
    this.#map(object instanceof Map ? [...object] : Object.entries(object), depth);
  }

  #array(array, depth) {
    if (array.length < 16) this.#byte(0x90 | array.length);
    else this.#head(array.length, [0, 0xdc, 0xdd]);
    for (const value of array) this.value(value, depth - 1);
  }

  #map(all, depth) {
    const entries = all.filter(([, value]) => value !== undefined);
    if (entries.length < 16) this.#byte(0x80 | entries.length);
    else this.#head(entries.length, [0, 0xde, 0xdf]);
    for (const [key, value] of entries) {
      if (typeof key !== "string") throw new TypeError(`MessagePack: a Map has a key that is no text, but ${key === null ? "null" : `a ${typeof key}`}`);
      this.#string(key);
      this.value(value, depth - 1);
    }
  }

  #binary(object) {
    const bytes = object instanceof ArrayBuffer ? new Uint8Array(object) : new Uint8Array(object.buffer, object.byteOffset, object.byteLength);
    this.#head(bytes.length, [0xc4, 0xc5, 0xc6]);
    this.#raw(bytes);
  }

  // Of as few bytes as can be. A Timestamp that was set to another moment is a Date like any other.
  #moment(date) {
    const time = date.getTime();
    if (Number.isNaN(time)) return this.#byte(0xc0);
    const seconds = BigInt(Math.floor(time / SECOND));
    const millisecond = time - Number(seconds) * SECOND;
    const nanoseconds = Math.floor(date.nanoseconds / 1_000_000) === millisecond ? date.nanoseconds : millisecond * 1_000_000;
    if (seconds >= 0n && seconds < 2n ** 34n) {
      const both = (BigInt(nanoseconds) << 34n) | seconds;
      const at = this.#room(both < 2n ** 32n ? 6 : 10);
      this.#bytes.set([both < 2n ** 32n ? 0xd6 : 0xd7, 0xff], at);
      if (both < 2n ** 32n) this.#view.setUint32(at + 2, Number(both));
      else this.#view.setBigUint64(at + 2, both);
    } else {
      const at = this.#room(15);
      this.#bytes.set([0xc7, 12, 0xff], at);
      this.#view.setUint32(at + 3, nanoseconds);
      this.#view.setBigInt64(at + 7, seconds);
    }
  }
}

// The value that bytes are. Throws Malformed.
export function unpack(bytes, {depth = DEPTH, items = ITEMS} = {}) {
  // Not a Buffer of Node.js, of which parts are no copies.
  const own = ArrayBuffer.isView(bytes) ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength) : new Uint8Array(bytes);
  return new Reader(own, items).whole(depth);
}

// The bytes of a value, as a Uint8Array. As with JSON: `undefined` is left out of objects and nil elsewhere, and `toJSON` is asked.
export function pack(value) {
  const writer = new Writer();
  writer.value(value, DEPTH);
  return writer.bytes;
}

// ---- streams ---------------------------------------------------------------------------------------------------------

// Cuts a row of values apart as its bytes arrive, and looks at nothing but heads. What is longer than the limit is left out, and not kept.
//
// onvalue(bytes)   which hold until it returns         onoversize(bytes)   what of one is before that which is too long
class Values {
  #handlers;
  #limit;
  #bytes = new Uint8Array(1_024);
  #view = viewOf(this.#bytes);
  #size = 0;
  #start; // of the value
  #at = 0; // where the next head is, or will be
  #open; // values that are to come, level by level
  #due; // in all
  #skips; // it is too long

  constructor(limit, handlers) {
    this.#limit = limit;
    this.#handlers = handlers;
    this.#begin();
  }

  push(piece) {
    this.#append(piece);
    for (;;) {
      while (this.#open.length > 0 && this.#step());
      if (this.#open.length > 0 || this.#at > this.#size) break;
      if (!this.#skips) this.#handlers.onvalue(this.#bytes.subarray(this.#start, this.#at));
      this.#begin();
    }
    this.#forget(this.#skips ? Math.min(this.#at, this.#size) : this.#start);
  }

  #begin() {
    this.#start = this.#at;
    this.#open = [1];
    this.#due = 1;
    this.#skips = false;
  }

  #append(piece) {
    if (this.#size + piece.length > this.#bytes.length) {
      const larger = new Uint8Array(Math.max(2 * this.#bytes.length, this.#size + piece.length));
      larger.set(this.#bytes.subarray(0, this.#size));
      this.#bytes = larger;
      this.#view = viewOf(larger);
    }
    this.#bytes.set(piece, this.#size);
    this.#size += piece.length;
  }

  #forget(count) {
    if (count === 0) return;
    this.#bytes.copyWithin(0, count, this.#size);
    this.#size -= count;
    this.#at -= count;
    this.#start -= Math.min(count, this.#start);
  }

  #step() {
    const head = headAt(this.#view, this.#at, this.#size);
    if (!head) return false;
    const before = this.#at;
    this.#at = head.end + head.length;
    this.#open[this.#open.length - 1] -= 1;
    this.#due += head.values - 1;
    if (!this.#skips && this.#at - this.#start + this.#due > this.#limit) {
      this.#skips = true;
      this.#handlers.onoversize(this.#bytes.subarray(this.#start, before));
    }
    if (head.values > 0) this.#open.push(head.values);
    if (this.#open.length > DEPTH) throw new Malformed("it is nested too deep");
    while (this.#open.at(-1) === 0) this.#open.pop();
    return true;
  }
}

// Parses a MessagePack stream as its bytes arrive, in pieces cut anywhere. The handlers are those of EventParser, and what is larger than the limit
// is left out as there; what is no MessagePack, or an event that is none, throws Malformed. What is not known is left out.
export class MessagePackParser {
  #handlers;
  #values;
  #text = new TextDecoder("utf-8", {fatal: true, ignoreBOM: true});
  #lastEventId = "";

  constructor(handlers, {limit = LIMITS.eventLength} = {}) {
    this.#handlers = handlers;
    this.#values = new Values(limit, {onvalue: (bytes) => this.#read(bytes), onoversize: (bytes) => this.#leaveOut(bytes)});
  }

  push(bytes) {
    this.#values.push(bytes);
  }

  #read(bytes) {
    const first = bytes[0];
    if (first === 0xc0) this.#handlers.oncomment?.("");
    else if (first === 0xc3) this.#handlers.oncomment?.("caught up");
    else if (first < 0x80 || (first >= 0xcc && first <= 0xcf)) this.#handlers.onretry?.(Number(unpack(bytes)));
    else if (isArray(first)) this.#event(bytes);
  }

  #event(bytes) {
    const view = viewOf(bytes);
    const {end, values} = headAt(view, 0, bytes.length);
    if (values < 3) throw new Malformed(`an event has ${values} parts, and not id, type and data`);
    const id = this.#part(bytes, view, end, "id");
    const type = this.#part(bytes, view, id.next, "type");
    const {text: data} = this.#part(bytes, view, type.next, "data");
    if (data === null) throw new Malformed("an event has no data");
    const identified = this.#mark(id.text);
    this.#handlers.onevent?.({id: this.#lastEventId, type: type.text || "message", data, identified});
  }

  // An id that a header cannot carry is none.
  #mark(id) {
    if (id === null || /[\0\r\n]/.test(id)) return false;
    this.#lastEventId = id;
    return true;
  }

  // Text or nil, and where the next part is.
  #part(bytes, view, at, what) {
    const {end, length} = headAt(view, at, bytes.length);
    const first = bytes[at];
    if (first !== 0xc0 && !isText(first)) throw new Malformed(`the ${what} of an event is no text`);
    return {text: first === 0xc0 ? null : this.#decoded(bytes.subarray(end, end + length), what), next: end + length};
  }

  #decoded(bytes, what) {
    try {
      return this.#text.decode(bytes);
    } catch {
      throw new Malformed(`the ${what} of an event is no UTF-8`);
    }
  }

  // Of an event the id comes first.
  #leaveOut(bytes) {
    if (isArray(bytes[0])) {
      const view = viewOf(bytes);
      const at = headAt(view, 0, bytes.length).end;
      if (isText(bytes[at])) this.#mark(this.#part(bytes, view, at, "id").text);
    }
    this.#handlers.onoversize?.(this.#lastEventId);
  }
}

const ENVIRONMENT = {
  fetch: (...all) => globalThis.fetch(...all),
  now: () => Date.now(),
  random: () => Math.random(),
  setTimeout: (...all) => globalThis.setTimeout(...all),
  clearTimeout: (timer) => globalThis.clearTimeout(timer),
  base: globalThis.document?.baseURI ?? globalThis.location?.href,
};

const PACKED = /^application\/(?:vnd\.msgpack|msgpack|x-msgpack|x-mpac)(?:$|[ ;])/i;
const EVENTS = /^text\/event-stream(?:$|[ ;])/i;
const ACCEPT = "application/vnd.msgpack, text/event-stream;q=0.9";
const TRANSIENT = [408, 425, 429];
const REASONS = {401: "unauthorized", 403: "forbidden", 404: "not_found"};

// What EventSource is, for MessagePack, with a token: one connection of this page's own, made again by itself from the last event. A hub that has
// no MessagePack answers with an event stream, which does as well.
//
// onmessage({id, type, data, identified})   of every type
// onstate(state, detail)                    "connected", "caught-up" (the hub has said so), "reconnecting", "gap" or "refused"
export class MessagePackSource {
  #environment;
  #token;
  #credentials;
  #handlers;
  #abort = new AbortController();
  #wake = null;
  #failures = 0;
  #retry = null;
  #broken = false; // what came last was no stream
  #gapTold = false;
  #renewed = false;
  url;
  lastEventId;
  state = null;
  closed = false;

  // token: an access token, or a function that gives one, or a promise of one. signal: an AbortSignal that closes it.
  constructor(url, {lastEventId = null, token = null, withCredentials = false, signal = null, ...handlers} = {}, environment = ENVIRONMENT) {
    this.#environment = environment;
    this.url = new URL(url, environment.base).href;
    this.lastEventId = lastEventId || null;
    this.#token = token;
    this.#credentials = withCredentials ? "include" : "same-origin";
    this.#handlers = handlers;
    if (signal?.aborted) return void (this.closed = true);
    signal?.addEventListener("abort", () => this.close(), {once: true});
    this.#run();
  }

  close() {
    this.closed = true;
    this.#abort.abort();
    this.#wake?.();
  }

  async #run() {
    while (!this.closed) {
      const pause = await this.#connect();
      if (!this.closed && pause > 0) await this.#wait(pause);
    }
  }

  // Returns the milliseconds until the next connection.
  async #connect() {
    const abort = (this.#abort = new AbortController());
    let timer;
    const expect = (wait) => {
      this.#environment.clearTimeout(timer);
      timer = this.#environment.setTimeout(() => abort.abort(), wait);
    };
    let lost = {reason: "the connection was lost"};
    try {
      expect(TIMES.answer);
      const from = this.lastEventId;
      const response = await this.#ask(from, abort.signal);
      if (this.closed) return 0;
      const parser = this.#parserFor(response);
      if (!parser) return this.#refused(response);
      this.#open(response, from);
      await this.#read(response.body.getReader(), parser, () => expect(TIMES.silence));
      lost = {reason: "the hub ended the stream"};
    } catch (error) {
      this.#broken ||= error instanceof Malformed;
      if (error instanceof Malformed) lost = {reason: `the stream is broken: ${error.message}`};
    } finally {
      this.#environment.clearTimeout(timer);
      abort.abort();
    }
    return this.#postpone(lost);
  }

  async #ask(from, signal) {
    const url = new URL(this.url);
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    const headers = {Accept: ACCEPT, ...(token ? {Authorization: `Bearer ${token}`} : {})};
    // What is not ASCII cannot be sent in a header.
    if (from !== null && /^[\x21-\x7e]+$/.test(from)) headers["Last-Event-ID"] = from;
    else if (from !== null) url.searchParams.append("last_event_id", from);
    return this.#environment.fetch(url.href, {headers, credentials: this.#credentials, cache: "no-store", signal});
  }

  #parserFor({status, headers, body}) {
    const type = headers.get("content-type") ?? "";
    const Parser = PACKED.test(type) ? MessagePackParser : EVENTS.test(type) ? EventParser : null;
    if (status !== 200 || !body || !Parser) return null;
    return new Parser({
      onevent: (event) => this.#receive(event),
      onmark: (id) => (this.lastEventId = id || null),
      onretry: (wait) => (this.#retry = Math.min(Math.max(wait, TIMES.leastRetry), TIMES.longestRetry)),
      onoversize: (id) => {
        this.lastEventId = id || this.lastEventId;
        this.#become("gap", {reason: "oversize", lastEventId: id});
      },
      oncomment: (text) => text === "caught up" && this.#become("caught-up"),
    });
  }

  async #read(reader, parser, alive) {
    alive();
    for (let piece = await reader.read(); !piece.done && !this.closed; piece = await reader.read()) {
      alive();
      parser.push(piece.value);
    }
  }

  #open(response, from) {
    // What was broken at one place may be so again: only an event ends that.
    if (!this.#broken) this.#failures = 0;
    this.#renewed = false;
    const resumed = response.headers.get("mercure-last-event-id");
    this.#gapTold = from !== null && from !== "earliest" && resumed !== null && resumed !== from;
    this.#become("connected");
    if (this.#gapTold) this.#become("gap", {reason: "unknown", lastEventId: from});
  }

  #receive(event) {
    if (this.closed) return;
    if (this.#broken) this.#failures = 0;
    this.#broken = false;
    if (event.identified) this.lastEventId = event.id || null;
    if (event.type === "mercure" && this.#control(event)) return;
    this.#call("onmessage", {...event, id: event.identified ? event.id : this.lastEventId ?? ""});
  }

  // The hub's own events: returns whether this was one that is not for readers. The header may have said it already.
  #control({data}) {
    const document = parsed(data);
    if (document?.type !== "gap") return false;
    if (this.#gapTold && document.reason === "unknown") this.#gapTold = false;
    else this.#become("gap", {reason: document.reason, lastEventId: document.last_event_id});
    return true;
  }

  #refused({status, headers}) {
    if (TRANSIENT.includes(status) || status >= 500) {
      return this.#postpone({reason: `the hub answered ${status}`, status}, Number(headers.get("retry-after")) * SECOND || 0);
    }
    if (status === 401 && typeof this.#token === "function" && !this.#renewed) {
      this.#renewed = true;
      return 0;
    }
    this.closed = true;
    this.#become("refused", {reason: REASONS[status] ?? "rejected", status});
    return 0;
  }

  #postpone(detail, retryAfter = 0) {
    if (this.closed) return 0;
    this.#failures += 1;
    const pause = pauseAfter(this.#failures, {retry: this.#retry, retryAfter, random: this.#environment.random});
    this.#become("reconnecting", {...detail, pause});
    return pause;
  }

  async #wait(pause) {
    await new Promise((resolve) => {
      const timer = this.#environment.setTimeout(resolve, pause);
      this.#wake = () => {
        this.#environment.clearTimeout(timer);
        resolve();
      };
    });
    this.#wake = null;
  }

  #become(state, detail = {}) {
    if (this.state === state && state !== "gap" && state !== "reconnecting") return;
    this.state = state;
    this.#call("onstate", state, detail);
  }

  // A mistake of the page's is the page's alone.
  #call(name, ...values) {
    try {
      this.#handlers[name]?.(...values);
    } catch (error) {
      globalThis.reportError ? globalThis.reportError(error) : console.error(error);
    }
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
