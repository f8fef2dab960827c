// The readers of all tabs; lives in the shared worker, or in one of the tabs.

import {TokenEndpoint, Failure, PageTokens} from "./token-sources.js";
import {TokenScope} from "./token-scope.js";
import {LIMITS, TIMES} from "./limits.js";
import {ENVIRONMENT} from "./environment.js";

const originOf = ({grant}) => (grant ? new URL(grant.hub).origin : null);

// What the coordinator knows of one tab. A tab that does not read, because it is frozen, is forgotten rather than written to
// for ever; it comes back by itself when it is thawed.
class Line {
  #post;
  #asked = new Map();
  #unread = 0;
  #unreadLength = 0;
  readers = new Map();

  constructor(environment, post) {
    this.#post = post;
    this.environment = environment;
    this.heardAt = environment.now();
  }

  // Returns whether the tab keeps up.
  send(message, length = 0) {
    this.#unread += 1;
    this.#unreadLength += length;
    this.#post(message);
    return this.#unread <= LIMITS.unread && this.#unreadLength <= LIMITS.unreadLength;
  }

  hasRead(count, length) {
    this.#unread -= count;
    this.#unreadLength -= length;
  }

  async askForToken(reader) {
    const {token} = await new Promise((resolve) => {
      this.#asked.get(reader.id)?.({token: null});
      this.#asked.set(reader.id, resolve);
      this.send({type: "ask", id: reader.id});
      this.environment.setTimeout(() => resolve({token: null}), TIMES.answer);
    });
    if (typeof token !== "string") throw new Failure("the page gave no token");
    return token;
  }

  answer({id, token}) {
    this.#asked.get(id)?.({token});
    this.#asked.delete(id);
  }
}

// The readers of all tabs, and the token scopes that they use.
//
// A tab says  hello, join {readers}, leave {ids}, ping, read {count, length}, check {reason}, token {id, token}, bye;
// and is told welcome, event {ids, event}, state {ids, state, detail}, cursor {ids, cursor}, ask {id}, pong, reset (join again).
export class Coordinator {
  #environment;
  #lines = new Map();
  #scopes = [];
  #nameless = new Map(); // hub → until when it is known for that
  #marks = new Set();
  #markTimer = null;
  #tickTimer;

  constructor(environment = ENVIRONMENT) {
    this.#environment = environment;
    this.#tick();
  }

  // A message of a tab; `post` answers it.
  receive(tab, message, post) {
    if (message.type === "hello") this.#welcome(tab, post);
    const line = this.#lines.get(tab);
    if (!line) return message.type === "bye" ? undefined : post({type: "reset"});
    line.heardAt = this.#environment.now();
    this.#obey(tab, line, message);
  }

  // How many connections there are, for whoever looks.
  get connections() {
    return this.#scopes.reduce((sum, scope) => sum + scope.connections, 0);
  }

  close() {
    this.#environment.clearTimeout(this.#tickTimer);
    this.#environment.clearTimeout(this.#markTimer);
    for (const scope of this.#scopes) scope.close();
    this.#scopes = [];
    this.#lines.clear();
  }

  deliver(readers, event) {
    this.#send(readers, {type: "event", event}, event.data.length);
    if (event.identified) for (const reader of readers) reader.cursor = event.id;
  }

  // A page that lacks something lacks it until it has it: what comes after a gap is told again when the connection is new. One that
  // nobody told that it was cut off hears nothing of another connection in the place of its own.
  tell(readers, state, detail) {
    const good = state === "connected" || state === "caught-up";
    const news = [...readers].filter((reader) => {
      if (reader.state === state && state !== "gap") return false;
      if (state === "caught-up" && reader.state !== "connected") return false;
      if (state === "connected" && reader.state === "caught-up") return false;
      return !(good && reader.state === "gap");
    });
    for (const reader of news) reader.state = state;
    this.#send(news, {type: "state", state, detail});
  }

  // A hub does not say which matchers selected an event. It may be another one a while later.
  isNameless(hub, yes = false) {
    if (yes) this.#nameless.set(hub, this.#environment.now() + TIMES.dead);
    return this.#nameless.get(hub) > this.#environment.now();
  }

  // Whether readers of other token scopes of the same hub catch up on a stream of their own: a browser has few connections.
  isCrowded(scope) {
    const origin = originOf(scope);
    return origin !== null && this.#scopes.some((other) => other !== scope && other.connections > 1 && originOf(other) === origin);
  }

  // One of a token scope's connections has ended.
  ended(scope) {
    for (const other of this.#scopes) if (other !== scope) other.placeWaiting();
  }

  get waits() {
    return this.#scopes.some((scope) => scope.waits);
  }

  // Tabs are told now and then where their readers stand, so that those of quiet topics do not come back with a cursor that
  // the hub has long forgotten.
  moved(connection) {
    this.#marks.add(connection);
    this.#markTimer ??= this.#environment.setTimeout(() => {
      this.#markTimer = null;
      for (const each of this.#marks) {
        const readers = each.closed ? [] : each.readersBehind();
        for (const reader of readers) reader.cursor = each.cursor;
        this.#send(readers, {type: "cursor", cursor: each.cursor});
      }
      this.#marks.clear();
    }, TIMES.mark);
  }

  #send(readers, message, length = 0) {
    const byLine = new Map();
    for (const reader of readers) byLine.set(reader.line, [...(byLine.get(reader.line) ?? []), reader.id]);
    for (const [line, ids] of byLine) if (!line.send({...message, ids}, length)) this.#forget(line);
  }

  #welcome(tab, post) {
    this.#expel(tab);
    this.#lines.set(tab, new Line(this.#environment, post));
    post({type: "welcome"});
  }

  #obey(tab, line, message) {
    switch (message.type) {
      case "join": return message.readers.forEach((each) => this.#join(line, each));
      case "leave": return message.ids.forEach((id) => this.#leave(line, id));
      case "ping": return line.send({type: "pong"});
      case "read": return line.hasRead(message.count, message.length);
      case "token": return line.answer(message);
      case "check": return this.#scopes.forEach((scope) => scope.check(message.reason));
      case "bye": return this.#expel(tab);
    }
  }

  #join(line, {id, want, cursor, token, ...said}) {
    const name = want.endpoint ? said.name : JSON.stringify([...want.matchers].sort());
    const reader = {id, line, want, name, cursor, token, key: null, state: null, connection: null, scope: null};
    line.readers.set(id, reader);
    this.place(reader);
  }

  // Readers that want something of the same, with the same rights, use one token scope, while it has room.
  place(reader) {
    const {want, name} = reader;
    const at = JSON.stringify([want.endpoint, want.hub, want.credentials, want.rights]);
    let scope = this.#scopes.find((each) => each.at === at && !each.closed && each.canTake(name));
    if (!scope) {
      const tokenSource = new (want.endpoint ? TokenEndpoint : PageTokens)(this.#environment, want);
      scope = Object.assign(new TokenScope(this.#environment, this, tokenSource, want), {at});
      this.#scopes.push(scope);
    }
    scope.add(reader);
  }

  #leave(line, id) {
    const reader = line.readers.get(id);
    line.readers.delete(id);
    reader?.scope?.remove(reader);
  }

  #expel(tab) {
    const line = this.#lines.get(tab);
    if (!line) return;
    this.#lines.delete(tab);
    for (const id of [...line.readers.keys()]) this.#leave(line, id);
  }

  // The message is read when the tab reads again.
  #forget(line) {
    for (const [tab, other] of this.#lines) if (other === line) this.#expel(tab);
    line.send({type: "reset"});
  }

  // When it is late, the machine has slept, or this has been frozen; then tabs had no chance to speak.
  #tick() {
    const due = this.#environment.now() + TIMES.tick;
    this.#tickTimer = this.#environment.setTimeout(() => {
      const now = this.#environment.now();
      const slept = now - due > TIMES.doubt;
      for (const line of [...this.#lines.values()]) {
        if (slept) line.heardAt = now;
        else if (now - line.heardAt > TIMES.tabGone) this.#forget(line);
      }
      for (const scope of this.#scopes) scope.check(slept ? "slept" : null);
      this.#scopes = this.#scopes.filter((scope) => !scope.closed);
      this.#tick();
    }, TIMES.tick);
  }
}
