// What of a stream has arrived.
//
// The hub sends a comment, `: caught up`, behind all that was missed: after a subscribe with a last event id, and after each change
// of the stream with one, also where that changes nothing (docs/live-streams.md). So such a request is a question, and the
// comment its answer: everything that was sent before the question was asked has arrived.
//
//     client   ── question ──┐                        ┌─► answered
//     hub      ─── event ────┴── event ── : caught up ─┘
//
// Two questions may share one comment: it answers the oldest for certain, and perhaps more.
//
// Beside those there are the comments that a hub sends when it has nothing to say, and of hubs that do not tell, nothing but time.

import {TIMES} from "./limits.js";

const CAUGHT_UP = "caught up";

export class ArrivalTracker {
  #environment;
  #tells; // the hub answers
  #openedAt;
  #due = []; // questions, the oldest first
  #asked = 0;
  #answered = 0; // questions that are, for certain
  #answeredAt = -Infinity; // when the newest of them was asked
  #comments = 0;
  #beatAt = -Infinity;

  // Whether an answer may have been for more questions than one, and there is something that depends on it.
  unsure = false;

  constructor(environment, {tells}) {
    this.#environment = environment;
    this.#tells = tells;
    this.#openedAt = environment.now();
  }

  // Something is asked for with a last event id. `matters`: somebody waits for the answer.
  ask({at = this.#environment.now(), matters = true} = {}) {
    const question = {number: ++this.#asked, at, matters, takenAt: Infinity};
    this.#due.push(question);
    this.unsure = false;
    return question;
  }

  // The hub has done what it was asked for.
  take(question) {
    question.takenAt = this.#environment.now();
  }

  // The hub has not, and will not answer.
  withdraw(question) {
    this.#due = this.#due.filter((other) => other !== question);
    this.unsure &&= this.#due.some((other) => other.matters);
  }

  // A comment has come.
  hear(text) {
    if (text === CAUGHT_UP) {
      this.#answer();
      this.unsure = this.#due.some((question) => question.matters);
    } else if (++this.#comments > 1) this.#beat(); // the first one greets, and comes before what was missed
  }

  // Whether the hub has been heard to speak when it had nothing to say.
  get beats() {
    return this.#comments > 1;
  }

  // Whether the answer has come, for certain.
  has(question) {
    return question.number <= this.#answered;
  }

  // Whether everything has arrived that was sent before a change of the stream: one that was a question, or one that was made at
  // this time.
  behind({question = null, at}) {
    return (question !== null && this.has(question)) || this.since(at);
  }

  // Whether everything has arrived that was sent before this time: for the hub says so, or so much time has passed where it does not.
  certain(time, patience) {
    return this.#answeredAt > time || (this.#mute && this.#environment.now() - Math.max(time, this.#openedAt) > patience);
  }

  // The same, also where a comment seems to say so: it may be one from before that was late.
  since(time, patience = TIMES.drained) {
    return this.certain(time, patience) || this.#beatAt > Math.max(time, this.#openedAt) + TIMES.skew;
  }

  // Whether to ask because of this time, null for none.
  lacks(time) {
    if (time === null || this.#environment.now() <= time || this.since(time, Infinity)) return false;
    return !this.#due.some((question) => question.at > time);
  }

  // A hub that has not answered for so long never will. Then it is as with hubs that do not tell: what nobody has seen for a while is
  // not on its way any more. That is wrong where a network holds something back for longer.
  get #mute() {
    const oldest = this.#due.find((question) => question.matters);
    return !this.#tells || (oldest !== undefined && this.#environment.now() - oldest.at > TIMES.drained);
  }

  #answer() {
    const question = this.#due.shift();
    if (question) [this.#answered, this.#answeredAt] = [question.number, question.at];
  }

  // Had there been anything to say, it had been said.
  #beat() {
    this.#beatAt = this.#environment.now();
    while (this.#due.length > 0 && this.#due[0].takenAt + TIMES.skew < this.#beatAt) this.#answer();
  }
}
