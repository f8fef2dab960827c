// One event stream read with fetch(), which can send an Authorization header and read response headers; EventSource
// can do neither. It reconnects by itself, always from the last id that it has seen.
//
//   connecting ─► open ─► waiting ─► connecting …          closed: refused for good, or stop()

import {EventParser} from "./sse.js";
import {problemOf, sentence} from "./problem.js";

const FIRST_WAIT = 1000;
const LONGEST_WAIT = 10_000;

export class Stream {
  #abort = null;
  #wake = null;
  #run = 0;
  #retry = FIRST_WAIT;
  state = "closed";
  cursor = null;

  // connect(cursor, signal) → Response     onState(state, {reason, until})     onOpen(response, cursor) before any event
  // onEvent(event)     silence: milliseconds without a byte after which the connection counts as dead; 0 for never
  constructor({connect, onState = () => {}, onOpen = () => {}, onEvent = () => {}, silence = 0}) {
    Object.assign(this, {connect, onState, onOpen, onEvent, silence});
  }

  start(cursor = null) {
    this.#halt();
    this.cursor = cursor;
    this.#retry = FIRST_WAIT;
    this.#loop(++this.#run);
  }

  stop() {
    this.#halt();
    if (this.state !== "closed") this.#become("closed", {});
  }

  // Does not wait any longer, where it waits.
  hurry() {
    this.#wake?.();
  }

  #halt() {
    this.#run += 1;
    this.#abort?.abort();
    this.#wake?.();
  }

  async #loop(run) {
    for (let failures = 0; ; ) {
      this.#become("connecting", {});
      const outcome = await this.#once(run);
      if (run !== this.#run) return;
      if (outcome.final) return this.#become("closed", outcome);
      failures = outcome.opened ? 0 : failures + 1;
      const wait = outcome.wait ?? Math.min(this.#retry * 1.5 ** Math.max(0, failures - 1), Math.max(LONGEST_WAIT, this.#retry));
      await this.#pause(wait, outcome.reason);
      if (run !== this.#run) return;
    }
  }

  async #once(run) {
    const abort = (this.#abort = new AbortController());
    let opened = false;
    let watch = null;
    try {
      const response = await this.connect(this.cursor, abort.signal);
      if (run !== this.#run) return {};
      if (response.status !== 200) return await this.#refused(response);
      opened = true;
      this.onOpen(response, this.cursor);
      this.#become("open", {});
      const parser = new EventParser({
        onEvent: (event) => {
          if (event.id) this.cursor = event.id;
          if (run === this.#run) this.onEvent(event);
        },
        onRetry: (wait) => (this.#retry = wait),
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      const listen = () => {
        clearTimeout(watch);
        if (this.silence) watch = setTimeout(() => abort.abort(), this.silence);
      };
      for (listen(); ; listen()) {
        const {done, value} = await reader.read();
        if (done) return {opened, reason: "The hub closed the connection."};
        parser.push(value);
      }
    } catch {
      return {opened, reason: opened ? "The connection was lost." : "The hub does not answer."};
    } finally {
      clearTimeout(watch);
      abort.abort();
    }
  }

  async #refused(response) {
    const problem = await problemOf(response);
    const passing = problem.status === 408 || problem.status === 429 || problem.status >= 500;
    const after = Number(response.headers.get("retry-after"));
    return {final: !passing, wait: after > 0 ? after * 1000 : undefined, reason: sentence(problem), status: problem.status};
  }

  #pause(wait, reason) {
    this.#become("waiting", {reason, until: performance.now() + wait});
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, wait);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  #become(state, detail) {
    this.state = state;
    this.onState(state, detail);
  }
}
