// Days of pages that come and go while everything goes wrong. Whatever happens, each element of a page has in the end what was
// published after the event that it was rendered at, all of it, in order, once; or it was told of a gap. Then its page is rendered again:
// now as it should be, now out of a cache, at the same event as before.

import {Coordinator} from "../../../app/assets/javascripts/hikyaku.js";
import {browser, BrowserTab} from "./browser.mjs";
import {generator} from "./environment.mjs";

const TOPICS = ["/a", "/b", "/c", "/d", "/e"];
// What pages without a token endpoint ask for, each by itself: some have something in common.
const LISTS = [["/a"], ["/b"], ["/a", "/b"], ["/c", "/d"], ["/d", "/e"], ["/e"], ["/a", "/e", "/c"]];

export async function simulate(seed, {steps = 400, changeable = true, heartbeat = 15_000, history = Infinity, crashes = true, tells = true, forgets = false, lists = false, naming = true} = {}) {
  const simulation = new Simulation(seed, {changeable, heartbeat, history, crashes, tells, forgets, lists, naming});
  await simulation.run(steps);
  return simulation;
}

class Simulation {
  mistakes = [];
  gaps = 0;
  mostStreams = 0;
  pages = [];
  cached = []; // where pages were rendered of which there is still a copy
  published = 0;

  constructor(seed, {changeable, heartbeat, history, crashes, tells, forgets, lists, naming}) {
    Object.assign(this, browser({seed}), {seed, crashes, forgets, lists, chance: generator(seed * 7919 + 1)});
    Object.assign(this.hub, {changeable, heartbeat, history, tells, naming});
    if (lists) this.#grantAll();
    this.hub.delay = () => this.#delay();
    this.endpoint.delay = () => this.#delay();
    this.hub.pending = () => (this.chance() < 0.3 ? this.chance() * 400 : 0);
  }

  // Mostly a network as it is; now and then a segment is lost, and sent again.
  #delay() {
    return this.chance() < 0.02 ? 300 + this.chance() * 900 : 5 + this.chance() * 80;
  }

  #grantAll() {
    const answer = this.hub.answer.bind(this.hub);
    const Authorization = `Bearer ${JSON.stringify({exp: 1e10, topics: TOPICS})}`;
    this.hub.answer = (url, init) => answer(url, {...init, headers: {...init.headers, Authorization}});
  }

  #publish() {
    const others = this.lists && this.chance() < 0.4 ? [this.#pick(TOPICS)] : [];
    this.hub.publish([...new Set([this.#pick(TOPICS), ...others])], String(++this.published));
  }

  // Elements of a page, or what it subscribes to.
  #follow(tab, topics, cursor) {
    if (!this.lists) return topics.map((topic) => Object.assign(tab.stream(topic, cursor), {topics: [topic]}));
    const lists = LISTS.filter(([topic]) => topics.includes(topic) && this.chance() < 0.6);
    const want = (list) => ({hub: this.hub.url, matchers: list.map((topic) => ["match", topic]), credentials: "same-origin", rights: null});
    return lists.map((list) => Object.assign(tab.join(null, cursor, want(list)), {topics: list}));
  }

  #pick(list) {
    return list[Math.floor(this.chance() * list.length)];
  }

  async run(steps) {
    for (let step = 0; step < steps; step += 1) {
      this.#act();
      await this.environment.pass(this.chance() < 0.1 ? this.chance() * 8_000 : this.chance() * 300);
      this.mostStreams = Math.max(this.mostStreams, this.coordinator.connections);
      this.pages.forEach((page) => this.#look(page, false));
    }
    this.hub.up = this.endpoint.up = true;
    await this.environment.pass(180_000);
    this.pages.forEach((page) => this.#look(page, true));
  }

  #act() {
    if (this.forgets && this.chance() < 0.06) return this.#lose();
    const dice = this.chance();
    if (dice < 0.45) this.#publish();
    else if (dice < 0.62) this.#openPage();
    else if (dice < 0.76) this.#closePage();
    else if (dice < 0.82) this.#visit();
    else if (dice < 0.85) this.hub.cut();
    else if (dice < 0.88 && this.hub.streams.size > 0) this.hub.cut([this.#pick([...this.hub.streams])]);
    else if (dice < 0.9) this.hub.finish();
    else if (dice < 0.92) this.#interrupt(this.hub);
    else if (dice < 0.93) this.#interrupt(this.endpoint);
    else if (dice < 0.94 && this.crashes) this.#crash();
    else if (dice < 0.96) this.#nudge();
    else for (let count = 0; count < 5; count += 1) this.#publish();
  }

  #openPage() {
    if (this.pages.length >= 8) return;
    const tab = new BrowserTab(this.coordinator);
    this.#render(tab);
  }

  // The hub forgets, or a stream is too slow, and what it lacks nobody will send.
  #lose() {
    const stream = this.#pick([...this.hub.streams]);
    if (!stream || this.chance() < 0.4) return void (this.hub.forgotten = Math.max(0, this.hub.log.length - Math.floor(this.chance() * 3)));
    const some = [...stream.topics].filter(() => this.chance() < 0.7);
    const names = some.length > 0 && (some.length < stream.topics.size || this.chance() < 0.5);
    const topics = names ? some : [...stream.topics];
    // It is told before it gets anything that is newer.
    const lost = TOPICS.filter((topic) => topics.includes(topic) || !stream.topics.has(topic));
    const publish = () => {
      for (let count = this.chance() * 4; count > 0; count -= 1) this.hub.publish(this.#pick(lost), String(++this.published));
    };
    this.hub.overrun(stream, topics, publish, {names});
  }

  // The page has what was published up to now, and asks for what comes when it has arrived. Some pages say no cursor that the
  // browser has seen, and some the one that another page was rendered at, or had come to: they come from a cache.
  #render(tab, position = this.#position()) {
    const page = {tab, readers: [], open: true, position};
    const cursor = position === 0 ? this.hub.beginning : this.hub.log[position - 1].id;
    const topics = TOPICS.filter((topic) => topic === "/a" || this.chance() < 0.3);
    if (this.forgets) this.#keep(position);
    this.pages.push(page);
    const follow = (list) => page.open && page.readers.push(...this.#follow(tab, list, cursor).map((reader) => Object.assign(reader, {position})));
    this.environment.setTimeout(() => follow(topics), 20 + this.chance() * (this.chance() < 0.1 ? 3_000 : 200));
    // Elements that came into the page with a part of it.
    if (this.forgets && this.chance() < 0.3) this.environment.setTimeout(() => follow(topics), 20 + this.chance() * 6_000);
  }

  #position() {
    if (this.chance() >= (this.forgets ? 0.3 : 0.1)) return this.hub.log.length;
    if (this.cached.length > 0 && this.chance() < 0.7) return this.#pick(this.cached);
    return Math.max(this.hub.oldest, this.hub.log.length - Math.floor(this.chance() * 20));
  }

  #keep(position) {
    this.cached = [...this.cached, position].slice(-5);
  }

  #closePage() {
    const page = this.#pick(this.pages);
    if (!page) return;
    this.#end(page);
    page.tab.close();
  }

  // Of a page that lacks nothing a copy may be kept; its elements say to where it has everything.
  #end(page) {
    page.open = false;
    const cursors = new Set(page.readers.map((reader) => reader.cursor));
    const known = this.hub.log.findIndex((event) => cursors.size === 1 && cursors.has(event.id));
    if (this.forgets && known >= 0 && page.readers.every((reader) => !reader.states.includes("gap"))) this.#keep(known + 1);
    page.readers.forEach((reader) => reader.leave());
    this.pages = this.pages.filter((other) => other !== page);
  }

  // The next page of a tab comes in place of the one that is there.
  #visit() {
    const page = this.#pick(this.pages);
    if (!page) return;
    this.#end(page);
    this.#render(page.tab);
  }

  #interrupt(server) {
    server.up = false;
    if (server === this.hub) this.hub.cut();
    this.environment.setTimeout(() => (server.up = true), this.chance() * 6_000);
  }

  // The shared worker is gone, and the tabs turn to another.
  #crash() {
    this.coordinator.close();
    this.coordinator = Object.assign(new Coordinator(this.environment), {environment: this.environment});
    for (const {tab} of this.pages) {
      tab.coordinator = this.coordinator;
      tab.rejoin();
    }
    for (const reader of this.pages.flatMap(({readers}) => readers)) reader.states.push("rejoined");
  }

  #nudge() {
    const page = this.#pick(this.pages);
    page?.tab.say({type: "check", reason: this.#pick(["visible", "online"])});
  }

  #look(page, complete) {
    for (const reader of page.readers) {
      if (/caught-up,connected/.test(reader.states)) this.mistakes.push(`${reader.tab.name} was told that it is connected while it was: ${reader.states}`);
      if (reader.states.includes("gap")) {
        this.gaps += 1;
        this.#end(page);
        this.#render(page.tab, this.forgets && this.chance() < 0.4 ? page.position : this.hub.log.length);
        return;
      }
      const due = this.hub.log.slice(reader.position).filter(({topics}) => topics.some((topic) => reader.topics.includes(topic))).map((event) => event.data);
      const expected = complete ? due : due.slice(0, reader.data.length);
      if (JSON.stringify(reader.data) !== JSON.stringify(expected)) {
        this.mistakes.push(`${reader.tab.name} ${reader.topics} from ${reader.position}: ${reader.data} instead of ${expected} (${reader.states})`);
      }
    }
  }
}
