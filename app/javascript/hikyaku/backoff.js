// When a connection is tried again.

import {SECOND} from "./limits.js";
import {pauseAfter} from "./requests.js";

export class Backoff {
  #environment;
  #failures = 0;
  #begunAt = 0;
  at = 0; // the next one is not before
  retry = null; // the pause that the hub has told

  constructor(environment) {
    this.#environment = environment;
  }

  begin() {
    this.#begunAt = this.#environment.now();
  }

  succeed() {
    this.at = this.#failures = 0;
  }

  fail() {
    this.#failures += 1;
  }

  // Returns the milliseconds until the next.
  postpone(retryAfter) {
    const pause = pauseAfter(this.#failures, {retry: this.retry, retryAfter, random: this.#environment.random});
    this.at = this.#environment.now() + pause;
    return pause;
  }

  // There is a reason to try at once; but a storm of reasons is no storm of attempts.
  hurry() {
    this.at = Math.min(this.at, Math.max(this.#environment.now(), this.#begunAt + SECOND));
  }
}
