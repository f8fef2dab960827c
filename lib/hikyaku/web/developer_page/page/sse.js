// Parses the text of an event stream (HTML standard, "Parsing an event stream") as it arrives, in pieces cut anywhere.

export class EventParser {
  #rest = "";
  #afterReturn = false;
  #started = false;
  #data = [];
  #type = "";
  #id = null;
  lastEventId = "";

  constructor({onEvent, onRetry = () => {}}) {
    this.onEvent = onEvent;
    this.onRetry = onRetry;
  }

  push(text) {
    if (!this.#started && text !== "") {
      this.#started = true;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    if (this.#afterReturn && text !== "") {
      // The pair CR LF was cut in two: the line has ended already.
      if (text.startsWith("\n")) text = text.slice(1);
      this.#afterReturn = false;
    }
    const ends = /\r\n|\n|\r/g;
    ends.lastIndex = this.#rest.length;
    const all = this.#rest + text;
    let start = 0;
    for (let end = ends.exec(all); end; end = ends.exec(all)) {
      this.#line(all.slice(start, end.index));
      start = ends.lastIndex;
    }
    this.#afterReturn = all.endsWith("\r") && start === all.length;
    this.#rest = all.slice(start);
  }

  #line(line) {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "data") this.#data.push(value);
    else if (field === "event") this.#type = value;
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    else if (field === "retry" && /^\d+$/.test(value)) this.onRetry(Number(value));
  }

  #dispatch() {
    if (this.#id !== null) this.lastEventId = this.#id;
    if (this.#data.length > 0) {
      this.onEvent({id: this.lastEventId, type: this.#type || "message", data: this.#data.join("\n"), at: performance.now()});
    }
    this.#data = [];
    this.#type = "";
  }
}
