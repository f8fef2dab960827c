// One connection that is made again, and carries the topics of many readers, in order, once.

import {Backoff} from "./backoff.js";
import {TopicSet} from "./topic-set.js";
import {CatchUp} from "./catch-up.js";
import {StreamResponse} from "./stream-response.js";
import {History} from "./history.js";
import {TIMES} from "./limits.js";
import {isRejection, parsed} from "./requests.js";
import {Sleeper} from "./environment.js";

// A connection to the hub: made again from its last event when it is lost, and changed while it is open, by
// POST {hub}/streams/{capability} or, where the hub has no such thing, by a second one that is made before the first is broken.
//
//     waiting ──► connecting ──► open ──► closed: nobody reads, or another connection carries its readers
//        ▲            │            │
//        └────────────┴────────────┘
//
// Topics that have not settled when the connection breaks are taken off, and added once more for each reader from where it is.
export class SharedConnection {
  #environment;
  #scope;
  #sleeper;
  topicSet;
  #response = null;
  #catchUp = null; // of the connection
  #history = new History();
  #cursor = null; // of the settled topics
  #cursorAt = 0; // the number in the history that comes after it
  #offered = null; // a cursor that is right as soon as everything has arrived that was sent before, and with which change it came
  #soundFrom = null; // a time: whether everything from before is here, the hub is to say
  #grant = null; // with which the connection was made or changed last
  #backoff;
  #doubtful = false; // the connection is to be made anew
  #silence = TIMES.silence;
  #plain = false; // does not ask for a stream that can be changed
  #gapTold = false;
  closed = false;

  constructor(environment, scope) {
    this.#environment = environment;
    this.#scope = scope;
    this.#sleeper = new Sleeper(environment);
    this.#backoff = new Backoff(environment);
    this.topicSet = new TopicSet(environment, this, scope);
    this.#run();
  }

  get open() {
    return this.#response !== null;
  }

  get response() {
    return this.#response;
  }

  get cursor() {
    return this.#cursor;
  }

  get empty() {
    return this.topicSet.empty;
  }

  // ---- readers

  // Serves a reader from what is known here, if that is certain to be all that it misses, and no more.
  place(reader) {
    const topic = this.topicSet.topics.get(reader.key);
    const missed = topic && this.#missed(topic, reader.cursor);
    if (!missed) return false;
    this.topicSet.attach(reader, topic, this.#history.next);
    for (const event of missed) this.#scope.deliver([reader], event);
    if (this.open) this.#tellConnected([reader]);
    return true;
  }

  takes(reader) {
    return this.closed ? "never" : this.topicSet.takes(reader, this.#response);
  }

  add(reader) {
    this.topicSet.welcome(reader);
    this.poke();
  }

  // A reader of another connection that stands where this one does: it is connected already.
  adopt(reader) {
    reader.connection?.remove(reader);
    this.topicSet.attach(reader, this.topicSet.topics.get(reader.key), this.#history.next);
    if (!this.#catchUp.pending) this.#scope.tell([reader], "caught-up", {});
  }

  remove(reader) {
    this.topicSet.remove(reader);
    this.poke();
  }

  // Carries these from now on, beside its own, for readers that are still on other connections.
  host(keys) {
    this.topicSet.host(keys);
    this.poke();
  }

  // Those for whom the cursor is right, and newer than their own.
  readersBehind() {
    const readers = this.topicSet.readers(this.topicSet.kept);
    return readers.filter((reader) => reader.since < this.#cursorAt && reader.cursor !== this.#cursor);
  }

  #missed(topic, cursor) {
    const right = topic.settled && topic.anchored && this.#cursorAt >= Math.max(topic.from, topic.start);
    if (cursor === null || (right && cursor === this.#cursor)) return [];
    return this.#history.after(topic, cursor);
  }

  // ---- the connection, as others see it

  poke() {
    this.#sleeper.poke();
  }

  // Looks whether the connection is alive. With a reason to doubt it, sooner than by itself, and a connection that is lost is
  // tried again at once.
  check(reason = null) {
    const now = this.#environment.now();
    this.poke();
    if (!this.open) return reason ? this.#backoff.hurry() : undefined;
    this.#settle();
    const response = this.#response;
    response.at = Math.min(response.at, now); // the clock may have been set back
    const silent = now - response.at;
    if (silent > this.#silence) {
      if (!response.arrivals.beats) this.#silence = Math.min(this.#silence * 2, TIMES.longestSilence);
      this.#lose("nothing was heard for too long");
      this.#backoff.at = now;
    } else if (reason === "online" || (reason && silent > TIMES.doubt)) this.#doubtful = true;
  }

  // Whether everything that was sent before this time has arrived.
  hasAllSince(time) {
    return this.open && this.#response.arrivals.certain(time, this.#catchUp.pending ? Infinity : TIMES.drained);
  }

  // The same, as far as comments tell, and patience.
  seemsToHaveAllSince(time, patience) {
    return this.open && this.#response.arrivals.since(time, this.#catchUp.pending ? Infinity : patience);
  }

  // Asks the hub to tell. One that is about to, it asks when it has.
  sound(time) {
    if (!this.open || this.#catchUp.pending) return;
    this.#soundFrom = Math.max(this.#soundFrom ?? time, time);
    this.poke();
  }

  // Whether a topic's event has come here.
  hasSeen(topic, id) {
    return this.#history.has(id, topic);
  }

  close() {
    if (this.closed) return;
    this.closed = true;
    this.#hangUp();
    this.poke();
    this.#scope.ended(this);
  }

  #hangUp() {
    this.#response?.close();
    this.#catchUp?.close();
    this.#response = this.#catchUp = this.#offered = this.#soundFrom = null;
  }

  // ---- the loop

  async #run() {
    await null; // readers that come in one turn are one request
    while (!this.closed) {
      if (!(await this.#step(this.#environment.now()))) await this.#sleeper.until(this.#wakeAt());
    }
  }

  // Resolves to whether there was something to do.
  async #step(now) {
    const grant = this.#scope.grant;
    const {emptySince, guests} = this.topicSet;
    if (emptySince !== null && now - emptySince >= TIMES.linger && guests.size === 0) return this.close();
    if (!grant || now < this.#backoff.at) return false;
    return this.open ? this.#change(grant) : this.#connect(grant);
  }

  #wakeAt() {
    const now = this.#environment.now();
    const times = [this.#backoff.at, this.#grant?.refreshAt, (this.#soundFrom ?? 0) + 1, ...this.topicSet.deadlines];
    return Math.min(...times.filter((time) => time > now));
  }

  // ---- connecting

  // What was carried before goes on after the last event; with nothing of that kind, the first readers say from where.
  async #connect(grant) {
    this.topicSet.drop(this.topicSet.idle(grant));
    const kept = this.topicSet.kept.map((topic) => topic.key);
    const fresh = kept.length > 0 ? {keys: [], from: this.#cursor} : this.topicSet.group();
    if (kept.length + fresh.keys.length === 0) return false;
    const response = await this.#opened(grant, [...kept, ...fresh.keys], fresh.from);
    if (!response) return true;
    const from = this.#history.next;
    if (kept.length === 0) [this.#cursor, this.#cursorAt] = [fresh.from, from];
    this.#use(response, grant, fresh.from, kept, fresh.keys, {base: fresh.from, settled: true, anchored: fresh.from !== null, from});
    return true;
  }

  // Another connection, from the last event, and then the end of this one. What both have is known by its id; what is fresh comes
  // from there, too, and is behind the others for a while.
  async #replace(grant, fresh = []) {
    const idle = this.topicSet.idle(grant);
    const kept = this.topicSet.kept.filter((topic) => !idle.includes(topic)).map((topic) => topic.key);
    if (kept.length + fresh.length === 0) return this.#lose("the stream is not to be changed");
    const from = this.#cursor;
    const response = await this.#opened(grant, [...kept, ...fresh], from);
    if (!response) return true;
    this.#use(response, grant, from, kept, fresh, {base: null, settled: false, anchored: from !== null});
    return true;
  }

  // A connection, or null when none was to be had; then there is a time to try again. One that was asked for before a gap is of no
  // use behind it: it would bring what was lost after what came since.
  async #opened(grant, keys, from) {
    const response = new StreamResponse(this.#environment);
    const {gaps} = this.#history;
    this.#backoff.begin();
    try {
      const refusal = await response.open(grant, this.topicSet.query(keys), {from, plain: this.#plain, names: this.#scope.namesMatchers});
      const tells = !this.#scope.namesMatchers || keys.length === 1 || response.capability !== null;
      if (!refusal && tells && !this.closed && gaps === this.#history.gaps) return response;
      response.close();
      if (refusal && !this.closed) this.#refused(grant, refusal, keys);
      else if (!tells && !this.closed) this.#scope.separate();
    } catch {
      // To a hub of another origin that does not know our header the browser sends nothing at all.
      if (response.isForeign(grant)) this.#plain = !this.#plain;
      if (!this.closed) this.#failed("the hub does not answer");
    }
    return null;
  }

  #refused(grant, {status, retryAfter}, keys) {
    if (status === 401 || status === 403) this.#scope.refused(grant, status);
    if (isRejection(status)) this.#rejected(status, keys);
    this.#failed(`the hub answered ${status}`, {status, retryAfter});
  }

  // One of several topics may be to blame, or that they are so many: which, is seen when they are asked for one by one.
  #rejected(status, keys) {
    if (!this.#scope.rejected(status, keys)) return;
    this.topicSet.oneByOne = true;
    if (!this.open) this.topicSet.drop(this.topicSet.all);
  }

  #failed(reason, detail = {}) {
    this.#backoff.fail();
    this.#wait(reason, detail);
  }

  #wait(reason, {status = null, retryAfter = 0} = {}) {
    const pause = this.#backoff.postpone(retryAfter);
    if (!this.open) this.#scope.tell([...this.topicSet.readers(), ...this.topicSet.newcomers], "reconnecting", {reason, status, pause});
  }

  // From now on this is the connection; it carries fresh topics beside those that are kept. The others are dropped: what has settled
  // while it was opened, it was not opened for.
  #use(response, grant, from, kept, fresh, options) {
    this.#hangUp();
    this.topicSet.drop(this.topicSet.all.filter((topic) => !kept.includes(topic.key)));
    this.#response = response;
    this.#catchUp = new CatchUp(this.#environment, response.arrivals, () => this.#scope.tell(this.topicSet.readers(), "caught-up", {}));
    this.#grant = grant;
    this.#backoff.succeed();
    this.#doubtful = false;
    this.topicSet.leaving.clear();
    this.topicSet.carry(fresh, {joined: true, since: this.#history.next, ...options});
    const lost = from !== null && from !== "earliest" && response.resumed !== null && response.resumed !== from;
    this.#gapTold = lost;
    const mine = (handler) => (value) => response === this.#response && handler(value);
    response.read({
      onevent: mine((event) => this.#receive(event)),
      onmark: mine((id) => this.#markAll(id)),
      onretry: mine((wait) => (this.#backoff.retry = wait)),
      onoversize: mine((id) => this.#oversize(id)),
      oncomment: mine(() => this.#hear()),
      onend: mine((reason) => this.#lose(reason)),
    });
    if (from !== null) this.#catchUp.begin(response.question);
    else this.#soundFrom = response.openedAt; // to have a cursor
    this.#tellConnected(this.topicSet.readers());
    if (lost) this.#lack(this.topicSet.all, {reason: "unknown", lastEventId: from});
    this.#scope.opened(this);
  }

  #lose(reason) {
    this.#hangUp();
    this.#wait(reason);
    const {all, kept} = this.topicSet;
    this.topicSet.drop(all.filter((topic) => !kept.includes(topic)));
    this.poke();
    return true;
  }

  // ---- changing the stream

  async #change(grant) {
    if (this.#doubtful || grant.hub !== this.#grant.hub) return this.#replace(grant);
    const group = this.topicSet.group();
    const idle = this.topicSet.idle(grant);
    const refreshed = grant !== this.#grant && this.#environment.now() >= this.#grant.refreshAt;
    // A stream has at least one topic. Without readers this connection ends soon.
    if (idle.length === this.topicSet.topics.size && group.keys.length === 0) return false;
    const {capability, arrivals} = this.#response;
    if (capability) {
      const matters = group.keys.length + idle.length > 0 || refreshed || arrivals.lacks(this.#soundFrom);
      return matters || arrivals.unsure ? this.#post(grant, group, idle, matters) : false;
    }
    // Readers that come from a cursor need a connection of their own. Idle topics wait for another reason to make a new connection, and
    // guests until those before them have settled.
    if (group.from !== null) this.topicSet.sendAway([...this.topicSet.newcomers]);
    const settled = this.topicSet.settled.length === this.topicSet.topics.size;
    const fresh = group.from === null && (settled || this.topicSet.newcomers.size > 0) ? group.keys : [];
    return fresh.length > 0 || refreshed ? this.#replace(grant, fresh) : group.from !== null;
  }

  // Topics are added before the hub is asked, since its stream may be faster than its answer.
  async #post(grant, group, idle, matters) {
    const response = this.#response;
    const options = {base: group.from, joined: false, settled: group.from === null, since: this.#history.next};
    const added = this.topicSet.carry(group.keys, options);
    const body = this.topicSet.query(this.topicSet.all.filter((topic) => !idle.includes(topic)).map((topic) => topic.key));
    // With a last event id the hub tells when everything has arrived. It goes back only for what is added; what is to begin now
    // must not go back.
    const from = added.length > 0 ? group.from : this.#cursor ?? "earliest";
    if (from !== null) body.append("last_event_id", from);
    const before = {cursor: this.#cursor, next: this.#history.next};
    const answer = await response.change(grant, body, {matters});
    if (this.closed || response !== this.#response) return true;
    const {status, retryAfter} = answer;
    if (status === 204) this.#changed(grant, added, idle, {...answer, before});
    else if (status === 401 || status === 429) {
      this.topicSet.drop(added);
      if (status === 401) this.#scope.refused(grant, status);
      this.#failed(`the hub answered ${status}`, {status, retryAfter});
    } else if (isRejection(status) && this.#scope.namesMatchers && added.length > 0) {
      if (added.length === 1) this.#scope.setApart(added[0].key);
      else this.#rejected(status, group.keys);
      this.topicSet.drop(added);
    } else this.#doubtful = true; // the stream is gone, is another's, or nobody knows whether it was changed
    return true;
  }

  #changed(grant, added, idle, {position, question, before}) {
    const change = {at: this.#environment.now(), question};
    this.#backoff.succeed();
    this.#grant = grant;
    for (const topic of added) Object.assign(topic, {joined: true, ...change});
    for (const topic of idle) this.topicSet.leaving.set(topic.key, change);
    this.topicSet.drop(idle); // with whoever has come back to it meanwhile
    if (added.length > 0 && question === null) this.#soundFrom = change.at; // for the topics to be anchored
    this.#offered = position && position !== "earliest" ? {cursor: position, before, ...change} : null;
    if (added.some((topic) => topic.readers.size > 0)) {
      if (question) this.#catchUp.begin(question);
      this.#tellConnected(this.topicSet.readers(added));
    }
    this.#settle(); // the stream may have been faster
    this.#scope.opened(this);
  }

  // ---- events

  #receive(event) {
    if (event.type === "mercure" && this.#control(event)) return;
    this.#catchUp.prolong();
    const {matchers, ...said} = event;
    const topics = this.topicSet.topicsOf(said, this.#response.matchersOf(event)).filter((topic) => !said.identified || !this.#history.has(said.id, topic));
    for (const topic of topics) this.#history.note(topic, said, this.#environment.now());
    const readers = this.topicSet.readers(topics);
    this.#scope.deliver(readers, said);
    for (const reader of readers) reader.since = this.#history.next;
    const settled = topics.filter((topic) => topic.settled && topic.whollyThere);
    if (said.identified && settled.length > 0) this.#mark(said.id, {topics: settled});
  }

  // The cursor is right for what has settled. `at`: the number in the history of what may come after it.
  #mark(id, {topics = [], at = this.#history.next} = {}) {
    [this.#cursor, this.#cursorAt] = [id, at];
    this.topicSet.anchor(topics);
    this.#scope.moved(this);
  }

  // Of an id without a topic nobody knows where it is while others catch up.
  #markAll(id) {
    if (this.topicSet.kept.length === this.topicSet.topics.size) this.#mark(id);
  }

  // The hub's own events: returns whether this was one that is not for readers.
  #control(event) {
    const document = parsed(event.data);
    if (document?.type !== "gap") return false;
    const topics = this.topicSet.lost(document);
    const settled = topics.some((topic) => topic.settled);
    // The header of the answer may have said it already.
    const told = this.#gapTold && settled && document.reason === "unknown";
    if (told) this.#gapTold = false;
    else this.#lack(topics, {reason: document.reason, lastEventId: document.last_event_id});
    if (event.identified && settled) this.#mark(event.id);
    return true;
  }

  #oversize(id) {
    this.#lack(this.topicSet.all, {reason: "oversize", lastEventId: id});
    if (id) this.#markAll(id);
  }

  #lack(topics, detail) {
    this.#history.interrupt(topics, this.#environment.now());
    this.#scope.tell(this.topicSet.readers(topics), "gap", detail);
  }

  // ---- what has arrived

  #hear() {
    this.#catchUp.look();
    this.#settle();
    if (this.#response.arrivals.unsure) this.poke();
  }

  // When everything has arrived, added topics have caught up, those that were taken off may come again, and the position is
  // reached that the hub told with a change, unless another is known that may be newer.
  #settle() {
    const {arrivals} = this.#response;
    const {all, leaving} = this.topicSet;
    for (const [key, change] of leaving) if (arrivals.behind(change)) leaving.delete(key);
    for (const topic of all) {
      if (topic.from < Infinity || !topic.joined || !arrivals.behind(topic)) continue;
      Object.assign(topic, {settled: true, from: this.#history.next});
    }
    const offered = this.#offered;
    if (offered && arrivals.behind(offered)) {
      const {cursor, next} = offered.before;
      if (cursor === this.#cursor) this.#mark(offered.cursor, {at: next});
      this.#offered = null;
    }
    this.#scope.settled();
  }

  #tellConnected(readers) {
    this.#scope.tell(readers, "connected", {});
    if (!this.#catchUp.pending) this.#scope.tell(readers, "caught-up", {});
  }
}
