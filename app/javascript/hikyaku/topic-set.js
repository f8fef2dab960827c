// What a stream carries, and for whom.

import {LIMITS, TIMES} from "./limits.js";

// What a connection knows of one of its topics.
//
// base       the cursor from which its events came; null: from when it was added
// joined     the hub has said that the stream carries it
// at         since when; `question` is what it was asked for with, if it was one: see ArrivalTracker
// settled    its events come in order with those of the others. Not so when it was added with a cursor, for which the hub went back,
//            until it has caught up
// anchored   the stream's cursor is right for it, too: what comes after that, has come for this topic here, or is to come. Not so
//            where the cursor is from before the topic was added, until it is moved: taken up from there, the stream would bring
//            what its readers had before they came
// from       the number in the history from which on no event that was sent before it was added can be
// shared     a part of what it selects came already when it was added, for another topic: until it has settled (`from`), what comes need
//            not be all that it selects, and nothing follows from it
// start      the number in the history before which nothing tells what follows, since something was lost there; at the time `brokenAt`
class Topic {
  readers = new Set();
  whole = true; // all events since `base` are in the history
  lastId = null;
  lastAt = -Infinity;
  emptySince = null;
  question = null;
  start = 0;
  brokenAt = -Infinity;

  constructor(key, {base, joined, settled, anchored = false, from = Infinity, shared = false, at}) {
    Object.assign(this, {key, base, joined, settled, anchored, from, shared, at});
  }

  // Whether all that it selects comes, as far as is known.
  get whollyThere() {
    return !this.shared || this.from < Infinity;
  }

  // Since when its events come without a gap.
  get steadyAt() {
    return Math.max(this.at, this.brokenAt);
  }

  // Something is lost. Who comes later with a cursor from before must be told, too: nothing from before is known to be followed by what
  // comes now. The stream's cursor is moved behind the gap for what has settled; for others it would bring what was lost, too late.
  interrupt(number, time) {
    const anchored = this.anchored && this.settled;
    Object.assign(this, {whole: false, lastId: null, lastAt: -Infinity, start: number, brokenAt: time, anchored});
  }
}

export class TopicSet {
  #environment;
  #connection;
  #scope;
  topics = new Map(); // what the stream carries, by key
  newcomers = new Set(); // readers of topics that it is to carry
  guests = new Set(); // keys that it is to carry for the readers of another connection
  leaving = new Map(); // keys of topics taken off, of which events may still be on their way, and by which change
  emptySince;
  oneByOne = false; // topics are added each by itself, since the hub has not taken some together

  constructor(environment, connection, scope) {
    this.#environment = environment;
    this.#connection = connection;
    this.#scope = scope;
    this.emptySince = environment.now();
  }

  get all() {
    return [...this.topics.values()];
  }

  get settled() {
    return this.all.filter((topic) => topic.settled);
  }

  // What goes on after the cursor when the connection is made again.
  get kept() {
    return this.all.filter((topic) => topic.settled && topic.anchored);
  }

  get empty() {
    return this.newcomers.size === 0 && this.readers().length === 0;
  }

  readers(topics = this.all) {
    return topics.flatMap((topic) => [...topic.readers]);
  }

  // One that the stream carries for certain.
  topic(key) {
    const topic = this.topics.get(key);
    return topic?.joined ? topic : null;
  }

  get keysRead() {
    return this.all.filter((topic) => topic.readers.size > 0).map((topic) => topic.key);
  }

  readersOf(key) {
    return [...(this.topics.get(key)?.readers ?? [])];
  }

  query(keys) {
    const matchers = keys.flatMap((key) => this.#scope.matchers(key));
    return new URLSearchParams([...new Map(matchers.map((matcher) => [matcher.join(" "), matcher])).values()]);
  }

  // Whether the stream has a matcher of a key already, for another topic, or had until a moment ago.
  shares(key) {
    const others = [...this.topics.keys(), ...this.leaving.keys()].filter((other) => other !== key);
    const carried = new Set(others.flatMap((other) => this.#scope.matchers(other)).map((matcher) => matcher.join(" ")));
    return this.#scope.matchers(key).some((matcher) => carried.has(matcher.join(" ")));
  }

  // The topics for which an event is.
  topicsOf(event, matchers) {
    return [...this.#scope.keysOf(event, matchers)].map((key) => this.topics.get(key)).filter(Boolean);
  }

  hasRoomFor(key) {
    const keys = new Set([...this.topics.keys(), ...this.guests, ...[...this.newcomers].map((reader) => reader.key), key]);
    const query = this.query([...keys]);
    return keys.size === 1 || ([...query].length <= LIMITS.names && query.toString().length <= LIMITS.queryLength);
  }

  host(keys) {
    this.guests = new Set(keys.filter((key) => this.topics.has(key) || (!this.leaving.has(key) && this.hasRoomFor(key))));
  }

  // ---- readers

  // Whether a reader's topic can be added from the reader's cursor: "now", "later", "never"; "full" when it is one too many.
  // `connection`: null while there is none.
  takes(reader, response) {
    const rivals = [...this.newcomers].filter((other) => other.key === reader.key);
    if (rivals.length > 0) return rivals[0].cursor === reader.cursor ? "now" : "later";
    if (this.topics.has(reader.key) || this.leaving.has(reader.key)) return "never";
    if (!this.hasRoomFor(reader.key)) return "full";
    // What is carried already goes on, and is not sent again from an earlier event on.
    if (response) return reader.cursor === null || (response.capability && !this.shares(reader.key)) ? "now" : "never";
    if (this.kept.length > 0 || [...this.newcomers].some((other) => other.cursor !== reader.cursor)) return "later";
    return "now";
  }

  welcome(reader) {
    reader.connection = this.#connection;
    this.newcomers.add(reader);
    this.emptySince = null;
  }

  // `since`: the number in the history of what it gets next.
  attach(reader, topic, since) {
    reader.connection = this.#connection;
    reader.since = since;
    topic.readers.add(reader);
    topic.emptySince = this.emptySince = null;
  }

  remove(reader) {
    this.newcomers.delete(reader);
    const topic = this.topics.get(reader.key);
    if (topic?.readers.delete(reader) && topic.readers.size === 0) topic.emptySince = this.#environment.now();
    if (this.empty) this.emptySince = this.#environment.now();
    reader.connection = null;
  }

  // To be placed again, each from its own cursor.
  sendAway(readers) {
    for (const reader of readers) {
      this.newcomers.delete(reader);
      reader.connection = null;
      this.#scope.again(reader);
    }
  }

  // ---- topics

  // What is to be added next: the newcomers that come from one cursor, or else the guests.
  group() {
    const missing = (key) => !this.topics.has(key);
    const [first] = this.newcomers;
    const same = [...this.newcomers].filter((reader) => reader.cursor === first?.cursor).map((reader) => reader.key);
    const keys = [...new Set(first ? same : this.guests)].filter(missing);
    return {keys: this.oneByOne ? keys.slice(0, 1) : keys, from: first?.cursor ?? null};
  }

  // Topics that nobody has read for a while, or that the token does not grant any more, since nobody reads them.
  idle(grant) {
    const before = this.#environment.now() - TIMES.linger;
    const unread = this.all.filter((topic) => topic.emptySince !== null && !this.guests.has(topic.key));
    return unread.filter((topic) => topic.emptySince <= before || !grant.keys.has(topic.key));
  }

  // When it or one of its topics has been empty for long enough.
  get deadlines() {
    const empty = [this.emptySince, ...this.all.map((topic) => topic.emptySince)].filter((time) => time !== null);
    return empty.map((time) => time + TIMES.linger);
  }

  // Topics are on the stream, or about to be, and with them the newcomers that come from there.
  carry(keys, options) {
    const shared = keys.map((key) => this.shares(key));
    const topics = keys.map((key, index) => this.#carry(key, {...options, shared: shared[index]}));
    this.sendAway([...this.newcomers].filter((reader) => reader.cursor !== null && this.shares(reader.key)));
    return topics;
  }

  #carry(key, {since, ...options}) {
    const topic = new Topic(key, {...options, at: this.#environment.now()});
    topic.emptySince = topic.at;
    this.topics.set(key, topic);
    const newcomers = [...this.newcomers].filter((reader) => reader.key === key);
    for (const reader of newcomers.filter((each) => each.cursor === topic.base)) {
      this.newcomers.delete(reader);
      this.attach(reader, topic, since);
    }
    this.sendAway(newcomers.filter((reader) => reader.cursor !== topic.base));
    return topic;
  }

  // The cursor is that of an event which came behind everything that was sent before these were added; or of these topics' own.
  anchor(own) {
    for (const topic of this.all) topic.anchored ||= topic.settled && (own.includes(topic) || topic.from < Infinity);
  }

  // Takes topics off.
  drop(topics) {
    for (const topic of topics) {
      this.topics.delete(topic.key);
      this.sendAway(topic.readers);
    }
    if (this.empty) this.emptySince ??= this.#environment.now();
  }

  // The time from before which everything is here that the readers missed, as the hub has told; null where it has not, or a change of the
  // stream is under way.
  caughtUpFrom({question, arrivals}) {
    const questions = [question, ...this.all.map((topic) => topic.question).filter(Boolean)];
    const certain = this.newcomers.size === 0 && this.all.every((topic) => topic.joined) && questions.every((each) => each && arrivals.has(each));
    return certain ? Math.min(...questions.map(({at}) => at)) : null;
  }

  // Those of which something is missing, as an event of the hub's says.
  lost({matches, reason, last_event_id: lastEventId}) {
    if (Array.isArray(matches)) {
      const patterns = new Set(matches.map((each) => each?.match));
      return this.all.filter((topic) => this.#scope.matchers(topic.key).some(([, pattern]) => patterns.has(pattern)));
    }
    const added = this.all.filter((topic) => reason === "unknown" && !topic.settled && topic.base === lastEventId);
    return added.length > 0 ? added : this.all;
  }
}
