// When a connection is tried again.

import {SECOND} from "./limits.js";
import {pauseAfter} from "./requests.js";

export class Attempts {
  #world;
  #failures = 0;
  #begunAt = 0;
  at = 0; // the next one is not before
  retry = null; // the pause that the hub has told

  constructor(world) {
    this.#world = world;
  }

  begin() {
    this.#begunAt = this.#world.now();
  }

  succeed() {
    this.at = this.#failures = 0;
  }

  fail() {
    this.#failures += 1;
  }

  // Returns the milliseconds until the next.
  postpone(retryAfter) {
    const pause = pauseAfter(this.#failures, {retry: this.retry, retryAfter, random: this.#world.random});
    this.at = this.#world.now() + pause;
    return pause;
  }

  // There is a reason to try at once; but a storm of reasons is no storm of attempts.
  hurry() {
    this.at = Math.min(this.at, Math.max(this.#world.now(), this.#begunAt + SECOND));
  }
}
