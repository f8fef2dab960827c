// When readers have caught up with what they missed: when the hub tells. Where it doesn't, when it sends a comment, or nothing
// for a moment; but a stream on which something comes all the time is not waited for for ever.

import {TIMES} from "./limits.js";

export class CatchUp {
  #environment;
  #arrivals;
  #done;
  #question = null;
  #timer = null;
  #until = 0;

  constructor(environment, arrivals, done) {
    this.#environment = environment;
    this.#arrivals = arrivals;
    this.#done = done;
  }

  // Whether something may be missing.
  get pending() {
    return this.#timer !== null;
  }

  // Something was asked for, with a question if the hub tells.
  begin(question) {
    this.#question = question;
    this.#until = this.#environment.now() + TIMES.longestCatchUp;
    this.#wait();
    this.look();
  }

  // An event has come.
  prolong() {
    if (this.pending) this.#wait();
  }

  // A comment has come.
  look() {
    if (!this.pending) return;
    const question = this.#question;
    if (question ? this.#arrivals.behind({question, at: question.takenAt}) : this.#arrivals.beats) this.#end();
  }

  close() {
    this.#environment.clearTimeout(this.#timer);
    this.#timer = null;
  }

  // Should the hub not tell at all, a longer silence will do.
  #wait() {
    const wait = this.#question ? TIMES.longestCatchUp : Math.min(TIMES.quiet, this.#until - this.#environment.now());
    this.#environment.clearTimeout(this.#timer);
    this.#timer = this.#environment.setTimeout(() => this.#end(), Math.max(0, wait));
  }

  #end() {
    this.close();
    this.#done();
  }
}
