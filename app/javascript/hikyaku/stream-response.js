// One response of the hub, and the changes that are made to it.

import {ArrivalTracker} from "./arrival-tracker.js";
import {EventParser} from "./parser.js";
import {fetchWithin, retryAfterOf} from "./requests.js";
import {authorization} from "./tokens.js";

export class StreamResponse {
  #environment;
  #abort = new AbortController();
  #body = null;
  capability = null; // who knows it may change the stream
  resumed = null; // where the hub says that the stream begins
  openedAt = null;
  at = null; // the last byte
  arrivals = null;
  question = null; // that the stream was opened with: see ArrivalTracker
  #first = []; // the matchers that it was opened with

  constructor(environment) {
    this.#environment = environment;
  }

  // Resolves to nothing when the stream is open, else to {status, retryAfter}; rejects when nobody answers.
  // `plain`: without asking for a stream that can be changed; `names`: asking for events that name the matchers that selected them, too.
  async open(grant, query, {from, plain, names}) {
    const url = new URL(grant.hub, this.#environment.base);
    for (const [name, value] of query) url.searchParams.append(name, value);
    const headers = {Accept: "text/event-stream", ...authorization(grant)};
    if (!plain) headers["Hikyaku-Stream"] = names ? "matchers" : "1";
    this.#first = [...query];
    // What is not ASCII cannot be sent in a header.
    if (from !== null && /^[\x21-\x7e]+$/.test(from)) headers["Last-Event-ID"] = from;
    else if (from !== null) url.searchParams.append("last_event_id", from);
    const askedAt = this.#environment.now();
    const response = await fetchWithin(this.#environment, url.href, {headers, credentials: grant.credentials}, this.#abort);
    const type = response.headers.get("content-type") ?? "";
    if (response.status !== 200 || !type.startsWith("text/event-stream") || !response.body) {
      const retryAfter = retryAfterOf(response, this.#environment);
      this.close();
      return {status: response.status === 200 ? 502 : response.status, retryAfter};
    }
    this.#begin(response, from, askedAt);
  }

  // The matchers that selected an event. A hub that names them does not as long as there never was another than the first; of one that
  // never does, nothing but what it was asked for first comes.
  matchersOf({matchers}) {
    return matchers ?? (this.capability === null || this.#first.length === 1 ? this.#first : []);
  }

  // Whether the hub is of another origin than the page.
  isForeign({hub}) {
    const {base} = this.#environment;
    return base !== undefined && new URL(hub, base).origin !== new URL(base).origin;
  }

  #begin(response, from, askedAt) {
    this.capability = response.headers.get("hikyaku-stream");
    this.resumed = response.headers.get("mercure-last-event-id");
    this.at = this.openedAt = this.#environment.now();
    this.#body = response.body;
    this.arrivals = new ArrivalTracker(this.#environment, {tells: this.capability !== null});
    if (from === null || this.capability === null) return;
    this.question = this.arrivals.ask({at: askedAt});
    this.arrivals.take(this.question);
  }

  // Handlers are those of EventParser, and onend(reason).
  async read(handlers) {
    const parser = new EventParser({
      ...handlers,
      oncomment: (text) => {
        this.arrivals.hear(text);
        handlers.oncomment?.();
      },
    });
    let reason = "the hub ended the stream";
    try {
      const reader = this.#body.getReader();
      for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
        this.at = this.#environment.now();
        parser.push(piece.value);
      }
    } catch {
      reason = "the response was lost";
    }
    this.close();
    handlers.onend(reason);
  }

  // POST {hub}/streams/{capability}. Resolves to {status, retryAfter, position, question}, the status 0 when nobody answers.
  async change(grant, body, {matters}) {
    const url = new URL(grant.hub, this.#environment.base);
    url.pathname = `${url.pathname.replace(/\/$/, "")}/streams/${encodeURIComponent(this.capability)}`;
    const headers = {"Content-Type": "application/x-www-form-urlencoded", ...authorization(grant)};
    const question = body.has("last_event_id") ? this.arrivals.ask({matters}) : null;
    try {
      const init = {method: "POST", headers, body: body.toString(), credentials: grant.credentials};
      const response = await fetchWithin(this.#environment, url.href, init);
      if (question) this.arrivals[response.status === 204 ? "take" : "withdraw"](question);
      const position = response.headers.get("mercure-last-event-id");
      return {status: response.status, retryAfter: retryAfterOf(response, this.#environment), position, question};
    } catch {
      return {status: 0};
    }
  }

  close() {
    this.#abort.abort();
  }
}
