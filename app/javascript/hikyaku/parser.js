import {LIMITS} from "./limits.js";

// Parses an event stream as its bytes arrive, in pieces cut anywhere (HTML standard, section 9.2.6).
//
// onevent({id, type, data, identified})   identified: the event has an id of its own. And matchers, where the hub names those that selected
//                                         it: a list of [parameter, pattern], as they were asked for
// onmark(id)      an id without data           oncomment(text)
// onretry(ms)                                  onoversize(id)   an event was larger than it may be, and is left out
export class EventParser {
  #decoder = new TextDecoder(); // takes a byte order mark away, and waits for the rest of a character
  #handlers;
  #limit;
  #line = "";
  #lineSize = 0;
  #afterReturn = false;
  #size = 0; // of the lines of an event
  #cut = false;
  #data = [];
  #type = "";
  #id = null;
  #matchers = [];
  #lastEventId = "";

  constructor(handlers, {limit = LIMITS.eventLength} = {}) {
    this.#handlers = handlers;
    this.#limit = limit;
  }

  push(bytes) {
    const text = this.#decoder.decode(bytes, {stream: true});
    if (text === "") return;
    // The pair CR LF was cut in two: the line has ended already.
    let start = this.#afterReturn && text[0] === "\n" ? 1 : 0;
    const ends = /\r\n?|\n/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      this.#hold(text.slice(start, end.index));
      this.#read();
      start = ends.lastIndex;
    }
    this.#afterReturn = text.endsWith("\r");
    this.#hold(text.slice(start));
  }

  // Of what is too large, lines are kept that may be an id.
  #hold(text) {
    this.#lineSize += text.length;
    if (this.#size + this.#lineSize <= this.#limit) return void (this.#line += text);
    this.#line = (this.#line + text.slice(0, LIMITS.idLine)).slice(0, LIMITS.idLine);
    if (this.#line.startsWith(":")) return;
    this.#cut = true;
    this.#data = [];
  }

  #read() {
    const [line, whole] = [this.#line, this.#line.length === this.#lineSize];
    if (line.startsWith(":")) this.#handlers.oncomment?.(line.slice(1).trim());
    else this.#size += this.#lineSize;
    this.#line = "";
    this.#lineSize = 0;
    if (line === "") this.#dispatch();
    else if (whole) this.#field(line);
  }

  #field(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#cut || this.#data.push(value);
    else if (name === "event") this.#type = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "match" || name === "match_urlpattern") this.#matchers.push([name, value]);
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.#handlers.onretry?.(Number(value));
  }

  #dispatch() {
    const identified = this.#id !== null;
    if (identified) this.#lastEventId = this.#id;
    const id = this.#lastEventId;
    const [data, type, cut] = [this.#data, this.#type || "message", this.#cut];
    const names = this.#matchers.length > 0 ? {matchers: this.#matchers} : {};
    this.#data = [];
    this.#type = "";
    this.#id = null;
    this.#matchers = [];
    this.#size = 0;
    this.#cut = false;
    if (cut) this.#handlers.onoversize?.(id);
    else if (data.length > 0) this.#handlers.onevent?.({id, type, data: data.join("\n"), identified, ...names});
    else if (identified) this.#handlers.onmark?.(id);
  }
}
