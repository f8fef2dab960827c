// For pages that send and receive. The page sends a POST to its own application, with the session cookie and the CSRF token. The
// application publishes updates, and the page receives them on a stream of hikyaku.js. This file sends nothing to the hub.
//
//     import {Expiring, Replies, Throttle, byType, ephemeral, send} from "hikyaku-send";
//
//     send         one POST                                         Throttle   a limited number of POSTs a second, the newest data wins
//     ephemeral    a handler without replays and without echoes     Expiring   values that expire after some seconds
//     Replies      requests that an update may answer               byType     several handlers on one stream, by event type
//
// A correlation is a random text. The page sends it with each POST, in the header Hikyaku-Correlation. The application copies it into the
// updates that the POST causes. By it the page recognises its own updates and the answers to its requests.

const SECOND = 1_000;

// How much, and how long.
const MOST = Object.freeze({
  correlations: 2_000, // the page remembers as its own
  questions: 100, // may wait for an answer
  entries: 1_000, // in an Expiring
  perSecond: 60, // the usual frame rate of screens
});
const TIMES = Object.freeze({
  answer: 30 * SECOND, // the application answers a POST within this time
  echo: 60 * SECOND, // the page remembers a correlation for this time
  longestQuestion: 3_600 * SECOND,
  catchUp: 5 * SECOND, // a stream counts as caught up after this time: after a gap it never becomes "caught-up"
  retry: SECOND, // the pause after a failed POST, doubled each time
  longestRetry: 30 * SECOND,
  longestRetryAfter: 600 * SECOND,
});

// Browsers keep the delay of a timer in 31 bits.
const LONGEST_TIMER = 2_147_483 * SECOND;

// A POST failed, or a request has no answer. `reason` is "network", "timeout", "status", "redirect", "refused", "gap", "answer" or "limit".
export class SendError extends Error {
  name = "SendError";
  reason;
  status;
  answer;
  retryAfter;

  constructor(message, {reason, status = null, answer = null, retryAfter = null}) {
    super(message);
    Object.assign(this, {reason, status, answer, retryAfter});
  }
}

// ---- one POST --------------------------------------------------------------------------------------------------------

// Resolves to the body of the answer: parsed if it is JSON, else a text; null if it is empty.
export async function send(url, body = {}, {method = "POST", seconds = TIMES.answer / SECOND} = {}) {
  return (await post(url, body, {method, milliseconds: within(seconds, TIMES.longestQuestion), correlation: newCorrelation()})).answer;
}

// The CSRF token must not leave the origin of the page.
async function post(url, body, {method = "POST", milliseconds, correlation}) {
  const target = new URL(url, document.baseURI);
  if (target.origin !== location.origin) throw new TypeError(`${target.origin} is not the origin of this page: send to a path of its own application`);
  const headers = {"Content-Type": "application/json", Accept: "application/json", "Hikyaku-Correlation": correlation};
  const token = document.querySelector('meta[name="csrf-token"]')?.content;
  if (token) headers["X-CSRF-Token"] = token;
  const payload = JSON.stringify(body);
  remember(correlation);
  const abort = new AbortController();
  const timer = setTimeout(() => abort.abort(), milliseconds);
  try {
    // Applications redirect to a sign-in page. fetch would follow, and report that page's 200 as success.
    const response = await fetch(target.href, {method, headers, body: payload, credentials: "same-origin", redirect: "manual", cache: "no-store", signal: abort.signal});
    if (response.type === "opaqueredirect") {
      throw new SendError(`${target.pathname} redirects: check whether the user is still signed in`, {reason: "redirect"});
    }
    const answer = await answerOf(response);
    if (response.ok) return {status: response.status, answer};
    const retryAfter = secondsOf(response.headers.get("Retry-After"));
    throw new SendError(`${target.pathname} answered ${response.status}`, {reason: "status", status: response.status, answer, retryAfter});
  } catch (error) {
    if (error instanceof SendError) throw error;
    if (abort.signal.aborted) throw new SendError(`${target.pathname} did not answer in time`, {reason: "timeout"});
    throw new SendError(`${target.pathname} was not reached: ${error.message}`, {reason: "network"});
  } finally {
    clearTimeout(timer);
  }
}

async function answerOf(response) {
  const text = await response.text();
  if (text === "") return null;
  return /^application\/(?:[\w.-]+\+)?json\b/i.test(response.headers.get("Content-Type") ?? "") ? parsed(text) : text;
}

// A body may be no JSON in spite of its Content-Type: proxies answer so.
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function secondsOf(header) {
  return /^\d{1,9}$/.test(header ?? "") ? Number(header) : null;
}

function within(seconds, longest) {
  if (!(seconds > 0 && seconds * SECOND <= longest)) throw new RangeError(`${seconds} seconds: give more than 0, and at most ${longest / SECOND}`);
  return seconds * SECOND;
}

// ---- correlations ----------------------------------------------------------------------------------------------------

const own = new Map(); // correlation → until when it is remembered

// crypto.randomUUID exists in secure contexts only.
function newCorrelation() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function remember(correlation) {
  if (own.size >= MOST.correlations) own.delete(own.keys().next().value);
  own.set(correlation, Date.now() + TIMES.echo);
}

function isOwn(correlation) {
  return (own.get(correlation) ?? 0) > Date.now();
}

// ---- sending often ---------------------------------------------------------------------------------------------------

// Sends the first data at once, and then at most `perSecond` POSTs a second. While data wait, newer data replace them. One POST is under
// way at a time, so that a slow application receives fewer. After a failed POST the throttle pauses, longer each time, or for Retry-After.
export class Throttle {
  #url;
  #interval;
  #onerror;
  #waiting = null;
  #running = false;
  #failures = 0;

  constructor(url, {perSecond = 10, onerror = (error) => console.warn(`hikyaku-send: ${error.message}`)} = {}) {
    if (!(perSecond > 0 && perSecond <= MOST.perSecond)) throw new RangeError(`perSecond is ${perSecond}: give more than 0, and at most ${MOST.perSecond}`);
    this.#url = url;
    this.#interval = Math.min(SECOND / perSecond, LONGEST_TIMER);
    this.#onerror = onerror;
  }

  send(body = {}) {
    this.#waiting = {body};
    if (!this.#running) this.#run();
  }

  // Drops the data that wait.
  cancel() {
    this.#waiting = null;
  }

  async #run() {
    this.#running = true;
    while (this.#waiting) {
      const {body} = this.#waiting;
      this.#waiting = null;
      const interval = sleep(this.#interval);
      try {
        await send(this.#url, body);
        this.#failures = 0;
      } catch (error) {
        report(() => this.#onerror(error));
        await sleep(this.#pause(error.retryAfter ?? null));
      }
      await interval;
    }
    this.#running = false;
  }

  #pause(retryAfter) {
    this.#failures += 1;
    if (retryAfter !== null) return Math.min(retryAfter * SECOND, TIMES.longestRetryAfter);
    return Math.min(TIMES.retry * 2 ** (this.#failures - 1), TIMES.longestRetry);
  }
}

function sleep(milliseconds) {
  return new Promise((resolve) => setTimeout(resolve, milliseconds));
}

// An exception of the page's own handler must not stop this file.
function report(action) {
  try {
    action();
  } catch (error) {
    globalThis.reportError ? globalThis.reportError(error) : console.error(error);
  }
}

// ---- ephemeral updates -----------------------------------------------------------------------------------------------

// How often the browser has suspended the page. When the page resumes, hikyaku.js delivers the missed updates before any state.
let absences = 0;
globalThis.addEventListener?.("pagehide", () => (absences += 1));
globalThis.document?.addEventListener("freeze", () => (absences += 1));

// Handlers for a stream. They call `handler(data, event)` with the parsed data of each new update. They drop updates that this page has
// caused, and replayed updates: hikyaku.js delivers these between the states "connected" and "caught-up".
export function ephemeral(handler) {
  let since = Infinity;
  let absence = absences;
  const pass = (from) => [since, absence] = [from, absences];
  return {
    onstate(state) {
      if (state === "caught-up") pass(0);
      else pass(state === "connected" || state === "gap" ? Date.now() + TIMES.catchUp : Infinity);
    },
    onmessage(event) {
      if (Date.now() < since || absence !== absences) return;
      const data = JSON.parse(event.data);
      if (!isOwn(data?.correlation)) handler(data, event);
    },
  };
}

// Values by ids. Each value expires after `seconds`, unless the page sets it again. `onchange(map)` receives all present values.
export class Expiring {
  #milliseconds;
  #onchange;
  #values = new Map();
  #timers = new Map();

  constructor({seconds, onchange}) {
    this.#milliseconds = within(seconds, LONGEST_TIMER);
    this.#onchange = onchange;
  }

  set(id, value) {
    const changed = !this.#values.has(id) || this.#values.get(id) !== value;
    if (!this.#values.has(id) && this.#values.size >= MOST.entries) this.#drop(this.#values.keys().next().value);
    clearTimeout(this.#timers.get(id));
    this.#values.set(id, value);
    this.#timers.set(id, setTimeout(() => this.delete(id), this.#milliseconds));
    if (changed) this.#tell();
  }

  delete(id) {
    if (this.#drop(id)) this.#tell();
  }

  #drop(id) {
    clearTimeout(this.#timers.get(id));
    this.#timers.delete(id);
    return this.#values.delete(id);
  }

  #tell() {
    this.#onchange(new Map(this.#values));
  }
}

// ---- requests --------------------------------------------------------------------------------------------------------

// Handlers for a stream, and ask(), which sends a POST. The application answers directly or, after 202 (Accepted), by an update with
// the data {correlation, answer} or {correlation, error}.
//
//     ask ── the stream is open ──► POST ──┬── 202 ──► an update with the correlation ──► the answer
//                                          └── 200 ──► the answer
//
// The update may arrive before the 202. An update that the application publishes during a lost connection arrives after it.
export class Replies {
  #questions = new Map(); // correlation → settle(error, answer)
  #open;
  #opened = new Promise((resolve) => (this.#open = resolve));
  #refusal = null;

  onstate = (state, detail) => {
    if (state === "refused") this.#refuse(detail?.reason ?? "rejected");
    else if (state !== "reconnecting") this.#take();
    if (state === "gap") this.#fail(() => new SendError("events are missing, and the answer may be among them: ask again", {reason: "gap"}));
  };

  onmessage = (event) => {
    const reply = JSON.parse(event.data);
    const settle = this.#questions.get(reply?.correlation);
    if (!settle) return;
    if (reply.error === undefined || reply.error === null) settle(null, reply.answer ?? null);
    else settle(new SendError(`the application answered: ${textOf(reply.error)}`, {reason: "answer", answer: reply.error}));
  };

  // Rejects with a SendError.
  async ask(url, body = {}, {seconds = TIMES.answer / SECOND} = {}) {
    const milliseconds = within(seconds, TIMES.longestQuestion);
    if (this.#refusal) throw refusalOf(this.#refusal);
    if (this.#questions.size >= MOST.questions) {
      throw new SendError(`${MOST.questions} requests wait for an answer: wait until one of them has ended`, {reason: "limit"});
    }
    const correlation = newCorrelation();
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => settle(new SendError(`no answer came within ${seconds} seconds`, {reason: "timeout"})), milliseconds);
      const settle = (error, answer) => {
        this.#questions.delete(correlation);
        clearTimeout(timer);
        error ? reject(error) : resolve(answer);
      };
      this.#questions.set(correlation, settle);
      this.#put(url, body, {correlation, milliseconds}).then(
        ({status, answer}) => status !== 202 && settle(null, answer),
        (error) => settle(error),
      );
    });
  }

  // Before the stream is open, the application could publish the answer to a page that does not receive it.
  async #put(url, body, options) {
    await this.#opened;
    if (!this.#questions.has(options.correlation)) return {status: 202};
    return post(url, body, options);
  }

  #take() {
    this.#refusal = null;
    this.#open();
  }

  #refuse(reason) {
    this.#refusal = reason;
    this.#fail(() => refusalOf(reason));
  }

  #fail(error) {
    for (const settle of [...this.#questions.values()]) settle(error());
  }
}

function refusalOf(reason) {
  return new SendError(`the hub or the application refuses the stream of the answers (${reason})`, {reason: "refused"});
}

function textOf(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// ---- several handlers on one stream ----------------------------------------------------------------------------------

// Handlers that pass each event to the handlers of its type, and each state to all handlers.
export function byType(handlers) {
  return {
    onmessage: (event) => handlers[event.type]?.onmessage?.(event),
    onstate: (...all) => Object.values(handlers).forEach((each) => report(() => each.onstate?.(...all))),
  };
}
