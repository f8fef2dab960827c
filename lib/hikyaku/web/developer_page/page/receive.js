// The panel that subscribes: matchers, cursor, connection, and the list of what arrives.

import {$, copyButton, setText} from "./dom.js";
import {subscribeLine} from "./curl.js";
import {EventList} from "./events.js";
import {subscribeUrl} from "./hub.js";
import {MatcherRows, matches, parameterOf} from "./matchers.js";
import {NativeStream} from "./native_stream.js";
import {Stream} from "./stream.js";
import {whyRefused} from "./token_report.js";

const STATES = {connecting: "Connecting…", open: "Open", waiting: "Reconnecting…", closed: "Closed"};
const SLOW = 4000;

export class Receive {
  #stream = null;
  #matchers = [];
  #countdown = null;
  #lost = null;
  #renewed = false;

  constructor({settings, credentials, register, section}) {
    Object.assign(this, {settings, credentials, register, section});
    this.cursor = $("#cursor");
    const types = settings.legacy ? ["exact", "urlpattern", "uri_template"] : ["exact", "urlpattern"];
    this.rows = new MatcherRows($("#matchers"), {types, onChange: () => this.#drawCurl()});
    this.rows.add({type: "exact", pattern: "https://example.com/books/1"});
    this.rows.add({type: "urlpattern", pattern: "https://example.com/authors/:id"});
    this.events = new EventList({
      list: $("#events"), empty: $("#events-empty"), summary: $("#events-summary"), live: $("#events-live"),
      onCursor: (id) => {
        this.cursor.value = id;
        this.#drawCurl();
        this.cursor.focus();
      },
    });
    $("#add-matcher").addEventListener("click", () => this.rows.add({type: "exact"}, true));
    $("#subscribe-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.subscribe();
    });
    $("#disconnect").addEventListener("click", () => this.#stream?.stop());
    $("#retry-now").addEventListener("click", () => this.#stream?.hurry());
    $("#hold").addEventListener("change", ({target}) => this.events.hold(target.checked));
    $("#clear").addEventListener("click", () => this.events.clear());
    this.cursor.addEventListener("input", () => this.#drawCurl());
    for (const button of document.querySelectorAll("[data-cursor]")) {
      button.addEventListener("click", () => {
        this.cursor.value = button.dataset.cursor;
        this.#drawCurl();
      });
    }
    $("#subscribe-curl").parentElement.after(copyButton(() => $("#subscribe-curl").textContent));
    credentials.addEventListener("choose", () => this.#changeCredentials());
    credentials.addEventListener("made", () => this.#drawCurl());
    addEventListener("online", () => this.#stream?.hurry());
    addEventListener("pageshow", ({persisted}) => persisted && this.#stream && this.#start(this.#stream.cursor));
    this.#show("closed", {});
  }

  get pairs() {
    return this.rows.values.map((matcher) => [parameterOf(matcher), matcher.pattern]);
  }

  subscribe() {
    if (this.rows.values.length === 0) return this.#show("closed", {reason: "Write at least one matcher first."});
    this.#matchers = this.rows.values;
    this.events.note(`Subscribed to ${this.#matchers.map(({pattern}) => pattern).join(", ")}`);
    this.#start(this.cursor.value.trim() || null);
  }

  // A type that the page publishes: EventSource must be told, or it keeps such events to itself.
  expect(type) {
    this.#stream?.listen?.(type);
  }

  #start(cursor) {
    const pairs = this.#matchers.map((matcher) => [parameterOf(matcher), matcher.pattern]);
    const shared = {onState: (state, detail) => this.#follow(state, detail), onEvent: (event) => this.#receive(event)};
    this.#stream?.stop();
    this.#stream = this.credentials.carrier === "cookie"
      ? new NativeStream({...shared, address: (last) => subscribeUrl(pairs, last)})
      : new Stream({
          ...shared,
          connect: (last, signal) => this.#connect(pairs, last, signal),
          onOpen: (response, last) => this.#compareCursors(response, last),
          silence: this.settings.heartbeat_seconds ? this.settings.heartbeat_seconds * 2500 : 0,
        });
    this.#stream.start(cursor);
  }

  async #connect(pairs, cursor, signal, again = true) {
    const {headers, credentials, token} = await this.credentials.request("subscriber");
    if (cursor) headers["last-event-id"] = cursor;
    const response = await fetch(subscribeUrl(pairs), {headers, credentials, signal, cache: "no-store"});
    if (response.status !== 401 || !this.credentials.isOwn(token) || !again) return response;
    this.credentials.forget(token);
    return this.#connect(pairs, cursor, signal, false);
  }

  // Section "Reconnection": another id than the one asked for says that events may be lost. The hub says it in-band
  // too; the first of the two to be read is shown.
  #compareCursors(response, asked) {
    const from = response.headers.get("mercure-last-event-id");
    this.#lost = null;
    if (!asked || asked === "earliest" || !from || from === asked) return;
    this.#lost = setTimeout(() => this.#gap({reason: "unknown", last_event_id: asked}), 300);
  }

  #gap({reason, last_event_id: last, matches: among}) {
    clearTimeout(this.#lost);
    this.#lost = null;
    const where = among?.length ? ` Concerned: ${among.map(({match}) => match).join(", ")}.` : "";
    if (reason === "overrun") {
      return this.events.gap("Events were lost.", `This reader was slower than the hub's history is long: what came after ${last} is gone.${where}`);
    }
    if (reason === "lost") {
      return this.events.gap("Events may be lost.", `After ${last} the hub has lost events: its machine lost power, or its storage was damaged.${where}`);
    }
    this.events.gap("Events may be lost.", `The hub does not know the event ${last}: it was restarted, or the event is older than its history. What it still has follows.${where}`);
  }

  #receive(event) {
    const document = event.type === "mercure" ? parse(event.data) : null;
    if (document?.type === "gap") return this.#gap(document);
    const item = this.events.add(event, this.#source(document?.type === "subscription" ? [document.id] : null));
    if (event.id) {
      this.register.arrive(event.id, event.at, ({topics, latency}) => {
        const {text, hint} = this.#source(topics);
        item.source(text, hint);
        if (latency !== undefined) item.latency(latency);
      });
    }
  }

  // An event does not say its topics. They are known of a subscription event, and of what this page published.
  #source(topics) {
    if (topics) {
      const by = this.#matchers.filter((matcher) => topics.some((topic) => matches(matcher, topic) !== false));
      return {text: topics[0], hint: `Topics: ${topics.join(", ")}. Selected by: ${by.map(({pattern}) => pattern).join(", ")}`};
    }
    if (this.#matchers.length === 1) return {text: this.#matchers[0].pattern, hint: "The matcher that selected it"};
    return {text: `one of ${this.#matchers.length} matchers`, hint: "An event does not say its topics, and this page did not publish it"};
  }

  // A cookie with a token of the page's own is renewed once where the hub no longer takes it.
  async #follow(state, detail) {
    this.#show(state, detail);
    if (state === "open") this.#renewed = false;
    const stream = this.#stream;
    if (state !== "closed" || (detail.status !== 401 && detail.status !== 403)) return;
    if (this.credentials.carrier === "cookie" && !this.#renewed) {
      this.#renewed = true;
      if ((await this.credentials.renewCookie()) && stream === this.#stream) return stream.start(stream.cursor);
    }
    const why = await whyRefused(await this.credentials.token("subscriber").catch(() => null), "subscriber");
    if (stream === this.#stream && stream.state === "closed") setText($("#connection-reason"), `${detail.reason} ${why}`);
  }

  #changeCredentials() {
    this.#drawCurl();
    if (this.#stream && this.#stream.state !== "closed") this.#start(this.#stream.cursor);
  }

  #show(state, {reason = "", until}) {
    clearInterval(this.#countdown);
    const pill = $("#connection");
    const draw = () => {
      const left = until ? Math.max(0, Math.ceil((until - performance.now()) / 1000)) : 0;
      setText($("#connection-count"), state === "waiting" && until ? `in ${left} s` : "");
    };
    pill.dataset.state = state;
    setText($("#connection-state"), STATES[state]);
    setText($("#connection-reason"), reason);
    draw();
    $("#disconnect").hidden = state === "closed";
    $("#retry-now").hidden = state !== "waiting" || !until;
    setText($("#subscribe"), state === "closed" ? "Subscribe" : "Subscribe again");
    if (state === "waiting" && until) this.#countdown = setInterval(draw, 250);
    if (state === "connecting") {
      this.#countdown = setTimeout(() => setText($("#connection-reason"), "A browser opens at most six connections to one host: other tabs of it may hold them."), SLOW);
    }
  }

  async #drawCurl() {
    const token = await this.credentials.token("subscriber").catch(() => null);
    setText($("#subscribe-curl"), subscribeLine(this.pairs, this.cursor.value.trim(), token));
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
