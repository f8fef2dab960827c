// Hikyaku in the browser: one connection for all tabs, and nothing lost or repeated. No dependencies, nothing to build.
//
//     import {Hikyaku} from "hikyaku";
//
//     Hikyaku.connect({token endpoint: "/hikyaku/streams"}).stream(signedName, {cursor, onmessage: (event) => show(event.data)});
//     Hikyaku.subscribe("/.well-known/mercure", {match: ["/books/1"], onmessage: (event) => show(event.data)});
//     <hikyaku-stream-source signed-stream-name="…" cursor="…" src="/hikyaku/streams"></hikyaku-stream-source>
//
// This is the page's module and also the shared worker's: see worker-file.js. From the network to the page:
//
//     EventParser   bytes → events (HTML standard, "Server-sent events")
//     Connection    one response; ArrivalTracker: what of it has arrived
//     SharedConnection         one connection that is made again, and carries the topics of many readers, in order, once; TopicSet: which
//     TokenScope       what one token endpoint grants: a token for up to 100 streams, and the connections that use it
//     Coordinator      the readers of all tabs; lives in the shared worker, or in one of the tabs
//     Link          between a tab and the coordinator:  WorkerLink, LeaderLink (no shared workers here), PageLink (no locks either)
//     Tab           the streams of a page, which it asks the coordinator for, and again when that is gone
//     Stream        what the page holds in its hand
//
// A cursor is the id of an event: everything up to it is in the page. Ids have no order that a browser could see, so
// that nothing here compares two: what comes after a cursor, the hub says, or the order in which a connection received events.
//
// There is a module for each of these in app/javascript/hikyaku. They run as they are wherever relative addresses lead to them;
// bin/javascript joins them to the one file that is served, app/assets/javascripts/hikyaku.js. For asset pipelines put digests into the
// names of files, to which relative imports do not lead, and an import map, which might, does not hold in a shared worker. One
// file is also one request for a page, and none for its worker.

// ---- limits.js ------------------------------------------------------------------------------------------------------

// How much, and how long.

const LIMITS = Object.freeze({
  eventLength: 16 * 1024 * 1024, // characters of one event
  idLine: 2_000, // characters of a line that are kept of an event that is longer
  ids: 10_000, // that a connection remembers, against repeats
  history: 1_000, // events that a connection keeps for readers that come later
  historyLength: 1024 * 1024, // the same in characters
  names: 100, // streams of one token, and matchers of one connection
  namesLength: 60_000, // characters of the names that a token endpoint is asked for at once
  queryLength: 7_500, // characters of a subscription's URL, which servers bound
  connections: 2, // of one token scope, while readers that cannot be placed elsewhere catch up
  unread: 1_000, // messages that a tab may leave unread
  unreadLength: 4 * 1024 * 1024, // the same in characters
});

const SECOND = 1_000;

const TIMES = Object.freeze({
  gather: 20, // readers that come together are one request
  answer: 30 * SECOND, // in which the hub and the token endpoint answer
  retry: SECOND, // before a connection is made again, unless the hub says otherwise
  longestRetry: 30 * SECOND,
  longestRetryAfter: 600 * SECOND,
  silence: 60 * SECOND, // without a byte: the connection is dead; hubs send a comment earlier
  longestSilence: 900 * SECOND,
  doubt: 20 * SECOND, // without a byte, and then a reason to doubt the connection
  skew: SECOND, // by which the stream and the answers to other requests may be apart
  linger: 1_500, // that a topic is carried on without readers: pages come and go
  merge: 250, // between attempts to do with one connection
  tick: 5 * SECOND,
  mark: 5 * SECOND, // between news of the cursor for tabs
  ping: 25 * SECOND,
  pong: 10 * SECOND,
  firstWord: 2 * SECOND, // of a worker; after that the tabs go on without it, and go back to it when it speaks
  dead: 600 * SECOND, // for which a worker that never spoke is not started again
  tabGone: 180 * SECOND, // browsers let hidden tabs speak once a minute

  // For hubs that do not tell when a stream has caught up, as those of other makes: see arrival-tracker.js. There is nothing but time to
  // go by, and it is a guess.
  quiet: 300, // without a byte after what was missed: caught up
  longestCatchUp: 5 * SECOND,
  drained: 20 * SECOND, // after which nothing is on its way any more
  impatience: 3 * SECOND, // the same, where readers wait for a place
});

// ---- parser.js ------------------------------------------------------------------------------------------------------

// Parses an event stream as its bytes arrive, in pieces cut anywhere (HTML standard, section 9.2.6).
//
// onevent({id, type, data, identified})   identified: the event has an id of its own. And matchers, where the hub names those that selected
//                                         it: a list of [parameter, pattern], as they were asked for
// onmark(id)      an id without data           oncomment(text)
// onretry(ms)                                  onoversize(id)   an event was larger than it may be, and is left out
class EventParser {
  #decoder = new TextDecoder(); // takes a byte order mark away, and waits for the rest of a character
  #handlers;
  #limit;
  #line = "";
  #lineSize = 0;
  #afterReturn = false;
  #size = 0; // of the lines of an event
  #cut = false;
  #data = [];
  #type = "";
  #id = null;
  #matchers = [];
  #lastEventId = "";

  constructor(handlers, {limit = LIMITS.eventLength} = {}) {
    this.#handlers = handlers;
    this.#limit = limit;
  }

  push(bytes) {
    const text = this.#decoder.decode(bytes, {stream: true});
    if (text === "") return;
    // The pair CR LF was cut in two: the line has ended already.
    let start = this.#afterReturn && text[0] === "\n" ? 1 : 0;
    const ends = /\r\n?|\n/g;
    ends.lastIndex = start;
    for (let end = ends.exec(text); end; end = ends.exec(text)) {
      this.#hold(text.slice(start, end.index));
      this.#read();
      start = ends.lastIndex;
    }
    this.#afterReturn = text.endsWith("\r");
    this.#hold(text.slice(start));
  }

  // Of what is too large, lines are kept that may be an id.
  #hold(text) {
    this.#lineSize += text.length;
    if (this.#size + this.#lineSize <= this.#limit) return void (this.#line += text);
    this.#line = (this.#line + text.slice(0, LIMITS.idLine)).slice(0, LIMITS.idLine);
    if (this.#line.startsWith(":")) return;
    this.#cut = true;
    this.#data = [];
  }

  #read() {
    const [line, whole] = [this.#line, this.#line.length === this.#lineSize];
    if (line.startsWith(":")) this.#handlers.oncomment?.(line.slice(1).trim());
    else this.#size += this.#lineSize;
    this.#line = "";
    this.#lineSize = 0;
    if (line === "") this.#dispatch();
    else if (whole) this.#field(line);
  }

  #field(line) {
    const colon = line.indexOf(":");
    const name = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (name === "data") this.#cut || this.#data.push(value);
    else if (name === "event") this.#type = value;
    else if (name === "id" && !value.includes("\0")) this.#id = value;
    else if (name === "match" || name === "match_urlpattern") this.#matchers.push([name, value]);
    else if (name === "retry" && /^[0-9]+$/.test(value)) this.#handlers.onretry?.(Number(value));
  }

  #dispatch() {
    const identified = this.#id !== null;
    if (identified) this.#lastEventId = this.#id;
    const id = this.#lastEventId;
    const [data, type, cut] = [this.#data, this.#type || "message", this.#cut];
    const names = this.#matchers.length > 0 ? {matchers: this.#matchers} : {};
    this.#data = [];
    this.#type = "";
    this.#id = null;
    this.#matchers = [];
    this.#size = 0;
    this.#cut = false;
    if (cut) this.#handlers.onoversize?.(id);
    else if (data.length > 0) this.#handlers.onevent?.({id, type, data: data.join("\n"), identified, ...names});
    else if (identified) this.#handlers.onmark?.(id);
  }
}

// ---- requests.js ----------------------------------------------------------------------------------------------------

// What requests have in common: how long they may take, and when they are made again.

// Milliseconds until the next attempt: never less than the server told, longer after each failure, and different for
// everybody, so that those who lost their hub together do not come back together.
function pauseAfter(failures, {retry = null, retryAfter = 0, random = Math.random} = {}) {
  const grown = Math.min((retry ?? TIMES.retry) * 1.7 ** Math.max(0, failures - 1), Math.max(TIMES.longestRetry, retry ?? 0));
  const wait = retry === null ? grown * (0.5 + random()) : grown * (1 + random() / 2);
  return Math.max(wait, Math.min(retryAfter, TIMES.longestRetryAfter) * (1 + random() / 5));
}

// RFC 9110 section 10.2.3: seconds, or a date.
function retryAfterOf(response, environment) {
  const value = response.headers.get("retry-after") ?? "";
  if (/^\d+$/.test(value)) return Number(value) * SECOND;
  return Math.max(0, Date.parse(value) - (Date.parse(response.headers.get("date") ?? "") || environment.now())) || 0;
}

// With a limit of time, since a request may wait for ever for a place among the browser's connections.
async function fetchWithin(environment, url, init, abort = new AbortController()) {
  const timer = environment.setTimeout(() => abort.abort(), TIMES.answer);
  try {
    return await environment.fetch(url, {cache: "no-store", ...init, signal: abort.signal});
  } finally {
    environment.clearTimeout(timer);
  }
}

// Whether a server does not take what it is asked, and will not later either.
function isRejection(status) {
  return status >= 400 && status < 500 && ![401, 403, 404, 408, 410, 425, 429].includes(status);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// ---- tokens.js ------------------------------------------------------------------------------------------------------

// What the token says of itself: nothing here depends on its being true.
function claimsOf(token) {
  try {
    const bytes = Uint8Array.from(atob(token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0));
    return Object(JSON.parse(new TextDecoder().decode(bytes)));
  } catch {
    return {};
  }
}

// Tokens of the same rights use the same connection, whenever they were made.
function rightsOf(token) {
  const {exp, iat, nbf, jti, ...rights} = claimsOf(token ?? "");
  return token === null ? null : JSON.stringify(rights);
}

function authorization(grant) {
  return grant.token ? {Authorization: `Bearer ${grant.token}`} : {};
}

// ---- token-sources.js -----------------------------------------------------------------------------------------------

// Who lets readers in: a token endpoint is asked with names, and answers with what they stand for, and a token that grants it.

// It is of no use to ask again.
class Refusal extends Error {
  constructor(reason, status = null) {
    super(reason);
    Object.assign(this, {reason, status});
  }
}

// It may be of use, later.
class Failure extends Error {
  constructor(reason, {status = null, retryAfter = 0} = {}) {
    super(reason);
    Object.assign(this, {reason, status, retryAfter});
  }
}

// The application's token endpoint: signed names are exchanged for topics and a token that grants them.
//
//     POST {"names": ["signed", …]} → {"hub": URL, "token": JWT, "expires_at": seconds, "topics": {"signed": topic},
//                                      "refused": {"signed": reason}, "types": {"signed": type}, "patterns": {"signed": pattern},
//                                      "failed": ["signed", …], "singly": ["signed", …]}
//
// An event belongs to the topic whose type it has: the type is the topic, unless `types` says another. With a pattern come the
// hub's own events about the topic's subscriptions, to which the pattern matches. What is answered for a name of `singly` says nothing of
// other names of its topic, and may be another topic next time. Names of `failed` are to be asked about again.
class TokenEndpoint {
  #environment;
  #url;

  constructor(environment, {endpoint}) {
    this.#environment = environment;
    this.#url = endpoint;
  }

  async ask(names) {
    const headers = {"Content-Type": "application/json", Accept: "application/json"};
    let response;
    try {
      // A redirection leads to a page, where somebody is to sign in.
      response = await fetchWithin(this.#environment, this.#url,
        {method: "POST", headers, body: JSON.stringify({names}), credentials: "same-origin", redirect: "manual"});
    } catch {
      throw new Failure("the token endpoint does not answer");
    }
    const {status} = response;
    if (status >= 500 || status === 408 || status === 425 || status === 429) {
      throw new Failure(`the token endpoint answered ${status}`, {status, retryAfter: retryAfterOf(response, this.#environment)});
    }
    if (status !== 200) throw new Refusal({401: "unauthorized", 403: "forbidden", 404: "not_found"}[status] ?? "rejected", status);
    return this.#read(names, await response.json().catch(() => null), Date.parse(response.headers.get("date") ?? ""));
  }

  // The life of the token is counted from the server's own time, which is told in whole seconds: the browser's clock may be wrong.
  #read(names, answer, servedAt) {
    if (typeof answer?.token !== "string" && Object.keys(answer?.topics ?? {none: true}).length > 0) throw new Failure("the token endpoint's answer is not understood");
    const now = Number.isNaN(servedAt) ? this.#environment.now() : servedAt;
    const lifetime = Math.max(SECOND, Number(answer.expires_at) * SECOND - now - SECOND || Infinity);
    const keys = new Map();
    const refused = new Map();
    const failed = new Set(answer.failed);
    for (const name of names) {
      const topic = answer.topics?.[name];
      const pattern = answer.patterns?.[name];
      const matchers = [["match", topic], ...(pattern ? [["match_urlpattern", pattern]] : [])];
      if (typeof topic === "string") keys.set(name, {key: topic, type: answer.types?.[name] ?? topic, matchers});
      else if (!failed.has(name)) refused.set(name, answer.refused?.[name] ?? "invalid");
    }
    return {hub: new URL(answer.hub, this.#url).href, token: answer.token ?? null, lifetime, keys, refused, failed, credentials: "same-origin", singly: new Set(answer.singly)};
  }

  disown() {}
}

// No token endpoint: the page knows the hub, the topics and a token, if it takes one, or how to get one. A name is the list of the matchers.
class PageTokens {
  #want;
  #disowned = new Set();

  constructor(_environment, want) {
    this.#want = want;
  }

  async ask(names, readers, due) {
    const {hub, credentials} = this.#want;
    const token = await this.#token([...readers], due);
    const {exp, iat} = claimsOf(token ?? "");
    const lifetime = [...readers].some((reader) => reader.want.asks) && exp > iat ? (exp - iat) * SECOND : Infinity;
    const keys = new Map(names.map((name) => [name, {key: name, type: null, matchers: JSON.parse(name)}]));
    return {hub, token, lifetime, credentials, keys, refused: new Map(), failed: new Set(), singly: new Set()};
  }

  // A token that the hub did not take is not shown again.
  disown(token) {
    this.#disowned.add(token);
  }

  // The one that lasts longest of those that the tabs have brought.
  async #token(readers, due) {
    const usable = readers.map((reader) => reader.token).filter((token) => !this.#disowned.has(token));
    const asking = readers.find((reader) => reader.want.asks);
    if (asking && (due || usable.length === 0)) return asking.token = await asking.line.askForToken(asking);
    if (usable.length === 0) throw new Refusal("unauthorized", 401);
    return usable.reduce((best, token) => ((claimsOf(token ?? "").exp ?? 0) > (claimsOf(best ?? "").exp ?? 0) ? token : best));
  }
}

// ---- backoff.js -----------------------------------------------------------------------------------------------------

// When a connection is tried again.

class Backoff {
  #environment;
  #failures = 0;
  #begunAt = 0;
  at = 0; // the next one is not before
  retry = null; // the pause that the hub has told

  constructor(environment) {
    this.#environment = environment;
  }

  begin() {
    this.#begunAt = this.#environment.now();
  }

  succeed() {
    this.at = this.#failures = 0;
  }

  fail() {
    this.#failures += 1;
  }

  // Returns the milliseconds until the next.
  postpone(retryAfter) {
    const pause = pauseAfter(this.#failures, {retry: this.retry, retryAfter, random: this.#environment.random});
    this.at = this.#environment.now() + pause;
    return pause;
  }

  // There is a reason to try at once; but a storm of reasons is no storm of attempts.
  hurry() {
    this.at = Math.min(this.at, Math.max(this.#environment.now(), this.#begunAt + SECOND));
  }
}

// ---- topic-set.js ---------------------------------------------------------------------------------------------------

// What a stream carries, and for whom.

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

class TopicSet {
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

// ---- catch-up.js ----------------------------------------------------------------------------------------------------

// When readers have caught up with what they missed: when the hub tells. Where it doesn't, when it sends a comment, or nothing
// for a moment; but a stream on which something comes all the time is not waited for for ever.

class CatchUp {
  #environment;
  #arrivals;
  #done;
  #question = null;
  #timer = null;
  #until = 0;

  constructor(environment, arrivals, done) {
    this.#environment = environment;
    this.#arrivals = arrivals;
    this.#done = done;
  }

  // Whether something may be missing.
  get pending() {
    return this.#timer !== null;
  }

  // Something was asked for, with a question if the hub tells.
  begin(question) {
    this.#question = question;
    this.#until = this.#environment.now() + TIMES.longestCatchUp;
    this.#wait();
    this.look();
  }

  // An event has come.
  prolong() {
    if (this.pending) this.#wait();
  }

  // A comment has come.
  look() {
    if (!this.pending) return;
    const question = this.#question;
    if (question ? this.#arrivals.behind({question, at: question.takenAt}) : this.#arrivals.beats) this.#end();
  }

  close() {
    this.#environment.clearTimeout(this.#timer);
    this.#timer = null;
  }

  // Should the hub not tell at all, a longer silence will do.
  #wait() {
    const wait = this.#question ? TIMES.longestCatchUp : Math.min(TIMES.quiet, this.#until - this.#environment.now());
    this.#environment.clearTimeout(this.#timer);
    this.#timer = this.#environment.setTimeout(() => this.#end(), Math.max(0, wait));
  }

  #end() {
    this.close();
    this.#done();
  }
}

// ---- arrival-tracker.js ---------------------------------------------------------------------------------------------

// What of a stream has arrived.
//
// The hub sends a comment, `: caught up`, behind all that was missed: after a subscribe with a last event id, and after each change
// of the stream with one, also where that changes nothing (docs/live-streams.md). So such a request is a question, and the
// comment its answer: everything that was sent before the question was asked has arrived.
//
//     client   ── question ──┐                        ┌─► answered
//     hub      ─── event ────┴── event ── : caught up ─┘
//
// Two questions may share one comment: it answers the oldest for certain, and perhaps more.
//
// Beside those there are the comments that a hub sends when it has nothing to say, and of hubs that do not tell, nothing but time.

const CAUGHT_UP = "caught up";

class ArrivalTracker {
  #environment;
  #tells; // the hub answers
  #openedAt;
  #due = []; // questions, the oldest first
  #asked = 0;
  #answered = 0; // questions that are, for certain
  #answeredAt = -Infinity; // when the newest of them was asked
  #comments = 0;
  #beatAt = -Infinity;

  // Whether an answer may have been for more questions than one, and there is something that depends on it.
  unsure = false;

  constructor(environment, {tells}) {
    this.#environment = environment;
    this.#tells = tells;
    this.#openedAt = environment.now();
  }

  // Something is asked for with a last event id. `matters`: somebody waits for the answer.
  ask({at = this.#environment.now(), matters = true} = {}) {
    const question = {number: ++this.#asked, at, matters, takenAt: Infinity};
    this.#due.push(question);
    this.unsure = false;
    return question;
  }

  // The hub has done what it was asked for.
  take(question) {
    question.takenAt = this.#environment.now();
  }

  // The hub has not, and will not answer.
  withdraw(question) {
    this.#due = this.#due.filter((other) => other !== question);
    this.unsure &&= this.#due.some((other) => other.matters);
  }

  // A comment has come.
  hear(text) {
    if (text === CAUGHT_UP) {
      this.#answer();
      this.unsure = this.#due.some((question) => question.matters);
    } else if (++this.#comments > 1) this.#beat(); // the first one greets, and comes before what was missed
  }

  // Whether the hub has been heard to speak when it had nothing to say.
  get beats() {
    return this.#comments > 1;
  }

  // Whether the answer has come, for certain.
  has(question) {
    return question.number <= this.#answered;
  }

  // Whether everything has arrived that was sent before a change of the stream: one that was a question, or one that was made at
  // this time.
  behind({question = null, at}) {
    return (question !== null && this.has(question)) || this.since(at);
  }

  // Whether everything has arrived that was sent before this time: for the hub says so, or so much time has passed where it does not.
  certain(time, patience) {
    return this.#answeredAt > time || (this.#mute && this.#environment.now() - Math.max(time, this.#openedAt) > patience);
  }

  // The same, also where a comment seems to say so: it may be one from before that was late.
  since(time, patience = TIMES.drained) {
    return this.certain(time, patience) || this.#beatAt > Math.max(time, this.#openedAt) + TIMES.skew;
  }

  // Whether to ask because of this time, null for none.
  lacks(time) {
    if (time === null || this.#environment.now() <= time || this.since(time, Infinity)) return false;
    return !this.#due.some((question) => question.at > time);
  }

  // A hub that has not answered for so long never will. Then it is as with hubs that do not tell: what nobody has seen for a while is
  // not on its way any more. That is wrong where a network holds something back for longer.
  get #mute() {
    const oldest = this.#due.find((question) => question.matters);
    return !this.#tells || (oldest !== undefined && this.#environment.now() - oldest.at > TIMES.drained);
  }

  #answer() {
    const question = this.#due.shift();
    if (question) [this.#answered, this.#answeredAt] = [question.number, question.at];
  }

  // Had there been anything to say, it had been said.
  #beat() {
    this.#beatAt = this.#environment.now();
    while (this.#due.length > 0 && this.#due[0].takenAt + TIMES.skew < this.#beatAt) this.#answer();
  }
}

// ---- stream-response.js ---------------------------------------------------------------------------------------------

// One response of the hub, and the changes that are made to it.

class StreamResponse {
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

// ---- history.js -----------------------------------------------------------------------------------------------------

// What a connection remembers of the events that it has had.

// The ids of events, and the topics that each came for: against repeats. What comes again after a gap is none: who came since then is
// yet to have it.
class Seen {
  #events = new Map(); // id → topic → its start

  has(id, topic) {
    return this.#events.get(id)?.get(topic) === topic.start;
  }

  add(id, topic) {
    const topics = this.#events.get(id) ?? new Map();
    this.#events.delete(id);
    this.#events.set(id, topics.set(topic, topic.start));
    if (this.#events.size > LIMITS.ids) this.#events.delete(this.#events.keys().next().value);
  }
}

// The newest events, in the order of the stream.
class History {
  #entries = [];
  #length = 0;
  #seen = new Seen();
  next = 0;
  gaps = 0;

  // Whether an event has come for a topic.
  has(id, topic) {
    return this.#seen.has(id, topic);
  }

  // An event has come for a topic. Where that is not wholly there, nothing follows from it.
  note(topic, event, time) {
    topic.lastAt = time;
    if (!event.identified) return;
    this.#seen.add(event.id, topic);
    if (!topic.whollyThere) return;
    topic.lastId = event.id;
    this.#add(topic, event);
  }

  #add(topic, event) {
    this.#entries.push({topic, event, settled: topic.settled, number: this.next++});
    this.#length += event.data.length;
    while (this.#entries.length > LIMITS.history || this.#length > LIMITS.historyLength) {
      const oldest = this.#entries.shift();
      oldest.topic.whole = false;
      this.#length -= oldest.event.data.length;
    }
  }

  // A gap has a number, as an event has: a cursor is right on one side of it.
  interrupt(topics, time) {
    this.next += 1;
    this.gaps += 1;
    for (const topic of topics) topic.interrupt(this.next, time);
  }

  // The events of a topic after a cursor, or null where it isn't certain which these are.
  after(topic, cursor) {
    if (cursor === topic.lastId) return [];
    let index = this.#entries.length - 1;
    while (index >= 0 && !this.#tells(this.#entries[index], topic, cursor)) index -= 1;
    if (index < 0 && !(topic.whole && cursor === topic.base)) return null;
    return this.#entries.slice(index + 1).filter((entry) => entry.topic === topic).map((entry) => entry.event);
  }

  #tells(entry, topic, cursor) {
    if (entry.event.id !== cursor || entry.number < topic.start) return false;
    return entry.topic === topic || (entry.settled && topic.settled && entry.number >= topic.from);
  }
}

// ---- environment.js -------------------------------------------------------------------------------------------------

// What the network and the clock are; tests have others.

const ENVIRONMENT = {
  fetch: (...all) => globalThis.fetch(...all),
  now: () => Date.now(),
  random: () => Math.random(),
  setTimeout: (...all) => globalThis.setTimeout(...all),
  clearTimeout: (timer) => globalThis.clearTimeout(timer),
  warn: (text) => console.warn(`hikyaku: ${text}`),
  base: globalThis.location?.href,
};

// Where a loop waits until it is poked, or until a time has come. A poke that comes before is not lost.
class Sleeper {
  #environment;
  #poked = false;
  #wake = null;

  constructor(environment) {
    this.#environment = environment;
  }

  poke() {
    this.#poked = true;
    this.#wake?.();
  }

  async until(time = Infinity) {
    const wait = Math.min(time - this.#environment.now(), 600 * SECOND);
    if (!this.#poked && wait > 0) {
      await new Promise((resolve) => {
        const timer = this.#environment.setTimeout(resolve, wait);
        this.#wake = () => {
          this.#environment.clearTimeout(timer);
          resolve();
        };
      });
    }
    this.#wake = null;
    this.#poked = false;
  }
}

// ---- shared-connection.js -------------------------------------------------------------------------------------------

// One connection that is made again, and carries the topics of many readers, in order, once.

// A connection to the hub: made again from its last event when it is lost, and changed while it is open, by
// POST {hub}/streams/{capability} or, where the hub has no such thing, by a second one that is made before the first is broken.
//
//     waiting ──► connecting ──► open ──► closed: nobody reads, or another connection carries its readers
//        ▲            │            │
//        └────────────┴────────────┘
//
// Topics that have not settled when the connection breaks are taken off, and added once more for each reader from where it is.
class SharedConnection {
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

// ---- token-scope.js -------------------------------------------------------------------------------------------------

// What one token endpoint grants: a token for up to 100 streams, and the connections that use it.

// The streams that one token grants, and the connections that carry them: one, but while readers catch up that no connection can serve
// for certain. A page that was rendered at some event may want a topic that a connection carries already, and where that event is in
// the connection's order only the hub can tell: so there is a connection that begins there, until both stand at the same event.
class TokenScope {
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

// ---- coordinator.js -------------------------------------------------------------------------------------------------

// The readers of all tabs; lives in the shared worker, or in one of the tabs.

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
class Coordinator {
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

// ---- worker-file.js -------------------------------------------------------------------------------------------------

// Which file the shared worker is started from. Whatever is started runs, so that it is hikyaku.js and nothing else: in a bundle the
// module's own address is the bundle's, with all of the application in it.

const OWN_NAME = /\/hikyaku(-[0-9a-f]{7,})?\.js$/; // with the digest of an asset pipeline, or without
const DEAD = "hikyaku/dead"; // where the browser keeps which file is of no use, and since when

let own = null;

// Takes a module's own address where that is the address of hikyaku.js.
function rememberOwnFile(address) {
  own = address && OWN_NAME.test(new URL(address).pathname) ? address : null;
}

// Returns the address that was configured, or that the page names, or the module's own; null for none.
function workerFile(configured) {
  if (configured === false) return null;
  const named = globalThis.document?.querySelector("meta[name=hikyaku-worker]")?.content;
  const address = configured || named || own;
  if (!address) {
    ENVIRONMENT.warn('one of the tabs holds the connection, and no shared worker: this is a bundle, and the page does not name hikyaku.js. Add <meta name="hikyaku-worker" content="address of hikyaku.js">');
    return null;
  }
  return new URL(address, globalThis.document?.baseURI ?? ENVIRONMENT.base).href;
}

// Whether a worker of that file was of no use a while ago, in any of the tabs.
function isDead(address) {
  try {
    const {address: dead, at} = JSON.parse(localStorage.getItem(DEAD)) ?? {};
    return dead === address && Math.abs(Date.now() - at) < TIMES.dead;
  } catch {
    return false; // No storage: each tab finds out.
  }
}

// Keeps whether it is of no use, for the tabs that come.
function noteDead(address, dead) {
  try {
    if (dead) localStorage.setItem(DEAD, JSON.stringify({address, at: Date.now()}));
    else if (isDead(address)) localStorage.removeItem(DEAD);
  } catch {
    // See above.
  }
}

// ---- links.js -------------------------------------------------------------------------------------------------------

// How a tab speaks with the coordinator.

// Of the shared worker, the lock and the broadcasts; the number is that of the coordinator's messages.
const NAME = "hikyaku/1";

// A link says `ready` when a coordinator is there to say hello to (again, when it is another one), `message`, and `broken` when
// it is of no use here. `renew` is asked for when nothing is heard: it returns whether it may help.

// The coordinator lives in a shared worker, which is the same file: see index.js.
class WorkerLink {
  static kind = "worker";
  #worker;
  #heard = false;

  static possible({worker}) {
    if (!("SharedWorker" in globalThis)) return false;
    const address = workerFile(worker);
    return address !== null && !isDead(address);
  }

  constructor(handlers, {worker}) {
    this.handlers = handlers;
    this.address = workerFile(worker);
    this.#start();
  }

  // In which it answers.
  get patience() {
    return this.#heard ? TIMES.pong : TIMES.firstWord;
  }

  #start() {
    const worker = new SharedWorker(this.address, {type: "module", name: NAME});
    this.#worker = worker;
    // A policy (worker-src) may forbid it, or the file be no such worker. Of one that has died only the tab is told that started it.
    worker.onerror = () => {
      if (worker !== this.#worker) return;
      if (!this.#heard) noteDead(this.address, true);
      ENVIRONMENT.warn(`one of the tabs holds the connection: ${this.address} cannot be started as shared worker`);
      this.handlers.broken();
    };
    worker.port.onmessage = ({data}) => {
      if (worker !== this.#worker) return;
      if (!this.#heard) noteDead(this.address, false);
      this.#heard = true;
      this.handlers.message(data);
    };
    queueMicrotask(() => worker === this.#worker && this.handlers.ready());
  }

  send(message) {
    this.#worker.port.postMessage(message);
  }

  // A worker that has crashed is started again by its name. One that never spoke does not speak.
  renew() {
    if (!this.#heard) return false;
    this.close();
    this.#heard = false;
    this.#start();
    return true;
  }

  // It has had long enough. Later tabs do not wait for it.
  giveUp() {
    noteDead(this.address, true);
    ENVIRONMENT.warn(`one of the tabs holds the connection: the shared worker ${this.address} says nothing. Name the address of hikyaku.js in <meta name="hikyaku-worker">`);
  }

  close() {
    this.#worker.port.close();
    this.#worker = null;
  }
}

// The coordinator lives in the tab that holds a lock; when that tab is closed, in the next one.
//
// All tabs hear who asks for the one that leads, and who does. All else is for one tab, which alone listens for it: what is said
// to fifty tabs would else be heard by each of them fifty times.
class LeaderLink {
  static kind = "tabs";
  #me = crypto.randomUUID?.() ?? String(Math.random());
  #all = new BroadcastChannel(NAME);
  #mine = new BroadcastChannel(`${NAME} ${this.#me}`);
  #others = new Map(); // by tab, where it listens
  #leader = null;
  #coordinator = null;
  #resign = null;
  #closed = false;

  static possible() {
    return Boolean(globalThis.navigator?.locks) && "BroadcastChannel" in globalThis;
  }

  constructor(handlers) {
    this.handlers = handlers;
    this.#all.onmessage = ({data}) => this.#hear(data);
    this.#mine.onmessage = ({data: {from, message}}) => this.#receive(from, message);
    this.#all.postMessage({asks: "leader"});
    this.#campaign();
  }

  // The lock is held until #resign is called, the tab is gone, or another tab has stolen it since this one was frozen.
  #campaign(options = {}) {
    const lead = () => (this.#closed ? undefined : new Promise((resolve) => this.#lead(resolve)));
    navigator.locks.request(NAME, options, lead).catch(() => this.#deposed());
  }

  #lead(resign) {
    this.#resign = resign;
    this.#coordinator = new Coordinator();
    this.#follow(this.#me);
    this.#all.postMessage({leader: this.#me});
  }

  #follow(leader) {
    this.#forget([...this.#others.keys()]);
    this.#leader = leader;
    this.handlers.ready();
  }

  #deposed() {
    this.#abdicate();
    if (this.#closed) return;
    this.#campaign();
    this.#all.postMessage({asks: "leader"});
  }

  #abdicate() {
    this.#coordinator?.close();
    this.#coordinator = this.#leader = null;
    this.#forget([...this.#others.keys()]);
    this.#resign?.();
  }

  #hear({asks, leader}) {
    if (asks && this.#coordinator) this.#all.postMessage({leader: this.#me});
    if (leader && leader !== this.#leader && !this.#coordinator) this.#follow(leader);
  }

  #receive(from, message) {
    if (this.#coordinator) {
      this.#coordinator.receive(from, message, (answer) => this.#tell(from, answer));
      if (message.type === "bye") this.#forget([from]);
    } else if (from === this.#leader) this.handlers.message(message);
  }

  #tell(tab, message) {
    if (!this.#others.has(tab)) this.#others.set(tab, new BroadcastChannel(`${NAME} ${tab}`));
    this.#others.get(tab).postMessage({from: this.#me, message});
  }

  #forget(tabs) {
    for (const tab of tabs) {
      this.#others.get(tab)?.close();
      this.#others.delete(tab);
    }
  }

  send(message) {
    if (this.#coordinator) this.#coordinator.receive(this.#me, message, (answer) => queueMicrotask(() => this.#closed || this.handlers.message(answer)));
    else if (this.#leader) this.#tell(this.#leader, message);
  }

  // Browsers freeze tabs that nobody sees, also one that leads.
  renew() {
    if (document.visibilityState === "visible" && !this.#coordinator) this.#campaign({steal: true});
    return true;
  }

  close() {
    this.#closed = true;
    this.#abdicate();
    this.#all.close();
    this.#mine.close();
  }
}

// Every tab has a coordinator of its own.
class PageLink {
  static kind = "page";
  #coordinator = new Coordinator();

  static possible() {
    return true;
  }

  constructor(handlers) {
    this.handlers = handlers;
    queueMicrotask(() => this.#coordinator && handlers.ready());
  }

  send(message) {
    this.#coordinator.receive("page", message, (answer) => queueMicrotask(() => this.#coordinator && this.handlers.message(answer)));
  }

  renew() {
    return true;
  }

  close() {
    this.#coordinator.close();
    this.#coordinator = null;
  }
}

// ---- tab.js ---------------------------------------------------------------------------------------------------------

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

const thisTab = new Tab();

// ---- stream.js ------------------------------------------------------------------------------------------------------

// What pages use.

// One stream that a page wants. `state` is null, "connected", "caught-up", "reconnecting", "gap" or "refused".
class Stream {
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

const Hikyaku = {
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

// ---- forms.js -------------------------------------------------------------------------------------------------------

// What somebody has entered into the page and not sent yet.

const PERMANENT = "[data-turbo-permanent]"; // what Turbo keeps through a refresh
const OUTSIDE = "input, textarea, select, [contenteditable]";

const edited = new WeakMap(); // element with contenteditable → what was in it before somebody wrote into it

// The page says nowhere what was in such an element at first. Heard before an editor hears it, which may write itself, or stop the event.
globalThis.document?.addEventListener("beforeinput", ({target}) => {
  const host = target instanceof Element && target.closest("[contenteditable]");
  if (host && !edited.has(host)) edited.set(host, host.innerHTML);
}, true);

// Returns the forms of the page of which something is no longer as the page came with it.
function changedForms() {
  return [...document.querySelectorAll("form")].filter((form) => controlsOf(form).some((control) => isChanged(control) && !control.closest(PERMANENT)));
}

// A field named "elements" hides the property of its form, as something named "forms" hides the document's.
function controlsOf(form) {
  return [...Reflect.get(HTMLFormElement.prototype, "elements", form)];
}

// Returns the same of what belongs to no form: controls, and elements with contenteditable.
function changedControls() {
  return [...document.querySelectorAll(OUTSIDE)].filter((control) => !control.form && !control.closest(PERMANENT) && (isChanged(control) || isEdited(control)));
}

function isEdited(element) {
  if (!edited.has(element)) return false;
  if (edited.get(element) !== element.innerHTML) return true;
  edited.delete(element); // a refresh may bring other contents
  return false;
}

function isChanged(control) {
  if (control.disabled) return false;
  switch (control.localName) {
    case "textarea": return control.value !== control.defaultValue && control.value !== valueGiven(control);
    case "select": return hasOtherOptions(control);
    case "input": return hasOtherValue(control);
    // An editor, as <trix-editor>.
    default: return control.localName.includes("-") && typeof control.defaultValue === "string" && control.value !== control.defaultValue;
  }
}

function hasOtherValue(input) {
  if (input.type === "checkbox") return input.checked !== input.defaultChecked;
  // Of several that the page has checked in one group the browser has left one.
  if (input.type === "radio") return input.checked && !input.defaultChecked;
  if (input.type === "file") return input.files.length > 0;
  return input.type !== "hidden" && input.value !== input.defaultValue && input.value !== valueGiven(input);
}

// A browser writes what the page gives as it would itself: a time without the seconds that Rails says, a colour in small letters. Asked of
// another control that nobody has touched, in a document in which none comes to life.
function valueGiven(control) {
  const untouched = document.implementation.createHTMLDocument("").createElement(control.localName);
  for (const attribute of control.attributes) untouched.setAttributeNode(attribute.cloneNode());
  untouched.defaultValue = control.defaultValue;
  return untouched.value;
}

// Of a list that opens the browser selects an option itself, where the page selects none.
function hasOtherOptions(select) {
  const options = [...select.options];
  const selected = options.filter((option) => option.defaultSelected);
  if (select.type === "select-multiple" || select.size > 1) return options.some((option) => option.selected !== option.defaultSelected);
  return select.selectedIndex !== options.indexOf(selected.pop() ?? options.find((option) => !option.matches(":disabled")));
}

// ---- element.js -----------------------------------------------------------------------------------------------------

// The element: what comes is rendered by Turbo.

// Calls Turbo's refresh for a page that lacks something: once for all its elements, not all browsers at one moment, and for
// hidden pages when they are seen.
//
// What was refreshed may lack the same again, as a page that comes out of a cache with a name that has expired. So for what has not been
// live since it was loaded the last time must be long ago, longer each time. A gap waits until it is; a name that has expired will be
// asked about again. That time outlives the document, which a refresh may load anew.
//
// A refresh would take away what somebody has entered and not sent yet: it waits until the forms are again as the page came with them, sent
// or reset. The document hears hikyaku:refresh-waits {forms, controls, refresh} once; refresh() does not wait, and with preventDefault() the page
// does without.
const refreshing = {
  spread: 2 * SECOND,
  least: 10 * SECOND, // between two
  longest: 3_600 * SECOND,
  growth: 6,
  key: "hikyaku/refreshed",
  last: null, // {url, at, fruitless}: how often in a row it was of no use
  wanted: new Map(), // whether there is still somebody who wants it: {live, due}, whether that was live, and when its time comes
  share: 0, // of the spread
  timer: null,
  at: Infinity, // what is waited for: the timer, and then that the page is seen
  waitsForForms: false,
  insisted: false, // the page does not want to wait for them

  // `wants` says whether it is still of use when its time has come; `waits`, whether that may be later than now.
  plan(live, waits, wants) {
    if (!globalThis.Turbo) return;
    const {since, fruitless} = this.before();
    const pause = live ? this.least : Math.min(this.least * this.growth ** fruitless, this.longest);
    if (!live && !waits && since < pause) return;
    if (this.wanted.size === 0) this.share = Math.random();
    this.wanted.set(wants, {live, due: Date.now() + Math.max(this.share * this.spread, pause - since)});
    this.wait();
  },

  get due() {
    return Math.min(...[...this.wanted.values()].map(({due}) => due));
  },

  wait() {
    const {due} = this;
    if (due >= this.at) return;
    clearTimeout(this.timer);
    this.at = due;
    this.timer = setTimeout(() => this.whenSeen(), Math.max(due - Date.now(), 0));
  },

  whenSeen() {
    if (document.visibilityState === "visible") this.now();
    else document.addEventListener("visibilitychange", () => this.whenSeen(), {once: true});
  },

  now() {
    for (const wants of this.wanted.keys()) if (!wants()) this.wanted.delete(wants);
    // Nobody is left, or only who has time.
    if (this.due > Math.max(this.at, Date.now())) {
      this.at = Infinity;
      return this.wait();
    }
    // Of a page that is on its way already, Turbo would not take another; when it is there, nobody wants this any more.
    if (["initialized", "started"].includes(Turbo.navigator?.currentVisit?.state)) return setTimeout(() => this.whenSeen(), SECOND);
    if (this.entering()) return this.wanted.size > 0 ? setTimeout(() => this.whenSeen(), SECOND) : undefined;
    this.note([...this.wanted.values()].some(({live}) => live));
    this.giveUp();
    // Turbo takes only what the document's addresses are relative to for the page.
    if (Turbo.session?.refresh && document.baseURI === location.href) Turbo.session.refresh(location.href);
    else Turbo.visit(location.href, {action: "replace"});
  },

  // Whether something has been entered that a refresh would take away.
  entering() {
    const [forms, controls] = this.insisted ? [[], []] : [changedForms(), changedControls()];
    const told = this.waitsForForms;
    this.waitsForForms = forms.length + controls.length > 0;
    this.insisted = false;
    if (!this.waitsForForms || told) return this.waitsForForms;
    const refresh = () => {
      this.insisted = this.wanted.size > 0;
      this.whenSeen();
    };
    const event = new CustomEvent("hikyaku:refresh-waits", {detail: {forms, controls, refresh}, cancelable: true});
    // The handler may have refreshed the page already; then nobody wants this any more.
    if (!document.dispatchEvent(event)) this.giveUp();
    return true;
  },

  giveUp() {
    this.wanted.clear();
    this.at = Infinity;
    this.waitsForForms = false;
  },

  before() {
    let {last} = this;
    try {
      last = JSON.parse(sessionStorage.getItem(this.key)) ?? last;
    } catch {
      // Without storage it is as long ago as this document remembers.
    }
    const since = last?.url === this.url ? Date.now() - last.at : NaN;
    return since >= 0 && since < 2 * this.longest ? {since, fruitless: Number(last.fruitless) || 0} : {since: Infinity, fruitless: 0};
  },

  note(live) {
    const {since, fruitless} = this.before();
    this.last = {url: this.url, at: Date.now(), fruitless: live || since === Infinity ? 0 : fruitless + 1};
    try {
      sessionStorage.setItem(this.key, JSON.stringify(this.last));
    } catch {
      // See above.
    }
  },

  get url() {
    return location.pathname + location.search;
  },
};

// Elements of the same stream render what comes to all of them once. Which of them is first, nobody knows: they may be served by
// different connections. But what one element has rendered before another was there, the other renders again: what it stands in was
// loaded later, at an older event.
const renderings = {
  now: 0,
  newest: new Map(), // by event, when and by which element

  // Returns whether this element is to render it.
  claim(event, element, since) {
    const key = event.identified ? `${event.type} ${event.id}` : event;
    const other = this.newest.get(key);
    if (other?.element.isConnected && other.at > since) return false;
    this.newest.delete(key);
    this.newest.set(key, {element, at: ++this.now});
    if (this.newest.size > LIMITS.history) this.newest.delete(this.newest.keys().next().value);
    return true;
  },
};

const inPreview = () => document.documentElement.hasAttribute("data-turbo-preview");

// <hikyaku-stream-source signed-stream-name cursor src>: what comes is rendered by Turbo, or else dispatched as `message`.
//
// Its attribute `state` is the state of the stream, which it also dispatches, bubbling: hikyaku:connected, hikyaku:caught-up,
// hikyaku:reconnecting {reason, status, pause}, hikyaku:gap {reason, lastEventId}, hikyaku:refused {reason, status};
// hikyaku:event {id, type, data} is each event. preventDefault() of an event keeps it from being rendered, of a gap, or of a name
// that has expired, keeps the page from being refreshed.
//
// Its attribute `lacking` says that after a gap the page was not rendered anew yet. Its cursor has gone on since then; so a page that
// Turbo has kept in its cache asks for the refresh again when it comes back.
function defineElement() {
  class StreamSourceElement extends HTMLElement {
    static observedAttributes = ["signed-stream-name", "cursor", "src", "state", "lacking"];
    #stream = null;
    #since = 0;
    #closing = null;
    #restarting = false;
    #writing = false;
    #live = false; // has been, since it was started

    // Moved within the document, it goes on with its stream.
    connectedCallback() {
      clearTimeout(this.#closing);
      this.#closing = null;
      if (!this.#stream) this.#start();
    }

    disconnectedCallback() {
      this.#closing ??= setTimeout(() => this.#stop(), 0);
    }

    // The page is another one now: it was rendered at another event, or lacks no more what it did. One that was rendered at the same has
    // morphed the state away.
    attributeChangedCallback(name, before, now) {
      if (this.#writing || before === now || !this.#stream || this.#restarting) return;
      if (name === "state") return this.#stream.state ? this.#write("state", this.#stream.state) : undefined;
      this.#restarting = true;
      queueMicrotask(() => {
        this.#restarting = false;
        if (!this.#stream) return;
        this.#stop();
        if (this.isConnected) this.#start();
      });
    }

    get state() {
      return this.getAttribute("state");
    }

    // A preview of Turbo's will be replaced in a moment.
    #start() {
      if (inPreview()) return document.addEventListener("turbo:render", () => this.isConnected && !this.#stream && this.#start(), {once: true});
      const name = this.getAttribute("signed-stream-name");
      if (!name) return;
      this.removeAttribute("state");
      this.#since = ++renderings.now;
      this.#live = false;
      this.#stream = Hikyaku.connect({endpoint: this.getAttribute("src") ?? undefined}).stream(name, {
        cursor: this.getAttribute("cursor"),
        onmessage: (event) => this.#receive(event),
        onstate: (state, detail) => this.#become(state, detail),
        oncursor: (cursor) => this.#write("cursor", cursor),
      });
      if (this.hasAttribute("lacking")) this.#refresh(true);
    }

    #stop() {
      this.#closing = null;
      this.#stream?.close();
      this.#stream = null;
    }

    // Also for Turbo's cache: what it keeps of this page has everything up to there.
    #write(attribute, value) {
      this.#writing = true;
      this.setAttribute(attribute, value);
      this.#writing = false;
    }

    #dispatch(type, detail) {
      return this.dispatchEvent(new CustomEvent(`hikyaku:${type}`, {detail, bubbles: true, cancelable: true}));
    }

    #receive(event) {
      const {id, type, data} = event;
      // It has left with its page: the next one has an element that gets this too.
      if (!this.isConnected) return;
      if (!this.#dispatch("event", {id, type, data}) || !renderings.claim(event, this, this.#since)) return;
      if (globalThis.Turbo) this.#render(data);
      else this.dispatchEvent(new MessageEvent("message", {data, lastEventId: id}));
    }

    // Turbo acts at the next repaint. When another page stands there by then, that page gets this from its own cursor on, and
    // must not get it here as well, before what it lacks.
    #render(data) {
      const since = this.#since;
      const body = document.body;
      const guard = ({detail}) => {
        const {render} = detail;
        detail.render = (...values) => {
          if (this.#since === since && (this.isConnected || document.body === body)) return render(...values);
        };
      };
      addEventListener("turbo:before-stream-render", guard, {capture: true});
      try {
        Turbo.renderStreamMessage(data);
      } finally {
        removeEventListener("turbo:before-stream-render", guard, {capture: true});
      }
    }

    #become(state, detail) {
      this.#write("state", state);
      const allowed = this.#dispatch(state, detail);
      if (state === "caught-up") this.#live = true;
      if (!allowed || !(state === "gap" || (state === "refused" && detail.reason === "expired"))) return;
      if (state === "gap") this.#write("lacking", "");
      this.#refresh(state === "gap");
    }

    #refresh(waits) {
      const stream = this.#stream;
      refreshing.plan(this.#live, waits, () => this.#stream === stream && this.isConnected);
    }
  }

  customElements.define("hikyaku-stream-source", StreamSourceElement);

  // The name of <hikyaku-presence> expires, too (hikyaku-presence.js). Whether anybody forbids the refresh is known when all have heard.
  addEventListener("hikyaku:refused", (event) => {
    const {target, detail} = event;
    if (target.localName !== "hikyaku-presence" || detail.reason !== "expired") return;
    const name = target.getAttribute("signed-stream-name");
    const wants = () => target.isConnected && target.getAttribute("signed-stream-name") === name;
    queueMicrotask(() => event.defaultPrevented || refreshing.plan(target.hasAttribute("count"), false, wants));
  });
}

// ---- index.js -------------------------------------------------------------------------------------------------------

export {EventParser, Coordinator, Hikyaku, LIMITS, Stream, pauseAfter};

if (globalThis.SharedWorkerGlobalScope && globalThis.name === NAME) {
  const coordinator = new Coordinator();
  globalThis.onconnect = ({ports: [port]}) => {
    port.onmessage = ({data}) => coordinator.receive(data.tab, data, (message) => port.postMessage(message));
  };
} else {
  rememberOwnFile(import.meta.url);
  if (globalThis.customElements && !customElements.get("hikyaku-stream-source")) defineElement();
}
