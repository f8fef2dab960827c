// The element: what comes is rendered by Turbo.

import {changedControls, changedForms} from "./forms.js";
import {LIMITS, SECOND} from "./limits.js";
import {Hikyaku} from "./stream.js";

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
export function defineElement() {
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
