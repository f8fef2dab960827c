// The page's own connection: the hub's figures and, where it may read them, subscription events. One connection for
// both, because a browser opens only six to one host over HTTP/1.1; closed while nobody looks at the page.

import {hubUrl, subscribeUrl} from "./hub.js";
import {problemOf, sentence} from "./problem.js";
import {Stream} from "./stream.js";

const LEAVE_AFTER = 30_000;

export class House {
  #leaving = null;

  // onFigures(object), onSnapshot(documents), onSubscription(document), onRefused(sentence): the table may not be read,
  // onState as in Stream
  constructor({settings, credentials, onFigures, onSnapshot, onSubscription, onRefused, onState}) {
    Object.assign(this, {settings, credentials, onFigures, onSnapshot, onSubscription, onRefused});
    this.stream = new Stream({
      connect: (_cursor, signal) => this.#connect(signal),
      onState,
      onEvent: (event) => this.#receive(event),
      silence: settings.heartbeat_seconds ? settings.heartbeat_seconds * 2500 : 0,
    });
    document.addEventListener("visibilitychange", () => this.#lookedAt());
    addEventListener("pageshow", (event) => event.persisted && this.stream.start());
    addEventListener("online", () => this.stream.hurry());
  }

  start() {
    this.stream.start();
  }

  #lookedAt() {
    clearTimeout(this.#leaving);
    if (document.hidden) this.#leaving = setTimeout(() => this.stream.stop(), LEAVE_AFTER);
    else if (this.stream.state === "closed") this.stream.start();
    else this.stream.hurry();
  }

  // Each connection begins with the whole table, and follows from the cursor that came with it (section "Subscription
  // API"): nothing is missed between the two, also after the hub was restarted.
  async #connect(signal, again = true) {
    const token = (await this.credentials.made("subscriber")) ?? (this.credentials.pasted.trim() || null);
    const request = {headers: token ? {authorization: `Bearer ${token}`} : {}, credentials: "omit", cache: "no-store", signal};
    const pairs = [["match", `${this.settings.hub_path}/figures`]];
    let cursor = null;
    if (this.settings.subscriptions) {
      const response = await fetch(`${hubUrl}/subscriptions`, request);
      if (response.status === 401 && token && again) {
        this.credentials.forget(token);
        return this.#connect(signal, false);
      }
      if (response.ok) {
        cursor = /last-event-id="([^"]*)"/.exec(response.headers.get("link") ?? "")?.[1];
        this.onSnapshot((await response.json()).subscriptions);
        pairs.push(["match_urlpattern", `${escapePattern(this.settings.hub_path)}/subscriptions/*`]);
      } else {
        this.onRefused(sentence(await problemOf(response)));
      }
    } else {
      this.onRefused("This hub does not announce subscriptions: start it with --subscriptions.");
    }
    return fetch(subscribeUrl(pairs, cursor), request);
  }

  // Only the hub publishes to these topics. Subscriptions of 0.x clients are told as plain messages, and "Subscription".
  #receive({data}) {
    let document;
    try {
      document = JSON.parse(data);
    } catch {
      return;
    }
    if (/^subscription$/i.test(document.type)) this.onSubscription(document);
    // The table may have missed something: begin again with the whole of it.
    else if (document.type === "gap") document.reason !== "unknown" && this.stream.start();
    else this.onFigures(document);
  }
}

const escapePattern = (text) => text.replace(/[\\:*+?(){}]/g, "\\$&");
