// A clock that goes when it is told to, and a network that is a function. Chance is repeatable.

export class TestEnvironment {
  #time = 1_700_000_000_000;
  #timers = [];
  #numbers = 0;
  warnings = [];

  constructor({fetch = async () => { throw new TypeError("no network"); }, seed = 1, base = "https://app.test/page"} = {}) {
    this.fetch = (url, init = {}) => fetch(url, init);
    this.base = base;
    this.chance = generator(seed);
  }

  now = () => this.#time;
  random = () => this.chance();
  warn = (text) => this.warnings.push(text);

  setTimeout = (action, wait = 0) => {
    const timer = {at: this.#time + Math.max(0, wait), number: this.#numbers++, action};
    this.#timers.push(timer);
    return timer;
  };

  clearTimeout = (timer) => {
    this.#timers = this.#timers.filter((other) => other !== timer);
  };

  // Lets so many milliseconds pass, and everything happen in their course.
  async pass(milliseconds) {
    const end = this.#time + milliseconds;
    for (;;) {
      await settle();
      const next = this.#timers.reduce((first, timer) => (!first || timer.at < first.at || (timer.at === first.at && timer.number < first.number) ? timer : first), null);
      if (!next || next.at > end) break;
      this.clearTimeout(next);
      this.#time = Math.max(this.#time, next.at);
      next.action();
    }
    this.#time = end;
    await settle();
  }

  // The machine sleeps: time goes by, and nothing happens until it is over.
  async sleep(milliseconds) {
    this.#time += milliseconds;
    await settle();
  }

  wait(milliseconds) {
    return new Promise((resolve) => this.setTimeout(resolve, milliseconds));
  }
}

// Until no promise has anything left to do.
function settle() {
  return new Promise((resolve) => setImmediate(resolve));
}

// Numbers from 0 to 1 (mulberry32).
export function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
