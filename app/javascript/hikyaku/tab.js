import {LIMITS, SECOND, TIMES} from "./limits.js";
import {LeaderLink, PageLink, WorkerLink} from "./links.js";
import {ENVIRONMENT} from "./environment.js";

// The streams of this page. The coordinator may be gone at any time; then they are asked for again, each from where it is.
class Tab {
  #name = crypto.randomUUID?.() ?? String(Math.random());
  #kinds = [WorkerLink, LeaderLink, PageLink];
  #link = null;
  #kind = null;
  #welcome = false;
  #streams = new Map();
  #joining = new Set();
  #ids = 0;
  #read = 0;
  #readLength = 0;
  #readTimer = null;
  #pingTimer = null;
  #patience = null;
  #away = false;
  #slow = null; // the link to a worker that has not spoken yet, while another one is used
  #slowTimer = null;
  options = {}; // see Hikyaku.configure

  constructor() {
    if (!globalThis.document) return;
    document.addEventListener("visibilitychange", () => document.visibilityState === "visible" && this.#check("visible"));
    addEventListener("online", () => this.#check("online"));
    // Into the back/forward cache nothing is taken; what comes out of it begins anew.
    addEventListener("pagehide", () => this.#leave());
    addEventListener("pageshow", ({persisted}) => persisted && this.#return());
    document.addEventListener("freeze", () => this.#leave());
    document.addEventListener("resume", () => this.#return());
    if (document.prerendering) {
      this.#away = true;
      document.addEventListener("prerenderingchange", () => this.#return(), {once: true});
    }
  }

  // Where the connection is: "worker", "tabs", "page", or null.
  get sharing() {
    return this.#link ? this.#kind : null;
  }

  join(stream) {
    stream.id = ++this.#ids;
    this.#streams.set(stream.id, stream);
    if (this.#joining.size === 0) queueMicrotask(() => this.#start());
    this.#joining.add(stream);
  }

  leave(stream) {
    this.#joining.delete(stream);
    if (this.#streams.delete(stream.id)) this.#send({type: "leave", ids: [stream.id]});
  }

  // ---- the link

  // At the end of the turn: elements begin while this file is evaluated, and whoever imports it configures it after that.
  #start() {
    if (!this.#link && !this.#away && this.#streams.size > 0) this.#connect();
    this.#sendJoins();
  }

  #connect() {
    this.#welcome = false;
    while (!this.#link) {
      const Kind = this.#kinds[0];
      let link = null;
      const mine = (handler) => (value) => link === this.#link && handler(value);
      const handlers = {
        ready: mine(() => this.#greet()),
        message: (message) => {
          if (link !== null && link === this.#slow) this.#goBack();
          if (link === this.#link) this.#hear(message);
        },
        broken: () => {
          if (link !== null && link === this.#slow) this.#dropSlow();
          else if (link === this.#link) this.#nextKind();
        },
      };
      try {
        if (Kind.possible(this.options)) link = new Kind(handlers, this.options);
      } catch (error) {
        ENVIRONMENT.warn(`tabs cannot share a connection by means of "${Kind.kind}": ${error.message}`);
      }
      this.#link = link;
      this.#kind = Kind.kind;
      if (!link) this.#kinds.shift();
    }
    this.#expect();
  }

  #greet() {
    this.#welcome = false;
    this.#send({type: "hello"}, true);
    this.#expect();
  }

  #send(message, always = false) {
    if (this.#link && (this.#welcome || always)) this.#link.send({...message, tab: this.#name});
  }

  #sendJoins() {
    const readers = [...this.#joining].map(({id, want, name, cursor, token}) => ({id, want, name, cursor, token}));
    if (!this.#welcome || readers.length === 0) return;
    this.#joining.clear();
    this.#send({type: "join", readers});
  }

  // Something must be heard. A timer that is late says only that this page, or the machine, has slept.
  #expect() {
    if (this.#patience !== null) return;
    const patience = this.#link.patience ?? TIMES.pong;
    const at = Date.now() + patience;
    this.#patience = setTimeout(() => {
      this.#patience = null;
      if (Date.now() - at > patience / 2) return this.#welcome ? this.#ping() : this.#expect();
      this.#welcome = false;
      if (this.#link.renew()) this.#expect();
      else {
        this.#waitAside();
        this.#nextKind();
      }
    }, patience);
  }

  #nextKind() {
    this.#kinds.shift();
    this.#disconnect();
    this.#connect();
  }

  // A worker that says nothing may be one that never will, or the machine is slow.
  #waitAside() {
    this.#dropSlow();
    [this.#slow, this.#link] = [this.#link, null];
    this.#slowTimer = setTimeout(() => this.#slow.giveUp(), TIMES.pong);
  }

  #dropSlow() {
    clearTimeout(this.#slowTimer);
    this.#slow?.close();
    this.#slow = null;
  }

  // It has spoken: streams go on from where they are.
  #goBack() {
    const slow = this.#slow;
    clearTimeout(this.#slowTimer);
    this.#slow = null;
    this.#send({type: "bye"});
    this.#disconnect();
    this.#kinds.unshift(slow.constructor);
    [this.#link, this.#kind] = [slow, slow.constructor.kind];
  }

  #disconnect() {
    clearTimeout(this.#patience);
    clearTimeout(this.#pingTimer);
    clearTimeout(this.#readTimer);
    this.#patience = this.#readTimer = null;
    this.#welcome = false;
    this.#link?.close();
    this.#link = null;
  }

  #ping() {
    clearTimeout(this.#pingTimer);
    this.#pingTimer = setTimeout(() => this.#ping(), TIMES.ping);
    this.#send({type: "ping"});
    this.#expect();
  }

  #check(reason) {
    if (!this.#link || this.#away) return;
    this.#ping();
    this.#send({type: "check", reason});
  }

  #leave() {
    this.#send({type: "bye"});
    this.#disconnect();
    if (this.#slow) this.#kinds.unshift(this.#slow.constructor);
    this.#dropSlow();
    this.#away = true;
  }

  #return() {
    this.#away = false;
    if (!this.#link && this.#streams.size > 0) this.#connect();
  }

  // ---- messages

  #hear(message) {
    clearTimeout(this.#patience);
    this.#patience = null;
    switch (message.type) {
      case "welcome": return this.#begin();
      case "reset": return this.#greet();
      case "event": this.#deliver(message.ids, {...message.event}); break; // a copy: the coordinator may be here, and keeps its own
      case "state": this.#each(message.ids, (stream) => stream.become(message.state, message.detail)); break;
      case "cursor": this.#each(message.ids, (stream) => stream.moveTo(message.cursor)); break;
      case "ask": this.#tellToken(message.id);
    }
    this.#hasRead(message.event?.data.length ?? 0);
  }

  #begin() {
    this.#welcome = true;
    this.#read = this.#readLength = 0;
    this.#joining = new Set(this.#streams.values());
    this.#sendJoins();
    this.#ping();
  }

  #deliver(ids, event) {
    this.#each(ids, (stream) => stream.receive(event));
  }

  #each(ids, action) {
    for (const id of ids) {
      const stream = this.#streams.get(id);
      if (stream) action(stream);
    }
  }

  #hasRead(length) {
    this.#read += 1;
    this.#readLength += length;
    if (this.#read >= LIMITS.unread / 10 || this.#readLength >= LIMITS.unreadLength / 10) return this.#tellRead();
    this.#readTimer ??= setTimeout(() => this.#tellRead(), SECOND);
  }

  #tellRead() {
    clearTimeout(this.#readTimer);
    this.#readTimer = null;
    this.#send({type: "read", count: this.#read, length: this.#readLength});
    this.#read = this.#readLength = 0;
  }

  async #tellToken(id) {
    const token = await this.#streams.get(id)?.newToken().catch(() => null);
    this.#send({type: "token", id, token: token ?? null});
  }
}

export const thisTab = new Tab();
