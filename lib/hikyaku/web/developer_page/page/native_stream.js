// The browser's own EventSource, with the face of Stream: what a page with the hub's cookie uses. The browser
// reconnects by itself and tells neither when nor why; where it gives up, the hub is asked for the reason.

import {problemOf, sentence} from "./problem.js";

const WAIT = 3000;

export class NativeStream {
  #source = null;
  #timer = null;
  #types = new Set();
  state = "closed";
  cursor = null;

  // address(cursor) → URL; onState and onEvent as in Stream
  constructor({address, onState = () => {}, onEvent = () => {}}) {
    Object.assign(this, {address, onState, onEvent});
  }

  start(cursor = null) {
    this.#halt();
    this.cursor = cursor;
    this.#open();
  }

  stop() {
    this.#halt();
    if (this.state !== "closed") this.#become("closed", {});
  }

  hurry() {
    if (this.state === "waiting") this.start(this.cursor);
  }

  // EventSource hands over events of other types only to those who name the type.
  listen(type) {
    if (!type || this.#types.has(type)) return;
    this.#types.add(type);
    this.#source?.addEventListener(type, this.#receive);
  }

  #halt() {
    clearTimeout(this.#timer);
    this.#source?.close();
    this.#source = null;
  }

  #open() {
    this.#become("connecting", {});
    const source = (this.#source = new EventSource(this.address(this.cursor), {withCredentials: true}));
    source.onopen = () => this.#become("open", {});
    source.onerror = () => (source.readyState === EventSource.CLOSED ? this.#gaveUp(source) : this.#lost());
    for (const type of ["message", "mercure", ...this.#types]) {
      this.#types.add(type);
      source.addEventListener(type, this.#receive);
    }
  }

  #receive = (event) => {
    const at = performance.now();
    if (event.lastEventId) this.cursor = event.lastEventId;
    this.onEvent({id: event.lastEventId, type: event.type, data: event.data, at});
  };

  #lost() {
    this.#become("waiting", {reason: "The connection was lost; the browser tries again by itself."});
  }

  async #gaveUp(source) {
    const abort = new AbortController();
    const response = await fetch(this.address(this.cursor), {signal: abort.signal}).catch(() => null);
    if (source !== this.#source) return abort.abort();
    if (response && response.status !== 200 && response.status !== 429 && response.status < 500) {
      const reason = sentence(await problemOf(response));
      return this.#become("closed", {reason, status: response.status});
    }
    abort.abort();
    this.#become("waiting", {reason: "The hub does not answer.", until: performance.now() + WAIT});
    this.#timer = setTimeout(() => this.start(this.cursor), WAIT);
  }

  #become(state, detail) {
    this.state = state;
    this.onState(state, detail);
  }
}
