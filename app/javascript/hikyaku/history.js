// What a connection remembers of the events that it has had.

import {LIMITS} from "./limits.js";

// The ids of events, and the topics that each came for: against repeats. What comes again after a gap is none: who came since then is
// yet to have it.
class Seen {
  #events = new Map(); // id → topic → its start

  has(id, topic) {
    return this.#events.get(id)?.get(topic) === topic.start;
  }

  add(id, topic) {
    const topics = this.#events.get(id) ?? new Map();
    this.#events.delete(id);
    this.#events.set(id, topics.set(topic, topic.start));
    if (this.#events.size > LIMITS.ids) this.#events.delete(this.#events.keys().next().value);
  }
}

// The newest events, in the order of the stream.
export class History {
  #entries = [];
  #length = 0;
  #seen = new Seen();
  next = 0;
  gaps = 0;

  // Whether an event has come for a topic.
  has(id, topic) {
    return this.#seen.has(id, topic);
  }

  // An event has come for a topic. Where that is not wholly there, nothing follows from it.
  note(topic, event, time) {
    topic.lastAt = time;
    if (!event.identified) return;
    this.#seen.add(event.id, topic);
    if (!topic.whollyThere) return;
    topic.lastId = event.id;
    this.#add(topic, event);
  }

  #add(topic, event) {
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
