// The element: what comes is rendered by Turbo.

import {LIMITS, SECOND} from "./limits.js";
import {Hikyaku} from "./stream.js";

// Calls Turbo's refresh for a page that lacks something: once for all its elements, not all browsers at one moment, and for
// hidden pages when they are seen.
const refreshing = {
  spread: 2 * SECOND,
  least: 10 * SECOND,
  at: -Infinity,
  planned: false,

  plan() {
    if (this.planned || !globalThis.Turbo || Date.now() - this.at < this.least) return;
    this.planned = true;
    if (document.visibilityState === "visible") setTimeout(() => this.now(), Math.random() * this.spread);
    else document.addEventListener("visibilitychange", () => this.now(), {once: true});
  },

  now() {
    this.planned = false;
    this.at = Date.now();
    if (Turbo.session?.refresh) Turbo.session.refresh(location.href);
    else Turbo.visit(location.href, {action: "replace"});
  },
};

// Elements of the same stream render what comes to all of them once. Which of them is first, nobody knows: they may be served by
// different trunks. But what one element has rendered before another was there, the other renders again: what it stands in was
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
export function defineElement() {
  class StreamSourceElement extends HTMLElement {
    static observedAttributes = ["signed-stream-name", "cursor", "src"];
    #stream = null;
    #since = 0;
    #closing = null;
    #restarting = false;
    #writing = false;

    // Moved within the document, it goes on with its stream.
    connectedCallback() {
      clearTimeout(this.#closing);
      this.#closing = null;
      if (!this.#stream) this.#start();
    }

    disconnectedCallback() {
      this.#closing ??= setTimeout(() => this.#stop(), 0);
    }

    // The page is another one now: it was rendered at another event.
    attributeChangedCallback(_name, before, now) {
      if (this.#writing || before === now || !this.#stream || this.#restarting) return;
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
      this.#stream = Hikyaku.connect({door: this.getAttribute("src") ?? undefined}).stream(name, {
        cursor: this.getAttribute("cursor"),
        onmessage: (event) => this.#receive(event),
        onstate: (state, detail) => this.#become(state, detail),
        oncursor: (cursor) => this.#write("cursor", cursor),
      });
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
      this.setAttribute("state", state);
      const allowed = this.#dispatch(state, detail);
      if (allowed && (state === "gap" || (state === "refused" && detail.reason === "expired"))) refreshing.plan();
    }
  }

  customElements.define("hikyaku-stream-source", StreamSourceElement);
}
