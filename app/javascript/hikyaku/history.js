// What a trunk remembers of the events that it has had.

import {LIMITS} from "./limits.js";

// The newest events, in the order of the stream.
export class History {
  #entries = [];
  #length = 0;
  next = 0;
  gaps = 0;

  add(topic, event) {
    this.#entries.push({topic, event, settled: topic.settled, number: this.next++});
    this.#length += event.data.length;
    while (this.#entries.length > LIMITS.history || this.#length > LIMITS.historyLength) {
      const oldest = this.#entries.shift();
      oldest.topic.whole = false;
      this.#length -= oldest.event.data.length;
    }
  }

  // A gap has a number, as an event has: a cursor is right on one side of it.
  interrupt(topics, time) {
    this.next += 1;
    this.gaps += 1;
    for (const topic of topics) topic.interrupt(this.next, time);
  }

  // The events of a topic after a cursor, or null where it isn't certain which these are.
  after(topic, cursor) {
    if (cursor === topic.lastId) return [];
    let index = this.#entries.length - 1;
    while (index >= 0 && !this.#tells(this.#entries[index], topic, cursor)) index -= 1;
    if (index < 0 && !(topic.whole && cursor === topic.base)) return null;
    return this.#entries.slice(index + 1).filter((entry) => entry.topic === topic).map((entry) => entry.event);
  }

  #tells(entry, topic, cursor) {
    if (entry.event.id !== cursor || entry.number < topic.start) return false;
    return entry.topic === topic || (entry.settled && topic.settled && entry.number >= topic.from);
  }
}

// The ids of events, and the topic that each came for: against repeats. What comes again after a gap is none: who came since then is
// yet to have it.
export class Seen {
  #topics = new Map();

  has(id, topic) {
    const seen = this.#topics.get(id);
    return seen?.topic === topic && seen.start === topic.start;
  }

  add(id, topic) {
    this.#topics.delete(id);
    this.#topics.set(id, {topic, start: topic.start});
    if (this.#topics.size > LIMITS.ids) this.#topics.delete(this.#topics.keys().next().value);
  }
}
