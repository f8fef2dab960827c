// Who is on this page, by user and not by connection: <hikyaku-presence signed-stream-name src window grace>, as Rails renders
// it with hikyaku_presence_tag.
//
//     import "hikyaku-presence";
//     addEventListener("hikyaku:presence", ({detail: {here, joined, left}}) => show(here));
//
// The stream of the element is the page's own presence, and brings the hub's events about everybody else's (Mercure draft 08,
// "Subscription Events"). What was before it, the application says (`window`). A user is who has the same `id`.
//
//     certain ── the connection is lost ──► doubtful ── it is back: a list is asked for ──► the list ──► certain
//
// While it is doubtful who is here nothing is told: what was told last stays. Whoever has no page any more has left when that
// lasts longer than `grace` seconds: who loads a page anew, or changes networks, has never left. After a hub that was away for
// everybody they have longer: others come back as late as this page did.
import {Hikyaku} from "hikyaku";

const SECOND = 1_000;
const TIMES = Object.freeze({
  grace: 5 * SECOND,
  answer: 30 * SECOND, // in which the application answers
  retry: SECOND, // before it is asked again, doubled each time
  longestRetry: 30 * SECOND,
  spread: SECOND, // in which those who were cut off together ask
  longestReturn: 45 * SECOND, // for others to come back, when all were cut off
});

const ENVIRONMENT = {
  now: () => Date.now(),
  random: () => Math.random(),
  setTimeout: (...all) => globalThis.setTimeout(...all),
  clearTimeout: (timer) => globalThis.clearTimeout(timer),
};

// ---- who is here -----------------------------------------------------------------------------------------------------

// What is known of the subscriptions of one topic, and what follows for users. Subscriptions are known by subscribers, which
// the hub names; an event tells the beginning or the end of one.
export class Roster {
  #environment;
  #grace;
  #onchange;
  #subscriptions = new Map(); // subscriber → payload
  #since = null; // what has changed since a list was asked for: subscriber → payload, or null for the end
  #certain = false;
  #doubtfulAt = 0;
  #doubted = new Map(); // the subscriptions that were known then
  #told = new Map(); // id → payload, as onchange knows it
  #leaving = new Map(); // id → timer

  // onchange({here, joined, left})
  constructor({grace = TIMES.grace, onchange, environment = ENVIRONMENT}) {
    this.#grace = grace;
    this.#onchange = onchange;
    this.#environment = environment;
  }

  get here() {
    return [...this.#told.values()];
  }

  // An event of the hub's.
  apply({subscriber, active, payload}) {
    if (typeof subscriber !== "string" || idOf(payload) === null) return;
    this.#since?.set(subscriber, active ? payload : null);
    this.#change(subscriber, active ? payload : null);
    if (this.#certain) this.#tell();
  }

  // Events may be missing from now on, until there is a list.
  doubt() {
    if (this.#certain) {
      this.#doubtfulAt = this.#environment.now();
      this.#doubted = new Map(this.#subscriptions);
    }
    this.#certain = false;
    this.#since = null;
    for (const timer of this.#leaving.values()) this.#environment.clearTimeout(timer);
    this.#leaving.clear();
  }

  // A list is asked for: it knows everything up to now, and perhaps more.
  expect() {
    this.#since = new Map();
  }

  // The list: pairs of a subscriber and a payload. What has come since it was asked for is newer.
  take(list) {
    if (!this.#since) return;
    const since = this.#since;
    this.#since = null;
    this.#subscriptions = new Map(list.filter(([, payload]) => idOf(payload) !== null));
    for (const [subscriber, payload] of since) this.#change(subscriber, payload);
    const first = !this.#certain && this.#told.size === 0;
    const grace = this.#certain || [...this.#subscriptions.keys()].some((subscriber) => this.#doubted.has(subscriber)) ? this.#grace : this.#return();
    this.#certain = true;
    this.#tell(first, grace);
  }

  close() {
    this.doubt();
  }

  // No subscription is left of those that were: the hub has lost them all. The longer it was away, the later others ask it again.
  #return() {
    return Math.max(this.#grace, Math.min((this.#environment.now() - this.#doubtfulAt) * 2, TIMES.longestReturn));
  }

  #change(subscriber, payload) {
    if (payload === null) this.#subscriptions.delete(subscriber);
    else this.#subscriptions.set(subscriber, payload);
  }

  #present() {
    return new Map([...this.#subscriptions.values()].map((payload) => [idOf(payload), payload]));
  }

  // With the first list all are here, and nobody has joined.
  #tell(first = false, grace = this.#grace) {
    const present = this.#present();
    const joined = [];
    let changed = first;
    for (const [id, payload] of present) {
      this.#stay(id);
      const before = this.#told.get(id);
      if (before === undefined && !first) joined.push(payload);
      changed ||= before === undefined || JSON.stringify(before) !== JSON.stringify(payload);
      this.#told.set(id, payload);
    }
    for (const id of this.#told.keys()) if (!present.has(id)) this.#leave(id, grace);
    if (changed) this.#onchange({here: this.here, joined, left: []});
  }

  #stay(id) {
    this.#environment.clearTimeout(this.#leaving.get(id));
    this.#leaving.delete(id);
  }

  #leave(id, grace) {
    if (this.#leaving.has(id)) return;
    this.#leaving.set(id, this.#environment.setTimeout(() => {
      const payload = this.#told.get(id);
      this.#leaving.delete(id);
      this.#told.delete(id);
      this.#onchange({here: this.here, joined: [], left: [payload]});
    }, grace));
  }
}

function idOf(payload) {
  const id = payload?.id ?? null;
  return id === null ? null : String(id);
}

// ---- the list --------------------------------------------------------------------------------------------------------

// Asks the application who is here, until it says so.
class Inquiry {
  #url;
  #name;
  #roster;
  #onrefused;
  #timer = null;
  #asked = 0;
  #abort = null;

  constructor(url, name, roster, onrefused) {
    this.#url = url;
    this.#name = name;
    this.#roster = roster;
    this.#onrefused = onrefused;
  }

  begin(wait) {
    this.stop();
    this.#timer = setTimeout(() => this.#ask(this.#asked, TIMES.retry), wait);
  }

  stop() {
    this.#asked += 1;
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  async #ask(number, pause) {
    this.#roster.expect();
    const answer = await this.#answer();
    if (number !== this.#asked) return;
    if (answer === null) {
      this.#timer = setTimeout(() => this.#ask(number, Math.min(pause * 2, TIMES.longestRetry)), pause * (0.5 + Math.random()));
    } else if (Array.isArray(answer.here?.[this.#name])) this.#roster.take(answer.here[this.#name]);
    else this.#onrefused(answer.refused?.[this.#name] ?? "rejected");
  }

  // Null for what may be better later.
  async #answer() {
    this.#abort = new AbortController();
    const timer = setTimeout(() => this.#abort.abort(), TIMES.answer);
    try {
      const response = await fetch(this.#url, {
        method: "POST",
        headers: {"Content-Type": "application/json", Accept: "application/json"},
        body: JSON.stringify({names: [this.#name]}),
        credentials: "same-origin",
        redirect: "manual",
        cache: "no-store",
        signal: this.#abort.signal,
      });
      if (response.ok) return Object(await response.json());
      return response.status >= 500 || [408, 425, 429].includes(response.status) ? null : {};
    } catch {
      return null;
    } finally {
      clearTimeout(timer);
    }
  }
}

// ---- the element -----------------------------------------------------------------------------------------------------

// Its attribute `count` is how many users are here, its property `here` who. It dispatches, bubbling, `hikyaku:presence` with
// {here, joined, left}, lists of payloads; and hikyaku:refused {reason}. Where the name has expired, hikyaku.js has Turbo refresh the page,
// unless preventDefault() is called.
function defineElement() {
  class PresenceElement extends HTMLElement {
    static observedAttributes = ["signed-stream-name", "src", "window"];
    #stream = null;
    #roster = null;
    #inquiry = null;
    #closing = null;
    #restarting = false;
    #begun = false;

    // Moved within the document, it goes on.
    connectedCallback() {
      clearTimeout(this.#closing);
      this.#closing = null;
      if (!this.#stream) this.#start();
    }

    disconnectedCallback() {
      this.#closing ??= setTimeout(() => this.#stop(), 0);
    }

    attributeChangedCallback(_name, before, now) {
      if (before === now || !this.#stream || this.#restarting) return;
      this.#restarting = true;
      queueMicrotask(() => {
        this.#restarting = false;
        if (!this.#stream) return;
        this.#stop();
        if (this.isConnected) this.#start();
      });
    }

    get here() {
      return this.#roster?.here ?? [];
    }

    // A preview of Turbo's will be replaced in a moment: nobody is here by it.
    #start() {
      if (document.documentElement.hasAttribute("data-turbo-preview")) {
        return document.addEventListener("turbo:render", () => this.isConnected && !this.#stream && this.#start(), {once: true});
      }
      const name = this.getAttribute("signed-stream-name");
      if (!name) return;
      const grace = Number(this.getAttribute("grace") ?? NaN);
      this.#begun = false;
      this.#roster = new Roster({
        grace: Number.isFinite(grace) && grace >= 0 ? grace * SECOND : undefined,
        onchange: (detail) => this.#tell(detail),
      });
      const url = new URL(this.getAttribute("window") ?? "/hikyaku/presence", document.baseURI).href;
      this.#inquiry = new Inquiry(url, name, this.#roster, (reason) => this.#refuse({reason}));
      this.#stream = Hikyaku.connect({endpoint: this.getAttribute("src") ?? undefined}).stream(name, {
        onmessage: (event) => this.#receive(event),
        onstate: (state, detail) => this.#become(state, detail),
      });
    }

    #stop() {
      this.#closing = null;
      this.#stream?.close();
      this.#inquiry?.stop();
      this.#roster?.close();
      this.#stream = this.#inquiry = this.#roster = null;
    }

    #receive({type, data}) {
      if (type !== "mercure") return;
      const document = parsed(data);
      if (document?.type === "subscription") this.#roster.apply(document);
    }

    #become(state, detail) {
      if (state === "connected" || state === "reconnecting") {
        this.#inquiry.stop();
        this.#roster.doubt();
      } else if (state === "caught-up" || state === "gap") {
        this.#inquiry.begin(this.#begun ? Math.random() * TIMES.spread : 0);
        this.#begun = true;
      } else if (state === "refused") this.#refuse(detail);
    }

    #refuse(detail) {
      this.#inquiry.stop();
      this.#roster.doubt();
      this.dispatchEvent(new CustomEvent("hikyaku:refused", {detail, bubbles: true, cancelable: true}));
    }

    #tell(detail) {
      this.setAttribute("count", String(detail.here.length));
      this.dispatchEvent(new CustomEvent("hikyaku:presence", {detail, bubbles: true}));
    }
  }

  customElements.define("hikyaku-presence", PresenceElement);
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

if (globalThis.customElements && !customElements.get("hikyaku-presence")) defineElement();
