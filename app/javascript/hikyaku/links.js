// How a tab speaks with the coordinator.

import {Coordinator} from "./coordinator.js";
import {TIMES} from "./limits.js";
import {isDead, noteDead, workerFile} from "./worker-file.js";
import {ENVIRONMENT} from "./environment.js";

// Of the shared worker, the lock and the broadcasts; the number is that of the coordinator's messages.
export const NAME = "hikyaku/1";

// A link says `ready` when a coordinator is there to say hello to (again, when it is another one), `message`, and `broken` when
// it is of no use here. `renew` is asked for when nothing is heard: it returns whether it may help.

// The coordinator lives in a shared worker, which is the same file: see index.js.
export class WorkerLink {
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
export class LeaderLink {
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
export class PageLink {
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
