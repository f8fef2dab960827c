// Tabs of one browser, as the coordinator sees them.

import {Coordinator} from "../../../app/assets/javascripts/hikyaku.js";
import {TestEnvironment} from "./environment.mjs";
import {FakeTokenEndpoint, Hub, network} from "./hub.mjs";

let tabs = 0;

// A hub, a token endpoint, and a coordinator between them and tabs.
export function browser({seed} = {}) {
  const servers = [];
  const environment = new TestEnvironment({fetch: (url, init) => network(...servers)(url, init), seed});
  const hub = new Hub(environment);
  const endpoint = new FakeTokenEndpoint(environment, hub);
  servers.push(endpoint, hub);
  return {environment, hub, endpoint, coordinator: Object.assign(new Coordinator(environment), {environment})};
}

export class BrowserTab {
  readers = new Map();
  resets = 0;
  reading = true; // acknowledges what it gets
  speaking = true; // says now and then that it is there
  #ids = 0;

  constructor(coordinator, name = `tab ${++tabs}`) {
    Object.assign(this, {coordinator, name});
    this.say({type: "hello"});
    this.#ping();
  }

  #ping() {
    this.coordinator.environment.setTimeout(() => {
      if (this.speaking) this.say({type: "ping"});
      this.#ping();
    }, 25_000);
  }

  say(message) {
    this.coordinator.receive(this.name, message, (answer) => this.hear(answer));
  }

  // A stream behind the token endpoint. `cursor` is the event that the page was rendered at.
  stream(topic, cursor = null, want = {endpoint: "https://app.test/hikyaku/streams"}) {
    const name = want.endpoint ? `signed:${topic}:${++this.#ids}` : "*";
    return this.join(name, cursor, want);
  }

  join(name, cursor, want, token = null) {
    const reader = new SeenReader(this, ++this.#ids, name, cursor, want, token);
    this.readers.set(reader.id, reader);
    this.say({type: "join", readers: [reader.wish]});
    return reader;
  }

  leave(reader) {
    this.readers.delete(reader.id);
    this.say({type: "leave", ids: [reader.id]});
  }

  close() {
    this.speaking = false;
    this.say({type: "bye"});
  }

  hear(message) {
    this.heard = message;
    if (message.type === "reset") return void (this.resets += 1);
    for (const id of message.ids ?? []) this.readers.get(id)?.hear(message);
    if (message.type === "ask") this.say({type: "token", id: message.id, token: this.newToken?.() ?? null});
    if (this.reading && message.type !== "welcome") this.say({type: "read", count: 1, length: message.event?.data.length ?? 0});
  }

  // What a page does that is told to begin anew.
  rejoin() {
    this.say({type: "hello"});
    this.say({type: "join", readers: [...this.readers.values()].map((reader) => reader.wish)});
  }
}

class SeenReader {
  events = [];
  states = [];
  details = [];

  constructor(tab, id, name, cursor, want, token) {
    Object.assign(this, {tab, id, name, cursor, want, token});
  }

  get wish() {
    return {id: this.id, want: this.want, name: this.name, cursor: this.cursor, token: this.token};
  }

  get state() {
    return this.states.at(-1);
  }

  get data() {
    return this.events.map((event) => event.data);
  }

  leave() {
    this.tab.leave(this);
  }

  hear({type, event, state, detail, cursor}) {
    if (type === "event") {
      this.events.push(event);
      if (event.identified) this.cursor = event.id;
    } else if (type === "state") {
      this.states.push(state);
      this.details.push(detail);
    } else if (type === "cursor") this.cursor = cursor;
  }
}
