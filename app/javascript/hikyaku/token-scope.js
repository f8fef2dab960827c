// What one token endpoint grants: a token for up to 100 streams, and the connections that use it.

import {Failure, Refusal} from "./token-sources.js";
import {LIMITS, SECOND, TIMES} from "./limits.js";
import {parsed, pauseAfter} from "./requests.js";
import {SharedConnection} from "./shared-connection.js";
import {Sleeper} from "./environment.js";

// The streams that one token grants, and the connections that carry them: one, but while readers catch up that no connection can serve
// for certain. A page that was rendered at some event may want a topic that a connection carries already, and where that event is in
// the connection's order only the hub can tell: so there is a connection that begins there, until both stand at the same event.
export class TokenScope {
  #environment;
  #coordinator;
  #tokenSource;
  #hub; // null behind a token endpoint
  #sleeper;
  #names = new Map(); // signed name → {key, readers, singly}: whether its key is its own, and may be another when it is asked about again
  #keys = new Map(); // key → {type, matchers}
  #types = new Map(); // event type → key; of a token endpoint
  #matchers = new Map(); // matcher → the keys that have it; of a hub without a token endpoint
  #apart = new Set(); // names that the hub does not take beside the others
  #connections = [];
  #waiting = new Set(); // readers that no connection takes yet
  #landings = new Map(); // readers whose own connection has ended, on their way to the eldest: {connection, topic, begun, ended}
  #askAt;
  #limit = LIMITS.names;
  #failures = 0;
  #refusals = 0;
  #mergeTimer = null;
  #placing = false;
  grant = null;
  closed = false;

  constructor(environment, coordinator, tokenSource, {hub = null}) {
    this.#environment = environment;
    this.#coordinator = coordinator;
    this.#tokenSource = tokenSource;
    this.#hub = hub;
    this.#sleeper = new Sleeper(environment);
    this.#askAt = environment.now() + TIMES.gather;
    this.#run();
  }

  // ---- for the coordinator

  canTake(name) {
    if (this.#names.has(name)) return true;
    if (this.#apart.has(name) || (this.namesMatchers && this.#names.size > 0 && this.#coordinator.isNameless(this.#hub))) return false;
    const names = [...this.#names.keys(), name];
    if (this.namesMatchers && names.length > 1 && names.flatMap((each) => JSON.parse(each)).length > LIMITS.names) return false;
    return names.length <= this.#limit && JSON.stringify(names).length <= LIMITS.namesLength;
  }

  get empty() {
    return [...this.#names.values()].every((entry) => entry.readers.size === 0);
  }

  add(reader) {
    const entry = this.#names.get(reader.name) ?? {key: null, readers: new Set(), singly: false};
    this.#names.set(reader.name, entry);
    entry.readers.add(reader);
    reader.scope = this;
    if (!entry.singly && this.grant?.keys.has(entry.key)) {
      this.#admit(reader, entry.key);
      this.#place();
    } else this.#sleeper.poke();
  }

  remove(reader) {
    this.#names.get(reader.name)?.readers.delete(reader);
    this.#forget(reader);
  }

  check(reason) {
    const now = this.#environment.now();
    if (reason) this.#askAt = Math.min(this.#askAt, now + SECOND);
    for (const connection of [...this.#connections]) connection.check(reason);
    if (this.empty && this.#connections.length === 0) this.close();
    this.#sleeper.poke();
  }

  close() {
    this.closed = true;
    this.#environment.clearTimeout(this.#mergeTimer);
    for (const connection of [...this.#connections]) connection.close();
    this.#sleeper.poke();
  }

  get connections() {
    return this.#connections.length;
  }

  // Whether readers wait for a place.
  get waits() {
    return this.#waiting.size > 0;
  }

  placeWaiting() {
    if (this.waits) this.#place();
  }

  // ---- for its connections

  matchers(key) {
    return this.#keys.get(key)?.matchers ?? [];
  }

  // Whether the hub is to name the matchers that selected an event, since nothing else tells for which topics it is.
  get namesMatchers() {
    return this.#hub !== null;
  }

  // The topics for which an event is, which these matchers selected.
  keysOf(event, matchers) {
    if (this.namesMatchers) return new Set(matchers.flatMap((matcher) => this.#matchers.get(matcher.join(" ")) ?? []));
    const {match} = (event.type === "mercure" && parsed(event.data)) || {};
    return new Set([this.matchers(match).length > 1 ? match : this.#types.get(event.type)]);
  }

  deliver(readers, event) {
    this.#coordinator.deliver(readers, event);
  }

  tell(readers, state, detail) {
    this.#coordinator.tell(readers, state, detail);
  }

  moved(connection) {
    this.#coordinator.moved(connection);
  }

  // The hub does not take the token.
  refused(grant, status) {
    if (grant !== this.grant) return;
    this.#tokenSource.disown(grant.token);
    this.#refusals += 1;
    if (this.#refusals === 3) this.#environment.warn(`the hub refuses the tokens that it is shown (${status})`);
    this.grant = null;
    this.#askAt = this.#environment.now() + (this.#refusals > 1 ? pauseAfter(this.#refusals, {random: this.#environment.random}) : 0);
    this.#sleeper.poke();
  }

  // The hub does not take what it is asked for. Returns whether it is to be asked for less at once.
  rejected(status, keys) {
    this.#environment.warn(`the hub rejects the subscription (${status})`);
    if (this.namesMatchers && keys.length === 1) this.#refuse(keys, "rejected", status);
    return this.namesMatchers && keys.length > 1;
  }

  // The hub does not take this beside the rest: it is asked for it alone.
  setApart(key) {
    this.#apart.add(key);
    if (this.#names.has(key)) this.#send([key]);
  }

  // The hub does not name matchers: what it sends cannot be told apart on one stream.
  separate() {
    this.#coordinator.isNameless(this.#hub, true);
    this.#send([...this.#names.keys()].slice(1));
    for (const {topicSet} of this.#connections) {
      topicSet.host([]);
      topicSet.drop(topicSet.all.filter((topic) => topic.readers.size === 0));
    }
  }

  opened() {
    this.#refusals = 0;
    this.#place();
  }

  settled() {
    this.#land();
    this.#place();
  }

  ended(connection) {
    this.#connections = this.#connections.filter((other) => other !== connection);
    if (this.#connections.length === 1) this.#host(this.#connections[0], []);
    this.#land();
    this.#place();
    this.#coordinator.ended(this);
  }

  // In a moment: the connection that says so is in the middle of something.
  again(reader) {
    this.#waiting.add(reader);
    queueMicrotask(() => this.#place());
  }

  // ---- the token

  async #run() {
    while (!this.closed) {
      const now = this.#environment.now();
      const due = this.#due(now);
      if (due && now >= this.#askAt) await this.#ask(now >= this.#grantedUntil);
      else await this.#sleeper.until(due ? this.#askAt : Math.max(this.#grantedUntil, this.empty ? Infinity : 0));
    }
  }

  get #grantedUntil() {
    return this.grant?.refreshAt ?? 0;
  }

  #due(now) {
    if (this.empty) return false;
    if (now >= this.#grantedUntil) return true;
    return [...this.#names.values()].some(({key, readers, singly}) =>
      readers.size > 0 && (!this.grant.keys.has(key) || (singly && [...readers].some((reader) => reader.key === null))));
  }

  async #ask(refreshing) {
    const names = this.#namesToAsk();
    const readers = new Set([...this.#names.values()].flatMap((entry) => [...entry.readers]));
    try {
      const answer = await this.#tokenSource.ask(names, readers, refreshing);
      if (!this.closed && !this.#hasOthers(answer.refused)) this.#take(answer);
    } catch (error) {
      if (this.closed) return;
      if (error.status === 413 && names.length > 1) this.#send(names.slice(this.#limit = Math.ceil(names.length / 2)));
      else if (error instanceof Refusal) this.#refuse(names, error.reason, error.status);
      else this.#fail(readers, error);
    }
  }

  // Of a topic that several pages follow one name is asked about. When that is good no longer, another may be, whichever of the pages
  // came last. Returns whether all of them are to be asked about, each for itself, before anybody is refused.
  #hasOthers(refused) {
    const shared = (entry) => entry && !entry.singly ? entry.key : null;
    const spent = [...refused].filter(([, reason]) => reason === "expired" || reason === "invalid").map(([name]) => shared(this.#names.get(name)));
    const entries = [...this.#names.values()].filter((entry) => shared(entry) !== null && spent.includes(entry.key));
    if (entries.length === new Set(entries.map(({key}) => key)).size) return false;
    for (const entry of entries) entry.key = null;
    return true;
  }

  // More names than this token endpoint grants at once: some go to another token scope.
  #send(names) {
    const readers = names.flatMap((name) => [...this.#names.get(name).readers]);
    for (const name of names) this.#names.delete(name);
    for (const reader of readers) {
      this.#forget(reader);
      reader.key = null;
      this.#coordinator.place(reader);
    }
  }

  #forget(reader) {
    this.#waiting.delete(reader);
    this.#landings.delete(reader);
    reader.connection?.remove(reader);
    reader.scope = null;
  }

  // The newest name of each topic, those whose topics are not known, and those that are asked about singly. Names that nobody has any more are forgotten.
  #namesToAsk() {
    for (const [name, entry] of this.#names) if (entry.readers.size === 0) this.#names.delete(name);
    const newest = new Map([...this.#names].map(([name, {key, singly}]) => [(singly ? null : key) ?? `alone ${name}`, name]));
    return [...newest.values()];
  }

  #take({hub, token, lifetime, credentials, keys, refused, failed, singly}) {
    const now = this.#environment.now();
    if (failed.size === 0) this.#failures = 0;
    this.#askAt = now;
    // To be refreshed at a moment of its own, so that browsers whose tokens were made together do not all come together.
    const latest = token === this.grant?.token ? this.grant.refreshAt : Infinity;
    const refreshAt = Math.min(now + lifetime * (0.8 + 0.15 * this.#environment.random()), latest);
    this.grant = {hub, token, credentials, refreshAt, keys: new Set([...keys.values()].map(({key}) => key))};
    for (const [name, {key, type, matchers}] of keys) {
      this.#keys.set(key, {type, matchers});
      if (this.namesMatchers) this.#index(key, matchers);
      else this.#types.set(type, key);
      if (this.#names.has(name)) this.#settle(this.#names.get(name), key, singly.has(name));
    }
    for (const [name, reason] of refused) this.#refuse([name], reason);
    const lacking = [...failed].flatMap((name) => this.#alike(name));
    for (const [name, entry] of lacking) this.#settle(entry, null, singly.has(name));
    if (failed.size > 0) this.#fail(lacking.flatMap(([, {readers}]) => [...readers]), new Failure("the application failed", {status: 500}));
    if ([...refused.values()].includes("unsupported")) this.#environment.warn("a class given to turbo_stream_from as channel: cannot be asked; the application's log says why");
    for (const {key, readers} of this.#names.values()) for (const reader of readers) if (reader.key === null) this.#admit(reader, key);
    for (const connection of this.#connections) connection.poke();
    this.#place();
  }

  #index(key, matchers) {
    for (const matcher of matchers.map((each) => each.join(" "))) {
      this.#matchers.set(matcher, [...new Set([...(this.#matchers.get(matcher) ?? []), key])]);
    }
  }

  // Readers that followed another topic under this name follow that no more.
  #settle(entry, key, singly) {
    Object.assign(entry, {key, singly});
    for (const reader of entry.readers) {
      if (reader.key === null || reader.key === key) continue;
      this.#forget(reader);
      Object.assign(reader, {key: null, scope: this});
    }
  }

  #admit(reader, key) {
    if (key === null) return; // came while the token endpoint was asked
    reader.key = key;
    this.#waiting.add(reader);
  }

  #fail(readers, error) {
    const {reason = String(error), status = null, retryAfter = 0} = error;
    this.#failures += 1;
    const pause = pauseAfter(this.#failures, {retryAfter, random: this.#environment.random});
    this.#askAt = this.#environment.now() + pause;
    // Those whose stream is open do not notice.
    const waiting = [...readers].filter((reader) => !reader.connection?.open && !this.#landings.has(reader));
    this.tell(waiting, "reconnecting", {reason, status, pause});
  }

  // A name with all others of the same topic, but for those that are asked about singly: what is answered is for the topic.
  #alike(name) {
    const {key = null, singly = false} = this.#names.get(name) ?? {};
    const alike = (entry) => key !== null && !singly && !entry.singly && entry.key === key;
    return [...this.#names.entries()].filter(([other, entry]) => other === name || alike(entry));
  }

  #refuse(names, reason, status = null) {
    for (const name of names) {
      for (const [other, entry] of this.#alike(name)) {
        this.#names.delete(other);
        for (const reader of entry.readers) {
          this.#forget(reader);
          this.tell([reader], "refused", {reason, status});
        }
      }
    }
  }

  // ---- connections

  // Finds a connection for whoever waits for one.
  #place() {
    if (this.#placing || this.closed) return;
    this.#placing = true;
    for (const reader of [...this.#waiting]) if (this.#placed(reader)) this.#waiting.delete(reader);
    this.#placing = false;
    this.#scheduleMerge();
  }

  #placed(reader) {
    if (this.#connections.some((connection) => !connection.closed && connection.place(reader))) return true;
    const answers = this.#connections.map((connection) => connection.takes(reader));
    const index = answers.indexOf("now");
    if (index >= 0) this.#connections[index].add(reader);
    else if (answers.includes("later") || (answers.includes("never") && this.#mayNotGrow)) return false;
    else this.#newConnection().add(reader);
    return true;
  }

  get #mayNotGrow() {
    return this.#connections.length >= LIMITS.connections || this.#coordinator.isCrowded(this);
  }

  #newConnection() {
    const connection = new SharedConnection(this.#environment, this);
    this.#connections.push(connection);
    return connection;
  }

  #scheduleMerge() {
    if (this.#mergeTimer !== null || (this.#connections.length < 2 && this.#landings.size === 0)) return;
    this.#mergeTimer = this.#environment.setTimeout(() => {
      this.#mergeTimer = null;
      this.#land();
      this.#merge();
      this.#place();
    }, TIMES.merge);
  }

  // Lets the eldest connection carry what the younger ones do, and gives it their readers as soon as they stand at the same event.
  #merge() {
    const [elder, ...younger] = this.#connections;
    if (elder?.empty && this.#landings.size === 0 && younger.some((connection) => connection.open)) return elder.close();
    if (elder) this.#host(elder, younger);
    for (const connection of younger) {
      if (this.#endsBefore(elder, connection)) continue;
      for (const key of connection.topicSet.keysRead) if (this.#together(elder, connection, key)) connection.topicSet.readersOf(key).forEach((reader) => elder.adopt(reader));
      if (connection.empty) connection.close();
    }
  }

  #host(elder, younger) {
    elder.host([...younger.flatMap((connection) => connection.topicSet.keysRead), ...[...this.#landings.keys()].map((reader) => reader.key)]);
  }

  // Ends a connection that has caught up before its readers have a place on the eldest, for which the hub is to be asked: a browser may have no
  // connection left to ask over. Returns whether it could.
  #endsBefore(elder, connection) {
    const begun = connection.open ? connection.topicSet.caughtUpFrom(connection.response) : null;
    if (begun === null || !elder.open) return false;
    const topics = new Map(connection.topicSet.keysRead.map((key) => [key, elder.topicSet.topic(key)]));
    if ([...topics.values()].some((topic) => !topic || topic.steadyAt >= begun)) return false;
    const ended = this.#environment.now();
    for (const [key, topic] of topics) {
      for (const reader of connection.topicSet.readersOf(key)) {
        connection.remove(reader);
        this.#landings.set(reader, {connection: elder, topic, begun, ended});
      }
    }
    this.#host(elder, []);
    connection.close();
    elder.sound(ended);
    return true;
  }

  // The reader's connection had all that was sent before it began. When the eldest has all that was sent before that connection ended, and
  // nothing of the topic came there in between, the reader lacks nothing, and what comes now is new to it. Otherwise it is placed as anybody.
  #land() {
    for (const [reader, {connection, topic, begun, ended}] of [...this.#landings]) {
      const sound = !connection.closed && connection.topicSet.topic(reader.key) === topic && topic.steadyAt < begun;
      if (sound && !connection.hasAllSince(ended)) {
        connection.sound(ended);
        continue;
      }
      this.#landings.delete(reader);
      if (sound && (topic.lastAt < begun || topic.lastId === reader.cursor)) connection.adopt(reader);
      else this.#waiting.add(reader);
    }
  }

  // At the same event of a topic; or everything has arrived on both that was sent before the last event came on either.
  #together(elder, connection, key) {
    const [here, there] = [elder.topicSet.topic(key), connection.topicSet.topic(key)];
    if (!here || !there || !elder.open || !connection.open) return false;
    if (here.lastId !== null && here.lastId === there.lastId) return true;
    const since = Math.max(here.steadyAt, there.steadyAt, here.lastAt, there.lastAt);
    const unknown = [elder, connection].filter((each) => !each.hasAllSince(since));
    for (const each of unknown) each.sound(since);
    return unknown.length === 0 || this.#seemTogether(elder, connection, here, there, since);
  }

  // Of hubs that do not tell, a comment says so, sooner than time does; or a shorter time, where others wait for a place. But what
  // came on one connection may be late on the other, so that neither may lack what the other has had since both carry the topic
  // without a gap.
  #seemTogether(elder, connection, here, there, since) {
    if (there.lastAt >= here.steadyAt && !elder.hasSeen(here, there.lastId)) return false;
    if (here.lastAt >= Math.max(connection.response.openedAt, there.brokenAt) && !connection.hasSeen(there, here.lastId)) return false;
    const patience = this.#coordinator.waits ? TIMES.impatience : TIMES.drained;
    return [elder, connection].every((each) => each.seemsToHaveAllSince(since, patience));
  }
}
