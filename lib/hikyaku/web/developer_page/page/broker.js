// The queues of the broker in the hub's process, about once a second.

import {$, el, setText} from "./dom.js";
import {duration, number, plural} from "./format.js";

const EMPTY = "There is no queue yet. The first message makes one: bundle exec hikyaku send QUEUE PAYLOAD";
const DEAD = "A dead letter is a message that was given up after several attempts. To list them, or to send them again: bundle exec hikyaku dead QUEUE";

export class Broker {
  #rows = new Map();

  constructor({section, link}) {
    this.section = section;
    this.link = link;
    this.body = $("tbody", section);
  }

  // Figures of the broker; undefined where the hub's process has none.
  show(figures) {
    this.section.hidden = this.link.hidden = !figures;
    if (!figures) return;
    const hidden = figures.queues - figures.largest.length;
    setText($("#broker-count"), `${plural(figures.queues, "queue")}, ${plural(figures.ready, "message")} waiting${hidden > 0 ? `; ${number(figures.largest.length)} shown` : ""}`);
    setText($("#broker-note"), figures.dead > 0 ? DEAD : figures.queues === 0 ? EMPTY : "");
    const names = new Set(figures.largest.map((queue) => queue.name));
    for (const [name, row] of this.#rows) {
      if (names.has(name)) continue;
      this.#rows.delete(name);
      row.element.remove();
    }
    for (const queue of [...figures.largest].sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const row = this.#rows.get(queue.name) ?? this.#add(queue.name);
      setText(row.ready, number(queue.ready));
      setText(row.out, number(queue.out));
      setText(row.delayed, number(queue.delayed));
      setText(row.dead, number(queue.dead));
      row.dead.className = queue.dead > 0 ? "refusal" : "";
      setText(row.receivers, number(queue.receivers));
      setText(row.oldest, queue.ready > 0 ? duration(queue.oldest_ms / 1000) : "");
    }
  }

  #add(name) {
    const cell = (label) => el("td", {"data-label": label});
    const row = {ready: cell("Waiting"), out: cell("Being worked on"), delayed: cell("Delayed"), dead: cell("Dead letters"), receivers: cell("Receivers"), oldest: cell("Oldest waits")};
    row.element = el("tr", {}, el("td", {"data-label": "Queue"}, el("code", {}, name)), ...Object.values(row));
    this.#rows.set(name, row);
    // In the order of their names: a row stays where it is.
    const next = [...this.#rows].filter(([other]) => other > name).sort(([a], [b]) => (a < b ? -1 : 1))[0];
    this.body.insertBefore(row.element, next ? next[1].element : null);
    return row;
  }
}
