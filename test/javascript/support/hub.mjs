// A hub and a token endpoint in memory, with what goes wrong between them and a browser: delays, stalls, cuts.

const encoder = new TextEncoder();

// Settings that a test may change at any time:
//
// changeable   streams can be changed by POST {hub}/streams/{capability}
// naming       streams can be had whose events name the matchers that selected them
// up           answers at all
// delay()      milliseconds that a message is on its way
// history      events that are retained
// heartbeat    milliseconds of silence after which a comment is sent; 0 is never
// tells        streams that can be changed are told when they have caught up
// announces    an unknown cursor is told in the stream, too; hubs of other makes say it in a header alone
// pending()    milliseconds until they have
export class Hub {
  url = "https://app.test/hub";
  log = [];
  streams = new Set();
  requests = [];
  changeable = true;
  naming = true;
  up = true;
  delay = () => 10;
  history = Infinity;
  heartbeat = 15_000;
  tells = true;
  announces = true;
  pending = () => 0;
  refusing = null; // a status in place of any answer
  headers = {};
  beginning = "#beginning"; // the position before any event; another when the hub was restarted
  forgotten = 0; // events that are not retained any more, beside what `history` says

  constructor(environment) {
    this.environment = environment;
  }

  get lastId() {
    return this.#idAt(this.log.length);
  }

  // The hub was restarted: it has no event, and knows no id from before.
  restart() {
    this.cut();
    this.log.length = 0;
    this.beginning += "'";
  }

  #idAt(position) {
    return this.log[position - 1]?.id ?? this.beginning;
  }

  get oldest() {
    return Math.max(this.forgotten, this.log.length - this.history);
  }

  // `topic`: one or several.
  publish(topic, data, {type = [topic].flat()[0], id = `#${Math.floor(this.environment.random() * 1e15).toString(36)}`} = {}) {
    const event = {id, topics: [topic].flat(), type, data};
    this.log.push(event);
    for (const stream of this.streams) stream.give(event, (each) => stream.topics.has(each) && !stream.skipped.has(each));
    return event.id;
  }

  // A stream is too slow: of these topics it lacks what is published meanwhile, and is told so, with the position
  // at which it goes on. `names`: and of which.
  overrun(stream, topics, publish, {names = true} = {}) {
    const document = {type: "gap", reason: "overrun", last_event_id: this.lastId};
    if (names) document.matches = topics.map((topic) => ({match: topic, match_type: "exact"}));
    stream.skipped = new Set(topics);
    publish();
    stream.skipped.clear();
    stream.send(`event: mercure\nid: ${this.lastId}\ndata: ${JSON.stringify(document)}\n\n`);
  }

  // Every connection is lost, and what is on its way with it.
  cut(streams = this.streams) {
    for (const stream of [...streams]) stream.end(new TypeError("network error"));
  }

  // A graceful end.
  finish() {
    for (const stream of [...this.streams]) stream.end(null);
  }

  async answer(url, {method = "GET", headers = {}, body = "", signal}) {
    const request = {method, url: new URL(url), headers, body: new URLSearchParams(body), at: this.environment.now()};
    this.requests.push(request);
    await this.#travel(signal);
    if (!this.up) throw new TypeError("connection refused");
    if (this.refusing) return response(this.refusing, this.headers);
    return method === "POST" ? this.#change(request, signal) : this.#subscribe(request, signal);
  }

  #travel(signal) {
    return new Promise((resolve, reject) => {
      const give = () => (signal?.aborted ? reject(new DOMException("aborted", "AbortError")) : resolve());
      this.environment.setTimeout(give, this.delay());
      signal?.addEventListener("abort", give);
    });
  }

  #token({headers}) {
    const token = JSON.parse((headers.Authorization ?? "Bearer {}").slice(7));
    return token.exp * 1000 > this.environment.now() ? token : null;
  }

  async #subscribe(request, signal) {
    const token = this.#token(request);
    if (!token) return response(401);
    const topics = new Set(request.url.searchParams.getAll("match"));
    if ([...topics].some((topic) => !token.topics.includes(topic))) return response(403);
    const cursor = request.headers["Last-Event-ID"] ?? request.url.searchParams.get("last_event_id");
    const stream = new HubStream(this, topics, token, signal);
    const headers = {"content-type": "text/event-stream"};
    const wanted = request.headers["Hikyaku-Stream"];
    if (this.changeable && (wanted === "1" || (wanted === "matchers" && this.naming))) headers["hikyaku-stream"] = stream.capability;
    if (wanted === "matchers" && this.naming) stream.names = topics.size > 1 ? "now" : "later";
    stream.send(":\n\n");
    if (cursor !== null && cursor !== undefined) headers["mercure-last-event-id"] = this.#replay(stream, cursor, new Set());
    if (cursor && headers["hikyaku-stream"]) stream.tell();
    await this.#travel(signal);
    return response(200, headers, stream);
  }

  #replay(stream, cursor, former) {
    let from = cursor === "earliest" ? this.oldest : this.log.findIndex((event) => event.id === cursor) + 1;
    const known = cursor === "earliest" || ((from > 0 || cursor === this.beginning) && from >= this.oldest);
    if (!known) {
      from = this.oldest;
      if (this.announces) stream.send(`event: mercure\nid: ${this.#idAt(from)}\ndata: ${JSON.stringify({type: "gap", reason: "unknown", last_event_id: cursor})}\n\n`);
    }
    // What names its matchers goes back for each of them; another has had what one of those had that it had before.
    const added = (topic) => stream.topics.has(topic) && !former.has(topic);
    for (const event of this.log.slice(from)) if (stream.names === "now" || !event.topics.some((topic) => former.has(topic))) stream.give(event, added);
    return known ? cursor : "earliest";
  }

  async #change(request, signal) {
    const capability = decodeURIComponent(request.url.pathname.split("/").pop());
    const stream = [...this.streams].find((each) => each.capability === capability);
    const token = this.#token(request);
    const topics = new Set(request.body.getAll("match"));
    if (!this.changeable || !stream) return this.#late(404, signal);
    if (!token) return this.#late(401, signal);
    if (token.sub !== stream.token.sub || [...topics].some((topic) => !token.topics.includes(topic))) return this.#late(403, signal);
    const former = stream.topics;
    stream.topics = topics;
    stream.admit(token);
    const cursor = request.body.get("last_event_id");
    const added = [...topics].some((topic) => !former.has(topic));
    if (stream.names && (added || topics.size !== former.size)) stream.names = "now";
    const resumed = added && cursor ? this.#replay(stream, cursor, former) : null;
    if (cursor) stream.tell();
    return this.#late(204, signal, {"mercure-last-event-id": resumed === "earliest" ? resumed : this.lastId});
  }

  async #late(status, signal, headers = {}) {
    await this.#travel(signal);
    return response(status, headers);
  }
}

// A stream, and at the same time the body of its response. What is sent arrives in order, later.
class HubStream {
  #hub;
  #arrived = [];
  #reader = null;
  #lastArrival = 0;
  #ended = undefined;
  #beat = null;
  #telling = false;
  #expiry = null;
  skipped = new Set(); // topics whose events it is not sent
  names = null; // "now": its events name the matchers that selected them; "later": as soon as it has had another

  constructor(hub, topics, token, signal) {
    this.#hub = hub;
    this.topics = topics;
    this.capability = `cap ${Math.floor(hub.environment.random() * 1e15).toString(36)}`;
    hub.streams.add(this);
    this.admit(token);
    signal?.addEventListener("abort", () => this.end(new DOMException("aborted", "AbortError")));
  }

  admit(token) {
    this.token = token;
    this.#hub.environment.clearTimeout(this.#expiry);
    this.#expiry = this.#hub.environment.setTimeout(() => this.end(null), token.exp * 1000 - this.#hub.environment.now());
  }

  send(text) {
    const {environment} = this.#hub;
    this.#lastArrival = Math.max(this.#lastArrival, environment.now() + this.#hub.delay());
    environment.setTimeout(() => this.#arrive(encoder.encode(text)), this.#lastArrival - environment.now());
    environment.clearTimeout(this.#beat);
    if (this.#hub.heartbeat > 0) this.#beat = environment.setTimeout(() => this.#hub.streams.has(this) && this.send(":\n\n"), this.#hub.heartbeat);
  }

  // Sends an event for those of its topics that are selected.
  give(event, selects) {
    const topics = event.topics.filter(selects);
    if (topics.length > 0) this.send((this.names === "now" ? topics.map((topic) => `match: ${topic}\n`).join("") : "") + encoded(event));
  }

  // Says that it has caught up when nothing is left to send; once, where it was asked for again meanwhile.
  tell() {
    if (!this.#hub.tells || this.#telling) return;
    this.#telling = true;
    this.#hub.environment.setTimeout(() => {
      this.#telling = false;
      if (this.#hub.streams.has(this)) this.send(": caught up\n\n");
    }, this.#hub.pending());
  }

  #arrive(bytes) {
    if (this.#ended !== undefined) return;
    this.#arrived.push(bytes);
    this.#serve();
  }

  end(error) {
    if (this.#ended !== undefined) return;
    this.#hub.streams.delete(this);
    this.#hub.environment.clearTimeout(this.#beat);
    this.#hub.environment.clearTimeout(this.#expiry);
    const over = () => {
      this.#ended ??= error;
      this.#serve();
    };
    // An end that is none of the network's comes after what was sent.
    if (error) over();
    else this.#hub.environment.setTimeout(over, Math.max(0, this.#lastArrival - this.#hub.environment.now()));
  }

  #serve() {
    if (!this.#reader) return;
    const {resolve, reject} = this.#reader;
    if (this.#arrived.length > 0) resolve({done: false, value: this.#arrived.shift()});
    else if (this.#ended === null) resolve({done: true});
    else if (this.#ended) reject(this.#ended);
    else return;
    this.#reader = null;
  }

  getReader() {
    return {read: () => new Promise((resolve, reject) => {
      this.#reader = {resolve, reject};
      this.#serve();
    })};
  }
}

// Exchanges names like "signed:/topic:7" for a token.
export class FakeTokenEndpoint {
  url = "https://app.test/hikyaku/streams";
  requests = [];
  lifetime = 600;
  subject = "me";
  up = true;
  refusing = null;
  refused = {}; // by topic, or by name
  failing = []; // topics
  chosen = {}; // topics, of names that are to be asked about singly
  headers = {};
  delay = () => 10;
  most = 100; // names
  clock = 0; // seconds by which the server's clock is ahead of the browser's

  constructor(environment, hub) {
    Object.assign(this, {environment, hub});
  }

  async answer(_url, {body, signal}) {
    const {names} = JSON.parse(body);
    this.requests.push({names, at: this.environment.now()});
    await this.environment.wait(this.delay());
    if (signal?.aborted || !this.up) throw new TypeError("no answer");
    if (this.refusing) return response(this.refusing, this.headers);
    if (names.length > this.most) return response(413);
    const now = this.environment.now() / 1000;
    const topics = {};
    const refused = {};
    const failed = [];
    for (const name of names) {
      const topic = this.chosen[name] ?? name.split(":")[1];
      const reason = this.refused[name] ?? this.refused[topic];
      if (this.failing.includes(topic)) failed.push(name);
      else if (reason) refused[name] = reason;
      else topics[name] = topic;
    }
    const granted = Object.values(topics);
    const token = granted.length > 0 ? JSON.stringify({exp: now + this.lifetime, sub: this.subject, topics: granted}) : null;
    const answer = {hub: this.hub.url, token, expires_at: Math.floor(now + this.clock + this.lifetime), topics, refused};
    if (failed.length > 0) answer.failed = failed;
    const singly = names.filter((name) => name in this.chosen);
    if (singly.length > 0) answer.singly = singly;
    return response(200, {date: new Date((now + this.clock) * 1000).toUTCString(), ...this.headers}, null, answer);
  }
}

// Sends requests where they belong.
export function network(...servers) {
  return async (url, init) => {
    const server = servers.find((each) => url.startsWith(each.url));
    if (!server) throw new TypeError(`nobody is at ${url}`);
    return server.answer(url, init);
  };
}

function response(status, headers = {}, body = null, json = null) {
  return {status, headers: new Headers(headers), body, json: async () => json};
}

function encoded({id, type, data}) {
  const lines = String(data).split("\n").map((line) => `data: ${line}\n`).join("");
  return `${type === "message" ? "" : `event: ${type}\n`}id: ${id}\n${lines}\n`;
}
