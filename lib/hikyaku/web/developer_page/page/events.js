// The list of what arrived, newest first. Bounded in number and in characters; drawn in batches, so that a fast stream
// does not stop the page.

import {el, setText} from "./dom.js";
import {clock, milliseconds, number, plural} from "./format.js";
import {dataBlock} from "./json.js";

const MOST = 500;
const MOST_CHARACTERS = 8_000_000;
const DRAW_EVERY = 50;
const AT_ONCE = 50;
const TELL_EVERY = 4000;

export class EventList {
  #waiting = [];
  #shown = [];
  #characters = 0;
  #total = 0;
  #told = 0;
  #latencies = [];
  #drawing = null;
  #pace = DRAW_EVERY;
  #undrawn = 0;
  #held = false;

  // list: the <ol>; summary: what is counted, in words; live: read out by screen readers; onCursor(id): an id was picked
  constructor({list, empty, summary, live, onCursor}) {
    Object.assign(this, {list, empty, summary, live, onCursor});
    setInterval(() => this.#tell(), TELL_EVERY);
  }

  // → {topics(list), latency(ms)}: what becomes known of the event later
  add(event, source) {
    this.#total += 1;
    const item = {event, source, received: new Date(), topics: null, latency: null};
    this.#queue(item);
    return {
      source: (text, hint) => this.#learn(item, {source: {text, hint}}),
      latency: (latency) => {
        this.#latencies.push(latency);
        if (this.#latencies.length > MOST) this.#latencies.shift();
        this.#learn(item, {latency});
        this.#later();
      },
    };
  }

  gap(title, explanation) {
    this.#queue({gap: {title, explanation}, received: new Date()});
    setText(this.live, `${title} ${explanation}`);
  }

  note(text) {
    this.#queue({note: text, received: new Date()});
  }

  clear() {
    this.#waiting = [];
    this.#shown = [];
    this.#latencies = [];
    this.#characters = this.#total = this.#told = this.#undrawn = 0;
    this.list.replaceChildren();
    this.#draw();
  }

  // Holds the list still, to read it; what arrives meanwhile waits.
  hold(held) {
    this.#held = held;
    this.#draw();
  }

  #queue(item) {
    this.#waiting.push(item);
    if (this.#waiting.length > MOST) {
      this.#waiting.shift();
      this.#undrawn += 1;
    }
    this.#later();
  }

  #learn(item, news) {
    Object.assign(item, news);
    item.refresh?.();
  }

  #later() {
    this.#drawing ??= setTimeout(() => this.#draw(), this.#pace);
  }

  #draw() {
    clearTimeout(this.#drawing);
    this.#drawing = null;
    const began = performance.now();
    if (!this.#held) {
      const fresh = this.#waiting.splice(0, AT_ONCE);
      if (this.#undrawn > 0) {
        fresh.unshift({note: `${plural(this.#undrawn, "event")} not shown: more came than this page draws`, received: new Date()});
        this.#undrawn = 0;
      }
      for (const item of fresh) {
        item.element = item.event ? drawEvent(item, this.onCursor) : drawNotice(item);
        item.size = item.event ? item.event.data.length : 0;
        this.#characters += item.size;
        this.#shown.push(item);
      }
      this.list.prepend(...fresh.reverse().map((item) => item.element));
      while (this.#shown.length > MOST || (this.#characters > MOST_CHARACTERS && this.#shown.length > 1)) {
        const oldest = this.#shown.shift();
        this.#characters -= oldest.size;
        oldest.element.remove();
      }
    }
    this.empty.hidden = this.#shown.length > 0;
    setText(this.summary, this.#summarise());
    // Where drawing is slow it takes at most a quarter of the time.
    this.#pace = Math.max(DRAW_EVERY, 3 * (performance.now() - began));
    if (this.#waiting.length > 0 && !this.#held) this.#later();
  }

  #summarise() {
    const parts = [plural(this.#total, "event")];
    const events = this.#shown.filter(({event}) => event).length;
    if (this.#held && this.#waiting.length > 0) parts.push(`${number(this.#waiting.length)} waiting`);
    else if (events < this.#total) parts.push(`newest ${number(events)} kept`);
    if (this.#latencies.length > 0) {
      const sorted = [...this.#latencies].sort((a, b) => a - b);
      parts.push(`latency ${milliseconds(sorted[sorted.length >> 1])} median, ${milliseconds(sorted[0])}–${milliseconds(sorted.at(-1))}`);
    }
    return parts.join(" · ");
  }

  #tell() {
    if (this.#total === this.#told) return;
    setText(this.live, `${plural(this.#total - this.#told, "new event")}.`);
    this.#told = this.#total;
  }
}

function drawEvent(item, onCursor) {
  const {event, received} = item;
  const source = el("span", {class: "source"});
  const latency = el("span", {class: "latency", hidden: true});
  const id = event.id
    ? el("button", {type: "button", class: "id", title: "Take this id as Last-Event-ID", onclick: () => onCursor(event.id)}, event.id)
    : el("span", {class: "muted"}, "no id");
  item.refresh = () => {
    source.textContent = item.source.text;
    if (item.source.hint) source.title = item.source.hint;
    if (item.latency === null || item.latency === undefined) return;
    latency.hidden = false;
    latency.textContent = milliseconds(item.latency);
    latency.title = "From sending the publish until this page read the event";
  };
  item.refresh();
  return el("li", {class: event.type === "mercure" ? "event hub" : "event"},
    el("div", {class: "event-head"},
      event.type !== "message" && el("span", {class: "badge type"}, event.type),
      source, latency, el("time", {datetime: received.toISOString()}, clock(received))),
    dataBlock(event.data),
    el("div", {class: "event-foot"}, id),
  );
}

function drawNotice({gap, note, received}) {
  const time = el("time", {datetime: received.toISOString()}, clock(received));
  if (note) return el("li", {class: "notice"}, el("span", {}, note), time);
  return el("li", {class: "notice gap"}, el("span", {}, el("strong", {}, gap.title), " ", gap.explanation), time);
}
