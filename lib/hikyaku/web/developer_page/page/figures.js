// The hub's own figures, about once a second.

import {el, setText} from "./dom.js";
import {bytes, clock, duration, number, plural} from "./format.js";
import {Sparkline} from "./sparkline.js";

// key in the update, label, how the number is written, and a second line from the whole update
const FIGURES = [
  ["subscribers", "Subscribers", number, (f) => plural(f.subscriptions, "subscription")],
  ["publishes_per_second", "Publishes a second", number, (f) => `${number(f.publishes)} in all`],
  ["deliveries_per_second", "Deliveries a second", number, (f) => `${number(f.deliveries)} in all`],
  ["history_bytes", "History", bytes, (f) => plural(f.history_updates, "update")],
  ["memory_bytes", "Memory", bytes, () => "of the hub's process"],
  ["uptime_seconds", "Up for", duration, (f) => `since ${clock(new Date(Date.now() - f.uptime_seconds * 1000)).slice(0, 5)}`],
];

export class Figures {
  #tiles = [];

  constructor(list) {
    for (const [key, label, format, more] of FIGURES) {
      const value = el("span", {class: "value"}, "–");
      const note = el("span", {class: "note"});
      const line = key === "uptime_seconds" ? null : new Sparkline();
      list.append(el("div", {class: "figure", id: `figure-${key}`}, el("dt", {}, label), el("dd", {}, value, note), line?.element));
      this.#tiles.push({key, format, more, value, note, line});
    }
  }

  show(figures) {
    for (const {key, format, more, value, note, line} of this.#tiles) {
      if (typeof figures[key] !== "number") continue;
      setText(value, format(figures[key]));
      setText(note, more(figures));
      line?.add(figures[key]);
    }
  }
}
