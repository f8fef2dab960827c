// What the network and the clock are; tests have others.

import {SECOND} from "./limits.js";

export const ENVIRONMENT = {
  fetch: (...all) => globalThis.fetch(...all),
  now: () => Date.now(),
  random: () => Math.random(),
  setTimeout: (...all) => globalThis.setTimeout(...all),
  clearTimeout: (timer) => globalThis.clearTimeout(timer),
  warn: (text) => console.warn(`hikyaku: ${text}`),
  base: globalThis.location?.href,
};

// Where a loop waits until it is poked, or until a time has come. A poke that comes before is not lost.
export class Sleeper {
  #environment;
  #poked = false;
  #wake = null;

  constructor(environment) {
    this.#environment = environment;
  }

  poke() {
    this.#poked = true;
    this.#wake?.();
  }

  async until(time = Infinity) {
    const wait = Math.min(time - this.#environment.now(), 600 * SECOND);
    if (!this.#poked && wait > 0) {
      await new Promise((resolve) => {
        const timer = this.#environment.setTimeout(resolve, wait);
        this.#wake = () => {
          this.#environment.clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = null;
    this.#poked = false;
  }
}
