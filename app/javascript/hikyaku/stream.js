// What pages use.

import {thisTab} from "./tab.js";
import {rightsOf} from "./tokens.js";
import {ENVIRONMENT} from "./environment.js";

// One stream that a page wants. `state` is null, "connected", "caught-up", "reconnecting", "gap" or "refused".
export class Stream {
  #handlers;
  #getToken;
  state = null;
  closed = false;

  constructor({want, name, cursor = null, token = null, getToken = null}, handlers) {
    Object.assign(this, {want, name, cursor: cursor || null, token});
    this.#handlers = handlers;
    this.#getToken = getToken;
  }

  // The id of the last event; from there the stream can be taken up.
  get lastEventId() {
    return this.cursor;
  }

  open() {
    if (!this.closed) thisTab.join(this);
    return this;
  }

  close() {
    this.closed = true;
    thisTab.leave(this);
  }

  receive(event) {
    if (event.identified) this.moveTo(event.id);
    this.#call("onmessage", event);
  }

  become(state, detail) {
    this.state = state;
    this.#call("onstate", state, detail);
  }

  moveTo(cursor) {
    this.cursor = cursor;
    this.#call("oncursor", cursor);
  }

  async newToken() {
    return (this.token = await this.#getToken());
  }

  // A mistake of the page's is the page's alone.
  #call(name, ...values) {
    try {
      this.#handlers[name]?.(...values);
    } catch (error) {
      globalThis.reportError ? globalThis.reportError(error) : console.error(error);
    }
  }
}

const absolute = (url) => new URL(url, globalThis.document?.baseURI ?? globalThis.location?.href).href;
const listOf = (value) => (value === undefined || value === null ? [] : [value].flat());

export const Hikyaku = {
  // The streams behind a token endpoint of the application, which are known by signed names.
  connect({endpoint = "/hikyaku/streams"} = {}) {
    const want = {endpoint: absolute(endpoint)};
    return {
      endpoint: want.endpoint,
      stream: (name, {cursor = null, ...handlers} = {}) => new Stream({want, name, cursor}, handlers).open(),
    };
  },

  // Topics of a Mercure hub. `token` may be a function that returns one, or a promise of one: it is asked again before that expires.
  subscribe(hub, {match, matchUrlPattern, token = null, lastEventId = null, withCredentials = false, ...handlers} = {}) {
    const matchers = [...listOf(match).map((topic) => ["match", topic]), ...listOf(matchUrlPattern).map((pattern) => ["match_urlpattern", pattern])];
    if (matchers.length === 0) throw new TypeError("Hikyaku.subscribe: no topic is asked for: give match or matchUrlPattern");
    const asks = typeof token === "function";
    const want = {hub: absolute(hub), matchers, asks, credentials: withCredentials ? "include" : "same-origin"};
    const stream = new Stream({want, name: null, cursor: lastEventId, token: asks ? null : token, getToken: asks ? async () => token() : null}, handlers);
    const open = () => {
      want.rights = rightsOf(stream.token);
      stream.open();
    };
    if (asks) stream.newToken().then(open, () => stream.become("refused", {reason: "unauthorized", status: null}));
    else open();
    return stream;
  },

  // `worker`: the address of hikyaku.js where the page does not name it, or false for no shared worker. Before the first stream, or in
  // the turn in which this file was imported.
  configure(options) {
    if ("worker" in options && thisTab.sharing) {
      ENVIRONMENT.warn('configure({worker}) comes too late, since the page has streams already. Name the address in <meta name="hikyaku-worker">');
    }
    Object.assign(thisTab.options, options);
  },

  get sharing() {
    return thisTab.sharing;
  },
};
